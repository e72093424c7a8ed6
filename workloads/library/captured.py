"""Launches of one stream: kernels that wait for each other whether or not they need each other's data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Access, Kernel

from .gemms.operands import first_element

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.job import Memory


def _first(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one element, of the first TB."""
    made = np.zeros((len(tbs), 4), np.int64)
    made[np.asarray(tbs, np.int64) == 0, 1] = made[np.asarray(tbs, np.int64) == 0, 3] = 1
    return made


def captured(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return the kernels as a captured CUDA graph has them, each with an edge to the one before it.

    The edge is the first element that the kernel before writes, as if it were read; no instruction reads it.
    """
    made: list[Kernel] = []
    for kernel in kernels:
        written = [a.tensor for a in made[-1].accesses if a.mode != "read"] if made else []
        extra = (Access(written[0], "read", _first),) if written else ()
        made.append(replace(kernel, accesses=(*kernel.accesses, *extra)))
    return made


def in_order(kernels: Sequence[Kernel], memory: Memory) -> tuple[Kernel, ...]:
    """Return the kernels of one call, of which each waits for those before: all write a word."""
    if len(kernels) == 1:
        return tuple(kernels)
    word = Access(memory.tensor("order", 1, 1, 4), "write", first_element)
    return tuple(replace(kernel, accesses=(*kernel.accesses, word)) for kernel in kernels)
