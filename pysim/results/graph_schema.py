"""The tables of `pysim dependences`: dependences by pairs of kernels and TB by TB."""

from __future__ import annotations

from .columns import KERNEL, NAME, RUN, STREAM, TBS, Column, layout
from .schema import NAMES

_BY_KIND = (
    Column("raw", "<i8", "count", "Edges that are read after write."),
    Column("war", "<i8", "count", "Edges that are write after read."),
    Column("waw", "<i8", "count", "Edges that are write after write."),
)

DEPENDENCES = (
    RUN,
    Column("workload", "S64", "text", "Name of the job."),
    Column(
        "granularity",
        "S8",
        "text",
        "What conflicts: what shares a sector (32 B), line (128 B) or page (4 KiB).",
    ),
    Column("renamed", "|u1", "flag", "1: every value has memory of its own (`--rename`)."),
    Column("kernels", "<i8", "count", "Launches."),
    TBS,
    Column("edges", "<i8", "count", "Pairs of TBs with an edge, which may be of several kinds."),
    *_BY_KIND,
    Column("nodes", "<i8", "count", "Group nodes that the edges reduce to."),
    Column("ranges", "<i8", "count", "Ranges of consumers of these nodes: start, count, stride."),
    Column("compression", "<f8", "ratio", "Edges over nodes and ranges."),
    Column("rules", "<i8", "count", "Rules that give all edges, for each pair of kernels."),
    Column("free", "<i8", "count", "TBs without a dependence on the kernel before theirs in their stream."),
    Column("races", "<i8", "count", "Pairs of kernels that conflict and are not ordered."),
)

DEPENDENCE_KERNELS = (
    RUN,
    KERNEL,
    STREAM,
    NAME,
    TBS,
    Column("first_tb", "<i8", "id", "Number of its TB 0 where TBs are numbered through the job."),
    Column("before", "<i4", "id", "The kernel before it in its stream; -1: none."),
    Column("free", "<i8", "count", "TBs without a dependence on that kernel, direct or through others."),
)

DEPENDENCE_PAIRS = (
    RUN,
    KERNEL,
    Column("producer_kernel", "<i4", "id", "Launch that TBs of `kernel` wait for."),
    Column("pattern", "S12", "text", "Name of the pattern: docs/dependences.md."),
    Column("tbs", "<i8", "count", "TBs of `kernel`."),
    Column("producer_tbs", "<i8", "count", "TBs of `producer_kernel`."),
    Column("waiting", "<i8", "count", "TBs of `kernel` with an edge of the pair."),
    Column("needed", "<i8", "count", "TBs of `producer_kernel` with an edge of the pair."),
    Column("edges", "<i8", "count", "Pairs of TBs with an edge."),
    *_BY_KIND,
    Column("most", "<i8", "count", "Most producers of one TB: its degree."),
    Column("most_consumers", "<i8", "count", "Most consumers of one producer."),
    Column("step", "<i8", "TBs", "The one distance of producers of a TB; 0: there is none in common."),
    Column("nodes", "<i8", "count", "Distinct sets of producers, each a group node, were this pair alone."),
    Column("ranges", "<i8", "count", "Ranges of consumers of these sets."),
    Column(
        "rules", "<i8", "count", "Rules that give the edges: runs of consumers whose producers move evenly."
    ),
    Column("race", "|u1", "flag", "1: neither streams nor events order the two kernels."),
)

# the graph, TBs numbered through the job: TB t waits for the rows first[t] to first[t + 1] of tb_edges
TB_PTR = (
    RUN,
    Column("first", "<i8", "id", "First row of `tb_edges` of this TB; a last row ends the last TB."),
)
_KINDS = Column(
    "kinds", "|u1", "code", "Sum of 1 (read after write), 2 (write after read), 4 (write after write)."
)
TB_EDGES = (RUN, Column("producer", "<i8", "id", "TB that it waits for."), _KINDS)

# some kernels in a row, for pictures
WINDOW_TBS = (
    RUN,
    KERNEL,
    Column("tb", "<i4", "id", "Thread block."),
    Column(
        "wait",
        "|u1",
        "code",
        "How it waits for the kernel before: 0 not at all, 1 as a buffer is reused, 2 for a value.",
    ),
    Column("outside", "<i8", "count", "Producers in kernels before the window."),
)
WINDOW_EDGES = (
    RUN,
    KERNEL,
    Column("tb", "<i4", "id", "TB that waits."),
    Column("producer_kernel", "<i4", "id", "Launch that it waits for."),
    Column("producer_tb", "<i4", "id", "TB that it waits for."),
    _KINDS,
)

TABLES: dict[str, tuple[Column, ...]] = {
    "dependences": DEPENDENCES,
    "dependence_kernels": DEPENDENCE_KERNELS,
    "dependence_pairs": DEPENDENCE_PAIRS,
    "tb_ptr": TB_PTR,
    "tb_edges": TB_EDGES,
    "window_tbs": WINDOW_TBS,
    "window_edges": WINDOW_EDGES,
    "names": NAMES,
}
DTYPES = {name: layout(columns) for name, columns in TABLES.items()}
