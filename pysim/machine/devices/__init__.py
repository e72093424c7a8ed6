"""GPUs as data: every number with its source beside it.

A device gives values for ``gpu.*`` paths of the parameter table, plus what no parameter holds: the compute
capability, the shared-memory carve-outs and the tensor rate. There is one module a generation. A card is its
generation and what differs from it::

    from pysim.machine.devices import GENERATIONS, card

    half = card("half_volta", "half of a Titan V", GENERATIONS["volta"], (
        ("gpu.sms", 40, "half of a Titan V"), ("gpu.l2.size", "3MiB", "..."), ("gpu.l2.slices", 32, "...")))

A user's own device is a TOML file, which starts from a registered device, from a generation, or from the
defaults of the parameter table::

    name = "half_volta"
    base = "titan_v"                 # or: generation = "volta"
    compute_capability = "7.0"
    carveouts = ["0B", "32KiB", "96KiB"]
    mma_rate = 128

    [gpu]
    sms = { value = 40, source = "half of a Titan V" }
    [gpu.l2]
    size = "3MiB"
    slices = 32
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from pysim.errors import ConfigError, brief
from pysim.toml_text import MOST_BYTES, parse_toml
from pysim.units import ROWS, parse, row_of, suggest

from . import ampere, hopper, pascal, peer, volta
from .card import Device, Generation, card, completed, inherited
from .fields import checked_carveouts, checked_rate, checked_text, read_capability

__all__ = ["DEVICES", "GENERATIONS", "GPU_PATHS", "Device", "Generation", "card", "device"]

GPU_PATHS: tuple[str, ...] = tuple(path for path in ROWS if path.startswith("gpu."))
DEVICES: dict[str, Device] = {
    made.name: made for part in (pascal, volta, ampere, hopper, peer) for made in part.cards()
}
GENERATIONS: dict[str, Generation] = {
    made.name.lower(): made for made in (pascal.PASCAL, volta.VOLTA, ampere.AMPERE, hopper.HOPPER)
}

LONGEST_PATH = 200  # characters of a path in an error message
_KEYS = ("name", "title", "base", "generation", "compute_capability", "carveouts", "mma_rate", "gpu")


def device(name: str | os.PathLike[str]) -> Device:
    """Return a registered device, or the one that a TOML file describes."""
    given: object = os.fspath(name) if isinstance(name, os.PathLike) else name
    if not isinstance(given, str):
        raise ConfigError(f"{brief(given)} is no GPU: give a name, such as titan_v, or a FILE.toml")
    if given in DEVICES:
        return DEVICES[given]
    if given.endswith(".toml"):
        return _read(Path(given))
    hint = suggest(given, DEVICES)
    raise ConfigError(f"unknown GPU {brief(given)}{hint} (known: {', '.join(DEVICES)}; or a FILE.toml)")


def _read(path: Path) -> Device:
    shown = brief(str(path), LONGEST_PATH)
    try:
        return _build(parse_toml(_contents(path)), path)
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be read: {error.strerror}") from None
    except ConfigError as error:
        raise ConfigError(f"{shown}: {error}") from None


def _contents(path: Path) -> bytes:
    """Return the bytes of a regular file: a pipe would block, and a device may have no end."""
    if "\0" in str(path):
        raise ConfigError("cannot be read: a path has no NUL")
    if not stat.S_ISREG(path.stat().st_mode):
        raise ConfigError("cannot be read: no regular file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ConfigError(f"a device file has at most {MOST_BYTES >> 20} MiB")
    return data


def _build(table: dict[str, object], path: Path) -> Device:
    for key in table:
        # Dotted keys may be quoted, as on a command line: "gpu.l2.size" = "3MiB".
        if key not in _KEYS and not key.startswith("gpu."):
            raise ConfigError(f"unknown key {brief(key)}{suggest(key, _KEYS)}")
    base = _base(table)
    given = {path: (base.values[path], base.sources[path]) for path in base.values} if base else {}
    given = inherited(base.name, given) if base else {}
    for key, (value, source) in _leaves({k: table[k] for k in table if k.partition(".")[0] == "gpu"}).items():
        given[key] = (parse(key, row_of(key), value), source or path.name)
    values, sources = completed(given)
    name = checked_text("name", table.get("name", path.stem))
    capability = base.compute_capability if base else (7, 0)
    if "compute_capability" in table:
        capability = read_capability(table["compute_capability"])
    carveouts = base.carveouts if base else DEVICES["titan_v"].carveouts
    return Device(
        name=name,
        title=checked_text("title", table.get("title", name)),
        compute_capability=capability,
        carveouts=checked_carveouts(table["carveouts"]) if "carveouts" in table else carveouts,
        mma_rate=checked_rate(table.get("mma_rate", base.mma_rate if base else 128)),
        values=values,
        sources=sources,
        energies=base.energies if base else (),
    )


def _base(table: Mapping[str, object]) -> Device | None:
    """Return what a TOML device starts from: a registered device, a generation, or nothing."""
    if "base" in table and "generation" in table:
        raise ConfigError("base and generation: a device starts from one of them")
    for key, known in (("base", DEVICES), ("generation", GENERATIONS)):
        if key in table and str(table[key]) not in known:
            hint = suggest(str(table[key]), known)
            raise ConfigError(f"unknown {key} {brief(table[key])}{hint} (known: {', '.join(known)})")
    if "generation" in table:
        generation = GENERATIONS[str(table["generation"])]
        return card(generation.name, generation.name, generation)
    return DEVICES[str(table["base"])] if "base" in table else None


def _leaves(table: Mapping[str, object], prefix: str = "") -> dict[str, tuple[object, str]]:
    """Flatten nested tables into path -> (value, source)."""
    found: dict[str, tuple[object, str]] = {}
    for key, value in table.items():
        path = f"{prefix}{key}"
        if not isinstance(value, dict):
            found[path] = (value, "")
        elif path in ROWS:
            found[path] = _value_and_source(path, value)
        else:
            found.update(_leaves(value, f"{path}."))
    return found


def _value_and_source(path: str, table: Mapping[str, object]) -> tuple[object, str]:
    for key in table:
        if key not in ("value", "source"):
            raise ConfigError(f"{path}: unknown key {brief(key)}: it takes value and source")
    if "value" not in table:
        raise ConfigError(f"{path}: no value: it takes value and source")
    try:
        return table["value"], checked_text("source", table.get("source", ""))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
