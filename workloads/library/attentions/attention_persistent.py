"""Persistent attention kernels of Hopper: how tiles are dealt, and rings between producer and consumers.

384 threads: a producer warp loads tiles by TMA, and two consumer warp groups multiply (``wgmma``). At most
132 thread blocks (TBs) are launched, one an SM, and each takes the next tile when it has done its own, by a
counter that a memset resets: a deal by order explains measured causal times to 3 %, tiles at a fixed stride
7 to 8 %. The next tile of a plane (batch and head) comes first, in ascending order.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Access
from pysim.program.pipelined_code import PipelinedCode
from pysim.program.tiles import Box, Tiles
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.library.gemms.hopper_gemm import multiply_cycles
from pysim.workloads.library.hopper import SMS

from .attention_problem import Planes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Mode, Tensor
    from pysim.program.recorded_program import RecordedProgram
    from pysim.program.warp_program import Op

    Ints = NDArray[np.int64]

MOST_TBS = SMS  # of a grid: one TB an SM
ROWS = 128  # of a tile: 64 of each consumer group
GROUPS, WARPS = 2, 12
TILE_STEPS = 1.2  # what a tile costs besides its steps, in steps: 2,000 to 4,000 cycles, steps 1,900 to 2,700
# of a score with dropout: four of them take ten rounds of Philox, of two wide multiplications and two
# exclusive ors of three operands each, then a comparison and a choice; by reason
DROP_INTS = 12


@dataclass(frozen=True, slots=True, order=True)
class Turn:
    """A tile: its plane, its place in the plane, and the first and the number of its steps."""

    plane: int
    x: int
    first: int
    steps: int


def deal(tiles: Sequence[Turn], most: int = MOST_TBS) -> list[list[Turn]]:
    """Return the tiles of each TB: who is done first takes the next one."""
    tbs = min(most, len(tiles))
    free = [(0.0, tb) for tb in range(tbs)]
    dealt: list[list[Turn]] = [[] for _ in range(tbs)]
    for tile in tiles:
        at, tb = free[0]
        dealt[tb].append(tile)
        heapq.heapreplace(free, (at + tile.steps + TILE_STEPS, tb))
    return dealt


def box(arg: int, planes: Planes, plane: int, first: int, rows: int, step: int = 0) -> Box:
    """Return the box of ``rows`` rows from row ``first`` of a plane on, ``step`` rows on in each step."""
    item, pitch = planes.tensor.item, planes.tensor.pitch
    at, col = planes.place(plane, first)
    row, byte = (at, 0, 0, 0, 0, 0, step), (col * item, 0, 0, 0, 0, 0, 0)
    return Box(arg, rows, planes.d * item, pitch, planes.tensor.rows, pitch, row, byte)


Touched = tuple["Tensor", "Mode", int, int, int, int]  # tensor, mode, rows and columns, half open


def touched(planes: Planes, mode: Mode, plane: int, first: int, rows: int) -> Touched:
    """Return the rows of a plane that a tile touches."""
    row, col = planes.place(plane, first)
    return planes.tensor, mode, row, row + rows, col, col + planes.d


def multiply(code: PipelinedCode, n: int, count: int) -> None:
    """Add ``count`` asynchronous m64 x n multiplies of 16 of k."""
    one = multiply_cycles(n)
    code.multiply(cycles=count * one, count=count, latency=max(1, round(60 + n / 2 - one)))


def drop(code: PipelinedCode, scores: int) -> None:
    """Add the dropout of a thread's scores."""
    code.compute(int=DROP_INTS * scores, fp32=scores, chain=20)


@dataclass(frozen=True, slots=True)
class Roles:
    """Code of a TB's warps: ``producer(turns)`` and ``consumer(turns, group, leads)``."""

    producer: Callable[[list[Turn]], tuple[Op, ...]]
    consumer: Callable[[list[Turn], int, bool], tuple[Op, ...]]
    idle: tuple[Op, ...]


def persistent_program(
    name: str, dealt: Sequence[list[Turn]], roles: Roles, *, registers: int, smem: int, args: int
) -> tuple[RecordedProgram, Tiles]:
    """Return the program with a row of code for each TB, and the tiles of its launch."""
    rows = []
    for turns in dealt:
        row = [roles.producer(turns), *[roles.idle] * 3]
        for group in range(GROUPS):
            led, others = roles.consumer(turns, group, True), roles.consumer(turns, group, False)
            row += [led, *[others] * 3]
        rows.append(tuple(row))
    program = warp_specialized(
        name, rows, np.arange(len(rows), dtype=np.uint32), registers=registers, smem=smem, args=args
    )
    return program, Tiles((len(rows), 1, 1), 1)


def turn_accesses(dealt: Sequence[list[Turn]], of: Callable[[Turn], Sequence[Touched]]) -> tuple[Access, ...]:
    """Return the accesses of all turns; ``of`` gives what a tile touches."""
    most = max(len(turns) for turns in dealt)
    made: list[Access] = []
    for number in range(most):
        held = [of(turns[number]) if number < len(turns) else () for turns in dealt]
        some = next(each for each in held if each)
        for at, (tensor, mode, *_) in enumerate(some):
            edges = [each[at][2:] if each else (0, 0, 0, 0) for each in held]
            made.append(Access(tensor, mode, _Edges(np.array(edges, np.int64))))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class _Edges:
    """Regions: what each TB touches."""

    edges: Ints

    def __call__(self, tbs: Ints) -> Ints:
        """Return the regions of ``tbs``."""
        return self.edges[np.asarray(tbs, np.int64)]
