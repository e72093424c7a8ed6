"""Tiled GEMM C[M, N] = A[M, K] B[K, N] as vendor libraries write it for Volta.

All tensors are row-major; cuBLAS is column-major and computes C^T, so its M is our N (:func:`.column_major`).
The grid's x runs over tiles of N (cuBLAS's M tiles), y over tiles of M, z over parts of K; with
``column_raster`` x and y are swapped (``raster``).

The program is double-buffered in shared memory: the next tile is loaded from global memory to registers
(plain LDG, through L1: Volta has no asynchronous copy) while the present one is computed, then it is stored
to shared memory, one barrier a k-step. Edge tiles load and store exactly what exists (masked lanes) but
compute the whole tile in M and N, as SASS kernels do; the K remainder is computed exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Tensor
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import Affine, Code, Program, TensorTile

from . import gemm_case
from .gemm_case import Loads, agreed
from .raster import swap_xy_ops, swap_xy_variant
from .split_k_serial import FIRST_Z, LAST_Z, epilogue_rounds, serial_epilogue, serial_program
from .tiles import WARP, emit_loads, tile_ops, vector_width
from .tiling import FFMA_LATENCY, HMMA_LATENCY, INTS_A_STEP, LDS_LATENCY, Tiling, step_work

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_STEPS = 65535
GROUPS = 8  # a warp loads the fragments of an eighth of a k-step at once (CUTLASS: 1 of 8, HMMA.884 4 of 32)


PIPES = {"ffma": "fp32", "hfma2": "fp16", "hmma": "tensor"}
ITEMS = {"ffma": (4, 2), "hfma2": (2,), "hmma": (2,)}  # bytes an element of the operands


@dataclass(frozen=True, slots=True)
class Case(gemm_case.Case):
    """A GEMM of Volta's kind: loads go through registers, one step ahead."""

    tiling: Tiling


Stores = tuple[int, int, int]  # wavefronts, STS and conversions of a warp that bring a tile to shared memory


