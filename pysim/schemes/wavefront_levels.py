"""The order in which Wireframe takes TBs in: level by level of the graph of all TBs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job


def levels(deps: Dependences) -> NDArray[np.int64]:
    """Return the level of each TB (global numbers): one above the highest of those that it waits for."""
    made = np.zeros(int(deps.offsets[-1]), np.int64)
    groups = deps.groups
    for node in range(len(groups)):  # in kernel order: producers are of earlier kernels
        sources = groups.producers[groups.producer_ptr[node] : groups.producer_ptr[node + 1]]
        mine = groups.consumers[groups.consumer_ptr[node] : groups.consumer_ptr[node + 1]]
        mine = mine + deps.offsets[groups.kernel[node]]
        made[mine] = np.maximum(made[mine], made[sources].max() + 1)
    return made


def sequence(job: Job, deps: Dependences) -> NDArray[np.uint64]:
    """Return kernel << 32 | TB of all TBs but those of copies: by level, then in launch order."""
    level = levels(deps)
    sizes = np.diff(deps.offsets)
    kernel = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    runs = np.repeat(np.array([k.copy is None for k in job.kernels], bool), sizes)
    order = np.argsort(level, kind="stable")
    order = order[runs[order]]
    made = kernel[order] << 32 | (order - deps.offsets[kernel[order]])
    return np.asarray(made, np.uint64)
