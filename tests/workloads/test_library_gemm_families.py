"""GEMMs of every kernel family of cuBLAS on an H200: work is conserved, times are near measured ones."""

import csv
from pathlib import Path

import numpy as np
import pytest

from pysim import Job, Memory, WorkloadError
from pysim.errors import ConfigError
from pysim.machine.system import resolve
from pysim.program.warp_program import OP, PIPE
from pysim.workloads.library.choices.choice import Problem
from pysim.workloads.library.gemms.launches import Launch, gemm, launches_of
from pysim.workloads.validation.cases import tables_of, with_choice
from pysim.workloads.validation.suites import SUITES, cases_of

SGEMM = (
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute"
)
TENSOR = "cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align4"
XMMA = "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x128x32_warpgroupsize1x1x1_execute_segment_k_off"
# m, n, k, layout, type, launch, measured us and MHz (h200_library_gemm.csv)
ROWS = {
    "ffma, parts added by tiles": (
        (1536, 128, 512, "TN", "fp32"), Launch(SGEMM, (2, 24, 5), 5, "kernel", 128, 13056), 11.773, 1972,
    ),
    "mma": ((1536, 128, 512, "TN", "tf32"), Launch(TENSOR, (16, 3, 1), 1, "", 90, 98304), 7.012, 1828),
    "wgmma": ((3072, 256, 768, "TN", "tf32"), Launch(XMMA, (24, 4, 1), 1, "", 168, 231424), 8.534, 1842),
    "columns": (
        (3840, 8, 1280, "TN", "fp32"), Launch("gemmSN_TN_kernel", (480, 1, 1), 1, "", 96, 13824),
        13.263, 1967,
    ),
    "large k, by atomics": (
        (12288, 8, 1536, "TN", "fp32"), Launch("sgemm_largek_lds64", (192, 1, 4), 1, "serial", 40, 4868),
        46.002, 1965,
    ),
}  # fmt: skip


def _kernels(sizes, launch):
    m, n, k, layout, dtype = sizes
    return launches_of(launch, Problem(m, n, k, layout[0], layout[1], dtype), Memory())


def _executed(kernel, pipe):
    """Instructions on a pipe of all warps of a kernel, loops unrolled."""
    program = kernel.program
    rows = np.zeros(kernel.tbs, int) if program.tb_rows is None else program.tb_rows
    total = 0
    for row, count in zip(*np.unique(rows, return_counts=True), strict=True):
        for ops in program.op_lists(int(row)):
            times, weight = [1] * len(ops), 0
            for at, op in enumerate(ops):
                if op.kind == OP["LOOP"]:
                    times[op.target : at] = [each * op.count for each in times[op.target : at]]
            weight = sum(op.pipes[PIPE[pipe]] * each for op, each in zip(ops, times, strict=True))
            total += weight * int(count)
    return total


def test_ffma_gemms_multiply_all_tiles_once():
    sizes, launch, _, _ = ROWS["ffma, parts added by tiles"]
    kernels, c = _kernels(sizes, launch)
    m, n, k = sizes[:3]
    # 64 x 64 tiles divide C; five parts of 104 of k, the last of 96
    made = _executed(kernels[0], "fp32") * 32
    epilogue = m * n * 5
    assert made - epilogue == m * n * k
    assert (c.rows, c.cols, c.item) == (n, m, 4)
    assert [kernel.name for kernel in kernels] == ["staged_64x64x8_3", "tile_sum"]


def test_mma_gemms_multiply_all_tiles_once():
    sizes, launch, _, _ = ROWS["mma"]
    kernels, _ = _kernels(sizes, launch)
    m, n, k = sizes[:3]
    assert _executed(kernels[0], "tensor") * 16 * 8 * 8 == m * n * k


@pytest.mark.parametrize("row", ROWS)
def test_footprints_hold_every_element_once(row):
    sizes, launch, _, _ = ROWS[row]
    kernels, _ = _kernels(sizes, launch)
    for access in kernels[-1].accesses:
        if access.mode == "write":
            sides = access.regions(np.arange(kernels[-1].tbs))
            area = (sides[:, 1] - sides[:, 0]) * (sides[:, 3] - sides[:, 2])
            assert area.sum() == access.tensor.rows * access.tensor.cols


