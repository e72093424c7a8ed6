"""Tiled GEMM C[M, N] = A[M, K] B[K, N] as vendor libraries write it for Volta.

All tensors are row-major; cuBLAS is column-major and computes C^T, so its M is our N (:func:`column_major`).
The grid's x runs over tiles of N (cuBLAS's M tiles), y over tiles of M, z over parts of K; with
``column_raster`` x and y are swapped (``raster``).

The program is double-buffered in shared memory: the next tile is loaded from global memory to registers
(plain LDG, through L1: Volta has no asynchronous copy) while the present one is computed, then it is stored
to shared memory, one barrier a k-step. Edge tiles load and store exactly what exists (masked lanes) but
compute the whole tile in M and N, as SASS kernels do; the K remainder is computed exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import Affine, Code, Pattern, Program, TensorTile

from .raster import swap_xy_ops, swap_xy_variant
from .split_k_serial import FIRST_Z, LAST_X, LAST_Y, LAST_Z, epilogue_rounds, serial_epilogue, serial_program
from .tiles import WARP, Tile, blocks_of, emit_loads, tile_ops, vector_width
from .tiling import FFMA_LATENCY, HMMA_LATENCY, INTS_A_STEP, LDS_LATENCY, Tiling, step_work

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_STEPS = 65535
GROUPS = 8  # a warp loads the fragments of an eighth of a k-step at once (CUTLASS: 1 of 8, HMMA.884 4 of 32)
Loads = list[tuple[Pattern, ...]]


@dataclass(frozen=True, slots=True)
class Case:
    """What the program depends on: the tiling, sizes in elements, bytes an element and storage orders."""

    tiling: Tiling
    m: int
    n: int
    k: int
    item: int
    c_item: int
    a_t: bool
    b_t: bool
    beta: bool
    batch: int = 1
    beside: tuple[bool, bool, bool] = (False, False, False)  # of A, B, C: matrices side by side, not stacked
    times: int = 1  # A has so many times K columns: the first are read, all are waited for

    def operands(self) -> tuple[Tile, Tile, Tile]:
        """Tiles of A, B and C as their tensors are stored."""
        t, item, chunk = self.tiling, self.item, self.tiling.chunk(self.k)
        a_pitch = (self.m if self.a_t else self.k * self.times) * item
        b_pitch = (self.k if self.b_t else self.n) * item
        if self.a_t:
            a = Tile(0, a_pitch, item, t.tk, t.tm, by=t.tm * item, bz=chunk * a_pitch, step=t.tk * a_pitch)
        else:
            a = Tile(0, a_pitch, item, t.tm, t.tk, by=t.tm * a_pitch, bz=chunk * item, step=t.tk * item)
        if self.b_t:
            b = Tile(1, b_pitch, item, t.tn, t.tk, bx=t.tn * b_pitch, bz=chunk * item, step=t.tk * item)
        else:
            b = Tile(1, b_pitch, item, t.tk, t.tn, bx=t.tn * item, bz=chunk * b_pitch, step=t.tk * b_pitch)
        c_pitch = self.n * self.c_item
        c = Tile(2, c_pitch, self.c_item, t.tm, t.tn, bx=t.tn * self.c_item, by=t.tm * c_pitch)
        return (a, b, c) if self.batch == 1 else self._many()

    def _many(self) -> tuple[Tile, Tile, Tile]:
        """Tiles of a batch, where z is the GEMM."""
        t, made = self.tiling, []
        shapes = ((self.m, self.k), (self.n, self.k) if self.b_t else (self.k, self.n), (self.m, self.n))
        for (rows, cols), item, beside in zip(
            shapes, (self.item, self.item, self.c_item), self.beside, strict=True
        ):
            pitch = cols * item * (self.batch if beside else 1)
            made.append((pitch, item, cols * item if beside else rows * pitch))
        (ap, ai, az), (bp, bi, bz), (cp, ci, cz) = made
        a = Tile(0, ap, ai, t.tm, t.tk, by=t.tm * ap, bz=az, step=t.tk * ai)
        if self.b_t:
            b = Tile(1, bp, bi, t.tn, t.tk, bx=t.tn * bp, bz=bz, step=t.tk * bi)
        else:
            b = Tile(1, bp, bi, t.tk, t.tn, bx=t.tn * bi, bz=bz, step=t.tk * bp)
        return a, b, Tile(2, cp, ci, t.tm, t.tn, bx=t.tn * ci, by=t.tm * cp, bz=cz)

    def place(self, operand: int, row: Affine, col: Affine) -> tuple[Affine, Affine]:
        """Return where a part of an operand begins, with the offset of the GEMM in a batch."""
        if self.batch == 1:
            return row, col
        rows, cols = ((self.m, self.k), (self.n, self.k) if self.b_t else (self.k, self.n), (self.m, self.n))[
            operand
        ]
        if self.beside[operand]:
            return row, replace(col, bz=cols)
        return replace(row, bz=rows), col

    def parts(self, rows: int, cols: int, k: int, at: int) -> tuple[TensorTile, TensorTile]:
        """Return what is read of A and B for ``k`` of the tile, ``at`` k-steps from where the loop is."""
        t = self.tiling
        deep = Affine(base=at * t.tk, bz=t.chunk(self.k), step=t.tk)
        down, across = Affine(by=t.tm), Affine(bx=t.tn)
        if self.batch > 1:
            deep = replace(deep, bz=0)
            row, col = self.place(0, down, deep)
            a = TensorTile(0, row, rows, col, k)
            row, col = self.place(1, *((across, deep) if self.b_t else (deep, across)))
            return a, TensorTile(1, row, cols, col, k) if self.b_t else TensorTile(1, row, k, col, cols)
        apart = self.k if self.times > 1 else 0
        a = (
            TensorTile(0, deep, k, down, rows)
            if self.a_t
            else TensorTile(0, down, rows, deep, k, self.times, apart)
        )
        return a, TensorTile(1, across, cols, deep, k) if self.b_t else TensorTile(1, deep, k, across, cols)


def _shared_stores(case: Case, widths: tuple[int, int]) -> int:
    """Return the STS of a warp that move the tiles of A and B to shared memory."""
    transposed = case.item == 4 and (not case.a_t, case.b_t)
    sts = 0
    for index, (tile, width) in enumerate(zip(case.operands()[:2], widths, strict=True)):
        each = case.item if transposed and transposed[index] else width
        sts += -(-tile.rows * tile.cols * tile.item // (WARP * each * case.tiling.warps))
    return sts


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


def _stage(code: Code, tiling: Tiling, stores: tuple[int, int]) -> None:
    """Store the tile in flight to shared memory: ``stores`` are wavefronts and instructions of a warp."""
    code.wait(0)
    if tiling.stages == 1:
        code.barrier()  # all have read the only buffer
    code.compute(smem=stores[0], smem_ops=stores[1], chain=4)
    code.barrier()


def _multiply(
    code: Code,
    case: Case,
    k: int,
    ints: int = INTS_A_STEP,
    stores: tuple[int, int] = (0, 0),
    wait: int = LDS_LATENCY,
) -> None:
    """Multiply ``k`` of a tile, with stores to shared memory in between; ``wait``: for the fragments."""
    math = case.tiling.math
    work = step_work(case.tiling, k, case.item)
    pipes = {"fp32" if math == "ffma" else "tensor": work.math, "int": ints, "control": int(ints > 0)}
    code.compute(
        smem=work.wavefronts + stores[0],
        smem_ops=work.lds + stores[1],
        chain=wait + (FFMA_LATENCY if math == "ffma" else HMMA_LATENCY),
        conflicts=work.conflicts,
        **pipes,
    )


def _step(code: Code, case: Case, stores: tuple[int, int]) -> None:
    """Multiply a whole tile and store the next one, one after the other or among each other."""
    t = case.tiling
    if not t.overlap:
        _multiply(code, case, t.tk)
        _stage(code, t, stores)
        return
    last = t.tk // GROUPS
    _multiply(code, case, t.tk - 2 * last)
    code.wait(0)
    _multiply(code, case, last, 0, stores, 0)
    code.barrier()
    _multiply(code, case, last, 0, wait=0)


def valid_of(case: Case, number: int) -> tuple[int, int]:
    """Return how many rows and columns of a tile exist that is last in x and y as ``number`` says."""
    t = case.tiling
    gx, gy, _ = t.grid(case.m, case.n, case.k)
    rows = case.m - (gy - 1) * t.tm if number & LAST_Y else t.tm
    return rows, case.n - (gx - 1) * t.tn if number & LAST_X else t.tn


def _variant(case: Case, number: int) -> Code:
    """Ops of the TBs that are last in x, y, z as the bits of ``number`` say (``split_k_serial``)."""
    t = case.tiling
    gz = t.grid(case.m, case.n, case.k)[2]
    depth = case.k - (gz - 1) * t.chunk(case.k) if number & 4 or case.batch > 1 else t.chunk(case.k)
    code, valid = Code(), valid_of(case, number)
    main_loop(code, case, valid, 0, depth)
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
    moved = (t.tm + t.tn) * t.tk * case.item

    def fetch(k: int, at: int, level: int = 2, ahead: int = 0) -> None:
        valid_a = (k, rows) if case.a_t else (rows, k)
        valid_b = (cols, k) if case.b_t else (k, cols)
        parts = case.parts(*((t.tm, t.tn) if t.cutlass else (rows, cols)), k, first + at)
        both = [
            (part, tile_ops(tile, t.warps, width, valid, (first + at) * tile.step))
            for part, tile, width, valid in zip(parts, (a, b), widths, (valid_a, valid_b), strict=True)
        ]
        _load(code, both[::-1] if t.cutlass else both, together=not t.cutlass, level=level, ahead=ahead)

    stores = -(-moved // (128 * t.warps)), _shared_stores(case, widths)
    code.compute(int=40, control=2, chain=FFMA_LATENCY + t.fetch // 2)
    fetch(t.tk if steps else rest, 0)
    _stage(code, t, stores)
    if steps > 1:
        mark = code.loop_begin()
        fetch(t.tk, 0, level=0, ahead=1)
        _step(code, case, stores)
        code.loop_end(mark, steps - 1)
    if steps and rest:
        fetch(rest, steps)
    if steps:
        _multiply(code, case, t.tk)
    if rest:
        if steps:
            _stage(code, t, stores)
        _multiply(code, case, rest)


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
            warps=t.warps, registers=t.registers(case.item), smem=t.smem(case.item), args=3,
        )  # fmt: skip
    made = [tuple(_variant(case, number).ops) for number in range(8)]
    if t.column_raster and case.batch == 1:
        made = [swap_xy_ops(made[swap_xy_variant(number)]) for number in range(8)]
    variants = tuple(made)
    return Program(f"gemm_{t.name}", variants, t.warps, t.registers(case.item), t.smem(case.item), 3)


def column_major(m: int, n: int, k: int, a_t: bool, b_t: bool) -> tuple[int, int, int, bool, bool]:
    """Turn a cuBLAS (column-major) problem into ours: C^T = op(B)^T op(A)^T; returns m, n, k, a_t, b_t."""
    return n, m, k, b_t, a_t


def case_of(
    name: str, a: Tensor, b: Tensor, c: Tensor, tiling: Tiling, *, a_t: bool, b_t: bool, beta: float
) -> Case:
    """Return the case of a GEMM of tensors whose shapes and items must agree."""
    m, k = (a.cols, a.rows) if a_t else (a.rows, a.cols)
    kb, n = (b.cols, b.rows) if b_t else (b.rows, b.cols)
    times = k // kb if tiling.cutlass and not a_t and k % kb == 0 else 1
    k //= times
    if kb != k or (c.rows, c.cols) != (m, n):
        shapes = f"A is {m} x {k}, B is {kb} x {n}, C is {c.rows} x {c.cols}"
        raise WorkloadError(f"gemm {name}: {shapes}: shapes must agree")
    item = 4 if tiling.math == "ffma" else 2
    if a.item != item or b.item != item:
        raise WorkloadError(f"gemm {name}: {tiling.math} takes {item}-byte operands")
    return Case(tiling, m, n, k, a.item, c.item, a_t, b_t, beta != 0.0, times=times)


def gemm(
    name: str,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    tiling: Tiling,
    *,
    a_t: bool = False,
    b_t: bool = False,
    beta: float = 0.0,
    stream: int = 0,
) -> Kernel:
    """Make the kernel C = A B + beta C.

    ``a`` is [M, K] ([K, M] with ``a_t``), ``b`` is [K, N] ([N, K] with ``b_t``), ``c`` is [M, N].

    With ``split_k`` > 1 the TBs add to C, so C must hold beta C before (``copy.fill``); those
    of CUTLASS do so in turn. The A of a CUTLASS GEMM may have several times K columns: the first K are read,
    and a step waits for its columns in every K of them, as a gated unit in between would.
    """
    case = case_of(name, a, b, c, tiling, a_t=a_t, b_t=b_t, beta=beta)
    gx, gy, gz = tiling.grid(case.m, case.n, case.k)
    k = case.k
    chunk = tiling.chunk(k)
    xs, ys, zs = (lambda t: t % gx), (lambda t: t // gx % gy), (lambda t: t // (gx * gy))
    grid = (gx, gy, gz)
    if tiling.column_raster:
        xs, ys, grid = (lambda t: t // gy % gx), (lambda t: t % gy), (gy, gx, gz)
    a_reads = blocks_of(a, (chunk, tiling.tm), zs, ys) if a_t else blocks_of(a, (tiling.tm, chunk), ys, zs)
    b_reads = blocks_of(b, (tiling.tn, chunk), xs, zs) if b_t else blocks_of(b, (chunk, tiling.tn), zs, xs)
    c_tiles = blocks_of(c, (tiling.tm, tiling.tn), ys, xs)
    update = tiling.split_k > 1
    mode: Mode = "update" if update else "write"
    accesses = [Access(a, "read", a_reads), Access(b, "read", b_reads), Access(c, mode, c_tiles)]
    if case.beta and not update:
        accesses.append(Access(c, "read", c_tiles))
    return Kernel(name, program_of(case), grid, (a, b, c), tuple(accesses), stream)
