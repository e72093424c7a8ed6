"""Dask: the workers of a sweep as tasks of a Dask cluster, such as one that dask-jobqueue starts.

>>> cluster = dask_jobqueue.SLURMCluster(cores=1, memory="4GiB", walltime="02:00:00")
>>> cluster.scale(40)
>>> dask.launch(Path("runs/gru"), 40, client=distributed.Client(cluster))
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pysim.errors import ConfigError, MissingLibraryError, WorkloadError, brief

from .launching import Submission, WorkerOptions, checked_folder, package_root, worker_command

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 30


@dataclass(frozen=True, slots=True)
class DaskOptions(WorkerOptions):
    """Where the scheduler is. ``scheduler``: its address, such as ``tcp://node7:8786``."""

    scheduler: str = ""


def _client(options: DaskOptions) -> Client:
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingLibraryError("the engine dask", "distributed", "dask") from error
    if not options.scheduler:
        raise ConfigError("the engine dask needs the address of a scheduler, such as tcp://node7:8786")
    try:
        return Client(options.scheduler, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        why = brief(str(error), 200)
        raise WorkloadError(f"dask: no scheduler answers at {brief(options.scheduler)}: {why}") from None


def launch(
    folder: Path, tasks: int, options: DaskOptions | None = None, client: Client | None = None
) -> Submission:
    """Run ``tasks`` workers on a Dask cluster and wait until they have ended.

    Dask drops tasks whose client is gone, so this one waits. A task whose Dask worker is lost runs again
    elsewhere; the points that it has finished are done. Raises MissingLibraryError without distributed,
    WorkloadError if there is no scheduler.
    """
    options = options or DaskOptions()
    path = checked_folder(folder)
    if tasks < 1:
        raise ConfigError(f"tasks = {brief(tasks)}: must be at least 1")
    made = client or _client(options)
    from distributed import wait

    command = ["env", f"PYTHONPATH={package_root()}", *worker_command(path, options), "--shard"]
    try:
        # subprocess.call: the Dask workers need not be able to import pysim
        futures = made.map(subprocess.call, [[*command, f"{i}/{tasks}"] for i in range(tasks)], pure=False)
        wait(futures)
        lost = sum(future.status != "finished" for future in futures)
    finally:
        if client is None:
            made.close()
    note = f"{lost:,} were lost" if lost else ""
    return Submission("dask", str(made.scheduler.address), tasks, note)
