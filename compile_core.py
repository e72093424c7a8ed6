"""How setuptools compiles pysim/_core (setup.py): all processors at once, and only what has changed.

Objects are kept in build/objects by the digest of all that decides them, so pip and build.py share them. The
time of a file decides nothing: no checkout and no copy of the tree makes an old object pass for a new one.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setuptools.command.build_ext import build_ext

OBJECTS = Path("build") / "objects"  # below the root, where setup.py runs


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _digest(parts: Iterable[str | bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"%d " % len(data) + data)
    return digest.hexdigest()[:24]


def _version(compiler: Any) -> str:
    """Return what the compiler says that it is; nothing where it cannot be asked."""
    command = getattr(compiler, "compiler_so", None)
    if not command:
        return ""
    return subprocess.run([command[0], "--version"], capture_output=True, text=True, check=False).stdout


class ParallelCompile:
    """Stands for ``compile`` of a compiler of setuptools: the same arguments, the objects of all sources."""

    def __init__(self, compiler: Any, folder: Path, jobs: int) -> None:
        self._compiler = compiler
        self._compile = compiler.compile
        self._folder = folder
        self._jobs = jobs

    def __call__(self, sources: Sequence[str], depends: Sequence[str] = (), **more: Any) -> list[str]:
        """Compile the sources whose objects are not kept yet. ``depends``: headers that all may include."""
        flags = {name: value for name, value in more.items() if name != "output_dir"}
        # what all share: an object of one setting of the flags never replaces that of another
        common = _digest(
            [
                repr(getattr(self._compiler, "compiler_so", "")),
                _version(self._compiler),
                sys.version,
                repr(sorted(flags.items())),
            ]
        )
        headers = _digest(part for name in sorted(depends) for part in (name, Path(name).read_bytes()))
        folder = self._folder / common
        kept = [folder / f"{self._key(name, headers)}.o" for name in sources]
        missing = [pair for pair in zip(sources, kept, strict=True) if not pair[1].exists()]
        if missing:
            folder.mkdir(parents=True, exist_ok=True)
            some = f"{len(missing)} of " if len(missing) < len(sources) else ""
            print(f"compiling the core ({some}{len(sources)} files)", flush=True)
            self._make(missing, folder, flags)
        for path in folder.glob("*.o"):
            if path not in kept:
                path.unlink()
        return [str(path) for path in kept]

    def _make(self, missing: Sequence[tuple[str, Path]], folder: Path, flags: dict[str, Any]) -> None:
        """Compile (source, object) pairs in threads, whose compilers are processes."""
        # in the same file system, so that an object appears by one rename
        with TemporaryDirectory(dir=folder) as fresh, ThreadPoolExecutor(self._jobs) as pool:

            def make(pair: tuple[str, Path]) -> None:
                (made,) = self._compile([pair[0]], output_dir=fresh, **flags)
                Path(made).replace(pair[1])

            list(pool.map(make, missing))

    @staticmethod
    def _key(name: str, headers: str) -> str:
        # without the folder: cffi writes its source to a temporary one under pip, below build/ under build.py
        return _digest([Path(name).name, Path(name).read_bytes(), headers])


class BuildCore(build_ext):
    """``build_ext`` that compiles in parallel: as many files at once as ``--parallel`` or processors."""

    def build_extensions(self) -> None:
        """Compile and link."""
        jobs = self.parallel if type(self.parallel) is int else processors()
        self.compiler.compile = ParallelCompile(self.compiler, OBJECTS, jobs)
        super().build_extensions()
