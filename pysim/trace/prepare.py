"""A trace as it comes, converted if that was not done before."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError

from .convert import convert, source_files, source_hash
from .folder import KernelFile, find_list, read_list
from .store import MAGIC, Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from pysim.clock import Clock


def converted_path(source: Path | str, folder: Path) -> Path:
    """Return where the converted form of a trace is kept in ``folder``: a name for each list file."""
    found = find_list(source).resolve()
    key = hashlib.sha256(os.fsencode(found)).hexdigest()[:10]
    return folder / f"{found.parent.name or 'trace'}-{key}.pysim"


def _fresh(target: Path, source: Path | str, unknown: int | None) -> Store | None:
    """Return the converted trace if it is that of ``source``."""
    if not target.is_file():
        return None
    try:
        store = Store(target)
    except WorkloadError:
        return None  # of another version, or damaged: it is made again
    files = source_files(source)
    if store.unknown != unknown or store.files != [(f.name, f.stat().st_size) for f in files]:
        return None
    if all(f.stat().st_mtime_ns < target.stat().st_mtime_ns for f in files):
        return store
    return store if store.source == source_hash(source) else None


def _is_converted(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror or error}") from None


def count_kernels(source: Path | str) -> int:
    """Return how many kernels a folder, a list or a converted file has, without a conversion."""
    path = Path(source)
    if _is_converted(path):
        return len(Store(path).kernels)
    return sum(isinstance(command, KernelFile) for command in read_list(path))


def prepare(
    source: Path | str,
    folder: Path,
    clock: Clock,
    *,
    unknown: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Store:
    """Return the converted trace of a folder, a list, or a converted file.

    It is kept in ``folder`` and made again when the trace has changed: other names or sizes, or files newer
    than it with other bytes. ``clock`` gets the seconds of conversion and of loading.
    """
    path = Path(source)
    if _is_converted(path):
        with clock.phase("load"):
            return Store(path)
    target = converted_path(path, folder)
    with clock.phase("load"):
        store = _fresh(target, path, unknown)
    if store is None:
        with clock.phase("convert"):
            convert(path, target, unknown=unknown, progress=progress)
        with clock.phase("load"):
            store = Store(target)
    return store
