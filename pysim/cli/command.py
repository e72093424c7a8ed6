"""The command ``pysim``: what there is to choose from, graphs, traces written, devices from measurements."""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pysim.errors import ConfigError
from pysim.machine.devices import DEVICES, device
from pysim.machine.mechanisms import MECHANISMS
from pysim.params import PARAMS
from pysim.results.energy import EVENTS
from pysim.schemes.registry import SCHEMES
from pysim.units import ROWS, allowed, show, suggest

from .options import Parser, natural_int, number_ranges, positive_int

if TYPE_CHECKING:
    from pysim.program.job import Job


def _table(rows: Iterable[tuple[str, ...]]) -> None:
    """Print columns, the last one as it is."""
    lines = list(rows)
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]) - 1)] if lines else []
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        print("  ".join([*cells, line[-1]]).rstrip())


def _summary(made: Callable[..., Any]) -> str:
    return (inspect.getdoc(made) or "").partition("\n")[0]


def _arguments(made: Callable[..., Any]) -> str:
    """Write the arguments that have a default, as a user gives them."""
    known = inspect.signature(made).parameters.values()
    return ",".join(
        f"{p.name}={int(p.default) if isinstance(p.default, bool) else p.default}"
        for p in known
        if isinstance(p.default, (bool, int, float, str))
    )


def _chosen(what: str, name: str | None, known: Mapping[str, Any]) -> list[str]:
    if name is None:
        return list(known)
    if name not in known:
        raise ConfigError(f"no {what} {name}{suggest(name, known) or ': there are ' + ', '.join(known)}")
    return [name]


def _devices(args: argparse.Namespace) -> None:
    if args.name is None:
        _table((name, made.title) for name, made in DEVICES.items())
        return
    made = device(args.name)
    print(f"{made.name}: {made.title}, compute capability {'.'.join(map(str, made.compute_capability))}")
    _table((path, show(ROWS[path], value), made.sources.get(path, "")) for path, value in made.values.items())
    print()
    units = {event.name: "W" if event.unit == "s" else "pJ" for event in EVENTS}
    _table(
        (f"energy of {n}", f"{each:g} {units[n]}", f"{off:.0%}", text) for n, each, off, text in made.energies
    )
    if not made.energies:
        print("energy: nobody measured what events take on this GPU, so none is computed")


def _kernels(args: argparse.Namespace) -> None:
    from workloads.registry import KERNELS

    _table((name, _summary(KERNELS[name])) for name in _chosen("kernel", args.name, KERNELS))


def _workloads(args: argparse.Namespace) -> None:
    from workloads.registry import WORKLOADS

    names = _chosen("workload", args.name, WORKLOADS)
    _table((name, _summary(WORKLOADS[name])) for name in names)
    if args.name is not None:
        print(f"{args.name}:{_arguments(WORKLOADS[args.name])}")


def _schemes(args: argparse.Namespace) -> None:
    rows = []
    for name in _chosen("scheme", args.name, SCHEMES):
        rows.append((name, SCHEMES[name].doc))
        rows += [(f"  +{option}", row.doc) for option, row in SCHEMES[name].options.items()]
    _table(rows)


def _mechanisms(args: argparse.Namespace) -> None:
    names = _chosen("mechanism", args.name, MECHANISMS)
    _table(
        (name, MECHANISMS[name].doc, ", ".join(f"{path}={value}" for path, value in MECHANISMS[name].off))
        for name in names
    )


def _parameters(args: argparse.Namespace) -> None:
    paths = [path for path in ROWS if args.name is None or f"{path}.".startswith(f"{args.name}.")]
    if not paths:
        raise ConfigError(f"no parameter {args.name}{suggest(args.name, (*ROWS, *PARAMS))}")
    values = device(args.gpu).values if args.gpu else {}
    if args.markdown:
        print("| path | default | allowed | meaning |\n|---|---|---|---|")
    rows = []
    for path in paths:
        row = ROWS[path]
        default = show(row, values.get(path, row.default))
        rows.append((path, default, allowed(row).removeprefix("must be ").removeprefix("in "), row.doc))
    if args.markdown:
        for path, *cells in rows:
            print(f"| `{path}` | {' | '.join(cells)} |")
    else:
        _table(rows)


def _tables(args: argparse.Namespace) -> None:
    from pysim.results import graph_schema, schema

    known = {**schema.TABLES, **graph_schema.TABLES}
    if args.name is None:
        _table((name, ", ".join(column.name for column in columns)) for name, columns in known.items())
        return
    (name,) = _chosen("table", args.name, known)
    _table((column.name, column.dtype.lstrip("<|"), column.unit, column.doc) for column in known[name])


