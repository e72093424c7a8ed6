"""Hazards of programmatic dependent launch: accesses that may meet those of a kernel that has not ended.

A kernel may touch, before its wait, what no kernel writes that may still run, and write what none of them
touches; behind its wait the same holds of kernels for whose end it has not waited. Accesses are compared in
sectors, as dependences and the oracle compare them. The verdict is of the worst timing: a hazard need not
show in a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import InputError, WorkloadError
from pysim.program.access_regions import SharedRegions
from pysim.program.regions import SECTOR, union

from .conflicts import Conflicts
from .order import Ended, OrderWalk, ended_before
from .places import (
    AHEAD,
    EVERYWHERE,
    LATEST,
    START,
    Cuts,
    Moved,
    cuts_of,
    described,
    end_of,
    has_code,
    loads_behind,
    op_lists,
    out_of_loops,
)
from .plan import NORMAL, Placed, Row, may_be_early, row_of, trigger_cuts
from .touched import AccessOfOp, TouchedByKernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.job import Job

    Ints = NDArray[np.int64]


MOST_KERNELS = 20_000  # whose sets of kernels fit in memory
MOST_HAZARDS = 10_000


@dataclass(frozen=True, slots=True)
class Hazard:
    """Accesses of kernel ``after`` that may meet those of kernel ``before``, which may not have ended.

    ``kind``: RAW, WAR or WAW. ``waited``: they come behind the wait of ``after``. ``tbs``, ``others``: TBs of
    ``after`` and of ``before`` that touch the bytes (n, 2), which are whole sectors of ``tensor``.
    """

    before: int
    after: int
    kind: str
    waited: bool
    tensor: str
    address: int
    bytes: Ints
    tbs: Ints
    others: Ints


class PdlCheck:
    """The hazards of placements of one job.

    Raises WorkloadError where the job has several streams, kernels of which the code is not known, or more
    than ``MOST_KERNELS`` launches.
    """

    def __init__(self, job: Job) -> None:
        if len(job.kernels) > MOST_KERNELS:
            raise WorkloadError(f"job {job.name}: {len(job.kernels):,} launches: at most {MOST_KERNELS:,}")
        self.job, self.able = job, may_be_early(job)
        self._touched = TouchedByKernels(SharedRegions())
        self._declared = [
            self._touched.declared(kernel, f"kernel {number} ({kernel.name})") if kernel.accesses else []
            for number, kernel in enumerate(job.kernels)
        ]
        self._conflicts = Conflicts(self._declared)
        self._ops: dict[int, list[AccessOfOp]] = {}

    def _by_ops(self, number: int) -> list[AccessOfOp]:
        if number not in self._ops:
            kernel = self.job.kernels[number]
            self._ops[number] = self._touched.by_ops(kernel, self._declared[number])
        return self._ops[number]

    def ended(self, placed: Sequence[Placed]) -> list[Ended]:
        """Return what has surely ended before each kernel."""
        return ended_before([launch.order for launch in placed])

    def hazards(self, placed: Sequence[Placed]) -> list[Hazard]:
        """Return the hazards of a placement, by later kernel and then by earlier one.

        Once there are ``MOST_HAZARDS``, those of later kernels are left out.
        """
        made: list[Hazard] = []
        for number, (launch, ended) in enumerate(zip(placed, self.ended(placed), strict=True)):
            if launch.early and len(made) < MOST_HAZARDS:
                made += self.hazards_of(number, launch, ended)
        return made

    def hazards_of(self, number: int, launch: Placed, ended: Ended) -> list[Hazard]:
        """Return the hazards of one kernel."""
        everything = (1 << number) - 1
        running = {False: everything & ~ended.start, True: everything & ~ended.waited}
        found: dict[tuple[int, str, bool, int], list[tuple[AccessOfOp, AccessOfOp, Ints]]] = {}
        for access in self._by_ops(number):
            waited = self._behind(access, launch)
            for kernel, other, shared in self._conflicts.met(access, running[waited]):
                kind = "RAW" if not access.writes else "WAW" if other.writes else "WAR"
                found.setdefault((kernel, kind, waited, other.tensor.address), []).append(
                    (access, other, shared)
                )
        return [
            self._hazard(number, *key[:3], met)
            for key, met in sorted(found.items(), key=lambda item: item[0])
        ]

    @staticmethod
    def _behind(access: AccessOfOp, launch: Placed) -> bool:
        """Whether an access comes behind the wait of a launch."""
        waits = launch.waits
        if access.number in launch.moved.get(access.ops, ()):
            return False
        at = min((0 if w is None else w for w in waits.values()), default=None) if access.ops < 0 else None
        cut = waits.get(access.ops) if access.ops >= 0 else at
        return cut is not None and access.number >= cut

    @staticmethod
    def _hazard(
        number: int,
        kernel: int,
        kind: str,
        waited: bool,
        met: Sequence[tuple[AccessOfOp, AccessOfOp, Ints]],
    ) -> Hazard:
        spans = union(np.concatenate([shared for _, _, shared in met]))
        tbs = np.unique(np.concatenate([one.touched.meeting(shared) for one, _, shared in met]))
        others = np.unique(np.concatenate([other.touched.meeting(shared) for _, other, shared in met]))
        tensor = met[0][1].tensor
        return Hazard(kernel, number, kind, waited, tensor.name, tensor.address, spans * SECTOR, tbs, others)

    def latest(self, number: int, running: int) -> tuple[dict[int, int | None], bool]:
        """Return the latest safe wait in each op list of a kernel while some kernels may run.

        The second is False where no access conflicts with one of theirs; the waits are at the end then. An op
        list without a conflict does not wait, if another does.
        """
        kernel = self.job.kernels[number]
        accesses = self._by_ops(number)
        made: dict[int, int | None] = {}
        for ops in op_lists(kernel):
            mine = [access for access in accesses if access.ops in (id(ops), -1)]
            first = next((a.number for a in mine if self._conflicts.any(a, running)), None)
            made[id(ops)] = None if first is None else out_of_loops(ops, first)
        if any(at is not None for at in made.values()):
            return made, True
        return {id(ops): end_of(ops) for ops in op_lists(kernel)}, False

    def ahead(self, number: int, running: int, waits: Cuts) -> dict[int, tuple[int, ...]]:
        """Return the loads right behind waits that conflict with no access of kernels that may run."""
        kernel = self.job.kernels[number]
        made: dict[int, tuple[int, ...]] = {}
        for ops in op_lists(kernel):
            at = waits.get(id(ops))
            loads = [] if at is None else loads_behind(ops, at)
            mine = [a for a in self._by_ops(number) if a.ops in (id(ops), -1) and a.number in loads]
            bound = {access.number for access in mine if self._conflicts.any(access, running)}
            free = tuple(load for load in loads if load not in bound)
            if free and bound:
                made[id(ops)] = free
        return made

    def first_hazard(self, number: int, running: int) -> Hazard | None:
        """Return the hazard of the first access of a kernel that conflicts while some kernels may run."""
        for access in self._by_ops(number):
            met = self._conflicts.last(access, running)
            if met is not None:
                kernel, other, shared = met
                kind = "RAW" if not access.writes else "WAW" if other.writes else "WAR"
                return self._hazard(number, kernel, kind, False, [(access, other, shared)])
        return None

    def place_of(self, number: int, waits: Cuts) -> str:
        """Return the places of waits as users read them."""
        kernel = self.job.kernels[number]
        words = [described(kernel, ops, waits.get(id(ops))) for ops in op_lists(kernel)]
        some = dict.fromkeys(word for word in words if word != "none") or {"none": None}
        return " / ".join(some)

    def placed(self, rows: Sequence[Row]) -> list[Placed]:
        """Return the launches of a plan; ``latest`` is by what may run under the plan, in launch order.

        Raises InputError for a place that a kernel does not have.
        """
        made: list[Placed] = []
        count, walk = len(self.job.kernels), OrderWalk()
        places = self.rows_of(rows)
        for number, kernel in enumerate(self.job.kernels):
            row = places[number]
            early = self.able[number] and row.early
            follows = number + 1 < count and self.able[number + 1]
            if not early and not follows:
                made.append(NORMAL)
                walk.add(NORMAL.order)
                continue
            waits: Cuts = {}
            moved: Moved = {}
            if early and row.wait in (LATEST, AHEAD):
                running = ((1 << number) - 1) & ~walk.triggered
                waits = self.latest(number, running)[0]
                moved = self.ahead(number, running, waits) if row.wait == AHEAD else {}
            elif early:
                waits = cuts_of(kernel, row.wait, f"kernel {number} ({kernel.name}): wait")
            triggers: Cuts = {}
            first = True
            if follows:
                behind = waits or {id(ops): 0 for ops in op_lists(kernel)}
                triggers, first = trigger_cuts(self.job, number, row.trigger, behind)
            made.append(Placed(early, waits, triggers, first, moved))
            walk.add(made[-1].order)
        return made

    def only(self, placed: Sequence[Placed], hazard: Hazard) -> list[Placed]:
        """Return a placement with one hazard of another, and as few others as can be.

        Only the kernels from the earlier one on start early. Those between the two wait at their start, if
        the hazard is there all the same.
        """
        made = [
            launch if hazard.before < number <= hazard.after else replace(launch, early=False)
            for number, launch in enumerate(placed)
        ]
        between = range(hazard.before + 1, hazard.after)
        orderly = list(made)
        for number in between:
            orderly[number] = made[number].waiting(cuts_of(self.job.kernels[number], START, ""))
        ended = self.ended(orderly)[hazard.after]
        known = ended.waited if hazard.waited else ended.start
        return made if known >> hazard.before & 1 else orderly

    def rows_of(self, rows: Sequence[Row]) -> list[Row]:
        """Return the row of each kernel, with the start for places that it does not have, if it may be so.

        Raises InputError for such a place in a row for one kernel, and for one that no kernel of a row has.
        """
        made: list[Row] = []
        had: dict[tuple[int, str], InputError | None] = {}
        for number, kernel in enumerate(self.job.kernels):
            row = row_of(rows, number, kernel.name)
            for what in ("wait", "trigger"):
                place = getattr(row, what)
                if place.word in EVERYWHERE or not has_code(kernel):
                    continue
                try:
                    cuts_of(kernel, place, f"kernel {number} ({kernel.name}): {what}")
                    had[id(row), what] = None
                except InputError as error:
                    if not row.lenient:
                        raise
                    had.setdefault((id(row), what), error)
                    row = replace(row, wait=START) if what == "wait" else replace(row, trigger=START)
            made.append(row)
        wrong = [error for error in had.values() if error is not None]
        if wrong:
            raise wrong[0]
        return made
