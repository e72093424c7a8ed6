"""Which kernels of a job wait for tiles of which, as far as their programs say enough, and where they join.

A kernel waits for the tiles of what it reads. Whatever else it must come behind has to be done by then:
what it writes over, and what it reads of kernels that those seem to imply (``covered``). Where that is not
so, or no mark tells what a kernel needs, it is launched when all before it have ended.
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
from pysim.program.semaphores import KernelEdges, TileEdge, tb_coordinates

from .dependences import reduced
from .groups import RAW
from .intra_kernel_sync import one_workspace
from .sync_coverage import Known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Job, Tensor

    from .dependences import Dependences


def edges_of(job: Job, deps: Dependences, policy: str) -> KernelEdges:
    """Return what each kernel waits for; without semaphores (no ``policy``) only where kernels join."""
    return _Finder(job, deps, policy).run()


class _Finder:
    def __init__(self, job: Job, deps: Dependences, policy: str) -> None:
        self.job, self.deps, self.policy = job, deps, policy
        self.needs = [marked_tiles(k, "input") for k in job.kernels]
        self.made = [marked_tiles(k, "output") for k in job.kernels]
        self.found = KernelEdges([], [])
        self.waits: dict[int, tuple[set[int], bool]] = {}
        self.last: dict[int, bool] = {}
        self.known = Known(deps, self.found.producers, self._alike, self._ahead, self._ends)

    def run(self) -> KernelEdges:
        """Go through the kernels in launch order."""
        job, found = self.job, self.found
        aware = [bool(marks_of(k)) for k in job.kernels]
        behind = {after for _, after in job.events}  # an event
        ended = -1  # kernels up to here have ended when this one starts
        for index, direct in enumerate(reduced(self.deps.preds)):
            found.producers.append({})
            missing = self._missing(index, direct, ended) if self.policy else ""
            found.reason = found.reason or missing
            join = index == 0 or index in behind or not aware[index] or not aware[index - 1] or bool(missing)
            if join:
                ended = index - 1
                found.producers[index].clear()
                self.known.forget()
            found.after_all.append(join)
        return found

    def _missing(self, index: int, direct: Sequence[int], ended: int) -> str:
        """Find what a kernel waits for; return why that is not enough, or nothing."""
        job, mine = self.job, self.found.producers[index]
        for number in range(ended + 1, index):
            if one_workspace(job.kernels[index], job.kernels[number]):
                return f"kernels {number} and {index} leave sums in one workspace: give each its own"
        for number in direct:
            if number > ended and not self._waits_for(number, index):
                return self._unsaid(number, index)
        for number in self.deps.preds[index]:
            if number <= ended or self.known.covers(number, index):
                continue
            if number in mine or not self._waits_for(number, index) or not self.known.covers(number, index):
                return self._unproven(number, index)
        if len(mine) > 2:
            name = job.kernels[index].name
            return f"kernel {index} ({name}) reads what {len(mine)} kernels make: at most 2"
        return ""

    def _waits_for(self, number: int, index: int) -> bool:
        """Let a kernel wait for what it reads of another; return whether marks tell all of that.

        They tell of one place, which its TBs make in one piece each, and no argument without a mark holds
        what the other kernel makes.
        """
        kernel, maker = self.job.kernels[index], self.job.kernels[number]
        told = [
            (need, made, row)
            for need, made in product(self.needs[index], self.made[number])
            if (row := rows_into(kernel.args[need.arg], maker.args[made.arg])) is not None
        ]
        if len({(made.arg, row) for _, made, row in told}) != 1:
            return False
        made = told[0][1]
        pieces = [part for part in self.made[number] if part.arg == made.arg]
        if listed_output_tiles(maker, made) is None and (len(pieces) > 1 or made.count > 1):
            return False
        needs = sorted(dict.fromkeys(need for need, _, _ in told), key=lambda need: need.arg)
        args = {need.arg for need in needs}
        written = [access.tensor for access in maker.accesses if access.mode != "read"]
        whole = maker.args[made.arg]
        others = [t for t in written if (t.address, t.nbytes) != (whole.address, whole.nbytes)]
        for arg in loaded_args(kernel) | args:
            if any(kernel.args[arg].overlaps(tensor) for tensor in (others if arg in args else written)):
                return False
        self.found.producers[index][number] = TileEdge(tuple(needs), *told[0][1:])
        return True

    def _alike(self, number: int) -> NDArray[np.int64] | None:
        """Return a number for each TB that those have in common that post the same semaphores."""
        kernel, made = self.job.kernels[number], self.made[number]
        if self.policy != "row" or len(made) != 1 or listed_output_tiles(kernel, made[0]) is not None:
            return None
        return np.unique(tb_coordinates(made[0].row, kernel), return_inverse=True)[1]

    def _ahead(self, index: int, kind: int) -> list[int]:
        """Return which kernels a kernel has waited for before it reads (kind RAW), or before it writes."""
        mine = self.found.producers[index]
        if waits_along_z(self.job.kernels[index]):
            return []  # a part of a split K waits for its share of what its accesses say
        if index not in self.waits:
            self.waits[index] = wait_positions(self.job.kernels[index])
        first, writes_last = self.waits[index]
        if kind == RAW:
            return [number for number, edge in mine.items() if first.issuperset(n.arg for n in edge.inputs)]
        return list(mine) if writes_last else []

    def _ends(self, number: int) -> bool:
        """Whether the TBs of a kernel post once, behind all that they do."""
        if number not in self.last:
            self.last[number] = posts_after_accesses(self.job.kernels[number])
        return self.last[number]

    def _unsaid(self, before: int, after: int) -> str:
        """Say of two kernels that one depends on the other and no mark tells where."""
        return f"{self._depends(before, after)}, and their programs do not say where, or say several places"

    def _unproven(self, before: int, after: int) -> str:
        """Say of two kernels that what one waits for is not known to put it behind the other."""
        pair = self._depends(before, after, before not in self.found.producers[after])
        return f"{pair}, which is not known to be done by the tiles that it waits for"

    def _depends(self, before: int, after: int, reads: bool = True) -> str:
        kernels, edges = self.job.kernels, self.deps.edges
        pair = (edges["producer"] == before) & (edges["consumer"] == after)
        reads = reads and bool(edges["raw"][pair].any())
        verbs = ("reads what", "makes") if reads else ("writes memory that", "uses")
        names = [f"kernel {number} ({kernels[number].name})" for number in (after, before)]
        return f"{names[0]} {verbs[0]} {names[1]} {verbs[1]}"


def rows_into(part: Tensor, whole: Tensor) -> int | None:
    """Return at which row of a tensor another begins that is the same memory; None: it is not."""
    row, rest = divmod(part.address - whole.address, whole.pitch)
    fits = (part.cols, part.item) == (whole.cols, whole.item) and 0 <= row <= whole.rows - part.rows
    return row if fits and rest == 0 else None
