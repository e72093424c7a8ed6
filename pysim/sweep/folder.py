"""The folder of a sweep: what is planned, and which result files are there. The files are the truth.

::

    sweep.json         the grid, its points and the key of each result file
    points/KEY.h5      a complete result; it appears by one rename
    failed/KEY.json    why the last attempt failed
    logs/              tracebacks, and what batch systems print
    checkpoints/KEY/   how far a point that was stopped has come
    locks/KEY          held by the process that simulates the point
    gpus/KEY.toml      GPUs that were given as files
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysim.errors import ConfigError, InputError, OutputError, WorkloadError, brief
from pysim.machine.device_file import toml_of
from pysim.machine.devices import DEVICES, device
from pysim.results.digests import results_digest
from pysim.schemes.registry import parse_schemes

from .locks import acquired
from .plan import KEY, Place, Plan
from .point import Point, arguments_of, digest

if TYPE_CHECKING:
    from pysim.machine.config import Config


PLAN = "sweep.json"
MOST_PLAN_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Status:
    """How many points of a sweep are done. ``failed``: reason by point, as ``hidden=512, batch=16``."""

    total: int
    done: int
    running: int
    missing: int
    failed: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the status as plain data, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        parts = [f"{self.done:,} of {self.total:,} points done"]
        for count, what in (
            (self.running, "running"),
            (len(self.failed), "failed"),
            (self.missing, "missing"),
        ):
            parts += [f"{count:,} {what}"] if count else []
        return ", ".join(parts)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that its name never shows a part of it; OutputError where it cannot be written."""
    from pysim import stats

    try:
        stats.write_bytes(path, data)
    except stats.StoreError as error:
        raise OutputError(str(error)) from error


