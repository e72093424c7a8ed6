"""Makes the reference pages of the site from the tables of the code, when the site is built.

They are long and follow from the code, so they are not committed. ``pysim devices``, ``kernels`` and others
print the same in a terminal.
"""

from __future__ import annotations

import inspect
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any

from pysim.cli import command
from pysim.cli.commands import COMMANDS
from pysim.cli.exit_codes import EXIT_CODES
from pysim.counters import GROUPS
from pysim.machine.config import Config
from pysim.machine.devices import DEVICES, Device
from pysim.machine.mechanisms import MECHANISMS
from pysim.results.energy import EVENTS
from pysim.schemes.registry import SCHEMES
from pysim.units import ROWS, show
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.registry import WORKLOADS
from pysim.workloads.templates import KERNELS, arguments, gemm_families

from .writing import table

WIDTH = "100"  # of help texts, in characters


def _cell(text: object) -> str:
    """Return text for a cell: Markdown keeps the sign between cells and tags to itself."""
    return re.sub(r"\s+", " ", str(text)).replace("|", "\\|").replace("<", "&lt;").strip()


def _code(text: str, kind: str = "text") -> str:
    return f"```{kind}\n{text.rstrip()}\n```"


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return table(heads, [False] * len(heads), [[_cell(cell) for cell in row] for row in rows])


