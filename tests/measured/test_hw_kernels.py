"""Templates of the measured kernels against the counters of the profiler, instruction by instruction."""

import csv
from statistics import mean

import pytest

from pysim import simulate
from pysim.errors import WorkloadError
from pysim.workloads.mirrored import job_of, launch_of
from pysim.workloads.mirrored.code import COUNTERS, SECTORS, Warp
from pysim.workloads.mirrored.compare import errors, measured, simulated
from tests.support.measured import measured_table
from tests.support.thin import thin

ROWS = measured()
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


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['kernel']}:{r['params']}")
def test_wavefronts_and_sectors_of_l1_are_near(row):
    counts = launch_of(row["kernel"], row["params"]).counts
    found = errors(row, {c: counts[c] for c in ("wavefronts", *SECTORS)})
    # the profiler counts some wavefronts of shared memory twice under load
    assert abs(found.pop("wavefronts")) < 0.08
    assert all(abs(error) < 0.03 for error in found.values()), found


NEAR = (
    ("vecadd", "n=405504"),
    ("strided_copy", "n=262144;stride=2"),
    ("transpose_tiled", "rows=1024;cols=1024"),
)
NEAR += ("row_softmax", "rows=512;cols=1024"), ("gru_cell", "hidden=1792;batch=64")
NEAR += ("hgemm_64x64x32", "M=128;N=3072;K=768"), ("layernorm", "rows=1100;cols=1024")
# TBs that read the same at about the same time, on some of the SMs and on all: four SMs of a GPC ask once
NEAR += ("sgemm_64x64x16", "M=64;N=7168;K=1792"), ("sgemm_32x32x32", "M=32;N=4608;K=1536")
NEAR += ("layernorm", "rows=512;cols=1024"), ("layernorm", "rows=1024;cols=1600")


@pytest.mark.parametrize(("kernel", "params"), thin(NEAR, 2))
def test_l2_and_dram_are_near(kernel, params):
    row = next(r for r in ROWS if (r["kernel"], r["params"]) == (kernel, params))
    found = errors(row, simulated(row))
    # TBs of 32 rows drift apart here, so that fewer of their loads join
    assert abs(found["l2_sectors"]) < (0.07 if kernel.startswith("sgemm_32") else 0.03)
    assert abs(found["dram_read_bytes"]) < 0.05


def _written():
    """Sectors that each row writes to L2, over launches (h200_sectors.csv): the least and the most."""
    found = {}
    with measured_table("h200_sectors.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["kernel"], row["params"]), []).append(int(row["write_sectors"]))
    return {key: (min(each), max(each)) for key, each in found.items()}


WRITTEN = _written()


@pytest.mark.parametrize(
    ("kernel", "params"),
    thin([near for near in NEAR if not near[0].startswith(("sgemm_64", "sgemm_128"))], 2),
)
def test_as_much_is_written_to_l2(kernel, params):
    """Stores of fp32 products of 64 x 64 and 128 x 128 join otherwise than there, and are left out."""
    l2 = simulate("h200", job_of(kernel, params), "stream").frame("l2")
    least, most = WRITTEN[kernel, params]
    assert 0.975 * least <= int(l2["sectors_written"].sum()) <= 1.025 * most


def test_bad_input_is_named():
    with pytest.raises(WorkloadError, match="no measured kernel 'vecsub'"):
        job_of("vecsub", "n=4")
    with pytest.raises(WorkloadError, match="vecadd: m = 4"):
        job_of("vecadd", "m=4")
    with pytest.raises(WorkloadError, match="vecadd: n = 0"):
        job_of("vecadd", "n=0")


AGAIN = measured_table("h200_counters_again.csv")


# lines that are asked for piece by piece by one warp after the other, and in one go
@pytest.mark.parametrize(
    ("kernel", "params", "within"),
    thin(
        [
            ("conv3x3_direct", "N=64;C=8;H=W=28;K=16", 0.005),
            ("sgemm_32x32x32", "M=32;N=4608;K=1536", 0.005),
            ("layernorm", "rows=1100;cols=1024", 0.005),
            ("gemv", "rows=10000;cols=1600", 0.03),
        ],
        2,
    ),
)
def test_sms_ask_for_the_sectors_that_l1_does_not_have(kernel, params, within):
    row = next(r for r in ROWS if (r["kernel"], r["params"]) == (kernel, params))
    with AGAIN.open(encoding="utf-8", newline="") as file:
        hits = mean(int(r["l1_hit_sectors"]) for r in csv.DictReader(file) if r["id"] == row["id"])
    asked = int(simulate("h200", job_of(kernel, params), "stream").frame("sm")["load_sectors"].sum())
    assert asked == pytest.approx(int(row["l1_load_sectors"]) - hits, rel=within)


def test_lds_rz_shares_no_run_with_what_is_waited_for():
    for made in ({"waves": 5, "smem": 1}, {"waves": 4, "s2r": 1}, {"waves": 3, "back": 0}):
        with pytest.raises(WorkloadError, match="LDS RZ beside what is waited for"):
            Warp().mix(3, void=3, **made)
