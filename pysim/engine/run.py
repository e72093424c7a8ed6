"""``simulate``: run a job under one or more schemes."""

from __future__ import annotations

import math
import os
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.analysis.lower_bound import Bounds
from pysim.clock import Clock
from pysim.dependence.dependences import Dependences
from pysim.errors import ConfigError, InternalError, SimError, TimeLimitError, WorkloadError
from pysim.machine.config import Config
from pysim.machine.system import Machine, resolve
from pysim.params import TICKS_PER_NS
from pysim.program.architecture import other_machine
from pysim.program.ops import LoweredPrograms
from pysim.results import energy, power, time_series
from pysim.results.result import Result
from pysim.results.schema import SERIES
from pysim.results.tables import table as rows_of
from pysim.schemes.registry import Choice, parse_scheme, parse_schemes

from .arguments import check_calls, check_clock, check_deps, check_job_form, table_names, thread_count
from .extrapolate import Replay
from .lengthened import Lengthened
from .lower import Lowered
from .outcome import NUMERIC_COLUMNS, Outcome
from .run_checkpoint import recorded_run
from .run_rows import add_run, compare, first_row, setting, wanted_tables
from .session import Session
from .simulation import Sim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Job
    from pysim.schemes.scheme import Scheme

    from .checkpoints import Checkpoints
    from .user_rule import Placement, Priority, UserRule

    Progress = Callable[[str, int, int], None]

MAX_TB_ROWS = 1_000_000
MAX_THREADS = 8  # GS_THREADS of the core; more would gain nothing
REFUSED = (WorkloadError, ConfigError)
TICKS_S = TICKS_PER_NS * 1e9


def _load(
    session: Session, choice: Choice, config: Config, known: Bounds, replays: bool
) -> tuple[Lowered, LoweredPrograms, Replay | None, Sim]:
    """Return the core's tables for one scheme, of the whole or of the contracted job, and a Sim of them."""
    replay = _replay(session, choice, config, replays)
    if session.rule:
        session.rule.check(config)
    if replay is None:
        lowered, programs = session.lowered(choice, config, known.kernel_cycles)
    else:
        inside = session.contracted(replay.contraction)
        sampled = replay.with_sampling(config, known.estimate_us)
        lowered, programs = inside.lowered(choice, sampled, replay.kept_bounds(known).kernel_cycles)
        replay.prepare(lowered)
    return lowered, programs, replay, Sim(lowered)


def _replay(session: Session, choice: Choice, config: Config, replays: bool) -> Replay | None:
    """Return the replay that the job or the configuration asks for; None: every kernel is simulated."""
    if session.job.shortened is not None:
        if not choice.replays:
            raise WorkloadError(
                "a shortened job is for schemes whose TBs wait before they are dispatched, or for whole"
                " kernels"
            )
        return Lengthened(choice, session.job, session.deps, session.job.shortened)
    if not replays:
        return None
    return Replay.for_job(choice, config, session.job, session.deps, session.contractions)


def _rule(priority: Priority | None, placement: Placement | None) -> UserRule | None:
    """Return the user's rules; None: there are none."""
    if priority is None and placement is None:
        return None
    from .user_rule import UserRule

    return UserRule(priority, placement)


def _with_rule(
    rule: UserRule | None, sim: Sim, lowered: Lowered, report: Callable[[int], None], stop: Callable[[], bool]
) -> AbstractContextManager[None]:
    """Return the context that installs the user's rules, if there are any."""
    return rule.installed(sim, lowered, report, stop) if rule else nullcontext()


def _without_run(result: Result, run: int, row: dict[str, Any], status: str, error: SimError) -> bool:
    """Add the row of a scheme that was not simulated to its end; return True, as other schemes may run."""
    result.add("runs", rows_of("runs", 1, run=run, **(row | {"status": status, "reason": str(error)})))
    return True


