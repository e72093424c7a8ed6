"""The command ``pysim``: what there is to choose from."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .devices import DEVICES, device
from .errors import ConfigError
from .options import Parser, run_script
from .params import PARAMS
from .schemes import SCHEMES
from .units import ROWS, allowed, show, suggest


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


TOPICS: dict[str, tuple[Callable[[argparse.Namespace], None], str]] = {
    "devices": (_devices, "GPUs; with a name or FILE.toml each number with its source"),
    "kernels": (_kernels, "kernel templates"),
    "workloads": (_workloads, "workloads; with a name its keys"),
    "schemes": (_schemes, "ways of ordering work, with their options"),
    "parameters": (_parameters, "what --set sets; with a name only what lies below, such as gpu.l2"),
}


def _topic(text: str) -> str:
    if text not in TOPICS:
        hint = suggest(text, TOPICS) or f": there are {', '.join(TOPICS)}"
        raise argparse.ArgumentTypeError(f"no command {text}{hint}")
    return text


def _run() -> None:
    lines = [f"  {name:<12}{doc}" for name, (_, doc) in TOPICS.items()]
    parser = Parser(
        prog="pysim",
        usage="pysim COMMAND [NAME] [--gpu NAME] [--markdown]",
        description="A GPU simulator for dependent kernels. Experiments are the scripts in configs/.",
        epilog="commands:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", type=_topic, metavar="COMMAND", help="one of the commands below")
    parser.add_argument("name", nargs="?", metavar="NAME", help="show only this one, in detail")
    parser.add_argument("--gpu", metavar="NAME", help="parameters: the values of this GPU")
    parser.add_argument("--markdown", action="store_true", help="parameters: a table for documents")
    args = parser.parse_args()
    if args.command != "parameters" and (args.gpu or args.markdown):
        parser.error("--gpu and --markdown go with the command parameters")
    try:
        TOPICS[args.command][0](args)
    except ConfigError as error:
        parser.error(str(error))


def main() -> None:
    """Run the command and exit."""
    run_script(_run)


if __name__ == "__main__":
    main()
