"""Hints of what kernels will touch, as ``tb_bloom`` looks them up in signatures of what is unfinished.

Software attaches to each launch the ranges that its TBs will read and write. They are cut into granules; TBs
that share a signature are a *unit*. What is found when (scheduler/bloom.c) depends on who has ended by then.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.dependence.interval_sweep import recorded_intervals
from pysim.dependence.intra_kernel_sync import intra_kernel_waits
from pysim.errors import WorkloadError
from pysim.params import PARAMS
from pysim.program.access_regions import regions_of
from pysim.program.regions import SECTOR, csr_offsets, merge_sorted, sorted_unique
from pysim.program.written_memory import written_by_job

from . import hardware_cost
from .core_tables import CoreTables
from .dependence_table import PROLOGUE, TableScheme
from .hardware_cost import Structure
from .known_edges import Hints, KnownEdges
from .options import COHERENCE, PLACEMENTS, PRIORITIES, SchemeOption
from .scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job, Kernel

    from .hardware_cost import Sizes

    Ints = NDArray[np.int64]
    # (written, first sectors, ends, sets, TBs of all sets, where those of each set begin)
    _Part = tuple[bool, Ints, Ints, Ints, Ints, Ints]

PER = next(p for p in PARAMS["scheme.bloom"] if p.name == "per").choices
RATE = 1 << 24  # what a share of 1 is in the core's table
MOST = 1 << 26  # granules of a launch


def analytic_rate(granules: NDArray[np.int64], bits: int, hashes: int) -> NDArray[np.float64]:
    """Return the share of false answers of signatures with so many granules: (1 - e^(-kn/m))^k."""
    made: NDArray[np.float64] = (1 - np.exp(-hashes * granules / bits)) ** hashes
    return made


def signature_bytes(values: Mapping[str, int]) -> int:
    """Return what the memory holds for a unit: two signatures, and a bit for each unit that may wait."""
    each = hardware_cost.signature(values["scheme.bloom.bits"], values["scheme.bloom.signatures"])
    return math.ceil(hardware_cost.each_bytes(each))


def unit_size(tbs: int, values: Mapping[str, int]) -> int:
    """Return how many TBs of a kernel share a signature: no kernel takes more than half of them."""
    word = PER[values["scheme.bloom.per"]]
    size = {"tb": 1, "group": values["scheme.bloom.group"], "kernel": tbs}[word]
    room = -(-values["scheme.bloom.signatures"] // 64) * 64 // 2
    while -(-tbs // size) > room:
        size *= 2
    return size


def _parts(index: int, kernel: Kernel) -> Iterator[_Part]:
    """Return what TBs touch; who waits inside for others hints at what those touch too."""
    waiters = intra_kernel_waits(kernel)
    if kernel.footprint is not None:
        for part in recorded_intervals(index, kernel.footprint.sector_runs(kernel.tbs, kernel.name)):
            yield part.written, part.lo, part.hi, part.owner, part.tbs, part.ptr
    for access in kernel.accesses:
        regions = regions_of(access, kernel.tbs)
        if len(regions):
            lo, hi, owner = regions.intervals()
            tbs, ptr = regions.tbs, regions.ptr
            if waiters is not None:
                tbs, ptr = waiters.sets_with_waiters(tbs, ptr)
            yield access.mode != "read", lo, hi, owner, tbs, ptr


def _joined(lo: Ints, hi: Ints, key: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the union of runs of each key, sorted."""
    order = np.lexsort((lo, key))
    return merge_sorted(lo[order], hi[order], key[order])


