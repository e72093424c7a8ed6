"""The resolved configuration of a run: defaults, then the device, then what the user set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pysim.errors import ConfigError, brief
from pysim.params import encode
from pysim.units import ROWS, Value, parse, row_of, show

from .devices import Device

L2_WAYS = 16
LINE = 128
SUBCORES = 4
MIN_L1 = 8192

# L1 miss path and slice together take at least this many cycles of an L2 hit.
MIN_L2_WORK = 30


def checked_overrides(overrides: object) -> Mapping[str, Value]:
    """Return values by parameter path, none for None. Raises ConfigError for what is no mapping."""
    if overrides is None:
        return {}
    if not isinstance(overrides, Mapping):
        raise ConfigError(
            f'overrides = {brief(overrides)}: must be a dict by path, such as {{"gpu.sms": 40}}'
        )
    return overrides


def bus_refresh(number: Callable[[str], float]) -> float:
    """Return the time from one refresh that takes a DRAM channel's bus to the next, in what ``number`` gives.

    ``number``: value of a parameter by its path.
    """
    turns = number("gpu.dram.banks") if number("gpu.dram.bank_refresh_time") else 1
    return number("gpu.dram.refresh_period") / turns


class Composed(Protocol):
    """A GPU that a script composed (``system.Gpu``)."""

    def device(self) -> Device:
        """Return it as a device."""


@dataclass(frozen=True, slots=True)
class Config:
    """Values of every parameter path, in the units that users write. Treat it as immutable.

    Configurations are equal where device and values are, and may be keys of a dict.
    """

    device: Device
    values: Mapping[str, Value]
    given: frozenset[str] = field(default=frozenset(), compare=False)  # paths that the user has set

    def __hash__(self) -> int:
        """Return a hash that equal configurations share, whatever the order of their values."""
        return hash((self.device, frozenset(self.values.items())))

    @classmethod
    def resolve(cls, device: Device | Composed, overrides: Mapping[str, Value] | None = None) -> Config:
        """Merge defaults, device and overrides; check each value and how they fit together."""
        device = device if isinstance(device, Device) else device.device()
        values: dict[str, Value] = {path: row.default for path, row in ROWS.items()}
        overrides = checked_overrides(overrides)
        for given in (device.values, overrides):
            for path, value in given.items():
                values[path] = parse(path, row_of(path), value)
        config = cls(device, values, frozenset(overrides))
        config._check()
        return config

    def __getitem__(self, path: str) -> Value:
        """Return one value; an unknown path is a ConfigError with the nearest valid one."""
        row_of(path)
        return self.values[path]

    def number(self, path: str) -> float:
        """Return a value that is a number."""
        return float(self[path])

    def integer(self, path: str) -> int:
        """Return a value of an integer unit (count, B, cycle, bool)."""
        return int(self[path])

    def word(self, path: str) -> str:
        """Return the word of a choice."""
        return str(self[path])

    def replaced(self, overrides: Mapping[str, Value]) -> Config:
        """Return a copy with some values changed, checked anew."""
        given = checked_overrides(overrides)
        parsed = {path: parse(path, row_of(path), value) for path, value in given.items()}
        config = Config(self.device, {**self.values, **parsed}, self.given | set(parsed))
        config._check()
        return config

    @property
    def carveouts(self) -> tuple[int, ...]:
        """Shared-memory sizes that an SM can be set to; the largest is ``gpu.sm.smem``."""
        largest = self.integer("gpu.sm.smem")
        return (*(size for size in self.device.carveouts if size < largest), largest)

    def encoded(self) -> dict[str, int]:
        """Return what the C core receives, by path."""
        return {path: encode(row, self.values[path]) for path, row in ROWS.items()}

    def as_dict(self) -> dict[str, Value]:
        """Return device and values flat, for JSON and HDF5 attributes."""
        major, minor = self.device.compute_capability
        about: dict[str, Value] = {
            "device": self.device.name,
            "device.compute_capability": f"{major}.{minor}",
            "device.carveouts": ",".join(str(size) for size in self.carveouts),
            "device.mma_rate": self.device.mma_rate,
        }
        return {**about, **self.values}

    def _refuse(self, path: str, why: str) -> ConfigError:
        return ConfigError(f"{path} = {show(row_of(path), self.values[path])}: {why}")

    def _check(self) -> None:
        """Refuse values that are in range one by one but do not fit together."""
        self._check_sm()
        self._check_memory()

    def _check_sm(self) -> None:
        if self.integer("gpu.sm.warps") % SUBCORES:
            raise self._refuse("gpu.sm.warps", f"must be a multiple of {SUBCORES}, one share a sub-core")
        registers = self.integer("gpu.sm.registers")
        if self.integer("gpu.sm.register_unit") > registers:
            raise self._refuse("gpu.sm.register_unit", f"must be at most gpu.sm.registers = {registers}")
        most = self.integer("gpu.l1.size") - self.integer("gpu.l1.reserved") - MIN_L1
        if most < 0:
            largest = self.integer("gpu.l1.size") - MIN_L1
            raise self._refuse(
                "gpu.l1.reserved", f"must be at most {largest} B: L1 keeps {MIN_L1} B of gpu.l1.size"
            )
        if self.integer("gpu.sm.smem") > most:
            text = f"must be at most {most} B: gpu.l1.size holds both, and L1 keeps {MIN_L1} B"
            raise self._refuse("gpu.sm.smem", text)

    def _check_memory(self) -> None:
        unit = self.integer("gpu.l2.slices") * L2_WAYS * LINE
        if self.integer("gpu.l2.size") % unit:
            text = f"must be a multiple of {unit} B (gpu.l2.slices x {L2_WAYS} ways x {LINE} B)"
            raise self._refuse("gpu.l2.size", text)
        for path in ("gpu.dram.banks", "gpu.dram.row_bytes"):
            if self.integer(path).bit_count() != 1:
                raise self._refuse(path, "must be a power of two")
        noc = self.integer("gpu.noc.latency")
        least = 2 * noc + MIN_L2_WORK
        if self.integer("gpu.l2.latency") < least:
            text = f"must be at least {least} cycle: 2 x gpu.noc.latency ({noc}) + {MIN_L2_WORK}"
            raise self._refuse("gpu.l2.latency", text)
        if self.integer("gpu.l2.latency") <= self.integer("gpu.l1.latency"):
            raise self._refuse("gpu.l2.latency", "must be above gpu.l1.latency")
        # The latency of a miss holds the opening of a row, which is given in ns.
        row_open = self.number("gpu.dram.row_open") * self.number("gpu.clock") / 1000
        least = self.integer("gpu.l2.latency") + int(row_open) + 1
        if self.integer("gpu.dram.latency") < least:
            text = f"must be at least {least} cycle: gpu.l2.latency + gpu.dram.row_open"
            raise self._refuse("gpu.dram.latency", text)
        for path, other in (
            ("gpu.dram.row_cycle", "gpu.dram.row_open"),
            ("gpu.dram.refresh_period", "gpu.dram.refresh_time"),
            ("gpu.dram.refresh_period", "gpu.dram.bank_refresh_time"),
        ):
            if self.number(path) <= self.number(other):
                raise self._refuse(path, f"must be above {other} = {show(row_of(other), self.values[other])}")
        each = bus_refresh(self.number)
        if each <= self.number("gpu.dram.refresh_time"):
            text = f"must be below {each:g} ns: gpu.dram.refresh_period / gpu.dram.banks, as banks take turns"
            raise self._refuse("gpu.dram.refresh_time", text)
