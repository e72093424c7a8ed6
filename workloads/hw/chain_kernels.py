"""The kernels of measured chains that no suite of plain kernels has: a GRU cell and a softmax by tiles.

Their SASS was not taken apart: the counts follow from the source and from what the compiler made of the same
expressions in the plain kernels (:mod:`workloads.hw.blocks`). Loads go past L1, as in the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.job import Access, Mode, Tensor
from pysim.program import Part, Pattern, Place
from workloads.tiles import collapse

from .code import STORES, Launch, Warp, launch, sized
from .stream import WARPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

GATES = 3
SOFTMAX_ROWS = 16  # of a TB
UNROLL = 4  # loads that the compiler gathers in a loop over a row


def _block(tensor: Tensor, mode: Mode, size: tuple[int, int], across: int, gate: int = 0) -> Access:
    """Footprint of TB (x, y): its block of a tensor, ``gate`` times ``across`` blocks to the right."""
    rows, cols = size

    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        tb = np.asarray(tbs, np.int64)
        row, col = tb // across * rows, (tb % across + gate * across) * cols
        return np.stack([row, np.minimum(row + rows, tensor.rows), col, col + cols], axis=1)

    return Access(tensor, mode, regions)


def gru_tile(
    name: str,
    products: Tensor,
    inputs: Tensor,
    before: Tensor,
    after: Tensor,
    tile: tuple[int, int],
    warps: int = WARPS,
) -> Launch:
    """GRU cell by tiles: h' of the products G and X [batch, 3 hidden] and h [batch, hidden].

    A thread takes an element of each of several rows, one after another; rows that do not exist are skipped.
    """
    (bm, bn), item = tile, before.item
    batch, hidden = before.rows, before.cols
    shapes = [(products, GATES * hidden), (inputs, GATES * hidden), (after, hidden)]
    if any((t.rows, t.cols, t.item) != (batch, cols, item) for t, cols in shapes) or hidden % bn:
        raise WorkloadError(
            f"{name}: tensors do not fit hidden = {hidden}, batch = {batch}, tile {bm} x {bn}"
        )
    if batch % bm and batch > bm:
        raise WorkloadError(f"{name}: batch = {batch}: must be at most {bm} or a multiple of it")
    across, high = hidden // bn, 32 * warps // bn  # rows that the warps take at once
    turns, live = bm // high, -(-min(bm, batch) // high)

    def at(arg: int, gate: int) -> tuple[Pattern, ...]:
        pitch = item * hidden * (GATES if arg < 2 else 1)
        made = []
        for warp in range(warps):
            row, col = divmod(warp * 32, bn)
            made.append(
                Pattern(
                    arg, item, base=row * pitch + item * (gate * hidden + col), bx=item * bn,
                    by=bm * pitch, s0=item, step=high * pitch,
                )
            )  # fmt: skip
        return collapse(made)

    row, col, rows = Place(by=bm), Place(bx=bn), min(bm, batch)
    w = Warp(output=Part(3, row, rows, col, bn))
    w.needs(Part(0, row, rows, col, bn, times=GATES, apart=hidden))
    w.main_done()
    w.mix(70, alu=14, imad=8, adu=4, none=4, s2r=1)
    mark = w.begin()
    w.mix(12, alu=8, imad=7, cbu=1, none=1)
    half = int(item == 2)  # a conversion a value
    for gate, waits in ((0, 97), (1, 96), (2, 53)):
        for arg in (0, 1):
            w.load(gate % 2, *at(arg, gate), bypass=True, level=0)
        if gate == GATES - 1:
            w.load(2, *at(2, 0), bypass=True, level=0)
            w.wait(2)
        w.wait(gate % 2)
        w.mix(waits, ffma=8, imad=3, alu=3 + 2 * half, xu=2, adu=1, cbu=1, none=1)
    w.mix(4, ffma=5, alu=1 + 2 * half)
    w.store(STORES, *at(3, 0), level=0)
    w.end(mark, live)
    if turns > live:
        w.mix(0, alu=4 * (turns - live), cbu=turns - live)
    w.exit()
    args = (products, inputs, before, after)
    accesses = [_block(t, "read", (bm, bn), across, gate) for t in args[:2] for gate in range(GATES)]
    accesses += [_block(before, "read", (bm, bn), across), _block(after, "write", (bm, bn), across)]
    grid = (across, -(-batch // bm), 1)
    made = launch(name, grid, [[w]], None, args, accesses, warps=warps, registers=32)
    return sized(made, lambda n: gru_tile(name, products, inputs, before, after, tile, n))


def _row(w: Warp, pitch: int, row: int, count: int, work: Sequence[int], out: bool, warps: int) -> None:
    """Add a pass of a warp over a row of ``count`` pairs a lane; ``work``: ffma, alu, xu of a pair."""
    ffma, alu, xu = work

    def at(arg: int, number: int, step: int) -> tuple[Pattern, ...]:
        made = [
            Pattern(
                arg, 4, base=(row + warp) * pitch + 128 * number, bx=SOFTMAX_ROWS * pitch, s0=4,
                step=128 * step,
            )
            for warp in range(warps)
        ]  # fmt: skip
        return collapse(made)

    def turn(first: int, many: int, level: int) -> None:
        for number in range(many):
            w.load(number, *at(0, first + number, many), bypass=True, level=level)
        for number in range(many):
            w.wait(number)
            w.mix(30, ffma=ffma, alu=alu, xu=xu)
            if out:
                w.store(STORES, *at(1, first + number, many), level=level)
        w.mix(6, alu=3, none=1)

    whole, rest = divmod(count, UNROLL)
    if whole:
        mark = w.begin()
        turn(0, UNROLL, 0)
        w.end(mark, whole)
    for number in range(rest):
        turn(whole * UNROLL + number, 1, 2)


def softmax_rows(name: str, source: Tensor, target: Tensor, warps: int = WARPS) -> Launch:
    """Softmax of rows of fp16, 16 rows a TB and a warp a row: three passes, the row read in each."""
    rows, cols = source.rows, source.cols
    if (target.rows, target.cols) != (rows, cols) or rows % SOFTMAX_ROWS or cols % 64:
        raise WorkloadError(
            f"{name}: {rows} x {cols}: rows must be a multiple of {SOFTMAX_ROWS}, columns of 64"
        )
    row = Place(bx=SOFTMAX_ROWS)
    w = Warp(output=Part(1, row, SOFTMAX_ROWS, Place(), cols))
    w.needs(Part(0, row, SOFTMAX_ROWS, Place(), cols))
    w.main_done()
    w.mix(50, alu=10, imad=4, adu=3, none=3, s2r=1)
    for first in range(0, SOFTMAX_ROWS, warps):
        w.mix(10, alu=6, imad=4)
        for work, out in (((0, 4, 0), False), ((6, 2, 2), False), ((8, 3, 2), True)):
            _row(w, cols * source.item, first, cols // 64, work, out, warps)
            if not out:
                for _ in range(5):  # butterfly over the lanes
                    w.mix(28, smem=1, alu=1, waves=1)
        w.mix(20, xu=1, ffma=4)
    w.exit()
    size = (SOFTMAX_ROWS, cols)
    accesses = [_block(source, "read", size, 1), _block(target, "write", size, 1)]
    grid = (rows // SOFTMAX_ROWS, 1, 1)
    made = launch(name, grid, [[w]], None, (source, target), accesses, warps=warps, registers=32)
    return sized(made, lambda n: softmax_rows(name, source, target, n))


def fence(name: str, last: Tensor, first: Tensor) -> Launch:
    """One warp that reads of ``last`` and writes of ``first``, and is said to touch all of both.

    Between two runs of a chain it stands for the memset and the events there: nothing of the second run
    starts before all of the first has ended.
    """

    def whole(tensor: Tensor, mode: Mode) -> Access:
        def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.tile(np.array([0, tensor.rows, 0, tensor.cols], np.int64), (len(tbs), 1))

        return Access(tensor, mode, regions)

    w = Warp()
    w.load(0, Pattern(0, 4, s0=4), bypass=True)
    w.wait(0)
    w.store(STORES, Pattern(1, 4, s0=4))
    w.exit()
    accesses = [whole(last, "read"), whole(first, "write")]
    return launch(name, (1, 1, 1), [[w]], None, (last, first), accesses, warps=1, registers=16)
