"""Energy of a run: counts of events, times the energy of each event on the device.

The events are declared here. Their energies and sources are in ``pysim/machine/devices``: watts for events
that are measured in time (``s``), picojoules for counts. A device without these numbers gives no energy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pysim.params import PIPES
from pysim.program.job import tb_variants
from pysim.program.warp_program import OP, PIPE

from .power import MeanPower

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pysim.program.job import Job, Kernel
    from pysim.program.ops import LoweredPrograms

    Table = NDArray[np.void]
    Counts = NDArray[np.int64]

JOULES_PER_UNIT = {"s": 1.0, "count": 1e-12}  # from watts and picojoules


class Event(NamedTuple):
    """One kind of event: name, unit (``s`` or ``count``), meaning, whether it scales with the SM voltage."""

    name: str
    unit: str
    doc: str
    scaled: bool = True


EVENTS: tuple[Event, ...] = (
    Event(
        "board", "s", "The board with nothing to do, at full clocks: all that runs whatever the load.", False
    ),
    Event("sm_busy", "s", "An SM with a TB, whatever its warps do; sum over SMs."),
    Event(
        "instruction", "count", "Any warp instruction: fetch, issue, registers, operands that do not change."
    ),
    *(
        Event(name, "count", f"What a warp instruction of this pipe takes above any: {doc}")
        for name, doc in PIPES
    ),
    Event("smem", "count", "A wavefront of shared memory, 128 B."),
    Event("l1_line", "count", "A line that a load looks up in L1, or that goes past it."),
    Event("l2_read", "count", "A sector from an L2 slice to an SM, the network included."),
    Event("l2_write", "count", "A sector from an SM to an L2 slice, the network included."),
    Event("dram_read", "count", "A sector from DRAM into L2.", False),
    Event("dram_write", "count", "A sector from L2 to DRAM.", False),
)


class _PathSums:
    """Sums of a per-op number ``each`` over all ops that a warp executes from an entry to its EXIT."""

    def __init__(self, kind: Counts, count: Counts, target: Counts, each: Counts) -> None:
        total = each.copy()
        for at in np.flatnonzero(kind == OP["LOOP"]):
            total[target[at] : at] *= count[at]
        self.exits = np.flatnonzero(kind == OP["EXIT"])
        self.before = np.concatenate(([0], np.cumsum(total)))

    def of(self, entries: Counts) -> Counts:
        """Return the sum of each row of ``entries``, (rows, warps) op indices."""
        ends = self.exits[np.searchsorted(self.exits, entries)]
        return np.asarray((self.before[ends] - self.before[entries]).sum(axis=1))


def operand_stall_cycles(job: Job, programs: LoweredPrograms) -> int:
    """Return the cycles that fp32 pipes stall on register operands, over all TBs of a job."""
    fp32, made, ops = PIPE["fp32"], [], programs.ops
    kind, count, target = (
        np.array([op[name] for op in ops], np.int64) for name in ("kind", "count", "target")
    )
    late = np.array([op["conflicts"] if op["pipes"][fp32] else 0 for op in ops], np.int64)
    sums = _PathSums(kind, count, target, late)
    for program in programs.programs:
        made.append(sums.of(np.array(program["entry"], np.int64)[:, None]) * program["warps"])
    for recorded, tables in programs.recorded:
        names = ("kind", "count", "target", "conflicts")
        kind, count, target, late = (tables.ops[name].astype(np.int64) for name in names)
        late[tables.ops["pipes"][:, fp32] == 0] = 0
        entries = tables.entries.astype(np.int64).reshape(-1, recorded.warps)
        made.append(_PathSums(kind, count, target, late).of(entries))
    return sum(
        _job_sum(kernel, made[number]) for kernel, number in zip(job.kernels, programs.index, strict=True)
    )


def _job_sum(kernel: Kernel, late: Counts) -> int:
    if (late == late[0]).all():
        return kernel.tbs * int(late[0])
    return int(np.bincount(tb_variants(kernel), minlength=len(late)) @ late)


def event_counts(
    sms: Table, slices: Table, end: int, values: Mapping[str, int], late: int
) -> dict[str, float]:
    """Return the count (or seconds) of each event in a run that took ``end`` ticks.

    ``sms``, ``slices``: records of all SMs and L2 slices; ``values``: encoded parameters; ``late``: fp32
    cycles of :func:`operand_stall_cycles`, which are no instructions.
    """
    work, ticks = sms["work"], 1024e9
    made = {
        "board": end / ticks,
        "sm_busy": int(sms["busy"].sum()) / ticks,
        "instruction": int(work["warp_instructions"].sum()),
        "smem": int(work["smem"].sum()) / values["gpu.sm.smem_interval"],
        "l1_line": int(work["l1_lines"].sum()),
        "l2_read": int(slices["sectors_read"].sum()),
        "l2_write": int(slices["sectors_written"].sum()),
        "dram_read": int(slices["dram_read_sectors"].sum()),
        "dram_write": int(slices["dram_write_sectors"].sum()),
    }
    for name, _ in PIPES:
        busy = int(work[name].sum())
        if name == "fp32" and values["gpu.sm.register_ports"]:
            busy -= 64 * late
        made[name] = busy / values[f"gpu.sm.{name}_interval"]
    return made


def joules(event: Event, count: float, each: float, voltage: float = 1.0) -> float:
    """Return the energy of ``count`` events in joules; ``each``: of one, in W or pJ.

    ``voltage``: factor of events that scale with the SM voltage, at most 1.
    """
    return count * each * JOULES_PER_UNIT[event.unit] * (voltage if event.scaled else 1.0)


def mean_power(spent: Table, seconds: float) -> MeanPower:
    """Return the mean power of a run of ``seconds`` from its rows of table ``energy``."""
    sums = {"voltage_scaled": 0.0, "by_rate": 0.0, "constant": 0.0}
    events = {event.name: event for event in EVENTS}
    for row in spent:
        event = events[row["event"].decode()]
        kind = "voltage_scaled" if event.scaled else "by_rate" if event.unit == "count" else "constant"
        sums[kind] += float(row["joule"]) / seconds
    return MeanPower(**sums)
