"""A machine that a script composes: GPUs from devices, the host, and what orders their work.

>>> import pysim
>>> gpu = pysim.device("titan_v")
>>> gpu.sms, gpu.l2.size = 40, "2304KiB"
>>> system = pysim.System(gpu)
>>> system.host.launch = "3us"
>>> system.config()["gpu.l2.size"]
2359296
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pysim.errors import ConfigError, brief
from pysim.params import PARAMS
from pysim.units import ROWS, Value, parse, show, suggest

from .composition import Part, Settings, tree_lines
from .config import Config, checked_overrides
from .devices import DEVICES, Device
from .devices import device as registered

LONGEST_PATH = 200  # characters of a path in an error message
_OWN = ("name", "title", "compute_capability", "carveouts", "mma_rate")  # of a device, beside parameters


class Gpu(Part):
    """One GPU of a system: the values of a device, to be changed.

    Attributes are the parameters below ``gpu`` (``gpu.sms``, ``gpu.l2.size``; ``gpu.sm.l1`` is ``gpu.l1``),
    and name, title, compute_capability (major, minor), carveouts (bytes, ascending) and mma_rate (fp16
    multiply-adds a cycle of one sub-core). Each assignment is checked at once; what must fit together is
    checked where the GPU is used (:meth:`device`).
    """

    __slots__ = ("_device",)
    _device: Device

    def __init__(self, base: Device) -> None:
        values = {path: base.values.get(path, row.default) for path, row in ROWS.items() if _is_gpu(path)}
        super().__init__("gpu", Settings(values, dict(base.sources)))
        object.__setattr__(self, "_device", base)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_OWN})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name) if name in _OWN else super().__getattr__(name)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _OWN:
            own: dict[str, Any] = {name: _own(name, value)}
            object.__setattr__(self, "_device", replace(self._device, **own))
        else:
            super().__setattr__(name, value)

    def __repr__(self) -> str:
        major, minor = self.compute_capability
        head = f"{self.name}: {self.title}, compute capability {major}.{minor}"
        return "\n".join((head, *tree_lines("gpu", self._settings)))

    def device(self) -> Device:
        """Return the GPU as it is now, checked. Raises ConfigError where values do not fit together."""
        settings = self._settings
        made = replace(self._device, values=dict(settings.values), sources=dict(settings.sources))
        Config.resolve(made)
        return made

    def copy(self) -> Gpu:
        """Return a GPU of its own with the same values."""
        made = Gpu(self._device)
        settings = self._settings
        for path, old in settings.changed.items():
            made._settings.changed[path] = old
        made._settings.values.update(settings.values)
        made._settings.sources.update(settings.sources)
        return made

    def save(self, path: str | os.PathLike[str], force: bool = False) -> Path:
        """Write the GPU as a TOML file for :func:`pysim.device` and ``--gpu``; return its path.

        The file names a registered device as its base and holds what differs from it. Raises ConfigError
        where the values do not fit together, the name does not end in .toml, the file exists (without
        ``force``) or cannot be written.
        """
        given: object = os.fspath(path) if isinstance(path, os.PathLike) else path
        if not isinstance(given, str):
            raise ConfigError(f"{brief(given)} is no path: give the name of a file that ends in .toml")
        target, shown = Path(given), brief(given, LONGEST_PATH)
        if target.suffix != ".toml":
            raise ConfigError(f"{shown}: the name of a device file must end in .toml")
        text = _toml(self.device())
        part = target.with_name(f".{target.name[:48]}.{os.getpid()}")
        try:
            if os.path.lexists(target) and not force:
                raise ConfigError(f"{shown} exists: force=True replaces it")
            try:
                part.write_text(text, encoding="utf-8")
                part.replace(target)
            finally:
                part.unlink(missing_ok=True)
        except (OSError, ValueError) as error:  # a ValueError: a NUL in the path
            raise ConfigError(f"{shown}: cannot be written: {getattr(error, 'strerror', error)}") from None
        return target


class System:
    """GPUs, their host and the settings of a run: what :func:`pysim.simulate` runs a job on.

    ``gpus`` is a list; one GPU is simulated, for now. ``host``, ``scheme`` and ``sim`` are parts whose
    attributes are the parameters below those names (``system.host.launch``, ``system.scheme.table.entries``).
    """

    def __init__(self, gpus: Gpu | str | Sequence[Gpu | str]) -> None:
        several: list[Any] = list(gpus) if isinstance(gpus, list | tuple) else [gpus]
        self.gpus: list[Gpu] = [device(each) if isinstance(each, str) else each for each in several]
        if wrong := [each for each in self.gpus if not isinstance(each, Gpu)]:
            raise ConfigError(f"{type(wrong[0]).__name__} is no GPU: take one of pysim.device(NAME)")
        roots = [group for group in PARAMS if "." not in group and group != "gpu"]
        values = {path: row.default for path, row in ROWS.items() if not _is_gpu(path)}
        self._settings = Settings(values, {})
        self._parts = {root: Part(root, self._settings) for root in roots}

    def __getattr__(self, name: str) -> Part:
        parts = self.__dict__.get("_parts", {})
        if name in parts:
            made: Part = parts[name]
            return made
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"a system has no {name}{suggest(name, ('gpus', *parts))}")

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__.get("_parts", {}):
            raise ConfigError(f"{name} is a part: set one of its parameters")
        if name not in ("gpus", "_settings", "_parts"):
            raise ConfigError(f"a system has no {name}{suggest(name, ('gpus', *self._parts))}")
        object.__setattr__(self, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parts})

    def __repr__(self) -> str:
        lines = [repr(each) for each in self.gpus]
        return "\n".join((*lines, *(repr(part) for part in self._parts.values())))

    def config(self, overrides: Mapping[str, Value] | None = None) -> Config:
        """Return the resolved configuration of a run; ``overrides`` by dotted path go before all else.

        Raises ConfigError where there is not one GPU, or values do not fit together.
        """
        if len(self.gpus) != 1 or not isinstance(self.gpus[0], Gpu):
            raise ConfigError(f"a system of {len(self.gpus)} GPUs: one GPU is simulated, for now")
        changed = {path: self._settings.values[path] for path in self._settings.changed}
        return Config.resolve(self.gpus[0].device(), {**changed, **checked_overrides(overrides)})


def device(name: str | os.PathLike[str]) -> Gpu:
    """Return a GPU to be changed: a registered one by name (``pysim devices`` lists them), or FILE.toml.

    A file is a text or a ``pathlib.Path``.

    Raises ConfigError with the nearest name where there is none.

    >>> import pysim
    >>> pysim.device("h200").sms
    132
    """
    return Gpu(registered(name))


Machine = System | Gpu | Device | Config | str | os.PathLike[str]


def resolve(machine: Machine, overrides: Mapping[str, Value] | None = None) -> Config:
    """Return the configuration of a system, a GPU, a device, a configuration or a device's name."""
    if isinstance(machine, str | os.PathLike):
        return Config.resolve(registered(machine), overrides)
    if isinstance(machine, Gpu | Device):
        return Config.resolve(machine, overrides)
    if isinstance(machine, System):
        return machine.config(overrides)
    if isinstance(machine, Config):
        return machine.replaced(overrides) if overrides else machine
    raise ConfigError(
        f"{type(machine).__name__} is no machine: give a System, a GPU, a Device, a Config or a device's name"
    )


