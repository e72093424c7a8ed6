"""Suites of measured times: bad tables, what is kept, processes, and the script."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from pysim import Config, ConfigError
from pysim.machine.devices import device
from pysim.workloads.validation import cache, cases, parallel
from pysim.workloads.validation.suites import SUITES, cases_of
from pysim.workloads.validation.table import rows_of
from tests.support.calls import CONFIGS, ROOT, hear_ctrl_c, refused

from .test_validation import KERNELS, run

TINY = """\
id,kernel,params,flops,min_bytes,time_us_warm_back_to_back,ncu_cold_time_us,ncu_cold_sm_cycles,note
7,vecadd,n=256,256,3072,1.765,2.080,4298,"small, one TB"

8,nosuch,n=256,256,3072,2,4,,
"""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.csv"
    path.write_text(TINY, encoding="utf-8")
    return path


HEAD = ",".join(KERNELS.columns)
GOOD = "1,vecadd,n=256,256,3072,1.7,2.0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no rows"),
        (HEAD, "has no rows"),
        (HEAD.replace("flops,", "") + "\n", "bad.csv:1: no column flops"),
        (f"{HEAD},id\n{GOOD},1", "bad.csv:1: column id is there twice"),
        (f"{HEAD}\n{GOOD}\n1,2\n", "bad.csv:3: 2 cells, not 7"),
        (f"{HEAD}\n\n{GOOD.replace('1.7', 'fast')}", "bad.csv:3: time_us_warm_back_to_back must be a number"),
        (f"{HEAD}\n{GOOD.replace('2.0', 'nan')}", "bad.csv:2: ncu_cold_time_us must be a number"),
        (f"{HEAD}\n{GOOD.replace('2.0', '-1')}", "bad.csv:2: ncu_cold_time_us must be a number"),
        (f"{HEAD}\n{GOOD.replace('256,3072', '1e999,3072')}", "bad.csv:2: flops must be a number"),
        (f"{HEAD}\n{GOOD}\n{GOOD}", "case 1:vecadd:n=256:warm is measured twice"),
        (f'{HEAD}\n1,"vec', "bad.csv:2: is not CSV"),
    ],
)
def test_bad_tables_are_told_by_file_and_line(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        cases_of(KERNELS, path)
    assert "\n" not in str(error.value)


def test_tables_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.csv: cannot be read"):
        cases_of(KERNELS, tmp_path / "none.csv")
    path = tmp_path / "latin.csv"
    path.write_bytes(f"{HEAD}\n1,caf\xe9".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"latin\.csv:2: is not UTF-8"):
        cases_of(KERNELS, path)
    path.write_text(
        f"{','.join(SUITES['cusync-conv'].columns)}\na100,x,1,1,1,1,baseline,1,0", encoding="utf-8"
    )
    with pytest.raises(ConfigError, match="none of its 1 rows belongs to suite cusync-conv"):
        cases_of(SUITES["cusync-conv"], path)


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "", "9" * 30, "²"])
def test_counts_are_whole_and_bounded(text):
    row = rows_of("t.csv", f"m,x\n{text},1\n", ("m",))[0]
    with pytest.raises(ConfigError, match=r"t\.csv:2: m must be a whole number from 1 to"):
        row.count("m")


# -------------------------------------------------------------------------------------------- kept outcomes

KEPT = cases.Outcome({"warm": 1.25}, {"warm": 2475.0}, "tile")


def test_an_outcome_is_kept_and_read_back(tmp_path):
    cache.put("ab12", KEPT, tmp_path)
    assert cache.get("ab12", tmp_path) == KEPT
    assert cache.get("ab13", tmp_path) is None
    assert [path.name for path in tmp_path.rglob("*.*")] == ["ab12.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"key": "ab12", "times_us": 3}', '{"key": "ab12", "x": 1}']
)
def test_a_damaged_file_counts_as_none(tmp_path, text):
    cache.put("ab12", KEPT, tmp_path)
    cache.path_of("ab12", tmp_path).write_text(text, encoding="utf-8")
    assert cache.get("ab12", tmp_path) is None


def test_the_key_holds_all_that_decides_an_outcome(monkeypatch):
    config = Config.resolve(device("v100"))
    task = ("vecadd", "n=256", "3")
    key = cache.key_of("h200-kernels", task, config)
    assert key == cache.key_of("h200-kernels", task, Config.resolve(device("v100")))
    others = [
        cache.key_of("h200-kernels", ("vecadd", "n=257", "3"), config),
        cache.key_of("h200-deps", task, config),
        cache.key_of("h200-kernels", task, config.replaced({"gpu.l1.latency": 29})),
        cache.key_of("h200-kernels", task, Config.resolve(device("titan_v"))),
    ]
    monkeypatch.setattr(cache, "code_digest", lambda: "other code")
    others.append(cache.key_of("h200-kernels", task, config))
    assert len({key, *others}) == 6


def test_the_digest_of_the_code_sees_core_and_templates(monkeypatch, tmp_path):
    from pysim.results import digests

    for name in ("pysim/_core.so", "pysim/engine/run.py", "workloads/mirrored/code.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1", encoding="utf-8")
    monkeypatch.setattr(digests, "_ROOT", tmp_path)
    seen = set()
    for name in (None, "pysim/_core.so", "pysim/engine/run.py", "workloads/mirrored/code.py"):
        if name:
            (tmp_path / name).write_text("2", encoding="utf-8")
        digests.code_digest.cache_clear()
        seen.add(digests.code_digest())
    digests.code_digest.cache_clear()
    assert len(seen) == 4


def test_the_digests_read_the_sources_of_this_tree(monkeypatch):
    from pysim.results import digests

    read = []
    whole = digests.Path.read_bytes
    monkeypatch.setattr(digests.Path, "read_bytes", lambda path: read.append(path) or whole(path))
    for digest in (digests.source_digest, digests.code_digest):
        digest.cache_clear()
        digest()
    names = {path.relative_to(digests._ROOT).as_posix() for path in read}
    deep = (
        "pysim/machine/devices/volta.py",
        "workloads/kernels/gemm.py",
        "core_c/gs_api.h",
        "core_c/gen/gs_isa.h",
    )
    assert names.issuperset(deep)


# ------------------------------------------------------------------------------------------------ processes


def test_a_process_that_dies_is_an_outcome_and_the_others_go_on():
    found = dict(parallel.run_all(os._exit, [3, 4, 5], 2))
    assert [found[at].reason for at in range(3)] == [
        f"failed: the process ended with exit status {code}" for code in (3, 4, 5)
    ]
    assert all(outcome.trace for outcome in found.values())
    assert dict(parallel.run_all(os._exit, [], 2)) == {}


def test_what_is_refused_and_a_bug_are_told_apart():
    config = Config.resolve(device("v100"))
    refused = parallel.run_task("h200-kernels", config, ("nosuch", "n=1", "3"))
    assert "nosuch" in refused.reason
    assert not refused.trace
    bug = parallel.run_task("h200-kernels", config, ("vecadd", "n=256", "three"))
    assert bug.reason.startswith("failed: ValueError")
    assert "Traceback" in bug.trace


# ----------------------------------------------------------------------------------------------- the script


@pytest.mark.deep
def test_the_script_on_a_table_of_two_rows(tmp_path, tiny):
    args = ("--suite", "h200-kernels", "--measured", str(tiny), "--threads", "2")
    done = run(tmp_path, *args, "--json", "--picture", "yes")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["validation"]
    assert [row["case"] for row in rows] == [
        f"{name}:{mode}" for name in ("7:vecadd:n=256", "8:nosuch:n=256") for mode in ("warm", "cold")
    ]
    assert [row["status"] for row in rows] == ["ok", "ok", "unsupported", "unsupported"]
    assert all(row["simulated"] > 0 and abs(row["error"]) < 1 for row in rows[:2])
    assert rows[1]["error"] == pytest.approx(rows[1]["simulated"] / 2.080 - 1)
    assert [(row["simulated"], row["error"]) for row in rows[2:]] == [(0, 1)] * 2
    assert "nosuch" in rows[2]["detail"]
    assert [row["measured_cycles"] for row in rows] == [None, 4298, None, None]
    assert re.search(r"all +4 +2 +5\d\.\d%", done.stderr)
    assert "baseline model: roofline" in done.stderr
    assert len(list(tmp_path.glob("results/validate-*.h5"))) == 1
    assert len(list(tmp_path.glob("results/validate-*.png"))) == 1

    kept = run(tmp_path, *args, "--json")
    assert (kept.returncode, kept.stdout) == (0, done.stdout)
    assert "2 of 2 simulations read from results/cache" in kept.stderr
    fresh = run(tmp_path, *args, "--json", "--fresh")
    assert (fresh.returncode, fresh.stdout) == (0, done.stdout)
    assert "kept" not in fresh.stderr
    other = run(tmp_path, *args, "--set", "gpu.l1.latency=40")
    assert other.returncode == 0
    assert "kept" not in other.stderr


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        ((), 2, "required: --suite"),
        (("--suite", "h200-kernel"), 2, "did you mean"),
        (("--suite", "h200-kernels", "--schemes", "graph"), 2, "the suite decides what is run"),
        (("--suite", "h200-kernels", "--measured", "none.csv"), 2, "none.csv: cannot be read"),
        (("--suite", "h200-kernels", "--subset", "some"), 2, "unknown value 'some'"),
    ],
)
def test_the_script_refuses_in_one_line(tmp_path, args, status, message):
    refused(run(tmp_path, *args), message, status)


def test_ctrl_c_ends_in_one_line_and_keeps_what_was_done(tmp_path):
    started = subprocess.Popen(
        [sys.executable, str(CONFIGS / "validate.py"), "--suite", "deepbench-rnn", "--threads", "2"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=hear_ctrl_c,
    )  # fmt: skip
    assert started.stderr is not None
    with started.stderr as stream:
        first = stream.readline()
        os.killpg(started.pid, signal.SIGINT)
        rest = stream.read()
    assert started.wait(timeout=60) == 130
    assert (first + rest).splitlines()[-1] == "interrupted"
    assert "Traceback" not in rest
    assert list(tmp_path.glob("results/*.h5")) == []
    assert not list(tmp_path.glob("results/cache/*/.*"))
    for path in tmp_path.glob("results/cache/*/*.json"):
        assert cache.get(path.stem, tmp_path / "results" / "cache") is not None


def test_packaged_tables_read_as_csv_with_the_columns_of_their_suite():
    for suite in SUITES.values():
        path = ROOT / "workloads" / "measured" / suite.file
        heads = next(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        assert set(suite.columns) <= set(heads)
