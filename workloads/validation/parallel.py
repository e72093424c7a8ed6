"""Tasks in processes of their own: one that kills its process is an outcome, not the end of the run."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from pysim import Config, InternalError, SimError

from .cases import Outcome
from .suites import SUITES

Task = tuple[str, ...]
Work = Callable[[Any], Outcome]


def run_task(suite: str, config: Config, task: Task) -> Outcome:
    """Simulate one task; a refusal or a bug of the simulator is an outcome without a time."""
    try:
        return SUITES[suite].run(config, *task)
    except InternalError as error:
        return _failed(error)
    except SimError as error:
        return Outcome(reason=" ".join(str(error).split()))
    except Exception as error:  # the other rows must still be reported, and the bug with them
        return _failed(error)


def _failed(error: Exception) -> Outcome:
    return Outcome(reason=f"failed: {type(error).__name__}: {error}", trace=traceback.format_exc())


def _serve(pipe: Connection, work: Work) -> None:
    """Answer tasks until the other end closes; Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(work(task))


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Keep Ctrl-C for the parent: a child that still imports would answer it with a traceback.

    A child inherits what is blocked; the parent gets the signal when it is no longer.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    """A process and what it is doing; ``number`` None: nothing."""

    def __init__(self, context: SpawnContext, work: Work) -> None:
        self.pipe, other = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(other, work), daemon=True)
        with _ctrl_c_held():
            self.process.start()
        other.close()
        self.number: int | None = None

    def give(self, number: int, task: object) -> None:
        self.number = number
        # a process that is dead already is found out when its answer is taken
        with suppress(OSError):
            self.pipe.send(task)

    def take(self) -> Outcome:
        """Return the outcome of the task, or that the process died over it."""
        self.number = None
        try:
            outcome = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            how = f"signal {-code}" if code < 0 else f"exit status {code}"
            return Outcome(reason=f"failed: the process ended with {how}", trace=f"process ended: {how}")
        assert isinstance(outcome, Outcome)
        return outcome

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.pipe.close()


@contextmanager
def _stopped(workers: list[_Worker]) -> Iterator[None]:
    try:
        yield
    finally:
        for worker in workers:
            worker.stop()


def run_all(work: Work, tasks: Sequence[object], processes: int) -> Iterator[tuple[int, Outcome]]:
    """Yield (number of the task, outcome) as they end; tasks are begun in the order given.

    ``work`` and the tasks must be picklable. The processes end with the iteration, however that ends.
    """
    context = multiprocessing.get_context("spawn")
    left = list(enumerate(tasks))[::-1]
    workers: list[_Worker] = []
    with _stopped(workers):
        for _ in range(min(processes, len(tasks))):
            workers.append(_Worker(context, work))
            workers[-1].give(*left.pop())
        busy = list(workers)
        while busy:
            ready = wait([worker.pipe for worker in busy])
            for worker in [each for each in busy if each.pipe in ready]:
                number = worker.number
                assert number is not None
                outcome = worker.take()
                busy.remove(worker)
                if left:
                    if not worker.process.is_alive():
                        worker = _Worker(context, work)
                        workers.append(worker)
                    worker.give(*left.pop())
                    busy.append(worker)
                yield number, outcome
