"""Scheme ``wireframe``: all TBs are one kernel; they enter a small buffer by wavefront level."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .core_tables import CoreTables, word_bytes
from .hooks import order_of, preds_of
from .options import COHERENCE, PLACEMENTS, PRIORITIES, SchemeOption
from .scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job

    from .known_edges import KnownEdges

UNLIMITED = 1 << 32  # entries


def wavefront_levels(deps: Dependences) -> NDArray[np.int64]:
    """Return the level of each TB, by global number: 0, or one above the highest of its producers."""
    made = np.zeros(int(deps.offsets[-1]), np.int64)
    groups = deps.groups
    for node in range(len(groups)):  # in kernel order: producers are of earlier kernels
        sources = groups.producers[groups.producer_ptr[node] : groups.producer_ptr[node + 1]]
        mine = groups.consumers[groups.consumer_ptr[node] : groups.consumer_ptr[node + 1]]
        mine = mine + deps.offsets[groups.kernel[node]]
        made[mine] = np.maximum(made[mine], made[sources].max() + 1)
    return made


def level_order(job: Job, deps: Dependences) -> NDArray[np.uint64]:
    """Return all TBs but those of copies as ``kernel << 32 | TB``, by level, then in launch order."""
    level = wavefront_levels(deps)
    sizes = np.diff(deps.offsets)
    kernel = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    runs = np.repeat(np.array([k.copy is None for k in job.kernels], bool), sizes)
    order = np.argsort(level, kind="stable")
    order = order[runs[order]]
    made = kernel[order] << 32 | (order - deps.offsets[kernel[order]])
    return np.asarray(made, np.uint64)


class Wireframe(Scheme):
    """All TBs in one kernel whose graph is given at its launch (Abdolrashidi et al., MICRO 2017)."""

    granularity: ClassVar[str] = "tb"
    windowed: ClassVar[bool] = True
    window_limited: ClassVar[bool] = False
    host_launches: ClassVar[bool] = False

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the group nodes of all TBs, and the sequence in which TBs enter the buffer."""
        size = values["scheme.wireframe.node_bytes"]
        order = order_of(self, job, values) | {
            "window": len(job.kernels),
            "admit": 0,
            "reserve": 0,  # one kernel: no older kernel needs reserved slots
            "entries": UNLIMITED,
            "nodes": values["scheme.wireframe.nodes"],
            "pending": values["scheme.wireframe.pending"],
            "entry_bytes": word_bytes(size),
        }
        return CoreTables(
            preds_of(self, job, known.deps),
            order,
            known.deps,
            {"enqueued": [0] * len(job.kernels)},
            entry_bytes=size,
            list_bytes=size,
            one_kernel=True,
            sequence=level_order(job, known.deps),
        )


WIREFRAME = Wireframe(
    "wireframe",
    "All TBs are one kernel, launched once; its graph of TBs passes through a small buffer.",
    options=PRIORITIES
    | COHERENCE
    | PLACEMENTS
    | {
        f"nodes{n}": SchemeOption(f"room for {n} TBs", (("scheme.wireframe.nodes", n),)) for n in (1024, 4096)
    },
)
