"""Reads the trace of one kernel, a TB at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pysim._ffi import dtype_of, ffi, lib
from pysim.errors import WorkloadError

from .decompress import trace_text

_INST, _WARP, _ADDRESS = dtype_of("gs_trace_inst"), dtype_of("gs_trace_warp"), np.dtype(np.uint64)
Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a kernel's trace."""

    name: str
    id: int
    stream: int
    grid: Triple
    block: Triple
    smem: int  # bytes a TB
    registers: int  # a thread
    binary: int  # SM version of the code
    version: int  # of the tracer
    lineinfo: bool
    shared_base: int
    local_base: int


@dataclass(frozen=True, slots=True)
class TB:
    """One TB of a trace.

    The arrays are views of the reader's memory: they hold until the next TB is read.
    """

    index: Triple
    cluster: Triple
    cta: Triple
    rank: int
    warps: npt.NDArray[Any]  # gs_trace_warp: first instruction and count, by warp number
    insts: npt.NDArray[Any]  # gs_trace_inst
    addresses: npt.NDArray[np.uint64]
    pointer: Any  # gs_trace_tb *, for C
    _owner: Any = field(repr=False)  # keeps that memory while the TB is held


def read_kernel(path: Path | str, unknown: int | None = None, room: int = 0) -> Iterator[Header | TB]:
    """Yield the header of a trace file, then its TBs in file order.

    ``unknown``: row of ``OPCODES`` for opcodes that are not known (None: they are errors); ``room``: most
    bytes to hold for one TB (0: 1 GiB). Raises WorkloadError, ``file:line: what``.
    """
    path = Path(path)
    yield from read_text(trace_text(path), str(path), unknown, room)


def read_text(
    pieces: Iterable[Any], name: str, unknown: int | None = None, room: int = 0
) -> Iterator[Header | TB]:
    """Yield what :func:`read_kernel` yields, from pieces of text (bytes); ``name``: of the file in errors."""
    trace = lib.gs_trace_open(-1 if unknown is None else unknown, room)
    if trace == ffi.NULL:
        raise WorkloadError(f"{name}: not enough memory to read a trace")
    trace = ffi.gc(trace, lib.gs_trace_close)
    for piece in pieces:
        with ffi.from_buffer(piece) as text:
            yield from _feed(trace, text, len(piece), False, name)
    yield from _feed(trace, ffi.new("char[1]"), 0, True, name)


def _feed(trace: Any, text: Any, size: int, last: bool, name: str) -> Iterator[Header | TB]:
    used = ffi.new("uint64_t *")
    at = 0
    while True:
        rc = lib.gs_trace_feed(trace, text + at, size - at, last, used)
        at += used[0]
        if rc == lib.GS_TRACE_HEADER:
            yield _header(trace)
        elif rc == lib.GS_TRACE_TB:
            yield _tb(trace)
        elif rc == lib.GS_TRACE_ERROR:
            raise WorkloadError(error_at(name, ffi.string(lib.gs_trace_error(trace)).decode("ascii")))
        else:
            return


def error_at(name: object, message: str) -> str:
    """Return ``file:line: what`` from the core's message ``line N: what``."""
    line, colon, what = message.partition(": ")
    if colon and line.startswith("line "):
        return f"{name}:{line.removeprefix('line ')}: {what}"
    return f"{name}: {message}"


def _triple(values: Any) -> Triple:
    return (int(values[0]), int(values[1]), int(values[2]))


def _header(trace: Any) -> Header:
    raw = ffi.new("gs_trace_header *")
    lib.gs_trace_header_get(trace, raw)
    return Header(
        name=ffi.string(raw.name).decode("utf-8", "replace"),
        id=raw.id,
        stream=raw.stream,
        grid=_triple(raw.grid),
        block=_triple(raw.block),
        smem=raw.smem,
        registers=raw.registers,
        binary=raw.binary,
        version=raw.version,
        lineinfo=bool(raw.lineinfo),
        shared_base=raw.shared_base,
        local_base=raw.local_base,
    )


def _view(pointer: Any, count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if not count:
        return np.empty(0, dtype)
    view = np.frombuffer(ffi.buffer(pointer, count * dtype.itemsize), dtype)
    view.flags.writeable = False
    return view


def _tb(trace: Any) -> TB:
    raw = ffi.new("gs_trace_tb *")
    lib.gs_trace_tb_get(trace, raw)
    return TB(
        index=(raw.x, raw.y, raw.z),
        cluster=_triple(raw.cluster),
        cta=_triple(raw.cta),
        rank=raw.rank,
        warps=_view(raw.warp, raw.warps, _WARP),
        insts=_view(raw.insts, raw.n_insts, _INST),
        addresses=_view(raw.addresses, raw.n_addresses, _ADDRESS),
        pointer=raw,
        _owner=trace,
    )
