"""Run a job under one or more schemes."""

from __future__ import annotations

import math
import os
import platform
import resource
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from . import columns, series
from .bounds import Bounds, Family, bounds, family_of
from .clock import Clock
from .config import Config
from .dependences import Dependences, dependences
from .devices import device
from .energy import late_operands
from .errors import ConfigError, InternalError, SimError, WorkloadError
from .floors import Costs, costs_of, loads_of
from .lower import Lowered, Programs, lower, lower_programs
from .occupancy import carveout
from .outcome import NUMBERS, Outcome
from .restored import Replay
from .result import Result
from .schemes import Choice, parse_scheme, parse_schemes
from .waits import plan_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from .job import Job
    from .replay import Contraction

    Progress = Callable[[str, int, int], None]

MAX_TB_ROWS = 1_000_000
MAX_THREADS = 8  # GS_THREADS of the core; more would gain nothing
SLICE_SECONDS = 0.07
REFUSED = (WorkloadError, ConfigError)


class _Sim:
    """One simulation in the core, freed at the end of a ``with``."""

    def __init__(self, lowered: Lowered) -> None:
        from ._ffi import error_of, ffi, lib, params_struct

        self.ffi, self.lib = ffi, lib
        code, text = ffi.new("int *"), ffi.new("char[512]")
        params = params_struct(lowered.values)
        self.sim = lib.gs_create(params, lowered.order, lowered.job, code, text)
        if self.sim == ffi.NULL:
            raise error_of(code[0], text)

    def __enter__(self) -> _Sim:
        return self

    def __exit__(self, *_: object) -> None:
        self.lib.gs_free(self.sim)

    def totals(self) -> Any:
        out = self.ffi.new("gs_totals *")
        self.lib.gs_totals_get(self.sim, out)
        return out

    def fetch(self, call: str, ctype: str, count: int) -> NDArray[np.void]:
        from ._ffi import dtype_of

        rows = np.zeros(count, dtype_of(ctype))
        if count:
            getattr(self.lib, call)(self.sim, self.ffi.cast(f"{ctype} *", rows.ctypes.data))
        return rows

    def series(
        self, values: Mapping[str, int], end: int, wanted: Collection[str] = series.TABLES
    ) -> series.Series | None:
        """Return the time series of a run that ended at ``end``, None if it has none or none is wanted."""
        from ._ffi import dtype_of

        totals = self.totals()
        slices = values["gpu.l2.slices"]
        shapes = {
            "gs_sm_series": (values["gpu.sms"],),
            "gs_slice_series": (slices,),
            "gs_bank_series": (slices, values["gpu.dram.banks"]),
        }
        sms, parts, banks = (
            np.zeros((int(totals.series), *shape), dtype_of(name)) for name, shape in shapes.items()
        )
        if not totals.series or not {*wanted} & {*series.TABLES}:
            return None
        places = (
            self.ffi.cast(f"{name} *", rows.ctypes.data)
            for name, rows in zip(shapes, (sms, parts, banks), strict=True)
        )
        self.lib.gs_series_get(self.sim, *places)
        return series.Series(sms, parts, banks, int(totals.series_interval), end)

    def outcome(
        self,
        lowered: Lowered,
        programs: Programs,
        records: NDArray[np.void],
        ended: bool,
        wanted: Collection[str],
    ) -> Outcome:
        """Return what the run recorded; ``wanted``: tables of time series that may be asked for."""
        totals, values = self.totals(), lowered.values
        end = int(totals.end) if ended else int(totals.now)
        return Outcome(
            lowered=lowered,
            job=lowered.launched,
            number=lowered.number,
            tbs=records,
            kernels=self.fetch("gs_kernels_get", "gs_kernel_record", len(lowered.launched.kernels)),
            sms=self.fetch("gs_sms_get", "gs_sm_record", values["gpu.sms"]),
            slices=self.fetch("gs_slices_get", "gs_l2", values["gpu.l2.slices"]),
            samples=self.fetch("gs_samples_get", "gs_sample", int(totals.samples)),
            interval=int(totals.sample_interval),
            series=self.series(values, end, wanted),
            end=end,
            ended=ended,
            slowed=int(totals.slowed),
            totals=totals,
            late=late_operands(lowered.launched, programs),
        )

    def take(self, room: int) -> NDArray[np.void]:
        from ._ffi import dtype_of

        rows = np.zeros(room, dtype_of("gs_tb_record"))
        got = self.lib.gs_take_tbs(self.sim, self.ffi.cast("gs_tb_record *", rows.ctypes.data), room)
        return rows[:got]

    def run(
        self,
        threads: int,
        room: int,
        every: int,
        keep: bool,
        progress: Callable[[int], None],
        stop: Callable[[], bool],
    ) -> tuple[NDArray[np.void], bool]:
        """Run to the end in slices; return the TB records and whether the job ended."""
        from ._ffi import check

        kept: list[NDArray[np.void]] = [self.take(0)]
        quanta, done = 64, False
        while not done:
            begin = time.perf_counter()
            done = check(self.lib.gs_run(self.sim, threads, quanta), self.sim) == self.lib.GS_DONE
            rows = self.take(every)
            while len(rows):
                if keep:
                    kept.append(rows)
                rows = self.take(every)
            spent = time.perf_counter() - begin
            # slices of about SLICE_SECONDS, so that signals and the progress bar get their turn
            quanta = max(1, min(quanta * 4, int(quanta * SLICE_SECONDS / max(spent, 1e-6)) + 1))
            progress(int(self.totals().tbs_done))
            if not done and stop():
                break
        return np.concatenate(kept)[:room], done