class _Builder:
    """Collects the tables, launch by launch."""

    def __init__(self, job: Job, values: Mapping[str, int]) -> None:
        self.values = values
        self.written = np.zeros((0, 2), np.int64) if values["scheme.bloom.constants"] else written_by_job(job)
        self.runs: list[Ints] = []
        self.sets: list[tuple[int, int, int, int, int]] = []
        self.set_units: list[Ints] = []
        self.unit_sets: list[Ints] = []
        self.unit_counts: list[Ints] = []
        self.rates: list[NDArray[np.uint32]] = []
        self.hints = self.numbers = 0

    def _granules(self, lo: Ints, hi: Ints, owner: Ints, *, written: bool) -> tuple[Ints, Ints, Ints]:
        """Return the granules of hinted runs of sectors."""
        if not written and not self.values["scheme.bloom.constants"]:
            at = np.searchsorted(self.written[:, 0], hi * SECTOR) - 1
            keep = at >= 0
            keep[keep] = self.written[at[keep], 1] > lo[keep] * SECTOR
            lo, hi, owner = lo[keep], hi[keep], owner[keep]
        size = self.values["scheme.bloom.granule"]
        more = (hi - lo) * SECTOR * (self.values["scheme.bloom.widen"] - 100) // 200
        first = np.maximum(lo * SECTOR - more, 0) // size
        return _joined(first, -(-(hi * SECTOR + more) // size), owner)

    def add(self, index: int, kernel: Kernel, size: int) -> tuple[int, int]:
        """Add the hints of a launch; return how many sets there are and how many granules they name."""
        units = -(-kernel.tbs // size)
        found: dict[tuple[bool, bytes], list[Ints]] = {}
        members: dict[bytes, Ints] = {}
        for written, lo, hi, owner, tbs, ptr in _parts(index, kernel):
            first, end, owner = self._granules(lo, hi, owner, written=written)
            cuts = np.searchsorted(owner, np.arange(len(ptr))).tolist()
            rows = np.stack([first, end], axis=1)
            for number in range(len(ptr) - 1):
                if cuts[number] < cuts[number + 1]:
                    who = tbs[ptr[number] : ptr[number + 1]]
                    who = who if size == 1 else sorted_unique(who // size)
                    key = who.tobytes()
                    members[key] = who
                    found.setdefault((written, key), []).append(rows[cuts[number] : cuts[number + 1]])
        sets: list[tuple[bool, Ints, Ints]] = []
        for (written, key), runs in found.items():
            whole = runs[0]
            if len(runs) > 1:
                every = np.concatenate(runs)
                lo, hi, _ = _joined(every[:, 0], every[:, 1], np.zeros(len(every), np.int64))
                whole = np.stack([lo, hi], axis=1)
            sets.append((written, whole, members[key]))
        named = sum(int((runs[:, 1] - runs[:, 0]).sum()) for _, runs, _ in sets)
        if named > MOST:
            raise WorkloadError(
                f"kernel {kernel.name}: hints of {named:,} granules: at most {MOST:,};"
                " scheme.bloom.granule makes them larger"
            )
        self._append(sets, units)
        return len(sets), named

    def _append(self, sets: list[tuple[bool, Ints, Ints]], units: int) -> None:
        begin = len(self.sets)
        for written, runs, who in sets:
            self.sets.append((self.hints, len(runs), self.numbers, len(who), int(written)))
            self.runs.append(runs)
            self.set_units.append(who)
            self.hints += len(runs)
            self.numbers += len(who)
        sizes = np.array([len(who) for _, _, who in sets], np.int64)
        which = np.repeat(np.arange(begin, begin + len(sets), dtype=np.int64), sizes)
        who = np.concatenate([np.zeros(0, np.int64), *(who for _, _, who in sets)])
        order = np.argsort(who, kind="stable")
        self.unit_sets.append(which[order])
        self.unit_counts.append(np.bincount(who, minlength=units).astype(np.int64))
        both = [
            self._rate([(r, w) for written, r, w in sets if written == side], units) for side in (False, True)
        ]
        self.rates.append(np.stack(both, axis=1).reshape(-1))

    def _rate(self, sets: list[tuple[Ints, Ints]], units: int) -> NDArray[np.uint32]:
        """Return what share of false answers the signature of each unit is expected to give."""
        count = np.zeros(units, np.int64)
        if sets:
            lo = np.concatenate([np.tile(runs[:, 0], len(who)) for runs, who in sets])
            hi = np.concatenate([np.tile(runs[:, 1], len(who)) for runs, who in sets])
            key = np.concatenate([np.repeat(who, len(runs)) for runs, who in sets])
            lo, hi, key = _joined(lo, hi, key)
            np.add.at(count, key, hi - lo)
        share = analytic_rate(count, self.values["scheme.bloom.bits"], self.values["scheme.bloom.hashes"])
        return np.rint(share * RATE).astype(np.uint32)

    def tables(self) -> dict[str, NDArray[np.generic]]:
        """Return the core's tables by the name of their member of ``gs_job``."""
        from pysim._ffi import dtype_of

        none = np.zeros(0, np.int64)
        runs = np.concatenate([np.zeros((0, 2), np.int64), *self.runs])
        hints: NDArray[np.void] = np.zeros(len(runs), dtype_of("gs_hint"))
        hints["first"], hints["end"] = runs.T.astype(np.uint64)
        sets: NDArray[np.void] = np.zeros(len(self.sets), dtype_of("gs_hint_set"))
        for at, name in enumerate(("first_hint", "hints", "first_unit", "units", "written")):
            sets[name] = [row[at] for row in self.sets]
        return {
            "hints": hints,
            "hint_sets": sets,
            "set_units": np.concatenate([none, *self.set_units]).astype(np.uint32),
            "unit_ptr": csr_offsets(np.concatenate([none, *self.unit_counts])).astype(np.uint32),
            "unit_sets": np.concatenate([none, *self.unit_sets]).astype(np.uint32),
            "rates": np.concatenate([np.zeros(0, np.uint32), *self.rates]),
        }


def hints_of(job: Job, values: Mapping[str, int]) -> Hints:
    """Return the hints of all launches; copies always say what they write."""
    count = len(job.kernels)
    share = values["scheme.bloom.missing"] / 65536
    lost = np.random.default_rng(values["sim.seed"]).random(count) < share
    launch = {
        name: np.zeros(count, np.uint32) for name in ("unit_tbs", "units", "first_unit", "first_set", "sets")
    }
    barrier = np.zeros(count, np.uint32)
    granules = np.zeros(count, np.int64)
    made = _Builder(job, values)
    begin = 0
    for index, kernel in enumerate(job.kernels):
        if lost[index] and kernel.copy is None:
            barrier[index] = 1
            continue
        size = unit_size(kernel.tbs, values)
        launch["first_set"][index] = len(made.sets)
        launch["unit_tbs"][index], launch["units"][index] = size, -(-kernel.tbs // size)
        launch["first_unit"][index] = begin
        launch["sets"][index], granules[index] = made.add(index, kernel, size)
        begin += -(-kernel.tbs // size)
    # what costs nothing costs nothing here, too
    paid = np.where([k.copy is None or k.copy.timed for k in job.kernels], granules, 0)
    asked = paid * values["scheme.bloom.lookup"] + (paid > 0) * values["scheme.bloom.latency"]
    entered = paid * values["scheme.bloom.insert"]
    return Hints(made.tables(), launch, barrier, granules, asked.astype(np.uint64), entered.astype(np.uint64))


class BloomTable(TableScheme):
    """The table with edges that the core finds in signatures, and not those of the job."""

    def known_edges(self, job: Job, deps: Dependences, values: Mapping[str, int]) -> KnownEdges:
        """Return the hints, and what their look-ups cost; the edges are the true ones."""
        hints = hints_of(job, values)
        return KnownEdges(deps, hints.barrier, hints.look_up, hints.enter, hints=hints)

    def core_order(self, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
        """Return the order of a table that brings nothing in from memory."""
        return Scheme.core_order(self, job, values) | {"bloom": 1}

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the tables of hints, in place of nodes."""
        made = super().core_tables(job, known, values)
        assert known.hints is not None
        return CoreTables(
            made.preds,
            made.order,
            launches=made.launches | known.hints.launch,
            entry_bytes=signature_bytes(values),
            hints=known.hints.tables,
        )

    def add_forms(
        self, tables: CoreTables, job: Job, known: KnownEdges, values: Mapping[str, int]
    ) -> CoreTables:
        """Return the tables as they are: there are no nodes."""
        return tables

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return the signatures and the window."""
        count = values["scheme.bloom.signatures"]
        unit = hardware_cost.signature(values["scheme.bloom.bits"], count)
        return [Structure("signatures", count, unit), *hardware_cost.pool(sizes)]


TB_BLOOM = BloomTable(
    "tb_bloom",
    "A TB waits for those in whose Bloom signatures its hinted addresses are found.",
    "gpu.cp.stream_gap",
    options=PRIORITIES
    | COHERENCE
    | PLACEMENTS
    | PROLOGUE
    | {"exact": SchemeOption("signatures without false answers", (("scheme.bloom.signature", "exact"),))},
)
