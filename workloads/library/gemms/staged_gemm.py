"""GEMMs of a library with kernels written for Turing and Ampere: FFMA or mma, tiles in shared memory.

C[m, n] = A[m, k] B[k, n] in BLAS terms: C is contiguous in m. A TB makes a tile of C, or a part of it where k
is split. ``xmma``: tiles are dispatched along n first; ``rows``: along m; CUTLASS's along m, up to 8 tiles of
each n, and some TBs find no tile. The main loop is that of ``staged_loop``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import MMA_16816, Access, Kernel, Memory, Mode, Tensor
from pysim.program.warp_program import Code
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.cutlass import copy_width
from pysim.workloads.kernels.split_k_serial import FIRST_Z, LAST_X, LAST_Y, LAST_Z
from pysim.workloads.kernels.tiles import Tile, tile_ops
from pysim.workloads.library.choices.cutlass import swizzled

from .operands import checked_operands
from .staged_loop import Cost, async_loop, atomic_epilogue, epilogue, register_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.recorded_program import RecordedProgram
    from pysim.program.warp_program import Op, Pattern

    from .staged_loop import Accesses
    from .staged_tile import StagedTile

    Ints = NDArray[np.int64]

Order = Literal["xmma", "cutlass", "rows"]
Reduction = Literal["", "serial", "kernel", "atomic"]
VECTOR = 16  # bytes of shared memory that a lane fills
LEAST_COPY = 4  # bytes of the shortest cp.async
K_ALIGN = 16  # bytes: parts of a split k begin at multiples
NO_TILE = 16  # kind of a TB beside those of split_k_serial
FFMA = Cost(begin=1500, copy=2, step=12, late=130, end=200)
# CUTLASS's FFMA kernels copy 4 B at a time, each with an address of its own, and zeros where no element is.
# Fitted to 11 recurrent GEMMs of 4 tiles (half `fit`); on 13 rows of cuBLAS that took no part 6.9 % off, for
# 13.8 % with the cost of `xmma`
SIMT = Cost(begin=1500, copy=16, step=50, late=0, end=1000)
MMA = Cost(begin=1300, copy=5, step=12, late=0, end=200)


class Place(NamedTuple):
    """How x, y and z of the grid move a TB: in tiles of m, in tiles of n, in parts of k."""

    m: tuple[int, int, int]
    n: tuple[int, int, int]
    part: tuple[int, int, int]

    def of(self, tbs: Ints, grid: tuple[int, int, int]) -> tuple[Ints, Ints, Ints]:
        """Return the tile in m and in n, and the part, of each TB."""
        gx, gy, _ = grid
        at = tbs % gx, tbs // gx % gy, tbs // (gx * gy)

        def moved(by: tuple[int, int, int]) -> Ints:
            return by[0] * at[0] + by[1] * at[1] + by[2] * at[2]

        return moved(self.m), moved(self.n), moved(self.part)


@dataclass(frozen=True, slots=True)
class StagedGemm:
    """A GEMM and the kernel that computes it.

    ``copy``: bytes of a copy of A or B at most, as the kernel's name says. ``split_k``: parts of k;
    ``reduction``: a second ``kernel`` takes them (``parts``: bytes of an element of theirs), or TBs add them,
    one after another (``serial``) or by reductions in L2 (``atomic``). ``out``: bytes of an element of C.
    ``trans_a``: A is contiguous in k, else in m; ``trans_b``: B is contiguous in n, else in k. ``pitches``:
    bytes from one row of A and of B to the next; 0: its length. Rows that begin closer overlap, as what the
    pixels of a convolution read does; the tensor of such an operand is one row. ``moves``: bytes from a part
    of k to the next, of A, B and C, where parts are products of their own (images of a batch, frequencies);
    all three are one row then, and a pitch of 0 is that of a part. ``pitch_c``: bytes from one row of C to
    the next; 0: its length. ``apart``: elements from one of a row of C to the next. ``batch``: products of as
    many A and B, one below the other, which z of the grid counts (``xmma`` with one part of k). ``biased``:
    with a bias.
    """

    m: int
    n: int
    k: int
    tile: StagedTile
    order: Order
    copy: int
    split_k: int = 1
    reduction: Reduction = ""
    parts: int = 4
    out: int = 4
    trans_a: bool = True
    trans_b: bool = False
    pitches: tuple[int, int] = (0, 0)
    moves: tuple[int, int, int] | None = None
    pitch_c: int = 0
    apart: int = 1
    batch: int = 1
    biased: bool = False

    @property
    def tiles(self) -> tuple[int, int]:
        """Tiles in m and in n."""
        return -(-self.m // self.tile.tm), -(-self.n // self.tile.tn)

    @property
    def chunk(self) -> int:
        """K of a part."""
        whole = K_ALIGN // self.tile.item
        if self.moves:
            return self.k // self.split_k
        return -(-self.k // (self.split_k * whole)) * whole if self.split_k > 1 else self.k

    @property
    def layout(self) -> tuple[tuple[int, int, int], Place]:
        """The grid, and what of C and k its TBs make.

        CUTLASS's parts of k: the order of tiles within a part is that of m.
        """
        tiles_m, tiles_n = self.tiles
        if self.order == "xmma":
            return (tiles_n, tiles_m, self.split_k * self.batch), Place((0, 1, 0), (1, 0, 0), (0, 0, 1))
        if self.order == "rows":
            return (tiles_m, tiles_n, self.split_k), Place((1, 0, 0), (0, 1, 0), (0, 0, 1))
        across, groups = swizzled(tiles_m, tiles_n)
        width = across // tiles_n
        if self.split_k == 1:
            return (width, tiles_n, groups), Place((1, 0, width), (0, 1, 0), (0, 0, 0))
        return (width * groups, tiles_n, self.split_k), Place((1, 0, 0), (0, 1, 0), (0, 0, 1))

    @property
    def adds_bias(self) -> bool:
        """Whether TBs add the bias; a kernel that adds parts of k does it else."""
        return self.biased and self.reduction != "kernel"

    @property
    def stored(self) -> int:
        """Bytes of an element that TBs store."""
        return self.parts if self.reduction == "kernel" else self.out

    @property
    def spacing(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Bytes from a row to the next, and from a part of k to the next, of A, B and C."""
        rows, moves = [], []
        deep = self.chunk if self.moves else self.k
        for arg, (size, along_k) in enumerate(((self.m, self.trans_a), (self.n, not self.trans_b))):
            pitch = self.pitches[arg] or (deep if along_k else size) * self.tile.item
            rows.append(pitch)
            plane = size * self.k * self.tile.item
            moves.append(plane if self.batch > 1 else self.chunk * (self.tile.item if along_k else pitch))
        pitch = self.pitch_c or self.m * self.stored
        moves.append(self.n * pitch if self.reduction == "kernel" or self.batch > 1 else 0)
        return (rows[0], rows[1], pitch), self.moves or (moves[0], moves[1], moves[2])

    def kinds(self, tbs: Ints) -> Ints:
        """Return the kind of each TB: at which edges it is, or that it has no tile."""
        grid, place = self.layout
        m, n, part = place.of(tbs, grid)
        tiles_m, tiles_n = self.tiles
        part = part if self.batch == 1 else np.zeros_like(part)
        last = -(-self.k // self.chunk) - 1
        kinds = LAST_X * (m == tiles_m - 1) + LAST_Y * (n == tiles_n - 1)
        kinds = kinds + LAST_Z * (part >= last) + FIRST_Z * (part == 0)
        return np.where((m < tiles_m) & (part <= last), kinds, NO_TILE)


def _moved(tile: Tile, place: Place, m: int, n: int, part: int) -> Tile:
    """Return a tile that a tile of m, of n and a part of k move by so many bytes."""
    bx, by, bz = (place.m[i] * m + place.n[i] * n + place.part[i] * part for i in range(3))
    return replace(tile, bx=bx, by=by, bz=bz)


def _operands(gemm: StagedGemm) -> tuple[Tile, Tile, Tile]:
    """Return the tiles of A, B and C in memory."""
    t, item = gemm.tile, gemm.tile.item
    _, place = gemm.layout
    made = []
    pitches, parts = gemm.spacing
    for arg, rows, along_k in ((0, t.tm, gemm.trans_a), (1, t.tn, not gemm.trans_b)):
        pitch = pitches[arg]
        if along_k:
            tile, by = Tile(arg, pitch, item, rows, t.tk, step=t.tk * item), rows * pitch
        else:
            tile, by = Tile(arg, pitch, item, t.tk, rows, step=t.tk * pitch), rows * item
        moves = (by, 0) if arg == 0 else (0, by)
        made.append(_moved(tile, place, *moves, parts[arg]))
    wide = gemm.stored * gemm.apart
    c = Tile(2, pitches[2], wide, t.tn, t.tm)
    return made[0], made[1], _moved(c, place, t.tm * wide, t.tn * pitches[2], parts[2])


def _copies(gemm: StagedGemm, kind: int, depth: int, step: int) -> Accesses:
    """Return the copies of a k-step: of A, then of B."""
    t = gemm.tile
    rows = gemm.m - (gemm.tiles[0] - 1) * t.tm if kind & LAST_X else t.tm
    cols = gemm.n - (gemm.tiles[1] - 1) * t.tn if kind & LAST_Y else t.tn
    deep = min(t.tk, depth - step * t.tk)
    made: list[tuple[Pattern, ...]] = []
    for tile, size, along_k in zip(
        _operands(gemm)[:2], (rows, cols), (gemm.trans_a, not gemm.trans_b), strict=True
    ):
        valid = (size, deep) if along_k else (deep, size)
        made += _pieces(tile, gemm, valid, step * tile.step)
    return made


def _pieces(tile: Tile, gemm: StagedGemm, valid: tuple[int, int], base: int) -> Accesses:
    """Return the copies of a tile of which ``valid`` rows and columns exist.

    For mma a lane has 16 B of shared memory; where rows are aligned to less it copies them piece by piece, so
    that lanes of an access are 16 B apart (CUTLASS, mma_multistage.h: kAccessesPerVector).
    """
    t = gemm.tile
    width = copy_width(tile, gemm.copy)
    if t.unit == "ffma" or width == VECTOR or tile.cols * tile.item < VECTOR:
        return tile_ops(tile, t.count, width, valid, base)
    made: list[tuple[Pattern, ...]] = []
    across = VECTOR // tile.item
    for at in range(0, across, width // tile.item):
        # lanes whose piece exists
        inside = valid[0], max(0, valid[1] - at)
        ops = tile_ops(tile, t.count, VECTOR, inside, base + at * tile.item)
        made += [tuple(replace(pattern, width=width) for pattern in op) for op in ops]
    return made


@lru_cache(maxsize=64)
def _code(gemm: StagedGemm, cost: Cost, kind: int) -> tuple[Op, ...]:
    """Return the ops of TBs of a kind."""
    code, t = Code(), gemm.tile
    if kind != NO_TILE:
        code.compute(int=20, control=4)
        code.delay(cost.begin)
        parts = -(-gemm.k // gemm.chunk)
        depth = gemm.k - (parts - 1) * gemm.chunk if kind & LAST_Z else gemm.chunk
        steps, whole = -(-depth // t.tk), depth // t.tk
        copies = lru_cache(partial(_copies, gemm, kind, depth))
        loop = register_loop if gemm.copy < LEAST_COPY or t.stages == 1 else async_loop
        loop(code, t, cost, steps, whole, copies)
        code.mark_main_loop_end()
        rows = gemm.m - (gemm.tiles[0] - 1) * t.tm if kind & LAST_X else t.tm
        cols = gemm.n - (gemm.tiles[1] - 1) * t.tn if kind & LAST_Y else t.tn
        c = _operands(gemm)[2]
        if gemm.adds_bias and kind & LAST_Z:
            _load_bias(code, gemm, rows)
        if gemm.reduction == "atomic":
            wide = c.item
            reduces = tile_ops(c, t.count, wide, (cols, rows))
            atomic_epilogue(
                code, t, cost, [tuple(replace(one, width=gemm.stored) for one in op) for op in reduces]
            )
        else:
            stores = tile_ops(c, t.count, copy_width(c), (cols, rows))
            turn = kind if gemm.reduction == "serial" else FIRST_Z | LAST_Z
            epilogue(code, t, cost, stores, turn)
    code.exit()
    return tuple(code.ops)


def _load_bias(code: Code, gemm: StagedGemm, rows: int) -> None:
    """Add the loads of the bias of a tile's rows in m."""
    t, item = gemm.tile, gemm.out
    tile = _moved(Tile(3, t.tm * item, item, 1, t.tm), gemm.layout[1], t.tm * item, 0, 0)
    for patterns in tile_ops(tile, t.count, item, (1, rows)):
        code.load(0, *patterns)
    code.wait(0)
    code.compute(fp32=t.outputs, chain=4)


def _program(gemm: StagedGemm, cost: Cost) -> RecordedProgram:
    grid, _ = gemm.layout
    kinds = gemm.kinds(np.arange(grid[0] * grid[1] * grid[2], dtype=np.int64))
    found = sorted(set(kinds.tolist()))
    row = np.zeros(NO_TILE + 1, np.uint32)
    row[found] = np.arange(len(found))
    t = gemm.tile
    code, args = [(_code(gemm, cost, kind),) * t.count for kind in found], 3 + gemm.adds_bias
    return warp_specialized(f"gemm_{t.name}", code, row[kinds], registers=t.registers, smem=t.smem, args=args)


def staged_gemm(
    gemm: StagedGemm,
    memory: Memory,
    operands: Sequence[Tensor] | None = None,
    cost: Cost | None = None,
) -> tuple[Kernel, Tensor]:
    """Return the kernel and its C, n x m; with ``reduction`` "kernel" the parts, split_k * n x m.

    ``operands``: A as m x k, or k x m, and B as n x k, or k x n, by what is contiguous; None: new tensors.
    Raises WorkloadError for sizes, splits and tiles that no such kernel has.
    """
    if min(gemm.m, gemm.n, gemm.k, gemm.split_k) < 1 or (gemm.split_k > 1) != (gemm.reduction != ""):
        raise WorkloadError(
            f"staged GEMM {gemm.m} x {gemm.n} x {gemm.k}: {gemm.split_k} parts of k"
            f" need a reduction, it is {gemm.reduction or 'none'}"
        )
    if gemm.batch > 1 and (gemm.split_k > 1 or gemm.order != "xmma" or any(gemm.pitches) or gemm.pitch_c):
        raise WorkloadError(f"staged GEMM: {gemm.batch} products of {gemm.split_k} parts, {gemm.order}")
    if gemm.biased and gemm.reduction == "atomic":
        raise WorkloadError("staged GEMM: no bias with parts of k that reductions add")
    t = gemm.tile
    shapes = zip("AB", _shapes(gemm), strict=True)
    wanted = [(name, gemm.batch * rows, cols, t.item) for name, (rows, cols) in shapes]
    if gemm.biased:
        wanted.append(("bias", 1, gemm.m, gemm.out))
    a, b, *bias = checked_operands(operands, wanted, memory)
    bias = bias if gemm.adds_bias else []
    planes = gemm.split_k if gemm.reduction == "kernel" else gemm.batch
    shape = (1, _span(gemm, 2, gemm.n, gemm.m * gemm.apart)) if _flat(gemm, 2) else (gemm.n * planes, gemm.m)
    c = memory.tensor("C", *shape, gemm.stored)
    cost = cost or (MMA if t.unit != "ffma" else FFMA if gemm.order == "xmma" else SIMT)
    mode: Mode = "update" if gemm.reduction in ("serial", "atomic") else "write"
    accesses = (
        Access(a, "read", partial(_region, gemm, "a")),
        Access(b, "read", partial(_region, gemm, "b")),
        Access(c, mode, partial(_region, gemm, "c")),
        *(Access(each, "read", partial(_region, gemm, "bias")) for each in bias),
    )
    tensor = "" if t.unit == "ffma" else MMA_16816
    name = f"staged_{t.name}"
    return Kernel(name, _program(gemm, cost), gemm.layout[0], (a, b, c, *bias), accesses, tensor=tensor), c


def _region(gemm: StagedGemm, what: str, tbs: Ints) -> Ints:
    """Return the rectangle of a tensor that each TB uses."""
    t = gemm.tile
    grid, place = gemm.layout
    tbs = np.asarray(tbs, np.int64)
    x, y, part = place.of(tbs, grid)
    there = gemm.kinds(tbs) != NO_TILE
    m = x * t.tm, np.minimum((x + 1) * t.tm, gemm.m)
    n = y * t.tn, np.minimum((y + 1) * t.tn, gemm.n)
    product, part = (0 * part, part) if gemm.batch == 1 else (part, 0 * part)
    first = 0 * part if gemm.moves else part * gemm.chunk  # of a product of its own
    k = first, np.minimum(first + gemm.chunk, gemm.k)
    if what == "bias":
        zero = 0 * part
        return np.stack([np.where(there, side, 0) for side in (zero, zero + 1, *m)], 1)
    if what == "a":
        arg, rows, cols = 0, *((m, k) if gemm.trans_a else (k, m))
    elif what == "b":
        arg, rows, cols = 1, *((k, n) if gemm.trans_b else (n, k))
    else:
        plane = part * gemm.n if gemm.reduction == "kernel" and not _flat(gemm, 2) else 0
        arg, rows, cols = 2, (n[0] + plane, n[1] + plane), (m[0] * gemm.apart, m[1] * gemm.apart)
    if gemm.batch > 1:
        high = gemm.n if arg == 2 else _shapes(gemm)[arg][0]
        rows = rows[0] + product * high, rows[1] + product * high
    if _flat(gemm, arg):
        item = t.item if arg < 2 else gemm.stored
        pitches, moves = gemm.spacing
        pitch, start = pitches[arg] // item, part * (moves[arg] // item)
        if not gemm.moves:
            start = 0 * start
        begin, end = start + rows[0] * pitch + cols[0], start + (rows[1] - 1) * pitch + cols[1]
        rows, cols = (0 * begin, 0 * begin + 1), (begin, np.maximum(begin, end))
    return np.stack([np.where(there, side, 0) for side in (*rows, *cols)], 1)


def _flat(gemm: StagedGemm, arg: int) -> bool:
    """Whether a tensor is seen as one row: its rows overlap, or parts are products of their own."""
    return gemm.moves is not None or (gemm.pitch_c if arg == 2 else gemm.pitches[arg]) != 0


def _span(gemm: StagedGemm, arg: int, rows: int, cols: int) -> int:
    """Return the elements of such a tensor: the last element of the last row, of the last part."""
    item = gemm.tile.item if arg < 2 else gemm.stored
    pitches, moves = gemm.spacing
    parts = (gemm.split_k - 1) * moves[arg] if gemm.moves else 0
    return (parts + (rows - 1) * pitches[arg]) // item + cols


def _shapes(gemm: StagedGemm) -> list[tuple[int, int]]:
    """Return rows and columns of A and of B."""
    made = []
    for arg, (size, along_k) in enumerate(((gemm.m, gemm.trans_a), (gemm.n, not gemm.trans_b))):
        deep = gemm.chunk if gemm.moves else gemm.k
        rows, cols = (size, deep) if along_k else (deep, size)
        made.append((1, _span(gemm, arg, rows, cols)) if _flat(gemm, arg) else (rows, cols))
    return made
