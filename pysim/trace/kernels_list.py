"""Reads a ``kernelslist.g``: the copies and kernels of a run, in order."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from pysim.errors import WorkloadError

from .decompress import SUFFIXES

_LIST_MOST = 64 << 20
_ADDRESS_END = 1 << 64


@dataclass(frozen=True, slots=True)
class Memcpy:
    """A copy from the host to the device."""

    address: int
    size: int  # bytes
    line: int  # of the list


@dataclass(frozen=True, slots=True)
class KernelFile:
    """A kernel launch: the file of its trace, and its number among the kernels of the list, from 1."""

    path: Path
    number: int
    line: int  # of the list


def find_list(path: Path | str) -> Path:
    """Return the list file: ``path``, or the one in folder ``path``; WorkloadError if there is none."""
    path = Path(path)
    if not path.is_dir():
        if not path.is_file():
            raise WorkloadError(f"{path}: no such file or folder")
        if path.name.endswith(SUFFIXES):
            raise WorkloadError(f"{path}: the trace of one kernel: give its folder, or a list of kernels")
        return path
    plain = path / "kernelslist.g"
    lists = [plain] if plain.is_file() else sorted(path.glob("kernelslist*.g"))
    if len(lists) > 1:
        raise WorkloadError(f"{path}: the folder holds several kernelslist*.g: name the file")
    if not lists:
        raise WorkloadError(f"{path}: the folder holds no kernelslist.g{_hint(path)}")
    return lists[0]


def _hint(path: Path) -> str:
    """Return a hint for the error about a folder without a list."""
    if (path / "kernelslist").is_file():
        return ", but a kernelslist as the tracer leaves it: its traces must be grouped by TB first"
    below = sorted(path.glob("*/kernelslist*.g"))
    return f": did you mean {below[0].parent}?" if below else ""


def read_list(path: Path | str) -> tuple[Memcpy | KernelFile, ...]:
    """Return the copies to the device and the kernels that a list (or its folder) names, in order.

    Empty lines, comments (``#``) and copies to the host have no effect. Raises WorkloadError,
    ``file:line: what``: any other line, a comment that names a trace file, or a kernel's file that does not
    exist or lies outside the folder of the list.
    """
    path = find_list(path)
    try:
        if path.stat().st_size > _LIST_MOST:
            raise WorkloadError(f"{path}: too large for a list of kernels")
        lines = _lines(path.read_bytes())
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror or error}") from error
    commands: list[Memcpy | KernelFile] = []
    kernels = 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        where = f"{path}:{number}"
        if text.startswith("MemcpyHtoD"):
            commands.append(_memcpy(text, where, number))
        elif text.startswith("MemcpyDtoH"):
            _memcpy(text, where, number)
        elif text.startswith("#"):
            _check_comment(text, where)
        elif text.endswith(SUFFIXES) or text.startswith("kernel"):
            kernels += 1
            commands.append(KernelFile(_kernel_path(path, text, where), kernels, number))
        elif text:
            raise WorkloadError(
                f"{where}: not understood: {text[:80]!r}: neither a kernel's file ({', '.join(SUFFIXES)})"
                " nor MemcpyHtoD,ADDRESS,BYTES"
            )
    if not kernels:
        raise WorkloadError(f"{path}: names no kernel")
    return tuple(commands)


def _lines(data: bytes) -> list[str]:
    """Return the lines of a list: UTF-8, or UTF-16 with a byte-order mark."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "backslashreplace").split("\n")
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "backslashreplace").split("\n")


def _check_comment(text: str, where: str) -> None:
    """Refuse a comment that names a trace file: whether that kernel is meant to run would be a guess."""
    if text.endswith(SUFFIXES):
        raise WorkloadError(f"{where}: a comment names a kernel's file: {text[:80]!r}: use --kernels instead")


def _memcpy(text: str, where: str, line: int) -> Memcpy:
    fields = text.split(",")
    try:
        if len(fields) != 3 or len(fields[0]) != len("MemcpyHtoD") or "_" in text:
            raise ValueError
        address, size = int(fields[1], 16), int(fields[2], 10)
    except ValueError:
        name = text[: len("MemcpyHtoD")]
        raise WorkloadError(f"{where}: not {name},ADDRESS,BYTES: {text[:80]!r}") from None
    if not (0 <= address < _ADDRESS_END and 0 <= size <= _ADDRESS_END - address):
        raise WorkloadError(f"{where}: a copy outside 64 bits of address")
    return Memcpy(address, size, line)


def _kernel_path(path: Path, text: str, where: str) -> Path:
    if any(ord(char) < 32 for char in text):
        raise WorkloadError(f"{where}: {text[:80]!r} is no file name")
    if not text.endswith(SUFFIXES):
        raise WorkloadError(f"{where}: {text[:80]!r} does not end in {', '.join(SUFFIXES)}")
    if text.startswith("/"):
        raise WorkloadError(f"{where}: {text[:80]!r} is an absolute path")
    folder = path.parent
    target = folder / text
    try:
        # links are resolved first, as they may lead out of the folder
        inside = target.resolve().is_relative_to(folder.resolve())
        there = target.is_file()
    except (OSError, RuntimeError, ValueError) as error:
        raise WorkloadError(f"{where}: {text[:80]!r}: {error}") from error
    if not inside:
        raise WorkloadError(f"{where}: {text[:80]!r} leaves the folder")
    if not there:
        raise WorkloadError(f"{where}: no such file: {text[:200]!r}")
    return target
