"""Checks the edges that a scheme returns, before the core sees them: each comes from an earlier kernel."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import DependenceError

if TYPE_CHECKING:
    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job

    from .core_tables import CoreTables


def check_edges(scheme: str, tables: CoreTables, job: Job) -> None:
    """Raise DependenceError where an edge does not run from an earlier kernel of the job to a later one.

    ``scheme``: the scheme's name. Such an edge is a cycle, or names what the job has not.
    """
    count = len(job.kernels)
    if len(tables.preds) != count:
        raise DependenceError(
            f"scheme {scheme}: preds has entries for {len(tables.preds)} kernels, the job has {count}"
        )
    for kernel, preds in enumerate(tables.preds):
        for before in preds:
            if not _is_earlier(before, kernel):
                raise DependenceError(
                    f"scheme {scheme}: preds: kernel {kernel} cannot wait for kernel {before!r}:"
                    " only for an earlier one"
                )
    if tables.nodes is not None:
        _check_nodes(scheme, tables.nodes, job)


def _is_earlier(before: object, kernel: int) -> bool:
    try:
        return 0 <= index(before) < kernel  # type: ignore[arg-type]
    except TypeError:
        return False


def _check_nodes(scheme: str, nodes: Dependences, job: Job) -> None:
    tbs = np.array([kernel.tbs for kernel in job.kernels], np.int64)
    if not np.array_equal(np.diff(nodes.offsets), tbs):
        raise DependenceError(f"scheme {scheme}: tb_edges are of another job: its kernels have other TBs")
    groups = nodes.groups
    waiting = np.repeat(groups.kernel, np.diff(groups.producer_ptr))
    wrong = (groups.producers < 0) | (groups.producers >= nodes.offsets[waiting])
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DependenceError(
            f"scheme {scheme}: tb_edges: kernel {waiting[at]} cannot wait for TB {groups.producers[at]} of"
            f" the job: TBs of earlier kernels are 0 to {nodes.offsets[waiting[at]] - 1}"
        )
    waiting = np.repeat(groups.kernel, np.diff(groups.consumer_ptr))
    wrong = (groups.consumers < 0) | (groups.consumers >= tbs[waiting])
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DependenceError(
            f"scheme {scheme}: tb_edges: kernel {waiting[at]} has no TB {groups.consumers[at]}:"
            f" its TBs are 0 to {tbs[waiting[at]] - 1}"
        )
