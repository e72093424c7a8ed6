"""From a converted trace to a job."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim._ffi import dtype_of, error_of, ffi, lib, params_struct
from pysim.errors import ConfigError, WorkloadError
from pysim.opcodes import OPCODES
from pysim.program.copies import l1_stale_ranges
from pysim.program.footprint import ByteRanges, Footprint
from pysim.program.job import Job, Kernel, Tensor
from pysim.program.origin import Origin
from pysim.program.recorded_program import CodeTables, RecordedAccesses, RecordedProgram

from .converted_file import ConvertedTrace
from .copies import MODES, copies_before, with_copies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


class _Written:
    """The memory of which an L1 may hold stale lines, computed at first use."""

    def __init__(self) -> None:
        self.kernels: Sequence[Kernel] = ()
        self._spans: NDArray[np.int64] | None = None

    def spans(self) -> NDArray[np.int64]:
        """Return sorted disjoint byte ranges, (n, 2)."""
        if self._spans is None:
            self._spans = l1_stale_ranges(self.kernels)
        return self._spans


def _lowered(
    store: ConvertedTrace,
    number: int,
    written: _Written,
    values: Mapping[str, int],
    gpu: tuple[int, int] = (0, 0),
) -> CodeTables:
    """Lower the code of a kernel for the device with these encoded parameters.

    ``gpu``: its SM version and ``mma_rate``; (0, 0): not known, and every instruction is one of its pipe's.
    """
    arrays = {
        name: store.kernel_array(number, name) for name in ("rows", "items", "classes", "places", "shapes")
    }
    places, shapes = arrays["places"], arrays["shapes"]
    levels = np.ascontiguousarray(places["level"])
    inputs = ffi.new("gs_lower_in *")
    for name, ctype in (("rows", "gs_sass"), ("items", "gs_item"), ("classes", "gs_class")):
        setattr(inputs, name, ffi.cast(f"{ctype} *", arrays[name].ctypes.data))
        setattr(inputs, f"n_{name}", len(arrays[name]))
    inputs.sm, inputs.mma_rate = gpu
    inputs.levels, inputs.n_places = ffi.cast("uint8_t *", levels.ctypes.data), len(places)
    code, text = ffi.new("int *"), ffi.new("char[256]")
    made = lib.gs_code_open(params_struct(values), inputs, code, text)
    if made == ffi.NULL:
        raise type(error_of(code[0], text))(f"{store.path}: kernel {number + 1}: {ffi.string(text).decode()}")
    try:
        out = ffi.new("const gs_op **")
        count = lib.gs_code_ops(made, out)
        op = dtype_of("gs_op")
        ops = np.frombuffer(ffi.buffer(out[0], count * op.itemsize), op).copy()
        begins = np.frombuffer(
            ffi.buffer(lib.gs_code_entries(made), 4 * len(arrays["classes"])), np.uint32
        ).copy()
        plus = np.frombuffer(ffi.buffer(lib.gs_code_plus(made), 4 * (len(places) + 1)), np.int32)[:-1].copy()
    finally:
        lib.gs_code_close(made)
    patterns = np.zeros(len(places), dtype_of("gs_pattern"))
    for name in ("base", "bx", "by", "bz", "warp", "step", "step2", "align", "level2", "recorded", "shape"):
        patterns[name] = places[name]
    patterns["base"] -= places["step"] * plus
    patterns["minor"], patterns["lanes"], patterns["width"] = 32, 0xFFFFFFFF, 1
    known = np.flatnonzero((places["shape"] > 0) & (places["shape"] <= len(shapes)))
    of = places["shape"][known] - 1
    patterns["lanes"][known], patterns["width"][known] = shapes["lanes"][of], shapes["width"][of]
    patterns["arg"] = _touch_any(places["lo"].view(np.int64), places["hi"].view(np.int64), written.spans())
    lanes = np.zeros(len(shapes), dtype_of("gs_lanes"))
    lanes["offset"] = shapes["offset"]
    entries = store.kernel_array(number, "entries")
    if len(entries) == 0 or len(entries) % store.kernels[number].warps or int(entries.max()) >= len(begins):
        raise store.error(f"kernel {number + 1}: damaged")
    return CodeTables(ops, patterns, lanes, begins[entries].reshape(-1, store.kernels[number].warps))


def _touch_any(lo: NDArray[Any], hi: NDArray[Any], spans: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return, for each range, whether it overlaps one of the sorted, disjoint spans."""
    if len(spans) == 0:
        return np.zeros(len(lo), np.uint8)
    at = np.searchsorted(spans[:, 0], hi) - 1
    return np.asarray((at >= 0) & (spans[np.maximum(at, 0), 1] > lo), np.uint8)


