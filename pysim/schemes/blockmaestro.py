"""Edges between adjacent kernels alone, as BlockMaestro keeps them (Abdolrashidi et al., ISCA 2021).

Kernels end in the order of their launches, so of all that lies further back than the kernel before, only the
newest need be waited for, as a whole. Between two neighbours edges are kept TB by TB, but where all of one
need all of the other, or a TB needs more parents than a counter counts: then the kernel waits for the one
before as a whole, too. So it does where one of the two is unknown: nobody could say before its launch what it
touches. Whatever comes later may need something of an unknown kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pysim.dependence.groups import Dependences, Group, assemble
from pysim.params import PARAMS

from . import hardware_cost
from .core_tables import CoreTables, in_memory
from .options import COHERENCE, PLACEMENTS, SchemeOption
from .scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.program.job import Job

    from .hardware_cost import Sizes, Structure
    from .known_edges import KnownEdges

ORDERS = next(p for p in PARAMS["scheme.blockmaestro"] if p.name == "priority").choices
ADDRESSES = next(p for p in PARAMS["scheme.blockmaestro"] if p.name == "addresses").choices
UNLIMITED = 1 << 32  # entries
PARENTS = 63  # a counter of 6 bits


@dataclass(frozen=True, slots=True)
class Adjacent:
    """``preds``: whole kernels, the first ``whole`` of them waited for in any case; one entry a kernel."""

    deps: Dependences
    preds: list[tuple[int, ...]]
    whole: list[int]


def adjacent(deps: Dependences, most: int = PARENTS, unknown: Sequence[bool] | None = None) -> Adjacent:
    """Return the edges of a job as neighbours know them.

    ``most``: parents of a TB; ``unknown``: one entry a kernel, or None if all are known.
    """
    count = len(deps.offsets) - 1
    blind = [False] * count if unknown is None else unknown
    lost = -1  # the newest unknown kernel behind the one before
    kept: list[Group] = []
    preds: list[tuple[int, ...]] = []
    whole: list[int] = []
    for kernel in range(count):
        start, stop = (int(deps.offsets[k]) for k in (max(kernel - 1, 0), kernel))
        first = int(deps.node_first[kernel])
        near: list[Group] = []
        if kernel > 1 and blind[kernel - 2]:
            lost = kernel - 2
        older = lost
        for group in deps.groups[first : first + int(deps.node_count[kernel])]:
            mine = group.producers >= start
            if not mine.all():
                last = group.producers[~mine].max()
                older = max(older, int(np.searchsorted(deps.offsets, last, side="right")) - 1)
            if mine.any():
                near.append(Group(kernel, group.producers[mine], group.kinds[mine], group.consumers))
        tbs = int(deps.offsets[kernel + 1]) - stop
        barrier = kernel > 0 and (blind[kernel - 1] or blind[kernel])
        if barrier or _dense(near, stop - start, tbs, most):
            preds.append((kernel - 1,))
            whole.append(1)
            continue
        kept += near
        before = (older,) if older >= 0 else ()
        preds.append((*before, kernel - 1) if near else before)
        whole.append(len(before))
    return Adjacent(assemble(kept, deps.offsets, None, deps.races), preds, whole)


def _dense(near: list[Group], producers: int, consumers: int, most: int) -> bool:
    """Whether two neighbours are kept as a barrier: all to all, or too many parents."""
    if any(len(g.producers) == producers and len(g.consumers) == consumers for g in near):
        # one TB after one is an edge, not a barrier
        return max(producers, consumers) > 1
    parents = np.zeros(consumers, np.int64)
    for group in near:
        parents[group.consumers] += len(group.producers)
    return bool((parents > most).any())


class BlockMaestro(Scheme):
    """Kernels are launched ahead and end in order; TBs wait for those of the kernel before."""

    granularity: ClassVar[str] = "tb"
    windowed: ClassVar[bool] = True

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the order of kernels that are launched ahead, with edges between neighbours."""
        exact = ADDRESSES[values["scheme.blockmaestro.addresses"]] == "exact"
        unknown = [not (exact or kernel.affine) for kernel in job.kernels]
        made = adjacent(known.deps, values["scheme.blockmaestro.parents"], unknown)
        consumer = ORDERS[values["scheme.blockmaestro.priority"]] == "consumer"
        entries, children = values["scheme.blockmaestro.entries"], values["scheme.blockmaestro.children"]
        counter = hardware_cost.each_bytes(hardware_cost.blockmaestro_counter())
        listed = hardware_cost.each_bytes(hardware_cost.blockmaestro_list(children))
        order = self.core_order(job, values)
        order |= {
            "window": min(len(made.preds), values["scheme.blockmaestro.kernels"]),
            "in_order": 1,
            "prelaunch": values["gpu.cp.stream_gap"],
            "strict": int(not consumer),
            "rotate": 0,  # its own priority says who goes first, whatever scheme.priority
            "bypass": order["bypass"] if consumer else 0,
            "entries": UNLIMITED,
            "each": 1,
            "lists": entries,
            "counters": entries,
            "children": children,
            "entry_bytes": in_memory(counter),
            "list_bytes": in_memory(listed),
        }
        return CoreTables(
            made.preds,
            order,
            made.deps,
            {"whole": made.whole},
            entry_bytes=counter,
            list_bytes=listed,
            priority="newest" if consumer else "oldest",
        )

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return its two buffers."""
        entries, children = values["scheme.blockmaestro.entries"], values["scheme.blockmaestro.children"]
        return hardware_cost.blockmaestro(entries, children)


_CONSUMER = {
    "consumer": SchemeOption("TBs of newer kernels first", (("scheme.blockmaestro.priority", "consumer"),))
}
_KERNELS = {
    f"kernels{n}": SchemeOption(
        f"{n} kernels at once, with running ones", (("scheme.blockmaestro.kernels", n),)
    )
    for n in (3, 4)
}

BLOCKMAESTRO = BlockMaestro(
    "blockmaestro",
    "Kernels are launched ahead and end in order; TBs wait for those of the kernel before.",
    options=COHERENCE | PLACEMENTS | _CONSUMER | _KERNELS,
)