def _run_scheme(
    result: Result,
    session: Session,
    choice: Choice,
    wanted: frozenset[str],
    progress: Progress | None,
    stop: Callable[[], bool],
    replays: bool = True,
    shares: tuple[float, ...] = (),
) -> bool:
    """Run one scheme and add its rows to the result; return whether the job ended.

    ``wanted``: names of tables; ``replays``: replay, if so configured; ``shares``: SM clock shares of earlier
    attempts under a power limit, and last the one to use now.
    """
    run, config, clock = len(result.parts.get("runs", [])), session.config, session.clock
    told, row = len(result.notes), first_row(session.job, config, choice)
    try:
        config = config.replaced(choice.pins) if choice.pins else config
        known = session.bounds(config, choice)
        config = config.replaced({"sim.clock_share": shares[-1]}) if shares else config
        row |= setting(config, choice, known)
        with clock.phase("load"):
            lowered, programs, replay, sim = _load(session, choice, config, known, replays)
        if replay is not None:
            row |= setting(config, choice, replay.whole_bounds(known))
    except REFUSED as error:
        return _without_run(result, run, row, "refused", error)
    with sim:
        series = replay is not None or not wanted.isdisjoint(SERIES)
        keep = "tbs" in wanted and _tb_rows(result) + session.tbs <= MAX_TB_ROWS
        if "tbs" in wanted and not keep:
            result.notes.append(f"{choice.name}: TB records left out: more than {MAX_TB_ROWS} rows")

        def report(done: int) -> None:
            if progress is not None:
                progress(choice.name, done, session.tbs)

        # an unlisted baseline runs without rules
        rule = None if run in result.unlisted else session.rule
        try:
            with clock.phase("simulate"), _with_rule(rule, sim, lowered, report, stop):
                recorded = recorded_run(sim, lowered, session, MAX_TB_ROWS, keep, series, report, stop)
        except TimeLimitError as error:
            return _without_run(result, run, row, "failed", error)
    done, ended = time.perf_counter(), recorded.ended
    found = Outcome.of(recorded, lowered, programs)
    if replay is not None and ended:
        found = found.replayed(replay)
        result.notes.append(replay.note(choice.name, config))
        if not replay.within_error(config):
            return _run_scheme(result, session, choice, wanted, progress, stop, False, shares)
    spent = found.energy(run, config.device.energies if ended else ())
    if ended and config.integer("sim.sustained") and config.number("gpu.power_limit"):
        left, note = _sustained_clock(config, session.config, spent, found.end / TICKS_S)
        if left != config.number("sim.clock_share") and len(shares) + 1 < power.MAX_RUNS:
            del result.notes[told:]
            return _run_scheme(result, session, choice, wanted, progress, stop, replays, (*shares, left))
        result.notes.append(f"{choice.name}: {note}")
    add_run(result, session, choice, found, row, spent, wanted, done)
    return ended


def _sustained_clock(
    config: Config, given: Config, spent: NDArray[np.void], seconds: float
) -> tuple[float, str]:
    """Return (SM clock share that the power limit allows after a run, note on that run)."""
    share, watts = config.number("sim.clock_share"), energy.mean_power(spent, seconds)
    limit = watts.allowed_watts(config.number("gpu.power_limit"), config.number("sim.pause") / 1e6 / seconds)
    most, slope = given.number("sim.clock_share"), config.number("gpu.power_slope")
    left = power.next_clock_share(share, watts, limit, slope, most)
    return left, f"{watts.total:.0f} W of {limit:.0f} allowed, with {share:.3f} of the SM clock"


def _tb_rows(result: Result) -> int:
    return sum(len(part) for part in result.parts.get("tbs", []))


def _complete_interrupted(result: Result, choices: Sequence[Choice]) -> None:
    """Leave out a run whose tables are not all there; add a row ``interrupted`` for each that is missing."""
    runs = np.concatenate(result.parts["runs"])
    whole = np.concatenate([part["run"] for part in result.parts["host"]])
    whole = np.concatenate([whole, runs["run"][runs["status"] == b"refused"]])
    for name, parts in result.parts.items():
        result.parts[name] = [part[np.isin(part["run"], whole)] for part in parts]
    row: dict[str, Any] = dict.fromkeys(NUMERIC_COLUMNS, math.nan)
    row |= {"workload": result.job.name, "gpu": result.config.device.name, "status": "interrupted"}
    for run in sorted(set(range(len(choices))) - set(whole.tolist())):
        result.add("runs", rows_of("runs", 1, run=run, scheme=choices[run].name, **row))


