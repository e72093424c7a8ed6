"""What a workload is made of, counted: kernels, TBs, floating-point operations, memory, parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pysim.program.job import Job, Tensor

WORDS = {
    "kernels": "launches, copies among them",
    "tbs": "thread blocks of all of them",
    "flops": "of GEMMs, convolutions, attention and recurrent cells, two a multiplication with its addition",
    "bytes": "of global memory that tensors take which kernels read, write or update, each byte once",
    "parameters": "elements that training learns",
}


def totals_of(job: Job) -> dict[str, int | None]:
    """Return the totals of a job by name, as in ``WORDS``; None: nobody counted them."""
    counted = job.totals
    recorded = any(kernel.footprint is not None for kernel in job.kernels)
    tensors = (access.tensor for kernel in job.kernels for access in kernel.accesses)
    return {
        "kernels": len(job.kernels),
        "tbs": sum(kernel.tbs for kernel in job.kernels),
        "flops": None if counted is None else counted.flops,
        "bytes": None if recorded else _covered(tensors),
        "parameters": None if counted is None else counted.parameters,
    }


def _covered(tensors: Iterable[Tensor]) -> int:
    """Return how many bytes lie in at least one tensor."""
    spans = np.array(sorted({(t.address, t.address + t.nbytes) for t in tensors}), np.int64).reshape(-1, 2)
    if not len(spans):
        return 0
    reached = np.concatenate([spans[:1, 0], np.maximum.accumulate(spans[:, 1])[:-1]])  # ends of those before
    return int(np.maximum(spans[:, 1] - np.maximum(spans[:, 0], reached), 0).sum())


def show_totals(workload: str, gpu: str | None, *, as_json: bool, table: Callable[..., None]) -> None:
    """Build a workload and print its totals, aligned by ``table`` or as one JSON object."""
    from pysim.workloads.registry import make

    job = make(workload, gpu)
    totals = totals_of(job)
    if as_json:
        name = workload.partition(":")[0]
        print(json.dumps({"workload": name, "arguments": job.arguments, "gpu": gpu, **totals}))
        return
    table((name, "n/a" if totals[name] is None else f"{totals[name]:,}", doc) for name, doc in WORDS.items())
