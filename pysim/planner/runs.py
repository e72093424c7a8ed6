"""Simulates plans: in this process, or in several that each make the job again."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

from pysim.dependence.dependences import dependences
from pysim.engine.run import simulate
from pysim.errors import ConfigError, DependenceError, SimError, WorkloadError
from pysim.machine.config import Config
from pysim.machine.devices import device

from .search import Outcome

if TYPE_CHECKING:
    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job
    from pysim.units import Value

    from .space import Plan

Told = Callable[[int], None]  # gets how many of the plans are done


@dataclass(frozen=True, slots=True)
class Case:
    """A workload on a machine, as the command line names them."""

    workload: str
    gpu: str
    settings: Mapping[str, Value]

    def config(self) -> Config:
        """Return the machine."""
        return Config.resolve(device(self.gpu), self.settings)

    def job(self) -> Job:
        """Return the job."""
        from pysim.workloads import make

        return make(self.workload, self.config())


def outcome_of(config: Config, job: Job, deps: Dependences, plan: Plan) -> Outcome:
    """Simulate a plan; one that cannot run is an outcome without a time."""
    try:
        result = simulate(
            config,
            job,
            plan.scheme,
            threads=1,
            overrides=plan.settings,
            tables="none",
            baseline=False,
            deps=deps,
        )
    except DependenceError:
        raise  # a bug of the scheme
    except SimError as error:
        status = "refused" if isinstance(error, ConfigError | WorkloadError) else "failed"
        return Outcome(status, " ".join(str(error).split()))
    if result.interrupted:
        raise KeyboardInterrupt
    (row,) = result.listed()["runs"]
    numbers = (float(row[name]) for name in ("time_us", "estimate_us", "bound_us"))
    return Outcome(row["status"].decode(), row["reason"].decode(), *numbers)


def _serve(pipe: Connection, case: Case) -> None:
    """Answer plans until the other end closes; Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    config, job = case.config(), case.job()
    deps = dependences(job)
    while True:
        try:
            plan = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(outcome_of(config, job, deps, plan))
        except SimError as error:
            pipe.send(error)


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Keep Ctrl-C for the parent while a child starts; a child inherits what is blocked."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Runs:
    """Simulates the plans of a case, ``jobs`` at a time; ``with`` stops the processes.

    ``deps``: of the job, from its first run; ``told``: gets the number of plans that are done, of all calls.
    """

    def __init__(self, case: Case, job: Job, deps: Dependences, jobs: int, told: Told) -> None:
        self.case, self.config, self.job, self.deps = case, case.config(), job, deps
        self.jobs, self.told, self.done = jobs, told, 0
        self.workers: list[tuple[BaseProcess, Connection]] = []

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *_: object) -> None:
        for process, pipe in self.workers:
            process.terminate()
            process.join()
            pipe.close()

    def __call__(self, plans: Sequence[Plan]) -> Iterator[tuple[int, Outcome]]:
        """Yield the number of a plan and its outcome, as they end."""
        found = self._here(plans) if self.jobs == 1 else self._shared(plans)
        for number, outcome in found:
            self.done += 1
            self.told(self.done)
            yield number, outcome

    def _here(self, plans: Sequence[Plan]) -> Iterator[tuple[int, Outcome]]:
        for number, plan in enumerate(plans):
            yield number, outcome_of(self.config, self.job, self.deps, plan)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        pipe, other = context.Pipe()
        process = context.Process(target=_serve, args=(other, self.case), daemon=True)
        with _ctrl_c_held():
            process.start()
        other.close()
        self.workers.append((process, pipe))

    def _shared(self, plans: Sequence[Plan]) -> Iterator[tuple[int, Outcome]]:
        """Let the processes take one plan after another."""
        while len(self.workers) < min(self.jobs, len(plans)):
            self._start()
        left = list(enumerate(plans))[::-1]
        free = [pipe for _, pipe in self.workers]
        busy: dict[Connection, int] = {}
        while left or busy:
            while left and free:
                number, plan = left.pop()
                busy[free[0]] = number
                free.pop(0).send(plan)
            for pipe in wait(list(busy)):
                assert isinstance(pipe, Connection)
                free.append(pipe)
                yield busy.pop(pipe), self._taken(pipe)

    def _taken(self, pipe: Connection) -> Outcome:
        try:
            found = pipe.recv()
        except (EOFError, OSError):
            raise WorkloadError("a process of --jobs ended: try fewer of them, or --jobs 1") from None
        if isinstance(found, SimError):
            raise found
        assert isinstance(found, Outcome)
        return found
