"""Dependent 3 x 3 convolutions in fp16, as CUTLASS computes them on Volta: an implicit product a layer.

Y[pixels, K] = im2col(X)[pixels, 9 C] W^T, channels last; a TB owns ``tm`` pixels and ``tn`` output channels.
K runs over chunks of channels and, for each, over the nine taps. A tap moves a pixel's address by whole
pixels, so rows of X are read nine times, from L1 and L2. X has a halo of a row and a pixel at both ends for
what lies beyond the borders. Parts of a split K take every n-th chunk and add to Y in turn
(:mod:`workloads.serial`).
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.job import Access, Job, Kernel, Memory, Mode, Tensor
from pysim.program import Code, Part, Place, Program, Recorded

from .gemm import GROUPS
from .serial import FIRST_Z, LAST_X, LAST_Y, LAST_Z, add_in_turn, in_rounds, in_turn
from .tiles import WARP, Tile, blocks_of, emit_loads, tile_ops, vector_width
from .tiling import HMMA_LATENCY, LDS_LATENCY, Tiling, step_work

if TYPE_CHECKING:
    from numpy.typing import NDArray

ITEM = 2
SIDE = 3  # of the filter
TAPS = SIDE * SIDE
# What a warp issues a step beside its HMMA and its accesses of memory, counted in the SASS of CUTLASS 3.1
# with kAnalytic iterators and the tiles that cuSync's authors list, by ptxas 12.2 for sm_70 (86 to 199
# integer, 48 to 129 IMAD, 11 to 35 branches; the sums below are within 12 of each). A step's own, then of
# each access of the pixels and of the weights: coordinates, compares, 64-bit address, zeros outside.
INTS = (38, 19, 5)
IMADS = (16, 14, 2.5)  # on the pipe of fp32
BRANCHES = (3, 4, 0)
# Cycles for which a lone warp waits at an access of the pixels: its compares, branch and reconvergence follow
# each other. The stall counts of the same code up to the first HMMA are 319 to 1064 cycles, 73 to 86 more an
# access than its integer instructions take.
PIXEL_CHAIN = 80
REGISTERS = (42, 6)  # beside sums, fragments and what is in flight: of a thread, of an access of the pixels
MOST = 1 << 14  # of any size


def _operands(t: Tiling, channels: int) -> tuple[Tile, Tile, Tile]:
    """Tiles of X, W and Y of the first TB; part z of the split begins at chunk z."""
    pitch, chunk = channels * ITEM, t.tk * ITEM
    x = Tile(0, pitch, ITEM, t.tm, t.tk, by=t.tm * pitch, bz=chunk)
    w = Tile(1, TAPS * pitch, ITEM, t.tn, t.tk, bx=t.tn * TAPS * pitch, bz=chunk)
    y = Tile(2, pitch, ITEM, t.tm, t.tn, bx=t.tn * ITEM, by=t.tm * pitch)
    return x, w, y


def registers_of(t: Tiling) -> int:
    """Return the 32-bit registers of a thread; ptxas gives 118 to 252, within eight of this."""
    rows, cols = t.multiplied
    lanes = WARP * t.warps
    sums, fragments = rows * cols // WARP, (rows + cols) * 4 * ITEM * 4 // (4 * WARP)
    moving = (t.tm + t.tn) * t.tk * ITEM // (4 * lanes)
    pixels = max(1, t.tm * t.tk * ITEM // (16 * lanes))
    return min(255, -(-(sums + fragments + moving + REGISTERS[0] + REGISTERS[1] * pixels) // 8) * 8)


def _addresses(code: Code, pixels: int, weights: int) -> None:
    """Add what computes the addresses of a step: so many accesses of each operand."""
    counts = (int(own + a * pixels + b * weights) for own, a, b in (INTS, IMADS, BRANCHES))
    pipes = dict(zip(("int", "fp32", "control"), counts, strict=True))
    code.compute(**pipes, chain=PIXEL_CHAIN * pixels)


def _steps(t: Tiling, channels: int, side: int, last: bool) -> list[tuple[int, int] | None]:
    """Offsets in X and W of each step; None: beyond the channels, so nothing is loaded.

    All parts of a split run the same number of chunks. Which of them lie beyond the channels is told for the
    last part; the others are taken to be as the last but one.
    """
    pixel, apart = channels * ITEM, t.split_k * t.tk * ITEM
    part = t.split_k - 1 if last else max(0, t.split_k - 2)
    share = -(-channels // t.split_k)
    made: list[tuple[int, int] | None] = []
    for chunk in range(-(-share // t.tk)):
        inside = (part + chunk * t.split_k) * t.tk < channels
        for tap in range(TAPS):
            r, s = divmod(tap, SIDE)
            at = (r * side + s) * pixel + chunk * apart, tap * pixel + chunk * apart
            made.append(at if inside else None)
    return made


def _multiply(code: Code, t: Tiling, moves: dict[str, int]) -> None:
    """Multiply a tile, in CUTLASS's order (:attr:`Tiling.overlap`); ``moves``: stores of the next, if any."""
    last = t.tk // GROUPS
    for number, k in enumerate((t.tk - 2 * last, last, last)):
        work = step_work(t, k, ITEM)
        stored = moves if number == 1 else {}
        if stored:
            code.wait(0)
        code.compute(
            smem=work.wavefronts + stored.get("smem", 0), smem_ops=work.lds + stored.get("smem_ops", 0),
            chain=HMMA_LATENCY + (0 if number else LDS_LATENCY), tensor=work.math,
        )  # fmt: skip
        if stored:
            code.barrier()


