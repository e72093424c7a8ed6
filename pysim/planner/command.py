"""The command ``pysim plan``."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.units import row_of, show

if TYPE_CHECKING:
    from .report import Report


def plan(args: argparse.Namespace) -> None:
    """Search the plans of a workload and print what was found; after Ctrl-C what was found so far."""
    from pysim import stats
    from pysim.cli.options import machine_threads
    from pysim.engine.run import simulate
    from pysim.machine.mechanisms import without
    from pysim.schemes.registry import SCHEMES

    from .choices import BASE, known_schemes
    from .report import Report
    from .runs import Case, Runs
    from .search import Outcome, Search
    from .space import Space

    names = known_schemes(args.schemes, list(SCHEMES))
    given = dict(args.set or ())
    case = Case(args.workload, args.gpu, {**without(args.without), **given})
    config, job = case.config(), case.job()
    space = Space(config, names, case.settings)
    log = stats.Log(args.quiet, unit="plans")
    result = simulate(config, job, BASE, threads=1, tables="none")
    (row,) = result.listed()["runs"]
    if result.interrupted:
        raise KeyboardInterrupt
    if row["status"] != b"ok":
        raise WorkloadError(f"{job.name}: {row['reason'].decode()}")
    first = Outcome("ok", "", *(float(row[name]) for name in ("time_us", "estimate_us", "bound_us")))
    with Runs(case, job, result.deps, args.jobs or machine_threads(), lambda done: None) as runs:
        runs.told = lambda done: log("plan", done + 1, args.budget)
        search = Search(space, runs, args.budget, args.seed, {space.plan(BASE, {}): first})
        made = Report(case, job, search, _machine_words(args))
        try:
            search.run()
        except KeyboardInterrupt:
            search.ended = "interrupted"
            log.clear()
            _print(made, args)
            raise
    log.clear()
    _print(made, args)


def _machine_words(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the options of the machine as they were given."""
    words = ["--gpu", args.gpu]
    for path, value in args.set or ():
        words += ["--set", f"{path}={show(row_of(path), value)}"]
    return (*words, *(("--without", ",".join(args.without)) if args.without else ()))


def _print(made: Report, args: argparse.Namespace) -> None:
    print(json.dumps(made.as_dict(), allow_nan=False) if args.json else made.text(args.rows))
