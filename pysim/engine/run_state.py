"""State and records of a run as blocks of a checkpoint."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import CheckpointError, ConfigError

from .checkpoint_file import MOST_RAW, damaged
from .recorded import CTYPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from .checkpoint_file import CheckpointFile, Writer
    from .simulation import Sim

    Rows = NDArray[np.void]

PAGES = b"page"
# names of blocks, four bytes each
_NAMES = {
    "tbs": b"tbs ",
    "kernels": b"kern",
    "sms": b"sms ",
    "slices": b"l2  ",
    "samples": b"samp",
    "sm_series": b"smse",
    "slice_series": b"l2se",
    "bank_series": b"bank",
}


def write_rows(out: Writer, name: str, rows: Rows) -> None:
    """Write rows of a kind of ``CTYPES``."""
    from pysim._ffi import dtype_of

    # numpy leaves the padding of a struct out where it joins rows
    same = np.zeros(rows.shape, dtype_of(CTYPES[name]))
    same[...] = rows
    out.add(_NAMES[name], same.reshape(-1).view(np.uint8).data)


def write_pages(out: Writer, sim: Sim) -> None:
    """Write the state of a simulation, a buffer of its pages at a time."""
    from pysim._ffi import check

    buffer = bytearray(MOST_RAW)
    view, page = memoryview(buffer), sim.ffi.new("uint64_t *")
    place = sim.ffi.from_buffer(buffer)
    while (count := check(sim.lib.gs_checkpoint_write(sim.sim, page, place, MOST_RAW), sim.sim)) > 0:
        out.add(PAGES, view[:count])


def read_pages(file: CheckpointFile, sim: Sim) -> Rows:
    """Read a state into a simulation that is just made of the same tables; return its TB records.

    Raises CheckpointError for what does not fit; the simulation can only be freed then.
    """
    from pysim._ffi import check

    page, tbs = sim.ffi.new("uint64_t *"), []
    try:
        for name, data in file.blocks():
            if name == PAGES:
                check(sim.lib.gs_checkpoint_read(sim.sim, page, data, len(data)), sim.sim)
            elif name == _NAMES["tbs"]:
                tbs.append(data)
        check(sim.lib.gs_checkpoint_end(sim.sim, page[0]), sim.sim)
    except ConfigError as error:
        raise CheckpointError(f"{file.path}: {error}") from None
    return _rows(file.path, "tbs", tbs)


def _rows(path: Path, name: str, parts: Sequence[bytes], *shape: int) -> Rows:
    """Return the rows in blocks; ``shape``: of those of a sample."""
    from pysim._ffi import dtype_of

    kind, data = dtype_of(CTYPES[name]), b"".join(parts)
    if len(data) % (kind.itemsize * prod(shape)):
        raise damaged(path, f"{name}: {len(data)} B are no whole rows")
    return np.frombuffer(bytearray(data), kind).reshape(-1, *shape)


def read_rows(path: Path, parts: Mapping[str, Sequence[bytes]], values: Mapping[str, int]) -> dict[str, Rows]:
    """Return the rows of all kinds by name; ``parts``: blocks by their names; ``values``: parameters."""
    slices = values["gpu.l2.slices"]
    shapes = {
        "sm_series": (values["gpu.sms"],),
        "slice_series": (slices,),
        "bank_series": (slices, values["gpu.dram.banks"]),
    }
    series = _NAMES["sm_series"].decode() in parts
    return {
        name: _rows(path, name, parts.get(short.decode(), ()), *shapes.get(name, ()))
        for name, short in _NAMES.items()
        if series or name not in shapes
    }
