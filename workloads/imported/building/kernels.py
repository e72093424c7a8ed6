"""From a recorded graph to a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pysim.errors import WorkloadError
from pysim.program.job import Job
from pysim.program.totals import Totals
from pysim.workloads.imported.graph import Graph, Node
from pysim.workloads.library.arguments import check_names
from pysim.workloads.library.choices.chooser import DEVICES

from .builder import Builder
from .rules.stand_in import approximate as approximated
from .rules.table import rule_of


@dataclass(slots=True)
class _Missing:
    """Nodes of an operator that no template takes: how many, the first, and why."""

    count: int = 0
    first: Node | None = None
    why: str = ""


@dataclass(slots=True)
class _Found:
    """What no template takes, by operator."""

    operators: dict[str, _Missing] = field(default_factory=dict)

    def add(self, node: Node, why: str) -> None:
        """Count a node."""
        about = self.operators.setdefault(node.op, _Missing(first=node, why=why))
        about.count += 1

    def text(self) -> str:
        """Return one line that lists all operators."""
        parts = []
        for op, about in sorted(self.operators.items()):
            shapes = (
                ", ".join(f"{list(ref.shape)} {ref.dtype}" for ref in about.first.refs())
                if about.first
                else ""
            )
            reason = f": {about.why}" if about.why else ""
            parts.append(f"{op} x {about.count} (first: {shapes or 'no tensor'}{reason})")
        return "; ".join(parts)


def job_of(
    graph: Graph,
    *,
    device: str = "h200",
    approximate: bool = False,
    arguments: Mapping[str, object] | None = None,
) -> Job:
    """Return the kernels that the operations of a graph launch, as a job.

    ``device``: whose kernels libraries launch, one of ``workloads.library.choices.chooser.DEVICES``.
    ``approximate``: let kernels of as many bytes stand in for operators without a template; their ``library``
    says ``approximate: NAME``. Raises WorkloadError that lists all such operators if not, and for a graph
    that launches nothing.
    """
    check_names("from_torch", DEVICES, device=device)
    builder, missing = Builder(graph, device), _Found()
    for number, node in enumerate(graph.nodes):
        rule, why = rule_of(node.op), ""
        if rule is not None:
            try:
                builder.node(node, rule)
            except WorkloadError as error:
                rule, why = None, str(error)
        if rule is None and approximate:
            builder.node(node, approximated)
        elif rule is None:
            missing.add(node, why)
        builder.done(number, node)
    if missing.operators:
        raise WorkloadError(
            f"from_torch: {graph.name}: no template for {missing.text()}; approximate=True lets kernels of"
            " as many bytes stand in"
        )
    if not builder.kernels:
        raise WorkloadError(f"from_torch: {graph.name}: the run launches no kernel")
    totals = Totals(graph.parameters, builder.flops)
    events = [(before, after) for before, after in builder.events if after < len(builder.kernels)]
    return Job(graph.name, builder.kernels, events, totals=totals).with_arguments(dict(arguments or {}))