class _Session:
    """What the runs of one call share."""

    def __init__(
        self, config: Config, job: Job, threads: int, clock: Clock, deps: Dependences | None = None
    ) -> None:
        if not job.kernels:
            raise WorkloadError(f"job {job.name} has no kernels")
        self.config, self.job, self.threads, self.clock = config, job, threads, clock
        self.deps: Dependences = dependences(job) if deps is None else deps
        self.tbs = sum(k.tbs for k in job.kernels)
        self.programs: dict[tuple[int, ...], Programs] = {}
        self.parts: dict[int, Contraction | None] = {}
        self.sessions: dict[int, _Session] = {}
        self.known: dict[tuple[tuple[tuple[str, int], ...], Family], Bounds] = {}

    def lowered(self, choice: Choice, config: Config, times: Sequence[float]) -> tuple[Lowered, Programs]:
        values = config.encoded()
        plan = plan_of(choice, self.job, self.deps, config)
        key = tuple(value for path, value in sorted(values.items()) if path.startswith("gpu.sm."))
        if plan is not None:
            job, programs = plan.job, lower_programs(plan.job, values["gpu.sm.block_max"], values)
            times = [
                times[plan.number.index(k)] if k in plan.number else 0.0 for k in range(len(job.kernels))
            ]
        else:
            if key not in self.programs:
                self.programs[key] = lower_programs(self.job, values["gpu.sm.block_max"], values)
            job, programs = self.job, self.programs[key]
        each = [carveout(k, values, config.carveouts) for k in job.kernels]
        return lower(job, self.deps, choice, values, programs, each, times, plan), programs

    def inside(self, made: Contraction) -> _Session:
        """Return a session of the job without what is replayed."""
        if id(made) not in self.sessions:
            self.sessions[id(made)] = _Session(self.config, made.job, self.threads, self.clock, made.deps)
        return self.sessions[id(made)]

    def _behind_prologues(self, values: dict[str, int], config: Config) -> list[NDArray[np.float64]]:
        """Return, for each kernel, what a TB of each variant takes at least behind its prologue, cycles."""
        from .prologue import tail_job

        job = tail_job(self.job)
        programs = lower_programs(job, values["gpu.sm.block_max"], values)
        each = [carveout(k, values, config.carveouts) for k in job.kernels]
        none = [0.0] * len(job.kernels)
        with _Sim(lower(job, self.deps, parse_scheme("stream"), values, programs, each, none)) as sim:
            costs = costs_of(sim.sim, programs)
        return [costs[number].floor for number in programs.index]

    def costs(
        self, config: Config, loads: Sequence[tuple[int, int, int]] = ()
    ) -> tuple[Programs, list[Costs]]:
        """Return the programs of the job, and what their TBs cost."""
        plain = config.replaced({"scheme.priority": "oldest"})
        with self.clock.phase("load"):
            lowered, programs = self.lowered(parse_scheme("stream"), plain, [0.0] * len(self.job.kernels))
            made = _Sim(lowered)
        with made as sim:
            values = config.encoded()
            latencies = values["gpu.l2.latency"], values["gpu.dram.latency"]
            return programs, costs_of(sim.sim, programs, loads, latencies, self.job, values)

    def bounds(self, config: Config, choice: Choice) -> Bounds:
        """Return bound and estimate; schemes of a family that pin no machine parameter share them."""
        values = config.encoded()
        family = family_of(choice, bool(values["scheme.build"]))
        key = tuple(item for item in sorted(values.items()) if not item[0].startswith(("scheme.", "sim.")))
        key += (("scheme.prologue", values["scheme.prologue"]),)
        if (key, family) not in self.known:
            loads = loads_of(self.job)
            programs, costs = self.costs(config, loads)
            behind = self._behind_prologues(values, config) if values["scheme.prologue"] else None
            # the estimate is the same for all families
            guess = next((b.guess for (k, _), b in self.known.items() if k == key), None)
            self.known[key, family] = bounds(
                self.job, self.deps, programs, costs, values, family, loads, behind, guess
            )
        return self.known[key, family]