def simulate(
    gpu: Machine,
    job: Job,
    schemes: str | Scheme | Sequence[str | Scheme] = "stream,tb_static",
    *,
    threads: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    tables: str | Sequence[str] = "all",
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
    clock: Clock | None = None,
    baseline: bool = True,
    deps: Dependences | None = None,
    priority: Priority | None = None,
    placement: Placement | None = None,
    checkpoints: Checkpoints | None = None,
) -> Result:
    """Simulate a job on a GPU under each scheduling scheme.

    Parameters
    ----------
    gpu
        A device's name or FILE.toml (a text or a Path), a Device, a GPU or a System that a script composed,
        or a Config.
    job
        Kernels in launch order.
    schemes
        Names with options (``"stream,graph,tb_static:newest"``), a registered Scheme, or a list of them;
        ``pysim schemes`` lists them. A scheme that does not apply to the job or the GPU is a row with status
        ``refused``.
    threads
        Threads of the core, at least 1 (default: the processors of the machine). Results do not depend on it.
    overrides
        Values by parameter path, as ``--set`` takes them: ``{"gpu.sms": 40, "scheme.window": 16}``.
    tables
        ``"all"``, ``"none"`` or names of tables that are wanted beside ``runs``.
    progress
        ``progress(scheme, TBs done, TBs)`` is called about 15 times a second; while a rule of yours is slow,
        between its calls, with the TBs that were done before.
    stop
        When ``stop()`` is true, or the user interrupts, the result holds what was reached.
    clock
        What the table ``host`` is read from (default: one that begins now).
    baseline
        Run ``stream`` too where it is not listed: ``speedup`` refers to it (``Result.unlisted``).
    deps
        The job's dependences, where they are known from an earlier call (``Result.deps``).
    priority, placement
        Rules of yours for which ready TB is dispatched next, and for the SM that takes it
        (``pysim.engine.user_rule.Priority``, ``Placement``). They replace scheme.priority, scheme.placement
        and scheme.bypass under the listed schemes. Slow: Python is called at least once a TB. The rows that
        they get are copies. An exception of theirs ends the call and is raised again.
    checkpoints
        Where the runs are kept while the call goes on, and what it goes on from
        (``pysim.engine.checkpoints.Checkpoints``); not with rules of yours or with ``sim.oracle``.

    Returns
    -------
    Result
        Tables of all runs; times are in microseconds.

    Raises
    ------
    ConfigError
        An unknown name, a value out of range, an argument of another type, or values that do not fit
        together.
    WorkloadError
        What is given is no job, or a job that cannot be simulated under any scheme.
    DeadlockError, DependenceError
        TBs wait for each other; with ``sim.oracle``, a scheme broke a true dependence.

    Examples
    --------
    >>> from pysim import simulate
    >>> from pysim.workloads import make
    >>> result = simulate("titan_v", make("gru:hidden=64,batch=4,timesteps=2,layers=1"), "stream,tb_static")
    >>> result.time_us("tb_static") < result.time_us("stream")
    True
    """
    config = resolve(gpu, overrides)
    check_job_form(job)
    listed = parse_schemes(schemes)
    words = table_names(tables)
    wanted = wanted_tables(words)
    time_series.check_interval(float(config.number("sim.sample")), words)
    power.check_power(config)
    check_calls(progress=progress, stop=stop)
    check_clock(clock)
    if deps is not None:
        check_deps(deps, job)
    count = min(thread_count(threads) or os.cpu_count() or 1, MAX_THREADS)
    session = Session(config, job, count, clock or Clock(), deps)
    session.rule, session.checkpoints = _rule(priority, placement), checkpoints
    if checkpoints is not None:
        checkpoints.check(config, session.rule is not None)
    result = Result(job, config, session.deps)
    if session.deps.races:
        some = ", ".join(f"{a} -> {b}" for a, b in session.deps.races[:8])
        result.notes.append(
            f"{len(session.deps.races)} races between streams without an event: kernels {some}"
        )
    fixed = [note for choice in listed for note in choice.overruled(config)]
    result.notes += [note for note in (other_machine(job, config.device.sm), *fixed) if note]
    choices = list(listed)
    if baseline and all(choice.name != "stream" for choice in listed):
        choices.append(parse_scheme("stream"))
        result.unlisted = (len(choices) - 1,)
    try:
        for number, choice in enumerate(choices):
            if progress is not None:
                progress(choice.name, 0, session.tbs)  # set-up may take long, too
            hidden = frozenset({"runs", "host", "names"}) if number in result.unlisted else wanted
            if not _run_scheme(result, session, choice, hidden, progress, stop or (lambda: False)):
                result.interrupted = True
                break
    except KeyboardInterrupt:
        result.interrupted = True
        if "host" not in result.parts:
            raise
    except SimError:
        raise
    except MemoryError as error:
        raise InternalError(f"not enough memory for job {job.name}") from error
    if result.interrupted:
        result.notes.append("interrupted")
        _complete_interrupted(result, choices)
    compare(result)
    for number in result.unlisted:
        rows = result.parts["runs"][0][number:]
        if rows["status"] == b"ok":
            result.notes.append(f"stream was run too, for speedup: {rows['time_us'][0]:,.2f} us")
    return result
