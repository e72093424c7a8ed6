"""Builder of op lists for pipelined programs: tiles in turn, bulk copies, rings of barriers, clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pysim.errors import WorkloadError
from pysim.params import PIPES

from .warp_program import OP, PIPE, Code, Op

if TYPE_CHECKING:
    from .tiles import Box

SAME_M, SAME_N = (
    1,
    2,
)  # thread blocks of a cluster at the same place in m, in n; GS_TO_* in core_c/gs_program.h
_TURNS = 65535  # of a loop that op TURN leaves


class Ring(NamedTuple):
    """A ring of barriers: ``stages`` of them from ``first`` on; a phase of each has ``arrivals``."""

    first: int
    stages: int
    arrivals: int


@dataclass(slots=True)
class PipelinedCode(Code):
    """Builds the op list of one warp of a kernel with :class:`~pysim.program.tiles.Tiles`.

    The warp has a cursor, which counts the steps that it has gone through: it names the barrier of a ring and
    the phase of that barrier.

    >>> full = Ring(0, 4, 1)
    >>> code = PipelinedCode()
    >>> tile = code.turn_begin()
    >>> step = code.steps_begin()
    >>> code.ring_wait(full)
    >>> code.multiply(cycles=128, count=4, latency=60)
    >>> code.multiply_wait(1)
    >>> code.advance()
    >>> code.steps_end(step)
    >>> code.turn_end(tile)
    >>> code.exit()
    >>> code.ops[tile].target
    8
    """

    def turn_begin(self, *, start: int = 0, step: int = 1) -> int:
        """Take the next tile; return the position that :meth:`turn_end` takes.

        The first one is the ``start``-th of the thread block, 0 to 2, others follow ``step`` after it.
        """
        self._add("TURN", level=start, count=step)
        return len(self.ops) - 1

    def turn_end(self, begin: int) -> None:
        """Go back to :meth:`turn_begin`; the code goes on here when no tile is left."""
        self._add("LOOP", level=1, count=_TURNS, target=begin)
        turn = self.ops[begin]
        self.ops[begin] = Op(OP["TURN"], level=turn.level, count=turn.count, target=len(self.ops))

    def steps_begin(self) -> int:
        """Begin the loop over the steps of a tile; return the position that :meth:`steps_end` takes."""
        return len(self.ops)

    def steps_end(self, begin: int) -> None:
        """Repeat the ops since ``begin`` as often as the tile has steps (``Tiles.steps``)."""
        self._add("LOOP", level=0, per_warp=1, target=begin)

    def advance(self) -> None:
        """Move the cursor to the next step."""
        self._add("ADVANCE", count=1)

    def skip_tile(self) -> None:
        """Move the cursor past the steps of a tile that other warps compute."""
        self._add("ADVANCE", per_warp=1)

    def ring_wait(self, ring: Ring, *, emptied: bool = False, ahead: int = 0) -> None:
        """Wait until the phase of the cursor's stage, ``ahead`` steps on, has ended.

        ``emptied``: until the phase before has: a stage is empty before its first use.
        """
        self._add(
            "RING_WAIT", count=ring.first, stages=ring.stages, chain=int(emptied), count_plus=ahead, issue=1
        )

    def ring_arrive(self, ring: Ring, *, to: int = 0, behind: int = 0, not_first: bool = False) -> None:
        """Arrive at the stage of ``behind`` steps ago, of the thread blocks ``to`` (``SAME_M | SAME_N``).

        ``not_first``: not in the first step of a tile.
        """
        self._add(
            "RING_ARRIVE",
            count=ring.first,
            stages=ring.stages,
            conflicts=ring.arrivals,
            smem=to,
            count_plus=ring.stages - behind if behind else 0,
            per_warp=int(not_first),
            issue=1,
        )

    def bulk_load(self, ring: Ring, box: Box, *, to: int = 0) -> None:
        """Copy a box into shared memory of the thread blocks ``to``; it arrives at the stage of each."""
        self._add(
            "BULK_LOAD",
            count=ring.first,
            stages=ring.stages,
            conflicts=ring.arrivals,
            smem=to,
            issue=1,
            box=box,
        )

    def bulk_store(self, box: Box) -> None:
        """Copy a box from shared memory; :meth:`wait_operands_read` waits until it has been read."""
        self._add("BULK_STORE", issue=1, box=box)

    def multiply(self, *, cycles: float, count: int, latency: int, issue: int = 7) -> None:
        """Add asynchronous multiplies, a group: the warp goes on when they have issued.

        ``cycles``: of the sub-core's tensor pipe for all ``count``; ``latency``: cycles from there to the
        results; ``issue``: slots of each. Raises WorkloadError for none.
        """
        if count <= 0 or cycles <= 0:
            raise WorkloadError(f"{count} multiplies of {cycles} cycles: must be positive")
        pipes = [0] * len(PIPES)
        pipes[PIPE["tensor"]] = count
        self._add(
            "COMPUTE",
            issue=issue * count,
            pipes=tuple(pipes),
            chain=latency,
            per_warp=1,
            count_plus=round(cycles * 64),
        )

    def multiply_wait(self, left: int) -> None:
        """Wait until at most ``left`` groups of the warp's multiplies are under way, 0 to 7."""
        self._add("MULTIPLY_WAIT", count=left, issue=1)

    def named_barrier(self, number: int, warps: int) -> None:
        """Add a barrier of ``warps`` warps, which all name ``number``, 1 to 15."""
        self._add("BARRIER", issue=1, count=number, chain=warps)

    def cluster_barrier(self) -> None:
        """Add a barrier of all warps of the cluster's thread blocks."""
        self._add("CLUSTER", issue=1)
