"""Scheme ``tb_bloom``: edges found by looking address hints up in Bloom signatures of unfinished TBs.

Software attaches to each launch the address ranges that its TBs will read and write (hints), cut into
granules. TBs that share a signature are a *unit*. The core looks hints up at run time (scheduler/bloom.c),
so the edges found depend on which units have completed by then.
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

SIGNATURE_UNITS = next(p for p in PARAMS["scheme.bloom"] if p.name == "per").choices
RATE_SCALE = 1 << 24  # rates in the core's table are fixed-point: this is 1.0
MAX_GRANULES = 1 << 26  # granules that the hints of one launch may name


def false_positive_rate(granules: NDArray[np.int64], bits: int, hashes: int) -> NDArray[np.float64]:
    """Return the expected false-positive rate of signatures that hold n granules: (1 - e^(-kn/m))^k.

    ``granules``: n of each signature; ``bits``: m; ``hashes``: k.
    """
    made: NDArray[np.float64] = (1 - np.exp(-hashes * granules / bits)) ** hashes
    return made


def signature_bytes(values: Mapping[str, int]) -> int:
    """Return the bytes of a unit: a read and a write signature, and a bit for each unit that may wait."""
    each = hardware_cost.signature_fields(values["scheme.bloom.bits"], values["scheme.bloom.signatures"])
    return math.ceil(hardware_cost.entry_bytes(each))


def tbs_per_signature(tbs: int, values: Mapping[str, int]) -> int:
    """Return how many TBs of a kernel of ``tbs`` TBs share a signature.

    No kernel takes more than half of ``scheme.bloom.signatures``.
    """
    word = SIGNATURE_UNITS[values["scheme.bloom.per"]]
    size = {"tb": 1, "group": values["scheme.bloom.group"], "kernel": tbs}[word]
    room = -(-values["scheme.bloom.signatures"] // 64) * 64 // 2
    while -(-tbs // size) > room:
        size *= 2
    return size


def _accesses(index: int, kernel: Kernel) -> Iterator[_Part]:
    """Yield the accesses of a kernel; a TB that waits for TBs of its kernel includes their accesses."""
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


def _merged_ranges(lo: Ints, hi: Ints, key: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the union of the ranges of each key, sorted."""
    order = np.lexsort((lo, key))
    return merge_sorted(lo[order], hi[order], key[order])


class _Builder:
    """Builds the tables of hints, launch by launch."""

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
        """Return the granule ranges of hinted sector ranges."""
        if not written and not self.values["scheme.bloom.constants"]:
            at = np.searchsorted(self.written[:, 0], hi * SECTOR) - 1
            keep = at >= 0
            keep[keep] = self.written[at[keep], 1] > lo[keep] * SECTOR
            lo, hi, owner = lo[keep], hi[keep], owner[keep]
        size = self.values["scheme.bloom.granule"]
        more = (hi - lo) * SECTOR * (self.values["scheme.bloom.widen"] - 100) // 200
        first = np.maximum(lo * SECTOR - more, 0) // size
        return _merged_ranges(first, -(-(hi * SECTOR + more) // size), owner)

    def add(self, index: int, kernel: Kernel, size: int) -> tuple[int, int]:
        """Add the hints of a launch; return (sets of units with equal hints, granules that these name)."""
        units = -(-kernel.tbs // size)
        found: dict[tuple[bool, bytes], list[Ints]] = {}
        members: dict[bytes, Ints] = {}
        for written, lo, hi, owner, tbs, ptr in _accesses(index, kernel):
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
                lo, hi, _ = _merged_ranges(every[:, 0], every[:, 1], np.zeros(len(every), np.int64))
                whole = np.stack([lo, hi], axis=1)
            sets.append((written, whole, members[key]))
        named = sum(int((runs[:, 1] - runs[:, 0]).sum()) for _, runs, _ in sets)
        if named > MAX_GRANULES:
            raise WorkloadError(
                f"kernel {kernel.name}: hints of {named:,} granules: at most {MAX_GRANULES:,};"
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
        """Return the expected false-positive rate of each unit's signature, in ``RATE_SCALE``ths."""
        count = np.zeros(units, np.int64)
        if sets:
            lo = np.concatenate([np.tile(runs[:, 0], len(who)) for runs, who in sets])
            hi = np.concatenate([np.tile(runs[:, 1], len(who)) for runs, who in sets])
            key = np.concatenate([np.repeat(who, len(runs)) for runs, who in sets])
            lo, hi, key = _merged_ranges(lo, hi, key)
            np.add.at(count, key, hi - lo)
        share = false_positive_rate(
            count, self.values["scheme.bloom.bits"], self.values["scheme.bloom.hashes"]
        )
        return np.rint(share * RATE_SCALE).astype(np.uint32)

    def tables(self) -> dict[str, NDArray[np.generic]]:
        """Return the core's tables, by field of ``gs_job``."""
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


def launch_hints(job: Job, values: Mapping[str, int]) -> Hints:
    """Return the hints of all launches; a share ``scheme.bloom.missing`` of kernels, but no copy, has none.

    Raises WorkloadError if one launch names more than ``MAX_GRANULES`` granules.
    """
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
        size = tbs_per_signature(kernel.tbs, values)
        launch["first_set"][index] = len(made.sets)
        launch["unit_tbs"][index], launch["units"][index] = size, -(-kernel.tbs // size)
        launch["first_unit"][index] = begin
        launch["sets"][index], granules[index] = made.add(index, kernel, size)
        begin += -(-kernel.tbs // size)
    # an untimed copy takes no time here either
    paid = np.where([k.copy is None or k.copy.timed for k in job.kernels], granules, 0)
    asked = paid * values["scheme.bloom.lookup"] + (paid > 0) * values["scheme.bloom.latency"]
    entered = paid * values["scheme.bloom.insert"]
    return Hints(made.tables(), launch, barrier, granules, asked.astype(np.uint64), entered.astype(np.uint64))


class BloomTable(TableScheme):
    """The dependence table with edges that the core finds in signatures."""

    def known_edges(self, job: Job, deps: Dependences, values: Mapping[str, int]) -> KnownEdges:
        """Return the hints and the time of their lookups, beside the true edges."""
        hints = launch_hints(job, values)
        return KnownEdges(deps, hints.barrier, hints.lookup_ticks, hints.insert_ticks, hints=hints)

    def core_order(self, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
        """Return ``gs_order`` of a table that fetches nothing from memory."""
        return Scheme.core_order(self, job, values) | {"bloom": 1}

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the tables of hints instead of group nodes."""
        made = super().core_tables(job, known, values)
        assert known.hints is not None
        return CoreTables(
            made.preds,
            made.order,
            launches=made.launches | known.hints.launch,
            entry_bytes=signature_bytes(values),
            hints=known.hints.tables,
        )

    def add_coarse_forms(
        self, tables: CoreTables, job: Job, known: KnownEdges, values: Mapping[str, int]
    ) -> CoreTables:
        """Return the tables as they are: there are no group nodes to coarsen."""
        return tables

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return the signatures and the window."""
        count = values["scheme.bloom.signatures"]
        unit = hardware_cost.signature_fields(values["scheme.bloom.bits"], count)
        return [Structure("signatures", count, unit), *hardware_cost.pool_structures(sizes)]


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
