"""Workers as processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from pysim.cli.exit_codes import EXIT_ERROR, EXIT_INTERRUPT, EXIT_TERMINATED, EXIT_USAGE
from pysim.cli.options import machine_threads
from pysim.errors import WorkloadError
from pysim.program.memory_budget import limit
from pysim.sweep.folder import SweepFolder

POLL_SECONDS = 0.2
MOST_DEATHS = 3  # of workers, one after another, that have begun no point
# statuses of workers that did not die: done, points failed, told what is wrong, stopped by somebody
ENDED = (0, EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPT, EXIT_TERMINATED, -signal.SIGTERM)
PATIENCE_SECONDS = 60.0  # a worker gets so long to stop after SIGTERM


@dataclass(frozen=True, slots=True)
class Local:
    """Some processes, each with some threads.

    ``jobs``: processes (None: as many as cores, or as points if they are fewer); ``threads``: of each (None:
    an equal share of the cores); ``max_memory``: bytes that a point may take (None: an equal share of 80 % of
    what is free).
    """

    jobs: int | None = None
    threads: int | None = None
    max_memory: int | None = None
    quiet: bool = False

    def launch(self, folder: SweepFolder) -> None:
        """Simulate the missing points and return when all are done or have failed.

        A worker that dies takes one point with it: the point has failed, and another worker goes on. Raises
        KeyboardInterrupt after Ctrl-C, once all workers have stopped.
        """
        left = folder.missing()
        for key in left:
            folder.clear_failure(key)
        if not left:
            return
        cores = machine_threads()
        jobs = min(self.jobs or cores, len(left))
        threads = self.threads or max(1, cores // jobs)
        memory = self.max_memory or limit() // jobs
        command = [sys.executable, "-m", "pysim", "work", str(folder.path.absolute()), "--child", "--quiet"]
        command += ["--threads", str(threads), "--max-memory", str(max(1, memory))]
        _watch(folder, [*command], jobs, set(left), self._progress(len(left)))

    def _progress(self, total: int) -> Callable[[int], None]:
        from pysim import stats

        log = stats.Log(self.quiet, unit="points")
        return lambda done: log("points", done, total)


def _watch(
    folder: SweepFolder, command: list[str], jobs: int, left: set[str], show: Callable[[int], None]
) -> None:
    """Keep ``jobs`` workers running until none has anything to do."""
    total, shown, deaths = len(left), -1, 0
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    workers = [subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment) for _ in range(jobs)]
    try:
        while workers:
            left -= folder.done() | folder.failures()
            if total - len(left) != shown:
                shown = total - len(left)
                show(shown)
            time.sleep(POLL_SECONDS)
            for worker in [each for each in workers if each.poll() is not None]:
                workers.remove(worker)
                if worker.returncode not in ENDED:
                    deaths = 0 if _bury(folder, worker) else deaths + 1
                    if deaths > MOST_DEATHS:
                        raise WorkloadError(f"workers die before they begin a point: {_how(worker)}")
                    if left - folder.failures():
                        workers.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment))
        left -= folder.done() | folder.failures()
        if total - len(left) != shown:
            show(total - len(left))
    except BaseException:
        _stop(workers)
        raise


def _bury(folder: SweepFolder, worker: subprocess.Popen[bytes]) -> bool:
    """Record the point that a dead worker has left behind; return whether there is one."""
    left = folder.claimed_by(worker.pid)
    for key in left:
        folder.fail(key, f"its process {_how(worker)}")
    return bool(left)


def _how(worker: subprocess.Popen[bytes]) -> str:
    """Say how a worker ended."""
    code = worker.returncode
    if code >= 0:
        return f"ended with status {code}"
    known = {each.value: each.name for each in signal.Signals}
    more = ", as the system does where memory runs out" if code == -signal.SIGKILL else ""
    return f"was killed by {known.get(-code, f'signal {-code}')}{more}"


def _stop(workers: list[subprocess.Popen[bytes]]) -> None:
    """Stop all workers: first by SIGTERM, at last by SIGKILL."""
    for worker in workers:
        worker.terminate()
    end = time.monotonic() + PATIENCE_SECONDS
    for worker in workers:
        try:
            worker.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
