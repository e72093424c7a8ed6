"""Commands that list what there is: devices, kernels, workloads, schemes, parameters, tables."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pysim.errors import ConfigError
from pysim.machine.devices import DEVICES, device
from pysim.machine.mechanisms import MECHANISMS
from pysim.params import PARAMS
from pysim.units import ROWS, allowed, show, suggest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping


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
        f"{p.name.rstrip('_')}={int(p.default) if isinstance(p.default, bool) else p.default}"
        for p in known
        if isinstance(p.default, (bool, int, float, str))
    )


def _known_names(what: str, name: str | None, known: Mapping[str, Any]) -> list[str]:
    if name is None:
        return list(known)
    if name not in known:
        raise ConfigError(f"no {what} {name}{suggest(name, known) or ': there are ' + ', '.join(known)}")
    return [name]


def devices(args: argparse.Namespace) -> None:
    """List the GPUs, or the parameters of one with their sources."""
    from pysim.results.energy import EVENTS

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


def kernels(args: argparse.Namespace) -> None:
    """List the kernel templates and which GPUs take which GEMM tiles, one with its docstring, or a choice."""
    if args.name == "choose":
        from .library_choice import show_choice

        show_choice(args.problem)
        return
    if args.problem is not None:
        raise ConfigError(f"kernels takes one name, {args.name}, or choose and a problem")
    from pysim.machine.config import Config
    from pysim.workloads.kernels.machine_hints import MachineHints
    from pysim.workloads.templates import KERNELS, arguments, gemm_families

    known = _known_names("kernel", args.name, {**KERNELS, "choose": None})
    for name in KERNELS if args.name is None else known:
        made = KERNELS[name]
        print(f"{name}({arguments(name)})")
        text = _summary(made) if args.name is None else f"{inspect.getdoc(made)}\n\nin {made.__module__}"
        print("\n".join(f"    {line}".rstrip() for line in text.splitlines()))
    if args.name is None:
        print("\nGEMM tiles that workloads take, by type and GPU:")
        hints = [MachineHints.of(Config.resolve(made)) for made in DEVICES.values()]
        for dtype, family, gpus in gemm_families(hints):
            print(f"    {dtype}  {family}: {'all' if len(gpus) == len(hints) else ', '.join(gpus)}")


def workloads(args: argparse.Namespace) -> None:
    """List the workloads, or the keys of one with their defaults and its totals; with keys its totals."""
    from pysim.workloads.registry import WORKLOADS

    from .job_totals import show_totals

    name, keys, _ = (args.name or "").partition(":")
    names = _known_names("workload", name or None, WORKLOADS)
    if args.name is None and args.json:
        raise ConfigError("workloads --json: takes a workload, name or name:key=value,...")
    if args.name is None:
        _print_table((each, _summary(WORKLOADS[each])) for each in names)
        return
    if args.gpu:
        device(args.gpu)  # refused before anything is printed
    if not args.json and not keys:
        print(f"{name}  {inspect.getdoc(WORKLOADS[name]) or ''}\n\n{name}:{_default_keys(WORKLOADS[name])}\n")
    show_totals(args.name, args.gpu, as_json=args.json, table=_print_table)


def schemes(args: argparse.Namespace) -> None:
    """List the schemes and their options."""
    from pysim.schemes.registry import SCHEMES

    rows = []
    for name in _known_names("scheme", args.name, SCHEMES):
        rows.append((name, SCHEMES[name].doc))
        rows += [(f"  +{option}", row.doc) for option, row in SCHEMES[name].options.items()]
    _print_table(rows)


def mechanisms(args: argparse.Namespace) -> None:
    """List the mechanisms, and what switches each off."""
    names = _known_names("mechanism", args.name, MECHANISMS)
    _print_table(
        (name, MECHANISMS[name].doc, ", ".join(f"{path}={value}" for path, value in MECHANISMS[name].off))
        for name in names
    )


def parameters(args: argparse.Namespace) -> None:
    """List the parameters, or those of a group, with defaults and ranges."""
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


def tables(args: argparse.Namespace) -> None:
    """List the tables of a result file, or the columns of one."""
    from .table_reference import known_tables, listing, markdown

    known = known_tables()
    chosen = {name: known[name] for name in _known_names("table", args.name, known)}
    if args.markdown:
        print("\n".join(markdown(chosen)))
    else:
        _print_table(listing(chosen))
