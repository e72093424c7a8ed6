"""What ``sweep.json`` holds: the grid of a sweep, and the keys of its result files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pysim.errors import WorkloadError, brief

from .point import KEY_DIGITS, Point

FORMAT = 1
KEY = re.compile(rf"[0-9a-f]{{{KEY_DIGITS}}}")


@dataclass(frozen=True, slots=True)
class Place:
    """A point of the grid: its value of each key, and the keys of its result files."""

    values: tuple[Any, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What ``sweep.json`` holds: ``keys`` and ``places`` of the grid, and every point by its file's key."""

    workload: str
    keys: tuple[str, ...]
    schemes: tuple[str, ...]
    places: tuple[Place, ...]
    points: Mapping[str, Point]
    groups: Mapping[str, str]
    code: str

    def files(self) -> list[str]:
        """Return the keys of the result files in grid order, each once."""
        return list(dict.fromkeys(key for place in self.places for key in place.files))

    def name(self, place: Place) -> str:
        """Return a point of the grid as text."""
        pairs = zip(self.keys, place.values, strict=True)
        return ", ".join(f"{key}={value}" for key, value in pairs) or self.workload

    def name_of(self, key: str) -> str:
        """Return the point of a result file as text."""
        return next((self.name(place) for place in self.places if key in place.files), key)

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, for JSON."""
        return {
            "format": FORMAT,
            "workload": self.workload,
            "keys": list(self.keys),
            "schemes": list(self.schemes),
            "code": self.code,
            "places": [{"values": list(p.values), "files": list(p.files)} for p in self.places],
            "points": {
                key: {"group": self.groups[key], **point.as_dict()} for key, point in self.points.items()
            },
        }

    @classmethod
    def from_dict(cls, data: Any) -> Plan:
        """Read :meth:`as_dict`; WorkloadError, TypeError, KeyError or ValueError for anything else."""
        if data["format"] != FORMAT:
            raise WorkloadError(f"format {brief(data['format'])}: this version reads {FORMAT}")
        places = tuple(Place(tuple(row["values"]), tuple(row["files"])) for row in data["places"])
        points, groups = {}, {}
        for key, row in data["points"].items():
            if not KEY.fullmatch(key):
                raise WorkloadError(f"{brief(key)} is no key of a point")
            rest = dict(row)
            groups[key] = rest.pop("group")
            points[key] = Point.from_dict(rest)
        keys, schemes = tuple(map(str, data["keys"])), tuple(map(str, data["schemes"]))
        for place in places:
            if len(place.values) != len(keys) or not set(place.files) <= points.keys():
                raise WorkloadError(f"{brief(place.values)} is no point of the grid")
        return cls(str(data["workload"]), keys, schemes, places, points, groups, str(data["code"]))
