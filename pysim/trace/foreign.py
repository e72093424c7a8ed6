"""Recognises files that are no SASS trace, so that the error says what they are."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from pysim.errors import WorkloadError

_HEAD = 1 << 20  # bytes that are looked at
_PROFILE = ("*.pt.trace.json", "*.pt.trace.json.gz")


def _head(path: Path) -> bytes:
    """Return the beginning of a file, decompressed where it is gzip."""
    with path.open("rb") as file:
        data = file.read(_HEAD)
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with gzip.open(path) as packed:
            return packed.read(_HEAD)
    except (OSError, EOFError, zlib.error):
        return b""  # damaged: what reads it says so


def refuse_foreign(path: Path) -> None:
    """Raise WorkloadError if a file, or what a folder without a list holds, is a trace of another kind."""
    if path.is_dir() and not any(path.glob("kernelslist*")):
        path = next((found for kind in _PROFILE for found in sorted(path.glob(kind))), path)
    if not path.is_file():
        return
    try:
        data = _head(path)
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror or error}") from None
    start = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    # Chrome's format is an object with traceEvents, or the list of events alone
    if start[:1] in (b"{", b"[") and (b'"traceEvents"' in data or b'"ph"' in data):
        raise WorkloadError(
            f"{path}: a trace of the PyTorch profiler (Chrome trace JSON), not an instruction trace: it has"
            " times of kernels, but none of their instructions: `pysim what-if` reads it"
        )
    if path.suffix == ".pysim":
        raise WorkloadError(f"{path}: no converted trace, in spite of its name: it has other contents")
