"""All schemes by name, those of users included, and how a user names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.errors import ConfigError

from .aql_queues import QUEUES
from .barriers import GRAPH, HOST, STREAM
from .blockmaestro import BLOCKMAESTRO
from .bloom import TB_BLOOM
from .cusync import CUSYNC, PDL
from .dependence_table import POOL, TB_IDEAL, TB_STATIC
from .fused import FUSED
from .kernel_window import ACS_HW, ACS_SW
from .learned import TB_LEARNED
from .wireframe import WIREFRAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job

    from .hardware_cost import Sizes, Structure
    from .launch_plan import LaunchPlan
    from .scheme import Scheme

SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        *(HOST, STREAM, GRAPH),
        *(POOL, ACS_HW, ACS_SW, QUEUES, BLOCKMAESTRO, WIREFRAME),
        *(TB_STATIC, TB_LEARNED, TB_BLOOM, TB_IDEAL),
        *(PDL, CUSYNC, FUSED),
    )
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A scheme with options, as a user wrote it (``tb_static:newest+tb``)."""

    scheme: Scheme
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name in result tables."""
        return self.scheme.full_name(self.options)

    @property
    def waits_inside(self) -> bool:
        """Whether TBs wait inside their programs, under the scheme or one of the options."""
        return self.scheme.waits_inside or any(self.scheme.options[o].waits_inside for o in self.options)

    @property
    def pins(self) -> dict[str, int | str]:
        """Parameters that the scheme and its options fix."""
        made = dict(self.scheme.pins)
        for option in self.options:
            made.update(self.scheme.options[option].pins)
        return made

    def launch_plan(self, job: Job, deps: Dependences, config: Config) -> LaunchPlan | None:
        """Return the launches, where programs change or wait inside; None: the job is launched as it is."""
        return self.scheme.launch_plan(self.options, job, deps, config)

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return what hardware keeps for the scheme and its options (``Scheme.structures``)."""
        made = self.scheme.structures(sizes, values, counts)
        more = [self.scheme.options[option].structure for option in self.options]
        return made + [structure(sizes) for structure in more if structure is not None]


def _unknown(what: str, name: str, known: Sequence[str]) -> ConfigError:
    import difflib  # for errors alone

    close = difflib.get_close_matches(name, known, 1)
    hint = f": did you mean {close[0]!r}?" if close else f": there are {', '.join(known) or 'none'}"
    return ConfigError(f"{what} {name!r}{hint}")


def parse_scheme(text: str) -> Choice:
    """Return the scheme that ``name`` or ``name:option+option`` stands for."""
    name, colon, rest = text.strip().partition(":")
    if name not in SCHEMES:
        raise _unknown("no scheme", name, list(SCHEMES))
    scheme = SCHEMES[name]
    options = tuple(rest.split("+")) if colon else ()
    fixed: dict[str, str] = {}
    for option in options:
        if option not in scheme.options:
            raise _unknown(f"scheme {name} has no option", option, list(scheme.options))
        for path, _ in scheme.options[option].pins:
            if path in fixed:
                raise ConfigError(
                    f"scheme {text.strip()}: options {fixed[path]} and {option} both set {path}"
                )
            fixed[path] = option
    return Choice(scheme, options)


def parse_schemes(text: str | Sequence[str]) -> list[Choice]:
    """Return the schemes of a comma-separated list; a repeated one counts once."""
    words = text.split(",") if isinstance(text, str) else list(text)
    made: dict[str, Choice] = {}
    for word in words:
        if word.strip():
            choice = parse_scheme(word)
            made.setdefault(choice.name, choice)
    if not made:
        raise ConfigError("no scheme given")
    return list(made.values())
