"""Dependence-table schemes with edges known in advance: ``pool``, ``tb_static``, ``tb_ideal``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pysim.dependence.transitive_reduction import reduce_transitively
from pysim.errors import ConfigError, WorkloadError

from . import hardware_cost
from .coarsening import coarse_forms
from .core_tables import CoreTables, word_bytes
from .hooks import coherence_of, order_of, preds_of
from .in_kernel_sync import intra_kernel_plan
from .known_edges import KnownEdges
from .options import COHERENCE, PLACEMENTS, PRIORITIES, SchemeOption
from .prologue import prologue_plan
from .scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job

    from .hardware_cost import Sizes, Structure
    from .launch_plan import LaunchPlan

FETCHED = ("scheme.table.fetch", 1)
PROLOGUE = {
    "prologue": SchemeOption(
        "scheme.prologue = 1", (("scheme.prologue", 1),), structure=hardware_cost.waiting_tbs
    )
}


class Pool(Scheme):
    """Whole kernels wait in the dependence table, one entry a kernel."""

    windowed: ClassVar[bool] = True

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return the window of kernels."""
        return hardware_cost.pool_structures(sizes)


class TableScheme(Scheme):
    """TBs wait for TBs in a finite dependence table; edges are known before the job is launched.

    A scheme of yours overrides ``tb_edges``. ``lists_fetched``: lists of counters may come from memory, too
    (``scheme.table.fetch_lists``).
    """

    granularity: ClassVar[str] = "tb"
    windowed: ClassVar[bool] = True
    lists_fetched: ClassVar[bool] = True
    # policies under which a TB may load before its edges are satisfied
    coherence_ahead: ClassVar[tuple[str, ...]] = ("bypass",)

    def known_edges(self, job: Job, deps: Dependences, values: Mapping[str, int]) -> KnownEdges:
        """Return the edges of ``tb_edges``, transitively reduced under ``scheme.table.reduce``."""
        made = super().known_edges(job, deps, values)
        return (
            KnownEdges.without_cost(reduce_transitively(made.deps)) if values["scheme.table.reduce"] else made
        )

    def coherence(self, values: Mapping[str, int]) -> str:
        """Return as ``Scheme.coherence``; TBs with prologues wait inside, so 'auto' and 'argument' bypass."""
        made = super().coherence(values)
        return "bypass" if made == "argument" and values["scheme.prologue"] else made

    def core_order(self, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
        """Return ``gs_order`` with what the table fetches from memory."""
        fetch = not values["scheme.prologue"] and values["scheme.table.fetch"]
        fetch_lists = self.lists_fetched and values["scheme.table.fetch_lists"]
        lists = values["scheme.table.lists"] if fetch_lists else 0
        listed = hardware_cost.COUNTER_NAME_BITS / 8 * values["scheme.table.references"]
        return super().core_order(job, values) | {
            "fetch": int(fetch),
            "entry_bytes": word_bytes(values["scheme.table.entry_bytes"]) if fetch or lists else 0,
            "lists": lists,
            "list_bytes": word_bytes(listed) if lists else 0,
        }

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the TB edges as group nodes, and the time to find them."""
        order = order_of(self, job, values) | {"footprints": known.footprints}
        preds, launch = preds_of(self, job, known.deps), known.launch
        if known.whole is not None:
            # of a kernel's producers the core takes the first so many as waited for as a whole
            pairs = zip(preds, known.whole, strict=True)
            preds = [(*first, *(k for k in every if k not in first)) for every, first in pairs]
            launch = launch | {"whole": np.array([len(first) for first in known.whole], np.uint32)}
        return CoreTables(
            preds,
            order,
            known.deps,
            {"barrier": known.barrier, "look_up": known.lookup_ticks, "enter": known.insert_ticks} | launch,
            values["scheme.table.entry_bytes"],
            order.get("list_bytes", 0),
        )

    def add_coarse_forms(
        self, tables: CoreTables, job: Job, known: KnownEdges, values: Mapping[str, int]
    ) -> CoreTables:
        """Add coarser forms of all kernels' edges, under ``scheme.table.group``."""
        if values["scheme.table.group"]:
            tables.forms = coarse_forms(job, known.deps, values)
        return tables

    def launch_plan(
        self, options: Sequence[str], job: Job, deps: Dependences, config: Config
    ) -> LaunchPlan | None:
        """Return launches whose TBs wait after their prologues, under ``scheme.prologue``.

        Raises WorkloadError if TBs wait for TBs of their kernel, ConfigError without L1 bypass.
        """
        values = config.encoded()
        turns = intra_kernel_plan(job, values)
        if not values["scheme.prologue"]:
            return turns
        if turns is not None:
            raise WorkloadError("scheme.prologue = 1: TBs that wait for each other wait inside already")
        if coherence_of(self, values) not in self.coherence_ahead:
            raise ConfigError(
                "scheme.prologue = 1 needs scheme.coherence = bypass: L1 may hold what was there before"
            )
        return prologue_plan(job)

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return the table, its buffer of counter lists if they are fetched, and the lists in memory."""
        fetched = values["scheme.table.fetch_lists"] and self.lists_fetched
        held = values["scheme.table.lists"] if fetched else 0
        entries, consumers = values["scheme.table.entries"], values["scheme.table.consumers"]
        made = hardware_cost.table_structures(
            sizes, entries, consumers, held, values["scheme.table.references"]
        )
        return [*made, hardware_cost.counter_lists(counts["references"])]


class IdealTable(TableScheme):
    """A table of unlimited size without latency; all kernels are admitted at once."""

    window_limited: ClassVar[bool] = False
    lists_fetched: ClassVar[bool] = False

    def known_edges(self, job: Job, deps: Dependences, values: Mapping[str, int]) -> KnownEdges:
        """Return all edges, at no cost."""
        return Scheme.known_edges(self, job, deps, values)

    def core_order(self, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
        """Return ``gs_order`` of an unlimited table that fetches nothing."""
        made = Scheme.core_order(self, job, values)
        return made | {"infinite": 1, "window": max(1, len(job.kernels)), "admit": 0}

    def add_coarse_forms(
        self, tables: CoreTables, job: Job, known: KnownEdges, values: Mapping[str, int]
    ) -> CoreTables:
        """Return the tables as they are: all edges fit."""
        return tables

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return none: no hardware implements this scheme."""
        return []


POOL = Pool(
    "pool",
    "tb_static with edges between whole kernels: what the pool gives without finer edges.",
    options=PRIORITIES | COHERENCE | PLACEMENTS,
)
TB_STATIC = TableScheme(
    "tb_static",
    "A TB waits for the TBs whose data it needs, from computed footprints, in a finite table.",
    options=PRIORITIES
    | COHERENCE
    | PLACEMENTS
    | PROLOGUE
    | {
        "fetch": SchemeOption(
            "entries and lists of counters are brought in when producers are dispatched",
            (FETCHED, ("scheme.table.fetch_lists", 1)),
        ),
        "reduced": SchemeOption("edges that others imply are left out", (("scheme.table.reduce", 1),)),
    },
)
TB_IDEAL = IdealTable(
    "tb_ideal",
    "tb_static with all kernels admitted at once and a table without limit and cost.",
    options=PRIORITIES | COHERENCE | PLACEMENTS | PROLOGUE,
)
