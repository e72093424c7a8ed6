"""The file of a converted trace, from which kernels are loaded one by one.

A header of 64 bytes holds magic, version, and the offset, length and CRC-32 of the directory. Arrays follow,
each aligned to 64 bytes. The directory, JSON at the end, has the offset, length and CRC-32 of each array. All
numbers are little endian. The file is independent of the GPU: latencies and load slots are added later.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim._ffi import dtype_of, lib
from pysim.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from numpy.typing import NDArray

MAGIC = b"pysimTRC"
VERSION = 2
ALIGN = 64
_HEAD = struct.Struct("<8sIIQQI28x")
_MOST_DIRECTORY = 1 << 30

# arrays of each kernel, and of the whole trace
KERNEL_ARRAYS = {
    "rows": "gs_sass",
    "items": "gs_item",
    "classes": "gs_class",
    "places": "gs_place",
    "shapes": "gs_shape_lanes",
    "entries": "u4",
    "tb_rows": "u4",
    "blocks": "u4",
    "touched": "gs_run_touched",
}
TRACE_ARRAYS = {"accesses": "u8", "templates": "gs_template", "parts": "gs_part", "pages": "u8"}


def dtype(kind: str) -> np.dtype[Any]:
    """Return the numpy type of an array's elements."""
    return dtype_of(kind) if kind.startswith("gs_") else np.dtype("<" + kind)


def _layout(made: np.dtype[Any]) -> str:
    if made.subdtype is not None:
        return f"{made.subdtype[1]}{_layout(made.subdtype[0])}"
    if made.names is None or made.fields is None:
        return made.str
    fields = (f"{name}@{made.fields[name][1]}:{_layout(made.fields[name][0])}" for name in made.names)
    return f"{{{' '.join(fields)} {made.itemsize}}}"


def layout() -> str:
    """Return a hash of the element types of all arrays, and of the opcode table that they refer to."""
    kinds = {**KERNEL_ARRAYS, **TRACE_ARRAYS}
    parts = [f"{name} {_layout(dtype(kind))}" for name, kind in kinds.items()]
    return f"{zlib.crc32(';'.join(parts).encode()):08x}-{lib.gs_tables_hash():016x}"


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """One kernel: the header of its trace, and its slice of the accesses.

    ``grid`` in TBs, ``block`` in threads, ``smem`` in bytes a TB, ``registers`` a thread, ``binary``: SM
    version of the code, ``instructions``: of all warps. The slice is ``access_count`` elements from
    ``first_access`` on, with CRC-32 ``access_crc``.
    """

    name: str
    id: int
    stream: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    smem: int
    registers: int
    binary: int
    warps: int
    instructions: int
    first_access: int
    access_count: int
    access_crc: int


def _text(value: object) -> str:
    """Return text that can be encoded, as the name of a folder need not be UTF-8."""
    return str(value).encode("utf-8", "replace").decode()


def _possible(info: KernelInfo) -> bool:
    """Return whether the numbers of a kernel are in range."""
    small = (*info.block, info.smem, info.registers, info.warps)
    return min(info.grid) >= 1 and 1 <= info.warps <= 64 and all(0 <= n < 1 << 32 for n in small)


