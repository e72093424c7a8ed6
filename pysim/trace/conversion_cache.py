"""Converted traces in a cache folder: a trace is converted when it is first used or has changed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError

from .convert import convert, source_files, source_hash
from .converted_file import MAGIC, ConvertedTrace
from .foreign import refuse_foreign
from .kernels_list import KernelFile, find_list, read_list

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pysim.clock import Clock


def converted_path(source: Path | str, folder: Path, kernels: Sequence[int] | None = None) -> Path:
    """Return the path in ``folder`` of the converted trace; it depends on the list file and the kernels."""
    found = find_list(source).resolve()
    which = "" if kernels is None else "\0" + ",".join(map(str, sorted(kernels)))
    key = hashlib.sha256(os.fsencode(found) + which.encode()).hexdigest()[:10]
    return folder / f"{found.parent.name or 'trace'}-{key}.pysim"


def _fresh(
    target: Path, source: Path | str, unknown: int | None, kernels: Sequence[int] | None
) -> ConvertedTrace | None:
    """Return the converted trace in ``target`` if it is up to date, or None."""
    if not target.is_file():
        return None
    try:
        store = ConvertedTrace(target)
    except WorkloadError:
        return None  # of another version, or damaged: convert again
    files = source_files(source, kernels)
    if store.unknown != unknown or store.files != [(f.name, f.stat().st_size) for f in files]:
        return None
    if all(f.stat().st_mtime_ns < target.stat().st_mtime_ns for f in files):
        return store
    return store if store.source == source_hash(source, kernels) else None


def _is_converted(path: Path) -> bool:
    """Whether a file is a converted trace; WorkloadError if it is a trace of another kind."""
    try:
        if path.is_file():
            with path.open("rb") as file:
                if file.read(len(MAGIC)) == MAGIC:
                    return True
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror or error}") from None
    refuse_foreign(path)
    return False


def count_kernels(source: Path | str) -> int:
    """Return how many kernels a folder, a list or a converted file has, without converting it."""
    path = Path(source)
    if _is_converted(path):
        return len(ConvertedTrace(path).kernels)
    return sum(isinstance(command, KernelFile) for command in read_list(path))


def open_trace(
    source: Path | str,
    folder: Path,
    clock: Clock,
    *,
    unknown: int | None = None,
    kernels: Sequence[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ConvertedTrace:
    """Return the converted trace of ``source``: a folder, a list, or a converted file.

    The converted file is kept in ``folder``. It is converted again when the trace has changed: other file
    names or sizes, or newer files with other bytes. ``kernels``: of a folder or list, only these (numbers
    from 1) are converted, to a file of their own, so that results do not depend on what was converted before.
    None, or all numbers: the whole trace. ``unknown``: see ``resolve_unknown``. ``progress(kernels done,
    kernels)`` is called after each. ``clock`` gets the seconds of the phases ``convert`` and ``load``. Raises
    WorkloadError.
    """
    path = Path(source)
    if _is_converted(path):
        with clock.phase("load"):
            return ConvertedTrace(path)
    if kernels is not None and len(set(kernels)) == count_kernels(path):
        kernels = None
    target = converted_path(path, folder, kernels)
    with clock.phase("load"):
        store = _fresh(target, path, unknown, kernels)
    if store is None:
        with clock.phase("convert"):
            convert(path, target, unknown=unknown, kernels=kernels, progress=progress)
        with clock.phase("load"):
            store = ConvertedTrace(target)
    return store
