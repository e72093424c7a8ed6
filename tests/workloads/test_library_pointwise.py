"""PyTorch's memory-bound kernels: launches of all measured rows, traffic, what is refused, a few times."""

import numpy as np
import pytest

from pysim import Job, Memory, simulate
from pysim.errors import WorkloadError
from pysim.machine.system import resolve
from pysim.program.warp_program import OP
from pysim.workloads.library.captured import captured
from pysim.workloads.library.memory import memory_bound
from pysim.workloads.library.memory.memory_bound import OPERATIONS, launch
from pysim.workloads.library.memory.pointwise_gather import drawn, gather_shape
from pysim.workloads.library.memory.pointwise_reduce import reduction
from pysim.workloads.validation.pointwise import NAMES, POINTWISE
from pysim.workloads.validation.suites import cases_of
from pysim.workloads.validation.table import packaged, rows_of

ROWS = rows_of(POINTWISE.file, packaged(POINTWISE.file), (*POINTWISE.columns, "launches"))
MANY_INDICES = 256  # above, the kernel of a gather is slow to make: its rule is asked alone


def product(text):
    return int(np.prod([int(n) for n in text.split("x")]))


def granules(registers):
    return -(-registers // 8)


def measured(row):
    """Return (TBs, threads, granules of registers, shared memory) of the launches of a row, sorted."""
    found = [text.split("|") for text in row.text("launches").split(";")]
    return sorted(
        (product(grid), product(block), granules(int(registers)), int(smem))
        for _, grid, block, registers, smem in (one for one in found if len(one) > 1)
    )


def launched(op, rows, cols, dtype):
    kernels = [k for k in launch(op, rows, cols, dtype, Memory()).kernels if k.name != "memset"]
    return sorted(
        (k.tbs, k.program.warps * 32, granules(k.program.registers), k.program.smem) for k in kernels
    )


@pytest.mark.parametrize("op", sorted({row.text("op") for row in ROWS}))
def test_launches_are_those_of_every_measured_row(op):
    checked = 0
    for row in (row for row in ROWS if row.text("op") == op):
        rows, cols, dtype = int(row.amount("rows")), int(row.amount("cols")), row.text("dtype")
        if (op == "transpose_copy" and rows == 1) or op == "copy":
            continue  # no kernel, or one that the profiler does not name
        if op == "embedding" and rows > MANY_INDICES:
            assert [(*gather_shape(rows, cols, 4 if dtype == "fp32" else 2), 4, 0)] == measured(row)
        else:
            assert launched(NAMES.get(op, op), rows, cols, dtype) == measured(row), (op, rows, dtype)
        checked += 1
    assert checked == {"copy": 0, "transpose_copy": 28}.get(op, 30)


def traffic(op, rows, dtype):
    """Return bytes that the SMs load and store in one call; caches of SMs are empty before it."""
    kernels = launch(op, rows, 1024, dtype, Memory()).kernels
    made = simulate(
        resolve("h200"), Job(op, captured(kernels)), "graph", threads=1, tables="kernels", baseline=False
    )
    table = made.tables()["kernels"]
    return [(int(row["load_bytes"]), int(row["store_bytes"])) for row in table]


@pytest.mark.parametrize(
    ("op", "dtype", "per_element"),
    [
        ("add", "fp32", [(8, 4)]),
        ("gelu_erf_backward", "bf16", [(4, 2)]),
        ("softmax_backward", "fp32", [(8, 4), (8, 4)]),
        ("dropout", "bf16", [(2, 3)]),
        ("cast_to_fp16", "fp32", [(4, 2)]),
        ("cast_to_fp32", "bf16", [(2, 4)]),
    ],
)
def test_each_byte_moves_once(op, dtype, per_element):
    elements = 64 * 1024
    assert traffic(op, 64, dtype) == [(loads * elements, stores * elements) for loads, stores in per_element]


def test_traffic_is_that_of_the_counters():
    """Sectors read and written by SMs: h200_library_pointwise_sectors.csv, cold, 2^16 elements."""
    for op, dtype, index, sectors, off in (
        ("embedding", "fp32", 0, 16433, 0.01),
        ("layer_norm_backward", "fp32", 1, 17184, 0.03),
        ("sum_all", "fp32", 0, 8193, 0.01),
        ("transpose_copy", "fp32", 0, 23328, 0.06),
        ("adamw", "fp32", 0, 57345, 0.01),
    ):
        assert sum(traffic(op, 64, dtype)[index]) / 32 == pytest.approx(sectors, rel=off), op


def test_tbs_that_share_a_sum_wait_for_each_other():
    kernel = launch("sum_all", 256, 1024, "fp32").kernels[-1]
    assert kernel.grid == (1, 32, 1)
    assert kernel.tb_semaphores.tolist() == [31]
    assert kernel.tb_edges.shape == (31, 2)
    assert set(kernel.tb_edges[:, 0]) == {31}


def test_inputs_of_a_sum_are_loaded_once_whatever_the_size():
    """528 TBs do not share 2^23 elements evenly: some have one load more."""
    for rows in (1, 4, 100, 8192):
        plan = reduction(1, rows * 1024, 4, True)
        kernel = launch("sum_all", rows, 1024, "fp32").kernels[-1]
        loads = 0
        for row, tbs in zip(*np.unique(kernel.program.tb_rows, return_counts=True), strict=True):
            ops, iterations = kernel.program.op_lists(int(row))[0], 1
            count = 0
            for op in reversed(ops):
                iterations = op.count if op.kind == OP["LOOP"] else iterations
                mine = op.kind == OP["LOAD"] and op.patterns[0].arg == 0
                count += iterations * sum(p.lanes.bit_count() for p in _all(op, kernel)) if mine else 0
            loads += count * int(tbs)
        assert loads == rows * 1024 // plan.vector, rows


def _all(op, kernel):
    return op.patterns * (kernel.program.warps if len(op.patterns) == 1 else 1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: launch("mod", 1, 4, "fp32", m), "op = 'mod'"),
        (lambda m: launch("add", 1, 4, "fp64", m), "dtype = 'fp64'"),
        (lambda m: launch("softmax", 4, 4096, "fp32", m), "rows of 4096: at most 2048"),
        (lambda m: launch("softmax_backward", 4, 2048, "fp32", m), "rows of 2048: at most 1024"),
        (lambda m: launch("layer_norm", 4, 1023, "fp32", m), "multiple of 4"),
        (lambda m: launch("cast_to_fp16", 4, 64, "fp16", m), "another type"),
        (lambda m: launch("copy", 1 << 18, 1024, "fp32", m), "another path"),
        (lambda m: launch("transpose_copy", 300, 64, "fp32", m), "300 rows"),
        (lambda m: memory_bound.gelu(m, m.tensor("a", 1, 8, 4), "sigmoid"), "sigmoid"),
        (lambda m: memory_bound.embedding(m, m.tensor("t", 9, 64, 4), np.array([9])), "index 9"),
        (lambda m: memory_bound.add(m, m.tensor("a", 1, 8, 4), m.tensor("b", 1, 9, 4)), "must be equal"),
    ],
)
def test_what_is_not_known_is_refused(call, words):
    with pytest.raises(WorkloadError, match=words):
        call(Memory())