def _wanted(tables: str | Sequence[str]) -> frozenset[str]:
    words = tables.split(",") if isinstance(tables, str) else list(tables)
    known = ("all", "none", *columns.DTYPES, "sm", "l2", *series.TABLES)
    for word in words:
        if word not in known:
            raise ConfigError(f"no table {word!r}: there are {', '.join(known)}")
    if "all" in words:
        return frozenset(known)
    return frozenset(words) | {"runs", "names", "host"}


def _host(run: int, session: _Session, seconds: Mapping[str, float]) -> NDArray[np.void]:
    from ._ffi import ffi, lib

    build = ffi.string(lib.gs_build_info()).decode()
    versions = f"core {build}; python {platform.python_version()}; numpy {np.__version__}"
    unit = 1 if sys.platform == "darwin" else 1024
    return columns.table(
        "host",
        1,
        run=run,
        threads=session.threads,
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
        versions=versions,
        machine=f"{platform.machine()} {platform.system()} {platform.release()}",
        **seconds,
    )


def _edges(run: int, deps: Dependences, job: Job, number: Sequence[int]) -> NDArray[np.void]:
    pairs, launch = deps.edges, np.array(number, np.int64)
    who = launch[pairs["consumer"]]
    streams = np.array([k.stream for k in job.kernels], np.int64)
    return columns.table(
        "edges",
        len(pairs),
        run=run,
        kernel=who,
        stream=streams[who],
        tb=-1,
        producer_kernel=launch[pairs["producer"]],
        producer_tb=-1,
    )


def _loaded(
    session: _Session, choice: Choice, config: Config, known: Bounds, replays: bool
) -> tuple[Lowered, Programs, Replay | None, _Sim]:
    """Fill the core's tables for one scheme, of the whole job or of what replay leaves of it."""
    replay = Replay.of(choice, config, session.job, session.deps, session.parts) if replays else None
    if replay is None:
        lowered, programs = session.lowered(choice, config, known.alone)
    else:
        inside = session.inside(replay.made)
        sampled = replay.sampled(config, known.estimate_us)
        lowered, programs = inside.lowered(choice, sampled, replay.alone(known).alone)
        replay.prepare(lowered)
    return lowered, programs, replay, _Sim(lowered)


def _one(
    result: Result,
    session: _Session,
    choice: Choice,
    wanted: frozenset[str],
    progress: Progress | None,
    stop: Callable[[], bool],
    replays: bool = True,
) -> bool:
    """Run one scheme and add its rows; return whether the job ended. ``replays``: if so configured."""
    run, config, clock = len(result.parts.get("runs", [])), session.config, session.clock
    row: dict[str, Any] = dict.fromkeys(NUMBERS, math.nan)
    row |= {"workload": session.job.name, "scheme": choice.name, "gpu": config.device.name, "status": "ok"}
    try:
        config = config.replaced(choice.pins) if choice.pins else config
        known = session.bounds(config, choice)
        row |= {
            "bound_us": known.bound_us,
            "estimate_us": known.estimate_us,
            "submit": str(config["host.submit"]),
        }
        with clock.phase("load"):
            lowered, programs, replay, sim = _loaded(session, choice, config, known, replays)
    except REFUSED as error:
        result.add(
            "runs", columns.table("runs", 1, run=run, **(row | {"status": "refused", "reason": str(error)}))
        )
        return True
    with sim:
        keep = "tbs" in wanted and _rows(result) + session.tbs <= MAX_TB_ROWS
        if "tbs" in wanted and not keep:
            result.notes.append(f"{choice.name}: TB records left out: more than {MAX_TB_ROWS} rows")

        def report(done: int) -> None:
            if progress is not None:
                progress(choice.name, done, session.tbs)

        with clock.phase("simulate"):
            records, ended = sim.run(session.threads, MAX_TB_ROWS, lowered.job.tb_buffer, keep, report, stop)
        done = time.perf_counter()
        found = sim.outcome(lowered, programs, records, ended, wanted if replay is None else series.TABLES)
    if replay is not None and ended:
        found = found.replayed(replay)
        result.notes.append(replay.note(choice.name, config))
        if not replay.holds(config):
            return _one(result, session, choice, wanted, progress, stop, replays=False)
    energies = config.device.energies if ended else ()
    spent = found.energy(run, energies)
    row |= found.row()
    row["energy_j"] = float(spent["joule"].sum()) if energies else math.nan
    result.add("runs", columns.table("runs", 1, run=run, **row))
    result.add("names", columns.names_table(run, found.job))
    made = found.tables(run, choice.scheme.barriers)
    made["energy"] = lambda: spent
    made["edges"] = lambda: _edges(run, session.deps, found.job, found.number)
    result.notes += series.coarser(found.series, choice.name, found.lowered.values["sim.sample"])
    for table, make in made.items():
        if table in wanted:
            result.add(table, make())
    clock.count("write", time.perf_counter() - done)
    result.add("host", _host(run, session, clock.lap()))
    return ended


