"""Dask: the workers of a sweep as tasks of a Dask cluster, such as one that dask-jobqueue starts.

>>> cluster = dask_jobqueue.SLURMCluster(cores=1, memory="4GiB", walltime="02:00:00")
>>> cluster.scale(40)
>>> Dask(client=distributed.Client(cluster)).launch(SweepFolder("runs/gru"))
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.errors import ConfigError, MissingLibraryError, WorkloadError, brief

from .launching import Shares, Submission, checked_folder, forget_failures, package_root, worker_command

if TYPE_CHECKING:
    from distributed import Client

    from pysim.sweep.folder import SweepFolder

CONNECT_S = 30


@dataclass(frozen=True)
class Dask:
    """Tasks of a Dask cluster.

    ``scheduler``: its address, such as ``tcp://node7:8786``, or ``client``: one that is connected. ``tasks``:
    tasks that share the points (None: one a point); ``threads``: of each; ``max_memory``: bytes that a point
    may take.
    """

    scheduler: str = ""
    client: Client | None = None
    tasks: int | None = None
    threads: int = 1
    max_memory: int | None = None

    def launch(self, folder: SweepFolder) -> Submission | None:
        """Run the workers and wait until they have ended; None: no point is missing.

        Dask drops the tasks of a client that is gone. A task whose Dask worker is lost runs again elsewhere,
        and skips the points that are done. Raises MissingLibraryError without distributed, WorkloadError if
        there is no scheduler.
        """
        path = checked_folder(folder)
        command = [
            "env",
            f"PYTHONPATH={package_root()}",
            *worker_command(path, self.threads, self.max_memory),
        ]
        shares = Shares.of_folder(folder, self.tasks)
        client = self.client or self._connect()
        from distributed import wait

        try:
            if not shares.numbers:
                return None
            forget_failures(folder)
            # subprocess.call: the Dask workers need not be able to import pysim
            words = [[*command, "--shard", name] for name in shares.names()]
            futures = client.map(subprocess.call, words, pure=False)
            wait(futures)
            lost = sum(future.status != "finished" for future in futures)
            note = f"{lost:,} were lost" if lost else shares.note()
            return Submission("dask", str(client.scheduler.address), len(futures), note)
        finally:
            if self.client is None:
                client.close()

    def _connect(self) -> Client:
        try:
            from distributed import Client
        except ImportError as error:
            raise MissingLibraryError("the engine dask", "distributed", "dask") from error
        if not self.scheduler:
            raise ConfigError("the engine dask needs the address of a scheduler, such as tcp://node7:8786")
        try:
            return Client(self.scheduler, timeout=CONNECT_S)
        except (OSError, ValueError) as error:
            why = brief(str(error), 200)
            raise WorkloadError(f"dask: no scheduler at {brief(self.scheduler)}: {why}") from None
