"""What a contracted job (``pysim.engine.replay``) says of the whole one: the time of its gaps is put back.

A period that was left out took what the periods on either side of its gap took, and it came when the period
before it was over. So each kernel of the whole job has the time of the kernel that stands for it, moved by
the periods that lie between the two and by those that lie before: the latest of what it waits for decides, so
gaps that ran beside each other count once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pysim.analysis.reuse_distance import missed_bytes
from pysim.errors import WorkloadError
from pysim.results.tables import TICKS_US

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

TIMES = ("enqueued", "admitted", "ready", "first_dispatch", "last_end", "released")


@dataclass(frozen=True, slots=True)
class Restored:
    """``kernels``: records of all kernels of the whole job, ticks; ``end``: of the whole job.

    ``error``: the share of the end by which it may be off, from the gaps that the end waited for.
    """

    kernels: Table
    moved: NDArray[
        np.int64
    ]  # of each kernel of the whole job: its time less that of the one that stands for it
    end: int
    error: float
    waits: list[tuple[int, int, int]]  # gaps that the end waited for: from, to (ticks simulated), put in


Ends = dict[tuple[int, int], "NDArray[np.int64]"]


def _ends(made: Contraction, kernels: Table) -> Ends:
    """Return when the kernels of each period that is left ended, by (run, period)."""
    ends: Ends = {}
    for index, number in enumerate(made.number.tolist()):
        where = made.at.get(number)
        if where is not None:
            run = made.runs[where[0]]
            ends.setdefault(where, np.zeros(run.period, np.int64))
            ends[where][(number - run.first) % run.period] = kernels["last_end"][index]
    return ends


@dataclass(frozen=True, slots=True)
class _Around:
    """The simulated periods next to a gap: what one takes, the share by which that may be off, and from when
    to when they ran, ticks.
    """

    took: int
    off: float
    begin: int
    end: int


def _around(gap: Gap, left: Sequence[int], ends: Ends) -> _Around:
    """Look at the period before a gap and the one behind it; behind a run's first period, at the next two.

    Each kernel of a period says what the period takes: from its end in the one before to its end. What they
    say on either side is the sample; twice its standard deviation counts as error, or how far the last
    periods of the run are from its mean, if that is more: what drifts has drifted less than in the whole job.
    """
    at = max(1, left.index(gap.before))
    times = [ends[gap.run, left[i]] for i in (at - 1, at, at + 1)]
    before, behind = times[1] - times[0], times[2] - times[1]
    mean = max(1.0, float(before.mean() + behind.mean()) / 2)
    tail = max(at - 1, len(left) - 3)
    final = float((ends[gap.run, left[-1]] - ends[gap.run, left[tail]]).mean()) / (len(left) - 1 - tail)
    off = max(2 * float(np.concatenate([before, behind]).std()), abs(final - mean))
    return _Around(round(mean), off / mean, int(times[0].max()), int(times[2].max()))


def restore(
    made: Contraction, preds: Sequence[Sequence[int]], kernels: Table, end: int, window: int
) -> Restored:
    """Return the whole job's times from those of the contracted one.

    ``preds``: kernels that each kernel of the whole job waits for under the scheme; ``kernels``: records of
    the contracted job; ``end``: its end; ``window``: kernels admitted at once (0: it does not count).
    """
    ends = _ends(made, kernels)
    left: dict[int, list[int]] = {}
    for run, period in sorted(ends):
        left.setdefault(run, []).append(period)
    around = {(g.run, g.before): _around(g, left[g.run], ends) for g in made.gaps}
    whole = len(made.stands)
    moved = np.zeros(whole, np.int64)
    cause: list[int] = [-1] * whole
    for kernel in range(whole):
        stand = int(made.number[made.stands[kernel]])
        where = made.at.get(kernel)
        if stand != kernel and where is not None:
            run, period = where
            first = made.at[stand][1]
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
    records = kernels[made.stands].copy()
    for name in TIMES:
        late = records[name] != np.iinfo(records[name].dtype).max
        records[name][late] += moved.astype(records[name].dtype)[late]
    final = int(np.argmax(records["last_end"]))
    waits: list[tuple[int, int, int]] = []
    error = 0.0
    kernel = final
    while kernel >= 0:
        before = cause[kernel]
        if before >= 0 and made.number[made.stands[kernel]] == before and before != kernel:
            run, first = made.at[before]
            near = around[run, first]
            put = int(moved[kernel] - moved[before])
            error += near.off * put
            waits.append((near.begin, near.end, put))
        kernel = before
    total = end + int(moved[final])
    return Restored(records, moved, total, error / max(1, total), waits)


class Gaps:
    """Counters of the whole job: in each gap that the end waited for, all goes on at the rate around it."""

    def __init__(self, found: Restored, series: Series, more: int) -> None:
        """``more``: warp instructions of what was left out."""
        self.found, self.series = found, series
        rates = self._between(series.sms["work"]["warp_instructions"]).sum()
        # what was left out is known; only how it is shared out among the parts is not
        self.scale = more / rates if rates else 0.0

    def _between(self, so_far: NDArray[Any]) -> NDArray[np.float64]:
        """Return what each part counts in the gaps; ``so_far``: (intervals, parts), since the start."""
        known = np.concatenate([np.zeros((1, *so_far.shape[1:])), so_far.astype(np.float64)])
        ticks = np.minimum(np.arange(len(known)) * self.series.interval, max(self.series.end, 1))

        def at(tick: int) -> NDArray[np.float64]:
            high = min(max(1, int(np.searchsorted(ticks, tick))), len(known) - 1)
            span = max(1, int(ticks[high] - ticks[high - 1]))
            share = (tick - int(ticks[high - 1])) / span
            return np.asarray(known[high - 1] + (known[high] - known[high - 1]) * share)

        more = np.zeros(so_far.shape[1:])
        for begin, finish, put in self.found.waits:
            more += (at(finish) - at(begin)) * (put / max(1, finish - begin))
        return more

    def _add(self, counts: Table, series: Table) -> None:
        for name in counts.dtype.names or ():
            if counts.dtype[name].names:
                self._add(counts[name], series[name])
            else:
                counts[name] += np.rint(self._between(series[name]) * self.scale).astype(counts[name].dtype)

    def sms(self, counts: Table, tbs: int, ended: int) -> Table:
        """Return the records of SMs; ``tbs``: of the whole job, ``ended``: when the contracted one did."""
        made = counts.copy()
        for group in ("work", "stalls"):
            self._add(made[group], self.series.sms[group])
        more = self._between(self.series.sms["held"]["busy"])
        made["busy"] = np.minimum(made["busy"] + np.rint(more).astype(made["busy"].dtype), self.found.end)
        made["tbs"] = _shared(counts["tbs"], tbs)
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


def _shared(shares: NDArray[Any], total: int) -> NDArray[np.int64]:
    """Return ``total`` shared out as ``shares`` are, in whole numbers."""
    ends = np.cumsum(shares.astype(np.int64))
    return np.diff(ends * total // max(1, int(ends[-1])), prepend=0)


def moved_tbs(records: Table, made: Contraction, moved: NDArray[np.int64]) -> Table:
    """Return records of TBs of the contracted job with times and numbers of the whole one."""
    out = records.copy()
    who = made.number[records["kernel"].astype(np.int64)]
    out["kernel"] = who
    for name in ("ready", "dispatch", "start", "end"):
        out[name] += moved[who].astype(out[name].dtype)
    known = records["last_kernel"] < len(made.number)
    out["last_kernel"][known] = made.number[records["last_kernel"][known].astype(np.int64)]
    return out


SAMPLES = 400  # intervals in which a replayed run counts, so that its counters can be put back


class Records(NamedTuple):
    """What a run recorded, as the core gives it."""

    tbs: Table
    kernels: Table
    sms: Table
    slices: Table
    end: int  # ticks


class Replay:
    """The replay of one job under one scheme."""

    def __init__(self, choice: Choice, made: Contraction, job: Job, deps: Dependences) -> None:
        self.scheme, self.made, self.job, self.deps = choice.scheme, made, job, deps
        self.preds: Sequence[Sequence[int]] = []  # of the whole job
        self.error = 0.0  # share of the time
        self.grown = 1.0  # warp instructions of the whole job over those that were simulated

    @classmethod
    def of(
        cls,
        choice: Choice,
        config: Config,
        job: Job,
        deps: Dependences,
        known: dict[int, Contraction | None],
    ) -> Replay | None:
        """Return the replay that the configuration asks for; None: all is simulated. ``known``: a cache."""
        if config.word("sim.replay") == "off":
            return None
        if choice.waits_inside:
            raise WorkloadError("replay is for schemes whose TBs wait before they are dispatched")
        window = int(config["scheme.window"])
        if window not in known:
            known[window] = contract(job, deps, window, int(config["sim.seed"]))
        made = known[window]
        return None if made is None else cls(choice, made, job, deps)

    def sampled(self, config: Config, estimate_us: float) -> Config:
        """Return the configuration with time series on."""
        if float(config.number("sim.sample")):
            return config
        share = len(self.made.number) / len(self.made.stands)
        return config.replaced({"sim.sample": max(0.001, round(estimate_us * share / SAMPLES, 3))})

    def alone(self, known: Bounds) -> Bounds:
        """Return what is known of the kernels of the whole job, of those that are left."""
        return replace(known, kernel_cycles=tuple(known.kernel_cycles[n] for n in self.made.number.tolist()))

    def prepare(self, lowered: Lowered) -> None:
        """Make the window reach as far as it would in the whole job, and learning be told of all of it."""
        values = lowered.values
        known = self.scheme.known_edges(self.job, self.deps, values)
        how = self.scheme.core_tables(self.job, known, values)
        self.preds = how.preds
        lowered.known = replace(lowered.known, learned=known.learned)
        lowered.launches["places"] = self.made.places
        lowered.order.window = how.order["window"]

    def whole(self, was: Records, series: Series, lowered: Lowered) -> Records:
        """Return the records of the whole job."""
        window = int(lowered.order.window) if lowered.order.tb_edges else 0
        found = restore(self.made, self.preds, was.kernels, was.end, window)
        ran, all_ = (int(k["warp_instructions"].astype(np.int64).sum()) for k in (was.kernels, found.kernels))
        self.error = found.error + self._forgotten(lowered.values) / max(1, found.end)
        self.grown = all_ / max(1, ran)
        gaps = Gaps(found, series, all_ - ran)
        tbs = sum(k.tbs for k in self.job.kernels)
        return Records(
            moved_tbs(was.tbs, self.made, found.moved),
            found.kernels,
            gaps.sms(was.sms, tbs, was.end),
            gaps.slices(was.slices),
            found.end,
        )

    def _forgotten(self, values: Mapping[str, int]) -> float:
        """Return the ticks that DRAM takes for what L2 holds in one of the two jobs only.

        Where every period has data of its own, fewer periods leave L2 more room for the others'.
        """
        size, made = values["gpu.l2.size"], self.made
        apart = missed_bytes(self.job, size) - missed_bytes(made.job, size)[made.stands]
        per_tick = values["gpu.dram.bandwidth"] / 1000 * 1e9 / (TICKS_US * 1e6)
        return abs(float(apart.sum())) / per_tick

    def holds(self, config: Config) -> bool:
        """Whether the error that was measured is one that the configuration allows."""
        return self.error <= float(config.number("sim.replay_error"))

    def note(self, name: str, config: Config) -> str:
        """Say what was not simulated, and what that may cost."""
        share = self.made.left_out / len(self.made.stands)
        what = f"{name}: {share:.0%} of the kernels replayed, time off by about {self.error:.2%}, as measured"
        return f"{what}; no samples" if self.holds(config) else f"{what}: simulated as a whole instead"
