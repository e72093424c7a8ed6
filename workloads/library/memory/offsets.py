"""What ``elementwise_kernel`` spends on the place of an element in tensors that are not contiguous alike."""

from __future__ import annotations

from .pointwise_parts import Work


def offset_work(dims: int, operands: int) -> Work:
    """Return the work of an element: OffsetCalculator of ATen/cuda/detail, by reason.

    A dimension takes a wide multiplication, an addition, a shift and a remainder, a product an operand, a
    test and a branch; an operand a 64-bit address; the element a test of its range.
    """
    return Work(ints=dims * (5 + operands) + 2 * operands + 2, control=dims + 1)
