"""What a network has and computes, whatever kernels run it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of a job, from its shapes.

    ``parameters``: elements that training learns; one that is used twice counts once. ``flops``: of GEMMs,
    convolutions, attention and recurrent cells, two for a multiplication with its addition; what kernels pad
    or compute again is not counted.
    """

    parameters: int
    flops: int