def _variant(t: Tiling, channels: int, side: int, pixels: int, number: int) -> Code:
    """Ops of the TBs whose place in the grid the bits of ``number`` tell (:mod:`workloads.serial`)."""
    gx, gy = -(-channels // t.tn), -(-pixels // t.tm)
    cols = channels - (gx - 1) * t.tn if number & LAST_X else t.tn
    rows = pixels - (gy - 1) * t.tm if number & LAST_Y else t.tm
    valid, last = (rows, cols), bool(number & LAST_Z)
    x, w, y = _operands(t, channels)
    first = (side + 1) * channels * ITEM  # Y has a halo too: the next layer reads it as X
    widths = [vector_width(tile, t.warps) for tile in (x, w)]
    lanes = WARP * t.warps
    shares = zip((t.tm, t.tn), widths, strict=True)
    many = [max(1, rows * t.tk * ITEM // (lanes * wide)) for rows, wide in shares]
    moved = (t.tm + t.tn) * t.tk * ITEM
    steps = _steps(t, channels, side, last)
    code = Code()

    def load(step: int) -> None:
        _addresses(code, *many)
        at = steps[step]
        if at is not None:
            code.loads()
            emit_loads(code, 0, tile_ops(w, t.warps, widths[1], (valid[1], t.tk), at[1]))
            deep = Place(base=step // TAPS * t.split_k * t.tk, bz=t.tk)
            code.needs(Part(0, Place(by=t.tm), t.tm + 2 * (side + 1), deep, t.tk))
            emit_loads(code, 0, tile_ops(x, t.warps, widths[0], (valid[0], t.tk), at[0]))

    moves = {"smem": -(-moved // (128 * t.warps)), "smem_ops": 2 * sum(many)}
    code.compute(int=80, control=4, chain=t.fetch // 2)
    load(0)
    code.wait(0)
    code.compute(**moves, chain=4)
    code.barrier()
    for step in range(1, len(steps)):
        load(step)
        _multiply(code, t, moves)
    _multiply(code, t, {})
    if t.fetch:
        code.compute(int=8, chain=t.fetch - t.fetch // 2)
    mine = t.tm * t.tn // lanes
    # an access of the epilogue is one element, lanes side by side along the channels
    ops = tile_ops(y, t.warps, ITEM, valid, first)
    stores = in_rounds(ops, t.warp_tile[0])
    each = -(-mine // len(stores))

    def exchange(at: int) -> None:
        code.barrier()
        code.compute(smem=each, smem_ops=each, int=4, chain=4)
        code.barrier()
        code.compute(smem=each, smem_ops=each, fp32=each, int=4 + 3 * len(stores[at]), chain=LDS_LATENCY)

    add_in_turn(code, 1, stores, number if t.split_k > 1 else FIRST_Z | LAST_Z, exchange)
    if last or t.split_k == 1:
        code.made(Part(2, Place(base=side + 1, by=t.tm), t.tm, Place(bx=t.tn), t.tn), level=2)
    code.exit()
    return code


@lru_cache(maxsize=256)
def _program(t: Tiling, pixels: int, channels: int, side: int) -> Program | Recorded:
    name, variant = f"conv3x3_{t.name}", partial(_variant, t, channels, side, pixels)
    if t.split_k > 1:
        grid = (-(-channels // t.tn), -(-pixels // t.tm), t.split_k)
        return in_turn(
            name, grid, variant, warps=t.warps, registers=registers_of(t), smem=t.smem(ITEM), args=3
        )
    variants = tuple(tuple(variant(number).ops) for number in range(8))
    return Program(name, variants, t.warps, registers_of(t), t.smem(ITEM), 3)


def convolution(name: str, x: Tensor, w: Tensor, y: Tensor, side: int, tiling: Tiling) -> Kernel:
    """Convolve images of ``side`` x ``side`` pixels; X and Y have a halo of a row and a pixel."""
    t, channels, pixels = tiling, x.cols, x.rows - 2 * (side + 1)
    if channels % t.tk or channels // t.tk < t.split_k or t.slices != 1 or t.math != "hmma":
        raise WorkloadError(f"{name}: {channels} channels do not split into {t.split_k} parts of {t.tk}")
    gx, gy = -(-channels // t.tn), -(-pixels // t.tm)

    def spans(tbs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first = np.asarray(tbs, np.int64) // gx % gy * t.tm
        return first, np.minimum(first + t.tm, pixels)

    def around(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        first, last = spans(tbs)
        zero = np.zeros_like(first)
        return np.stack([first, last + 2 * (side + 1), zero, zero + channels], axis=1)

    def inner(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        first, last = spans(tbs)
        col = np.asarray(tbs, np.int64) % gx * t.tn
        return np.stack([first + side + 1, last + side + 1, col, np.minimum(col + t.tn, channels)], axis=1)

    weights = blocks_of(w, (t.tn, w.cols), lambda tb: tb % gx, np.zeros_like)
    mode: Mode = "update" if t.split_k > 1 else "write"
    accesses = (Access(x, "read", around), Access(w, "read", weights), Access(y, mode, inner))
    return Kernel(name, _program(t, pixels, channels, side), (gx, gy, t.split_k), (x, w, y), accesses)


def conv_chain(batch: int, channels: int, side: int, layers: int, tiling: Tiling) -> Job:
    """Make ``layers`` convolutions of ``batch`` images, each reading what the one before wrote."""
    for name, value in {"batch": batch, "channels": channels, "side": side, "layers": layers}.items():
        if not 1 <= value <= MOST:
            raise WorkloadError(f"convolutions: {name} = {value}: must be from 1 to {MOST}")
    memory = Memory()
    pixels = batch * side * side + 2 * (side + 1)
    values = [memory.tensor(f"x{i}", pixels, channels, ITEM) for i in range(layers + 1)]
    kernels = []
    for i in range(layers):
        w = memory.tensor(f"w{i}", channels, TAPS * channels, ITEM)
        kernels.append(convolution(f"conv{i + 1}", values[i], w, values[i + 1], side, tiling))
    return Job(f"conv_chain:batch={batch},channels={channels}", kernels)
