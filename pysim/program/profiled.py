"""Kernels of which only the duration of each TB is known: each TB is one delay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError

from .job import Kernel
from .recorded_program import CodeTables, RecordedProgram
from .warp_program import OP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

MAX_CYCLES = 1 << 41  # 1,000 s at 2.2 GHz
_LONGEST = (1 << 30) - 1  # cycles of one op; a longer delay is several


def profiled(
    name: str,
    cycles: NDArray[np.int64],
    *,
    warps: int = 1,
    registers: int = 16,
    smem: int = 0,
    stream: int = 0,
) -> Kernel:
    """Make a kernel whose TB i runs for ``cycles[i]`` SM cycles and touches no memory.

    ``cycles``: int64, one a TB, 0 to 2^41. ``warps``, ``registers`` (a thread) and ``smem`` (bytes) are
    what a TB holds meanwhile. Placement and waves of a measured kernel can be replayed so, without a model
    of what it computes. A time that is out of range raises :class:`WorkloadError`.
    """
    cycles = np.asarray(cycles)
    if cycles.ndim != 1 or len(cycles) == 0:
        raise WorkloadError(f"{name}: times of TBs: shape {cycles.shape}: must be one a TB")
    if cycles.min() < 0 or cycles.max() > MAX_CYCLES:
        raise WorkloadError(f"{name}: times of TBs: must be 0 to {MAX_CYCLES} cycles")
    # TBs of equal time share their ops
    each, which = np.unique(cycles, return_inverse=True)

    def lowered(values: Mapping[str, int]) -> CodeTables:
        from pysim._ffi import dtype_of

        del values  # a time is a time on every device
        delays = np.maximum(1, -(-each // _LONGEST))  # of each time
        exits = np.cumsum(delays + 1) - 1
        ops = np.zeros(int((delays + 1).sum()), dtype_of("gs_op"))
        ops["kind"], ops["count"] = OP["DELAY"], _LONGEST
        ops["count"][exits - 1] = each - (delays - 1) * _LONGEST
        ops["kind"][exits], ops["count"][exits], ops["issue"][exits] = OP["EXIT"], 0, 1
        entries = np.repeat((exits - delays).astype(np.uint32)[:, None], warps, axis=1)
        patterns, lanes = np.zeros(0, dtype_of("gs_pattern")), np.zeros(0, dtype_of("gs_lanes"))
        return CodeTables(ops, patterns, lanes, entries)

    program = RecordedProgram(
        name, warps, registers, smem, 0, lowered, tb_rows=which.reshape(-1).astype(np.uint32)
    )
    return Kernel(name, program, (len(cycles), 1, 1), (), (), stream)