def _write_trace(args: argparse.Namespace) -> None:
    from pysim.trace.writer import write_trace
    from workloads.registry import make

    job = make(args.name)
    count = len(job.kernels)
    chosen = None
    for first, last in args.kernels or ():
        if last > count:
            raise ConfigError(f"--kernels: no kernel {last}: {job.name} has 1 to {count}")
        chosen = {*(chosen or ()), *range(first, last + 1)}
    done = write_trace(
        job, Path(args.out), binary=args.binary, compress=args.compress, kernels=chosen, force=args.force
    )
    files = len(done.files) - 1
    print(
        f"{args.out}: {files} kernels, {done.instructions:,} warp instructions, {done.characters:,} B of text"
    )
    if job.events:
        print(f"left out: {len(job.events)} events between streams, which the format has no words for")


def _calibrate(args: argparse.Namespace) -> None:
    from pysim.machine.calibrate import calibrate
    from pysim.machine.devices import device as read_device

    base = args.base or "h200"
    text, kept = calibrate(Path(args.name), base)
    if args.output is None:
        print(text, end="")
        return
    path = Path(args.output)
    if path.suffix != ".toml":
        raise ConfigError(f"{path}: the name of a device file ends in .toml")
    try:
        with path.open("w" if args.force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} is there already: --force replaces it") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None
    made = read_device(str(path))
    print(f"{path}: {made.title}; {len(made.values) - len(kept)} numbers measured, {len(kept)} of {base}")


def _job(args: argparse.Namespace) -> tuple[Job, bool]:
    """Return the job that the operand names, and whether it is renamed; ``./gru`` is no workload."""
    import stats
    from workloads.registry import WORKLOADS, make

    from .job_source import job_of_result, job_of_trace

    text, path = args.name, Path(args.name)
    if path.suffix == ".h5":
        results = stats.load(path)
        return job_of_result(path, results.configuration, results.attributes, make)
    if text.partition(":")[0] not in WORKLOADS and (path.exists() or len(path.parts) > 1):
        return job_of_trace(path, args.kernels), False
    return make(text), False


def _dependences(args: argparse.Namespace) -> None:
    import stats
    from pysim import __version__
    from pysim.program.rename import renamed
    from pysim.results.graph_schema import TABLES as GRAPH
    from pysim.results.graph_tables import GraphTables, graph_hash
    from stats.graph_layout import layout
    from stats.graph_picture import to_dot, to_png, to_svg
    from stats.graph_report import format_dependences

    from .script import source_digest

    drawers: dict[str, Callable[[Any], bytes]] = {
        ".svg": lambda drawn: to_svg(drawn).encode(),
        ".dot": lambda drawn: to_dot(drawn).encode(),
        ".png": lambda drawn: to_png([drawn]),
    }
    target, picture = (None if name is None else Path(name) for name in (args.output, args.picture))
    if picture is not None and picture.suffix not in drawers:
        raise ConfigError(f"--picture: {picture}: the name must end in {', '.join(drawers)}")
    if picture is not None and picture.exists() and not args.force:
        raise ConfigError(f"{picture} is there already: --force replaces it")
    chosen = {"kernels": [list(r) for r in args.kernels]} if args.kernels else {}
    configuration = {
        "command": "dependences",
        "version": f"{__version__}+{source_digest()}",
        "name": args.name,
        "granularity": args.granularity,
        "rename": args.rename,
        **chosen,
    }
    if target is not None:
        stats.check_writable(target, args.force, configuration)
    job, is_renamed = _job(args)
    if args.kernels and not any(kernel.footprint for kernel in job.kernels):
        raise ConfigError(f"--kernels: {args.name} is no trace; --window chooses the kernels of a picture")
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


class Topic(NamedTuple):
    """One command: what it does and the options that go with it. ``names``: its operands."""

    run: Callable[[argparse.Namespace], None]
    doc: str
    options: tuple[str, ...] = ()
    names: tuple[str, ...] = ("[NAME]",)


TOPICS: dict[str, Topic] = {
    "devices": Topic(_devices, "GPUs; with a name or FILE.toml each number with its source"),
    "kernels": Topic(_kernels, "kernel templates"),
    "workloads": Topic(_workloads, "workloads; with a name its keys"),
    "schemes": Topic(_schemes, "ways of ordering work, with their options"),
    "parameters": Topic(
        _parameters, "what --set sets; with a name only what lies below, such as gpu.l2", ("gpu", "markdown")
    ),
    "tables": Topic(_tables, "tables of a result; with a name each column's type, unit and meaning"),
    "calibrate": Topic(
        _calibrate,
        "turn the micro.json that tests/hw/suite/micro.cu left in a folder into a device file",
        ("base", "output", "force"),
        ("FOLDER",),
    ),
    "dependences": Topic(
        _dependences,
        "which TB needs which: of a workload (name:key=value,...), a trace's folder, or a result file's job",
        ("granularity", "rename", "window", "picture", "output", "json", "kernels", "force"),
        ("WORKLOAD|FOLDER|FILE.h5",),
    ),
    "mechanisms": Topic(_mechanisms, "what --without switches off, and by which parameters"),
    "write-trace": Topic(
        _write_trace,
        "write a workload (name:key=value,...) as SASS trace into a folder",
        ("binary", "compress", "kernels", "force"),
        ("WORKLOAD", "FOLDER"),
    ),
}


