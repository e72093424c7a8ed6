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

import os
from collections.abc import Mapping, MutableSequence, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pysim.errors import ConfigError, brief
from pysim.params import PARAMS
from pysim.units import ROWS, Value, suggest

from .composition import SET_HERE, Part, Settings, UnknownNameError, tree_lines
from .config import Config, checked_overrides
from .device_file import toml_of
from .devices import LONGEST_PATH, Device
from .devices import device as registered
from .devices.fields import checked_capability, checked_carveouts, checked_rate, checked_text

_OWN = ("name", "title", "compute_capability", "carveouts", "mma_rate")  # of a device, beside parameters


class Gpu(Part):
    """One GPU of a system: the values of a device, to be changed.

    Attributes are the parameters below ``gpu`` (``gpu.sms``, ``gpu.l2.size``; ``gpu.sm.l1`` is ``gpu.l1``),
    and name, title, compute_capability (major, minor), carveouts (bytes, ascending) and mma_rate (fp16
    multiply-adds a cycle of one sub-core). Each assignment is checked at once; what must fit together is
    checked where the GPU is used (:meth:`device`).
    """

    __slots__ = ("_device",)
    _fields = _OWN
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
            super().set(name, value)

    def set(self, name: str, value: object, source: str = SET_HERE) -> None:
        """Set a parameter and say where the number comes from; or a field of the device, without a source."""
        if name not in _OWN:
            super().set(name, value, source)
        elif source == SET_HERE:
            setattr(self, name, value)
        else:
            raise ConfigError(f"{name} has no source: set it without")

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
        """Return a GPU of its own with the same values, as ``copy.copy`` and ``copy.deepcopy`` do."""
        return _restored_gpu(self._device, self._settings.copy())

    def __copy__(self) -> Gpu:
        return self.copy()

    def __deepcopy__(self, memo: object) -> Gpu:
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _restored_gpu, (self._device, self._settings)

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
        if "\0" in given:  # Python's own words for it differ between versions
            raise ConfigError(f"{shown}: cannot be written: a path holds no NUL")
        if target.suffix != ".toml":
            raise ConfigError(f"{shown}: the name of a device file must end in .toml")
        text = toml_of(self.device())
        part = target.with_name(f".{target.name[:48]}.{os.getpid()}")
        try:
            if os.path.lexists(target) and not force:
                raise ConfigError(f"{shown} exists: force=True replaces it")
            try:
                part.write_text(text, encoding="utf-8")
                part.replace(target)
            finally:
                part.unlink(missing_ok=True)
        except (OSError, ValueError) as error:  # a ValueError: a path that cannot be encoded
            raise ConfigError(f"{shown}: cannot be written: {getattr(error, 'strerror', error)}") from None
        return target


AnyGpu = Gpu | Device | str | os.PathLike[str]


