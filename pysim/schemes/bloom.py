"""Scheme ``tb_bloom``: edges found by looking address hints up in Bloom signatures of unfinished TBs.

Software attaches to each launch the address ranges that its TBs will read and write (hints), cut into
granules. TBs that share a signature are a *unit*. The core looks hints up at run time (scheduler/bloom.c),
so the edges found depend on which units have completed by then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.dependence.interval_sweep import recorded_intervals
from pysim.dependence.intra_kernel_sync import intra_kernel_waits
from pysim.errors import WorkloadError
from pysim.params import PARAMS
from pysim.program.access_regions import regions_of
from pysim.program.regions import SECTOR, csr_offsets, sorted_unique
from pysim.program.written_memory import written_by_job

from . import hardware_cost
from .core_tables import CoreTables
from .dependence_table import PROLOGUE, TableScheme
from .granules import FACTOR, count_of, entries, lookups, merged, without_gaps
from .hardware_cost import Structure
from .known_edges import Hints, KnownEdges
from .options import COHERENCE, PLACEMENTS, PRIORITIES, SchemeOption
from .scheme import CARVEOUT, Scheme
from .stated_hints import EXACT, stated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job, Kernel

    from .granules import Ranges
    from .hardware_cost import Field, Sizes

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


def signature_fields(values: Mapping[str, int]) -> tuple[Field, ...]:
    """Return the fields of a unit: a read and a write signature, and a bit for each unit that may wait."""
    own = (values[f"scheme.bloom.{name}"] for name in ("bits", "signatures", "levels"))
    return hardware_cost.signature_fields(*own)


def signature_bytes(values: Mapping[str, int]) -> int:
    """Return the bytes of a unit, whole ones."""
    return math.ceil(hardware_cost.entry_bytes(signature_fields(values)))


def tbs_per_signature(tbs: int, values: Mapping[str, int]) -> int:
    """Return how many TBs of a kernel of ``tbs`` TBs share a signature.

    No kernel takes more than half of ``scheme.bloom.signatures``.
    """
    word = SIGNATURE_UNITS[values["scheme.bloom.per"]]
    part = -(-tbs // values["scheme.bloom.parts"])
    size = {"part": part, "tb": 1, "group": values["scheme.bloom.group"], "kernel": tbs}[word]
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


@dataclass(frozen=True, slots=True)
class _Set:
    """What some units read, or write: entries to put into signatures and to look up, as rows of ranges."""

    written: bool
    put: Ints
    asked: Ints
    units: Ints


def _of_units(who: list[Ints], counts: Ints, units: int) -> Ints:
    """Return the sum of what each unit's sets count; ``who``: the units of each set."""
    made = np.zeros(units, np.int64)
    np.add.at(made, np.concatenate(who), np.repeat(counts, [len(each) for each in who]))
    return made


@dataclass(frozen=True, slots=True)
class _Hinted:
    """What the units of a launch read, or write: sets of units, and granule ranges of each set."""

    who: list[Ints]
    ranges: Ranges

    def apart(self, units: int) -> bool:
        """Whether each unit names at most half of what all of them name."""
        if not self.who:
            return True
        lo, hi, owner = self.ranges
        first, end, _ = merged(lo, hi, np.zeros_like(owner))
        most = _of_units(self.who, count_of(self.ranges, len(self.who)), units).max()
        return 2 * int(most) <= int((end - first).sum())


