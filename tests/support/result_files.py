"""Result files of small jobs, as scripts write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pysim import simulate, stats
from pysim.program.job import Job
from pysim.results import schema
from pysim.schemes.registry import kernel_level


def result_file(
    path: Path, gpu: str, job: Job, schemes: str = "stream", without: tuple[str, ...] = (), **overrides: Any
) -> stats.Results:
    """Simulate a job and return its results, read from a file; ``without``: tables to leave out.

    ``overrides``: values by parameter path, ``__`` for each dot.
    """
    values = {name.replace("__", "."): value for name, value in overrides.items()}
    result = simulate(gpu, job, schemes, threads=1, overrides=values)
    tables = {name: rows for name, rows in result.tables().items() if name not in without}
    configuration = {"parameters": result.config.as_dict()}
    whole = kernel_level(tables["runs"]["scheme"].tolist())
    about = {"script": "test", stats.KERNEL_LEVEL: json.dumps(whole)}
    stats.write(path, tables, about, configuration, declared=schema.TABLES)
    return stats.load(path)
