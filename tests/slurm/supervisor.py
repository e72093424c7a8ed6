"""Runs the daemons of one private Slurm until its standard input closes; then nothing of it is left.

``python supervisor.py FOLDER``, where FOLDER holds the configuration (:mod:`tests.slurm.cluster` writes it).
The process that started this one holds the other end of standard input: the daemons end even if it is killed.
Steps of jobs are orphans by design; this process adopts them (PR_SET_CHILD_SUBREAPER), and so finds them.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def _descendants() -> list[int]:
    """Return the processes below this one, zombies left out."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            # pid (name) state parent: the name may contain spaces and brackets
            state, parent = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sorted(below - {os.getpid()})


def _reap(_number: int, _frame: object) -> None:
    """Collect children that have ended, adopted ones too: a zombie would look as if it ran on."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _stop() -> None:
    """Kill all descendants; a process that starts another one meanwhile is found in the next round."""
    while pids := _descendants():
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    # the first process of a container may not collect what is left to it
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _daemons(folder: Path) -> list[list[str]]:
    # --force: a folder that only its owner can enter is a warning, not an error
    munged = ["munged", "--foreground", "--force"]
    for option, name in (
        ("key-file", "munge.key"),
        ("socket", "munge.socket"),
        ("pid-file", "munge.pid"),
        ("log-file", "munge.log"),
        ("seed-file", "munge.seed"),
    ):
        munged.append(f"--{option}={folder / name}")
    return [munged, ["slurmctld", "-D", "-i"], ["slurmd", "-D", "-N", "node0"]]


def main(folder: Path) -> None:
    """Start the daemons, wait until standard input closes, stop all, remove the folder."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Only standard input ends this process. No SIG_IGN: the jobs would inherit it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    signal.signal(signal.SIGCHLD, _reap)
    os.environ["PATH"] += ":/usr/sbin:/sbin:/usr/local/sbin"
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    try:
        for command in _daemons(folder):
            with (folder / f"{command[0]}.out").open("w") as out:
                subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
                )
            while command[0] == "munged" and not (folder / "munge.socket").exists() and _descendants():
                time.sleep(0.01)
        sys.stdin.read()
    finally:
        _stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
