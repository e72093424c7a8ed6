"""Kernels that reduce a row: block sum, softmax, layer norm and matrix times vector.

The compiler unrolls their loops over a row by 16, 8 and 4 after up to three single rounds; lanes of a warp
that have no element of a round are masked in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Memory, Mode, Tensor
from pysim.program.warp_program import Pattern

from .blocks import Block
from .blocks.rows import LAYERNORM, SOFTMAX
from .blocks.sums import GEMV, REDUCE
from .code import Launch, Warp, launch
from .lanes import always, lane_pattern
from .stream import THREADS, WARPS, flat_access, positive

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

LANES = range(32)


class Rounds:
    """A loop over the elements of a row: lane l takes elements first[l], first[l] + step, ... below count."""

    def __init__(
        self, w: Warp, blocks: dict[str, Block], suffix: str, first: Sequence[int], count: int, step: int
    ) -> None:
        """Say which stretches of SASS the loop is made of."""
        self.w, self.blocks, self.suffix, self.first, self.step = w, blocks, suffix, first, step
        rounds = [max(0, -(-(count - f) // step)) for f in first]
        self.single = [r % 4 for r in rounds]
        self.rest = [r - s for r, s in zip(rounds, self.single, strict=True)]

    def add(
        self, name: str, at: Callable[[str, int], tuple[Pattern, ...]] | None = None, level: int = 2
    ) -> None:
        """Add a stretch of this loop."""
        self.w.run(self.blocks[name + self.suffix], at, level)

    def places(
        self, base: dict[str, Pattern], done: Sequence[int], active: Sequence[bool], moves: int = 0
    ) -> Callable[[str, int], tuple[Pattern, ...]]:
        """Return addresses of memory ops ``done[l]`` rounds after lane l's first; a loop moves ``moves``."""

        def at(name: str, offset: int) -> tuple[Pattern, ...]:
            p = base[name]
            spots = [
                (self.first[lane] + done[lane] * self.step) * p.width if active[lane] else None
                for lane in LANES
            ]
            placed = lane_pattern(p, spots)
            return (replace(placed, base=placed.base + offset, step=moves * self.step * p.width),)

        return at

    def singles(self, base: dict[str, Pattern]) -> None:
        """Add the up to three rounds before the unrolled ones."""
        if not any(self.single):
            return
        self.add("rem_set")
        for i in range(max(self.single)):
            self.add("rem", self.places(base, [i] * 32, [s > i for s in self.single]))

    def loop(self, name: str, base: dict[str, Pattern], by: int, times: Sequence[int]) -> None:
        """Add a loop of ``times[l]`` turns of ``by`` rounds for lane l."""
        done = self.single
        even = min((t for t in times if t), default=0)
        if even:
            mark = self.w.begin()
            self.add(name, self.places(base, done, [t > 0 for t in times], by), level=0)
            self.w.end(mark, even)
        for turn in range(even, max(times)):
            later = [d + by * turn for d in done]
            self.add(name, self.places(base, later, [t > turn for t in times]))

    def rejoin(self, ways: Sequence[int]) -> None:
        """Count the end of a branch that lanes reach in several ways once for each."""
        extra = len(set(ways)) - 1
        if extra:
            self.w.mix(cbu=extra)

    def unrolled(self, base: dict[str, Pattern]) -> None:
        """Add a pass over the row that loads by 16, 8 and 4."""
        if not any(self.single) and not any(self.rest):
            return
        self.add("pre")
        self.singles(base)
        self.add("after")
        self.rejoin(self.single)
        if any(self.rest):
            self.add("main")
            times = [r // 16 for r in self.rest]
            if any(times):
                self.add("set16")
                self.loop("by16", base, 16, times)
            self.add("mid")
            self.rejoin(times)
            done = [s + 16 * t for s, t in zip(self.single, times, strict=True)]
            left = [r % 16 for r in self.rest]
            if any(n >= 8 for n in left):
                self.add("by8", self.places(base, done, [n >= 8 for n in left]))
            self.add("last")
            self.rejoin([n >= 8 for n in left])
            done = [d + 8 * (n >= 8) for d, n in zip(done, left, strict=True)]
            if any(n % 8 for n in left):
                self.add("by4", self.places(base, done, [n % 8 == 4 for n in left]))
        self.rejoin([r % 8 if r else -1 for r in self.rest])


def _row_access(tensor: Tensor, mode: Mode) -> Access:
    """Footprint of TB i: row i of a matrix, all of a vector."""

    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        row = np.asarray(tbs, np.int64) if tensor.rows > 1 else np.zeros(len(tbs), np.int64)
        return np.stack([row, row + 1, np.zeros_like(row), np.full_like(row, tensor.cols)], axis=1)

    return Access(tensor, mode, regions)


def _row_pass(w: Warp, blocks: dict[str, Block], suffix: str, warp: int, cols: int) -> Rounds:
    return Rounds(w, blocks, suffix, [warp * 32 + lane for lane in LANES], cols, THREADS)


def _written(loop: Rounds, base: dict[str, Pattern]) -> None:
    """Add the last pass over a row: its stores keep the compiler from gathering loads."""
    loop.add("pre")
    loop.singles(base)
    if not any(loop.rest):
        loop.w.run(loop.blocks["after_out_exit"])
        return
    loop.add("after")
    loop.add("main")
    loop.loop("by4", base, 4, [r // 4 for r in loop.rest])
    loop.w.exit()


def block_reduce(n: int = 1 << 20) -> Launch:
    """256 threads sum 4096 values; out[i] is the sum of TB i."""
    positive("block_reduce", n=n)
    each = 4096
    tbs = -(-n // each)
    memory = Memory()
    source, target = memory.tensor("in", 1, n, 4), memory.tensor("out", 1, tbs, 4)

    def build(warp: int, count: int) -> Warp:
        w = Warp()

        def at(name: str, offset: int) -> tuple[Pattern, ...]:
            if name == "out":
                return (Pattern(1, 4, bx=4, lanes=1),)
            here = warp * 32 + offset // 4
            lanes = (1 << max(0, min(32, count - here))) - 1
            return (Pattern(0, 4, base=4 * here, bx=4 * each, s0=4, lanes=lanes),)

        w.run(REDUCE["all"], at)
        w.run(REDUCE["rest" if warp else "first"], at)
        return w

    full, rest = divmod(n, each)
    code = [[build(warp, each) for warp in range(WARPS)]]
    which = None
    if rest:
        code.append([build(warp, rest) for warp in range(WARPS)])
        which = np.array([0] * full + [1], np.int64)
    accesses = (flat_access(source, "read", each), flat_access(target, "write", 1))
    return launch(
        "block_reduce", (tbs, 1, 1), code, which, (source, target), accesses,
        warps=WARPS, registers=24, smem=4 * THREADS,
    )  # fmt: skip


def row_softmax(rows: int = 512, cols: int = 1024) -> Launch:
    """Softmax of each row by a TB of 256 threads: three passes, two block reductions."""
    positive("row_softmax", rows=rows, cols=cols)
    memory = Memory()
    source, target = memory.tensor("in", rows, cols, 4), memory.tensor("out", rows, cols, 4)
    base = {"in": Pattern(0, 4, bx=4 * cols), "out": Pattern(1, 4, bx=4 * cols)}
    row = []
    for warp in range(WARPS):
        w = Warp()
        w.run(SOFTMAX["head"])
        _row_pass(w, SOFTMAX, "", warp, cols).unrolled(base)
        w.run(SOFTMAX["join"])
        w.run(SOFTMAX["max"])
        _row_pass(w, SOFTMAX, "_sum", warp, cols).unrolled(base)
        w.run(SOFTMAX["join_sum"])
        if warp * 32 < cols:
            w.run(SOFTMAX["sum"])
            _written(_row_pass(w, SOFTMAX, "_out", warp, cols), base)
        else:
            w.run(SOFTMAX["sum_exit"])
        row.append(w)
    accesses = (_row_access(source, "read"), _row_access(target, "write"))
    return launch(
        "row_softmax", (rows, 1, 1), [row], None, (source, target), accesses,
        warps=WARPS, registers=32, smem=32,
    )  # fmt: skip


def layernorm(rows: int = 512, cols: int = 1024) -> Launch:
    """Layer norm of each row by a TB of 256 threads, with gain g and bias b: three passes."""
    positive("layernorm", rows=rows, cols=cols)
    memory = Memory()
    source, target = memory.tensor("in", rows, cols, 4), memory.tensor("out", rows, cols, 4)
    gain, bias = memory.tensor("g", 1, cols, 4), memory.tensor("b", 1, cols, 4)
    base = {
        "in": Pattern(0, 4, bx=4 * cols),
        "g": Pattern(1, 4),
        "b": Pattern(2, 4),
        "out": Pattern(3, 4, bx=4 * cols),
    }
    row = []
    for warp in range(WARPS):
        w = Warp()
        w.run(LAYERNORM["head"])
        _row_pass(w, LAYERNORM, "", warp, cols).unrolled(base)
        w.run(LAYERNORM["join"])
        w.run(LAYERNORM["mean"])
        _row_pass(w, LAYERNORM, "_var", warp, cols).unrolled(base)
        w.run(LAYERNORM["join_var"])
        if warp * 32 < cols:
            w.run(LAYERNORM["var"])
            _written(_row_pass(w, LAYERNORM, "_out", warp, cols), base)
        else:
            w.run(LAYERNORM["var_exit"])
        row.append(w)
    accesses = [_row_access(t, "read") for t in (source, gain, bias)] + [_row_access(target, "write")]
    return launch(
        "layernorm", (rows, 1, 1), [row], None, (source, gain, bias, target), accesses,
        warps=WARPS, registers=32, smem=32,
    )  # fmt: skip


def gemv(rows: int = 4096, cols: int = 4096) -> Launch:
    """Multiply, y = A x: a warp a row, float4 loads, 8 rows a TB."""
    positive("gemv", rows=rows, cols=cols)
    if cols % 4:
        raise WorkloadError(f"gemv: cols = {cols}: must be a multiple of 4")
    memory = Memory()
    matrix, x = memory.tensor("A", rows, cols, 4), memory.tensor("x", 1, cols, 4)
    y = memory.tensor("y", 1, rows, 4)
    base = {"a": Pattern(0, 16, bx=4 * cols * WARPS, warp=4 * cols), "x": Pattern(1, 16)}
    out = Pattern(2, 4, bx=4 * WARPS, warp=4, lanes=1)
    w = Warp()
    w.run(GEMV["head"])
    w.run(GEMV["pre0"])
    Rounds(w, GEMV, "", list(LANES), cols // 4, 32).unrolled(base)
    w.run(GEMV["join"])
    w.run(GEMV["sum"], always(out))
    done = Warp()
    done.run(GEMV["head_exit"])
    full, rest = divmod(rows, WARPS)
    code = [[w]]
    which = None
    if rest:
        code = [[w] * WARPS, [w] * rest + [done] * (WARPS - rest)]
        which = np.array([0] * full + [1], np.int64)

    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        first = np.asarray(tbs, np.int64) * WARPS
        zero = np.zeros_like(first)
        return np.stack([first, np.minimum(first + WARPS, rows), zero, zero + cols], axis=1)

    accesses = (Access(matrix, "read", regions), _row_access(x, "read"), flat_access(y, "write", WARPS))
    return launch(
        "gemv", (-(-rows // WARPS), 1, 1), code, which, (matrix, x, y), accesses,
        warps=WARPS, registers=44,
    )  # fmt: skip
