"""The text of a kernel's trace, decompressed in pieces: plain, xz, or a ``.tracez`` container."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from pathlib import Path

from pysim.errors import WorkloadError

from .tracez import tracez_text

PIECE = 1 << 20
SUFFIXES = (".traceg", ".traceg.xz", ".tracez")
# xz -9 needs 65 MiB; a file that asks for far more is an attack on the memory
_XZ_MEMORY = 256 << 20
# traces compress to about 1 %; a ratio of 3000 is no trace, but nearly one byte repeated (7000)
_BOMB_RATIO, _BOMB_FROM = 3000, 64 << 20


def trace_text(path: Path) -> Iterator[bytes]:
    """Yield the text of a trace file, at most 1 MiB (``.tracez``: one block) at a time.

    Raises WorkloadError: no such file, a suffix that is none of ``SUFFIXES``, or damaged compression.
    """
    if not path.name.endswith(SUFFIXES):
        raise WorkloadError(f"{path}: not a trace: the name must end in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise WorkloadError(f"{path}: no such file")
    try:
        if path.name.endswith(".xz"):
            yield from _unpack_xz(path)
        elif path.name.endswith(".tracez"):
            yield from tracez_text(path)
        else:
            with path.open("rb") as file:
                while piece := file.read(PIECE):
                    yield piece
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror or error}") from error


def _unpack_xz(path: Path) -> Iterator[bytes]:
    taken = given = 0
    line = 1
    with path.open("rb") as file:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        while True:
            data = b""
            if decoder.eof:
                # xz files may be put one after another, with zero bytes between
                data = decoder.unused_data or file.read(PIECE)
                taken += 0 if decoder.unused_data else len(data)
                data = data.lstrip(b"\0")
                if not data:
                    if file.read(1):
                        raise WorkloadError(f"{path}:{line}: bytes after the xz data")
                    return
                decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
            elif decoder.needs_input:
                data = file.read(PIECE)
                taken += len(data)
                if not data:
                    raise WorkloadError(f"{path}:{line}: the xz data is cut short")
            try:
                piece = decoder.decompress(data, PIECE)
            except lzma.LZMAError as error:
                raise WorkloadError(f"{path}:{line}: xz: {error}") from error
            given += len(piece)
            line += piece.count(b"\n")
            if given > max(_BOMB_FROM, _BOMB_RATIO * taken):
                raise WorkloadError(
                    f"{path}:{line}: {taken} bytes unpack to more than {given}: this is no trace"
                )
            if piece:
                yield piece
