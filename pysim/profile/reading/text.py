"""The bytes of a profile, piece by piece: plain or gzip, whichever the file's first bytes say."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

from pysim.errors import InputError
from pysim.profile.losses import Losses

PIECE = 4 << 20  # B
_GZIP = b"\x1f\x8b"
# profiles compress to some 5 %; far less is no profile, but nearly one byte repeated
_BOMB_RATIO, _BOMB_FROM = 900, 1 << 30
CUT = "the file is cut off"


def pieces(path: Path, losses: Losses) -> Iterator[bytes]:
    """Yield the contents of a file in pieces of some MiB.

    Raises InputError: no such file, not readable, damaged compression. gzip data that end early are a loss.
    """
    try:
        if not path.is_file():
            raise InputError(f"{path}: no such file" if not path.exists() else f"{path}: not a file")
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            if not packed:
                while piece := file.read(PIECE):
                    yield piece
                return
            yield from _unpack(path, file.read, losses)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _unpack(path: Path, read: object, losses: Losses) -> Iterator[bytes]:
    """Yield what gzip members hold, one after another."""
    assert callable(read)
    taken = given = 0
    decoder = zlib.decompressobj(31)
    data = b""
    while True:
        if not data:
            data = read(1 << 20)
            taken += len(data)
            if not data:
                if not decoder.eof:
                    losses.add(CUT, f"its gzip data end after byte {taken}")
                return
        try:
            piece = decoder.decompress(data, PIECE)
        except zlib.error as error:
            raise InputError(f"{path}: byte {taken - len(data)} of the compressed file: {error}") from error
        given += len(piece)
        if given > max(_BOMB_FROM, _BOMB_RATIO * taken):
            raise InputError(f"{path}: {taken} bytes unpack to more than {given}: this is no profile")
        if piece:
            yield piece
        data = decoder.unconsumed_tail
        if decoder.eof:
            data = decoder.unused_data.lstrip(b"\0")
            if not data:
                data = read(1 << 20).lstrip(b"\0")
                taken += len(data)
            if not data:
                return
            decoder = zlib.decompressobj(31)
