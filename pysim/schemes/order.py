"""What a scheme means for a job: ``gs_order`` of the core, the kernels to wait for, ranks and coherence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.dependence.dependences import reduced
from pysim.params import GPC_ORDERS, PARAMS
from pysim.program.copies import l1_stale_ranges
from pysim.program.regions import union

from . import hardware_cost
from .registry import PRIORITY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job

    from .registry import Scheme

COHERENCE = next(p for p in PARAMS["scheme"] if p.name == "coherence").choices
CARVEOUT = next(p for p in PARAMS["scheme"] if p.name == "carveout").choices


def preds_of(scheme: Scheme, job: Job, deps: Dependences) -> list[tuple[int, ...]]:
    """Return the kernels that each kernel waits for (tb schemes: if the table overflows)."""
    count = len(job.kernels)
    if scheme.edges == "chain":
        return [(k - 1,) if k else () for k in range(count)]
    if scheme.edges == "stream":
        waits: list[set[int]] = [set() for _ in range(count)]
        for before, after in job.events:
            waits[after].add(before)
        last: dict[int, int] = {}
        for index, kernel in enumerate(job.kernels):
            if kernel.stream in last:
                waits[index].add(last[kernel.stream])
            last[kernel.stream] = index
        return [tuple(sorted(w)) for w in waits]
    return reduced(deps.preds) if scheme.edges == "kernel" else list(deps.preds)


def coherence_of(scheme: Scheme, values: Mapping[str, int]) -> str:
    """Return kernel, bypass or tb: 'auto' is kernel where only whole kernels are waited for, else bypass."""
    word = COHERENCE[values["scheme.coherence"]]
    if word == "auto":
        return "kernel" if scheme.barriers and not scheme.waits else "bypass"
    return word


def carveout_mode(scheme: Scheme, values: Mapping[str, int]) -> str:
    """Return kernel or job: 'auto' is kernel where no kernels overlap or the GPU is known to, else job."""
    word = CARVEOUT[values["scheme.carveout"]]
    if word == "auto":
        own = not scheme.waits or values["gpu.sm.own_carveout"]
        return "kernel" if not scheme.table and own else "job"
    return word


def in_memory(size: float) -> int:
    """Return the bytes that an entry of the scheduler's tables takes in memory: whole words."""
    return 4 * math.ceil(size / 4)


def gpc_order(values: Mapping[str, int]) -> list[int]:
    """Return the GPCs in the order in which an empty chip is filled; ``values``: encoded parameters."""
    count = values["gpu.gpcs"]
    order = tuple(GPC_ORDERS.values())[values["gpu.cp.gpc_order"]]
    return list(order if len(order) == count else range(count))


def order_of(scheme: Scheme, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of ``gs_order``."""
    everything = max(1, len(job.kernels))
    table = scheme.table
    fetch = (
        scheme.edges == "tb"
        and scheme.finds != "bloom"
        and not scheme.infinite
        and not values["scheme.prologue"]
        and values["scheme.table.fetch"]
    )
    given = scheme.edges == "tb" and not scheme.finds and not scheme.infinite
    lists = values["scheme.table.lists"] if given and values["scheme.table.fetch_lists"] else 0
    references = values["scheme.table.references"]
    return {
        "tb_edges": int(table),
        "window": everything if scheme.infinite or not table else min(everything, values["scheme.window"]),
        "infinite": int(scheme.infinite),
        "bloom": int(scheme.finds == "bloom"),
        "bypass": values["scheme.bypass"] if table else 0,
        "invalidate": {"kernel": 1, "bypass": 0, "tb": 2}[coherence_of(scheme, values)],
        "in_flight": 0,
        "early": 0,
        "prepare": values["gpu.cp.graph_prepare"] if scheme.gap == "gpu.cp.graph_gap" else 0,
        "beside": values["gpu.cp.beside"] if scheme.edges == "stream" else 0,
        "refetch": values["gpu.sm.refetch"] if scheme.edges == "stream" else 0,
        "gpcs": gpc_order(values),
        "launch": values["gpu.cp.launch"],
        "gap": values[scheme.gap] if scheme.gap else 0,
        "admit": values["gpu.cp.admit"] if table and not scheme.infinite else 0,
        "rotate": int(PRIORITY[values["scheme.priority"]] == "round_robin"),
        "placement": values["scheme.placement"] if table else 0,
        "affinity": values["scheme.affinity"],
        "reserve": values["scheme.reserve"] if table else 0,
        "entries": values["scheme.table.entries"],
        "share": values["scheme.table.share"],
        "fetch": int(fetch),
        "entry_bytes": in_memory(values["scheme.table.entry_bytes"]) if fetch or lists else 0,
        "lists": lists,
        "children": references,
        "list_bytes": in_memory(hardware_cost.NAME / 8 * references) if lists else 0,
        "computed": int(scheme.finds == "learned"),
        "update": values["scheme.table.update"],
        "latency": values["scheme.table.latency"],
    }


def _tensors_written(job: Job) -> NDArray[np.int64]:
    spans = {
        (a.tensor.address, a.tensor.address + a.tensor.nbytes)
        for k in job.kernels
        for a in k.accesses
        if a.mode != "read"
    }
    return np.array(list(spans), np.int64).reshape(-1, 2)


def written_by_job(job: Job) -> NDArray[np.int64]:
    """Return the merged address ranges that kernels and copies write or update: sorted, (n, 2)."""
    recorded = [k.footprint.written_ranges(k.tbs, k.name) for k in job.kernels if k.footprint is not None]
    return union(np.concatenate([_tensors_written(job), *recorded]))


def rewritten_by_job(job: Job) -> NDArray[np.int64]:
    """Return those of them that an L1 may hold as they were before (``copies.l1_stale_ranges``)."""
    return union(np.concatenate([_tensors_written(job), l1_stale_ranges(job.kernels)]))


def ranks(priority: str, preds: Sequence[Sequence[int]], times: Sequence[float]) -> list[int]:
    """Return unique ranks, lowest first to dispatch. ``times``: what each kernel takes alone."""
    count = len(preds)
    if priority in ("oldest", "round_robin"):
        return list(range(count))
    if priority == "newest":
        return [count - 1 - k for k in range(count)]
    if priority == "consumer":
        return _places(_depths(preds))
    left = [float(t) for t in times]
    for index in range(count - 1, -1, -1):
        # preds are earlier kernels, so left[index] is final here
        for before in preds[index]:
            left[before] = max(left[before], times[before] + left[index])
    return _places(left)


def _depths(preds: Sequence[Sequence[int]]) -> list[int]:
    made: list[int] = []
    for sources in preds:
        made.append(max((made[p] + 1 for p in sources), default=0))
    return made


def _places(values: Sequence[float]) -> list[int]:
    """Return the place of each kernel: largest value first, then oldest."""
    made = [0] * len(values)
    for rank, index in enumerate(sorted(range(len(values)), key=lambda k: (-values[k], k))):
        made[index] = rank
    return made
