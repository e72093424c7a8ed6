"""How long each launch takes where launches follow one another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def stream_spans(kernels: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Return the time of each launch in us, from the table ``kernels`` of a run of ``count`` in stream order.

    A launch takes from the end of the one before it to its own end, the gap between them included. Raises
    ValueError for another number of launches, and where one ends before an earlier one.
    """
    if len(kernels) != count:
        raise ValueError(f"{len(kernels)} rows of {count} kernels")
    ends = kernels["last_end_us"][np.argsort(kernels["kernel"], kind="stable")]
    spans: NDArray[np.float64] = np.diff(ends, prepend=0.0)
    if (spans < 0).any():
        raise ValueError("kernels end in another order than they were launched in")
    return spans
