"""Dependent 3 x 3 convolutions in fp16, as CUTLASS computes them on Volta: an implicit GEMM a layer.

Y[pixels, K] = im2col(X)[pixels, 9 C] W^T, channels last; a TB owns ``tm`` pixels and ``tn`` output channels.
K runs over chunks of channels and, for each, over the nine taps. A tap moves a pixel's address by whole
pixels, so rows of X are read nine times, from L1 and L2. X has a halo of a row and a pixel at both ends for
the pixels beyond the borders. Parts of a split K take every n-th chunk and add to Y in turn
(``split_k_serial``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Job, Kernel, Memory, Mode, Tensor
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import Affine, Code, Pattern, Program, TensorTile

from .split_k_serial import FIRST_Z, LAST_X, LAST_Y, LAST_Z, epilogue_rounds, serial_epilogue, serial_program
from .tiles import WARP, Tile, blocks_of, emit_loads, tile_ops, vector_width
from .tiling import HMMA_LATENCY, LDS_LATENCY, Tiling, step_work
from .volta_gemm import GROUPS

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
# Code that a warp runs through once, of the same machine code: instructions before the loop (own, an access
# of the pixels, of the weights: 337 to 838 in all), between the loop and the output (163 to 218), and of the
# output for each sum of a thread, without and with what is there already, by the elements of an access (272
# to 1127 and 466 to 1840 in all with one).
ENTRY = (140, 83, 14)
EXIT = 180
OUTPUT = {1: (8.0, 14.0), 8: (3.75, 5.0)}
# Cycles of such an instruction for a warp alone. Fitted (half `fit`, to a whole number): the compiler's stall
# counts add up to 2.0 to 2.2, and an H200 fetches code that is in no near cache at 2.2 to 2.4
# (h200_fetch.csv).
STRAIGHT = 4
# What a consumer's step of cuSync's tile semaphores takes more: instructions and stall counts up to the first
# HMMA of its machine code over those without (10 and 16 to 66; 15 to 30 and 61 to 127 where the weights are
# loaded first). It looks in each step whether it has to poll; of each ``9 tn`` of K it polls in the first
# ``tn``. A poll of what is known is 13 instructions and 45 cycles more, and a round trip to L2.
LOOKS = {False: (10, 50), True: (19, 88)}
POLL = (13, 45)
REGISTERS = (42, 6)  # beside sums, fragments and what is in flight: of a thread, of an access of the pixels
MOST = 1 << 14  # of any size


@dataclass(frozen=True, slots=True)
class Form:
    """What the machine code of a convolution has.

    ``looks``: each step looks whether it must wait for a semaphore; ``weights_first``: a step loads the
    weights before the pixels; ``elements``: of an access of the output.
    """

    looks: bool = False
    weights_first: bool = False
    elements: int = 1


PLAIN = Form()


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


def _addresses(code: Code, pixels: int, weights: int, step: int = 0) -> None:
    """Add what computes the addresses of so many accesses of each operand, and what a step has besides."""
    counts = (int(own * step + a * pixels + b * weights) for own, a, b in (INTS, IMADS, BRANCHES))
    pipes = dict(zip(("int", "fp32", "control"), counts, strict=True))
    code.compute(**pipes, chain=PIXEL_CHAIN * pixels)


def _entry_addresses(pixels: int, weights: int) -> int:
    """Return how many instructions before the loop :func:`_addresses` adds."""
    return int(sum(own + a * pixels + b * weights for own, a, b in (INTS, IMADS, BRANCHES)))


def _straight(code: Code, count: int) -> None:
    """Add code that runs once: half integer, half on the pipe of fp32, which take it two cycles a warp's."""
    code.compute(int=count - count // 2, fp32=count // 2, chain=int((STRAIGHT - 1) * count))


def _steps(t: Tiling, channels: int, side: int, last: bool) -> list[tuple[int, int] | None]:
    """Offsets in X and W of each step; None: beyond the channels, so nothing is loaded.

    All parts of a split run the same number of chunks. Which of them are beyond the channels is decided for
    the last part; the others are taken to be as the last but one.
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


def _asks_again(t: Tiling, step: int) -> bool:
    """Whether the code that loads a step polls a semaphore that it has found complete."""
    group, at = divmod(step - 1, TAPS * t.tn // t.tk)
    return step > 0 and at < t.tn // t.tk and (at > 0 or group == 0)


@dataclass(frozen=True, slots=True)
class _Loads:
    """What loads a step's tiles of X and W: pairs are of both."""

    t: Tiling
    form: Form
    side: int
    tiles: tuple[Tile, Tile]
    valid: tuple[int, int]
    widths: tuple[int, ...]
    many: tuple[int, ...]  # accesses of a thread

    def add(self, code: Code, step: int, at: tuple[int, int] | None) -> None:
        """Add the loads from offsets ``at`` in X and W; None: their addresses only."""
        again = self.form.looks and _asks_again(self.t, step)
        if self.form.looks:
            issues, chain = LOOKS[self.form.weights_first]
            code.compute(int=issues + again * POLL[0], chain=chain + again * POLL[1])
        if at is not None:
            code.mark_loads()
        if self.form.weights_first:
            self._weights(code, at)
        if at is not None:
            self._wait(code, step, at[0], again)
        self._pixels(code, at)
        if not self.form.weights_first:
            self._weights(code, at)
        _addresses(code, 0, 0, 1)

    def _wait(self, code: Code, step: int, at: int, again: bool) -> None:
        t, x = self.t, self.tiles[0]
        deep = Affine(base=step // TAPS * t.split_k * t.tk, bz=t.tk)
        code.mark_input(TensorTile(0, Affine(by=t.tm), t.tm + 2 * (self.side + 1), deep, t.tk))
        if again:
            # one lane of the TB polls; a line of the pixels stands in for the semaphore's
            poll = Pattern(0, 4, base=at, by=x.by, bz=x.bz, lanes=1)
            code.load(3, poll, *[replace(poll, lanes=0)] * (t.warps - 1), bypass_l1=True, level=2)
            code.wait(3)
            if not self.form.weights_first:
                code.barrier()

    def _pixels(self, code: Code, at: tuple[int, int] | None) -> None:
        t = self.t
        ops = tile_ops(self.tiles[0], t.warps, self.widths[0], (self.valid[0], t.tk), at[0]) if at else []
        for op in ops:
            _addresses(code, 1, 0)
            emit_loads(code, 0, [op])
        _addresses(code, self.many[0] - len(ops), 0)

    def _weights(self, code: Code, at: tuple[int, int] | None) -> None:
        t = self.t
        _addresses(code, 0, self.many[1])
        if at is not None:
            emit_loads(
                code, 0, tile_ops(self.tiles[1], t.warps, self.widths[1], (self.valid[1], t.tk), at[1])
            )


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


def _variant(t: Tiling, channels: int, side: int, pixels: int, form: Form, number: int) -> Code:
    """Ops of the TBs at the edges of the grid that the bits of ``number`` name (``split_k_serial``)."""
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
    code, loads = Code(), _Loads(t, form, side, (x, w), valid, tuple(widths), tuple(many))
    moves = {"smem": -(-moved // (128 * t.warps)), "smem_ops": 2 * sum(many)}
    _straight(code, ENTRY[0] + ENTRY[1] * many[0] + ENTRY[2] * many[1] - _entry_addresses(*many))
    loads.add(code, 0, steps[0])
    code.wait(0)
    code.compute(**moves, chain=4)
    code.barrier()
    for step in range(1, len(steps)):
        loads.add(code, step, steps[step])
        _multiply(code, t, moves)
    _multiply(code, t, {})
    _straight(code, EXIT)
    # lanes are side by side along the channels
    stores = epilogue_rounds(tile_ops(y, t.warps, ITEM * form.elements, valid, first), t.warp_tile[0])
    each = -(-t.tm * t.tn // (lanes * len(stores)))
    added = t.split_k > 1 and not number & FIRST_Z
    share = int(each * OUTPUT[form.elements][added])

    def exchange(at: int) -> None:
        code.barrier()
        code.compute(smem=each, smem_ops=each, int=4, chain=4)
        code.barrier()
        # accesses of shared and of global memory are instructions of the output too
        ints = max(0, share - 3 * each - len(stores[at]) * (1 + added))
        code.compute(smem=each, smem_ops=each, fp32=each, int=ints, chain=STRAIGHT * share - 2 * ints)

    serial_epilogue(code, 1, stores, number if t.split_k > 1 else FIRST_Z | LAST_Z, exchange)
    if last or t.split_k == 1:
        code.mark_output(TensorTile(2, Affine(base=side + 1, by=t.tm), t.tm, Affine(bx=t.tn), t.tn), level=2)
    code.exit()
    return code


@lru_cache(maxsize=256)
def _program(t: Tiling, pixels: int, channels: int, side: int, form: Form) -> Program | RecordedProgram:
    name, variant = f"conv3x3_{t.name}", partial(_variant, t, channels, side, pixels, form)
    if t.split_k > 1:
        grid = (-(-channels // t.tn), -(-pixels // t.tm), t.split_k)
        return serial_program(
            name, grid, variant, warps=t.warps, registers=registers_of(t), smem=t.smem(ITEM), args=3
        )
    variants = tuple(tuple(variant(number).ops) for number in range(8))
    return Program(name, variants, t.warps, registers_of(t), t.smem(ITEM), 3)


def convolution(
    name: str, x: Tensor, w: Tensor, y: Tensor, side: int, tiling: Tiling, form: Form = PLAIN
) -> Kernel:
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
    program, grid = _program(t, pixels, channels, side, form), (gx, gy, t.split_k)
    return Kernel(name, program, grid, (x, w, y), accesses, library=t.library, tensor=t.tensor)


def conv_chain(batch: int, channels: int, side: int, layers: int, tiling: Tiling, form: Form = PLAIN) -> Job:
    """Make ``layers`` convolutions of ``batch`` images, each reading what the one before wrote.

    ``form``: what the machine code of layers after the first has for waiting inside the kernel.
    """
    for name, value in {"batch": batch, "channels": channels, "side": side, "layers": layers}.items():
        if not 1 <= value <= MOST:
            raise WorkloadError(f"convolutions: {name} = {value}: must be from 1 to {MOST}")
    memory, first = Memory(), replace(form, looks=False, weights_first=False)
    pixels = batch * side * side + 2 * (side + 1)
    values = [memory.tensor(f"x{i}", pixels, channels, ITEM) for i in range(layers + 1)]
    kernels = []
    for i in range(layers):
        w = memory.tensor(f"w{i}", channels, TAPS * channels, ITEM)
        kernels.append(
            convolution(f"conv{i + 1}", values[i], w, values[i + 1], side, tiling, form if i else first)
        )
    return Job(f"conv_chain:batch={batch},channels={channels}", kernels)
