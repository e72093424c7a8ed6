"""Writes result files: what all of them hold beside their tables, for scripts and for ``Result.to_file``.

``stats``, the package that writes HDF5, is imported when a file is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pysim import __version__
from pysim.errors import OutputError
from pysim.schemes.registry import kernel_level

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
    import stats

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
    import stats

    declared = {**graph_schema.TABLES, **schema.TABLES}
    level = kernel_level(tables["runs"]["scheme"].tolist()) if "runs" in tables else []
    about = {stats.KERNEL_LEVEL: json.dumps(level), **about}
    stats.write(path, tables, about, configuration, force, picture, declared, beside)


def write(
    path: str | os.PathLike[str],
    tables: Mapping[str, Any],
    job: Job,
    config: Config,
    about: Mapping[str, str],
    force: bool,
) -> None:
    """Write the tables of a job's runs; ``about``: :func:`attributes`. OutputError if they cannot be."""
    import stats

    schemes = [name.decode() for name in tables["runs"]["scheme"].tolist()]
    held = [name for name in tables if len(tables[name])]
    renamed = job.origin is not None and job.origin.renamed
    made = configuration(SCRIPT, _workload(job, config), schemes, held, config, renamed)
    try:
        store(path, tables, {"script": SCRIPT, **about}, made, force)
    except stats.StoreError as error:
        raise OutputError(str(error)) from error


def _workload(job: Job, config: Config) -> dict[str, Any]:
    """Return what is known of the making of a job.

    ``made_for``: the machine that its kernels were chosen for, where it is another than the simulated one.
    """
    origin = job.origin
    if origin is None:
        return {"name": job.name, "arguments": job.arguments}
    chosen = None if origin.machine is None else _machine(origin.machine)
    if "workload" not in origin.about or chosen == _machine(config):
        return dict(origin.about)
    return {**origin.about, "made_for": chosen}


def _machine(config: Config) -> dict[str, Any]:
    """Return the device and its values: what a library may choose its kernels by."""
    return {key: value for key, value in config.as_dict().items() if key.startswith(("device", "gpu."))}