def shared_stores(case: Case, widths: tuple[int, int]) -> Stores:
    """Return what a warp does to move the tiles of A and B from registers to shared memory.

    Where fp16 is multiplied as fp32, each value is converted first: an instruction of the sfu pipe, whose
    rate conversions have.
    """
    t = case.tiling
    moved = (t.tm + t.tn) * t.tk * t.held(case.item)
    held = t.held(case.item)
    transposed = case.tiling.math == "ffma" and (not case.a_t, case.b_t)
    sts = 0
    for index, (tile, width) in enumerate(zip(case.operands()[:2], widths, strict=True)):
        each = held if transposed and transposed[index] else min(16, width * held // case.item)
        sts += -(-tile.rows * tile.cols * held // (WARP * each * t.warps))
    converted = -(-moved // (held * WARP * t.warps)) if held != case.item else 0
    return -(-moved // (128 * t.warps)), sts, converted


def _load(
    code: Code, both: Sequence[tuple[TensorTile, Loads]], *, together: bool, level: int, ahead: int
) -> None:
    """Add the loads of a step; their semaphore waits come before all of them ``together``, or before each."""
    code.mark_loads()
    if together:
        for part, _ in both:
            code.mark_input(part, level=level, ahead=ahead)
    for part, ops in both:
        if not together:
            code.mark_input(part, level=level, ahead=ahead)
        emit_loads(code, 0, ops, level=level, ahead=ahead)


def stage(code: Code, tiling: Tiling, stores: Stores) -> None:
    """Store the tile in flight to shared memory."""
    code.wait(0)
    if tiling.stages == 1:
        code.barrier()  # all have read the only buffer
    code.compute(smem=stores[0], smem_ops=stores[1], sfu=stores[2], chain=4)
    code.barrier()


def multiply(
    code: Code,
    case: Case,
    k: int,
    ints: int = INTS_A_STEP,
    stores: Stores = (0, 0, 0),
    wait: int = LDS_LATENCY,
) -> None:
    """Multiply ``k`` of a tile, with stores to shared memory in between; ``wait``: for the fragments."""
    math = case.tiling.math
    work = step_work(case.tiling, k, case.item)
    pipes = {PIPES[math]: work.math, "int": ints, "control": int(ints > 0), "sfu": stores[2]}
    code.compute(
        smem=work.wavefronts + stores[0],
        smem_ops=work.lds + stores[1],
        chain=wait + (HMMA_LATENCY if math == "hmma" else FFMA_LATENCY),
        conflicts=work.conflicts,
        **pipes,
    )


def step(code: Code, case: Case, stores: Stores) -> None:
    """Multiply a whole tile and store the next one, one after the other or among each other."""
    t = case.tiling
    if not t.overlap:
        multiply(code, case, t.tk)
        stage(code, t, stores)
        return
    last = t.tk // GROUPS
    multiply(code, case, t.tk - 2 * last)
    code.wait(0)
    multiply(code, case, last, 0, stores, 0)
    code.barrier()
    multiply(code, case, last, 0, wait=0)


def _variant(case: Case, number: int) -> Code:
    """Ops of the TBs that are last in x, y, z as the bits of ``number`` say (``split_k_serial``)."""
    t, code, valid = case.tiling, Code(), case.valid(number)
    main_loop(code, case, valid, 0, case.depth(number, LAST_Z))
    code.mark_main_loop_end()
    if t.fetch:
        code.compute(int=8, chain=t.fetch - t.fetch // 2)
    epilogue(code, case, valid, number)
    code.exit()
    return code


def main_loop(code: Code, case: Case, valid: tuple[int, int], first: int, depth: int) -> None:
    """Multiply ``depth`` of K of a tile from step ``first`` on; ``valid`` rows and columns of C exist."""
    t, (rows, cols) = case.tiling, valid
    steps, rest = divmod(depth, t.tk)
    if steps > MAX_STEPS:
        raise WorkloadError(f"gemm {t.name}: {steps} k-steps a TB: at most {MAX_STEPS}; raise split_k or tk")
    a, b, _ = case.operands()
    widths = vector_width(a, t.warps), vector_width(b, t.warps)

    def fetch(k: int, at: int, level: int = 2, ahead: int = 0) -> None:
        valid_a = (k, rows) if case.a_t else (rows, k)
        valid_b = (cols, k) if case.b_t else (k, cols)
        parts = case.parts(*((t.tm, t.tn) if t.cutlass else (rows, cols)), k, first + at)
        both = [
            (part, tile_ops(tile, t.warps, width, valid, (first + at) * tile.step))
            for part, tile, width, valid in zip(parts, (a, b), widths, (valid_a, valid_b), strict=True)
        ]
        _load(code, both[::-1] if t.cutlass else both, together=not t.cutlass, level=level, ahead=ahead)

    stores = shared_stores(case, widths)
    code.compute(int=40, control=2, chain=FFMA_LATENCY + t.fetch // 2)
    fetch(t.tk if steps else rest, 0)
    stage(code, t, stores)
    if steps > 1:
        mark = code.loop_begin()
        fetch(t.tk, 0, level=0, ahead=1)
        step(code, case, stores)
        code.loop_end(mark, steps - 1)
    if steps and rest:
        fetch(rest, steps)
    if steps:
        multiply(code, case, t.tk)
    if rest:
        if steps:
            stage(code, t, stores)
        multiply(code, case, rest)


def add_slices(code: Code, t: Tiling) -> None:
    """Add the sums of the groups of warps through shared memory."""
    if t.slices > 1:
        code.barrier()
        waves = (t.slices - 1) * (t.tm * t.tn // (WARP * t.warps))
        code.compute(smem=waves, smem_ops=-(-waves // 4), int=8, chain=LDS_LATENCY)
        code.barrier()
        code.compute(smem=waves, smem_ops=-(-waves // 4), int=8, fp32=waves, chain=LDS_LATENCY)


def epilogue(code: Code, case: Case, valid: tuple[int, int], number: int, *, added: bool = False) -> None:
    """Add the slices' sums (if not ``added``), scale, read C where beta is not 0, and store or update it."""
    t, c = case.tiling, case.operands()[2]
    mine = t.tm * t.tn // (WARP * t.warps)
    if not added:
        add_slices(code, t)
    update = t.split_k > 1 and not t.cutlass
    if case.bias and (not t.cutlass or t.split_k == 1 or number & LAST_Z):
        _add_bias(code, case, valid[1], mine)
    # RED.ADD.F32 has no vector form on Volta
    width = vector_width(c, t.warps, 4 if update else 16)
    ops = tile_ops(c, t.warps, width, valid)
    if t.passes > 1:
        _rounds(code, case, ops, update)
    elif case.beta and not update:
        emit_loads(code, 1, ops)
        code.compute(fp32=mine, int=len(ops), chain=FFMA_LATENCY)
        code.wait(1)
    rounds = epilogue_rounds(ops, t.warp_tile[0]) if t.cutlass else [ops]

    def scale(at: int) -> None:
        if t.cutlass:
            code.barrier()
            code.compute(smem=2 * mine // len(rounds), smem_ops=mine // len(rounds), chain=LDS_LATENCY)
            code.barrier()
        code.compute(fp32=mine // len(rounds), int=16 + len(rounds[at]), control=2, chain=FFMA_LATENCY)

    if t.passes > 1:
        pass  # C has left already
    elif update:
        scale(0)
        for patterns in ops:
            code.reduce(2, *patterns, level=2)
    else:
        serial_epilogue(code, 1, rounds, number if t.cutlass and t.split_k > 1 else FIRST_Z | LAST_Z, scale)
    row, col = case.place(2, Affine(by=t.tm), Affine(bx=t.tn))
    if not t.cutlass:
        code.mark_output(TensorTile(2, row, valid[0], col, valid[1]), level=2)
    elif t.split_k == 1 or number & LAST_Z:
        code.mark_output(TensorTile(2, row, t.tm, col, t.tn), level=2)


def _add_bias(code: Code, case: Case, cols: int, mine: int) -> None:
    """Load the bias of the TB's ``cols`` columns and add it to the ``mine`` sums of a thread."""
    bias = case.bias_tile()
    ops = tile_ops(bias, case.tiling.warps, vector_width(bias, case.tiling.warps), (1, cols))
    emit_loads(code, 1, ops)
    code.wait(1)
    code.compute(fp32=mine, int=len(ops), chain=FFMA_LATENCY)


def _rounds(code: Code, case: Case, ops: Loads, update: bool) -> None:
    """Write C in ``passes`` rounds, each through shared memory; where C is read each waits for its part."""
    t = case.tiling
    mine = t.tm * t.tn // (WARP * t.warps)
    each = max(1, -(-len(ops) // t.passes))
    for first in range(0, len(ops), each):
        part = ops[first : first + each]
        share = -(-mine * len(part) // len(ops))
        read = case.beta and not update
        if read:
            emit_loads(code, 1, part)
            code.compute(fp32=share, int=len(part), chain=FFMA_LATENCY)
        # each value is written and read once, 4 B a lane
        code.compute(smem=2 * share, smem_ops=share + -(-share // 4), int=4, chain=LDS_LATENCY)
        if read:
            code.wait(1)
        code.compute(fp32=share, int=16 + len(part), control=2, chain=FFMA_LATENCY)
        for patterns in part:
            if update:
                code.reduce(2, *patterns, level=2)
            else:
                code.store(2, *patterns, level=2)


@lru_cache(maxsize=4096)
def program_of(case: Case) -> Program | RecordedProgram:
    """Build a program once: launches of one shape share it."""
    t = case.tiling
    if t.cutlass and t.split_k > 1:
        return serial_program(
            f"gemm_{t.name}", t.grid(case.m, case.n, case.k), partial(_variant, case),
            warps=t.warps, registers=t.registers(case.item), smem=t.smem(case.item), args=case.args,
        )  # fmt: skip
    made = [tuple(_variant(case, number).ops) for number in range(8)]
    if t.column_raster and not case.places:
        made = [swap_xy_ops(made[swap_xy_variant(number)]) for number in range(8)]
    variants = tuple(made)
    return Program(f"gemm_{t.name}", variants, t.warps, t.registers(case.item), t.smem(case.item), case.args)


def case_of(
    name: str,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    tiling: Tiling,
    *,
    a_t: bool,
    b_t: bool,
    beta: float,
    bias: bool = False,
) -> Case:
    """Return the case of a GEMM of tensors whose shapes and items must agree."""
    m, n, k, times = agreed(name, a, b, c, a_t=a_t, b_t=b_t, wide=tiling.cutlass)
    case = Case(tiling, m, n, k, a.item, c.item, a_t, b_t, beta != 0.0, times=times, bias=bias)
    check(name, case, (a, b, c))
    return case


def check(name: str, case: Case, tensors: tuple[Tensor, Tensor, Tensor]) -> None:
    """Raise WorkloadError where the operands are of no type that the tiling's instruction takes."""
    items = ITEMS[case.tiling.math]
    if any(tensor.item not in items or tensor.item != case.item for tensor in tensors[:2]):
        words = " or ".join(str(item) for item in items)
        raise WorkloadError(f"gemm {name}: {case.tiling.math} takes operands of {words} B an element")


def volta_gemm(
    name: str,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    tiling: Tiling,
    *,
    a_t: bool = False,
    b_t: bool = False,
    beta: float = 0.0,
    bias: Tensor | None = None,
    stream: int = 0,
) -> Kernel:
    """Make the kernel C = A B + beta C + bias (``gemm.gemm``).

    With ``split_k`` > 1 the TBs add to C, so C must hold beta C and the bias before (``copy.fill``); those
    of CUTLASS do so in turn. The A of a CUTLASS GEMM may have several times K columns: the first K are read,
    and a step waits for its columns in every K of them, as a gated unit in between would.
    """
    case = case_of(name, a, b, c, tiling, a_t=a_t, b_t=b_t, beta=beta, bias=bias is not None)
    if bias is not None and tiling.split_k > 1 and not tiling.cutlass:
        raise WorkloadError(f"gemm {name}: parts of a split K add to C in any order: it must hold the bias")
    gx, gy, gz = tiling.grid(case.m, case.n, case.k)
    xs, ys, grid = (lambda t: t % gx), (lambda t: t // gx % gy), (gx, gy, gz)
    if tiling.column_raster:
        xs, ys, grid = (lambda t: t // gy % gx), (lambda t: t % gy), (gy, gx, gz)
    accesses = case.accesses(a, b, c, xs, ys, lambda t: t // (gx * gy))
    more = () if bias is None else (bias,)
    return Kernel(
        name,
        program_of(case),
        grid,
        (a, b, c, *more),
        (*accesses, *(case.bias_access(each, xs, lambda t: t // (gx * gy)) for each in more)),
        stream,
        library=tiling.library,
        tensor=tiling.tensor,
    )