@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_every_operation_runs_at_sizes_that_fill_no_tb(op):
    """The oracle checks that no TB accesses what its footprint does not name."""
    rows, cols = (64, 64) if "transpose" in op else (5, 160)
    source = "bf16" if op.endswith("fp32") else "fp32"
    kernels = launch(op, rows, cols, source, Memory()).kernels
    made = simulate(
        "h200", Job(op, captured(kernels)), "graph", threads=1, overrides={"sim.oracle": 1}, baseline=False
    )
    assert made.time_us("graph") > 1.0


def test_indices_repeat_between_calls():
    assert (drawn(100, 50257) == drawn(100, 50257)).all()
    assert len(set(drawn(100, 50257))) > 90


@pytest.mark.parametrize(
    "case",
    [
        "fp32 add 1024x1024",
        "bf16 layernorm 256x1024",
        "fp32 sum_columns 256x1024",
        "bf16 adamw_fused_step 64x1024",
    ],
)
def test_times_are_those_measured(case):
    known = {each.case: each for each in cases_of(POINTWISE)[0]}[case]
    made = POINTWISE.run(resolve("h200"), *known.task)
    assert made.cycles["warm"] / known.measured_cycles == pytest.approx(1, abs=0.12)


NARROW = [("sum_columns", 1024, 64), ("sum_columns", 1000, 100), ("sum_rows", 3, 16)]


@pytest.mark.parametrize("shape", NARROW)
def test_sums_without_a_template_are_refused(shape):
    """Lanes of narrow blocks belong to two rows; TBs of 50 columns would load across fours."""
    op, rows, cols = shape
    with pytest.raises(WorkloadError, match="no template for blocks"):
        launch(op, rows, cols, "fp32", Memory())
