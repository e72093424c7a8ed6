"""Scheme ``blockmaestro``: TB edges between adjacent kernels alone (Abdolrashidi et al., ISCA 2021).

Kernels complete in launch order. So of the producers before the previous kernel, a kernel waits only for the
newest one, as a whole. Between two adjacent kernels edges are kept TB by TB. The kernel waits for the whole
previous kernel instead if the edges are all-to-all, if a TB has more parents than its counter counts, or if
the addresses of one of the two are unknown before its launch. A later kernel also waits for the newest
unknown kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pysim.dependence.groups import Dependences, Group, assemble
from pysim.params import PARAMS

from . import hardware_cost
from .core_tables import CoreTables, word_bytes
from .hooks import order_of
from .options import COHERENCE, PLACEMENTS, SchemeOption
from .scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.program.job import Job

    from .hardware_cost import Sizes, Structure
    from .known_edges import KnownEdges

DISPATCH_ORDERS = next(p for p in PARAMS["scheme.blockmaestro"] if p.name == "priority").choices
ADDRESS_MODES = next(p for p in PARAMS["scheme.blockmaestro"] if p.name == "addresses").choices
UNLIMITED = 1 << 32  # entries
MAX_PARENTS = 63  # of a TB: a counter of 6 bits


@dataclass(frozen=True, slots=True)
class AdjacentEdges:
    """Edges under BlockMaestro.

    ``deps``: TB edges between adjacent kernels. One entry a kernel: ``preds``, kernels that it waits for;
    ``whole``, how many of them, from the first, its TBs wait for as whole kernels.
    """

    deps: Dependences
    preds: list[tuple[int, ...]]
    whole: list[int]


def adjacent_edges(
    deps: Dependences, max_parents: int = MAX_PARENTS, unknown: Sequence[bool] | None = None
) -> AdjacentEdges:
    """Return the edges that BlockMaestro keeps of a job's dependences.

    ``max_parents``: of a TB; ``unknown``: per kernel, whether its addresses are unknown before its launch;
    None: all are known.
    """
    count = len(deps.offsets) - 1
    blind = [False] * count if unknown is None else unknown
    lost = -1  # the newest unknown kernel before the previous one
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
        if barrier or _needs_barrier(near, stop - start, tbs, max_parents):
            preds.append((kernel - 1,))
            whole.append(1)
            continue
        kept += near
        before = (older,) if older >= 0 else ()
        preds.append((*before, kernel - 1) if near else before)
        whole.append(len(before))
    return AdjacentEdges(assemble(kept, deps.offsets, None, deps.races), preds, whole)


def _needs_barrier(near: list[Group], producers: int, consumers: int, max_parents: int) -> bool:
    """Whether two adjacent kernels take a barrier: edges are all-to-all, or a TB has too many parents."""
    if any(len(g.producers) == producers and len(g.consumers) == consumers for g in near):
        # one TB after one TB is an edge, not a barrier
        return max(producers, consumers) > 1
    parents = np.zeros(consumers, np.int64)
    for group in near:
        parents[group.consumers] += len(group.producers)
    return bool((parents > max_parents).any())


class BlockMaestro(Scheme):
    """Kernels are launched ahead and complete in order; TBs wait for TBs of the previous kernel."""

    granularity: ClassVar[str] = "tb"
    windowed: ClassVar[bool] = True

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the edges between adjacent kernels, and the buffers of counters and child lists."""
        exact = ADDRESS_MODES[values["scheme.blockmaestro.addresses"]] == "exact"
        unknown = [not (exact or kernel.affine) for kernel in job.kernels]
        made = adjacent_edges(known.deps, values["scheme.blockmaestro.parents"], unknown)
        consumer = DISPATCH_ORDERS[values["scheme.blockmaestro.priority"]] == "consumer"
        entries, children = values["scheme.blockmaestro.entries"], values["scheme.blockmaestro.children"]
        counter = hardware_cost.entry_bytes(hardware_cost.blockmaestro_counter_fields())
        listed = hardware_cost.entry_bytes(hardware_cost.blockmaestro_list_fields(children))
        order = order_of(self, job, values)
        order |= {
            "window": min(len(made.preds), values["scheme.blockmaestro.kernels"]),
            "in_order": 1,
            "prelaunch": values["gpu.cp.stream_gap"],
            "strict": int(not consumer),
            "rotate": 0,  # scheme.blockmaestro.priority decides instead of scheme.priority
            "bypass": order["bypass"] if consumer else 0,
            "entries": UNLIMITED,
            "each": 1,
            "lists": entries,
            "counters": entries,
            "children": children,
            "entry_bytes": word_bytes(counter),
            "list_bytes": word_bytes(listed),
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
        """Return the buffers of counters and of child lists."""
        entries, children = values["scheme.blockmaestro.entries"], values["scheme.blockmaestro.children"]
        return hardware_cost.blockmaestro_structures(entries, children)


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
