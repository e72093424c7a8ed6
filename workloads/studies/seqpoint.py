"""SeqPoint: a few iterations that stand for an epoch whose iterations differ in sequence length.

Source: Pati, Aga, Sinclair and Jayasena, "SeqPoint: Identifying Representative Iterations of Sequence-based
Neural Networks", ISPASS 2020 (arXiv 2007.10459). The length decides what an iteration costs, so that a
statistic of each distinct length, taken once, is the log of an epoch:

1. At most ``few`` distinct lengths: each is a SeqPoint.
2. Otherwise the range of lengths is divided into k bins of equal width, from ``bins`` on.
3. A bin's SeqPoint is the length whose statistic is closest to the mean over the bin's iterations. Its weight
   is the number of these iterations.
4. While the weighted sum is further than ``tolerance`` from the total of the epoch, k grows by one.

``tolerance`` is not known from the publication: 0.5 % here. It bounds the error of the log alone. Times of a
scheme or a machine that depend less smoothly on the length than the log's are projected worse, and need more
bins: those of a small GNMT in a CUDA graph were 3 % off with 5 bins, and 0.2 % with 13.
With a bin for each length the error is zero, so the search ends. Nothing here simulates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pysim.errors import WorkloadError, brief

FEW, BINS, TOLERANCE = 10, 5, 0.005


@dataclass(frozen=True, slots=True)
class SeqPoint:
    """The iteration of ``length`` stands for ``weight`` iterations of lengths from ``first`` to ``last``."""

    length: int
    weight: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The SeqPoints of an epoch, in order of length.

    Attributes
    ----------
    points
        SeqPoints; bins without an iteration have none.
    bins
        Bins of the range; 0: every length is a SeqPoint.
    error
        Projected over logged total of the statistic that chose them, less 1.
    iterations, lengths
        Iterations of the epoch, and how many distinct lengths they have.
    """

    points: tuple[SeqPoint, ...]
    bins: int
    error: float
    iterations: int
    lengths: int

    @property
    def reduction(self) -> float:
        """Iterations of the epoch over SeqPoints."""
        return self.iterations / len(self.points)

    def projected(self, statistic: Mapping[int, float]) -> float:
        """Return the total of an epoch from the statistic of the SeqPoints' lengths alone.

        Raises WorkloadError for a length that is missing.
        """
        missing = [point.length for point in self.points if point.length not in statistic]
        if missing:
            raise WorkloadError(f"seqpoint: no statistic of length {missing[0]}")
        return float(sum(point.weight * statistic[point.length] for point in self.points))


def total(counts: Mapping[int, int], statistic: Mapping[int, float]) -> float:
    """Return the total of a statistic over all iterations of an epoch."""
    _, number, values = _checked(counts, statistic)
    return float(number @ values)


def relative_error(projected: float, actual: float) -> float:
    """Return the projected value over the actual one, less 1."""
    return projected / actual - 1


def select(
    counts: Mapping[int, int],
    statistic: Mapping[int, float],
    *,
    tolerance: float = TOLERANCE,
    few: int = FEW,
    bins: int = BINS,
) -> Selection:
    """Choose the SeqPoints of an epoch.

    Parameters
    ----------
    counts
        Iterations of the epoch by sequence length.
    statistic
        What an iteration of each length takes, such as its run time; positive, in any unit.
    tolerance
        Largest error of the projected total, as a share of the logged one.
    few
        With so many distinct lengths at most, each is a SeqPoint.
    bins
        Bins that the search begins with.

    Raises
    ------
    WorkloadError
        No iteration; a length or a count that is no positive integer; a length without a statistic, or with
        one that is not positive and finite; a limit out of its range.
    """
    if not (isinstance(tolerance, int | float) and 0 <= tolerance < 1):
        raise WorkloadError(f"seqpoint: tolerance = {brief(tolerance)}: must be from 0 to less than 1")
    for name, value, least in (("few", few, 0), ("bins", bins, 1)):
        if not _whole(value) or value < least:
            raise WorkloadError(f"seqpoint: {name} = {brief(value)}: must be an integer from {least} on")
    lengths, number, values = _checked(counts, statistic)
    iterations, logged = int(number.sum()), float(number @ values)
    if len(lengths) <= few:
        each = tuple(SeqPoint(n, c, n, n) for n, c in zip(lengths.tolist(), number.tolist(), strict=True))
        return Selection(each, 0, 0.0, iterations, len(lengths))
    span = int(lengths[-1] - lengths[0]) + 1
    for k in range(min(bins, span), span + 1):
        points, projected = _binned(lengths, number, values, k, span)
        error = relative_error(projected, logged)
        # a bin for each length: what is left is rounding
        if abs(error) <= tolerance or k == span:
            break
    return Selection(points, k, error, iterations, len(lengths))


def _binned(
    lengths: NDArray[np.int64], number: NDArray[np.int64], values: NDArray[np.float64], k: int, span: int
) -> tuple[tuple[SeqPoint, ...], float]:
    """Return the SeqPoints of k bins, and the total that they project."""
    bin_of = (lengths - lengths[0]) * k // span
    points, projected = [], 0.0
    for which in np.unique(bin_of):
        (mine,) = np.nonzero(bin_of == which)
        weight = int(number[mine].sum())
        mean = float(number[mine] @ values[mine]) / weight
        # of equally close lengths the more frequent one, then the shorter one
        best = mine[np.lexsort((lengths[mine], -number[mine], np.abs(values[mine] - mean)))[0]]
        first, last = int(lengths[mine[0]]), int(lengths[mine[-1]])
        points.append(SeqPoint(int(lengths[best]), weight, first, last))
        projected += weight * float(values[best])
    return tuple(points), projected


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _checked(
    counts: Mapping[int, int], statistic: Mapping[int, float]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return lengths in order, their iterations and statistics."""
    if not counts:
        raise WorkloadError("seqpoint: the epoch has no iteration")
    for length, count in counts.items():
        if not _whole(length) or length < 1:
            raise WorkloadError(f"seqpoint: length {brief(length)}: must be a positive integer")
        if not _whole(count) or count < 1:
            raise WorkloadError(
                f"seqpoint: {brief(count)} iterations of length {length}: must be a positive integer"
            )
        value = statistic.get(length)
        if value is None:
            raise WorkloadError(f"seqpoint: no statistic of length {length}")
        if not (isinstance(value, int | float) and 0 < value < float("inf")):
            raise WorkloadError(
                f"seqpoint: statistic of length {length} = {brief(value)}: must be positive and finite"
            )
    order = sorted(counts)
    return (
        np.array(order, np.int64),
        np.array([counts[length] for length in order], np.int64),
        np.array([statistic[length] for length in order], np.float64),
    )