def _page(title: str, said: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", said, *parts]) + "\n"


def _docstring(made: Callable[..., Any]) -> str:
    """Return a docstring as Markdown; from its first heading or list on as it stands."""
    text = re.sub(r":\w+:`[~.]*([^`]*)`", r"``\1``", inspect.getdoc(made) or "")
    found = re.search(r"^.*\n-{3,}$|^(?: |[-*] |>>>)", text, re.MULTILINE)
    prose, rest = (text[: found.start()], text[found.start() :]) if found else (text, "")
    parts = [_cell(part) for part in prose.split("\n\n") if part.strip()]
    return "\n\n".join([*parts, *([_code(rest)] if rest else [])])


def device(made: Device) -> str:
    """Return the page of a GPU: each parameter with its source, and energies."""
    rows = (
        (f"`{path}`", show(ROWS[path], value), made.sources.get(path, ""))
        for path, value in made.values.items()
    )
    parts = [_table(("parameter", "value", "source"), rows)]
    if made.energies:
        units = {event.name: "W" if event.unit == "s" else "pJ" for event in EVENTS}
        energies = (
            (name, f"{each:g} {units[name]}", f"{off:.0%}", text) for name, each, off, text in made.energies
        )
        parts.append(f"## Energy\n\n{_table(('event', 'energy', 'uncertainty', 'source'), energies)}")
    said = f"{made.title}, compute capability {'.'.join(map(str, made.compute_capability))}."
    return _page(made.name, f"{said} `pysim devices {made.name}` prints this list.", *parts)


def devices() -> str:
    """Return the page of all GPUs."""
    rows = []
    for name, made in DEVICES.items():
        values = made.values
        sizes = (
            show(ROWS[path], values[path])
            for path in ("gpu.sms", "gpu.clock", "gpu.l2.size", "gpu.dram.bandwidth")
        )
        rows.append((f"[{name}](devices/{name}.md)", made.title, *sizes))
    heads = ("GPU", "what it is", "SMs", "clock", "L2", "DRAM")
    said = "Names for `--gpu` and `pysim.device`. The page of a GPU has each parameter with its source."
    return _page("Devices", said, _table(heads, rows))


def kernels() -> str:
    """Return the page of all kernel templates."""
    parts = [
        f"## {name}\n\n{_code(f'{name}({arguments(name)})', 'python')}\n\n{_docstring(made)}"
        for name, made in KERNELS.items()
    ]
    hints = [MachineHints.of(Config.resolve(made)) for made in DEVICES.values()]
    rows = [
        (dtype, family, "all" if len(gpus) == len(hints) else ", ".join(gpus))
        for dtype, family, gpus in gemm_families(hints)
    ]
    tiles = f"## GEMM tiles that workloads take\n\n{_table(('type', 'tiles', 'GPUs'), rows)}"
    said = "Templates of `pysim.workloads.templates.KERNELS`, with their arguments."
    return _page("Kernels", said, *parts, tiles)


def workloads() -> str:
    """Return the page of all workloads: keys and defaults."""
    parts = []
    for name, made in WORKLOADS.items():
        known = [
            (f"`{key}`", f"`{int(row.default) if isinstance(row.default, bool) else row.default}`")
            for key, row in inspect.signature(made).parameters.items()
            if isinstance(row.default, (bool, int, float, str))
        ]
        keys = [_table(("key", "default"), known)] if known else []
        parts.append("\n\n".join([f"## {name}", _docstring(made), *keys]))
    said = "On a command line: `name:key=value,key=value`; in Python, `pysim.workloads.make(text)`."
    return _page("Workloads", said, *parts)


def schemes() -> str:
    """Return the page of all schemes with their options."""
    parts = []
    for name, made in SCHEMES.items():
        rows = [(f"`{option}`", row.doc) for option, row in made.options.items()]
        options = [_table(("option", "meaning"), rows)] if rows else []
        parts.append("\n\n".join([f"## {name}", _cell(made.doc), *options]))
    said = "Options are written `name:option+option`. [Schemes](../schemes.md) explains how they work."
    return _page("Schemes and options", said, *parts)


def mechanisms() -> str:
    """Return the page of the mechanisms that can be switched off."""
    rows = [
        (f"`{name}`", made.part, made.doc, ", ".join(f"`{path}={value}`" for path, value in made.off))
        for name, made in MECHANISMS.items()
    ]
    said = "`--without name,name` simulates the same machine without them."
    return _page("Mechanisms", said, _table(("mechanism", "part", "what it is", "switched off by"), rows))


def counters() -> str:
    """Return the page of the counters of the core."""
    parts = []
    for group, counted in GROUPS.items():
        rows = ((f"`{row.name}`", row.unit, row.doc) for row in counted)
        parts.append(f"## {group}\n\n{_table(('counter', 'unit', 'meaning'), rows)}")
    said = "What the core counts, by group; a tick is 1/1024 ns. [Result tables](../tables.md) have them."
    return _page("Counters", said, *parts)


def _help(*words: str) -> str:
    """Return what ``pysim help`` prints."""
    before = sys.argv, os.environ.get("COLUMNS")
    sys.argv, os.environ["COLUMNS"] = ["pysim", "help", *words], WIDTH
    out = io.StringIO()
    try:
        with redirect_stdout(out):
            command.run()
    except SystemExit as done:
        if done.code:
            raise
    finally:
        sys.argv = before[0]
        if before[1] is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before[1]
    return out.getvalue()


def commands() -> str:
    """Return the page of the commands with their options."""
    parts = [f"## pysim {name}\n\n{_code(_help(name))}" for name in COMMANDS]
    rows = [(f"{number}", meaning) for number, meaning in EXIT_CODES.items()]
    codes = f"## Exit codes\n\n{_table(('code', 'meaning'), rows)}"
    said = "What `pysim help COMMAND` prints. Scripts and commands have the same [exit codes](#exit-codes)."
    return _page("Commands", said, *parts, codes)


PAGES: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": commands,
    "reference/workloads.md": workloads,
    "reference/devices.md": devices,
    "reference/kernels.md": kernels,
    "reference/schemes.md": schemes,
    "reference/mechanisms.md": mechanisms,
    "reference/counters.md": counters,
}


def pages() -> dict[str, str]:
    """Return the text of all pages by name, those of single GPUs too."""
    made = {name: write() for name, write in PAGES.items()}
    return made | {f"reference/devices/{name}.md": device(row) for name, row in DEVICES.items()}
