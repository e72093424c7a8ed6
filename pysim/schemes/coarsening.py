"""Coarsening: forms of a kernel's group nodes with fewer counters, where neighbouring TBs share one.

A form with at most n counters cuts the TBs of the kernel into n units, and the TBs of each of its producers
into n parts. Each part is a group node: the end of a TB updates one counter for each consuming kernel, and
the end of a part updates the counters of all units that need any of its TBs. Parts and units are whole rows
of the grid or even parts of a row, as TBs of a row run at about the same time. A form adds edges and drops
none; they run between the same kernels, so there is no cycle. The core chooses a form when it admits the
kernel (``dependence_table.c``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.groups import NODE
from pysim.program.marks import has_tb_waits
from pysim.program.occupancy import occupancy
from pysim.program.regions import RANGE, csr_offsets, expand_ranges, strided_ranges_of_lists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.dependence.groups import Groups
    from pysim.program.job import Job

    Ints = NDArray[np.int64]

COUNTER_LIMITS = (256, 64, 16, 4)  # most counters of a kernel, in the forms that are tried
MAX_ENTRY_RATIO = 0.75  # a form with more entries, relative to the next finer one, is left out


@dataclass(slots=True)
class CoarseForms:
    """Tables of the core for all forms.

    ``nodes``, ``ranges``: appended to those of the exact edges; ``forms``: (first node, nodes, TBs a unit);
    ``links``: (first node, TBs a part) by producer kernel; ``launch``: fields of ``gs_launch``, one element a
    kernel.
    """

    nodes: NDArray[np.void]
    ranges: NDArray[np.void]
    forms: list[tuple[int, int, int]]
    links: list[tuple[int, int]]
    launch: dict[str, Ints]


@dataclass(slots=True)
class _CoarseForm:
    unit: int
    sources: list[int]  # kernels, each with its parts one after another among the nodes
    sizes: list[int]  # TBs of a part of each
    expect: Ints
    units: Ints  # of all nodes, one after another
    ptr: Ints
    ranges: NDArray[np.void] = field(init=False)
    range_ptr: Ints = field(init=False)

    def __post_init__(self) -> None:
        held = np.flatnonzero(np.diff(self.ptr))
        self.ranges, ptr = strided_ranges_of_lists(self.units, self.ptr[np.append(held, len(self.ptr) - 1)])
        count = np.zeros(len(self.expect), np.int64)
        count[held] = np.diff(ptr)
        self.range_ptr = csr_offsets(count)

    def entries(self, each: int) -> int:
        """Return the table entries of nodes, ``each`` ranges an entry, and of units with several counters."""
        waits = np.bincount(self.units)
        return int((-(-np.diff(self.range_ptr) // each)).sum() + (waits > 1).sum())


def tbs_per_counter(grids: Sequence[tuple[int, int, int]], counters: int) -> Ints:
    """Return how many consecutive TBs of each (x, y, z) grid share one of at most ``counters`` counters."""
    made: list[int] = []
    for x, y, z in grids:
        size = -(-x * y * z // counters)
        part = next((s for s in range(size, x) if x % s == 0), x)
        size = -(-size // x) * x if size >= x else part
        made.append(size)
    return np.array(made, np.int64)


def _run_starts(lists: Ints, values: Ints) -> NDArray[np.bool_]:
    """Return a mask of the first of equal neighbours within each list."""
    new = np.ones(len(lists), bool)
    new[1:] = (lists[1:] != lists[:-1]) | (values[1:] != values[:-1])
    return new


@dataclass(slots=False)
class _FormMaker:
    """Makes the forms of a job's kernels."""

    groups: Groups
    offsets: Ints
    grids: Sequence[tuple[int, int, int]]

    def _list(self, which: str, first: int, last: int) -> tuple[Ints, Ints]:
        """Return (node, TB) of all producers or consumers of nodes ``first`` to ``last`` (excluded)."""
        ptr = getattr(self.groups, f"{which}_ptr")[first : last + 1]
        values = getattr(self.groups, f"{which}s")[ptr[0] : ptr[-1]]
        return np.repeat(np.arange(last - first, dtype=np.int64), np.diff(ptr)), values

    def form(self, kernel: int, nodes: tuple[int, int], size: Ints) -> _CoarseForm:
        """Return the form of a kernel's nodes in which ``size[k]`` TBs of kernel k share a counter."""
        node, made = self._list("producer", *nodes)
        owner = np.searchsorted(self.offsets, made, side="right") - 1
        sources = np.unique(owner)
        tbs = np.diff(self.offsets)[sources]
        parts = -(-tbs // size[sources])
        base = csr_offsets(parts)
        rank = np.searchsorted(sources, owner)
        part = base[rank] + (made - self.offsets[owner]) // size[owner]
        keep = _run_starts(node, part)
        node, part = node[keep], part[keep]
        user, used = self._list("consumer", *nodes)
        unit = used // size[kernel]
        keep = _run_starts(user, unit)
        user, unit = user[keep], unit[keep]
        # every part of a node with every unit of it
        count = np.bincount(user, minlength=nodes[1] - nodes[0])
        first = csr_offsets(count)
        edges = np.repeat(part, count[node]) << 32 | unit[expand_ranges(first[node], count[node])]
        edges = np.unique(edges)
        ptr = np.searchsorted(edges >> 32, np.arange(base[-1] + 1))
        # the last part of a kernel may be smaller
        sizes_of = np.repeat(size[sources], parts)
        sizes_of[base[1:] - 1] = tbs - (parts - 1) * size[sources]
        return _CoarseForm(
            int(size[kernel]), sources.tolist(), size[sources].tolist(), sizes_of, edges & 0xFFFFFFFF, ptr
        )


def _resident_tbs(job: Job, values: Mapping[str, int]) -> Ints:
    """Return how many TBs of each kernel can be resident on the GPU at once."""
    made = []
    for kernel in job.kernels:
        each = 1 if kernel.copy is not None else occupancy(kernel, values)
        made.append(min(kernel.tbs, each * values["gpu.sms"]))
    return np.array(made, np.int64)


def _update_budget(kernels: Ints, tbs: Ints, slots: Ints, values: Mapping[str, int]) -> float:
    """Return the ticks that the table may spend on updates for all TBs of some producer kernels.

    With that budget it keeps up even if all TBs are as short as ``scheme.table.shortest``, or else with the
    rate at which TBs are released.
    """
    spacing = values["scheme.table.shortest"] / max(1, int(slots[kernels].max()))
    return max(spacing, float(values["gpu.cp.tb_release"])) * int(tbs[kernels].sum())


def coarse_forms(job: Job, deps: Dependences, values: Mapping[str, int]) -> CoarseForms:
    """Return the coarser forms of all kernels that need any; ``values``: encoded parameters.

    A kernel needs forms if its exact edges take more updates than the table can keep up with (``shared``: the
    exact form is never used), or if a window of kernels like it does not fit the table.
    """
    groups, count = deps.groups, len(job.kernels)
    each, update = values["scheme.table.consumers"], values["scheme.table.update"]
    share = values["scheme.table.share"] / 65536
    kept = min(count, values["scheme.window"]) - 1
    steady = values["scheme.table.entries"] * share / (1 + share * kept)
    tbs, slots = np.diff(deps.offsets), _resident_tbs(job, values)
    grids = [kernel.grid for kernel in job.kernels]
    tables = [tbs_per_counter(grids, most) for most in COUNTER_LIMITS]
    maker = _FormMaker(groups, deps.offsets, grids)
    launch = {name: np.zeros(count, np.int64) for name in ("shared", "exact", "first_form", "forms")}
    made: list[_CoarseForm] = []
    owners: list[int] = []
    producers, consumers = np.diff(groups.producer_ptr), np.diff(groups.consumer_ptr)
    for kernel in range(count):
        first = int(deps.node_first[kernel])
        nodes = slice(first, first + int(deps.node_count[kernel]))
        launch["first_form"][kernel] = len(made)
        whole = consumers[nodes] == tbs[kernel]
        if whole.all():
            continue  # all its TBs wait for the same: one counter a node is enough
        if has_tb_waits(job.kernels[kernel]):
            continue  # a TB that waits for TBs of its kernel must wait for all that they do
        sources = np.array(deps.preds[kernel])
        allowed = _update_budget(sources, tbs, slots, values)
        asked = int(producers[nodes].sum() + consumers[nodes][~whole].sum()) * update
        held = int((-(-deps.nodes["ranges"][nodes].astype(np.int64) // each)).sum())
        used = groups.consumers[groups.consumer_ptr[nodes.start] : groups.consumer_ptr[nodes.stop]]
        held += int((np.bincount(used) > 1).sum())
        launch["shared"][kernel] = asked > allowed
        launch["exact"][kernel] = held
        last = np.inf if asked > allowed else held
        if last <= steady:
            continue
        for size in tables:
            form = maker.form(kernel, (nodes.start, nodes.stop), size)
            spent = int(form.expect.sum()) + len(form.units)
            entries = form.entries(each)
            if entries > MAX_ENTRY_RATIO * last or spent * update > allowed:
                continue
            last = entries
            made.append(form)
            owners.append(kernel)
            if last <= steady / 4:
                break
        launch["forms"][kernel] = len(made) - launch["first_form"][kernel]
    return _tables(made, owners, deps, launch)


def _tables(
    made: Sequence[_CoarseForm],
    owners: Sequence[int],
    deps: Dependences,
    launch: dict[str, Ints],
) -> CoarseForms:
    """Return the nodes of all forms as one table, linked to the producer kernels that count them down."""
    nodes = np.zeros(sum(len(form.expect) for form in made), NODE)
    parts: list[NDArray[np.void]] = [np.zeros(0, RANGE)]
    forms: list[tuple[int, int, int]] = []
    links: list[list[tuple[int, int]]] = [[] for _ in deps.preds]
    at, ranges, begin = 0, len(deps.ranges), len(deps.nodes)
    tbs = np.diff(deps.offsets)
    for form, kernel in zip(made, owners, strict=True):
        mine = nodes[at : at + len(form.expect)]
        mine["kernel"], mine["expect"] = kernel, form.expect
        mine["first_range"] = form.range_ptr[:-1] + ranges
        mine["ranges"] = np.diff(form.range_ptr)
        parts.append(form.ranges)
        ranges += len(form.ranges)
        forms.append((begin + at, len(mine), form.unit))
        for source, size in zip(form.sources, form.sizes, strict=True):
            links[source].append((begin + at, size))
            at += -(-int(tbs[source]) // size)
    flat = [link for each in links for link in each]
    launch["links"] = np.array([len(each) for each in links], np.int64)
    launch["first_link"] = csr_offsets(launch["links"])[:-1]
    return CoarseForms(nodes, np.concatenate(parts), forms, flat, launch)
