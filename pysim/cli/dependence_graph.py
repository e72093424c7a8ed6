"""The command ``pysim dependences``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysim.errors import ConfigError, InputError, OutputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from pysim.program.job import Job


def _job_of_operand(args: argparse.Namespace) -> tuple[Job, bool]:
    """Return the job of the operand, and whether it is renamed. ``./gru`` is a path, ``gru`` a workload."""
    from pysim import stats
    from pysim.workloads.registry import WORKLOADS, make

    from .entry import reading_input
    from .job_source import job_of_result, job_of_trace

    text, path = args.workload, Path(args.workload)
    recorded = path.suffix == ".h5" or (
        text.partition(":")[0] not in WORKLOADS and (path.exists() or "/" in text.partition(":")[0])
    )
    if recorded and args.gpu:
        raise ConfigError(f"--gpu: {text} is no workload")
    with reading_input():
        if path.suffix == ".h5":
            try:
                results = stats.load(path)
            except stats.StoreError as error:
                raise InputError(str(error)) from None
            made = job_of_result(path, results.configuration, results.attributes, make)
            return made.job, made.renamed
        if recorded:
            return job_of_trace(path, args.kernels), False
        return make(text, args.gpu), False


def dependences(args: argparse.Namespace) -> None:
    """Show which TBs depend on which; draw a window of them; write the graph."""
    from pysim import __version__, stats
    from pysim.program.rename import renamed
    from pysim.results.digests import source_digest
    from pysim.results.graph_schema import TABLES as GRAPH
    from pysim.results.graph_tables import GraphTables, graph_hash
    from pysim.stats.pictures.graph_layout import layout
    from pysim.stats.pictures.graph_picture import to_dot, to_png, to_svg
    from pysim.stats.text.dependences import format_dependences

    drawers: dict[str, Callable[[Any], bytes]] = {
        ".svg": lambda drawn: to_svg(drawn).encode(),
        ".dot": lambda drawn: to_dot(drawn).encode(),
        ".png": lambda drawn: to_png([drawn]),
    }
    target, picture = args.out, args.picture
    if picture is not None and picture.suffix not in drawers:
        raise ConfigError(f"--picture: {picture}: the name must end in .svg, .dot or .png")
    if picture is not None and not picture.parent.is_dir():
        raise ConfigError(f"--picture: {picture.parent} is no folder")
    if picture is not None and picture.exists() and not args.force:
        raise OutputError(f"{picture} is there already: --force replaces it")
    chosen = {"kernels": [list(r) for r in args.kernels]} if args.kernels else {}
    configuration = {
        "command": "dependences",
        "version": f"{__version__}+{source_digest()}",
        "name": args.workload,
        "granularity": args.granularity,
        "rename": args.rename,
        **({"gpu": args.gpu} if args.gpu else {}),
        **chosen,
    }
    if target is not None:
        stats.check_writable(target, args.force, configuration)
    job, is_renamed = _job_of_operand(args)
    if args.kernels and not any(kernel.footprint for kernel in job.kernels):
        raise ConfigError(
            f"--kernels: {args.workload} is no trace; --window chooses the kernels of a picture"
        )
    if args.rename and not is_renamed:
        job, is_renamed = renamed(job), True
    study = GraphTables(job, args.granularity, is_renamed)
    first, last = args.window or (0, min(3, len(job.kernels) - 1))
    window = study.window(first, last) if args.window or picture else {}
    tables = {**study.tables(), **window}
    wrote = []
    if picture is not None:
        title = f"{study.job.name}, dependences by {args.granularity}"
        stats.write_bytes(picture, drawers[picture.suffix](layout(tables, title)))
        wrote.append(picture)
    if target is not None:
        attributes = {"command": "dependences", "graph": graph_hash(study.deps)}
        every = {**tables, **study.csr()}
        stats.write(target, every, attributes, configuration, args.force, declared=GRAPH)
        wrote += [target, target.with_suffix(".json")]
    lines = [f"wrote {', '.join(map(str, wrote))}"] if wrote else []
    if args.json:
        print(stats.to_json(tables))
        print("\n".join(lines), end="\n" if lines else "", file=sys.stderr)
    else:
        print("\n".join([format_dependences(tables), *lines]).rstrip())
