"""Options of schemes: parameters that ``name:option`` fixes; groups that several schemes share."""

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

    ``pins``: (parameter path, value) pairs, values as a user writes them; ``waits_inside``: the scheme then
    waits inside the programs; ``structure``: what hardware keeps for the option.
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
    for word, structure in (("balanced", hardware_cost.balanced), ("affinity", hardware_cost.affinity))
}
COHERENCE = {
    word: SchemeOption(f"scheme.coherence = {word}", (("scheme.coherence", word),))
    for word in ("bypass", "tb")
}