@pytest.mark.parametrize("row", ROWS)
def test_times_are_near_the_measured_ones(row):
    sizes, launch, measured, clock = ROWS[row]
    kernels, _ = _kernels(sizes, launch)
    config = resolve("h200")
    config = config.replaced(
        {"gpu.clock_tensor": 1.0, "sim.clock_share": min(1.0, clock / config.number("gpu.clock"))}
    )
    ends = tables_of(config, Job("gemm", list(kernels) * 2), "graph")["kernels"]["complete_us"]
    assert ends[-1] - ends[-1 - len(kernels)] == pytest.approx(measured, rel=0.15)


def test_odd_sizes_and_all_types_have_kernels():
    for dtype in ("fp16", "bf16", "tf32", "fp32"):
        for m, n, k in ((129, 65, 33), (1024, 1, 256), (512, 512, 512)):
            kernels, c = gemm(m, n, k, memory=Memory(), trans_a="T", dtype=dtype)
            assert kernels
            assert c.rows * c.cols == m * n


def test_what_has_no_template_is_refused():
    with pytest.raises(WorkloadError, match=r"^library GEMM: no template for kernel volta_sgemm$"):
        launches_of(
            Launch("volta_sgemm", (1, 1, 1), 1, "", 32, 0), Problem(8, 8, 8, "N", "N", "fp32"), Memory()
        )
    with pytest.raises(WorkloadError, match="4 parts of k need a reduction, it is none"):
        _kernels(ROWS["mma"][0], Launch(TENSOR, (16, 3, 4), 4, "", 90, 98304))


def test_only_suites_with_a_choice_take_one():
    suite = SUITES["h200-library-gemm"]
    cases, _, _ = cases_of(suite)
    assert {case.task[-1] for case in with_choice(suite, cases, "predicted")} == {"predicted"}
    with pytest.raises(ConfigError, match="choice guessed: choices are told, predicted"):
        with_choice(suite, cases, "guessed")
    plain = SUITES["h200-kernels"]
    with pytest.raises(ConfigError, match=r"^suite h200-kernels: choice told: it has no choice of kernels$"):
        with_choice(plain, [], "told")


def test_short_rows_are_loaded_one_element_after_another():
    """A lane of ``gemvx`` takes 16 neighbours of 512: slower than 1,024 (measured: 4.0 and 2.6 us)."""
    launch = Launch("gemvx", (256, 1, 1), 1, "", 159, 528)
    times = []
    for k in (512, 1024):
        kernels, _ = _kernels((1024, 1, k, "TN", "fp32"), launch)
        ends = tables_of(resolve("h200"), Job("gemm", list(kernels) * 2), "graph")["kernels"]["complete_us"]
        times.append(ends[1] - ends[0])
    assert times[0] > 1.3 * times[1]


def test_c_of_one_row_is_n_by_m():
    for m, n in ((1, 1000), (1000, 1)):
        _, c = gemm(m, n, 4097, memory=Memory(), trans_a="T", dtype="fp32")
        assert (c.rows, c.cols) == (n, m)


@pytest.mark.parametrize("sizes", [(256, 128, 512), (1024, 8, 256)])
def test_operands_of_another_memory_are_refused(sizes):
    m, n, k = sizes
    other = Memory()
    operands = other.tensor("a", m, k, 4), other.tensor("b", n, k, 4)
    with pytest.raises(WorkloadError, match=r"^library GEMM: operand A is of another Memory"):
        gemm(m, n, k, memory=Memory(), trans_a="T", dtype="fp32", operands=operands)
    kernels, _ = gemm(m, n, k, memory=other, trans_a="T", dtype="fp32", operands=operands)
    assert kernels[-1].args[0] is operands[0] or kernels[0].args[0] is operands[0]


def test_gemvx_loads_a_word_a_lane_from_32_sectors_where_rows_are_short():
    table = Path(__file__).parents[1] / "hw/library/h200_library_column_counters.csv"
    with table.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kernel"] == "gemvx" and row["trans"] == "TN"]
    found = {
        int(row["k"]): int(row["l1_load_sectors"]) / int(row["global_loads"])
        for row in rows
        if row["n"] == "1"
    }
    assert (found[256], found[512]) == (32, 32)
    assert found[4096] == found[16384] == 4
