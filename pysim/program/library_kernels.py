"""Which library kernels the kernels of a job stand for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .job import Job

MOST = 4  # names in a line


def library_kernels(job: Job) -> str:
    """Return ``Kernel.library`` of a job with launch counts, most frequent first; "" if no kernel has one."""
    found = Counter(kernel.library for kernel in job.kernels if kernel.library).most_common()
    more = ", ..." if len(found) > MOST else ""
    return ", ".join(f"{name} x {count:,}" for name, count in found[:MOST]) + more
