"""The script that runs every scheme on a workload, and its picture."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from pysim import stats
from pysim.schemes.registry import SCHEMES
from tests.support.calls import CONFIGS, call, caller

run = caller("compare_schemes", "--threads", "1", "--quiet")
WORKLOAD = "gru:hidden=64,batch=4,timesteps=2,layers=2"


def test_every_scheme_is_a_row(tmp_path):
    pytest.importorskip("matplotlib")
    done = run(tmp_path, WORKLOAD, "--out", "c.h5", "--picture", "yes")
    assert done.returncode == 0, done.stderr
    runs = stats.load(tmp_path / "c.h5")["runs"]
    assert runs["scheme"].tolist() == list(SCHEMES)
    good = runs[runs["status"] == "ok"]
    assert len(good) >= len(SCHEMES) - 1
    assert (good["time_us"] >= good["bound_us"]).all()
    assert good["tbs"].nunique() <= 2  # cusync has gate kernels
    for name in SCHEMES:
        assert f"\n{name} " in done.stdout
    heads = next(line for line in done.stdout.splitlines() if line.startswith("scheme "))
    for head in ("time", "speedup", "ALU", "SM idle", "DRAM MB", "L2 MB", "energy mJ", "table KB"):
        assert f"  {head}  " in f"{heads}  "
    for column in ("energy_j", "alu_utilization", "sm_idle", "dram_bytes", "l2_bytes"):
        assert np.isfinite(good[column]).all()
        assert (good[column] > 0).all()
    assert (good["table_bytes"] > 0)[good["scheme"].isin(["pool", "tb_static", "tb_bloom"])].all()
    # no cell of the table is without a number
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if "x  " in line)
    assert set(rows) == set(good["scheme"])
    assert not any(" - " in row for row in rows.values())
    assert "no energy table" not in done.stdout
    assert "\ntb_learned  edges learned: 10 of 12 launches served" in done.stdout
    assert "\ntb_bloom    edges by hints: " in done.stdout
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_a_device_without_an_energy_table_says_so(tmp_path):
    done = run(
        tmp_path, WORKLOAD, "--gpu", "v100", "--schemes", "graph,tb_bloom,tb_bloom:exact", "--out", "c.h5"
    )
    assert done.returncode == 0, done.stderr
    assert "energy mJ" not in done.stdout
    assert done.stdout.count("\nenergy    left out: there is no energy table for v100\n") == 1
    tables = stats.load(tmp_path / "c.h5")
    time = tables["runs"].set_index("scheme")["time_us"]
    lost = 1 - time["tb_bloom:exact"] / time["tb_bloom"]
    line = next(
        line for line in done.stdout.splitlines() if line.startswith("tb_bloom   ") and "edges" in line
    )
    row = tables["bloom"].iloc[0]
    assert f"edges by hints: {row['edges']:.0f}, {row['false_edges']:.0f} of them from false" in line
    assert f"; speedup lost to them {100 * lost:.1f} % of " in line


def test_json_on_stdout_may_go_to_the_name_of_the_configuration(tmp_path):
    words = ("empty", "--schemes", "stream", "--json", "--quiet", "--out", "x.h5")
    for _ in range(2):
        with (tmp_path / "x.json").open("w") as out:
            done = subprocess.run(
                [sys.executable, str(CONFIGS / "compare_schemes.py"), *words],
                cwd=tmp_path, stdout=out, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
            )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert "runs" in json.loads((tmp_path / "x.json").read_text())
        known = json.loads((tmp_path / "x.config.json").read_text())
        assert known == stats.load(tmp_path / "x.h5").configuration


def test_no_such_workload_is_one_line(tmp_path):
    done = run(tmp_path, "gro")
    assert done.returncode == 2
    assert done.stderr == "error: no workload 'gro': did you mean gru?\n"
    assert not list(tmp_path.iterdir())


def test_an_option_is_guessed_only_if_one_is_near(tmp_path):
    done = run(tmp_path, "--workload", "gru")
    assert (done.returncode, done.stderr) == (2, "error: unknown option --workload\n")
    assert (
        run(tmp_path, "--sceme", "graph").stderr == "error: unknown option --sceme: did you mean --schemes?\n"
    )


def test_json_alone_on_stdout(tmp_path):
    done = run(tmp_path, WORKLOAD, "--schemes", "graph,pool", "--tables", "none", "--json", "--out", "c.h5")
    assert done.returncode == 0, done.stderr
    assert [row["scheme"] for row in json.loads(done.stdout)["runs"]] == ["graph", "pool"]


def test_the_l1_policy_is_printed_above_the_rows_and_kept(tmp_path):
    schemes = "stream,graph:argument,pool,tb_ideal,tb_ideal:bypass,tb_static:prologue,cusync"
    done = run(
        tmp_path, WORKLOAD, "--gpu", "titan_v", "--hypothetical", "--schemes", schemes, "--out", "c.h5"
    )
    assert done.returncode == 0, done.stderr
    line = (
        "\ncoherence kernel: stream; argument: graph:argument, pool, tb_ideal;"
        " bypass: tb_ideal:bypass, tb_static:prologue, cusync\n"
    )
    assert line in done.stdout[: done.stdout.index("\nscheme ")]
    runs = stats.load(tmp_path / "c.h5")["runs"]
    argument, bypass = ["argument"] * 3, ["bypass"] * 3
    assert runs["coherence"].tolist() == ["kernel", *argument, *bypass]
    done = run(tmp_path, WORKLOAD, "--gpu", "titan_v", "--schemes", "pool", "--set", "scheme.coherence=tb")
    assert "\ncoherence tb: pool\n" in done.stdout


def test_a_job_for_another_gpu_is_reported_once(tmp_path):
    """Of a script of one's own, whose job was made without the GPU; not with the GPU of a workload's name."""
    script = tmp_path / "own.py"
    text = (CONFIGS / "compare_schemes.py").read_text(encoding="utf-8")
    assert ", script.config)" in text
    script.write_text(text.replace(", script.config)", ")"), encoding="utf-8")
    words = ("gemm:m=128,n=128,k=128,dtype=fp16", "--gpu", "a100", "--schemes", "stream,graph", "--quiet")
    done = call(tmp_path, script, *words)
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("gemm:m=128,n=128,k=128: kernel gemm: written for HMMA.884, sm_80 has mma.")
    same = run(tmp_path, *words, "--force")
    assert (same.returncode, same.stderr) == (0, "")