def _is_gpu(path: str) -> bool:
    return path.startswith("gpu.")


def _own(name: str, value: object) -> object:
    """Return a device's own field, checked."""
    if name in ("name", "title"):
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{name} = {value!r}: must be a text")
        return value
    if name == "compute_capability":
        if not (isinstance(value, tuple) and len(value) == 2 and all(isinstance(v, int) for v in value)):
            raise ConfigError(f"compute_capability = {value!r}: must be (major, minor)")
        return value
    if name == "mma_rate":
        return int(parse("mma_rate", ROWS["gpu.sms"]._replace(lo=1, hi=1 << 16), value))
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise ConfigError(f'carveouts = {value!r}: must be a list of sizes, such as ["0B", "32KiB"]')
    row = ROWS["gpu.sm.smem"]._replace(lo=0)
    return tuple(sorted({int(parse("carveouts", row, size)) for size in value}))


def _toml(made: Device) -> str:
    """Return a device as TOML: what differs from the registered device that is nearest to it."""

    def differing(base: Device) -> list[str]:
        return [
            path for path, value in made.values.items() if base.values.get(path, ROWS[path].default) != value
        ]

    # energies have no form in the file: they come with the base
    bases = [base for base in DEVICES.values() if base.energies == made.energies]
    base = min(bases, key=lambda each: len(differing(each)))
    lines = [f"name = {json.dumps(made.name)}", f"title = {json.dumps(made.title)}", f'base = "{base.name}"']
    if made.compute_capability != base.compute_capability:
        lines.append('compute_capability = "{}.{}"'.format(*made.compute_capability))
    if made.carveouts != base.carveouts:
        lines.append(
            f"carveouts = {json.dumps([show(ROWS['gpu.sm.smem'], size) for size in made.carveouts])}"
        )
    if made.mma_rate != base.mma_rate:
        lines.append(f"mma_rate = {made.mma_rate}")
    for path in differing(base):
        value, source = show(ROWS[path], made.values[path]), made.sources.get(path, "")
        lines.append(f'"{path}" = {{ value = {json.dumps(value)}, source = {json.dumps(source)} }}')
    return "\n".join(lines) + "\n"
