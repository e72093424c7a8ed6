"""Parts of a machine as objects: ``gpu.l2.size = "12MiB"`` sets the parameter ``gpu.l2.size``, checked.

Parts are made from the parameter table (``pysim/params.py``) and have no list of their own. A part completes
its names in a notebook, prints itself as a tree of values and sources, and refuses unknown names with the
nearest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pysim.errors import ConfigError, brief
from pysim.params import INSIDE, PARAMS
from pysim.units import ROWS, Value, parse, show, suggest

from .devices.fields import checked_text

SET_HERE = "set in the script"


class UnknownNameError(ConfigError, AttributeError):
    """A name that a part does not have. Also an AttributeError, as ``hasattr`` and notebooks expect."""


@dataclass(slots=True)
class Settings:
    """Values and sources of parameters by path; ``changed`` are those that differ from where they began."""

    values: dict[str, Value]
    sources: dict[str, str]
    changed: dict[str, str] = field(default_factory=dict)  # path: the value before, as a user writes it

    def copy(self) -> Settings:
        """Return settings of their own."""
        return Settings(self.values.copy(), self.sources.copy(), self.changed.copy())

    def set(self, path: str, value: object, source: str) -> None:
        """Set one parameter; a ConfigError names path, value and range if it is not allowed.

        A source is one line.
        """
        row = ROWS[path]
        new, source = parse(path, row, value), checked_text("source", source)
        old = self.values[path]
        if new != old and self.changed.setdefault(path, show(row, old)) == show(row, new):
            del self.changed[path]  # as it began
        self.values[path], self.sources[path] = new, source


def groups_of(path: str) -> list[str]:
    """Return the groups that lie directly in a group, those that belong to it by their nature included."""
    depth = path.count(".") + 1
    inside = [group for group in PARAMS if group.startswith(f"{path}.") and group.count(".") == depth]
    elsewhere = [group for group in inside if group in INSIDE]
    return [g for g in inside if g not in elsewhere] + [g for g, home in INSIDE.items() if home == path]


class Part:
    """One group of parameters, such as ``gpu.l2``; its attributes are parameters and smaller parts."""

    __slots__ = ("_path", "_settings")
    _fields: ClassVar[tuple[str, ...]] = ()  # names beside parameters and parts
    _path: str
    _settings: Settings

    def __init__(self, path: str, settings: Settings) -> None:
        object.__setattr__(self, "_path", path)
        object.__setattr__(self, "_settings", settings)

    def _groups(self) -> dict[str, str]:
        """Return the groups in this one by their last name."""
        made = {group.rpartition(".")[2]: group for group in groups_of(self._path)}
        # a group that belongs to another part is found under its path, too
        prefix = f"{self._path}."
        return made | {g[len(prefix) :]: g for g in INSIDE if g.rpartition(".")[0] == self._path}

    def _rows(self) -> list[str]:
        return [row.name for row in PARAMS.get(self._path, ())]

    def _unknown(self, name: str) -> UnknownNameError:
        known = (*self._groups(), *self._rows(), *self._fields)
        return UnknownNameError(f"{self._path} has no {brief(name)}{suggest(name, known)}")

    def __dir__(self) -> list[str]:
        """Return parameters, parts and methods, for completion."""
        return sorted(
            {*self._groups(), *self._rows(), *(n for n in dir(type(self)) if not n.startswith("_"))}
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        groups = self._groups()
        if name in groups:
            return Part(groups[name], self._settings)
        if name in self._rows():
            return self._settings.values[f"{self._path}.{name}"]
        raise self._unknown(name)

    def __setattr__(self, name: str, value: object) -> None:
        self.set(name, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ConfigError(
            f"{self._path} is a part of a machine: copy or pickle the whole, a pysim.Gpu or a pysim.System"
        )

    def __delattr__(self, name: str) -> None:
        raise ConfigError(f"{self._path}.{brief(name)} cannot be deleted: set another value")

    def set(self, name: str, value: object, source: str = SET_HERE) -> None:
        """Set a parameter and say where the number comes from: ``gpu.l2.set("size", "12MiB", "data sheet")``.

        ``name`` may be dotted. Raises ConfigError for names that there are not and for values out of range.
        """
        given: object = name
        if not isinstance(given, str):
            raise ConfigError(f"{self._path}.set: {brief(given)} is no name of a parameter: must be a text")
        first, dot, rest = name.partition(".")
        if dot:
            part = self.__getattr__(first)
            if not isinstance(part, Part):
                raise ConfigError(f"{self._path}.{first} is a value: it has no {rest}")
            part.set(rest, value, source)
            return
        if name in self._groups():
            raise ConfigError(f"{self._path}.{name} is a part: set one of {', '.join(dir_of(self, name))}")
        if name not in self._rows():
            raise self._unknown(name)
        self._settings.set(f"{self._path}.{name}", value, source)

    def __repr__(self) -> str:
        return "\n".join(tree_lines(self._path, self._settings))


def dir_of(part: Part, name: str) -> list[str]:
    """Return the parameters of a part of a part."""
    return [row.name for row in PARAMS[part._groups()[name]]]


def _cells(path: str, settings: Settings) -> Iterator[tuple[str, str, str, str]]:
    """Yield (branch, name, value, source) of a group and all below it."""
    rows = [row for row in PARAMS.get(path, ()) if f"{path}.{row.name}" in settings.values]
    groups = [group for group in groups_of(path) if any(p.startswith(f"{group}.") for p in settings.values)]
    last = len(rows) + len(groups) - 1
    for i, row in enumerate(rows):
        where = f"{path}.{row.name}"
        source = settings.sources.get(where, "default of the parameter table")
        if where in settings.changed:
            source = f"{source} (was {settings.changed[where]})"
        yield "└─ " if i == last else "├─ ", row.name, show(row, settings.values[where]), source
    for i, group in enumerate(groups, len(rows)):
        yield "└─ " if i == last else "├─ ", group.rpartition(".")[2], "", ""
        for branch, *rest in _cells(group, settings):
            yield ("   " if i == last else "│  ") + branch, *rest  # type: ignore[misc]


def tree_lines(path: str, settings: Settings) -> Iterable[str]:
    """Return a part and all below it as lines: name, value, source."""
    cells = list(_cells(path, settings))
    names = max((len(branch) + len(name) for branch, name, *_ in cells), default=0)
    values = max((len(value) for *_, value, _ in cells), default=0)
    yield path
    for branch, name, value, source in cells:
        yield f"{(branch + name).ljust(names)}  {value.ljust(values)}  {source}".rstrip()
