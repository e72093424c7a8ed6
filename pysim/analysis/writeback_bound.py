"""Write-backs that the DRAM bus serves before the last reads, in a job that touches no sector twice.

A DRAM channel serves its queue in order of arrival. Of the TBs that load from a channel, take the one that is
dispatched last. When it starts, all TBs before it have ended, except those that occupy the other TB slots of
the GPU. Their stores have reached L2 before the first load of this TB does. An L2 slice has a fixed capacity,
so it has written back all stores beyond that capacity, and these write-backs delay the read.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.program.job import tb_variants
from pysim.program.occupancy import occupancy, tb_resources
from pysim.program.regions import SECTOR

from .traffic import compulsory_bytes, written_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Job
    from pysim.program.ops import LoweredPrograms

    from .program_cost import ProgramCost

    Floats = NDArray[np.float64]

MOST = 1 << 24  # lines of a job that the core walks one by one; larger jobs have no such bound


def _moved(job: Job, costs: Sequence[ProgramCost]) -> tuple[int, int]:
    """Return the sectors that all TBs of the job load and store. ``costs``: one a kernel."""
    loaded = stored = 0
    known: dict[tuple[int, tuple[int, int, int]], tuple[int, int]] = {}
    for kernel, cost in zip(job.kernels, costs, strict=True):
        key = (id(cost), kernel.grid)  # a recorded program has a cost of its own
        if key not in known:
            count = np.bincount(tb_variants(kernel), minlength=len(cost.work))
            known[key] = (
                int(count @ cost.work["load_sectors"].astype(np.int64)),
                int(count @ cost.work["store_sectors"].astype(np.int64)),
            )
        loaded += known[key][0]
        stored += known[key][1]
    return loaded, stored


def fill_slice_traffic(
    sim: Any, job: Job, programs: LoweredPrograms, made: Sequence[ProgramCost], values: Mapping[str, int]
) -> None:
    """Fill ``slice_traffic`` of ``made``, if the job touches no sector twice and writes more than L2 holds.

    ``sim``: the core's simulation, with the job loaded; ``made``: one a program; ``values``: encoded
    parameters. Otherwise nothing is filled.
    """
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


def _all_held(job: Job, values: Mapping[str, int]) -> int:
    """Return the sum of the kernels' occupancies."""
    alike = Counter(map(tb_resources, job.kernels))
    first = {tb_resources(kernel): kernel for kernel in reversed(job.kernels)}
    return sum(occupancy(first[needs], values) * many for needs, many in alike.items())


def written_back_before_reads(
    job: Job, costs: Sequence[ProgramCost], values: Mapping[str, int]
) -> tuple[Floats, Floats] | None:
    """Return, for each L2 slice, the sectors read from DRAM and those written back before the last read.

    ``costs``: one a kernel. Both arrays are float64, (slices,). None if ``slice_traffic`` is not known, or if
    stores to the other L2 partition may arrive after the next TB's loads.
    """
    parts = [cost.slice_traffic.get(index) for index, cost in enumerate(costs)]
    each = [part for part in parts if part is not None]
    # stores of an ended TB must reach L2 before the loads of the TB that takes its slot
    hand_over = values["gpu.cp.tb_done_latency"] + values["gpu.cp.tb_start_latency"]
    late = values["gpu.l2.fabric_latency"] * values["gpu.clock"] if values["gpu.l2.partitions"] > 1 else 0
    if not each or len(each) < len(parts) or hand_over < late:
        return None
    held = min(values["gpu.sm.tbs"], _all_held(job, values))
    most = np.max([part["most"] for part in each], axis=0)
    passed = np.sum([part["passed"] for part in each], axis=0) - float(held * values["gpu.sms"]) * most
    kept = values["gpu.l2.size"] / values["gpu.l2.slices"] / SECTOR + values["gpu.dram.write_batch"]
    read = np.sum([part["loaded"] for part in each], axis=0).astype(float)
    return read, np.maximum(0.0, passed - kept)