def _rows(result: Result) -> int:
    return sum(len(part) for part in result.parts.get("tbs", []))


def _compare(result: Result) -> None:
    """Fill the columns that need the run of ``stream``."""
    rows = np.concatenate(result.parts["runs"])
    good = rows["status"] == b"ok"
    base = rows["time_us"][good & (rows["scheme"] == b"stream")]
    if len(base):
        times = rows["time_us"][good]
        room = base[0] - rows["estimate_us"][good]
        rows["speedup"][good] = base[0] / times
        rows["gap_won"][good] = np.divide(
            base[0] - times, room, out=np.full(len(times), np.nan), where=room > 0
        )
    result.parts["runs"] = [rows]


def simulate(
    gpu: Config | str,
    job: Job,
    schemes: str | Sequence[str] = "stream,tb_static",
    *,
    threads: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    tables: str | Sequence[str] = "all",
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
    clock: Clock | None = None,
    baseline: bool = True,
    deps: Dependences | None = None,
) -> Result:
    """Simulate ``job`` on ``gpu`` under each scheme.

    ``progress(scheme, TBs done, TBs)`` is called about 15 times a second; when ``stop()`` is true or the
    user interrupts, the result holds what was reached. ``stream`` is run too where it is not listed, for
    ``speedup``, if ``baseline``: its row is in ``Result.unlisted``. A scheme that does not apply is a row
    ``refused``. ``clock`` is what the table ``host`` is read from (default: one that begins now). ``deps``:
    the job's dependences, where they are known from an earlier call (``Result.deps``).
    """
    if isinstance(gpu, str):
        config = Config.resolve(device(gpu), overrides)
    else:
        config = gpu.replaced(overrides) if overrides else gpu
    if threads is not None and threads < 1:
        raise ConfigError(f"threads = {threads}: must be at least 1")
    listed = parse_schemes(schemes)
    wanted = _wanted(tables)
    series.check(float(config.number("sim.sample")), tables)
    count = min(threads or os.cpu_count() or 1, MAX_THREADS)
    session = _Session(config, job, count, clock or Clock(), deps)
    result = Result(job, config, session.deps)
    if session.deps.races:
        some = ", ".join(f"{a} -> {b}" for a, b in session.deps.races[:8])
        result.notes.append(
            f"{len(session.deps.races)} races between streams without an event: kernels {some}"
        )
    choices = list(listed)
    if baseline and all(choice.name != "stream" for choice in listed):
        choices.append(parse_scheme("stream"))
        result.unlisted = (len(choices) - 1,)
    try:
        for number, choice in enumerate(choices):
            hidden = frozenset({"runs", "host", "names"}) if number in result.unlisted else wanted
            if not _one(result, session, choice, hidden, progress, stop or (lambda: False)):
                result.interrupted = True
                break
    except KeyboardInterrupt:
        result.notes.append("interrupted")
        result.interrupted = True
        if "runs" not in result.parts:
            raise
    except SimError:
        raise
    except MemoryError as error:
        raise InternalError(f"not enough memory for job {job.name}") from error
    _compare(result)
    for number in result.unlisted:
        rows = result.parts["runs"][0][number:]
        if len(rows):
            result.notes.append(f"stream was run too, for speedup: {rows['time_us'][0]:,.2f} us")
    return result
