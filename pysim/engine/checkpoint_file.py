"""The file of a checkpoint: a header, blocks of bytes, a checksum.

Little-endian: the magic, version and length of the header (``HEAD``), the header as JSON, then blocks: name,
stored and raw length (``BLOCK``), the bytes compressed by zlib. A block named ``end`` without bytes is the
last; SHA-256 of all before it closes the file. It appears under its name when it is complete and synced.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from pysim.errors import CheckpointError, OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MAGIC = b"pysimckp"
VERSION = 1
HEAD = struct.Struct("<8sII")
BLOCK = struct.Struct("<4sII")
END = b"end\0"
MOST_RAW = 4 << 20  # bytes of a block
MOST_HEADER = 16 << 20
DIGEST = 32
_LEVEL = 1  # of zlib: state of L1 and L2 shrinks to a quarter, and higher levels gain little


class Writer:
    """Writes blocks; made by :func:`writing`. ``size``: bytes so far."""

    def __init__(self, file: IO[bytes], header: Mapping[str, Any]) -> None:
        self._file, self._digest, self.size = file, hashlib.sha256(), 0
        text = json.dumps(header, sort_keys=True).encode()
        self._put(HEAD.pack(MAGIC, VERSION, len(text)) + text)

    def _put(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(data)
        self.size += len(data)

    def add(self, name: bytes, data: memoryview | bytes) -> None:
        """Write bytes, in blocks of at most ``MOST_RAW``, under a name of four bytes."""
        view = memoryview(data).cast("B")
        for at in range(0, len(view), MOST_RAW):
            part = view[at : at + MOST_RAW]
            stored = zlib.compress(part, _LEVEL)
            self._put(BLOCK.pack(name, len(stored), len(part)) + stored)

    def close(self) -> None:
        """Write the last block and the checksum."""
        self._put(BLOCK.pack(END, 0, 0))
        self._file.write(self._digest.digest())


@contextmanager
def writing(path: Path, header: Mapping[str, Any]) -> Iterator[Writer]:
    """Yield the writer of a file, which replaces what has its name once it is complete, and only then.

    Raises OutputError where it cannot be written; nothing is left of it then.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with beside.open("xb") as file:
                made = Writer(file, header)
                yield made
                made.close()
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    """Sync the entries of a folder, where the system can: a name must not survive without its file."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A checkpoint whose checksum is right. ``header``: what its writer said of it."""

    path: Path
    header: dict[str, Any]
    _first: int  # byte of the first block

    @classmethod
    def open(cls, path: Path) -> CheckpointFile:
        """Read the header and check the whole file; CheckpointError: damaged, or of another version."""
        try:
            with path.open("rb") as file:
                return cls._checked(path, file)
        except OSError as error:
            raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from error

    @classmethod
    def _checked(cls, path: Path, file: IO[bytes]) -> CheckpointFile:
        size = os.fstat(file.fileno()).st_size
        head = file.read(HEAD.size)
        if len(head) < HEAD.size or head[:8] != MAGIC:
            raise CheckpointError(f"{path}: no checkpoint: it does not begin as one")
        _, version, length = HEAD.unpack(head)
        if version != VERSION:
            raise CheckpointError(f"{path}: a checkpoint of version {version}: this is version {VERSION}")
        file.seek(0)
        digest, left = hashlib.sha256(), size - DIGEST
        while left > 0 and (part := file.read(min(left, MOST_RAW))):
            digest.update(part)
            left -= len(part)
        if left != 0 or file.read() != digest.digest():
            raise damaged(path, "its checksum is wrong")
        if length > min(MOST_HEADER, size - HEAD.size - DIGEST):
            raise damaged(path, "the header is too long")
        file.seek(HEAD.size)
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError):
            raise damaged(path, "the header is no JSON") from None
        if not isinstance(header, dict):
            raise damaged(path, "the header is no object")
        return cls(path, header, HEAD.size + length)

    def blocks(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield (name, bytes) of each block, at most ``MOST_RAW`` bytes each."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._first)
                yield from self._blocks(file)
        except OSError as error:
            raise CheckpointError(f"cannot read {self.path}: {error.strerror or error}") from error

    def _blocks(self, file: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
        while len(head := file.read(BLOCK.size)) == BLOCK.size:
            name, stored, raw = BLOCK.unpack(head)
            if name == END:
                return
            if raw > MOST_RAW or stored > 2 * MOST_RAW:
                break
            unpack = zlib.decompressobj()
            try:
                data = unpack.decompress(file.read(stored), raw + 1)
            except zlib.error:
                break
            if len(data) != raw or not unpack.eof:
                break
            yield name, data
        raise damaged(self.path, "a block has another length than it says")


def damaged(path: Path, what: str) -> CheckpointError:
    """Return the error of a damaged file."""
    return CheckpointError(f"{path}: damaged: {what}")