class _Builder:
    """Builds the tables of hints, launch by launch."""

    def __init__(self, job: Job, values: Mapping[str, int]) -> None:
        self.values = values
        self.written = np.zeros((0, 2), np.int64) if values["scheme.bloom.constants"] else written_by_job(job)
        self.runs: list[Ints] = []
        self.sets: list[tuple[int, int, int, int, int, int]] = []
        self.set_units: list[Ints] = []
        self.unit_sets: list[Ints] = []
        self.unit_counts: list[Ints] = []
        self.rates: list[NDArray[np.uint32]] = []
        self.hints = self.numbers = 0

    def _granules(self, lo: Ints, hi: Ints, owner: Ints, *, written: bool) -> Ranges:
        """Return the granule ranges of hinted sector ranges."""
        if not written and not self.values["scheme.bloom.constants"]:
            at = np.searchsorted(self.written[:, 0], hi * SECTOR) - 1
            keep = at >= 0
            keep[keep] = self.written[at[keep], 1] > lo[keep] * SECTOR
            lo, hi, owner = lo[keep], hi[keep], owner[keep]
        size = self.values["scheme.bloom.granule"]
        more = (hi - lo) * SECTOR * (self.values["scheme.bloom.widen"] - 100) // 200
        first = np.maximum(lo * SECTOR - more, 0) // size
        return merged(first, -(-(hi * SECTOR + more) // size), owner)

    def _hinted(self, index: int, kernel: Kernel, size: int) -> tuple[_Hinted, _Hinted]:
        """Return what units of ``size`` TBs read, and what they write."""
        # by TBs' units, the number of their set
        numbers: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
        who: tuple[list[Ints], list[Ints]] = ([], [])
        none = np.zeros(0, np.int64)
        found: tuple[list[Ranges], list[Ranges]] = ([(none, none, none)], [(none, none, none)])
        for written, lo, hi, owner, tbs, ptr in _accesses(index, kernel):
            first, end, owner = self._granules(lo, hi, owner, written=written)
            number = np.zeros(len(ptr) - 1, np.int64)
            for at in sorted_unique(owner).tolist():
                mine = tbs[ptr[at] : ptr[at + 1]]
                mine = mine if size == 1 else sorted_unique(mine // size)
                number[at] = numbers[written].setdefault(mine.tobytes(), len(who[written]))
                if number[at] == len(who[written]):
                    who[written].append(mine)
            found[written].append((first, end, number[owner]))
        reads, writes = (
            _Hinted(who[at], merged(*(np.concatenate(each) for each in zip(*found[at], strict=True))))
            for at in (0, 1)
        )
        return reads, writes

    def add(self, index: int, kernel: Kernel, size: int) -> tuple[int, int, int, int, int]:
        """Add the hints of a launch whose units have ``size`` TBs.

        Returns the TBs of a unit, sets of units with equal hints, granules of the least size that these name,
        and entries that are put into signatures and looked up.
        """
        hinted = self._hinted(index, kernel, size)
        units = -(-kernel.tbs // size)
        if SIGNATURE_UNITS[self.values["scheme.bloom.per"]] == "part" and not all(
            each.apart(units) for each in hinted
        ):
            size, units = kernel.tbs, 1
            hinted = self._hinted(index, kernel, size)
        named = sum(int((each.ranges[1] - each.ranges[0]).sum()) for each in hinted)
        if named > MAX_GRANULES:
            raise WorkloadError(
                f"kernel {kernel.name}: hints of {named:,} granules: at most {MAX_GRANULES:,};"
                " scheme.bloom.granule makes them larger"
            )
        sets = [each for at in (0, 1) for each in self._sets(bool(at), hinted[at], units)]
        self._append(sets, units)
        put = sum(int((each.put[:, 1] - each.put[:, 0]).sum()) for each in sets)
        return size, len(sets), named, put, sum(lookups(each.asked) for each in sets)

    def _sets(self, written: bool, hinted: _Hinted, units: int) -> list[_Set]:
        """Return the sets of units that read, or write.

        Where a signature would have too many entries, gaps between ranges are filled, the smallest first.
        """
        if not hinted.who:
            return []
        levels, who, ranges = self.values["scheme.bloom.levels"], hinted.who, hinted.ranges
        most = self.values["scheme.bloom.fill"] * self.values["scheme.bloom.bits"] / 65536
        for level in range(levels):
            put, asked = entries(without_gaps(ranges, FACTOR**level) if level else ranges, levels)
            count = _of_units(who, count_of(put, len(who)), units)
            if self.values["scheme.bloom.hashes"] * int(count.max()) <= most:
                break
        cuts = [np.searchsorted(each[2], np.arange(len(who) + 1)).tolist() for each in (put, asked)]
        rows = [np.stack(each[:2], axis=1) for each in (put, asked)]
        made = []
        for at, mine in enumerate(who):
            mine_put, mine_asked = (r[c[at] : c[at + 1]] for r, c in zip(rows, cuts, strict=True))
            made.append(_Set(written, mine_put, mine_asked, mine))
        return made

    def _append(self, sets: list[_Set], units: int) -> None:
        begin = len(self.sets)
        for each in sets:
            put, asked, used = len(each.put), len(each.asked), len(each.units)
            self.sets.append((self.hints, asked, put, self.numbers, used, int(each.written)))
            self.runs += [each.asked, each.put]
            self.set_units.append(each.units)
            self.hints += put + asked
            self.numbers += used
        sizes = np.array([len(each.units) for each in sets], np.int64)
        which = np.repeat(np.arange(begin, begin + len(sets), dtype=np.int64), sizes)
        who = np.concatenate([np.zeros(0, np.int64), *(each.units for each in sets)])
        order = np.argsort(who, kind="stable")
        self.unit_sets.append(which[order])
        self.unit_counts.append(np.bincount(who, minlength=units).astype(np.int64))
        both = [self._rate([s for s in sets if s.written == side], units) for side in (False, True)]
        self.rates.append(np.stack(both, axis=1).reshape(-1))

    def _rate(self, sets: list[_Set], units: int) -> NDArray[np.uint32]:
        """Return the expected false-positive rate of each unit's signature, in ``RATE_SCALE``ths."""
        count = np.zeros(units, np.int64)
        if sets:
            rows = np.concatenate([np.tile(each.put, (len(each.units), 1)) for each in sets])
            key = np.concatenate([np.repeat(each.units, len(each.put)) for each in sets])
            count = count_of(merged(rows[:, 0], rows[:, 1], key), units)
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
        for at, name in enumerate(("first_hint", "asked", "hints", "first_unit", "units", "written")):
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
    granules, put, asked = (np.zeros(count, np.int64) for _ in range(3))
    made = _Builder(job, values)
    begin = 0
    for index, kernel in enumerate(job.kernels):
        if lost[index] and kernel.copy is None:
            barrier[index] = 1
            continue
        launch["first_set"][index] = len(made.sets)
        size, launch["sets"][index], granules[index], put[index], asked[index] = made.add(
            index, kernel, tbs_per_signature(kernel.tbs, values)
        )
        launch["unit_tbs"][index], launch["units"][index] = size, -(-kernel.tbs // size)
        launch["first_unit"][index] = begin
        begin += -(-kernel.tbs // size)
    spent = put * values["scheme.bloom.insert"] + asked * values["scheme.bloom.lookup"]
    # an untimed copy takes no time here either
    paid = np.array([k.copy is None or k.copy.timed for k in job.kernels], bool)
    # the command processor reads the launch behind meanwhile
    late = np.where(paid, np.maximum(spent - values["gpu.cp.admit"], 0), 0)
    late[np.flatnonzero(paid & (asked > 0))[:1]] += values["scheme.bloom.latency"]
    return Hints(made.tables(), launch, barrier, granules, late.astype(np.uint64), np.zeros(count, np.uint64))


class BloomTable(TableScheme):
    """The dependence table with edges that the core finds in signatures."""

    def known_edges(self, job: Job, deps: Dependences, values: Mapping[str, int]) -> KnownEdges:
        """Return the hints and the time of their lookups, beside the true edges."""
        hints = launch_hints(stated(job, EXACT), values)
        return KnownEdges(deps, hints.barrier, hints.lookup_ticks, hints.insert_ticks, hints=hints)

    def carveout_mode(self, values: Mapping[str, int]) -> str:
        """Return as ``Scheme.carveout_mode``; 'auto' is kernel where edges are between kernels."""
        whole = SIGNATURE_UNITS[values["scheme.bloom.per"]] == "kernel"
        auto = CARVEOUT[values["scheme.carveout"]] == "auto"
        return "kernel" if auto and whole else super().carveout_mode(values)

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
        signatures = Structure("signatures", values["scheme.bloom.signatures"], signature_fields(values))
        return [signatures, *hardware_cost.pool_structures(sizes)]


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
