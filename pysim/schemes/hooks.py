"""Calls the hooks of a scheme and checks what they return: a scheme may come from outside the package.

A hook sees ``values`` read-only, as all schemes of a call share them. Errors name the scheme and the hook.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pysim.dependence.groups import Dependences
from pysim.errors import ConfigError, DependenceError
from pysim.program.job import Job

from .core_tables import CoreTables
from .edge_check import check_edges, checked_preds
from .hardware_cost import Structure
from .known_edges import KnownEdges
from .launch_plan import LaunchPlan
from .order_check import checked_fields, checked_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pysim.machine.config import Config

    from .hardware_cost import Sizes


class _Hooked(Protocol):
    """What is called of a scheme; ``Scheme`` says what each hook returns."""

    @property
    def name(self) -> str: ...
    @property
    def windowed(self) -> bool: ...
    def full_name(self, options: Sequence[str]) -> str: ...
    def preds(self, job: Job, deps: Dependences) -> list[tuple[int, ...]]: ...
    def tb_edges(self, job: Job, deps: Dependences, values: Mapping[str, int]) -> Dependences: ...
    def known_edges(self, job: Job, deps: Dependences, values: Mapping[str, int]) -> KnownEdges: ...
    def core_order(self, job: Job, values: Mapping[str, int]) -> dict[str, Any]: ...
    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables: ...
    def add_coarse_forms(
        self, tables: CoreTables, job: Job, known: KnownEdges, values: Mapping[str, int]
    ) -> CoreTables: ...
    def launch_plan(
        self, options: Sequence[str], job: Job, deps: Dependences, config: Config
    ) -> LaunchPlan | None: ...
    def coherence(self, values: Mapping[str, int]) -> str: ...
    def carveout_mode(self, values: Mapping[str, int]) -> str: ...
    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]: ...


COHERENCE_MODES = ("kernel", "bypass", "tb", "argument")
CARVEOUT_MODES = ("kernel", "job")


@contextmanager
def _named(scheme: _Hooked, hook: str) -> Iterator[None]:
    """Put scheme and hook before the message of a DependenceError, such as of ``with_groups``."""
    try:
        yield
    except DependenceError as error:
        if str(error).startswith(f"scheme {scheme.name}: "):
            raise
        raise DependenceError(f"scheme {scheme.name}: {hook}: {error}") from error


def _is_a(scheme: _Hooked, hook: str, made: object, kind: type) -> None:
    if not isinstance(made, kind):
        raise ConfigError(
            f"scheme {scheme.name}: {hook}: must return {kind.__name__}, not {type(made).__name__}"
        )


def _read_only(values: Mapping[str, int]) -> Mapping[str, int]:
    return values if isinstance(values, MappingProxyType) else MappingProxyType(values)


def _is_column(column: object, count: int) -> bool:
    """Whether it is one integer, or a row of integers, for each of ``count`` launches."""
    try:
        made = np.asarray(column)
    except (ValueError, OverflowError):
        return False
    whole = made.dtype.kind in "biu" or not made.size
    return whole and (made.ndim == 0 or len(made) == count)


def preds_of(scheme: _Hooked, job: Job, deps: Dependences) -> list[tuple[int, ...]]:
    """Return the kernels that each kernel waits for (``Scheme.preds``); raises DependenceError."""
    with _named(scheme, "preds"):
        return checked_preds(scheme.preds(job, deps), len(job.kernels))


def tb_edges_of(scheme: _Hooked, job: Job, deps: Dependences, values: Mapping[str, int]) -> Dependences:
    """Return the edges between TBs (``Scheme.tb_edges``); raises DependenceError."""
    with _named(scheme, "tb_edges"):
        made: object = scheme.tb_edges(job, deps, _read_only(values))
        if not isinstance(made, Dependences):
            raise DependenceError(
                f"must return Dependences, not {type(made).__name__}: deps.with_groups(...)"
            )
        if not np.array_equal(made.offsets, deps.offsets):
            raise DependenceError("they are of another job: its kernels have other TBs")
        return made


def order_of(scheme: _Hooked, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
    """Return fields of ``gs_order`` (``Scheme.core_order``); raises ConfigError."""
    made: object = scheme.core_order(job, _read_only(values))
    return checked_order(f"scheme {scheme.name}: core_order", made, scheme.windowed, values["gpu.gpcs"])


def known_edges_of(scheme: _Hooked, job: Job, deps: Dependences, values: Mapping[str, int]) -> KnownEdges:
    """Return the edges that the scheme goes by (``Scheme.known_edges``).

    Raises ConfigError where that is no ``KnownEdges`` or a column has not one integer a launch.
    """
    with _named(scheme, "known_edges"):
        made = scheme.known_edges(job, deps, _read_only(values))
    _is_a(scheme, "known_edges", made, KnownEdges)
    _is_a(scheme, "known_edges: deps", made.deps, Dependences)
    # a plan may have launched other kernels than those between which the edges run
    count = len(deps.offsets) - 1
    for name in ("barrier", "lookup_ticks", "insert_ticks"):
        _check_column(scheme, f"known_edges: {name}", getattr(made, name), count)
    return made


def core_tables_of(scheme: _Hooked, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
    """Return what the core must know of a job (``Scheme.core_tables``), its coarser forms left out.

    Raises DependenceError for wrong edges, ConfigError for other wrong tables.
    """
    with _named(scheme, "core_tables"):
        made = scheme.core_tables(job, known, _read_only(values))
    _check_tables(scheme, "core_tables", made, job, values)
    return made


def all_tables_of(scheme: _Hooked, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
    """Return the tables with coarser forms (``Scheme.add_coarse_forms``); raises as ``core_tables_of``."""
    tables = core_tables_of(scheme, job, known, values)
    with _named(scheme, "add_coarse_forms"):
        made = scheme.add_coarse_forms(tables, job, known, _read_only(values))
    if made is not tables:
        _check_tables(scheme, "add_coarse_forms", made, job, values)
    return made


def _check_tables(scheme: _Hooked, hook: str, made: CoreTables, job: Job, values: Mapping[str, int]) -> None:
    from pysim._ffi import dtype_of

    _is_a(scheme, hook, made, CoreTables)
    check_edges(scheme.name, made, job)
    where = f"scheme {scheme.name}: {hook}"
    made.order = checked_order(f"{where}: order", made.order, scheme.windowed, values["gpu.gpcs"])
    if not isinstance(made.launches, dict):
        raise ConfigError(f"{where}: launches: must be a dict, not {type(made.launches).__name__}")
    names = dtype_of("gs_launch").names or ()
    for name, column in made.launches.items():
        if name not in names:
            raise ConfigError(f"{where}: launches: gs_launch has no field {name!r}")
        _check_column(scheme, f"{hook}: launches: {name}", column, len(job.kernels))


def _check_column(scheme: _Hooked, what: str, column: object, count: int) -> None:
    if not _is_column(column, count):
        raise ConfigError(f"scheme {scheme.name}: {what}: must be {count} integers, one a launch")


def launch_plan_of(
    scheme: _Hooked, options: Sequence[str], job: Job, deps: Dependences, config: Config
) -> LaunchPlan | None:
    """Return the launches (``Scheme.launch_plan``), None: the job is launched as it is.

    Raises ConfigError for what is no plan, or is one of another number of launches.
    """
    with _named(scheme, "launch_plan"):
        made = scheme.launch_plan(options, job, deps, replace(config, values=MappingProxyType(config.values)))
    if made is None:
        return None
    _is_a(scheme, "launch_plan", made, LaunchPlan)
    _is_a(scheme, "launch_plan: job", made.job, Job)
    count = len(made.job.kernels)
    for name in ("programmatic", "semaphore_bases", "priority", "preds", "cooperative", "has_prologue"):
        row = getattr(made, name)
        optional = name in ("cooperative", "has_prologue") or (
            name == "preds" and (made.intra_kernel_only or made.has_prologue)
        )
        if not isinstance(row, (list, tuple)) or (len(row) != count and (row or not optional)):
            raise ConfigError(
                f"scheme {scheme.name}: launch_plan: {name}: must be a list of {count}, one a launch"
            )
    made.order = checked_fields(f"scheme {scheme.name}: launch_plan: order", made.order)
    if made.preds:
        with _named(scheme, "launch_plan: preds"):
            made.preds = checked_preds(made.preds, count)
    return made


def structures_of(
    scheme: _Hooked, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
) -> list[Structure]:
    """Return what hardware keeps for the scheme (``Scheme.structures``); raises ConfigError."""
    made: object = scheme.structures(sizes, _read_only(values), counts)
    if not isinstance(made, (list, tuple)) or not all(isinstance(one, Structure) for one in made):
        raise ConfigError(f"scheme {scheme.name}: structures: must return a list of Structure, not {made!r}")
    return list(made)


def full_name_of(scheme: _Hooked, options: Sequence[str]) -> str:
    """Return the name in result tables (``Scheme.full_name``); raises ConfigError."""
    made: object = scheme.full_name(options)
    if not isinstance(made, str) or not made:
        raise ConfigError(f"scheme {scheme.name}: full_name: must return a name, not {made!r}")
    return made


def coherence_of(scheme: _Hooked, values: Mapping[str, int]) -> str:
    """Return kernel, bypass, tb or argument (``Scheme.coherence``); raises ConfigError."""
    return _word(scheme, "coherence", scheme.coherence(_read_only(values)), COHERENCE_MODES)


def carveout_of(scheme: _Hooked, values: Mapping[str, int]) -> str:
    """Return kernel or job (``Scheme.carveout_mode``); raises ConfigError."""
    return _word(scheme, "carveout_mode", scheme.carveout_mode(_read_only(values)), CARVEOUT_MODES)


def _word(scheme: _Hooked, hook: str, word: object, known: tuple[str, ...]) -> str:
    if not isinstance(word, str) or word not in known:
        raise ConfigError(f"scheme {scheme.name}: {hook}: {word!r}: must be one of {', '.join(known)}")
    return word
