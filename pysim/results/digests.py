"""Digests of the code, which name a result file and keys of caches."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_PYTHON = ("pysim/**/*.py", "workloads/**/*.py")


@cache
def source_digest() -> str:
    """Return a digest of the sources that decide a result; an edit changes the name of the result file."""
    digest = hashlib.sha256()
    for pattern in ("core_c/**/*.[ch]", *_PYTHON):
        for path in sorted(_ROOT.glob(pattern)):
            digest.update(path.relative_to(_ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


@cache
def code_digest() -> str:
    """Return a digest of the code that runs: the compiled core (not its sources) and the Python files."""
    digest = hashlib.sha256()
    for pattern in ("pysim/_core.*", *_PYTHON):
        for path in sorted(_ROOT.glob(pattern)):
            data = path.read_bytes()
            digest.update(f"{path.relative_to(_ROOT)} {len(data)}\n".encode() + data)
    return digest.hexdigest()


# what reads options, launches, prints, or compares with measurements decides no result
_OTHER = ("pysim/cli/", "pysim/sweep/", "workloads/validation/", "workloads/studies/")


@cache
def results_digest() -> str:
    """Return a digest of the code that makes results: the compiled core, and what lowers a job.

    Scripts, pages, plots, tests and the command line are left out: an edit there keeps the keys of a sweep.
    """
    digest = hashlib.sha256()
    for pattern in ("pysim/_core.*", *_PYTHON):
        for path in sorted(_ROOT.glob(pattern)):
            name = path.relative_to(_ROOT).as_posix()
            if not name.startswith(_OTHER):
                data = path.read_bytes()
                digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.hexdigest()
