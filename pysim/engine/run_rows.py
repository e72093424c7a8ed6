"""Rows of a result: what is told of each run, and how runs compare."""

from __future__ import annotations

import math
import platform
import resource
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.results import gap, time_series
from pysim.results.schema import DTYPES
from pysim.results.tables import names_table
from pysim.results.tables import table as rows_of
from pysim.schemes.hooks import coherence_of

from .outcome import NUMERIC_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.analysis.lower_bound import Bounds
    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job
    from pysim.results.result import Result
    from pysim.schemes.registry import Choice

    from .outcome import Outcome
    from .session import Session


def wanted_tables(words: Sequence[str]) -> frozenset[str]:
    """Return the names of the tables that a call records; ``words``: as the user gave them, checked."""
    return frozenset(DTYPES) if "all" in words else frozenset(words) | {"runs", "names", "host"}


def first_row(job: Job, config: Config, choice: Choice) -> dict[str, Any]:
    """Return the row of ``runs`` of a scheme that has not run yet."""
    row: dict[str, Any] = dict.fromkeys(NUMERIC_COLUMNS, math.nan)
    names = {"workload": job.name, "arguments": job.arguments, "scheme": choice.name}
    return row | names | {"gpu": config.device.name, "status": "ok"}


def setting(config: Config, choice: Choice, known: Bounds) -> dict[str, Any]:
    """Return the columns of ``runs`` that are known before a run."""
    return {
        "bound_us": known.bound_us,
        "estimate_us": known.estimate_us,
        "submit": str(config["host.submit"]),
        "coherence": coherence_of(choice.scheme, config.encoded()),
    }


def add_run(
    result: Result,
    session: Session,
    choice: Choice,
    found: Outcome,
    row: dict[str, Any],
    spent: NDArray[np.void],
    wanted: frozenset[str],
    done: float,
) -> None:
    """Add the tables of a run.

    ``row``: its columns of ``runs`` from before the run; ``spent``: its rows of ``energy``; ``wanted``: names
    of tables; ``done``: when it ended, by ``time.perf_counter``.
    """
    run = len(result.parts.get("runs", []))
    row = row | found.row(choice.scheme.has_window)
    row["reason"] = row["reason"] or session.note
    row["energy_j"] = float(spent["joule"].sum()) if len(spent) else math.nan
    result.add("runs", rows_of("runs", 1, run=run, **row))
    result.add("names", names_table(run, found.job))
    made = found.tables(run, choice.scheme.kernels_wait)
    made["energy"] = lambda: spent
    made["edges"] = lambda: _edges(run, session.deps, found.job, found.launch_of_kernel)
    result.notes += time_series.interval_notes(found.series, choice.name, found.lowered.values["sim.sample"])
    for table, make in made.items():
        if table in wanted:
            result.add(table, make())
    session.clock.count("write", time.perf_counter() - done)
    result.add("host", _host(run, session, session.clock.lap()))


def _host(run: int, session: Session, seconds: Mapping[str, float]) -> NDArray[np.void]:
    from pysim._ffi import ffi, lib

    build = ffi.string(lib.gs_build_info()).decode()
    versions = f"core {build}; python {platform.python_version()}; numpy {np.__version__}"
    unit = 1 if sys.platform == "darwin" else 1024
    return rows_of(
        "host",
        1,
        run=run,
        threads=session.threads,
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
        versions=versions,
        machine=f"{platform.machine()} {platform.system()} {platform.release()}",
        **seconds,
    )


def _edges(run: int, deps: Dependences, job: Job, number: Sequence[int]) -> NDArray[np.void]:
    pairs, launch = deps.edges, np.array(number, np.int64)
    who = launch[pairs["consumer"]]
    streams = np.array([k.stream for k in job.kernels], np.int64)
    return rows_of(
        "edges",
        len(pairs),
        run=run,
        kernel=who,
        stream=streams[who],
        tb=-1,
        producer_kernel=launch[pairs["producer"]],
        producer_tb=-1,
    )


def compare(result: Result) -> None:
    """Fill the columns ``speedup`` and ``gap_won``, which refer to the run of ``stream``."""
    rows = gap.compared(np.concatenate(result.parts["runs"]))
    result.parts["runs"] = [rows]
    result.notes += gap.gap_notes(rows)
