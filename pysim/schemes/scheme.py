"""What a scheme is: how its edges are found, what it asks of the core, and what its hardware keeps.

A scheme is an object of a subclass of :class:`Scheme`. One module holds one family; ``registry`` collects
them. Nothing outside asks for a scheme's name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from pysim.dependence.intra_kernel_sync import inherit_producers
from pysim.dependence.kernel_order import reduce_preds
from pysim.params import GPC_ORDERS, PARAMS

from .core_tables import CoreTables
from .hooks import coherence_of, order_of, preds_of, tb_edges_of
from .in_kernel_sync import intra_kernel_plan
from .known_edges import KnownEdges
from .priority import PRIORITY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job

    from .hardware_cost import Sizes, Structure
    from .launch_plan import LaunchPlan
    from .options import Pins, SchemeOption

COHERENCE = next(p for p in PARAMS["scheme"] if p.name == "coherence").choices
INVALIDATE = {"bypass": 0, "kernel": 1, "tb": 2, "argument": 3}  # gs_order.invalidate
CARVEOUT = next(p for p in PARAMS["scheme"] if p.name == "carveout").choices


def gpc_order(values: Mapping[str, int]) -> list[int]:
    """Return the GPCs in the order in which an empty GPU is filled; ``values``: encoded parameters."""
    count = values["gpu.gpcs"]
    order = tuple(GPC_ORDERS.values())[values["gpu.cp.gpc_order"]]
    return list(order if len(order) == count else range(count))


@dataclass(frozen=True)
class Scheme:
    """A scheduling scheme; as it stands, kernels wait for the kernels whose data they need.

    A scheme of your own subclasses it, overrides what differs, and is made known by
    ``pysim.register_scheme``.
    ``values`` are encoded parameters by path (``Config.encoded``): times in ticks of 1/1024 ns, choices as
    indices.

    Parameters
    ----------
    name
        Name in ``--schemes`` and in result tables: letters, digits and underscores.
    doc
        One sentence, which ``pysim schemes`` prints.
    gap
        Path of the parameter that says how long a kernel waits after the last kernel before it has ended,
        such as ``gpu.cp.graph_gap``; empty: no time.
    pins
        (path, value) pairs of parameters that the scheme fixes.
    options
        What ``name:option`` adds.
    """

    # whether whole kernels or single TBs wait
    granularity: ClassVar[str] = "kernel"
    # whether kernels are admitted to a window of scheme.window ahead of what they wait for, and the
    # dependence table releases what waits; if not, a kernel is launched when it may start. TBs that wait
    # need the table
    windowed: ClassVar[bool] = False
    # whether that window has a size; if not, all kernels are admitted at once
    window_limited: ClassVar[bool] = True
    # whether TBs wait inside their programs, by semaphores or programmatic dependent launch
    waits_inside: ClassVar[bool] = False
    # whether those TBs wait for whole kernels, each launched once: then layers can be left out of a job
    waits_for_kernels: ClassVar[bool] = False
    # whether kernels become stages of persistent kernels
    fuses: ClassVar[bool] = False
    # whether the host launches each kernel, and so bounds the time under host.submit = eager
    host_launches: ClassVar[bool] = True

    name: str
    doc: str
    gap: str = ""
    pins: Pins = ()
    options: Mapping[str, SchemeOption] = field(default_factory=dict)

    @property
    def kernels_wait(self) -> bool:
        """Whether whole kernels wait, not TBs."""
        return self.granularity == "kernel"

    @property
    def has_window(self) -> bool:
        """Whether the number of kernels that are admitted and unfinished at once has a limit."""
        return self.windowed and self.window_limited

    def full_name(self, options: Sequence[str]) -> str:
        """Return the name with options, as result tables have it: ``name:option+option``."""
        return self.name + (":" + "+".join(options) if options else "")

    def preds(self, job: Job, deps: Dependences) -> list[tuple[int, ...]]:
        """Return the kernels that each kernel waits for: one tuple of smaller numbers a kernel.

        ``deps``: the edges that the scheme goes by (``known_edges``). Where TBs wait, it counts for a kernel
        whose TBs do not fit the table.
        """
        return reduce_preds(deps.preds) if self.kernels_wait else list(deps.preds)

    def tb_edges(self, job: Job, deps: Dependences, values: Mapping[str, int]) -> Dependences:
        """Return the edges between TBs that the scheme goes by; ``deps``: the true ones.

        ``deps.groups`` are the group nodes (``pysim.dependence.groups.Group``); ``deps.with_groups`` makes
        edges of others. An edge too many costs time; one too few is a broken dependence, which
        ``sim.oracle`` = 1 reports.
        """
        return deps

    def known_edges(self, job: Job, deps: Dependences, values: Mapping[str, int]) -> KnownEdges:
        """Return the edges that the scheme goes by and what it costs to know them: nothing, by default."""
        deps = tb_edges_of(self, job, deps, values)
        return KnownEdges.without_cost(deps if self.kernels_wait else inherit_producers(job, deps))

    def core_order(self, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
        """Return fields of ``gs_order`` (core_c/gs_api.h); those left out are 0."""
        everything, table = max(1, len(job.kernels)), self.windowed
        return {
            "tb_edges": int(table),
            "window": min(everything, values["scheme.window"]) if table else everything,
            "bypass": values["scheme.bypass"] if table else 0,
            "invalidate": INVALIDATE[coherence_of(self, values)],
            "gpcs": gpc_order(values),
            "launch": values["gpu.cp.launch"],
            "gap": values[self.gap] if self.gap else 0,
            "admit": values["gpu.cp.admit"] if table else 0,
            "rotate": int(PRIORITY[values["scheme.priority"]] == "round_robin"),
            "placement": values["scheme.placement"] if table else 0,
            "affinity": values["scheme.affinity"],
            "reserve": values["scheme.reserve"] if table else 0,
            "entries": values["scheme.table.entries"],
            "share": values["scheme.table.share"],
            "children": values["scheme.table.references"],
            "update": values["scheme.table.update"],
            "latency": values["scheme.table.latency"],
        }

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return what the core must know of a job that does not wait inside its programs."""
        preds, order = preds_of(self, job, known.deps), order_of(self, job, values)
        if not self.windowed:
            return CoreTables(preds, order)
        entry = values["scheme.table.entry_bytes"]
        if not self.kernels_wait:
            return CoreTables(preds, order, known.deps, entry_bytes=entry)
        return CoreTables(preds, order, launches={"whole": [len(p) for p in preds]}, entry_bytes=entry)

    def add_coarse_forms(
        self, tables: CoreTables, job: Job, known: KnownEdges, values: Mapping[str, int]
    ) -> CoreTables:
        """Return the tables with coarser forms of their edges, for a table too small for all; as they are."""
        return tables

    def launch_plan(
        self, options: Sequence[str], job: Job, deps: Dependences, config: Config
    ) -> LaunchPlan | None:
        """Return the launches, where programs change or wait inside; None: the job is launched as it is.

        ``options``: those that the user chose. Kernels whose TBs wait for each other are launched all the
        same.
        """
        return intra_kernel_plan(job, config.encoded())

    def coherence(self, values: Mapping[str, int]) -> str:
        """Return kernel, bypass, tb or argument.

        'auto' is bypass where TBs wait inside programs, argument where there is a window, else kernel. For a
        TB that waits later its start is too early, so 'argument' is bypass there, too.
        """
        word = COHERENCE[values["scheme.coherence"]]
        if word in ("auto", "argument") and self.waits_inside:
            return "bypass"
        if word == "auto":
            return "argument" if self.windowed else "kernel"
        return word

    def carveout_mode(self, values: Mapping[str, int]) -> str:
        """Return kernel or job: 'auto' is kernel where no kernels overlap or the GPU allows it, else job."""
        word = CARVEOUT[values["scheme.carveout"]]
        if word == "auto":
            own = not self.waits_inside or values["gpu.sm.own_carveout"]
            return "kernel" if not self.windowed and own else "job"
        return word

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return what hardware keeps for the scheme, each structure at its configured size; none, by default.

        ``counts``: of a job and a run: ``references`` from TBs to counters, learned ``signatures``, and
        ``recorded_bytes``.
        """
        return []