class SweepFolder:
    """A sweep on disk.

    Any number of processes may use it at once. Each file is written under a temporary name and renamed, so a
    process that is killed leaves nothing under a final name, and two that simulate one point write the same
    bytes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def result(self, key: str) -> Path:
        """Return the path of a point's result file."""
        return self.path / "points" / f"{key}.h5"

    def log(self, key: str) -> Path:
        """Return the path of a point's log."""
        return self.path / "logs" / f"{key}.log"

    def checkpoints(self, key: str) -> Path:
        """Return the folder of a point's checkpoints."""
        return self.path / "checkpoints" / key

    def is_done(self, key: str) -> bool:
        """Return whether a point's result file is there."""
        return self.result(key).is_file()

    def _failure(self, key: str) -> Path:
        return self.path / "failed" / f"{key}.json"

    @cached_property
    def plan(self) -> Plan:
        """Return what is planned; InputError if the folder holds no sweep, or a damaged one."""
        file = self.path / PLAN
        try:
            if file.stat().st_size > MOST_PLAN_BYTES:
                raise InputError(f"more than {MOST_PLAN_BYTES >> 20} MiB")
            return Plan.from_dict(json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise InputError(f"{self.path} holds no sweep: there is no {PLAN}") from None
        except OSError as error:
            raise InputError(f"{file}: cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{file} is damaged: {brief(str(error))}") from None
        except WorkloadError as error:
            raise InputError(f"{file}: {error}") from None

    def prepare(self, workload: str, keys: tuple[str, ...], points: Sequence[Point]) -> Plan:
        """Plan a sweep in the folder: what is done stays and is not simulated again.

        ``keys``: of the grid; ``points``: in grid order, all under the same schemes. A point whose result
        file holds some of the schemes gets a further file for the others. Raises WorkloadError if the folder
        holds a sweep of another workload, OutputError if it cannot be written.
        """
        known = self.plan if (self.path / PLAN).exists() else None
        if known is not None and known.workload != workload:
            raise WorkloadError(
                f"{self.path} holds a sweep of {known.workload}, not of {workload}: choose another"
            )
        try:
            for name in ("points", "failed", "logs", "locks", "gpus"):
                (self.path / name).mkdir(parents=True, exist_ok=True)
            plan = self._planned(workload, keys, points, known)
            text = json.dumps(plan.as_dict(), indent=None, separators=(",", ":")) + "\n"
            write_whole(self.path / PLAN, text.encode())
        except OSError as error:
            raise OutputError(f"cannot write {self.path}: {error.strerror}") from error
        self.__dict__["plan"] = plan
        return plan

    def _planned(
        self, workload: str, keys: tuple[str, ...], given_points: Sequence[Point], known: Plan | None
    ) -> Plan:
        points = dict(known.points) if known else {}
        groups = dict(known.groups) if known else {}
        held: dict[tuple[str, str], str] = {}
        for key, point in points.items():
            if self.is_done(key):
                held |= {(groups[key], choice.name): key for choice in parse_schemes(point.schemes)}
        names = [choice.name for choice in parse_schemes(given_points[0].schemes)]
        configs: dict[object, Config] = {}
        stored = {name: self._stored_gpu(name) for name in {point.gpu for point in given_points}}
        places = []
        for given in given_points:
            machine = (given.gpu, tuple(given.settings.items()))
            if machine not in configs:
                configs[machine] = given.config()
            group = given.group(configs[machine], arguments_of(given))
            files = [held[group, name] for name in names if (group, name) in held]
            left = [
                word for word, name in zip(given.schemes, names, strict=True) if (group, name) not in held
            ]
            if left:
                point = Point(**{**_fields(given), "gpu": stored[given.gpu], "schemes": tuple(left)})
                key = point.key(group)
                points[key], groups[key] = point, group
                files.append(key)
            places.append(Place(given.place, tuple(dict.fromkeys(files))))
        return Plan(workload, keys, tuple(names), tuple(places), points, groups, results_digest())

    def _stored_gpu(self, name: str) -> str:
        """Return the name of a GPU in the plan; a file is copied, so that a later edit changes no point."""
        if name in DEVICES:
            return name
        text = toml_of(device(name))
        copy = Path("gpus") / f"{digest(text)}.toml"
        write_whole(self.path / copy, text.encode())
        return copy.as_posix()

    def point(self, key: str) -> Point:
        """Return a planned point with the path of its GPU's file.

        Raises ConfigError if the code has changed since it was planned: its results would not be those that
        its key names.
        """
        point, group = self.plan.points[key], self.plan.groups[key]
        if point.gpu not in DEVICES:
            if Path(point.gpu).is_absolute() or ".." in Path(point.gpu).parts:
                raise ConfigError(f"{self.path / PLAN}: gpu = {brief(point.gpu)}: lies outside the folder")
            point = Point(**{**_fields(point), "gpu": str(self.path / point.gpu)})
        if point.group(point.config(), arguments_of(point)) != group or point.key(group) != key:
            raise ConfigError(
                "the code has changed since the sweep was planned: plan it again with pysim sweep"
            )
        return point

    @contextmanager
    def claimed(self, key: str) -> Iterator[bool]:
        """Lock a point; yield whether this process may simulate it: no other one does, and it is not done.

        Raises OutputError where nothing can be written.
        """
        self.check()
        lock = self.path / "locks" / key
        try:
            lock.parent.mkdir(exist_ok=True)  # tools that copy folders leave empty ones out
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise OutputError(f"cannot write {lock}: {error.strerror}") from error
        try:
            try:
                locked = acquired(handle)
            except BlockingIOError:
                yield False
                return
            if self.is_done(key):
                yield False
                return
            if locked:
                self._clean(key)
            with suppress(OSError):  # on a full disk the lock itself still holds
                os.truncate(handle, 0)
                os.write(handle, f"{os.getpid()}\n".encode())
            yield True
        finally:
            os.close(handle)

    def check(self) -> None:
        """Raise OutputError if the folder has gone: results must not go where its mount was."""
        if not (self.path / PLAN).exists():
            raise OutputError(f"cannot write {self.path}: No such file or directory: {PLAN} has gone")

    def _clean(self, key: str) -> None:
        """Remove what killed processes have begun to write; the caller holds the point's lock."""
        result = self.result(key)
        with suppress(OSError):
            for part in result.parent.glob(f".{result.name}.*.tmp"):
                part.unlink(missing_ok=True)

    def is_running(self, key: str) -> bool:
        """Return whether a living process holds the point's lock."""
        try:
            handle = os.open(self.path / "locks" / key, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(handle)
        return False

    def claimed_by(self, process: int) -> list[str]:
        """Return the points that a process has locked last and that are not done."""
        found = []
        for lock in sorted((self.path / "locks").iterdir()):
            with suppress(OSError):
                if lock.read_text(encoding="ascii", errors="replace").strip() == str(process):
                    found.append(lock.name)
        return [key for key in found if KEY.fullmatch(key) and not self.is_done(key)]

    def fail(self, key: str, reason: str) -> None:
        """Keep why a point failed; a disk that is full or gone keeps nothing."""
        with suppress(OSError, OutputError):
            self._failure(key).parent.mkdir(exist_ok=True)
            write_whole(self._failure(key), (json.dumps({"reason": reason}) + "\n").encode())

    def clear_failure(self, key: str) -> None:
        """Forget an earlier failure."""
        with suppress(OSError):
            self._failure(key).unlink(missing_ok=True)

    def failure(self, key: str) -> str | None:
        """Return why the last attempt at a point failed; None: it did not."""
        try:
            return str(json.loads(self._failure(key).read_text(encoding="utf-8"))["reason"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return "unknown: the file that says why cannot be read"

    def done(self) -> set[str]:
        """Return the keys of all result files that are there."""
        return self._named("points", ".h5")

    def failures(self) -> set[str]:
        """Return the keys of the points whose last attempt failed."""
        return self._named("failed", ".json")

    def _named(self, folder: str, suffix: str) -> set[str]:
        try:
            names = [entry.name for entry in os.scandir(self.path / folder) if entry.name.endswith(suffix)]
        except (FileNotFoundError, NotADirectoryError):
            return set()
        except OSError as error:
            raise WorkloadError(f"{self.path / folder}: cannot be read: {error.strerror}") from None
        return {name.removesuffix(suffix) for name in names if KEY.fullmatch(name.removesuffix(suffix))}

    def missing(self) -> list[str]:
        """Return the keys of the points that are not done, in grid order."""
        planned = self.plan.files()
        done = self.done()
        return [key for key in planned if key not in done]

    def status(self) -> Status:
        """Return how many points are done, running, failed and missing."""
        left = set(self.missing())
        running = {key for key in left if self.is_running(key)}
        failed: dict[str, str] = {}
        counts = {"done": 0, "running": 0, "missing": 0}
        for place in self.plan.places:
            open_files = left.intersection(place.files)
            reasons = [reason for key in sorted(open_files - running) if (reason := self.failure(key))]
            if not open_files:
                counts["done"] += 1
            elif open_files & running:
                counts["running"] += 1
            elif reasons:
                failed[self.plan.name(place)] = reasons[0]
            else:
                counts["missing"] += 1
        return Status(len(self.plan.places), failed=failed, **counts)


def _fields(point: Point) -> dict[str, Any]:
    return {name: getattr(point, name) for name in Point.__dataclass_fields__}
