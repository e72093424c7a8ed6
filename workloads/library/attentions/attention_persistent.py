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

from .attention_problem import Attention

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Mode, Tensor
    from pysim.program.recorded_program import RecordedProgram
    from pysim.program.warp_program import Op

    Ints = NDArray[np.int64]

MOST_TBS = 132  # of a grid: SMs of the H200, one TB each
ROWS = 128  # of a tile: 64 of each consumer group
GROUPS, WARPS = 2, 12
TILE_STEPS = 1.2  # what a tile costs besides its steps, in steps: 2,000 to 4,000 cycles, steps 1,900 to 2,700
SHUFFLE = 23  # cycles


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


def box(arg: int, problem: Attention, first: int, rows: int, step: int, tensor: Tensor) -> Box:
    """Return the box of ``rows`` rows from row ``first`` of a tensor on, ``step`` rows on in each step."""
    pitch = tensor.cols * tensor.item
    row, col = (first, 0, 0, 0, 0, 0, step), (0, 0, 0, 0, 0, 0, 0)
    return Box(arg, rows, pitch, pitch, tensor.rows, pitch, row, col)


def multiply(code: PipelinedCode, n: int, count: int) -> None:
    """Add ``count`` asynchronous m64 x n multiplies of 16 of k."""
    one = multiply_cycles(n)
    code.multiply(cycles=count * one, count=count, latency=max(1, round(60 + n / 2 - one)))


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


def turn_accesses(
    dealt: Sequence[list[Turn]], of: Callable[[Turn], Sequence[tuple[Tensor, Mode, int, int]]]
) -> tuple[Access, ...]:
    """Return the accesses of all turns; ``of`` gives tensor, mode, first and end row for a tile."""
    most = max(len(turns) for turns in dealt)
    made: list[Access] = []
    for number in range(most):
        held = [of(turns[number]) if number < len(turns) else () for turns in dealt]
        some = next(each for each in held if each)
        for at, (tensor, mode, *_) in enumerate(some):
            edges = [(each[at][2], each[at][3]) if each else (0, 0) for each in held]
            made.append(Access(tensor, mode, _Rows(np.array(edges, np.int64), tensor.cols)))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Regions: whole rows of each TB."""

    edges: Ints
    cols: int

    def __call__(self, tbs: Ints) -> Ints:
        """Return the rows of ``tbs``."""
        edges = self.edges[np.asarray(tbs, np.int64)]
        zero = np.zeros(len(edges), np.int64)
        ends = np.where(edges[:, 1] > edges[:, 0], self.cols, 0)
        return np.stack([edges[:, 0], edges[:, 1], zero, ends], 1)
