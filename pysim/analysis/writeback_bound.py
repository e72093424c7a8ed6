"""What a job that touches nothing twice must have written back before it has read all.

A bus serves who comes first: what a read finds queued there is served before it. The last TB to be
dispatched of those that load from a channel starts when all TBs before it but those in other places of the
chip have left, and what they stored has come to L2 before anything that it loads. What of this one slice of
L2 cannot hold stands before that read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.program.job import tb_variants
from pysim.program.occupancy import occupancy
from pysim.program.regions import SECTOR

from .traffic import compulsory_bytes, written_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Job
    from pysim.program.ops import LoweredPrograms

    from .program_cost import ProgramCost

    Floats = NDArray[np.float64]

MOST = 1 << 24  # lines of a job that are looked at one by one


def _moved(job: Job, costs: Sequence[ProgramCost]) -> tuple[int, int]:
    """Return the sectors that all TBs load and store, ``costs`` one a kernel."""
    loaded = stored = 0
    for kernel, cost in zip(job.kernels, costs, strict=True):
        count = np.bincount(tb_variants(kernel), minlength=len(cost.work))
        loaded += int(count @ cost.work["load_sectors"].astype(np.int64))
        stored += int(count @ cost.work["store_sectors"].astype(np.int64))
    return loaded, stored


def fill_slice_traffic(
    sim: Any, job: Job, programs: LoweredPrograms, made: Sequence[ProgramCost], values: Mapping[str, int]
) -> None:
    """Fill ``passed`` of the costs if the job touches no sector twice and L2 cannot hold what it writes."""
    from pysim._ffi import dtype_of, ffi, lib

    costs = [made[number] for number in programs.index]
    if any(kernel.copy is not None for kernel in job.kernels):
        return
    loaded, stored = _moved(job, costs)
    if stored * SECTOR <= values["gpu.l2.size"] or loaded + stored > MOST * 4:
        return
    if loaded * SECTOR != compulsory_bytes(job) or stored * SECTOR != written_bytes(job):
        return
    for index, cost in enumerate(costs):
        cost.slice_traffic[index] = np.zeros(values["gpu.l2.slices"], dtype_of("gs_passed"))
        lib.gs_passed_of(sim, index, ffi.cast("gs_passed *", cost.slice_traffic[index].ctypes.data))


def written_back_before_reads(
    job: Job, costs: Sequence[ProgramCost], values: Mapping[str, int]
) -> tuple[Floats, Floats] | None:
    """Return the sectors that each channel reads, and those written back before its last read, or None.

    ``costs``: one a kernel.
    """
    parts = [cost.slice_traffic.get(index) for index, cost in enumerate(costs)]
    each = [part for part in parts if part is not None]
    # what has left an SM comes to L2 before what a TB loads that starts for it
    hand_over = values["gpu.cp.tb_done_latency"] + values["gpu.cp.tb_start_latency"]
    late = values["gpu.l2.fabric_latency"] * values["gpu.clock"] if values["gpu.l2.partitions"] > 1 else 0
    if not each or len(each) < len(parts) or hand_over < late:
        return None
    held = min(values["gpu.sm.tbs"], sum(occupancy(kernel, values) for kernel in job.kernels))
    most = np.max([part["most"] for part in each], axis=0)
    passed = np.sum([part["passed"] for part in each], axis=0) - float(held * values["gpu.sms"]) * most
    kept = values["gpu.l2.size"] / values["gpu.l2.slices"] / SECTOR + values["gpu.dram.write_batch"]
    read = np.sum([part["loaded"] for part in each], axis=0).astype(float)
    return read, np.maximum(0.0, passed - kept)
