"""Classes of kernels in sequences that PyTorch launched, and their times in a simulated run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pysim import Kernel
from pysim.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPAN = "span"
UNTIMED = "memset"  # of a memset a profile shows the duration alone, not what the next kernel waits for
# class by how the name of a kernel begins
CLASSES = {
    "hopper_gemm": "gemm",
    "staged": "gemm",
    "split_k_sum": "gemm",
    "tile_sum": "gemm",
    "vector_dots": "gemm",
    **dict.fromkeys(("gru", "lstm", "vanilla", "bias_gradient"), "recurrent"),
    "conv": "convolution",
    **dict.fromkeys(("layer_norm", "batch_norm"), "normalisation"),
    "gamma_beta": "normalisation",
    "softmax": "softmax",
    "reduce": "reduction",
    "memset": "memset",
    "attention": "attention",
    "cudnn": "attention",
    **dict.fromkeys(
        (
            *(
                "add",
                "cast",
                "clear",
                "transpose",
                "cat",
                "copy",
                "dropout",
                "fill",
                "gather",
                "gelu",
                "is_lowest",
                "masked",
                "mul",
            ),
            *(
                "and_pairs",
                "max_pool",
                "negate",
                "rsqrt",
                "silu",
                "square",
                "philox",
                "relu",
                "tanh",
                "where",
            ),
        ),
        "pointwise",
    ),
}


def class_of(name: str) -> str:
    """Return the class of a kernel; raise ConfigError for one that has none."""
    for begin, found in CLASSES.items():
        if name.startswith(begin):
            return found
    raise ConfigError(f"kernel {name} has no class")


def class_times(
    kernels: Sequence[Kernel],
    ran: NDArray[np.void],
    begin: float,
    counts: Sequence[int],
    *,
    chained: bool = True,
) -> dict[str, float]:
    """Return the span and the time of each class, ``counts`` times each.

    ``ran``: rows of the table of kernels, in the order of launches; ``begin``: when the first could start.
    Of kernels one after another (``chained``) a time is that from one completion to the next, else it is a
    kernel's own, so that classes add up to more than the span.
    """
    ends = np.asarray(ran["complete_us"], np.float64)
    order = np.argsort(ends, kind="stable")
    took = np.zeros(len(ends))
    took[order] = np.diff(ends[order], prepend=begin)
    times = {SPAN: float(took @ np.array(counts, np.float64))}
    own = took if chained else ends - ran["first_dispatch_us"]
    for kernel, time, count in zip(kernels, own.tolist(), counts, strict=True):
        group = class_of(kernel.name)
        times[group] = times.get(group, 0.0) + count * time
    return times
