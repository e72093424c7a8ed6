"""What a plan may choose beside its scheme: one row a parameter.

A plan chooses what software, or a scheduler without more hardware, may decide. Sizes and times of hardware
(entries, bits, windows, latencies) are not in the table: they stay as the GPU and ``--set`` say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.errors import ConfigError
from pysim.units import Value, parse, row_of

if TYPE_CHECKING:
    from pysim.machine.config import Config
    from pysim.schemes.scheme import Scheme

LIMITLESS = ("tb_ideal",)  # a table without size and cost: a limit, not a plan
# those that a plan is compared with; they are tried first
BASE = "stream"
COMPARED = ("tb_auto", "graph", "pool", "tb_static")


def _windowed(scheme: Scheme) -> bool:
    return scheme.windowed


def _any(_: Scheme) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Choice:
    """A parameter that plans choose.

    ``values``: those that are tried beside the default (none given: all words of the parameter, or 0 and 1);
    ``schemes``: names, or a rule, of those that take it besides the schemes with an option that sets it;
    ``needs``: (parameter, values) without one of which it decides nothing, or is refused; ``first``: each of
    its values is among the plans that are tried before the search.
    """

    path: str
    values: tuple[Value, ...] = ()
    schemes: tuple[str, ...] | Callable[[Scheme], bool] = ()
    needs: tuple[str, tuple[Value, ...]] | None = None
    first: bool = False

    def concerns(self, scheme: Scheme) -> bool:
        """Whether the parameter decides something under a scheme."""
        taken = self.schemes(scheme) if callable(self.schemes) else scheme.name in self.schemes
        return taken or any(pin[0] == self.path for o in scheme.options.values() for pin in o.pins)

    def tried(self) -> list[Value]:
        """Return the values to try, the default among them, in the form that a Config holds."""
        row = row_of(self.path)
        words: Sequence[Value] = self.values or row.choices or (0, 1)
        return [parse(self.path, row, word) for word in words]


_TABLES = ("tb_static", "tb_learned", "tb_bloom", "tb_auto")
CHOICES: tuple[Choice, ...] = (
    # granularity
    Choice("scheme.table.reduce", first=True),
    Choice("scheme.table.group", schemes=_TABLES),
    Choice("scheme.table.shortest", (0, 250, 4000), _TABLES, needs=("scheme.table.group", (1,))),
    Choice("scheme.auto.share", (0, 0.1, 0.5, 1), ("tb_auto",)),
    Choice("scheme.auto.waiting", (0, 0.25, 0.75, 1), ("tb_auto",)),
    Choice("scheme.auto.reduce", schemes=("tb_auto",)),
    Choice("scheme.bloom.per", schemes=("tb_bloom",)),
    Choice("scheme.sync.policy", first=True),
    Choice("scheme.sync.fused", first=True),
    # what starts ahead of its gate
    Choice("scheme.prologue", first=True),
    Choice("scheme.sync.launch"),
    Choice("scheme.sync.trigger", needs=("scheme.sync.launch", ("pdl", "graph"))),
    Choice("scheme.sync.gate", needs=("scheme.sync.launch", ("streams",))),
    # which TB goes first, and where
    Choice("scheme.priority"),
    Choice("scheme.blockmaestro.priority"),
    Choice("scheme.reserve", (0.125, 0.25), _windowed),
    Choice("scheme.placement"),
    Choice("scheme.sync.spread"),
    # caches
    Choice("scheme.coherence", needs=("scheme.prologue", (0,))),  # with a prologue of plans, L1 is bypassed
    Choice("scheme.carveout", schemes=_any),
    # how software maps kernels to queues and threads
    Choice("scheme.queues.map"),
    Choice("scheme.acs.threads", (1, 4, 16), ("acs_sw",)),
)


def option_that_sets(scheme: Scheme, path: str, value: Value) -> str | None:
    """Return the option of a scheme that sets a parameter to a value, and nothing else; or None."""
    for name, option in scheme.options.items():
        if [pin[0] for pin in option.pins] == [path] and parse(
            path, row_of(path), option.pins[0][1]
        ) == value:
            return name
    return None


def default_of(scheme: Scheme, path: str, config: Config) -> Value:
    """Return the value of a parameter under a scheme without options."""
    pins = dict(scheme.pins)
    return parse(path, row_of(path), pins[path]) if path in pins else config[path]


def values_of(scheme: Scheme, choice: Choice, config: Config) -> tuple[Value, ...]:
    """Return the values that a plan may choose under a scheme, the default first; one: there is no choice.

    What the scheme pins only its own options change.
    """
    default = default_of(scheme, choice.path, config)
    pinned = any(path == choice.path for path, _ in scheme.pins)
    more = [
        value
        for value in choice.tried()
        if value != default and (not pinned or option_that_sets(scheme, choice.path, value))
    ]
    return (default, *dict.fromkeys(more)) if choice.concerns(scheme) else (default,)


def known_schemes(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the schemes to search: those named, or all but limits; raises ConfigError.

    An option in a name is refused: the search chooses options.
    """
    from pysim.schemes.registry import parse_schemes

    if not names:
        return [name for name in known if name not in LIMITLESS]
    made = parse_schemes(names)
    for choice in made:
        if choice.options:
            raise ConfigError(f"--schemes: {choice.name}: give no options: the search chooses them")
    return [choice.name for choice in made]
