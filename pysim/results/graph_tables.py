"""Result tables of `pysim dependences`: the graph of TBs of a job, or of some of its kernels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.dependences import dependences
from pysim.dependence.graph import build_graph
from pysim.dependence.groups import RAW
from pysim.dependence.patterns import PAIR, pair_patterns, previous_in_stream
from pysim.errors import ConfigError, WorkloadError
from pysim.program.regions import GRANULES

from .graph_schema import DTYPES
from .tables import clip_utf8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.dependence.graph import Graph
    from pysim.program.job import Job

    Ints = NDArray[np.int64]
    Table = NDArray[np.void]

MAX_WINDOW = 1 << 20  # edges of a window, at most
WAITS = ("free", "reuse", "value")  # values of the column `wait`


def graph_hash(deps: Dependences) -> str:
    """Return a SHA-256 of a job's edges, equal for equal edges on any machine."""
    made = hashlib.sha256()
    groups = deps.groups
    for column in (
        deps.offsets,
        groups.kernel,
        groups.producer_ptr,
        groups.producers,
        groups.kinds,
        groups.consumer_ptr,
        groups.consumers,
    ):
        made.update(f"{len(column)}\n".encode() + np.asarray(column).astype("<i8").tobytes())
    return made.hexdigest()


@dataclass(slots=False)
class GraphTables:
    """A job's graph as tables.

    ``granularity``: sector (32 B), line (128 B) or page (4 KiB), in which accesses conflict; ``renamed``:
    whether every value of the job has its own memory (a column of the result); ``run``: value of the column
    ``run``, which tells several graphs in one file apart.
    """

    job: Job
    granularity: str = "sector"
    renamed: bool = False
    run: int = 0

    @cached_property
    def deps(self) -> Dependences:
        """Group nodes and races."""
        return dependences(self.job, GRANULES[self.granularity])

    @cached_property
    def graph(self) -> Graph:
        """Each edge once."""
        return build_graph(self.deps)

    @cached_property
    def previous(self) -> list[int]:
        """The previous kernel of each kernel in its stream; -1: none."""
        return previous_in_stream([kernel.stream for kernel in self.job.kernels])

    @cached_property
    def independent(self) -> list[NDArray[np.bool_]]:
        """For each kernel a mask of its TBs that do not depend on the previous kernel, even transitively."""
        made = []
        for number, kernel in enumerate(self.job.kernels):
            source = self.previous[number]
            made.append(np.ones(kernel.tbs, bool) if source < 0 else ~self.graph.depends_on(number, source))
        return made

    def _table(self, name: str, rows: int) -> Table:
        made = np.zeros(rows, DTYPES[name])
        made["run"] = self.run
        return made

    def tables(self) -> dict[str, Table]:
        """Return the summary: the job, its kernels, pairs of kernels, and names."""
        job, graph = self.job, self.graph
        names = {kernel.name: 0 for kernel in job.kernels}
        texts = self._table("names", len(names))
        for number, text in enumerate(names):
            names[text] = number
            texts[number]["name"], texts[number]["text"] = number, clip_utf8(text, 160)
        kernels = self._table("dependence_kernels", len(job.kernels))
        kernels["kernel"] = np.arange(len(job.kernels))
        kernels["stream"] = [kernel.stream for kernel in job.kernels]
        kernels["name"] = [names[kernel.name] for kernel in job.kernels]
        kernels["tbs"] = np.diff(graph.offsets)
        kernels["first_tb"] = graph.offsets[:-1]
        kernels["before"] = self.previous
        kernels["free"] = [int(free.sum()) for free in self.independent]
        pairs = self._pairs()
        whole = self._table("dependences", 1)
        nodes, ranges = len(self.deps.nodes), len(self.deps.ranges)
        whole["workload"], whole["granularity"] = clip_utf8(job.name, 64), self.granularity.encode()
        whole["renamed"], whole["kernels"], whole["tbs"] = self.renamed, len(job.kernels), graph.tbs
        for name in ("edges", "raw", "war", "waw", "rules"):
            whole[name] = pairs[name].sum()
        whole["nodes"], whole["ranges"] = nodes, ranges
        whole["compression"] = whole["edges"] / max(1, nodes + ranges)
        whole["free"], whole["races"] = kernels["free"].sum(), len(self.deps.races)
        return {
            "dependences": whole,
            "dependence_kernels": kernels,
            "dependence_pairs": pairs,
            "names": texts,
        }

    def _pairs(self) -> Table:
        """Return all pairs with edges, and pairs of a kernel and its previous one without edges."""
        found = pair_patterns(self.graph, [kernel.grid for kernel in self.job.kernels])
        known = set(zip(found["kernel"].tolist(), found["producer_kernel"].tolist(), strict=True))
        alone = [(k, b) for k, b in enumerate(self.previous) if b >= 0 and (k, b) not in known]
        made = self._table("dependence_pairs", len(found) + len(alone))
        for name in PAIR.names or ():
            made[name][: len(found)] = found[name]
        rest = made[len(found) :]
        rest["pattern"] = b"independent"
        sizes = np.diff(self.graph.offsets)
        for column, which in (("kernel", 0), ("producer_kernel", 1)):
            rest[column] = np.array(alone, np.int64).reshape(-1, 2)[:, which]
        rest["tbs"], rest["producer_tbs"] = sizes[rest["kernel"]], sizes[rest["producer_kernel"]]
        races = {(after, before) for before, after in self.deps.races}
        made["race"] = [
            pair in races
            for pair in zip(made["kernel"].tolist(), made["producer_kernel"].tolist(), strict=True)
        ]
        return made[np.lexsort((made["producer_kernel"], made["kernel"]))]

    def csr(self) -> dict[str, Table]:
        """Return ``tb_ptr`` and ``tb_edges``: TB t waits for producers in rows first[t] to first[t + 1]."""
        ptr, producers, kinds = self.graph.csr()
        first, edges = self._table("tb_ptr", len(ptr)), self._table("tb_edges", len(producers))
        first["first"], edges["producer"], edges["kinds"] = ptr, producers, kinds
        return {"tb_ptr": first, "tb_edges": edges}

    def window(self, first: int, last: int) -> dict[str, Table]:
        """Return the TBs of kernels ``first`` to ``last`` and the edges between them.

        ``outside``: how many producers a TB has in kernels before the window. Raises ConfigError for kernels
        that are not there and WorkloadError for more than ``MAX_WINDOW`` edges.
        """
        count, graph = len(self.job.kernels), self.graph
        if not 0 <= first <= last < count:
            raise ConfigError(f"window {first}:{last}: kernels are 0 to {count - 1}, the first one first")
        low, high = (int(graph.offsets[k]) for k in (first, last + 1))
        rows = (graph.consumer >= low) & (graph.consumer < high)
        each = np.diff(graph.set_ptr)
        source = np.repeat(graph.producer_kernel, np.diff(graph.pair_ptr))
        inside = np.flatnonzero(rows & (source >= first))
        size = each[graph.set_index[inside]]
        if int(size.sum()) > MAX_WINDOW:
            raise WorkloadError(
                f"window {first}:{last}: {int(size.sum()):,} edges, at most {MAX_WINDOW:,} can be shown:"
                " choose fewer kernels"
            )
        tbs = self._table("window_tbs", high - low)
        tbs["kernel"], tbs["tb"] = self._place(np.arange(low, high))
        behind = np.flatnonzero(rows & (source < first))
        np.add.at(tbs["outside"], graph.consumer[behind] - low, each[graph.set_index[behind]])
        tbs["wait"] = np.concatenate([self._waits(kernel) for kernel in range(first, last + 1)])
        edges = self._table("window_edges", int(size.sum()))
        starts = np.repeat(graph.set_ptr[graph.set_index[inside]], size)
        at = starts + np.arange(len(starts)) - np.repeat(np.cumsum(size) - size, size)
        edges["kernel"], edges["tb"] = self._place(np.repeat(graph.consumer[inside], size))
        edges["producer_kernel"], edges["producer_tb"] = self._place(graph.producers[at])
        edges["kinds"] = graph.kinds[at]
        edges.sort(order=["kernel", "tb", "producer_kernel", "producer_tb"])
        return {"window_tbs": tbs, "window_edges": edges}

    def _place(self, tbs: Ints) -> tuple[Ints, Ints]:
        kernel = np.searchsorted(self.graph.offsets, tbs, side="right") - 1
        return kernel, tbs - self.graph.offsets[kernel]

    def _waits(self, kernel: int) -> NDArray[np.uint8]:
        """Return for each TB an index into ``WAITS``: why it must wait for the previous kernel.

        reuse: it has only WAR and WAW edges to that kernel, and no transitive ones; value: any other edge.
        """
        graph, source = self.graph, self.previous[kernel]
        made = np.where(self.independent[kernel], 0, 2).astype(np.uint8)
        low, high = np.searchsorted(graph.consumer_kernel, (source + 1, kernel + 1))
        between = [
            p
            for p in range(low, high)
            if graph.producer_kernel[p] >= source and graph.consumer_kernel[p] == kernel
        ]
        if source < 0 or not between or any(graph.producer_kernel[p] > source for p in between):
            return made
        rows = slice(graph.pair_ptr[between[0]], graph.pair_ptr[between[0] + 1])
        raw = np.bitwise_or.reduceat(graph.kinds, graph.set_ptr[:-1])[graph.set_index[rows]] & RAW
        made[graph.consumer[rows][raw == 0] - graph.offsets[kernel]] = 1
        return made
