"""A chosen kernel in words."""

from __future__ import annotations

from collections.abc import Iterator

from .choice import GemmChoice

_ADDS = {
    "kernel": ", added by a second kernel",
    "serial": ", added by one TB after another",
    "update": ", added to C by each TB",
}


def _times(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))


def _facts(choice: GemmChoice) -> Iterator[tuple[str, str]]:
    """Yield what is known about a kernel: a word, and its value."""
    if any(choice.tile):
        yield "tile", f"{_times(choice.tile)} of m, n and k"
    if choice.stages:
        yield "stages", str(choice.stages)
    if choice.cluster != (1, 1):
        yield "cluster", f"{_times(choice.cluster)} TBs of m and n"
    if choice.split_k != 1:
        parts = f"{choice.split_k} parts" if choice.split_k else "runs of k-steps across tiles"
        yield "split of K", parts + _ADDS.get(choice.reduction, "")
    yield "grid", f"{_times(choice.grid)}, {choice.tbs} TBs"
    yield "multiplies", choice.unit


def explained(choice: GemmChoice) -> str:
    """Return lines: the kernel's name, what is known about it, the reasons, and the next best tiles."""
    lines = [choice.name]
    lines += [f"    {word:<12}{text}" for word, text in _facts(choice)]
    lines += [f"  - {reason}" for reason in choice.reasons]
    if choice.runners_up:
        lines.append("next best tiles:")
    for other in choice.runners_up:
        more = f"  {other.cost / choice.cost - 1:+.1%} of cost" if choice.cost else ""
        lines.append(f"    {other.name}{more}")
    return "\n".join(lines)
