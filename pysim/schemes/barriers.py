"""Kernel-level schemes of today's GPUs: ``host``, ``stream``, ``graph``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .in_kernel_sync import semaphore_plan
from .options import COHERENCE, SchemeOption
from .scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job

    from .core_tables import CoreTables
    from .known_edges import KnownEdges
    from .launch_plan import LaunchPlan


class Host(Scheme):
    """The host synchronises after each kernel, whatever its stream."""

    def preds(self, job: Job, deps: Dependences) -> list[tuple[int, ...]]:
        """Return the previous kernel of each kernel."""
        return [(k - 1,) if k else () for k in range(len(job.kernels))]


class StreamOrder(Scheme):
    """Kernels of a stream run in launch order; events order streams."""

    def preds(self, job: Job, deps: Dependences) -> list[tuple[int, ...]]:
        """Return the previous kernel in the stream, and the kernels of events that it waits for."""
        waits: list[set[int]] = [set() for _ in job.kernels]
        for before, after in job.events:
            waits[after].add(before)
        last: dict[int, int] = {}
        for index, kernel in enumerate(job.kernels):
            if kernel.stream in last:
                waits[index].add(last[kernel.stream])
            last[kernel.stream] = index
        return [tuple(sorted(w)) for w in waits]

    def core_order(self, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
        """Return ``gs_order`` with the costs between two kernels of a stream."""
        more = {"beside": values["gpu.cp.beside"], "refetch": values["gpu.sm.refetch"]}
        return super().core_order(job, values) | more


class Stream(StreamOrder):
    """Stream order, optionally with the polls and posts of ``cusync`` in the programs (``sync_code``)."""

    def launch_plan(
        self, options: Sequence[str], job: Job, deps: Dependences, config: Config
    ) -> LaunchPlan | None:
        """Return launches that poll and post under ``sync_code``, else as ``Scheme``."""
        if any(self.options[option].waits_inside for option in options):
            return semaphore_plan(self.full_name(options), "", job, deps, config)
        return super().launch_plan(options, job, deps, config)


class Graph(Scheme):
    """A CUDA graph of kernels, whose edges are the job's dependences."""

    def core_order(self, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
        """Return ``gs_order`` with the time that the command processor prepares a graph node."""
        return super().core_order(job, values) | {"prepare": values["gpu.cp.graph_prepare"]}

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the kernels' order; under ``scheme.build`` the host builds the graph before the launch."""
        made = super().core_tables(job, known, values)
        if values["scheme.build"]:
            edges = sum(map(len, made.preds))
            made.order["launch"] += len(made.preds) * values["host.graph_node"]
            made.order["launch"] += edges * values["host.graph_edge"]
        return made


HOST = Host("host", "Every kernel waits for the one before and for the host's round trip.", "host.roundtrip")
STREAM = Stream(
    "stream",
    "Kernels of a stream run one after another; events order streams. The baseline of speedup.",
    "gpu.cp.stream_gap",
    options={
        "sync_code": SchemeOption(
            "poll and post as cusync does", (("scheme.sync.code", 1),), waits_inside=True
        )
    },
)
GRAPH = Graph(
    "graph",
    "A kernel waits for the kernels whose data it needs.",
    "gpu.cp.graph_gap",
    options=COHERENCE
    | {
        "built": SchemeOption(
            "the host makes the graph first, as it depends on the input", (("scheme.build", 1),)
        )
    },
)
