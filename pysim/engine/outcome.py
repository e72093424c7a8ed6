"""Records of one run of the core, and the result tables made from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pysim.results import energy, tables, time_series

from .extrapolate import CoreRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pysim.machine.devices.card import Energies
    from pysim.program.job import Job
    from pysim.program.ops import LoweredPrograms

    from .extrapolate import Replay
    from .lower import Lowered
    from .recorded import Recorded

# columns of ``runs`` that are NaN for a scheme that was refused
NUMERIC_COLUMNS = (
    "time_us",
    "cycles",
    "speedup",
    "bound_us",
    "window",
    "estimate_us",
    "gap_won",
    "alu_utilization",
    "sm_idle",
    "energy_j",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Records of one run; times in ticks (1/1024 ns).

    ``job``: the launches; ``launch_of_kernel``: the launch of each kernel of the user's job; ``interval``: of
    ``samples``; ``ended``: whether the job ran to its end; ``slowed``: cycles fewer than at ``gpu.clock``;
    ``totals``: ``gs_totals``; ``operand_stalls``: cycles that fp32 pipes waited for operands;
    ``replayed_kernels``, ``replay_error``: of replay.
    """

    lowered: Lowered
    job: Job
    launch_of_kernel: Sequence[int]
    tbs: NDArray[np.void]
    kernels: NDArray[np.void]
    sms: NDArray[np.void]
    slices: NDArray[np.void]
    samples: NDArray[np.void]
    interval: int
    series: time_series.Series | None
    end: int
    ended: bool
    slowed: int
    totals: Any
    operand_stalls: int
    replayed_kernels: int = 0
    replay_error: float = 0.0

    @classmethod
    def of(cls, recorded: Recorded, lowered: Lowered, programs: LoweredPrograms) -> Outcome:
        """Return the outcome of what the core has recorded of a run."""
        totals, rows = recorded.totals(), recorded.rows
        end = int(totals.end) if recorded.ended else int(totals.now)
        return cls(
            lowered=lowered,
            job=lowered.launched,
            launch_of_kernel=lowered.number,
            tbs=rows["tbs"],
            kernels=rows["kernels"],
            sms=rows["sms"],
            slices=rows["slices"],
            samples=rows["samples"],
            interval=int(totals.sample_interval),
            series=recorded.series(end),
            end=end,
            ended=recorded.ended,
            slowed=int(totals.slowed),
            totals=totals,
            operand_stalls=energy.operand_stall_cycles(lowered.launched, programs),
        )

    def replayed(self, replay: Replay) -> Outcome:
        """Return the outcome of the whole job, extrapolated from this one of the contracted job."""
        assert self.series is not None, "a replayed run is sampled"
        was = CoreRecords(self.tbs, self.kernels, self.sms, self.slices, self.end)
        now = replay.whole_job(was, self.series, self.lowered)
        return replace(
            self,
            job=replay.job,
            launch_of_kernel=replay.launches,
            tbs=now.tbs,
            kernels=now.kernels,
            sms=now.sms,
            slices=now.slices,
            samples=self.samples[:0],
            series=None,
            end=now.end,
            slowed=round(self.slowed * now.end / max(1, was.end)),
            operand_stalls=round(self.operand_stalls * replay.instruction_ratio),
            replayed_kernels=replay.contraction.left_out,
            replay_error=replay.error,
        )

    def energy(self, run: int, energies: Energies) -> NDArray[np.void]:
        """Return the rows of ``energy``; none without a device's table of energies."""
        if not energies:
            return tables.energy_table(run, {}, ())
        values = self.lowered.values
        counts = energy.event_counts(self.sms, self.slices, self.end, values, self.operand_stalls)
        voltage = (values["sim.clock_share"] / 65536) ** (values["gpu.power_slope"] / 65536)
        return tables.energy_table(run, counts, energies, voltage)

    def row(self, has_window: bool) -> dict[str, Any]:
        """Return columns of ``runs`` that follow from the records; ``has_window``: of the scheme."""
        values, work = self.lowered.values, self.sms["work"]
        cycles = self.end / values["gpu.clock"] - self.slowed
        space = max(1, self.end * values["gpu.sms"])
        moved = self.slices["dram_read_sectors"].sum() + self.slices["dram_write_sectors"].sum()
        asked = self.slices["sectors_read"].sum() + self.slices["sectors_written"].sum()
        busy = int(tables.busiest_pipe(work).sum())
        return {
            "status": "ok" if self.ended else "interrupted",
            "reason": "" if self.ended else "stopped before the end",
            "window": int(self.lowered.order.window) if has_window else math.nan,
            "time_us": self.end / tables.TICKS_US,
            "cycles": cycles,
            "warp_instructions": int(work["warp_instructions"].sum()),
            "tbs": int(self.sms["tbs"].sum()),
            "alu_utilization": busy / max(1.0, 64 * cycles * values["gpu.sms"] * 4),
            "sm_idle": 1 - int(self.sms["busy"].sum()) / space,
            "dram_bytes": tables.SECTOR * int(moved),
            "l2_bytes": tables.SECTOR * int(asked),
            "replayed": self.replayed_kernels,
            "replay_error": self.replay_error,
        } | self._table_columns()

    def _table_sectors(self) -> int:
        """Return the sectors of the scheduler's tables that it read from memory or wrote there."""
        return int(self.slices["table_read"].sum() + self.slices["table_written"].sum())

    def _table_columns(self) -> dict[str, int]:
        """Return the columns of ``runs`` on the dependence table: peak use, spills and traffic."""
        entries, lists = int(self.totals.table_peak_entries), int(self.totals.table_peak_lists)
        return {
            "table_entries": entries + lists,
            "table_bytes": math.ceil(entries * self.lowered.entry_bytes + lists * self.lowered.list_bytes),
            "table_spills": int(self.totals.table_spills),
            "table_l2_bytes": tables.SECTOR * self._table_sectors(),
            "table_coarse": int(self.totals.table_coarse_kernels),
            "table_shared": int(self.totals.table_shared_kernels),
        }

    def tables(self, run: int, barriers: bool) -> dict[str, Callable[[], NDArray[np.void]]]:
        """Return a function for each table, by name; ``barriers``: whole kernels wait, not TBs."""
        values, made = self.lowered.values, self.lowered.known.learned
        hints, totals = self.lowered.known.hints, self.totals
        return {
            "kernels": lambda: tables.kernels_table(run, self.job, self.kernels),
            "tbs": lambda: tables.tbs_table(run, self.job, self.tbs, self.kernels, barriers),
            "sm": lambda: tables.sm_table(run, self.sms),
            "l2": lambda: tables.l2_table(run, self.slices),
            "samples": lambda: tables.samples_table(run, self.samples, self.interval, self.end, values),
            "stalls": lambda: tables.stalls_table(run, self.kernels, self.sms),
            "bloom": lambda: tables.bloom_table(
                run, self.lowered.launched, hints, totals.bloom, int(totals.table_peak_entries), values
            ),
            "learned": lambda: tables.learned_table(run, made, values),
            "chosen": lambda: tables.chosen_table(run, self.lowered.launched, self.lowered.known),
            "decisions": lambda: tables.decisions_table(
                # what was replayed was not decided
                run,
                None if self.replayed_kernels else self.lowered.known.chosen,
                self.lowered.number,
            ),
            **time_series.table_makers(run, self.series),
        }
