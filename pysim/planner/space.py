"""The plans of a search: a scheme and the values that differ from its defaults, each plan once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.errors import ConfigError
from pysim.schemes.hooks import coherence_of
from pysim.schemes.registry import SCHEMES
from pysim.units import Value, row_of, show

from .choices import BASE, CHOICES, COMPARED, Choice, default_of, option_that_sets, values_of

if TYPE_CHECKING:
    from pysim.machine.config import Config


@dataclass(frozen=True, slots=True)
class Plan:
    """A scheme and (path, value) pairs that differ from its defaults, in the order of ``CHOICES``."""

    base: str
    values: tuple[tuple[str, Value], ...] = ()

    def _options(self) -> dict[str, str]:
        found = {path: option_that_sets(SCHEMES[self.base], path, value) for path, value in self.values}
        return {path: name for path, name in found.items() if name}

    @property
    def scheme(self) -> str:
        """The scheme with its options, as ``--schemes`` takes it."""
        return SCHEMES[self.base].full_name(tuple(self._options().values()))

    @property
    def settings(self) -> dict[str, Value]:
        """What no option of the scheme sets, by path, as ``overrides`` of ``pysim.simulate`` take it."""
        done = self._options()
        return {path: value for path, value in self.values if path not in done}

    def words(self) -> list[str]:
        """Return the words ``--set``, ``path=value`` for each of ``settings``."""
        texts = [f"{path}={show(row_of(path), value)}" for path, value in self.settings.items()]
        return [word for text in texts for word in ("--set", text)]

    def __str__(self) -> str:
        return " ".join([self.scheme, *self.words()])


class Space:
    """All plans of some schemes on a machine. ``fixed``: parameters that the user has set."""

    def __init__(self, config: Config, schemes: Sequence[str], fixed: Iterable[str] = ()) -> None:
        self.config, left_out = config, set(fixed)
        self.rows = [choice for choice in CHOICES if choice.path not in left_out]
        compared = [name for name in COMPARED if name in schemes]
        self.schemes = list(dict.fromkeys((BASE, *compared, *schemes)))
        self._values = {name: self._values_of(name) for name in self.schemes}
        self._made: dict[tuple[str, tuple[tuple[str, Value], ...]], Plan] = {}

    def _values_of(self, name: str) -> dict[str, tuple[Value, ...]]:
        found = {row.path: values_of(SCHEMES[name], row, self.config) for row in self.rows}
        return {path: values for path, values in found.items() if len(values) > 1}

    def paths(self, plan: Plan) -> list[str]:
        """Return the parameters that plans of the same scheme choose."""
        return list(self._values[plan.base])

    def around(self, plan: Plan, path: str) -> list[Plan]:
        """Return the other plans that differ in one parameter alone."""
        given = dict(plan.values)
        made = [self.plan(plan.base, given | {path: value}) for value in self._values[plan.base][path]]
        return [each for each in dict.fromkeys(made) if each != plan]

    def first(self) -> Iterator[Plan]:
        """Yield the plans to begin with: each scheme as it is, then with each value of a ``first`` choice."""
        for name in self.schemes:
            yield self.plan(name, {})
        for row in self.rows:
            for name in self.schemes:
                if row.first and row.path in self._values[name]:
                    yield from self.around(self.plan(name, {}), row.path)

    def plan(self, base: str, values: Mapping[str, Value]) -> Plan:
        """Return the plan of a scheme with these values; what decides nothing is left out."""
        kept = {
            path: values[path]
            for path, known in self._values[base].items()
            if path in values and values[path] != known[0]
        }
        key = (base, tuple(kept.items()))
        if key not in self._made:
            for row in self.rows:
                if row.path in kept and not self._decides(base, row, kept):
                    del kept[row.path]
            self._made[key] = Plan(base, tuple(kept.items()))
        return self._made[key]

    def _decides(self, base: str, row: Choice, kept: Mapping[str, Value]) -> bool:
        """Whether the value of a parameter changes anything beside the others."""
        if row.needs is not None:
            path, words = row.needs
            # a scheme that pins the other parameter takes both
            free = path in kept or all(pinned != path for pinned, _ in SCHEMES[base].pins)
            if free and kept.get(path, default_of(SCHEMES[base], path, self.config)) not in words:
                return False
        if row.path not in ("scheme.coherence", "scheme.carveout"):
            return True
        # a word may say what 'auto' comes to
        others = {path: value for path, value in kept.items() if path != row.path}
        try:
            return self._caches(base, kept) != self._caches(base, others)
        except ConfigError:
            return True  # the run says why it is refused

    def _caches(self, base: str, kept: Mapping[str, Value]) -> tuple[str, str]:
        scheme = SCHEMES[base]
        values = self.config.replaced(dict(scheme.pins) | dict(kept)).encoded()
        return coherence_of(scheme, values), scheme.carveout_mode(values)
