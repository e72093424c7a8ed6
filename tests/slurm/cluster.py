"""A private Slurm of one node: its own folder, ports, key and daemons."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = ("sbatch", "scontrol", "scancel", "squeue", "munged", "slurmctld", "slurmd")
SBIN = ":/usr/sbin:/sbin:/usr/local/sbin"  # not on the PATH of every user
# No cgroups, so that it runs in a container: linuxproc finds the processes of a job by their parents.
CONF = """\
ClusterName=pysim
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmdPort={slurmd}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MinJobAge=300
MaxJobCount=25000
MaxArraySize=20000
SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2
NodeName=node0 NodeHostname={host} NodeAddr=127.0.0.1 Port={slurmd} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=node0 Default=YES MaxTime=INFINITE State=UP
"""
CGROUP = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"


def missing() -> list[str]:
    """Return the programs of Slurm and munge that are not installed here."""
    return [name for name in PROGRAMS if shutil.which(name, path=os.environ["PATH"] + SBIN) is None]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [made.getsockname()[1] for made in sockets]
    for made in sockets:
        made.close()
    return ports


class Cluster:
    """A running Slurm. ``env``: what its commands need in their environment."""

    def __init__(self, cpus: int = 2) -> None:
        # a short path: the name of a socket has at most 107 bytes
        self.folder = Path(tempfile.mkdtemp(prefix="pysim-slurm-"))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SBATCH_", "SLURM_"))}
        self.env["SLURM_CONF"] = str(self.folder / "slurm.conf")
        self.env["PATH"] += SBIN
        ctld, slurmd = _free_ports(2)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        values = {"folder": self.folder, "host": socket.gethostname(), "user": user, "cpus": cpus}
        (self.folder / "slurm.conf").write_text(CONF.format(ctld=ctld, slurmd=slurmd, **values))
        (self.folder / "cgroup.conf").write_text(CGROUP)
        (self.folder / "state").mkdir()
        (self.folder / "spool").mkdir()
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        supervisor = [sys.executable, str(Path(__file__).with_name("supervisor.py")), str(self.folder)]
        self._supervisor = subprocess.Popen(
            supervisor, stdin=subprocess.PIPE, env=self.env, start_new_session=True
        )
        try:
            self._wait_until_up()
        except BaseException:
            self.stop()
            raise

    def _wait_until_up(self, seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while self._ask("sinfo", "-h", "-o", "%T").stdout.strip() != "idle":
            if time.monotonic() > end:
                raise RuntimeError(f"Slurm is not up after {seconds:g} s:\n{self.logs()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop all daemons and jobs and remove the folder."""
        if self._supervisor.stdin is not None:
            self._supervisor.stdin.close()
        self._supervisor.wait()

    def logs(self) -> str:
        """Return the ends of the daemons' logs."""
        parts = []
        for path in sorted([*self.folder.glob("*.out"), *self.folder.glob("*.log")]):
            lines = path.read_text(errors="replace").splitlines()[-15:]
            parts += [f"== {path.name}", *lines]
        return "\n".join(parts)

    def _ask(self, *command: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=self.env, input=text, capture_output=True, text=True, timeout=60)

    def run(self, *command: str, text: str | None = None) -> str:
        """Run a command of Slurm and return what it prints."""
        done = self._ask(*command, text=text)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}\n{self.logs()}")
        return done.stdout

    def states(self, job: str) -> dict[int, str]:
        """Return the state of each task of an array that Slurm has split off so far."""
        found = {}
        for line in self.run("scontrol", "show", "job", "-o", job).splitlines():
            task = re.search(r"ArrayTaskId=(\d+) ", line)
            state = re.search(r"JobState=(\S+)", line)
            if task and state:
                found[int(task[1])] = state[1]
        return found

    def active(self, job: str) -> bool:
        """Tell whether a task of the job waits, runs or is being ended."""
        done = self._ask("squeue", "-h", "-o", "%T", "-j", job)
        return bool(done.stdout.strip())

    def clear(self) -> None:
        """End all jobs and wait until they are gone."""
        for job in set(self.run("squeue", "-h", "-o", "%A").split()):
            self._ask("scancel", job)
            self.wait(job)

    def end(self, job: str) -> str:
        """Wait until a job that is no array has ended, and return its state."""
        self.wait(job)
        found = re.search(r"JobState=(\S+)", self.run("scontrol", "show", "job", "-o", job))
        return found[1] if found else "unknown"

    def wait(self, job: str, seconds: float = 60) -> dict[int, str]:
        """Wait until no task of the job is left to run; return the states."""
        end = time.monotonic() + seconds
        while self.active(job):
            if time.monotonic() > end:
                queue = self._ask("squeue", "-a").stdout
                raise RuntimeError(f"job {job} is still there after {seconds:g} s:\n{queue}\n{self.logs()}")
            time.sleep(0.05)
        return self.states(job)