class ConvertedTraceWriter:
    """Writes a converted trace under a temporary name; :meth:`finish` renames it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        self.file = self.temporary.open("w+b")
        self.file.write(bytes(_HEAD.size))

    def __enter__(self) -> ConvertedTraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()
        self.temporary.unlink(missing_ok=True)

    def begin_array(self) -> int:
        """Begin an array; return its offset in the file."""
        at = self.file.seek(0, os.SEEK_END)
        self.file.write(bytes(-at % ALIGN))
        return at + -at % ALIGN

    def write_array(self, array: NDArray[Any]) -> list[int]:
        """Write an array; return its offset, length and CRC-32."""
        return [self.begin_array(), len(array), self.append_pieces([array])]

    def append_pieces(self, pieces: Iterable[NDArray[Any]]) -> int:
        """Append pieces to the file; return their CRC-32."""
        self.file.seek(0, os.SEEK_END)
        check = 0
        for piece in pieces:
            data = piece.tobytes()
            self.file.write(data)
            check = zlib.crc32(data, check)
        return check

    def edit_array(self, where: list[int], kind: str, by: Callable[[NDArray[Any]], None]) -> list[int]:
        """Apply ``by`` to an array in the file, in place; return its offset, length and new CRC-32."""
        at, count, _ = where
        if count == 0:
            return where
        self.file.flush()
        rows = np.memmap(self.file, dtype(kind), "r+", at, (count,))
        by(rows)
        rows.flush()
        return [at, count, zlib.crc32(rows.view(np.uint8).data)]

    def finish(self, directory: Mapping[str, Any]) -> None:
        """Write the directory and the header, and rename the file to its path."""
        text = json.dumps(directory, separators=(",", ":")).encode()
        at = self.begin_array()
        self.file.write(text)
        self.file.seek(0)
        self.file.write(_HEAD.pack(MAGIC, VERSION, 0, at, len(text), zlib.crc32(text)))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.temporary.replace(self.path)


class ConvertedTrace:
    """A converted trace. Arrays are mapped from the file and checked at first use.

    ``kernels``: :class:`KernelInfo` of each, in launch order. ``memcpys``: (kernel that the copy precedes,
    address, bytes) of the copies from the host. ``memory_bytes``: the memory that the trace touches, in whole
    pages of 2 MiB; page i of it is page ``trace_array("pages")[i]`` of the trace. ``name``: the trace's
    folder. ``source``, ``files``: hash, and names and sizes, of what was converted. ``unknown``: the row of
    ``OPCODES`` that stands in for unknown opcodes, or None. ``chosen``: the numbers in the trace of its
    kernels, from 1; None: all.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self.size = self.path.stat().st_size
            with self.path.open("rb") as file:
                self.directory = self._directory(file)
            self._bytes = np.memmap(self.path, np.uint8, "r")
        except OSError as error:
            raise WorkloadError(f"{self.path}: {error.strerror or error}") from None
        self._read()
        self._checked: set[int] = set()

    def error(self, what: str) -> WorkloadError:
        """Return the error for a damaged file."""
        return WorkloadError(f"{self.path}: {what}: convert the trace again")

    def _directory(self, file: Any) -> dict[str, Any]:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or not head.startswith(MAGIC):
            raise self.error("not a converted trace")
        _, version, _, at, length, check = _HEAD.unpack(head)
        if version != VERSION:
            raise self.error(f"converted by another version ({version}, this one is {VERSION})")
        if length > _MOST_DIRECTORY or at > self.size or length > self.size - at:
            raise self.error("cut off")
        file.seek(at)
        text = file.read(length)
        if zlib.crc32(text) != check:
            raise self.error("damaged directory")
        try:
            made = json.loads(text)
        except (ValueError, RecursionError):
            raise self.error("damaged directory") from None
        if not isinstance(made, dict):
            raise self.error("damaged directory")
        if made.get("layout") != layout():
            raise self.error("converted by another version")
        return made

    def _read(self) -> None:
        try:
            self.kernels = tuple(
                KernelInfo(
                    name=_text(k["name"]),
                    grid=(int(k["grid"][0]), int(k["grid"][1]), int(k["grid"][2])),
                    block=(int(k["block"][0]), int(k["block"][1]), int(k["block"][2])),
                    **{
                        name: int(k[name])
                        for name in ("id", "stream", "smem", "registers", "binary", "warps", "instructions")
                    },
                    first_access=int(k["first_access"]),
                    access_count=int(k["accesses"]),
                    access_crc=int(k["accesses_check"]),
                )
                for k in self.directory["kernels"]
            )
            self.memcpys = tuple((int(k), int(a), int(n)) for k, a, n in self.directory["memcpys"])
            self.name, self.source = _text(self.directory["name"]), str(self.directory["source"])
            self.files = [(str(name), int(size)) for name, size in self.directory["files"]]
            self.unknown = None if self.directory["unknown"] is None else int(self.directory["unknown"])
            self.memory_bytes = int(self.directory["memory_bytes"])
            chosen = self.directory["chosen"]
            self.chosen = None if chosen is None else tuple(int(number) for number in chosen)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):
            raise self.error("damaged directory") from None
        if not self.kernels or not all(map(_possible, self.kernels)):
            raise self.error("damaged directory")

    def _array(self, kind: str, where: Any, what: str, name: str) -> NDArray[Any]:
        made = dtype(kind)
        try:
            at, count, check = (int(x) for x in where)
        except (TypeError, ValueError, OverflowError):
            raise self.error("damaged directory") from None
        if at % ALIGN or at < 0 or count < 0 or at > self.size or count > (self.size - at) // made.itemsize:
            raise self.error(f"{what}: cut off")
        raw = self._bytes[at : at + count * made.itemsize]
        if name != "accesses" and at not in self._checked:
            if zlib.crc32(raw.data) != check:
                raise self.error(f"{what}: damaged")
            self._checked.add(at)
        return raw.view(made)

    def kernel_array(self, number: int, name: str) -> NDArray[Any]:
        """Return an array of kernel ``number`` (from 0); ``name``: a key of KERNEL_ARRAYS.

        Raises WorkloadError for a damaged array.
        """
        try:
            where = self.directory["kernels"][number]["arrays"][name]
        except (KeyError, TypeError):
            raise self.error("damaged directory") from None
        return self._array(KERNEL_ARRAYS[name], where, f"kernel {number + 1}: {name}", name)

    def trace_array(self, name: str) -> NDArray[Any]:
        """Return an array of the whole trace; ``accesses`` are not checked here, but kernel by kernel."""
        try:
            where = self.directory["arrays"][name]
        except (KeyError, TypeError):
            raise self.error("damaged directory") from None
        return self._array(TRACE_ARRAYS[name], where, name, name)

    def check_accesses(self, number: int) -> None:
        """Check the recorded accesses of kernel ``number``, which lie in ``trace_array("accesses")``."""
        info = self.kernels[number]
        every = self.trace_array("accesses")
        end = info.first_access + info.access_count
        if min(info.first_access, info.access_count) < 0 or end > len(every):
            raise self.error(f"kernel {number + 1}: accesses: cut off")
        mine = every[info.first_access : end]
        if zlib.crc32(mine.view(np.uint8).data) != info.access_crc:
            raise self.error(f"kernel {number + 1}: accesses: damaged")
