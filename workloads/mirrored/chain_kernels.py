"""Kernels that only the measured chains have: a GRU cell and a softmax by tiles.

Their stretches are those of ``blocks.chain``. Loads bypass L1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Mode, Tensor
from pysim.program.warp_program import Affine, Pattern, TensorTile
from pysim.workloads.kernels.tiles import collapse

from .blocks.chain.cells import GRU16, GRU32
from .blocks.chain.softmax import SOFTMAX
from .blocks.persistent import gru
from .code import STORES, Launch, Warp, as_stage, launch, resizable
from .stream import WARPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .code import At

GATES = 3
SOFTMAX_ROWS = 16  # of a TB
PAIRS = 64  # elements that the lanes of a warp read at once
# pairs a lane that the compiler loads at once; a remainder below the least is read before, one by one
BY4, BY8, BY16 = 4, 8, 16
# arguments and gates in the order in which a GRU cell's SASS loads and stores them; the last two are h and h'
ORDER = ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 0), (3, 0))


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
    *,
    persistent: bool = False,
) -> Launch:
    """GRU cell by tiles: h' of the GEMMs' G and X [batch, 3 hidden] and h [batch, hidden].

    A thread computes an element of each of several rows in turn; rows that do not exist are skipped.
    ``persistent``: the code of a stage of ``gru_persist``.
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

    row, col, rows = Affine(by=bm), Affine(bx=bn), min(bm, batch)
    fp16, fp32 = (gru.GRU16, gru.GRU32) if persistent else (GRU16, GRU32)
    blocks = fp16 if item == 2 else fp32
    w = Warp(output=TensorTile(3, row, rows, col, bn))
    w.run(blocks["pre"])
    w.needs(TensorTile(0, row, rows, col, bn, count=GATES, spacing=hidden))
    w.main_done()
    w.run(blocks["set"])
    mark = w.begin()
    w.run(blocks["turn"], lambda which, _offset: at(*ORDER[int(which)]), level=0, bypass=True)
    w.end(mark, live)
    if turns > live:
        mark = w.begin()
        w.run(blocks["skip"])
        w.end(mark, turns - live)
    w.run(blocks["end"])
    args = (products, inputs, before, after)
    accesses = [_block(t, "read", (bm, bn), across, gate) for t in args[:2] for gate in range(GATES)]
    accesses += [_block(before, "read", (bm, bn), across), _block(after, "write", (bm, bn), across)]
    grid = (across, -(-batch // bm), 1)
    made = launch(name, grid, [[w]], None, args, accesses, warps=warps, registers=32, parameters=2)

    def other(number: int, persistent: bool) -> Launch:
        return gru_tile(name, products, inputs, before, after, tile, number, persistent=persistent)

    made = resizable(made, lambda number: other(number, persistent))
    return made if persistent else as_stage(made, lambda: other(warps, True))


def _row(w: Warp, pitch: int, row: int, count: int, warps: int) -> None:
    """Add a row of ``count`` pairs a lane: its maximum, its sum and its output, each from memory."""

    def at(first: int, number: int, step: int) -> At:
        """Return where a stretch finds its pairs: ``first`` on, ``number`` of them there."""

        def patterns(name: str, offset: int) -> tuple[Pattern, ...]:
            made = [
                Pattern(
                    int(name == "out"), 4, base=(row + warp) * pitch + 128 * first + offset,
                    bx=SOFTMAX_ROWS * pitch, s0=4, step=128 * step,
                    lanes=0xFFFFFFFF if offset < 128 * number else 0,
                )
                for warp in range(warps)
            ]  # fmt: skip
            return collapse(made)

        return patterns

    def run(name: str, first: int = 0, number: int = 0, times: int = 0) -> None:
        """Add a stretch; one that is repeated moves on by what it takes."""
        level = 0 if times else 2
        mark = w.begin()
        w.run(SOFTMAX[name], at(first, number, number), level, bypass=True)
        w.end(mark, times)

    rest = count % BY4
    run("row")
    if rest:
        run("max_rem", 0, 1)
    if rest > 1:
        run("max_rem2", 0, rest)
    run("max_mid")
    done = rest
    if count >= BY4:
        run("max_set")
        many = (count - done) // BY16
        if many:
            run("max_by16", done, BY16, many)
        done += many * BY16
        run("max_mid2")
        if count - done >= BY8:
            run("max_by8", done, BY8)
            done += BY8
        run("max_mid3")
        if done < count:
            run("max_by4", done, BY4)
    run("max")
    run("sum_set")
    if rest:
        run("sum_rem", 0, 1)
    if rest > 1:
        run("sum_rem2", 0, rest)
    run("sum_mid")
    if count >= BY4:
        run("sum_by4", rest, BY4, count // BY4)
    run("sum")
    run("out_set")
    for number in range(rest):
        run(("out_rem", "out_rem2", "out_rem3")[number], 0, rest)
    run("out_mid")
    if count >= BY4:
        run("out_by4", rest, BY4, count // BY4)
    run("end_row")


def softmax_rows(name: str, source: Tensor, target: Tensor, warps: int = WARPS) -> Launch:
    """Softmax of rows of fp16, 16 rows a TB and a warp a row: three passes, the row read in each."""
    rows, cols = source.rows, source.cols
    if (target.rows, target.cols) != (rows, cols) or rows % SOFTMAX_ROWS or cols % PAIRS:
        raise WorkloadError(
            f"{name}: {rows} x {cols}: rows must be a multiple of {SOFTMAX_ROWS}, columns of {PAIRS}"
        )
    row = Affine(bx=SOFTMAX_ROWS)
    w = Warp(output=TensorTile(1, row, SOFTMAX_ROWS, Affine(), cols))
    w.run(SOFTMAX["head"])
    w.needs(TensorTile(0, row, SOFTMAX_ROWS, Affine(), cols))
    w.main_done()
    w.run(SOFTMAX["set"])
    for first in range(0, SOFTMAX_ROWS, warps):
        _row(w, cols * source.item, first, cols // PAIRS, warps)
    w.run(SOFTMAX["end"])
    size = (SOFTMAX_ROWS, cols)
    accesses = [_block(source, "read", size, 1), _block(target, "write", size, 1)]
    grid = (rows // SOFTMAX_ROWS, 1, 1)
    made = launch(
        name, grid, [[w]], None, (source, target), accesses, warps=warps, registers=32, parameters=2
    )
    return resizable(made, lambda n: softmax_rows(name, source, target, n))


def fence(name: str, last: Tensor, first: Tensor) -> Launch:
    """One warp that reads from ``last`` and writes to ``first``; its footprint is all of both.

    It stands in for the memset and the events between two runs of a chain: nothing of the second run starts
    before all of the first has ended.
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
    return launch(name, (1, 1, 1), [[w]], None, (last, first), accesses, warps=1, registers=16, parameters=0)
