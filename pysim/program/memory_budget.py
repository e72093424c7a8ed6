"""Memory that a job may take: one that would not fit is refused before it is built."""

from __future__ import annotations

import os
from pathlib import Path

from pysim.errors import ConfigError, WorkloadError

SHARE = 0.8  # of the free memory, where no limit is set
# Bytes of a launch: a job of 1,000,000 empty ones takes 1.6 kB each. Of each access: an estimate.
LAUNCH, ACCESS = 2048, 1536
# Of a program that no other launch has: applications take 11 to 50 kB.
PROGRAM = 32 << 10
# Bytes while a compute block is split: of an instruction (measured 31), and of an op that it makes.
INSTRUCTION, OP = 40, 2048
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

_chosen: list[int] = []  # what `set_limit` was given last


def parse_size(text: str) -> int:
    """Return the bytes of ``12GiB``, ``500MiB`` or a plain number; ConfigError for any other text."""
    unit = next((name for name in _UNITS if text.endswith(name)), "")
    try:
        size = int(float(text.removesuffix(unit)) * _UNITS.get(unit, 1))
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise ConfigError(f"must be a size such as 12GiB, not {text!r}")
    return size


def set_limit(size: int | None) -> None:
    """Set what jobs of this process may take, in bytes; None: ``SHARE`` of what is free when one is made."""
    _chosen[:] = [] if size is None else [size]


def free_memory() -> int:
    """Return the bytes that this machine, or the control group of this process, has free."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    group = Path("/sys/fs/cgroup")
    try:
        most, used = ((group / name).read_text(encoding="ascii") for name in ("memory.max", "memory.current"))
        return max(0, min(free, int(most) - int(used)))
    except (OSError, ValueError):  # no control group, or no limit
        return free


def limit() -> int:
    """Return the bytes that a job may take."""
    return _chosen[0] if _chosen else int(SHARE * free_memory())


def claim(size: int, what: str) -> None:
    """Raise WorkloadError if ``size`` bytes are more than a job may take; ``what`` needs them."""
    if size < 1 << 26:  # not worth asking the system
        return
    most = limit()
    if size > most:
        raise WorkloadError(
            f"{what}: about {size / 2**30:,.1f} GiB of memory, at most {most / 2**30:,.1f} GiB (--max-memory)"
        )


def claim_launches(launches: int, what: str, accesses: int, programs: int = 0, more: int = 0) -> None:
    """Raise WorkloadError if a job of so many launches would not fit.

    ``accesses``: of all of them; ``programs``: how many have a program that no other has; ``more``: bytes
    that the job takes beside them.
    """
    size = launches * LAUNCH + accesses * ACCESS + programs * PROGRAM + more
    claim(size, f"{what}: {launches:,} launches")
