"""Templates of the measured kernels against the counters of the profiler, instruction by instruction."""

import csv
from pathlib import Path

import pytest

from pysim import simulate
from pysim.errors import WorkloadError
from workloads.hw import TEMPLATES, job_of, launch_of
from workloads.hw.code import COUNTERS

MEASURED = Path(__file__).resolve().parents[1] / "workloads" / "measured" / "h200_counters.csv"
ROWS = [
    r for r in csv.DictReader(MEASURED.read_text(encoding="utf-8").splitlines()) if r["kernel"] in TEMPLATES
]
# wavefronts depend on how lanes meet in banks, and the profiler counts some twice
EXACT = [c for c in COUNTERS if c != "wavefronts"]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['kernel']}:{r['params']}")
def test_instructions_a_pipe_are_those_of_the_profiler(row):
    counts = launch_of(row["kernel"], row["params"]).counts
    assert {c: counts[c] for c in EXACT} == {c: int(row[c]) for c in EXACT}


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['kernel']}:{r['params']}")
def test_launch_shape_is_the_measured_one(row):
    kernel = job_of(row["kernel"], row["params"]).kernels[0]
    program = kernel.program
    made = (kernel.tbs, program.warps, program.registers, program.smem)
    assert made == tuple(int(row[c]) for c in ("tbs", "warps", "registers", "smem"))


def _small():
    """The smallest measured size of each kernel."""
    least = {}
    for row in ROWS:
        if row["kernel"] not in least or int(row["inst"]) < int(least[row["kernel"]]["inst"]):
            least[row["kernel"]] = row
    return list(least.values())


@pytest.mark.parametrize("row", _small(), ids=lambda r: r["kernel"])
def test_core_executes_the_counted_instructions(row):
    result = simulate("titan_v", job_of(row["kernel"], row["params"]), "stream", overrides={"sim.oracle": 1})
    assert int(result.frame("kernels")["warp_instructions"].sum()) == int(row["inst"])


def test_bad_input_is_named():
    with pytest.raises(WorkloadError, match="no measured kernel 'vecsub'"):
        job_of("vecsub", "n=4")
    with pytest.raises(WorkloadError, match="vecadd: m = 4"):
        job_of("vecadd", "m=4")
    with pytest.raises(WorkloadError, match="vecadd: n = 0"):
        job_of("vecadd", "n=0")
