"""Files that appear under their name only when they are whole: written at once, or piece by piece."""

from __future__ import annotations

import gzip
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from .errors import StoreError

GZIP_LEVEL = 4  # 6 takes twice as long for five per cent


def check_target(path: Path, force: bool) -> None:
    """Raise StoreError for a file that is there already (``force``: may be replaced) or cannot be."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder")
    if path.exists() and not force:
        raise StoreError(f"{path} is there already: --force (force=True) replaces it")
    for parent in path.parents:
        if parent.exists() and not parent.is_dir():
            raise StoreError(f"cannot write {path}: {parent} is no folder")


@contextmanager
def whole_file(path: Path, packed: bool = False) -> Iterator[IO[bytes]]:
    """Give a file to write to, which gets its name, synced, when the block ends without an error.

    ``packed``: what is written is compressed by gzip, the same bytes for the same content. Raises StoreError
    where the file cannot be written; then, as after any other error, nothing is left of it.
    """
    temporary = temporary_name(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            with ExitStack() as stack:
                target: IO[bytes] = file
                if packed:
                    # neither name nor time of the file
                    packer = gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0)
                    target = cast("IO[bytes]", stack.enter_context(packer))
                yield target
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except BaseException as error:  # also Ctrl-C
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
        raise


def temporary_name(path: Path) -> Path:
    """Return a hidden name beside a file that no other process or thread uses."""
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")


def write_files(files: Mapping[Path, bytes]) -> None:
    """Write all files under temporary names, sync them, then give them their names in order.

    Raises OSError; none has its name then, but where giving one failed.
    """
    ready: list[tuple[Path, Path]] = []
    try:
        for path, data in files.items():
            temporary = temporary_name(path)
            ready.append((temporary, path))
            with temporary.open("xb", buffering=0) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
                os.fsync(file.fileno())
        for temporary, path in ready:
            temporary.replace(path)
        for folder in {path.parent for path in files}:
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    except BaseException:  # also Ctrl-C: no partial file is left
        for temporary, _ in ready:
            with suppress(OSError):
                temporary.unlink()
        raise


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that its name never shows a part of it."""
    try:
        write_files({Path(path): data})
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