def _rows(store: ConvertedTrace, number: int) -> ByteRanges:
    runs = store.kernel_array(number, "touched")
    # dependences are searched page by page, so a huge range would take forever
    if len(runs) and int(runs["end"].max()) > store.memory_bytes:
        raise store.error(f"kernel {number + 1}: touched: damaged")
    return ByteRanges(
        runs["tb"].astype(np.int64),
        runs["start"].view(np.int64),
        runs["end"].view(np.int64),
        runs["mode"].astype(np.uint8),
    )


def trace_job(
    store: ConvertedTrace,
    kernels: Sequence[int] | None = None,
    name: str | None = None,
    *,
    memcpy: str = "fill",
) -> Job:
    """Return the job that a converted trace recorded, or of the ``kernels`` (numbers from 1, in any order).

    Streams are those of the trace, numbered in order of first use. ``memcpy``: copies from the host are left
    out (``ignore``), fill the L2 in launch order at no cost (``fill``), or occupy the link too (``time``).
    They are launches of the job, on a stream of their own. Each of the chosen kernels comes with the copies
    that the list has directly before it; all kernels together also with those after the last. Raises
    ConfigError for a bad choice and WorkloadError for a damaged trace.
    """
    if memcpy not in MODES:
        raise ConfigError(f"memcpy = {memcpy!r}: must be one of {', '.join(MODES)}")
    numbers = list(range(1, len(store.kernels) + 1)) if kernels is None else sorted(set(kernels))
    for number in numbers:
        if not 1 <= number <= len(store.kernels):
            raise ConfigError(f"no kernel {number}: {store.path} has 1 to {len(store.kernels)}")
    if not numbers:
        raise ConfigError(f"{store.path}: no kernels chosen")
    chosen = [number - 1 for number in numbers]
    footprints = [Footprint(partial(_rows, store, number)) for number in chosen]
    sizes = [math.prod(store.kernels[number].grid) for number in chosen]
    written = _Written()
    memory = RecordedAccesses(*(store.trace_array(array) for array in ("accesses", "templates", "parts")))
    # both begin at 0: the argument of a pattern says whether its memory is ever written
    args = (Tensor("read only", 0, 1, 1, 0), Tensor("memory", 1, store.memory_bytes, 1, 0))
    streams: dict[int, int] = {}
    made = []
    for number, footprint, tbs in zip(chosen, footprints, sizes, strict=True):
        info = store.kernels[number]
        store.check_accesses(number)
        tb_rows, blocks = store.kernel_array(number, "tb_rows"), store.kernel_array(number, "blocks")
        if len(tb_rows) not in (0, tbs) or len(blocks) not in (0, tbs * info.warps):
            raise store.error(f"kernel {number + 1}: damaged")
        program = RecordedProgram(
            info.name,
            info.warps,
            info.registers,
            info.smem,
            len(args),
            partial(_lowered, store, number, written),
            memory=memory,
            tb_rows=tb_rows if len(tb_rows) else None,
            access_starts=blocks if len(blocks) else None,
            first_access=info.first_access,
            access_count=info.access_count,
            lower_on=partial(_lowered, store, number, written),
            binary=info.binary,
        )
        made.append(
            Kernel(
                info.name,
                program,
                info.grid,
                args,
                (),
                streams.setdefault(info.stream, len(streams)),
                footprint,
            )
        )
    every: list[Kernel] = made
    events: list[tuple[int, int]] = []
    if memcpy != "ignore":
        before = copies_before(store, chosen, memcpy == "time", len(streams))
        after = before.get(len(store.kernels), [])
        every, events = with_copies(made, [before.get(number, []) for number in chosen], after)
    written.kernels = every
    given = {
        "memcpy": memcpy,
        "kernels": None if kernels is None else "+".join(map(str, numbers)),
        "unknown": None if store.unknown is None else OPCODES[store.unknown].name,
    }
    about = {
        "name": store.name,
        "source": store.source,
        "kernels": None if kernels is None else [int(number) for number in numbers],
        "unknown": store.unknown,
        "memcpy": memcpy,
    }
    origin = Origin(_again, (str(store.path.resolve()), store.source, kernels, name, memcpy), about)
    return Job(name or store.name, every, events).with_arguments(given).with_origin(origin)


def _again(path: str, source: str, kernels: Sequence[int] | None, name: str | None, memcpy: str) -> Job:
    store = ConvertedTrace(path)
    if store.source != source:
        raise WorkloadError(f"{path}: not the converted trace of the job that was pickled")
    return trace_job(store, kernels, name, memcpy=memcpy)
