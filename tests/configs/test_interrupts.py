"""Scripts that Ctrl-C or SIGTERM ends: what has finished is kept."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pysim import stats
from pysim.workloads import make
from tests.support.calls import CONFIGS, caller, hear_ctrl_c

GRU = CONFIGS / "titanv_gru.py"
run = caller("titanv_gru")
SMALL = ("--hidden", "256", "--batch", "8", "--timesteps", "2", "--layers", "1")


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("number", "after", "status", "word"),
    [
        (signal.SIGINT, "graph: simulating", 130, "interrupted"),
        (signal.SIGTERM, "graph: simulating", 143, "terminated"),
    ],
)
def test_a_signal_during_set_up_leaves_nothing(
    tmp_path: Path, number: signal.Signals, after: str, status: int, word: str
) -> None:
    options = ("--schemes", "graph,stream", "--layers", "1", "--timesteps", "8", "--threads", "1")
    found, out, err = signalled(tmp_path, number, after, GRU, *options)
    assert (found, out, err.splitlines()[-1]) == (status, "", word)
    assert not files(tmp_path)


def signalled(
    folder: Path, number: signal.Signals, after: str, *words: object
) -> tuple[int | None, str, str]:
    """Run a script, send it a signal once stderr has a line with ``after``; return status and outputs."""
    started = subprocess.Popen(
        [sys.executable, *map(str, words)],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c,
    )  # fmt: skip
    assert started.stderr is not None
    while after not in started.stderr.readline():
        assert started.poll() is None
    time.sleep(0.05)
    started.send_signal(number)
    out, err = started.communicate(timeout=60)
    assert "Traceback" not in err
    return started.returncode, out, err


def test_ctrl_c_keeps_the_schemes_that_have_finished(tmp_path: Path) -> None:
    size = ("--layers", "1", "--timesteps", "8", "--threads", "1", "--out", "a.h5")
    options = (*size, "--schemes", "graph,stream,pool")
    # graph's rows are in the tables when the next scheme begins, on a slow machine not yet when it is done
    status, out, err = signalled(tmp_path, signal.SIGINT, "stream: simulating", GRU, *options)
    assert (status, err.splitlines()[-1]) == (130, "interrupted")
    assert out.splitlines()[-1] == "wrote a.h5, a.json"
    runs = stats.load(tmp_path / "a.h5").array("runs")
    assert runs["scheme"].tolist() == [b"graph", b"stream", b"pool"]
    assert runs["status"].tolist() == [b"ok", b"interrupted", b"interrupted"]
    assert runs["time_us"][0] > 0
    # the whole run takes its place without --force
    small = (*SMALL, "--out", "b.h5", "--schemes", "stream", "--tables", "none", "--quiet")
    assert run(tmp_path, *small).returncode == 0
    made = stats.load(tmp_path / "b.h5")
    tables = {name: made.array(name) for name in made}
    tables["runs"]["time_us"] += 1
    stats.write(tmp_path / "b.h5", tables, {"interrupted": "yes"}, made.configuration, True)
    assert run(tmp_path, *small).returncode == 0
    assert stats.load(tmp_path / "b.h5").array("runs")["time_us"] == tables["runs"]["time_us"] - 1


def test_ctrl_c_keeps_the_finished_runs_of_a_script_that_makes_many(tmp_path: Path) -> None:
    names = ("lud:n=64", "gru:hidden=1024,timesteps=8,layers=1")
    tbs = sum(kernel.tbs for kernel in make(names[1], "h200").kernels)
    options = ("--schemes", "graph", "--out", "a.h5", "--threads", "1")
    # the second workload's first scheme has begun
    status, out, err = signalled(
        tmp_path, signal.SIGINT, f"graph: simulating {tbs:,} ", CONFIGS / "gap_table.py", *names, *options
    )
    assert (status, out, err.splitlines()[-1]) == (130, "", "interrupted")
    runs = stats.load(tmp_path / "a.h5").array("runs")
    assert runs["status"].tolist() == [b"ok", b"ok", b"ok", b"interrupted"]
    assert runs["run"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("script", "after", "options"),
    [
        ("microbench", "grid1_block32", ("--only", "^stream_kernel_period_us.empty.grid1_|^l2_read_GBps")),
        ("accelsim_rows", "vecadd", ("--inputs", "vecadd,sgemm", "--repeats", "40")),
    ],
)
def test_ctrl_c_keeps_the_rows_that_have_finished(
    tmp_path: Path, script: str, after: str, options: tuple[str, ...]
) -> None:
    # with --json the lines of the rows go to stderr
    words = (CONFIGS / f"{script}.py", *options, "--json", "--out", "a.h5")
    status, out, err = signalled(tmp_path, signal.SIGINT, after, *words)
    assert (status, out) == (130, "")
    assert err.splitlines()[-2:] == ["wrote a.h5: the runs that have finished", "interrupted"]
    assert files(tmp_path) == ["a.h5", "a.json"]
    made = stats.load(tmp_path / "a.h5")
    rows = made.array("validation")
    assert len(rows)
    assert after.encode() in rows["case"][0]
    assert made.attributes[stats.INTERRUPTED] == "yes"
    assert (rows["simulated"] > 0).all()
