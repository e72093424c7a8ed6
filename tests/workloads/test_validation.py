"""Suites of measured times: rows, halves, null models, what is kept, processes, and the script."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import stats
from pysim import Config, ConfigError
from pysim.machine.devices import device
from stats import validation
from tests.support.calls import CONFIGS, ROOT, caller, refused
from workloads.validation import cache, cases, nulls, parallel
from workloads.validation.suites import SUITES, cases_of, tasks_of
from workloads.validation.table import rows_of

run = caller("validate")
KERNELS = SUITES["h200-kernels"]
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


def made(measured, simulated, group, mode, split="fit"):
    """A table `validation` of given times; 0 stands for a case that could not be simulated."""
    rows = len(measured)
    good = np.array(simulated) > 0
    columns = {column.name: "" for column in stats.schema.VALIDATION}
    numbers = dict.fromkeys(("run", "null", "measured_cycles", "simulated_cycles"), np.zeros(rows))
    columns |= numbers | {
        "measured": np.array(measured, float),
        "simulated": np.array(simulated, float),
        "error": np.where(good, np.array(simulated) / np.array(measured) - 1, 1.0),
        "status": np.where(good, "ok", "unsupported"),
        "group": group,
        "mode": mode,
        "kind": mode,
        "split": split,
    }
    return stats.schema.from_columns("validation", columns)


# ------------------------------------------------------------------------------------------- rows and halves


def test_suites_have_the_rows_that_they_say():
    counts = {name: len(cases_of(suite)[0]) for name, suite in SUITES.items()}
    assert counts == {
        "h200-kernels": 164,
        "h200-deps": 1050,
        "cusync-mlp": 69,
        "cusync-mlp-v100": 68,
        "cusync-conv": 162,
        "deepbench-gemm": 320,
        "deepbench-rnn": 78,
    }
    for suite in SUITES.values():
        every = cases_of(suite)[0]
        assert len({case.case for case in every}) == len(every)
        assert {case.split for case in every} == {"fit", "check"}
        quick = [case for case in every if case.quick]
        assert 0 < len(quick) < len(every)


def test_half_is_the_lowest_bit_of_the_digest():
    for key in ("vecadd:n=256", "saxpy4:n=1024", "1760x16x1760 NN"):
        even = int(hashlib.sha256(key.encode()).hexdigest(), 16) & 1 == 0
        assert cases.split_of(key) == ("fit" if even else "check")
    assert cases.split_of("vecadd:n=256") == "check"
    assert cases.split_of("saxpy4:n=1024") == "fit"


def test_keys_groups_and_cases_are_spelled_as_the_tables_are():
    kernel = cases_of(KERNELS)[0][1]
    assert (kernel.case, kernel.mode, kernel.key) == ("0:vecadd:n=256:cold", "cold", "vecadd:n=256")
    assert (kernel.measured_us, kernel.measured_cycles) == (2.080, 4298)
    chain = cases_of(SUITES["h200-deps"])[0][0]
    group = "mlp|fp16|64x64x32_128thr|widths=1024-4096-1024;layers=2;tokens=64"
    assert (chain.case, chain.group, chain.key) == (f"{group}|1_stream", group, group)
    assert chain.measured_us == pytest.approx(45.28 - 1.3)
    pairs = {case.case: case for case in cases_of(SUITES["cusync-mlp"])[0]}
    once, again = (pairs[f"gpt3|2048|6144|12288|12288|6144#{at}|rowsync"] for at in (1, 2))
    assert (once.measured_us, again.measured_us) == (2315.78, 2317.14)
    # measured twice, but one problem: both must be in the same half
    assert once.key == again.key == "gpt3|2048|6144|12288|12288|6144"
    assert "gpt3|1024|6144|12288|12288|6144|tilesync" in pairs


def test_every_mode_of_the_chains_has_a_scheme():
    chains = cases_of(SUITES["h200-deps"])[0]
    schemes = {case.mode: case.scheme for case in chains}
    assert len(schemes) == len(set(schemes.values())) == 15
    assert all(mode != scheme for mode, scheme in schemes.items())


def test_rows_above_the_peak_are_left_out():
    suite = SUITES["cusync-mlp-v100"]
    header = ",".join(suite.columns)
    row = "v100,gpt3,512,6144,12288,12288,6144,{},900,{},256x256x32,256x256x32,2/2,1/1"
    rows = rows_of(
        "t", "\n".join([header, row.format("baseline", 1), row.format("rowsync", 0)]), suite.columns
    )
    assert [case.mode for case in suite.cases(rows)] == ["rowsync"]


def test_tasks_are_shared_and_the_longest_come_first():
    every = cases_of(KERNELS)[0]
    tasks = tasks_of(every)
    assert len(tasks) == 82
    longest = max(every, key=lambda case: case.measured_us)
    assert tasks[0] == longest.task


# ------------------------------------------------------------------------------------------------ null models


def figures(errors):
    found = validation.summary(errors)
    return [round(100 * found[name], 1) for name in ("mean", "p90", "worst")]


def null_errors(every, null):
    errors = null.times_us / np.array([case.measured_us for case in every]) - 1
    return errors[np.isfinite(errors)]


@pytest.mark.parametrize(
    ("suite", "picked", "number", "expected"),
    [
        ("h200-kernels", "warm", 0, [39.9, 86.8, 95.8]),
        ("h200-kernels", "cold", 0, [38.5, 84.9, 95.4]),
        ("h200-deps", "", 0, [10.1, 28.4, 61.3]),
        ("cusync-mlp", "", 0, [10.0, 15.9, 21.7]),
        ("cusync-mlp-v100", "", 0, [9.1, 25.1, 32.1]),
        ("deepbench-gemm", "fp32", 0, [7.7, 18.2, 50.0]),
        ("deepbench-gemm", "fp32", 1, [9.9, 20.3, 52.4]),
        ("deepbench-gemm", "fp16", 0, [11.0, 27.0, 43.2]),
        ("deepbench-gemm", "fp16", 1, [12.3, 36.8, 50.8]),
        ("deepbench-rnn", "fp32", 0, [13.0, 29.4, 49.0]),
        ("deepbench-rnn", "fp16", 0, [23.2, 38.1, 144.4]),
    ],
)
def test_null_models_score_what_was_published_of_them(suite, picked, number, expected, monkeypatch):
    # the published figures are of DeepBench's times as they are, half a us is not added
    monkeypatch.setattr("workloads.validation.deepbench.TRUNCATED_US", 0.0)
    every = cases_of(SUITES[suite])[0]
    errors = null_errors(every, SUITES[suite].nulls(every)[number])
    chosen = [picked in (case.mode, case.group, "") for case in every]
    assert figures(errors[chosen]) == expected


def test_roofline_finds_the_constants_that_made_the_times():
    flops, nbytes = np.array([1e6, 1e9, 1e3, 5e9]), np.array([1e6, 1e3, 1e9, 1e6])
    times = 3 + np.maximum(flops / 20e6, nbytes / 2e6)
    constants, model = nulls.roofline(flops, nbytes, times)
    assert constants == (3, 20, 2)
    assert model == pytest.approx(times)


@pytest.mark.parametrize(
    ("suite", "constant", "off", "right", "count"),
    [
        ("h200-deps", "mode", 0.099, 0.63, 620),
        ("cusync-mlp", "", 0.066, 0.83, 46),
        ("cusync-mlp-v100", "", 0.043, 0.84, 44),
        ("cusync-conv", "", 0.086, 0.82, 108),
    ],
)
def test_one_constant_scores_what_was_published_of_it(suite, constant, off, right, count):
    every = cases_of(SUITES[suite])[0]
    measured = [case.measured_us for case in every]
    table = made(measured, measured, [case.group for case in every], [case.mode for case in every])
    table["kind"] = [case.kind for case in every]
    found = validation.ratios(table, SUITES[suite].base, SUITES[suite].compare)
    names = validation.words(table[found.rows], "mode") if constant else [""] * len(found.rows)
    guess = validation.constants(found.measured, names)
    assert round(np.abs(guess - found.measured).mean(), 3) == off
    if constant:
        big = np.abs(found.measured - 1) > 0.03
        sides = validation.sides(found.measured, guess, 1)[big]
    else:
        sides = found.measured > 0
    assert (round(sides.mean(), 2), len(sides)) == (right, count)
    if suite == "cusync-mlp":
        assert (found.measured < -validation.LOSS).sum() == 7
        listed = found.measured[table["kind"][found.rows] == b"tiles listed"]
        assert (len(listed), (listed < -validation.LOSS).sum()) == (30, 5)
        assert round(np.abs(listed - validation.middle(listed)).mean(), 3) == 0.067


# ------------------------------------------------------------------------------------------------- summaries


def test_errors_of_all_halves_and_kinds():
    found = validation.summary(np.array([0.1, -0.3, 0.2, 0.0, -0.1, 0.4, 0.05, 0.0, 0.1, 1.0, -0.05]))
    assert found["mean"] == pytest.approx(2.3 / 11)
    assert (found["median"], found["p90"], found["worst"]) == (0.1, 0.4, 1.0)
    assert found["bias"] == pytest.approx(1.4 / 11)


def test_what_could_not_be_simulated_counts_in_full():
    table = made([10, 10, 5, 20], [10, 0, 5, 19], ["a", "a", "b", "b"], ["s", "x", "s", "x"])
    text = validation.format_errors(table, [validation.Null("n", np.full(4, 10.0))])
    # 0, 100, 0 and 5 %
    assert re.search(r"all +4 +1 +26\.2% +2\.5%", text)
    assert "null model: n: mean 37.5%, p90 50.0%, worst 100.0% over 4 cases" in text
    found = validation.ratios(table, "s", "speedup")
    assert found.measured.tolist() == [1.0, 0.25]
    assert found.off.tolist() == pytest.approx([1.0, 5 / 19 - 0.25])
    assert validation.sides(found.measured, found.simulated, 1).tolist() == [False, True]


def test_speedups_and_gains_go_by_group():
    table = made([10, 8, 12, 30], [10, 5, 20, 31], ["a", "a", "a", "b"], ["s", "x", "y", "x"])
    found = validation.ratios(table, "s", "speedup")
    assert found.rows.tolist() == [1, 2]
    assert found.simulated.tolist() == [2.0, 0.5]
    gains = validation.ratios(table, "s", "gain")
    assert gains.measured.tolist() == pytest.approx([0.2, -0.2])
    assert gains.simulated.tolist() == pytest.approx([0.5, -1.0])
    text = validation.format_speedups(table, "s")
    assert re.search(r"all +2 +0\.542 +2 of 2 100%", text)
    assert re.search(r"all +2 +0\.550 +2 of 2 100% +1 of 1 100%", validation.format_gains(table, "s"))
    assert validation.format_gains(table[3:], "s").startswith("no gains")


def test_a_picture_also_where_nothing_was_simulated():
    pytest.importorskip("matplotlib")
    for simulated in ([10, 9], [0, 0]):
        image = stats.draw_scatter(made([10, 8], simulated, ["a", "a"], ["s", "x"]), "t")
        assert image[:4] == b"\x89PNG"


# ----------------------------------------------------------------------------------------------- bad tables

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
    from pysim.cli import script

    for name in ("pysim/_core.so", "pysim/engine/run.py", "workloads/mirrored/code.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1", encoding="utf-8")
    monkeypatch.setattr(script, "_ROOT", tmp_path)
    seen = set()
    for name in (None, "pysim/_core.so", "pysim/engine/run.py", "workloads/mirrored/code.py"):
        if name:
            (tmp_path / name).write_text("2", encoding="utf-8")
        script.code_digest.cache_clear()
        seen.add(script.code_digest())
    script.code_digest.cache_clear()
    assert len(seen) == 4


def test_the_digests_read_the_sources_of_this_tree(monkeypatch):
    from pysim.cli import script

    read = []
    whole = script.Path.read_bytes
    monkeypatch.setattr(script.Path, "read_bytes", lambda path: read.append(path) or whole(path))
    for digest in (script.source_digest, script.code_digest):
        digest.cache_clear()
        digest()
    names = {path.relative_to(script._ROOT).as_posix() for path in read}
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


def test_the_script_on_a_table_of_two_rows(tmp_path, tiny):
    args = ("--suite", "h200-kernels", "--measured", str(tiny), "--threads", "2")
    done = run(tmp_path, *args, "--json")
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
    assert "null model: roofline" in done.stderr
    assert len(list(tmp_path.glob("results/validate-*.h5"))) == 1
    assert len(list(tmp_path.glob("results/validate-*.png"))) == 1

    kept = run(tmp_path, *args, "--json")
    assert (kept.returncode, kept.stdout) == (0, done.stdout)
    assert "2 of 2 simulations kept" in kept.stderr
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
        (("--suite", "h200-kernels", "--schemes", "graph"), 2, "the suite says what is run"),
        (("--suite", "h200-kernels", "--measured", "none.csv"), 1, "none.csv: cannot be read"),
        (("--suite", "h200-kernels", "--subset", "some"), 2, "unknown value 'some'"),
    ],
)
def test_the_script_refuses_in_one_line(tmp_path, args, status, message):
    refused(run(tmp_path, *args), message, status)


def test_ctrl_c_ends_in_one_line_and_keeps_what_was_done(tmp_path):
    started = subprocess.Popen(
        [sys.executable, str(CONFIGS / "validate.py"), "--suite", "deepbench-rnn", "--threads", "2"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
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
