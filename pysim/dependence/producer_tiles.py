"""Producer tiles: which output tiles of earlier kernels each kernel waits for by semaphore.

A kernel waits for the tiles that it reads. Its other edges (WAR, WAW, and RAW from kernels further back)
must be implied by those waits, which ``sync_coverage`` checks. If one is not, or if no mark in the program
names what it reads, the kernel joins: it is launched after all kernels before it have ended.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.marks import (
    listed_output_tiles,
    loaded_args,
    marked_tiles,
    marks_of,
    posts_after_accesses,
    wait_positions,
    waits_along_z,
)
from pysim.program.recorded_program import RecordedProgram
from pysim.program.semaphores import KernelEdges, TileEdge, tb_coordinates

from .groups import RAW
from .intra_kernel_sync import share_workspace
from .kernel_order import reduce_preds
from .sync_coverage import SyncCoverage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Job, Kernel, Tensor

    from .dependences import Dependences


def producer_edges(job: Job, deps: Dependences, policy: str) -> KernelEdges:
    """Return the producer tiles of each kernel and which kernels join.

    ``policy``: of ``scheme.sync.policy`` (tile, row, strided, conv), or empty: no semaphores, so only joins.
    """
    return _EdgeFinder(job, deps, policy).run()


def may_wait(kernel: Kernel) -> bool:
    """Whether a kernel may wait for earlier ones in its code: not if its code is a table of a trace."""
    rewritable = not isinstance(kernel.program, RecordedProgram) or kernel.program.rewrite is not None
    return rewritable and kernel.copy is None and kernel.programmatic


def whole_kernel_edges(job: Job) -> KernelEdges:
    """Return which kernels join if all that can wait for whole kernels at their start, and no other waits."""
    aware = [may_wait(kernel) for kernel in job.kernels]
    after_event = {after for _, after in job.events}
    joins = [
        index == 0 or index in after_event or not aware[index] or not aware[index - 1]
        for index in range(len(job.kernels))
    ]
    reason = "" if any(aware) else "its programs are tables of a trace, to which no wait can be added"
    return KernelEdges(joins, [{} for _ in job.kernels], reason)


class _EdgeFinder:
    def __init__(self, job: Job, deps: Dependences, policy: str) -> None:
        self.job, self.deps, self.policy = job, deps, policy
        self.needs = [marked_tiles(k, "input") for k in job.kernels]
        self.made = [marked_tiles(k, "output") for k in job.kernels]
        self.found = KernelEdges([], [])
        self.waits: dict[int, tuple[set[int], bool]] = {}
        self.last: dict[int, bool] = {}
        self.coverage = SyncCoverage(
            deps, self.found.producers, self._same_semaphores, self._waited_before, self._posts_last
        )

    def run(self) -> KernelEdges:
        """Return the edges of all kernels, found in launch order."""
        job, found = self.job, self.found
        aware = [bool(marks_of(k)) for k in job.kernels]
        after_event = {after for _, after in job.events}  # kernels that wait for an event
        ended = -1  # kernels up to here have ended when this one starts
        for index, direct in enumerate(reduce_preds(self.deps.preds)):
            found.producers.append({})
            missing = self._reason_to_join(index, direct, ended) if self.policy else ""
            found.reason = found.reason or missing
            join = (
                index == 0
                or index in after_event
                or not aware[index]
                or not aware[index - 1]
                or bool(missing)
            )
            if join:
                ended = index - 1
                found.producers[index].clear()
                self.coverage.clear()
            found.after_all.append(join)
        return found

    def _reason_to_join(self, index: int, direct: Sequence[int], ended: int) -> str:
        """Find the producer tiles of a kernel; return why they do not order it enough, or an empty text."""
        job, mine = self.job, self.found.producers[index]
        for number in range(ended + 1, index):
            if share_workspace(job.kernels[index], job.kernels[number]):
                return f"kernels {number} and {index} leave sums in one workspace: give each its own"
        for number in direct:
            if number > ended and not self._waits_for(number, index):
                return self._not_marked(number, index)
        for number in self.deps.preds[index]:
            if number <= ended or self.coverage.covers(number, index):
                continue
            if (
                number in mine
                or not self._waits_for(number, index)
                or not self.coverage.covers(number, index)
            ):
                return self._not_covered(number, index)
        if len(mine) > 2:
            name = job.kernels[index].name
            return f"kernel {index} ({name}) reads what {len(mine)} kernels make: at most 2"
        return ""

    def _waits_for(self, number: int, index: int) -> bool:
        """Let kernel ``index`` wait for tiles of kernel ``number``; return whether marks name all it reads.

        They do if they name one output at one row offset, of which each TB makes one tile, and if no argument
        without a mark overlaps what the producer writes.
        """
        kernel, maker = self.job.kernels[index], self.job.kernels[number]
        marked = [
            (need, made, row)
            for need, made in product(self.needs[index], self.made[number])
            if (row := row_offset(kernel.args[need.arg], maker.args[made.arg])) is not None
        ]
        if len({(made.arg, row) for _, made, row in marked}) != 1:
            return False
        made = marked[0][1]
        pieces = [part for part in self.made[number] if part.arg == made.arg]
        if listed_output_tiles(maker, made) is None and (len(pieces) > 1 or made.count > 1):
            return False
        needs = sorted(dict.fromkeys(need for need, _, _ in marked), key=lambda need: need.arg)
        args = {need.arg for need in needs}
        written = [access.tensor for access in maker.accesses if access.mode != "read"]
        whole = maker.args[made.arg]
        others = [t for t in written if (t.address, t.nbytes) != (whole.address, whole.nbytes)]
        for arg in loaded_args(kernel) | args:
            if any(kernel.args[arg].overlaps(tensor) for tensor in (others if arg in args else written)):
                return False
        self.found.producers[index][number] = TileEdge(tuple(needs), *marked[0][1:])
        return True

    def _same_semaphores(self, number: int) -> NDArray[np.int64] | None:
        """Return a label for each TB, equal for TBs that post the same semaphore; None: all differ."""
        kernel, made = self.job.kernels[number], self.made[number]
        if self.policy != "row" or len(made) != 1 or listed_output_tiles(kernel, made[0]) is not None:
            return None
        return np.unique(tb_coordinates(made[0].row, kernel), return_inverse=True)[1]

    def _waited_before(self, index: int, kind: int) -> list[int]:
        """Return the kernels waited for before the first load (kind RAW) or the first store (other kinds)."""
        mine = self.found.producers[index]
        if waits_along_z(self.job.kernels[index]):
            return []  # a TB of a split-K GEMM waits only for the tiles of its part of K
        if index not in self.waits:
            self.waits[index] = wait_positions(self.job.kernels[index])
        first, writes_last = self.waits[index]
        if kind == RAW:
            return [number for number, edge in mine.items() if first.issuperset(n.arg for n in edge.inputs)]
        return list(mine) if writes_last else []

    def _posts_last(self, number: int) -> bool:
        """Whether the TBs of a kernel post once, after all their accesses."""
        if number not in self.last:
            self.last[number] = posts_after_accesses(self.job.kernels[number])
        return self.last[number]

    def _not_marked(self, before: int, after: int) -> str:
        """Return the error for two dependent kernels whose programs have no mark for it."""
        return f"{self._depends(before, after)}, and their programs do not say where, or say several places"

    def _not_covered(self, before: int, after: int) -> str:
        """Return the error for an edge that the waits for tiles do not imply."""
        pair = self._depends(before, after, before not in self.found.producers[after])
        return f"{pair}, which is not known to be done by the tiles that it waits for"

    def _depends(self, before: int, after: int, reads: bool = True) -> str:
        kernels, edges = self.job.kernels, self.deps.edges
        pair = (edges["producer"] == before) & (edges["consumer"] == after)
        reads = reads and bool(edges["raw"][pair].any())
        verbs = ("reads what", "makes") if reads else ("writes memory that", "uses")
        names = [f"kernel {number} ({kernels[number].name})" for number in (after, before)]
        return f"{names[0]} {verbs[0]} {names[1]} {verbs[1]}"


def row_offset(part: Tensor, whole: Tensor) -> int | None:
    """Return the row of ``whole`` at which ``part`` begins; None: it is no range of whole rows of it."""
    row, rest = divmod(part.address - whole.address, whole.pitch)
    fits = (part.cols, part.item) == (whole.cols, whole.item) and 0 <= row <= whole.rows - part.rows
    return row if fits and rest == 0 else None