def _granularity(text: str) -> str:
    from pysim.program.regions import GRANULES

    if text not in GRANULES:
        hint = suggest(text, GRANULES) or f": must be one of {', '.join(GRANULES)}"
        raise argparse.ArgumentTypeError(f"unknown value {text!r}{hint}")
    return text


def _window(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"must be FIRST:LAST, not {text!r}")
    made = natural_int(first), natural_int(last)
    if made[0] > made[1]:
        raise argparse.ArgumentTypeError(f"{text} is an empty range")
    return made


class Choice(NamedTuple):
    """An option of some commands. ``kind`` None: a flag without a value."""

    metavar: str
    kind: Callable[[str], object] | None
    doc: str
    default: object = None


OPTIONS: dict[str, Choice] = {
    "gpu": Choice("NAME", str, "the values of this GPU"),
    "base": Choice("NAME", str, "GPU that has what was not measured (default: h200)"),
    "output": Choice("FILE", str, "where the device (.toml) goes, or all tables and the graph (.h5)"),
    "granularity": Choice(
        "WORD", _granularity, "what conflicts: what shares a sector, line or page", "sector"
    ),
    "rename": Choice("", None, "memory of its own for every value: no buffer is used twice"),
    "window": Choice("FIRST:LAST", _window, "kernels of a picture and of --json, from 0 on (default: 0:3)"),
    "picture": Choice("FILE", str, "draw the window: .svg, .dot (Graphviz) or .png"),
    "json": Choice("", None, "print one JSON object"),
    "markdown": Choice("", None, "a table for documents"),
    "binary": Choice("SM", positive_int, "SM version whose instructions are written (default: 70)", 70),
    "compress": Choice("", None, "files with xz"),
    "kernels": Choice("LIST", number_ranges, "only these launches, counted from 1, such as 3-7,9"),
    "force": Choice("", None, "replace the file, or the trace in a folder that is not empty"),
}


def _topic(text: str) -> str:
    if text not in TOPICS:
        hint = suggest(text, TOPICS) or f": there are {', '.join(TOPICS)}"
        raise argparse.ArgumentTypeError(f"no command {text}{hint}")
    return text


def _check(parser: Parser, args: argparse.Namespace) -> None:
    """Refuse operands and options that do not go with the command; name the operands."""
    topic = TOPICS[args.command]
    for name, row in OPTIONS.items():
        if getattr(args, name) not in (None, False, row.default) and name not in topic.options:
            owners = " and ".join(t for t, other in TOPICS.items() if name in other.options)
            parser.error(f"--{name} goes with the command {owners}")
    least = sum(not name.startswith("[") for name in topic.names)
    if len(args.operands) > len(topic.names):
        parser.error(f"unexpected argument {args.operands[len(topic.names)]!r}")
    if len(args.operands) < least:
        parser.error(f"{args.command} needs {' and '.join(topic.names)}")
    args.name, args.out = (*args.operands, None, None)[:2]


def run() -> None:
    """Read the command line and do what it says."""
    width = max(map(len, TOPICS)) + 2
    lines = [f"  {name:<{width}}{topic.doc}" for name, topic in TOPICS.items()]
    parser = Parser(
        prog="pysim",
        usage="pysim COMMAND [NAME] [OPTION ...]",
        description="A GPU simulator for dependent kernels. Experiments are the scripts in configs/.",
        epilog="commands:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", type=_topic, metavar="COMMAND", help="one of the commands below")
    parser.add_argument("operands", nargs="*", metavar="NAME", help="show only this one, in detail")
    for name, row in OPTIONS.items():
        owners = ", ".join(t for t, topic in TOPICS.items() if name in topic.options)
        text = f"{owners}: {row.doc}"
        flags = (f"--{name}",) if name != "output" else ("-o", "--output")
        if row.kind is None:
            parser.add_argument(*flags, action="store_true", help=text)
        else:
            parser.add_argument(*flags, metavar=row.metavar, type=row.kind, default=row.default, help=text)
    args = parser.parse_args()
    _check(parser, args)
    try:
        TOPICS[args.command].run(args)
    except ConfigError as error:
        parser.error(str(error))
