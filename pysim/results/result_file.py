"""Result files and pictures by ``stats``, which is imported when one is made.

What all files hold beside their tables is here once, for scripts and for ``Result.to_file``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pysim import __version__
from pysim.errors import ConfigError, MissingLibraryError, OutputError
from pysim.schemes.registry import kernel_level
from pysim.units import ROWS

from . import graph_schema, schema
from .digests import source_digest
from .graph_tables import graph_hash

if TYPE_CHECKING:
    import os

    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job


SCRIPT = "simulate"  # what the files of Result.to_file say instead of a script's name


def configuration(
    script: str,
    workload: Mapping[str, Any],
    schemes: Sequence[str],
    tables: Sequence[str],
    config: Config,
    renamed: bool,
) -> dict[str, Any]:
    """Return what a result file says of its making: everything that decides the result.

    ``script``: name of what made it; ``workload``: from which ``pysim.cli.job_source`` makes the job again;
    ``tables``: chosen ones; ``renamed``: whether every value of the job has its own memory.
    """
    return {
        "script": script,
        "version": f"{__version__}+{source_digest()}",
        "workload": dict(workload),
        "schemes": list(schemes),
        "tables": ",".join(tables),
        "parameters": config.as_dict(),
        **({"rename": True} if renamed else {}),
    }


def attributes(deps: Dependences, interrupted: bool) -> dict[str, str]:
    """Return the attributes of a file of one job: the hash of its edges, and whether it was interrupted."""
    from pysim import stats

    return {"graph": graph_hash(deps), **({stats.INTERRUPTED: "yes"} if interrupted else {})}


def store(
    path: str | os.PathLike[str],
    tables: Mapping[str, Any],
    about: Mapping[str, str],
    configuration: dict[str, Any],
    force: bool = False,
    picture: bytes | None = None,
    beside: bool = True,
) -> None:
    """Write tables to a result file, with the units and meanings of their columns.

    ``about``: attributes of the file; ``picture``: PNG; ``beside``: whether the configuration is also written
    as JSON.
    """
    from pysim import stats

    declared = {**graph_schema.TABLES, **schema.TABLES}
    about = {stats.KERNEL_LEVEL: _kernel_level(tables), **about}
    stats.write(path, tables, about, configuration, force, picture, declared, beside)


def write(
    path: str | os.PathLike[str],
    tables: Mapping[str, Any],
    about: Mapping[str, str],
    configuration: dict[str, Any],
    force: bool,
) -> None:
    """Write the tables of a result; ``about``: :func:`attributes`. OutputError if they cannot be written."""
    from pysim import stats

    try:
        store(path, tables, {"script": SCRIPT, **about}, configuration, force)
    except stats.StoreError as error:
        raise OutputError(str(error)) from error


def configuration_of(tables: Mapping[str, Any], job: Job, config: Config) -> dict[str, Any]:
    """Return what a file of these tables says of their making."""
    schemes = [name.decode() for name in tables["runs"]["scheme"].tolist()]
    held = [name for name in tables if len(tables[name])]
    renamed = job.origin is not None and job.origin.renamed
    return configuration(SCRIPT, _workload(job, config), schemes, held, config, renamed)


def report(
    target: str | os.PathLike[str],
    tables: Mapping[str, Any],
    job: Job,
    config: Config,
    deps: Dependences,
    most_tbs: int | None,
    force: bool,
) -> Any:
    """Write the report of a job's runs. OutputError if it cannot be."""
    from pysim import stats
    from pysim.stats.held import Held
    from pysim.stats.page import MOST_TBS, Recording, write_report

    about = {"script": SCRIPT, stats.KERNEL_LEVEL: _kernel_level(tables)}
    made = configuration_of(tables, job, config)
    held = Held(job.name, tables, about, made, schema.TABLES)
    recording = Recording(held, job.name, page_edges(deps))
    try:
        return write_report(
            [recording],
            target,
            MOST_TBS if most_tbs is None else most_tbs,
            force,
            meanings=parameter_meanings(),
        )
    except stats.StoreError as error:
        raise OutputError(str(error)) from error


def page_edges(deps: Dependences) -> Any:
    """Return edges as the report takes them, as ``pysim.stats.page.Edges``."""
    from pysim.stats.page import Edges

    found = deps.groups
    names = ("kernel", "producer_ptr", "producers", "kinds", "consumer_ptr", "consumers")
    return Edges(deps.offsets, *(getattr(found, name) for name in names))


def parameter_meanings() -> dict[str, tuple[str, str]]:
    """Return unit and meaning of each parameter by its path."""
    return {path: (row.unit, row.doc) for path, row in ROWS.items()}


def _kernel_level(tables: Mapping[str, Any]) -> str:
    return json.dumps(kernel_level(tables["runs"]["scheme"].tolist()) if "runs" in tables else [])


def picture(tables: Mapping[str, Any], kind: str, title: str) -> Any:
    """Return a picture of tables; ConfigError if there is none, MissingLibraryError without matplotlib."""
    from pysim import stats

    try:
        return stats.picture(tables, kind, title)
    except stats.StoreError as error:
        if isinstance(error.__cause__, ImportError):
            raise MissingLibraryError("picture()", "matplotlib", "plot") from error
        raise ConfigError(str(error)) from error


def _workload(job: Job, config: Config) -> dict[str, Any]:
    """Return what is known of the making of a job.

    ``made_for``: what differs between the machine that its kernels were chosen for and the simulated one, by
    path; None: they were chosen for no machine. Left out where nothing differs.
    """
    origin = job.origin
    if origin is None:
        return {"name": job.name, "arguments": job.arguments}
    if "workload" not in origin.about:  # a trace, which no machine changes
        return dict(origin.about)
    if origin.machine is None:
        return {**origin.about, "made_for": None}
    simulated, chosen = config.as_dict(), origin.machine.as_dict()
    differs = {
        path: value
        for path, value in chosen.items()
        if path.startswith(("device", "gpu.")) and simulated[path] != value
    }
    return {**origin.about, **({"made_for": differs} if differs else {})}
