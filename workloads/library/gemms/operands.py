"""Operands of a GEMM: those that a caller gives, checked, or new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.job import Memory, Tensor


def checked_operands(
    given: Sequence[Tensor] | None, wanted: Sequence[tuple[str, int, int, int]], memory: Memory
) -> Sequence[Tensor]:
    """Return the operands given, or new tensors; ``wanted``: name, rows, columns and bytes of an element.

    Raises WorkloadError for another number of tensors, for one of another shape or element, and for one that
    is not in ``memory``, whose next tensors would be allocated over it.
    """
    if given is None:
        return [memory.tensor(*each) for each in wanted]
    if len(given) != len(wanted):
        names = ", ".join(name for name, *_ in wanted)
        raise WorkloadError(f"library GEMM: {len(given)} operands: must be {names}")
    for tensor, (name, *shape) in zip(given, wanted, strict=True):
        if [tensor.rows, tensor.cols, tensor.item] != shape:
            raise WorkloadError(
                f"library GEMM: operand {name} is {tensor.rows} x {tensor.cols} of {tensor.item} B: must be"
                f" {shape[0]} x {shape[1]} of {shape[2]} B"
            )
        if tensor.address + tensor.nbytes > memory.next_address:
            raise WorkloadError(
                f"library GEMM: operand {name} is of another Memory: all must be of the one given"
            )
    return given


def first_element(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first element of a tensor for each TB: a counter or an order that all share."""
    return np.tile(np.array([0, 1, 0, 1], np.int64), (len(tbs), 1))


def after_reset(kernel: Kernel, reset: Tensor) -> Kernel:
    """Return a kernel that waits for what clears ``reset``: its TBs update the first element, too."""
    return replace(kernel, accesses=(*kernel.accesses, Access(reset, "update", first_element)))
