"""All schemes by name, those of users included, and how a user names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from pysim.errors import ConfigError, brief
from pysim.units import parse, row_of

from .aql_queues import QUEUES
from .auto.scheme import TB_AUTO
from .barriers import GRAPH, HOST, STREAM
from .blockmaestro import BLOCKMAESTRO
from .bloom import TB_BLOOM
from .cusync import CUSYNC, PDL
from .dependence_table import POOL, TB_IDEAL, TB_STATIC
from .fused import FUSED
from .hooks import full_name_of, launch_plan_of, structures_of
from .kernel_window import ACS_HW, ACS_SW
from .learned import TB_LEARNED
from .options import SchemeOption
from .scheme import Scheme
from .wireframe import WIREFRAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job

    from .hardware_cost import Sizes, Structure
    from .launch_plan import LaunchPlan

SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        *(HOST, STREAM, GRAPH),
        *(POOL, ACS_HW, ACS_SW, QUEUES, BLOCKMAESTRO, WIREFRAME),
        *(TB_STATIC, TB_LEARNED, TB_BLOOM, TB_AUTO, TB_IDEAL),
        *(PDL, CUSYNC, FUSED),
    )
}


LONGEST_NAME = 64  # characters of a scheme's or an option's name
_TRAITS = ("windowed", "waits_inside", "waits_for_kernels", "fuses", "host_launches")
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


def register_scheme(scheme: Scheme) -> None:
    """Add a scheme of your own to ``SCHEMES``.

    ``simulate``, ``bound``, ``pysim schemes``, scripts and error messages then know it by its name, with its
    options, for as long as the process lives or until ``del pysim.SCHEMES[name]``. A scheme needs no C.

    Parameters
    ----------
    scheme
        An object of a subclass of ``pysim.Scheme`` (whole kernels wait) or ``pysim.TableScheme`` (TBs wait
        for TBs in the dependence table).

    Raises
    ------
    ConfigError
        The argument is no scheme; a field of it is missing or of another type; a name is taken or is not a
        letter with letters, digits and underscores after it; the granularity is unknown; TBs wait without the
        table; the gap is no parameter that is a time; a pin names an unknown parameter or a value that it
        cannot take.

    Examples
    --------
    A graph whose kernels also wait for the kernel two before, as with two buffers in turn:

    >>> import pysim
    >>> from pysim.workloads import make
    >>> class TwoBuffers(pysim.Scheme):
    ...     def preds(self, job, deps):
    ...         needed = super().preds(job, deps)
    ...         return [tuple(sorted({*p, k - 2})) if k > 1 else p for k, p in enumerate(needed)]
    >>> pysim.register_scheme(TwoBuffers("two_buffers", "A graph with two buffers.", "gpu.cp.graph_gap"))
    >>> job = make("gru:hidden=64,batch=4,timesteps=2,layers=2")
    >>> result = pysim.simulate("titan_v", job, "graph,two_buffers", overrides={"sim.oracle": 1})
    >>> result.time_us("two_buffers") >= result.time_us("graph")
    True
    >>> del pysim.SCHEMES["two_buffers"]
    """
    given: object = scheme
    if not isinstance(given, Scheme):
        what = f"class {given.__name__}" if isinstance(given, type) else type(given).__name__
        raise ConfigError(f"register_scheme: {what} is no object of a subclass of pysim.Scheme")
    for field in fields(Scheme):
        if not hasattr(scheme, field.name):
            raise ConfigError(
                f"register_scheme: {type(scheme).__name__} sets no {field.name}:"
                " its __init__ must call that of pysim.Scheme"
            )
    _check_name("scheme", scheme.name)
    where = f"scheme {scheme.name}"
    _check_types(where, scheme, {"doc": str, "gap": str, "options": Mapping})
    _check_types(where, scheme, dict.fromkeys(_TRAITS, bool))
    if scheme.name in SCHEMES:
        raise ConfigError(f"{where}: the name is taken; del pysim.SCHEMES[{scheme.name!r}] frees it")
    if scheme.granularity not in ("kernel", "tb"):
        raise ConfigError(f"{where}: granularity = {scheme.granularity!r}: there are kernel, tb")
    if not scheme.kernels_wait and not scheme.windowed:
        raise ConfigError(f"{where}: TBs wait in the dependence table: windowed must be True")
    if scheme.gap:
        _check_time(f"{where}: gap", scheme.gap)
    _check_pins(where, scheme.pins)
    for name, option in scheme.options.items():
        _check_name(f"{where}: option", name)
        _check_option(f"{where}: option {name}", option)
    SCHEMES[scheme.name] = scheme


def _check_option(where: str, option: object) -> None:
    if not isinstance(option, SchemeOption):
        raise ConfigError(f"{where}: {type(option).__name__} is no pysim.SchemeOption")
    _check_types(where, option, {"doc": str, "waits_inside": bool})
    structure: object = option.structure
    if structure is not None and not callable(structure):
        raise ConfigError(f"{where}: structure = {structure!r}: must be a function")
    _check_pins(where, option.pins)


def _check_types(where: str, made: object, types: Mapping[str, type]) -> None:
    for name, kind in types.items():
        value = getattr(made, name)
        if not isinstance(value, kind):
            wanted = {str: "text", bool: "True or False"}.get(kind, "a dict")
            raise ConfigError(f"{where}: {name} = {value!r}: must be {wanted}")


def _check_name(what: str, name: object) -> None:
    # names stand in ASCII columns of result files, and between the commas, colons and pluses of --schemes
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise ConfigError(
            f"{what} {name!r}: a name is a letter, then letters, digits and underscores,"
            f" {LONGEST_NAME} characters at most"
        )


def _check_time(where: str, path: str) -> None:
    try:
        unit = row_of(path).unit
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    if unit not in ("ns", "us"):
        raise ConfigError(f"{where}: {path} is no time: its unit is {unit or 'none'}")


def _check_pins(where: str, pins: object) -> None:
    for pin in pins if isinstance(pins, (tuple, list)) else (pins,):
        if not (isinstance(pin, (tuple, list)) and len(pin) == 2 and isinstance(pin[0], str)):
            raise ConfigError(f"{where}: pins are (parameter, value) pairs, not {pin!r}")
        path, value = pin
        try:
            parse(path, row_of(path), value)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None


@dataclass(frozen=True, slots=True)
class Choice:
    """A scheme with options, as a user wrote it (``tb_static:newest+tb``)."""

    scheme: Scheme
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name in result tables."""
        return full_name_of(self.scheme, self.options)

    @property
    def waits_inside(self) -> bool:
        """Whether TBs wait inside their programs, under the scheme or one of the options."""
        return self.scheme.waits_inside or any(self.scheme.options[o].waits_inside for o in self.options)

    @property
    def replays(self) -> bool:
        """Whether periods of a job may be left out: no TB waits inside its program for TBs of other kernels.

        Else launches are not the kernels of the job, but have gates between them or stages inside.
        """
        options = any(self.scheme.options[o].waits_inside for o in self.options)
        return not self.waits_inside or (self.scheme.waits_for_kernels and not options)

    @property
    def pins(self) -> dict[str, int | str]:
        """Parameters that the scheme and its options fix."""
        made = dict(self.scheme.pins)
        for option in self.options:
            made.update(self.scheme.options[option].pins)
        return made

    def overruled(self, config: Config) -> list[str]:
        """Return a note for each parameter that the user has set and that the scheme fixes otherwise."""
        return [
            f"{self.name}: {path} is {value}, not {config[path]}: the scheme fixes it"
            for path, value in self.pins.items()
            if path in config.given and parse(path, row_of(path), value) != config[path]
        ]

    def launch_plan(self, job: Job, deps: Dependences, config: Config) -> LaunchPlan | None:
        """Return the launches, where programs change or wait inside; None: the job is launched as it is."""
        return launch_plan_of(self.scheme, self.options, job, deps, config)

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return what hardware keeps for the scheme and its options (``Scheme.structures``)."""
        made = structures_of(self.scheme, sizes, values, counts)
        more = [self.scheme.options[option].structure for option in self.options]
        return made + [structure(sizes) for structure in more if structure is not None]


def _unknown(what: str, name: str, known: Sequence[str]) -> ConfigError:
    import difflib  # for errors alone

    name = brief(name)
    close = difflib.get_close_matches(name, known, 1)
    hint = f": did you mean {close[0]!r}?" if close else f": there are {', '.join(known) or 'none'}"
    return ConfigError(f"{what} {name!r}{hint}")


def _registered(scheme: object) -> Scheme:
    """Return a scheme that is given as an object; a ConfigError says how to register it."""
    if not isinstance(scheme, Scheme):
        what = f"class {scheme.__name__}" if isinstance(scheme, type) else brief(scheme)
        raise ConfigError(f"{what} is no scheme: give a name, or an object that is registered")
    if SCHEMES.get(scheme.name) is not scheme:
        raise ConfigError(f"scheme {brief(scheme.name)} is not registered: call pysim.register_scheme first")
    return scheme


def parse_scheme(text: str | Scheme) -> Choice:
    """Return the scheme that ``name`` or ``name:option+option`` stands for, or a registered scheme."""
    if not isinstance(text, str):
        return Choice(_registered(text))
    name, colon, rest = text.strip().partition(":")
    if name not in SCHEMES:
        first, plus, more = name.partition("+")
        if plus and not colon and first in SCHEMES:
            raise ConfigError(f"no scheme {name!r}: did you mean {f'{first}:{more}'!r}?")
        raise _unknown("no scheme", name, list(SCHEMES))
    scheme = SCHEMES[name]
    options = tuple(rest.split("+")) if colon else ()
    fixed: dict[str, str] = {}
    given: set[str] = set()
    for option in options:
        if option not in scheme.options:
            raise _unknown(f"scheme {name} has no option", option, list(scheme.options))
        if option in given:
            raise ConfigError(f"scheme {text.strip()}: option {option} is given twice")
        given.add(option)
        for path, _ in scheme.options[option].pins:
            if path in fixed:
                raise ConfigError(
                    f"scheme {text.strip()}: options {fixed[path]} and {option} both set {path}"
                )
            fixed[path] = option
    return Choice(scheme, options)


def kernel_level(names: Iterable[bytes]) -> list[str]:
    """Return those of the names of ``runs`` that order whole kernels, each once.

    A name may have a setting after it, ``NAME, SETTING``. A name that a study gives its runs and that is no
    scheme, such as ``stream-K``, is left out.
    """
    texts = dict.fromkeys(name.decode("utf-8", "replace") for name in names)
    known = [text for text in texts if re.split("[:,]", text)[0].strip() in SCHEMES]
    return [text for text in known if parse_scheme(text.partition(", ")[0]).scheme.kernels_wait]


def parse_schemes(text: str | Scheme | Iterable[str | Scheme]) -> list[Choice]:
    """Return the schemes of a comma-separated list, or of names and objects; a repeated one counts once."""
    given: object = text
    if isinstance(given, bytes) or not isinstance(given, str | Scheme | Iterable):
        raise ConfigError(f"schemes = {brief(given)}: must be names, such as 'stream,tb_static', or a list")
    words = text.split(",") if isinstance(text, str) else [text] if isinstance(text, Scheme) else list(text)
    made: dict[str, Choice] = {}
    for word in words:
        if not isinstance(word, str) or word.strip():
            choice = parse_scheme(word)
            made.setdefault(choice.name, choice)
    if not made:
        raise ConfigError("no scheme given")
    return list(made.values())
