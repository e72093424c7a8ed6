"""One point of a sweep, and the key that names its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pysim.errors import ConfigError, WorkloadError, brief
from pysim.machine.config import Config
from pysim.machine.devices import device
from pysim.results.digests import results_digest
from pysim.schemes.registry import parse_schemes
from pysim.units import Value

GridValue = int | float | str
KEY_DIGITS = 24  # of a key: 96 bits


def digest(what: object) -> str:
    """Return the key of what JSON can hold."""
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:KEY_DIGITS]


@dataclass(frozen=True, slots=True)
class Point:
    """A workload on a GPU under schemes: what one result file holds.

    Attributes
    ----------
    workload
        Text of ``pysim.workloads.make``.
    gpu
        Name of a device, or the path of a TOML file.
    schemes
        Names, each once.
    settings
        Parameters by path, checked.
    tables
        Tables to write; (): the default ones.
    rename
        Whether every value gets its own memory.
    place
        Value of each key of the grid, in grid order.
    """

    workload: str
    gpu: str
    schemes: tuple[str, ...]
    settings: Mapping[str, Value]
    tables: tuple[str, ...] = ()
    rename: bool = False
    place: tuple[GridValue, ...] = ()

    def config(self) -> Config:
        """Return the resolved configuration; ConfigError where values do not fit together."""
        return Config.resolve(device(self.gpu), dict(self.settings))

    def with_schemes(self, schemes: Sequence[str]) -> Point:
        """Return the point under other schemes."""
        return replace(self, schemes=tuple(schemes))

    def group(self, config: Config, arguments: str) -> str:
        """Return the key of what all schemes share; ``arguments``: of the job, defaults included.

        It covers the parameters and the device, the workload's arguments, what is recorded, and the code that
        makes results.
        """
        return digest(
            {
                "code": results_digest(),
                "parameters": config.as_dict(),
                "energies": [repr(row) for row in config.device.energies],
                "workload": [self.workload.partition(":")[0], arguments],
                "tables": list(self.tables),
                "rename": self.rename,
            }
        )

    def key(self, group: str) -> str:
        """Return the key of the point's result file."""
        return digest([group, [choice.name for choice in parse_schemes(self.schemes)]])

    def as_dict(self) -> dict[str, Any]:
        """Return the point as plain data, for JSON."""
        return {
            "workload": self.workload,
            "gpu": self.gpu,
            "schemes": list(self.schemes),
            "settings": dict(self.settings),
            "tables": list(self.tables),
            "rename": self.rename,
            "place": list(self.place),
        }

    @classmethod
    def from_dict(cls, data: Any) -> Point:
        """Read :meth:`as_dict`; WorkloadError for what it does not write."""
        kinds = {
            "workload": str,
            "gpu": str,
            "schemes": list,
            "settings": dict,
            "tables": list,
            "rename": bool,
            "place": list,
        }
        if not isinstance(data, dict) or data.keys() != kinds.keys():
            raise WorkloadError(f"{brief(data)} is no point of a sweep")
        for name, kind in kinds.items():
            if not isinstance(data[name], kind):
                raise WorkloadError(
                    f"point of a sweep: {name} = {brief(data[name])}: must be {kind.__name__}"
                )
        given: dict[str, Any] = data | {name: tuple(data[name]) for name in kinds if kinds[name] is list}
        return cls(**given)


def typed(workload: str, key: str, value: GridValue) -> GridValue:
    """Return a value of a workload's key with the type of its default; ConfigError if it is not taken."""
    from pysim.workloads.registry import parse

    if "," in str(value):
        raise ConfigError(f"grid: {key} = {brief(value)}: one value has no comma")
    try:
        made = parse(f"{workload}:{key}={value}")[1][key]
    except WorkloadError as error:
        raise ConfigError(str(error)) from error
    return made if isinstance(made, GridValue) else value


def arguments_of(point: Point) -> str:
    """Return the arguments of the point's workload with all defaults, as key=value,key=value.

    Raises ConfigError for a workload, a key or a value that there is not. Nothing is built.
    """
    from pysim.workloads.registry import arguments_of as known_arguments
    from pysim.workloads.registry import parse

    try:
        name, given = parse(point.workload)
    except WorkloadError as error:
        raise ConfigError(str(error)) from error
    all_of_them = {key: row.default for key, row in known_arguments(name).items()} | given
    return ",".join(f"{key}={value!r}" for key, value in sorted(all_of_them.items()))
