"""The command ``pysim``: lists devices, schemes and more, shows TB graphs, writes traces."""

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


def _print_table(rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows as aligned columns; the last column is not padded."""
    lines = list(rows)
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]) - 1)] if lines else []
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        print("  ".join([*cells, line[-1]]).rstrip())


def _summary(made: Callable[..., Any]) -> str:
    return (inspect.getdoc(made) or "").partition("\n")[0]


def _default_keys(made: Callable[..., Any]) -> str:
    """Return the keys of a workload with their defaults, in the form of a command line."""
    known = inspect.signature(made).parameters.values()
    return ",".join(
        f"{p.name}={int(p.default) if isinstance(p.default, bool) else p.default}"
        for p in known
        if isinstance(p.default, (bool, int, float, str))
    )


def _known_names(what: str, name: str | None, known: Mapping[str, Any]) -> list[str]:
    if name is None:
        return list(known)
    if name not in known:
        raise ConfigError(f"no {what} {name}{suggest(name, known) or ': there are ' + ', '.join(known)}")
    return [name]


def _devices(args: argparse.Namespace) -> None:
    if args.name is None:
        _print_table((name, made.title) for name, made in DEVICES.items())
        return
    made = device(args.name)
    print(f"{made.name}: {made.title}, compute capability {'.'.join(map(str, made.compute_capability))}")
    rows = (
        (path, show(ROWS[path], value), made.sources.get(path, "")) for path, value in made.values.items()
    )
    _print_table(rows)
    print()
    units = {event.name: "W" if event.unit == "s" else "pJ" for event in EVENTS}
    _print_table(
        (f"energy of {n}", f"{each:g} {units[n]}", f"{off:.0%}", text) for n, each, off, text in made.energies
    )
    if not made.energies:
        print("energy: no energy per event is known for this GPU, so no energy is computed")


def _kernels(args: argparse.Namespace) -> None:
    from workloads.registry import KERNELS

    _print_table((name, _summary(KERNELS[name])) for name in _known_names("kernel", args.name, KERNELS))


def _workloads(args: argparse.Namespace) -> None:
    from workloads.registry import WORKLOADS

    name, colon, _ = (args.name or "").partition(":")
    if colon and name in WORKLOADS:
        raise ConfigError(f"workloads takes a name without keys, such as {name}")
    names = _known_names("workload", args.name, WORKLOADS)
    _print_table((name, _summary(WORKLOADS[name])) for name in names)
    if args.name is not None:
        print(f"{args.name}:{_default_keys(WORKLOADS[args.name])}")


def _schemes(args: argparse.Namespace) -> None:
    rows = []
    for name in _known_names("scheme", args.name, SCHEMES):
        rows.append((name, SCHEMES[name].doc))
        rows += [(f"  +{option}", row.doc) for option, row in SCHEMES[name].options.items()]
    _print_table(rows)


def _mechanisms(args: argparse.Namespace) -> None:
    names = _known_names("mechanism", args.name, MECHANISMS)
    _print_table(
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
        _print_table(rows)


def _tables(args: argparse.Namespace) -> None:
    from .table_reference import known_tables, listing, markdown

    known = known_tables()
    chosen = {name: known[name] for name in _known_names("table", args.name, known)}
    if args.markdown:
        print("\n".join(markdown(chosen)))
    else:
        _print_table(listing(chosen))


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
    size = f"{done.instructions:,} warp instructions, {done.characters:,} B of text"
    print(f"{args.out}: {len(done.files) - 1} kernels, {size}")
    if job.events:
        print(f"left out: {len(job.events)} events between streams, which the trace format cannot express")


def _calibrate(args: argparse.Namespace) -> None:
    from pysim.machine.calibrate import calibrate

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
    made = device(str(path))
    print(f"{path}: {made.title}; {len(made.values) - len(kept)} numbers measured, {len(kept)} of {base}")


def _job_of_operand(args: argparse.Namespace) -> tuple[Job, bool]:
    """Return the job of the operand, and whether it is renamed. ``./gru`` is a path, ``gru`` a workload."""
    import stats
    from workloads.registry import WORKLOADS, make

    from .job_source import job_of_result, job_of_trace

    text, path = args.name, Path(args.name)
    if path.suffix == ".h5":
        results = stats.load(path)
        return job_of_result(path, results.configuration, results.attributes, make)
    if text.partition(":")[0] not in WORKLOADS and (path.exists() or "/" in text.partition(":")[0]):
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
        raise ConfigError(f"--picture: {picture}: the name must end in .svg, .dot or .png")
    if picture is not None and not picture.parent.is_dir():
        raise ConfigError(f"--picture: {picture.parent} is no folder")
    if target is not None and target.suffix != ".h5":
        raise ConfigError(f"--output: {target}: the name of a result file ends in .h5")
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
    job, is_renamed = _job_of_operand(args)
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


class Command(NamedTuple):
    """One command and the options that it takes. ``operands``: their names; brackets: may be left out."""

    run: Callable[[argparse.Namespace], None]
    doc: str
    options: tuple[str, ...] = ()
    operands: tuple[str, ...] = ("[NAME]",)


COMMANDS: dict[str, Command] = {
    "devices": Command(_devices, "list the GPUs; with a name or FILE.toml: each parameter with its source"),
    "kernels": Command(_kernels, "list the kernel templates"),
    "workloads": Command(_workloads, "list the workloads; with a name: its keys and defaults"),
    "schemes": Command(_schemes, "list the scheduling schemes and their options"),
    "parameters": Command(
        _parameters, "list the parameters of --set, or those of a group such as gpu.l2", ("gpu", "markdown")
    ),
    "tables": Command(_tables, "list the tables of result files; with a name: its columns", ("markdown",)),
    "calibrate": Command(
        _calibrate,
        "make a device file from the micro.json that tests/hw/suite/micro.cu wrote to a folder",
        ("base", "output", "force"),
        ("FOLDER",),
    ),
    "dependences": Command(
        _dependences,
        "show which TBs depend on which in a workload (name:key=value,...), trace or result file",
        ("granularity", "rename", "window", "picture", "output", "json", "kernels", "force"),
        ("WORKLOAD|FOLDER|FILE.h5",),
    ),
    "mechanisms": Command(_mechanisms, "list the mechanisms of --without and what switches them off"),
    "write-trace": Command(
        _write_trace,
        "write a workload (name:key=value,...) as a SASS trace to a folder",
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


class CommandOption(NamedTuple):
    """An option of some commands. ``kind`` None: a flag without a value."""

    metavar: str
    kind: Callable[[str], object] | None
    doc: str
    default: object = None


OPTIONS: dict[str, CommandOption] = {
    "gpu": CommandOption("NAME", str, "show the values of this GPU"),
    "base": CommandOption("NAME", str, "GPU that gives the values that were not measured (default: h200)"),
    "output": CommandOption("FILE", str, "file to write: the device (.toml), or the TB graph (.h5)"),
    "granularity": CommandOption(
        "WORD", _granularity, "conflicts by sector, line or page (default: sector)", "sector"
    ),
    "rename": CommandOption("", None, "give every value its own memory, so that no buffer is reused"),
    "window": CommandOption(
        "FIRST:LAST", _window, "kernels of --picture and --json, from 0 on (default: 0:3)"
    ),
    "picture": CommandOption("FILE", str, "draw the kernels of --window: .svg, .dot (Graphviz) or .png"),
    "json": CommandOption("", None, "print one JSON object"),
    "markdown": CommandOption("", None, "print a Markdown table"),
    "binary": CommandOption("SM", positive_int, "SM version of the instructions (default: 70)", 70),
    "compress": CommandOption("", None, "compress the trace files with xz"),
    "kernels": CommandOption("LIST", number_ranges, "only these launches, counted from 1, such as 3-7,9"),
    "force": CommandOption("", None, "replace an existing file, or the trace in a folder"),
}


def _command_name(text: str) -> str:
    if text not in COMMANDS:
        hint = suggest(text, COMMANDS) or f": there are {', '.join(COMMANDS)}"
        raise argparse.ArgumentTypeError(f"no command {text}{hint}")
    return text


def _check(parser: Parser, args: argparse.Namespace) -> None:
    """Refuse what the command does not take; set ``name`` and ``out`` to its operands."""
    command = COMMANDS[args.command]
    for name, row in OPTIONS.items():
        if getattr(args, name) not in (None, False, row.default) and name not in command.options:
            owners = " and ".join(t for t, other in COMMANDS.items() if name in other.options)
            parser.error(f"--{name} goes with the command {owners}")
    least = sum(not name.startswith("[") for name in command.operands)
    if len(args.operands) > len(command.operands):
        parser.error(f"unexpected argument {args.operands[len(command.operands)]!r}")
    if len(args.operands) < least:
        parser.error(f"{args.command} needs {' and '.join(command.operands)}")
    args.name, args.out = (*args.operands, None, None)[:2]


def run() -> None:
    """Read the command line and run the command; a wrong argument exits with status 2."""
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{command.doc}" for name, command in COMMANDS.items()]
    parser = Parser(
        prog="pysim",
        usage="pysim COMMAND [NAME] [OPTION ...]",
        description="GPU simulator for dependent kernels. The experiments are the scripts in configs/.",
        epilog="commands:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", type=_command_name, metavar="COMMAND", help="one of the commands below")
    parser.add_argument("operands", nargs="*", metavar="NAME", help="what to show or use, see below")
    for name, row in OPTIONS.items():
        owners = ", ".join(t for t, command in COMMANDS.items() if name in command.options)
        text = f"{owners}: {row.doc}"
        flags = (f"--{name}",) if name != "output" else ("-o", "--output")
        if row.kind is None:
            parser.add_argument(*flags, action="store_true", help=text)
        else:
            parser.add_argument(*flags, metavar=row.metavar, type=row.kind, default=row.default, help=text)
    args = parser.parse_args()
    _check(parser, args)
    try:
        COMMANDS[args.command].run(args)
    except ConfigError as error:
        parser.error(str(error))
