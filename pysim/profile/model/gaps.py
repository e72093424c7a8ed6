"""What lies between two kernels under a scheme, and how sure it is: likely, least and most, in us."""

from __future__ import annotations

from dataclasses import dataclass

from .card import Card


@dataclass(frozen=True, slots=True)
class Gaps:
    """From the end of what is waited for to the start: ``likely``, ``least``, ``most``; us."""

    likely: float
    least: float
    most: float


def _around(gap: float, card: Card) -> Gaps:
    """Return a gap that a device's table gives between the scheduler's stamps.

    A profiler stamps the end and the start of a kernel somewhere between its TBs and the scheduler, so the
    way of the last TB's end may lie before its stamp, or that way and the start of the first TB after it.
    """
    return Gaps(gap, max(0.0, gap - card.done), gap + card.done + card.begin)


def stream(card: Card) -> Gaps:
    """Return the gap of a stream."""
    return _around(card.stream_gap, card)


def graph(card: Card) -> Gaps:
    """Return the gap of an edge in a CUDA graph."""
    return _around(card.graph_gap, card)


def early(card: Card) -> Gaps:
    """Return the gap of a kernel that was launched early and waits at its start; most: it never triggers."""
    return Gaps(card.depend, 0.0, stream(card).most)


def table(card: Card) -> Gaps:
    """Return the hand-over by a dependence table."""
    way = card.update + card.done + card.begin
    return Gaps(way, card.update, way)
