"""Options of schemes (``name:option``), and groups of them that several schemes share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import hardware_cost

if TYPE_CHECKING:
    from collections.abc import Callable

    from .hardware_cost import Sizes, Structure

Pins = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True)
class SchemeOption:
    """An option of a scheme: parameters that it fixes for its run.

    ``pins``: (parameter path, value) pairs, values as a user writes them; ``waits_inside``: TBs then wait in
    their programs; ``structure``: the hardware structure that the option adds.
    """

    doc: str
    pins: Pins
    waits_inside: bool = False
    structure: Callable[[Sizes], Structure] | None = None


PRIORITIES = {
    word: SchemeOption(f"scheme.priority = {word}", (("scheme.priority", word),))
    for word in ("newest", "critical", "round_robin", "consumer")
}
PLACEMENTS = {
    word: SchemeOption(f"scheme.placement = {word}", (("scheme.placement", word),), structure=structure)
    for word, structure in (
        ("balanced", hardware_cost.placement_counters),
        ("affinity", hardware_cost.producer_sms),
    )
}
COHERENCE = {
    word: SchemeOption(f"scheme.coherence = {word}", (("scheme.coherence", word),))
    for word in ("bypass", "tb", "argument")
}
