"""What a report is made of: result files, or the folder of a sweep."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from pysim.stats.checked import opened
from pysim.stats.errors import StoreError, as_path
from pysim.stats.store import Results

from .report import Page, Recording, write_report
from .run import MOST_TBS
from .sweep import Sweep

Path_ = str | os.PathLike[str]


class Sources(NamedTuple):
    """Result files to draw, and the sweep that they are a point of."""

    recordings: list[Recording]
    sweep: Sweep | None


def open_sources(paths: Iterable[Path_], point: int | None = None) -> Sources:
    """Open result files, or one folder: of a sweep, or of result files.

    ``point``: the one of the folder to draw, from 0 on (default: the first that is done). Raises StoreError
    for what is no result, for a folder beside others, and for a point without a folder or a result.
    """
    names = [as_path(path) for path in paths]
    if not names:
        raise StoreError("no result file to show: none was given")
    folders = [name for name in names if name.is_dir()]
    if folders:
        if len(names) > 1:
            raise StoreError(f"{folders[0]} is a folder: a report shows it alone")
        sweep = Sweep.of(folders[0], point)
        files = zip(sweep.chosen, sweep.labels, strict=True)
        return Sources([Recording(opened(path), label) for path, label in files], sweep)
    if point is not None:
        raise StoreError(f"{names[0]} is no folder: a point is one of a sweep")
    stems = [name.stem for name in names]
    labels = stems if len(set(stems)) == len(stems) else [str(name) for name in names]
    return Sources([Recording(opened(name), label) for name, label in zip(names, labels, strict=True)], None)


def report(
    source: Path_ | Iterable[Path_],
    target: Path_,
    *,
    point: int | None = None,
    most_tbs: int = MOST_TBS,
    force: bool = False,
) -> Page:
    """Write a report: one HTML file of a result file, of several, or of a sweep's folder.

    ``point``: of a sweep, which the timelines show (default: the first that is done); ``most_tbs``: of a run;
    beyond it whole SMs are left out of its timeline, and the page says so. The page has no edges between TBs
    but the last of each, as files do not hold them: ``pysim report`` and ``Result.report`` add them. Raises
    StoreError for what cannot be read or written, and for a target that exists (``force`` replaces it).
    """
    several = isinstance(source, Iterable) and not isinstance(source, str | bytes | Results)
    paths: list[Any] = list(source) if several else [source]  # type: ignore[arg-type]
    recordings, sweep = open_sources(paths, point)
    return write_report(recordings, target, most_tbs, force, sweep)
