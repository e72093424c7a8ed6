"""Converts a trace folder into one file (``converted_file.py``).

Kernels are converted one by one, TB by TB. Warps that execute the same instructions form a class, whose
instructions are stored once, with loops recovered. An address that is the same affine function of TB, warp
and iteration for all warps of a class is stored as that function; all other addresses are stored one by one.
Memory holds one TB, the classes of one kernel and the distinct line patterns of the trace. The rest is
spilled to files.

Addresses are compacted: the 2 MiB pages that the trace touches are numbered from 0 in ascending order. Each
kernel's local memory has a page range of its own, in which TB n uses the memory of TB n - 512.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim._ffi import dtype_of, error_of, ffi, lib
from pysim.errors import OutputError, WorkloadError

from .converted_file import KERNEL_ARRAYS, ConvertedTraceWriter, dtype, layout
from .kernels_list import KernelFile, Memcpy, find_list, read_list
from .reader import Header, error_at, read_kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from numpy.typing import NDArray

PAGE = 21  # bits
LINE = 7
HELD = 1 << 18  # elements of one kind in memory before they are spilled to a file
_RECORD = dtype_of("gs_record")
_TOUCHED = dtype_of("gs_run_touched")


def source_files(path: Path | str, kernels: Collection[int] | None = None) -> list[Path]:
    """Return the files of a trace: its list, and the files of all kernels or of ``kernels`` (from 1)."""
    found = find_list(path)
    commands = (command for command in read_list(found) if isinstance(command, KernelFile))
    return [found, *(c.path for c in commands if kernels is None or c.number in kernels)]


def source_hash(path: Path | str, kernels: Collection[int] | None = None) -> str:
    """Return a hash over the names and bytes of these files."""
    made = hashlib.sha256()
    for file in source_files(path, kernels):
        made.update(os.fsencode(file.name) + b"\0")
        with file.open("rb") as opened:
            made.update(hashlib.file_digest(opened, "sha256").digest())
    return made.hexdigest()


def _view(pointer: Any, count: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return C memory as an array, without a copy."""
    if not count:
        return np.empty(0, kind)
    return np.frombuffer(ffi.buffer(pointer, count * kind.itemsize), kind)


def _read_back(file: Any, kind: np.dtype[Any]) -> NDArray[Any]:
    file.flush()
    size = file.seek(0, 2)
    return np.memmap(file, kind, "r") if size else np.empty(0, kind)


