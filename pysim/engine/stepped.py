"""One run that a script drives: to a moment, to its end, or on from a moment under another setting."""

from __future__ import annotations

import math
import os
import time
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.clock import Clock
from pysim.errors import ConfigError, brief
from pysim.machine.system import Machine, resolve
from pysim.results.result import Result
from pysim.results.schema import SERIES
from pysim.schemes.registry import parse_scheme

from .arguments import check_job_form, table_names, thread_count
from .outcome import Outcome
from .run import MAX_TB_ROWS, MAX_THREADS
from .run_rows import add_run, compare, first_row, setting, wanted_tables
from .session import Session
from .simulation import NEVER, Sim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job
    from pysim.schemes.registry import Choice
    from pysim.schemes.scheme import Scheme

TICKS_US = 1024e3

# What a clone may change: read anew by the core at each event, and kept by no state. The core checks that
# nothing else of the initial state differs (core_c/engine/clone.c).
CLONE_PARAMETERS = (
    *(f"gpu.cp.{name}" for name in ("stream_gap", "graph_gap", "graph_prepare", "admit", "beside")),
    *(f"gpu.cp.{name}" for name in ("tb_release", "tb_start", "cluster_start", "tpc_start", "tpc_warps")),
    *(f"gpu.cp.{name}" for name in ("early_gap", "early_graph_gap", "early_reuse")),
    *(f"gpu.noc.{name}" for name in ("reply_bytes", "read_sector", "write_bytes", "write_partial")),
    "gpu.noc.gpc_link",
    *("gpu.l2.referenced", "gpu.l2.fabric_bandwidth", "gpu.sync.atomic"),
    *(f"gpu.dram.{name}" for name in ("row_cycle", "row_gap", "turnaround", "read_turnaround")),
    *("gpu.dram.write_queue", "gpu.dram.write_batch"),
    *("scheme.window", "scheme.affinity", "scheme.bypass", "scheme.bypass_age"),
    *(f"scheme.table.{name}" for name in ("entries", "share", "update", "latency")),
)  # fmt: skip


def _ticks(until_us: object) -> int:
    """Return a moment in ticks."""
    if isinstance(until_us, bool) or not isinstance(until_us, Real) or not 0 <= float(until_us) < math.inf:
        raise ConfigError(f"until_us = {brief(until_us)}: must be a time of at least 0 us")
    return min(NEVER, math.ceil(float(until_us) * TICKS_US))


