"""Extrapolation from a contracted job (``pysim.engine.replay``) to the whole job: the time of gaps is added.

A period that was not simulated is taken to last as long as the periods next to its gap, and to start when
the period before it ends. So each kernel of the whole job gets the times of its representative, shifted by
the skipped periods before it. A kernel is shifted by the most of what it waits for, so gaps that ran
concurrently count once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pysim.analysis.reuse_distance import missed_bytes
from pysim.errors import WorkloadError
from pysim.results.tables import TICKS_US
from pysim.schemes.hooks import core_tables_of, known_edges_of

from .replay import contract

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.analysis.lower_bound import Bounds
    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job
    from pysim.results.time_series import Series
    from pysim.schemes.registry import Choice

    from .lower import Lowered
    from .replay import Contraction, Gap

    Table = NDArray[np.void]

DEVIATION = 1.4826  # standard deviations of normal samples in the median distance from their median
TIMES = ("enqueued", "admitted", "ready", "first_dispatch", "last_end", "released")


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """Times of the whole job, in ticks.

    ``kernels``: records of all kernels; ``shift``: (kernels), time of each kernel less that of its
    representative; ``end``: of the job; ``error``: estimated error of the end as a share of it;
    ``critical_gaps``: (begin, end, added ticks) of the gaps on the critical path, begin and end in simulated
    time.
    """

    kernels: Table
    shift: NDArray[
        np.int64
    ]  # of each kernel of the whole job: its time less that of the one that stands for it
    end: int
    error: float
    critical_gaps: list[
        tuple[int, int, int]
    ]  # gaps that the end waited for: from, to (ticks simulated), put in


Ends = dict[tuple[int, int], "NDArray[np.int64]"]


def _period_ends(made: Contraction, kernels: Table) -> Ends:
    """Return the end of each kernel of each simulated period in ticks, by (run, period)."""
    ends: Ends = {}
    for index, number in enumerate(made.original.tolist()):
        where = made.period_of.get(number)
        if where is not None:
            run = made.runs[where[0]]
            ends.setdefault(where, np.zeros(run.period, np.int64))
            ends[where][(number - run.first) % run.period] = kernels["last_end"][index]
    return ends


@dataclass(frozen=True, slots=True)
class _NearbyPeriods:
    """The simulated periods next to a gap: what one takes, the share by which that may be off, and from when
    to when they ran, ticks.
    """

    took: int
    off: float
    begin: int
    end: int


def _nearby_periods(gap: Gap, left: Sequence[int], ends: Ends) -> _NearbyPeriods:
    """Measure the periods before and after a gap; after a run's first period, the next two.

    Each kernel gives one sample of the period: the time between its ends in two successive periods. The
    period is their median, since kernels that nobody waits for run ahead at a pace of their own. The error is
    twice the standard deviation, as the median distance from it has it, or the distance of the last periods
    of the run, if larger: a drift is smaller in the contracted job than in the whole one.
    """
    at = max(1, left.index(gap.before))
    times = [ends[gap.run, left[i]] for i in (at - 1, at, at + 1)]
    samples = np.concatenate([times[1] - times[0], times[2] - times[1]])
    middle = max(1.0, float(np.median(samples)))
    spread = DEVIATION * float(np.median(np.abs(samples - middle)))
    tail = max(at - 1, len(left) - 3)
    final = float(np.median(ends[gap.run, left[-1]] - ends[gap.run, left[tail]])) / (len(left) - 1 - tail)
    off = max(2 * spread, abs(final - middle))
    return _NearbyPeriods(round(middle), off / middle, int(times[0].max()), int(times[2].max()))


def extrapolate_times(
    made: Contraction, preds: Sequence[Sequence[int]], kernels: Table, end: int, window: int
) -> Extrapolation:
    """Return the times of the whole job from those of the contracted one.

    ``preds``: kernels that each kernel of the whole job waits for under the scheme; ``kernels``, ``end``:
    records and end of the contracted job, ticks; ``window``: kernels admitted at once (0: the window does
    not limit).
    """
    ends = _period_ends(made, kernels)
    left: dict[int, list[int]] = {}
    for run, period in sorted(ends):
        left.setdefault(run, []).append(period)
    around = {(g.run, g.before): _nearby_periods(g, left[g.run], ends) for g in made.gaps}
    whole = len(made.representative)
    moved = np.zeros(whole, np.int64)
    cause: list[int] = [-1] * whole
    for kernel in range(whole):
        stand = int(made.original[made.representative[kernel]])
        where = made.period_of.get(kernel)
        if stand != kernel and where is not None:
            run, period = where
            first = made.period_of[stand][1]
            moved[kernel] = moved[stand] + (period - first) * around[run, first].took
            cause[kernel] = stand
            continue
        found = [*preds[kernel]]
        if window and kernel >= window:
            found.append(kernel - window)
        if where is not None and where[1] > 0:
            found.append(kernel - made.runs[where[0]].period)
        for before in found:
            if moved[before] > moved[kernel]:
                moved[kernel], cause[kernel] = moved[before], before
    records = kernels[made.representative].copy()
    for name in TIMES:
        late = records[name] != np.iinfo(records[name].dtype).max
        records[name][late] += moved.astype(records[name].dtype)[late]
    final = int(np.argmax(records["last_end"]))
    gaps: list[tuple[int, int, int]] = []
    error = 0.0
    kernel = final
    while kernel >= 0:
        before = cause[kernel]
        if before >= 0 and made.original[made.representative[kernel]] == before and before != kernel:
            run, first = made.period_of[before]
            near = around[run, first]
            put = int(moved[kernel] - moved[before])
            error += near.off * put
            gaps.append((near.begin, near.end, put))
        kernel = before
    total = end + int(moved[final])
    return Extrapolation(records, moved, total, error / max(1, total), gaps)


class CounterExtrapolation:
    """Counters of the whole job: in each gap on the critical path they grow at the rate around the gap."""

    def __init__(self, found: Extrapolation, series: Series, more: int) -> None:
        """``more``: warp instructions of the kernels that were not simulated."""
        self.found, self.series = found, series
        rates = self._between(series.sms["work"]["warp_instructions"]).sum()
        # the total is known; only its distribution over SMs and slices is extrapolated
        self.scale = more / rates if rates else 0.0

    def _between(self, so_far: NDArray[Any]) -> NDArray[np.float64]:
        """Return counts of each unit in the gaps; ``so_far``: (intervals, units), since the start."""
        known = np.concatenate([np.zeros((1, *so_far.shape[1:])), so_far.astype(np.float64)])
        ticks = np.minimum(np.arange(len(known)) * self.series.interval, max(self.series.end, 1))

        def at(tick: int) -> NDArray[np.float64]:
            high = min(max(1, int(np.searchsorted(ticks, tick))), len(known) - 1)
            span = max(1, int(ticks[high] - ticks[high - 1]))
            share = (tick - int(ticks[high - 1])) / span
            return np.asarray(known[high - 1] + (known[high] - known[high - 1]) * share)

        more = np.zeros(so_far.shape[1:])
        for begin, finish, put in self.found.critical_gaps:
            more += (at(finish) - at(begin)) * (put / max(1, finish - begin))
        return more

    def _add(self, counts: Table, series: Table) -> None:
        for name in counts.dtype.names or ():
            if counts.dtype[name].names:
                self._add(counts[name], series[name])
            else:
                counts[name] += np.rint(self._between(series[name]) * self.scale).astype(counts[name].dtype)

    def sms(self, counts: Table, tbs: int, ended: int) -> Table:
        """Return SM records; ``tbs``: of the whole job; ``ended``: end of the contracted one, ticks."""
        made = counts.copy()
        for group in ("work", "stalls"):
            self._add(made[group], self.series.sms[group])
        more = self._between(self.series.sms["held"]["busy"])
        made["busy"] = np.minimum(made["busy"] + np.rint(more).astype(made["busy"].dtype), self.found.end)
        made["tbs"] = _split_proportionally(counts["tbs"], tbs)
        for name in made["idles"].dtype.names or ():
            idle = counts["idles"][name].astype(np.float64)
            was = np.maximum(1, ended - counts["busy"].astype(np.float64))
            made["idles"][name] = np.rint(idle * (self.found.end - made["busy"].astype(np.float64)) / was)
        return made

    def slices(self, counts: Table) -> Table:
        """Return the records of L2 slices and their channels."""
        made = counts.copy()
        self._add(made, self.series.slices["count"])
        return made


def _split_proportionally(shares: NDArray[Any], total: int) -> NDArray[np.int64]:
    """Return integers in proportion to ``shares`` that add up to ``total``."""
    ends = np.cumsum(shares.astype(np.int64))
    return np.diff(ends * total // max(1, int(ends[-1])), prepend=0)


def shift_tb_records(records: Table, made: Contraction, moved: NDArray[np.int64]) -> Table:
    """Return TB records of the contracted job with times and kernel numbers of the whole one."""
    out = records.copy()
    who = made.original[records["kernel"].astype(np.int64)]
    out["kernel"] = who
    for name in ("ready", "dispatch", "start", "end"):
        out[name] += moved[who].astype(out[name].dtype)
    known = records["last_kernel"] < len(made.original)
    out["last_kernel"][known] = made.original[records["last_kernel"][known].astype(np.int64)]
    return out


REPLAY_SAMPLES = 400  # intervals of the time series from which counters of a replayed run are extrapolated


class CoreRecords(NamedTuple):
    """Records of a run, as the core returns them."""

    tbs: Table
    kernels: Table
    sms: Table
    slices: Table
    end: int  # ticks


class Replay:
    """Replay of one job under one scheme."""

    def __init__(self, choice: Choice, made: Contraction, job: Job, deps: Dependences) -> None:
        self.scheme, self.contraction, self.job, self.deps = choice.scheme, made, job, deps
        self.preds: Sequence[Sequence[int]] = []  # of the whole job
        self.error = 0.0  # estimated, as a share of the time
        self.instruction_ratio = 1.0  # warp instructions of the whole job over those that were simulated

    @classmethod
    def for_job(
        cls,
        choice: Choice,
        config: Config,
        job: Job,
        deps: Dependences,
        known: dict[int, Contraction | None],
    ) -> Replay | None:
        """Return the replay that the configuration asks for; None: the whole job is simulated.

        ``known``: cache of contractions by window. Raises WorkloadError for schemes whose TBs wait inside
        programs for TBs.
        """
        if config.word("sim.replay") == "off":
            return None
        if not choice.replays:
            raise WorkloadError(
                "replay is for schemes whose TBs wait before they are dispatched, or for whole kernels"
            )
        window = int(config["scheme.window"])
        if window not in known:
            known[window] = contract(job, deps, window, int(config["sim.seed"]))
        made = known[window]
        return None if made is None else cls(choice, made, job, deps)

    def with_sampling(self, config: Config, estimate_us: float) -> Config:
        """Return the configuration with time series on."""
        if float(config.number("sim.sample")):
            return config
        share = len(self.contraction.original) / len(self.contraction.representative)
        return config.replaced({"sim.sample": max(0.001, round(estimate_us * share / REPLAY_SAMPLES, 3))})

    @property
    def launches(self) -> Sequence[int]:
        """The number in the whole job of each kernel that dependences name."""
        return range(len(self.job.kernels))

    def whole_bounds(self, known: Bounds) -> Bounds:
        """Return the bounds of the whole job, which are those given."""
        return known

    def kept_bounds(self, known: Bounds) -> Bounds:
        """Return the bounds with the kernels that are simulated alone."""
        return replace(
            known, kernel_cycles=tuple(known.kernel_cycles[n] for n in self.contraction.original.tolist())
        )

    def prepare(self, lowered: Lowered) -> None:
        """Give the contracted job the window, the predecessors and the learning report of the whole one."""
        values = lowered.values
        known = known_edges_of(self.scheme, self.job, self.deps, values)
        how = core_tables_of(self.scheme, self.job, known, values)
        self.preds = how.preds
        lowered.known = replace(lowered.known, learned=known.learned)
        lowered.launches["places"] = self.contraction.window_slots
        lowered.order.window = how.order["window"]

    def whole_job(self, was: CoreRecords, series: Series, lowered: Lowered) -> CoreRecords:
        """Return the records of the whole job."""
        window = int(lowered.order.window) if lowered.order.tb_edges else 0
        found = extrapolate_times(self.contraction, self.preds, was.kernels, was.end, window)
        ran, all_ = (int(k["warp_instructions"].astype(np.int64).sum()) for k in (was.kernels, found.kernels))
        self.error = found.error + self._reuse_error_ticks(lowered.values) / max(1, found.end)
        self.instruction_ratio = all_ / max(1, ran)
        gaps = CounterExtrapolation(found, series, all_ - ran)
        tbs = sum(k.tbs for k in self.job.kernels)
        return CoreRecords(
            shift_tb_records(was.tbs, self.contraction, found.shift),
            found.kernels,
            gaps.sms(was.sms, tbs, was.end),
            gaps.slices(was.slices),
            found.end,
        )

    def _reuse_error_ticks(self, values: Mapping[str, int]) -> float:
        """Return the DRAM ticks of the bytes that hit L2 in only one of the two jobs.

        If every period has its own data, fewer periods leave more of L2 to the others.
        """
        size, made = values["gpu.l2.size"], self.contraction
        apart = missed_bytes(self.job, size) - missed_bytes(made.job, size)[made.representative]
        per_tick = values["gpu.dram.bandwidth"] / 1000 * 1e9 / (TICKS_US * 1e6)
        return abs(float(apart.sum())) / per_tick

    def within_error(self, config: Config) -> bool:
        """Whether the estimated error is within ``sim.replay_error``."""
        return self.error <= float(config.number("sim.replay_error"))

    def note(self, name: str, config: Config) -> str:
        """Return a note of the share that was not simulated and of the estimated error."""
        share = self.contraction.left_out / len(self.contraction.representative)
        what = f"{name}: {share:.0%} of the kernels replayed, time off by about {self.error:.2%}, as measured"
        return f"{what}; no samples" if self.within_error(config) else f"{what}: simulated as a whole instead"