class _Converter:
    def __init__(self, folder: Path, unknown: int | None, plain: int, records: Any) -> None:
        made = lib.gs_convert_open(plain)
        if made == ffi.NULL:
            raise WorkloadError("not enough memory to convert a trace")
        self.core = ffi.gc(made, lib.gs_convert_close)
        self.folder, self.unknown = folder, unknown
        self.records = records  # file of recorded accesses
        self.count = 0  # recorded accesses so far

    def check(self, rc: int, where: str) -> None:
        if rc < 0:
            error = error_of(rc, lib.gs_convert_error(self.core))
            raise WorkloadError(error_at(where, str(error)))

    def _take(self, call: str, ctype: str, kind: np.dtype[Any]) -> NDArray[Any]:
        out = ffi.new(f"const {ctype} **")
        count = getattr(lib, call)(self.core, out)
        return _view(out[0], count, kind)

    def _flush(self, spilled: Any, touched: Any) -> None:
        spilled.write(self._take("gs_convert_spilled", "gs_record", _RECORD).tobytes())
        touched.write(self._take("gs_convert_touched", "gs_run_touched", _TOUCHED).tobytes())
        lib.gs_convert_drop(self.core)

    def kernel(self, path: Path) -> tuple[Header, dict[str, NDArray[Any]], dict[str, int]]:
        """Convert one kernel; return its header, its arrays (with the trace's addresses) and counts."""
        header: Header | None = None
        out = ffi.new("const gs_record **"), ffi.new("const gs_run_touched **")
        with (
            tempfile.TemporaryFile(dir=self.folder) as spilled,
            tempfile.TemporaryFile(dir=self.folder) as touched,
        ):
            for part in read_kernel(path, self.unknown):
                if isinstance(part, Header):
                    header = part
                    self.check(lib.gs_convert_begin(self.core, _raw(part)), str(path))
                    continue
                self.check(lib.gs_convert_tb(self.core, part.pointer), str(path))
                held = lib.gs_convert_spilled(self.core, out[0]) + lib.gs_convert_touched(self.core, out[1])
                if held >= HELD:
                    self._flush(spilled, touched)
            if header is None:
                raise WorkloadError(f"{path}: holds no kernel")
            self._flush(spilled, touched)
            self.check(lib.gs_convert_end(self.core), str(path))
            made = ffi.new("gs_converted *")
            lib.gs_convert_get(self.core, made)
            tbs = header.grid[0] * header.grid[1] * header.grid[2]
            blocks = np.zeros(tbs * made.warps, np.uint32)
            self._settle(_read_back(spilled, _RECORD), blocks, str(path))
            # sorted by (mode, TB, start), as footprints are read fastest
            runs = np.array(_read_back(touched, _TOUCHED))
            order = np.lexsort((runs["start"], runs["tb"], runs["mode"]))
            arrays = {
                name: _view(getattr(made, name), getattr(made, f"n_{name}"), dtype(kind)).copy()
                for name, kind in (
                    ("rows", "gs_sass"),
                    ("items", "gs_item"),
                    ("classes", "gs_class"),
                    ("places", "gs_place"),
                    ("shapes", "gs_shape_lanes"),
                    ("entries", "u4"),
                    ("tb_rows", "u4"),
                )
            }
            arrays["blocks"] = blocks if made.accesses else blocks[:0]
            arrays["touched"] = runs[order]
            if len(arrays["entries"]) == made.warps:
                arrays["tb_rows"] = arrays["tb_rows"][:0]
        counts = {
            "warps": int(made.warps),
            "instructions": int(made.instructions),
            "first_access": self.count,
            "accesses": int(made.accesses),
        }
        self.count += counts["accesses"]
        return header, arrays, counts

    def _settle(self, spilled: NDArray[Any], blocks: NDArray[np.uint32], where: str) -> None:
        room = np.empty(HELD, _RECORD)
        used, made = ffi.new("uint64_t *"), ffi.new("uint64_t *")
        at = 0
        while True:
            piece = np.array(spilled[at : at + HELD])
            last = at + len(piece) == len(spilled)
            rc = lib.gs_convert_settle(
                self.core,
                ffi.cast("gs_record *", piece.ctypes.data),
                len(piece),
                last,
                ffi.cast("gs_record *", room.ctypes.data),
                len(room),
                used,
                made,
                ffi.cast("uint32_t *", blocks.ctypes.data),
            )
            self.check(rc, where)
            self.records.write(room[: made[0]].tobytes())
            at += used[0]
            if made[0] < len(room) and at == len(spilled):
                return

    def pages(self) -> NDArray[np.uint64]:
        """Return the pages of the trace, ascending."""
        made = np.zeros(lib.gs_convert_pages(self.core, ffi.NULL, 0), np.uint64)
        lib.gs_convert_pages(self.core, ffi.cast("uint64_t *", made.ctypes.data), len(made))
        return made

    def near(self, records: NDArray[Any], pages: NDArray[np.uint64], where: str) -> NDArray[Any]:
        """Return recorded accesses with the templates that they have after compaction of pages."""
        made = np.array(records)
        rc = lib.gs_convert_far(
            self.core,
            ffi.cast("gs_record *", made.ctypes.data),
            len(made),
            ffi.cast("uint64_t *", pages.ctypes.data),
            len(pages),
        )
        self.check(rc, where)
        return made

    def templates(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return templates and parts of all recorded accesses."""
        templates, parts = ffi.new("const gs_template **"), ffi.new("const gs_part **")
        count = ffi.new("uint64_t *")
        found = lib.gs_convert_templates(self.core, templates, parts, count)
        return (
            _view(templates[0], found, dtype("gs_template")).copy(),
            _view(parts[0], count[0], dtype("gs_part")).copy(),
        )


def _raw(header: Header) -> Any:
    made = ffi.new("gs_trace_header *")
    for name in ("id", "stream", "grid", "block", "smem", "registers", "binary", "shared_base", "local_base"):
        setattr(made, name, getattr(header, name))
    return made


def _moved(addresses: NDArray[np.uint64], pages: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Return addresses after compaction; they count units of 2^(21 - bits) bytes."""
    page = addresses >> np.uint64(bits)
    at = np.searchsorted(pages, page).astype(np.uint64)
    return at << np.uint64(bits) | addresses & np.uint64((1 << bits) - 1)


def _lay_out(name: str, rows: NDArray[Any], pages: NDArray[np.uint64]) -> None:
    """Compact the addresses in an array of a kernel, in place."""
    if name == "touched":
        length = rows["end"] - rows["start"]
        rows["start"] = _moved(rows["start"], pages, PAGE)
        rows["end"] = rows["start"] + length
        return
    used = np.flatnonzero(rows["hi"] > rows["lo"])
    before = rows["lo"][used]
    lo = _moved(before, pages, PAGE)
    rows["hi"][used] = _moved(rows["hi"][used] - np.uint64(1), pages, PAGE) + np.uint64(1)
    rows["lo"][used] = lo
    rows["base"][used] += np.where(rows["recorded"][used] == 0, (lo - before).view(np.int64), 0)


def _chosen(
    commands: Sequence[Memcpy | KernelFile], kernels: Collection[int] | None
) -> list[Memcpy | KernelFile]:
    """Return the commands of the chosen kernels, each with the copies directly before it."""
    if kernels is None:
        return list(commands)
    made: list[Memcpy | KernelFile] = []
    copies: list[Memcpy | KernelFile] = []
    for command in commands:
        if not isinstance(command, KernelFile):
            copies.append(command)
            continue
        if command.number in kernels:
            made += [*copies, command]
        copies = []
    return made


def convert(
    source: Path | str,
    target: Path | str,
    *,
    unknown: int | None = None,
    plain: int = 0,
    kernels: Collection[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Convert the trace that the folder (or its list) ``source`` holds into the file ``target``.

    ``kernels``: only these (numbers from 1), each with the copies directly before it, as if the trace had no
    others; compacted addresses depend on the choice. ``unknown``: row of ``OPCODES`` that stands in for
    unknown opcodes (None: they are errors). ``plain``, for tests: 1 stores all addresses one by one, 2
    recovers no loops, 3 both; results are the same. ``progress(kernels done, kernels)`` is called after each.
    Raises WorkloadError, ``file:line: what``.
    """
    found, target = find_list(source), Path(target)
    commands = _chosen(read_list(found), kernels)
    total = sum(isinstance(c, KernelFile) for c in commands)
    if not total:
        raise WorkloadError(f"{found}: no kernels chosen")
    made: list[dict[str, Any]] = []
    memcpys: list[tuple[int, int, int]] = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with ConvertedTraceWriter(target) as writer, tempfile.TemporaryFile(dir=target.parent) as records:
            core = _Converter(target.parent, unknown, plain, records)
            for command in commands:
                if not isinstance(command, KernelFile):
                    memcpys.append((len(made), command.address, command.size))
                    continue
                header, arrays, counts = core.kernel(command.path)
                names = ("name", "id", "stream", "grid", "block", "smem", "registers", "binary")
                entry = {name: getattr(header, name) for name in names} | counts
                made.append(
                    entry | {"arrays": {name: writer.write_array(part) for name, part in arrays.items()}}
                )
                if progress is not None:
                    progress(len(made), total)
            pages = core.pages()
            if len(pages) > 1 << (32 + LINE - PAGE):
                raise WorkloadError(f"{found}: touches {len(pages)} pages of 2 MiB: more than 512 GiB")
            for entry in made:
                for name in ("places", "touched"):
                    change = partial(_lay_out, name, pages=pages)
                    entry["arrays"][name] = writer.edit_array(
                        entry["arrays"][name], KERNEL_ARRAYS[name], change
                    )
            packed = _read_back(records, _RECORD)
            where = {"accesses": [writer.begin_array(), len(packed), 0]}
            for entry in made:
                near = partial(core.near, pages=pages, where=str(found))
                entry["accesses_check"] = writer.append_pieces(_packed(packed, entry, pages, near))
            templates, parts = core.templates()
            whole = {"templates": templates, "parts": parts, "pages": pages}
            where |= {name: writer.write_array(part) for name, part in whole.items()}
            writer.finish(
                {
                    "layout": layout(),
                    "name": found.resolve().parent.name or "trace",
                    "source": source_hash(found, kernels),
                    "files": [[file.name, file.stat().st_size] for file in source_files(found, kernels)],
                    "chosen": None if kernels is None else sorted(kernels),
                    "unknown": unknown,
                    "memory_bytes": len(pages) << PAGE,
                    "kernels": made,
                    "memcpys": memcpys,
                    "arrays": where,
                }
            )
    except OSError as error:
        raise OutputError(f"cannot write {error.filename or target}: {error.strerror or error}") from None


def _packed(
    records: NDArray[Any],
    kernel: dict[str, Any],
    pages: NDArray[np.uint64],
    near: Callable[[NDArray[Any]], NDArray[Any]],
) -> Iterator[NDArray[np.uint64]]:
    """Yield the recorded accesses of a kernel as the core reads them: line number and template in 64 bits."""
    end = kernel["first_access"] + kernel["accesses"]
    for at in range(kernel["first_access"], end, HELD):
        piece = near(records[at : min(at + HELD, end)])
        yield _moved(piece["line"], pages, PAGE - LINE) | piece["template"] << np.uint64(32)
