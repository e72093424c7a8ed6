"""Dependences between the TBs of a job, as the report draws them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysim.stats.store import Results

from .blob import Blob, blob
from .run import rows_of

MOST_ENTRIES = 4_000_000  # producers and consumers of all group nodes, about 5 MB in the page


@dataclass(frozen=True, slots=True)
class Edges:
    """Group nodes of a job: each consumer TB of a node waits for all of its producer TBs.

    ``offsets``: (kernels + 1,), number of each kernel's TB 0 through the job; ``kernel``: the consumers'
    kernel of each node. Node n has the producers ``producers[producer_ptr[n]:producer_ptr[n + 1]]``, numbered
    through the job, with as many ``kinds`` (sum of 1 RAW, 2 WAR, 4 WAW), and the consumers
    ``consumers[consumer_ptr[n]:consumer_ptr[n + 1]]``, numbered within ``kernel``. ``pysim report`` passes
    those of ``pysim.dependence.groups``; a result file holds only a hash of them.
    """

    offsets: NDArray[np.int64]
    kernel: NDArray[np.int64]
    producer_ptr: NDArray[np.int64]
    producers: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    consumer_ptr: NDArray[np.int64]
    consumers: NDArray[np.int64]

    @property
    def entries(self) -> int:
        """How many producers and consumers all nodes have."""
        return len(self.producers) + len(self.consumers)

    def fits(self, tbs: NDArray[Any]) -> bool:
        """Return whether a run has these kernels; ``tbs``: of each of its kernels."""
        return np.array_equal(np.diff(self.offsets), tbs)

    def blob(self) -> Blob:
        """Return the nodes as columns for the page."""
        return blob(
            {
                "offsets": self.offsets,
                "kernel": self.kernel,
                "producer_ptr": self.producer_ptr,
                "producers": self.producers,
                "kinds": self.kinds.astype(np.uint8),
                "consumer_ptr": self.consumer_ptr,
                "consumers": self.consumers,
            }
        )


def kernel_edges(results: Results, run: int) -> Blob | None:
    """Return the edges between the kernels of a run as columns for the page; None where the file has none."""
    rows = rows_of(results, "edges", run)
    if not len(rows):
        return None
    pairs = np.unique(np.stack([rows["kernel"], rows["producer_kernel"]], axis=1), axis=0).astype(np.int64)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return blob({"kernel": pairs[:, 0], "producer": pairs[:, 1]}) if len(pairs) else None
