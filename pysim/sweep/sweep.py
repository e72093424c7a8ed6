"""The grid of a sweep: from the keys that a user gives to its points, checked before anything runs."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysim.cli.checks import check_tables
from pysim.errors import ConfigError, brief
from pysim.machine.devices import device
from pysim.schemes.registry import parse_schemes
from pysim.toml_text import MOST_BYTES, parse_toml
from pysim.units import ROWS, Value, parse, row_of, suggest

from .point import GridValue, Point, arguments_of, typed

if TYPE_CHECKING:
    from .folder import Status, SweepFolder

MOST_POINTS = 1_000_000
GPU = "gpu"  # key of the grid for several GPUs
_FILE_KEYS = ("workload", "grid", "set", "gpu", "schemes", "tables", "rename", "out")


def _words(what: str, given: object) -> tuple[str, ...]:
    """Return names: a text with commas, or a sequence of texts; each once."""
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise ConfigError(f"{what} = {brief(given)}: must be names, as a text with commas or as a list")
    names = tuple(part.strip() for part in parts)
    if not names or not all(names):
        raise ConfigError(f"{what} = {brief(given)}: a name is missing")
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{what}: {name} is listed twice")
    return names


def _values(key: str, given: object) -> tuple[GridValue, ...]:
    """Return the values of a key of the grid."""
    values = (given,) if isinstance(given, GridValue) else given
    if isinstance(values, range):
        values = list(values[: MOST_POINTS + 1])
    if not isinstance(values, Sequence) or not values:
        raise ConfigError(f"grid: {key} = {brief(given)}: must be a list of values")
    for value in values:
        if not isinstance(value, GridValue):
            raise ConfigError(f"grid: {key} = {brief(value)}: must be a number or a text")
    plain = [int(value) if isinstance(value, bool) else value for value in values]
    return tuple(plain)


def _each_once(key: str, values: Sequence[GridValue], meant: Sequence[GridValue]) -> None:
    """Refuse two values that mean the same; ``meant``: what they mean."""
    seen: set[GridValue] = set()
    for value, same in zip(values, meant, strict=True):
        if same in seen:
            raise ConfigError(f"grid: {key} = {brief(value)} is listed twice")
        seen.add(same)


class Sweep:
    """All combinations of values of some keys, each simulated under the same schemes.

    Parameters
    ----------
    workload
        A name of ``pysim workloads``, with the keys that stay the same: ``gru`` or ``gru:layers=2``.
    grid
        Values by key: keys of the workload, and parameters by path (``gpu.l2.size``). The last key varies
        fastest.
    schemes
        Schemes of every point, as ``simulate`` takes them.
    gpu
        One GPU or several (names of devices or TOML files); several are the first, slowest key of the grid.
    settings
        Parameters by path that stay the same.
    tables
        Tables to write; (): the default ones.
    rename
        Give every value its own memory, so that no buffer is reused.

    Raises
    ------
    ConfigError
        An unknown workload, key, GPU, scheme, parameter or table; a value that is not taken, or listed
        twice; more than a million points.

    Examples
    --------
    >>> sweep = Sweep("gru:layers=1", {"hidden": [256, 512], "gpu.l2.size": ["3MiB", "6MiB"]})
    >>> [point.place for point in sweep.points()]
    [(256, '3MiB'), (256, '6MiB'), (512, '3MiB'), (512, '6MiB')]
    """

    def __init__(
        self,
        workload: str,
        grid: Mapping[str, Sequence[GridValue]] | None = None,
        *,
        schemes: str | Sequence[str] = "stream,graph,tb_static",
        gpu: str | Sequence[str] = "titan_v",
        settings: Mapping[str, Value] | None = None,
        tables: Sequence[str] = (),
        rename: bool = False,
    ) -> None:
        if not isinstance(workload, str) or len(workload) > 4096:
            raise ConfigError(f"workload = {brief(workload)}: must be a text, such as gru:layers=2")
        self.workload = workload
        self.schemes = _words("schemes", schemes)
        parse_schemes(self.schemes)
        self.gpus = _words("gpu", gpu)
        for name in self.gpus:
            device(name)
        self.settings = {path: parse(path, row_of(path), value) for path, value in (settings or {}).items()}
        self.tables = _words("tables", tables) if tables else ()
        check_tables(self.tables or None)
        self.rename = rename
        given = {} if grid is None else grid
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            raise ConfigError(f"grid = {brief(given)}: must hold values by key")
        self.grid = {key: _values(key, values) for key, values in given.items()}
        total = len(self.gpus)
        for values in self.grid.values():
            total *= len(values)
        if total > MOST_POINTS:
            raise ConfigError(f"the grid has {total:,} points: at most {MOST_POINTS:,}")
        self._check_keys()

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys of the grid, the slowest first."""
        return ((GPU,) if len(self.gpus) > 1 else ()) + tuple(self.grid)

    def points(self) -> list[Point]:
        """Return the points in grid order."""
        made: list[Point] = []
        for name in self.gpus:
            made += [self._point(name, values) for values in itertools.product(*self.grid.values())]
        return made

    def _point(self, gpu: str, values: tuple[GridValue, ...]) -> Point:
        own = dict(zip(self.grid, values, strict=True))
        head, _, rest = self.workload.partition(":")
        keys = [f"{key}={value}" for key, value in own.items() if key not in ROWS]
        text = ",".join(filter(None, [rest, *keys]))
        here = {path: parse(path, row_of(path), value) for path, value in own.items() if path in ROWS}
        return Point(
            f"{head}:{text}" if text else head,
            gpu,
            self.schemes,
            self.settings | here,
            self.tables,
            self.rename,
            (gpu, *values) if len(self.gpus) > 1 else values,
        )

    def run(
        self,
        folder: str | os.PathLike[str],
        *,
        jobs: int | None = None,
        threads: int | None = None,
        max_memory: int | None = None,
        quiet: bool = False,
    ) -> Status:
        """Simulate the points that are missing in a folder, on this machine; return its status.

        ``jobs``: processes (default: one a core); ``threads``: of each; ``max_memory``: bytes that a point
        may take. Points that fail are counted in the status, with their reasons, and raise nothing. After
        Ctrl-C the points that were running are missing, and KeyboardInterrupt is raised.
        """
        from .engines.local import Local
        from .folder import SweepFolder

        plan = SweepFolder(folder)
        self.prepare(plan)
        Local(jobs, threads, max_memory, quiet).launch(plan)
        return plan.status()

    def prepare(self, folder: SweepFolder) -> None:
        """Plan the sweep in a folder (:meth:`SweepFolder.prepare`)."""
        folder.prepare(self.workload, self.keys, self.points())

    def _check_keys(self) -> None:
        """Check every value of every key by itself, so that a typing error stops the sweep at once."""
        from pysim.workloads.registry import arguments_of as known_arguments

        base = Point(self.workload, self.gpus[0], self.schemes, self.settings)
        arguments_of(base)
        head = self.workload.partition(":")[0]
        fixed = {part.partition("=")[0] for part in self.workload.partition(":")[2].split(",")}
        known = list(known_arguments(head))
        for key, values in self.grid.items():
            if key in ROWS:
                if key in self.settings:
                    raise ConfigError(f"grid: {key} is set as well")
                _each_once(key, values, [parse(key, row_of(key), value) for value in values])
                self.grid[key] = tuple(map(plain_number, values))
                continue
            if key == GPU and len(self.gpus) > 1:
                raise ConfigError("grid: gpu is the key of several GPUs as well")
            if key in fixed:
                raise ConfigError(f"grid: {key} is given as well in {self.workload}")
            if key not in known:
                hint = suggest(key, [*known, *ROWS]) or f": {head} has {', '.join(known)}"
                hint = ": give several GPUs as gpu, --gpu a,b on a command line" if key == GPU else hint
                raise ConfigError(f"grid: no key or parameter {key}{hint}")
            self.grid[key] = tuple(typed(head, key, value) for value in values)
            _each_once(key, values, self.grid[key])

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> tuple[Sweep, Path | None]:
        """Read a sweep from a TOML file; return it and the folder that its key ``out`` names.

        Keys: ``workload``, ``schemes``, ``gpu``, ``tables`` (texts or lists), ``rename``, ``out``, and the
        tables ``[grid]`` and ``[set]``. Raises ConfigError that names the file and what is wrong.
        """
        file = Path(path)
        shown = brief(str(file), 200)
        try:
            if not file.is_file():
                raise ConfigError("a folder, no file" if file.is_dir() else "no such file")
            with file.open("rb") as opened:
                return cls._from_table(parse_toml(opened.read(MOST_BYTES + 1)))
        except OSError as error:
            raise ConfigError(f"{shown}: cannot be read: {error.strerror}") from None
        except ConfigError as error:
            raise ConfigError(f"{shown}: {error}") from None

    @classmethod
    def _from_table(cls, given: dict[str, Any]) -> tuple[Sweep, Path | None]:
        for key in given:
            if key not in _FILE_KEYS:
                raise ConfigError(f"unknown key {brief(key)}{suggest(key, _FILE_KEYS)}")
        if "workload" not in given:
            raise ConfigError("no workload")
        for key in ("grid", "set"):
            if not isinstance(given.get(key, {}), dict):
                raise ConfigError(f"{key} = {brief(given[key])}: must be a table, [{key}]")
        out = given.get("out")
        if out is not None and not isinstance(out, str):
            raise ConfigError(f"out = {brief(out)}: must be the path of a folder")
        if not isinstance(given.get("rename", False), bool):
            raise ConfigError(f"rename = {brief(given['rename'])}: must be true or false")
        more = {key: given[key] for key in ("schemes", "gpu", "tables", "rename") if key in given}
        made = cls(
            given["workload"], flat(given.get("grid", {})), settings=flat(given.get("set", {})), **more
        )
        return made, None if out is None else Path(out)


def plain_number(value: GridValue) -> GridValue:
    """Return a text that is a plain number as that number, anything else as it is."""
    for kind in (int, float):
        try:
            return kind(value) if isinstance(value, str) else value
        except ValueError:
            continue
    return value


def flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table of TOML with dotted keys, in order: ``gpu.l2.size = ...`` without quotes is nested."""
    made: dict[str, Any] = {}
    for key, value in table.items():
        inside = flat(value) if isinstance(value, Mapping) else None
        made |= {key: value} if inside is None else {f"{key}.{name}": deep for name, deep in inside.items()}
    return made
