"""Small kernels with one known bottleneck each: for tests, calibration and the accuracy pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Code, Pattern, Program

from .tiles import WARP

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_LOOP = 65535


def _kernel(
    name: str, code: Code, tbs: int, warps: int, registers: int, smem: int, stream: int = 0
) -> Kernel:
    program = Program(name, (tuple(code.ops),), warps, registers, smem, 0)
    return Kernel(name, program, (tbs, 1, 1), (), (), stream)


def empty(tbs: int = 1, warps: int = 1, registers: int = 16, smem: int = 0) -> Kernel:
    """Make a kernel whose warps exit at once."""
    code = Code()
    code.exit()
    return _kernel("empty", code, tbs, warps, registers, smem)


def _pipe_loop(
    name: str, pipe: str, count: int, iterations: int, chain: int, shape: tuple[int, int, int]
) -> Kernel:
    if count < 1 or iterations < 1:
        raise WorkloadError(f"{name}: count = {count}, iterations = {iterations}: must be positive")
    code = Code()
    mark = code.loop_begin()
    code.compute(chain=chain, **{pipe: count})
    if iterations > 1:
        code.loop_end(mark, iterations)
    code.exit()
    tbs, warps, registers = shape
    return _kernel(name, code, tbs, warps, registers, 0)


def ffma(tbs: int = 80, warps: int = 8, count: int = 64, iterations: int = 256, chain: int = 4) -> Kernel:
    """Make a loop of ``count`` independent FFMA a warp; ``chain`` cycles pass after each round."""
    return _pipe_loop("ffma", "fp32", count, iterations, chain, (tbs, warps, 64))


def tensor(tbs: int = 80, warps: int = 8, count: int = 64, iterations: int = 256, chain: int = 10) -> Kernel:
    """Make a loop of ``count`` tensor instructions of the GPU's own shape a warp (``Kernel.tensor``)."""
    return _pipe_loop("tensor", "tensor", count, iterations, chain, (tbs, warps, 128))


def read(
    memory: Memory,
    tbs: int = 320,
    warps: int = 8,
    chunk: int = 1 << 18,
    *,
    unroll: int = 4,
    passes: int = 1,
    shared: bool = False,
    bypass_l1: bool = False,
    registers: int = 32,
    stream: int = 0,
) -> Kernel:
    """Make a streaming read: each TB reads a contiguous ``chunk`` (bytes) ``passes`` times, 16 B a lane.

    With ``shared`` all TBs read the same chunk. Each warp has ``unroll`` loads of 512 B in flight.
    """
    per_round = warps * WARP * 16 * unroll
    if chunk <= 0 or chunk % per_round or chunk // per_round > MAX_LOOP:
        raise WorkloadError(f"read: chunk = {chunk} B: must be 1 to {MAX_LOOP} times {per_round}")
    source = memory.tensor("source", 1 if shared else tbs, chunk // 4, 4)
    code = Code()
    code.compute(int=12)
    mark = code.loop_begin()
    for i in range(unroll):
        where = Pattern(
            0, 16, base=i * warps * 512, bx=0 if shared else chunk, warp=512, step=per_round, s0=16
        )
        code.load(0, where, bypass_l1=bypass_l1)
    code.wait(0)
    code.compute(int=4 * unroll + 2, control=1)
    if chunk > per_round:
        code.loop_end(mark, chunk // per_round)
    if passes > 1:
        code.loop_end(mark, passes, level=1)
    code.exit()

    def regions(t: NDArray[np.int64]) -> NDArray[np.int64]:
        row = np.zeros_like(t) if shared else np.asarray(t, np.int64)
        return np.stack([row, row + 1, np.zeros_like(row), np.full_like(row, source.cols)], axis=1)

    program = Program("read", (tuple(code.ops),), warps, registers, 0, 1)
    return Kernel("read", program, (tbs, 1, 1), (source,), (Access(source, "read", regions),), stream)


def columns(
    memory: Memory, rows: int = 16384, cols: int = 1024, lead: int = 4096, warps: int = 8, *, stream: int = 0
) -> Kernel:
    """Read ``cols`` columns of a row-major fp32 matrix, 32 columns after another, each from top to bottom.

    A warp reads 128 B of four rows; from a row to the next are ``lead`` elements. Where that is a power of
    two, all that is read at one time differs in high address bits only.
    """
    per_tb = 4 * warps
    if not 1 <= warps <= 32 or rows < 1 or rows % per_tb:
        raise WorkloadError(f"columns: rows = {rows}, warps = {warps}: rows must be a multiple of {per_tb}")
    if cols < WARP or cols % WARP or not cols <= lead <= 1 << 30 or rows * lead > 1 << 36:
        raise WorkloadError(
            f"columns: cols = {cols}, lead = {lead}: cols must be a multiple of {WARP}, lead at least that"
            " and rows x lead at most 2^36"
        )
    source = memory.tensor("matrix", rows, lead, 4)
    code = Code()
    code.compute(int=12)
    for i in range(4):
        row = lead * 4
        code.load(0, Pattern(0, 4, base=i * row, bx=per_tb * row, by=128, warp=4 * row, s0=4))
    code.wait(0)
    code.compute(fp32=4)
    code.exit()
    blocks = rows // per_tb

    def regions(t: NDArray[np.int64]) -> NDArray[np.int64]:
        first, left = t % blocks * per_tb, t // blocks * WARP
        return np.stack([first, first + per_tb, left, left + WARP], axis=1)

    program = Program("columns", (tuple(code.ops),), warps, 32, 0, 1)
    grid = (blocks, cols // WARP, 1)
    return Kernel("columns", program, grid, (source,), (Access(source, "read", regions),), stream)


def chase(
    memory: Memory, footprint: int = 1 << 20, stride: int = 128, passes: int = 2, *, bypass_l1: bool = False
) -> Kernel:
    """Make a pointer chase: one lane, dependent 4-byte loads ``stride`` bytes apart over ``footprint`` bytes.

    The walk is two nested loops (a counter ends at 65535), so steps are cut into equal rows of the
    largest divisor that fits.
    """
    if stride < 4 or stride % 4 or footprint < stride:
        raise WorkloadError(f"chase: stride = {stride} B: must be a multiple of 4 and at most the footprint")
    steps = footprint // stride
    inner = next((d for d in range(min(steps, MAX_LOOP), 0, -1) if steps % d == 0), 1)
    outer = steps // inner
    if outer > MAX_LOOP or passes > MAX_LOOP:
        raise WorkloadError(f"chase: {steps} steps, {passes} passes: the loops are too long")
    ring = memory.tensor("ring", steps, stride // 4, 4)
    code = Code()
    mark = code.loop_begin()
    code.load(0, Pattern(0, 4, step=stride, step2=inner * stride, level2=1, lanes=1), bypass_l1=bypass_l1)
    code.wait(0)
    for level, count in enumerate((inner, outer, passes)):
        if count > 1:
            code.loop_end(mark, count, level=level)
    code.exit()

    def regions(t: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.tile(np.array([[0, steps, 0, 1]], np.int64), (len(t), 1))

    program = Program("chase", (tuple(code.ops),), 1, 16, 0, 1)
    return Kernel("chase", program, (1, 1, 1), (ring,), (Access(ring, "read", regions),))


def mixed(tbs: int = 80, iterations: int = 256, chunk: int = 1 << 17) -> Job:
    """Run an FFMA kernel and a reading kernel side by side on two streams."""
    reader = read(Memory(), tbs, 4, chunk, stream=1)
    return Job("mixed", (ffma(tbs, 4, 64, iterations), reader))