class GpuList(MutableSequence[Gpu]):
    """The GPUs of a system, each checked where it is put in; a name or a Device becomes a :class:`Gpu`."""

    def __init__(self, given: object) -> None:
        self._gpus = [_gpu(one) for one in _several(given)]
        if not self._gpus:
            raise ConfigError("a system of 0 GPUs: give one, such as pysim.device(NAME)")

    def __len__(self) -> int:
        return len(self._gpus)

    def __getitem__(self, index: Any) -> Any:
        return self._gpus[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        changed: list[Any] = self._gpus.copy()
        changed[index] = _several(value) if isinstance(index, slice) else _gpu(value)
        self._gpus = GpuList(changed)._gpus

    def __delitem__(self, index: Any) -> None:
        left = self._gpus.copy()
        del left[index]
        self._gpus = GpuList(left)._gpus

    def insert(self, index: int, value: Any) -> None:
        """Put a GPU before another one."""
        self._gpus.insert(index, _gpu(value))

    def __repr__(self) -> str:
        return f"[{', '.join(gpu.name for gpu in self._gpus)}]"


class System:
    """GPUs, their host and the settings of a run: what :func:`pysim.simulate` runs a job on.

    ``gpus`` is a list (:class:`GpuList`) of GPUs, which are given as one or several, as objects or by name.
    One GPU is simulated, for now. ``host``, ``scheme`` and ``sim`` are parts whose
    attributes are the parameters below those names (``system.host.launch``, ``system.scheme.table.entries``).
    ``system.gpus = ...`` takes what the constructor takes.
    """

    gpus: GpuList

    def __init__(self, gpus: AnyGpu | Sequence[AnyGpu]) -> None:
        self.gpus = GpuList(gpus)
        values = {path: row.default for path, row in ROWS.items() if not _is_gpu(path)}
        self._use(Settings(values, {}))

    def _use(self, settings: Settings) -> None:
        roots = [group for group in PARAMS if "." not in group and group != "gpu"]
        self._settings = settings
        self._parts = {root: Part(root, settings) for root in roots}

    def copy(self) -> System:
        """Return a system of its own, its GPUs too, as ``copy.copy`` and ``copy.deepcopy`` do."""
        return _restored_system([gpu.copy() for gpu in self.gpus], self._settings.copy())

    def __copy__(self) -> System:
        return self.copy()

    def __deepcopy__(self, memo: object) -> System:
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _restored_system, (list(self.gpus), self._settings)

    def __getattr__(self, name: str) -> Part:
        parts = self.__dict__.get("_parts", {})
        if name in parts:
            made: Part = parts[name]
            return made
        if name.startswith("_"):
            raise AttributeError(name)
        near = ": did you mean gpus[0]?" if name == "gpu" else suggest(name, ("gpus", *parts))
        raise UnknownNameError(f"a system has no {brief(name)}{near}")

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__.get("_parts", {}):
            raise ConfigError(f"{name} is a part: set one of its parameters")
        if name not in ("gpus", "_settings", "_parts"):
            near = ": did you mean gpus?" if name == "gpu" else suggest(name, ("gpus", *self._parts))
            raise UnknownNameError(f"a system has no {brief(name)}{near}")
        object.__setattr__(self, name, GpuList(value) if name == "gpus" else value)

    def __delattr__(self, name: str) -> None:
        raise ConfigError(f"{brief(name)} of a system cannot be deleted: set other GPUs or values")

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parts})

    def __repr__(self) -> str:
        lines = [repr(each) for each in self.gpus]
        return "\n".join((*lines, *(repr(part) for part in self._parts.values())))

    def config(self, overrides: Mapping[str, Value] | None = None) -> Config:
        """Return the resolved configuration of a run; ``overrides`` by dotted path go before all else.

        Raises ConfigError where there is not one GPU, or values do not fit together.
        """
        if len(self.gpus) != 1:
            raise ConfigError(f"a system of {len(self.gpus)} GPUs: one GPU is simulated, for now")
        changed = {path: self._settings.values[path] for path in self._settings.changed}
        return Config.resolve(self.gpus[0].device(), {**changed, **checked_overrides(overrides)})


def _several(given: object) -> list[object]:
    """Return what is given as a list, or the list that is given."""
    return list(given) if isinstance(given, list | tuple | GpuList) else [given]


def _restored_gpu(base: Device, settings: Settings) -> Gpu:
    """Return the GPU with these settings, which become its own."""
    made = Gpu(base)
    object.__setattr__(made, "_settings", settings)
    return made


def _restored_system(gpus: list[Gpu], settings: Settings) -> System:
    """Return the system with these settings, which become its own."""
    made = System(gpus)
    made._use(settings)
    return made


def _gpu(given: object) -> Gpu:
    if isinstance(given, Gpu):
        return given
    if isinstance(given, Device):
        return Gpu(given)
    if isinstance(given, str | os.PathLike):
        return device(given)
    raise ConfigError(f"{type(given).__name__} is no GPU: take one of pysim.device(NAME)")


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
        return checked_text(name, value)
    if name == "compute_capability":
        return checked_capability(value)
    return checked_rate(value) if name == "mma_rate" else checked_carveouts(value)