class Simulation:
    """A run of a job under one scheme, which can be stopped at a moment and cloned there.

    Parameters
    ----------
    gpu, job, scheme, overrides, threads, tables
        As ``simulate`` takes them, with one scheme.

    Raises
    ------
    ConfigError
        As ``simulate``; and for ``sim.replay`` and ``sim.sustained``, which are no single run.
    WorkloadError
        What is given is no job, or a job that cannot be simulated under the scheme.

    Examples
    --------
    What does a window of one kernel cost from the third kernel or so on?

    >>> from pysim import Simulation
    >>> from pysim.workloads import make
    >>> job = make("gru:hidden=64,batch=4,timesteps=4,layers=1")
    >>> with Simulation("titan_v", job, "tb_static") as run:
    ...     run.run(until_us=4)
    ...     with run.clone({"scheme.window": 1}) as other:
    ...         run.run()
    ...         other.run()
    ...         run.result().time_us("tb_static") < other.result().time_us("tb_static")
    True
    """

    def __init__(
        self,
        gpu: Machine,
        job: Job,
        scheme: str | Scheme = "stream",
        *,
        overrides: Mapping[str, Any] | None = None,
        threads: int | None = None,
        tables: str | Sequence[str] = "all",
    ) -> None:
        config = resolve(gpu, overrides)
        check_job_form(job)
        for path, off in (("sim.replay", "off"), ("sim.sustained", 0)):
            if config[path] != off:
                raise ConfigError(f"{path} = {config[path]}: not in a Simulation, which is one run")
        count = min(thread_count(threads) or os.cpu_count() or 1, MAX_THREADS)
        self._set_up(config, job, parse_scheme(scheme), count, wanted_tables(table_names(tables)), None)

    def _set_up(
        self,
        given: Config,
        job: Job,
        choice: Choice,
        threads: int,
        wanted: frozenset[str],
        deps: Dependences | None,
    ) -> None:
        self._session = Session(given, job, threads, Clock(), deps)
        self._choice, self._wanted = choice, wanted
        self._config = given.replaced(choice.pins) if choice.pins else given
        self._bounds = self._session.bounds(self._config, choice)
        self._ended, self._same_setting = False, True
        self._tbs: list[NDArray[np.void]] = []
        self._keeps = "tbs" in wanted and self._session.tbs <= MAX_TB_ROWS
        with self._session.clock.phase("load"):
            self._lowered, self._programs = self._session.lowered(
                choice, self._config, self._bounds.kernel_cycles
            )
            self._sim: Sim | None = Sim(self._lowered)

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the memory of the run; nothing else of it can be called afterwards."""
        if self._sim is not None:
            self._sim.__exit__()
        self._sim = None

    def _open(self) -> Sim:
        if self._sim is None:
            raise ConfigError("this Simulation is closed")
        return self._sim

    @property
    def now_us(self) -> float:
        """The moment that the run has reached, in us of simulated time."""
        return int(self._open().totals().now) / TICKS_US

    @property
    def ended(self) -> bool:
        """Whether the job has ended."""
        return self._ended

    def run(self, until_us: float | None = None) -> None:
        """Run to a moment, in us of simulated time, or to the end.

        The run stops where all parts of the machine have reached the moment: a few tens of ns later at most,
        and always at the same time, whatever the threads and the moments before. Raises DeadlockError.
        """
        until = NEVER if until_us is None else _ticks(until_us)
        sim, session = self._open(), self._session
        if self._ended:
            return
        with session.clock.phase("simulate"):
            rows, self._ended = sim.run(
                session.threads, MAX_TB_ROWS, self._lowered.job.tb_buffer, self._keeps,
                lambda done: None, lambda: False, None, until,
            )  # fmt: skip
        self._tbs.append(rows)

    def clone(self, overrides: Mapping[str, Any] | None = None) -> Simulation:
        """Return a run that goes on from the same moment, with other values of some parameters.

        Only what the machine reads anew at each event can change (``CLONE_PARAMETERS``): gaps, limits and
        rates of the scheduler, and how long requests hold ports, links and banks. What is under way keeps the
        times that it has. Raises ConfigError, which names the parameters, for others and for values on which
        the present state depends; and with ``sim.oracle``, whose state cannot be copied.
        """
        sim, session = self._open(), self._session
        if self._config["sim.oracle"]:
            raise ConfigError("sim.oracle = 1: no clone, as the state of the check cannot be copied")
        given = session.config.replaced(overrides) if overrides else session.config
        made = Simulation.__new__(Simulation)
        made._set_up(given, session.job, self._choice, session.threads, self._wanted, session.deps)
        try:
            changed = self._changed(made)
            with Sim(self._lowered) as fresh:
                if sim.lib.gs_clone(made._open().sim, sim.sim, fresh.sim) != sim.lib.GS_OK:
                    raise ConfigError(
                        f"{', '.join(changed)}: no clone: state that is in motion depends on it"
                    )
        except BaseException:
            made.close()
            raise
        made._tbs, made._ended = [*self._tbs], self._ended
        made._same_setting = self._same_setting and not changed
        return made

    def _changed(self, other: Simulation) -> list[str]:
        """Return the parameters that differ from another run's; ConfigError for one that may not."""
        before, after = self._config.encoded(), other._config.encoded()
        changed = [path for path in before if before[path] != after[path]]
        for path in changed:
            if path not in CLONE_PARAMETERS:
                may = "engine.stepped.CLONE_PARAMETERS lists those that it may"
                raise ConfigError(f"{path}: a clone cannot change it: {may}")
        return changed

    def result(self) -> Result:
        """Return the tables of the run so far, as ``simulate(..., baseline=False)`` has them at the end.

        For a clone under another setting bound, estimate and speedup are NaN: they are of one setting.
        """
        session, sim = self._session, self._open()
        row = first_row(session.job, session.config, self._choice) | setting(
            self._config, self._choice, self._bounds
        )
        if not self._same_setting:
            row |= {"bound_us": math.nan, "estimate_us": math.nan}
        done = time.perf_counter()
        tbs = np.concatenate([sim.take_tb_records(0), *self._tbs])[:MAX_TB_ROWS]
        recorded = sim.recorded(self._lowered, tbs, self._ended, not self._wanted.isdisjoint(SERIES))
        found = Outcome.of(recorded, self._lowered, self._programs)
        result = Result(session.job, session.config, session.deps)
        result.notes += self._choice.overruled(session.config)
        if "tbs" in self._wanted and not self._keeps:
            result.notes.append(f"{self._choice.name}: TB records left out: more than {MAX_TB_ROWS} rows")
        spent = found.energy(0, self._config.device.energies if self._ended else ())
        add_run(result, session, self._choice, found, row, spent, self._wanted, done)
        result.interrupted = not self._ended
        if self._same_setting:
            compare(result)
        return result
