"""Which library kernels the kernels of a job stand for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .job import Job, Kernel

MOST = 4  # names in a line
STANDS_IN = "stands in"  # in the text of a kernel that is not the library's own


def stand_in(what: str, *, measured: bool = True) -> str:
    """Return ``Kernel.library`` of a kernel that stands in; ``what``: for which, or how it departs from it.

    ``measured``: False where not even the time of the kernel that it is like was measured.
    """
    return f"{STANDS_IN}{'' if measured else ', not measured'}: {what}"


def stands_in(kernel: Kernel) -> bool:
    """Whether a kernel stands in for a library's own."""
    return STANDS_IN in kernel.library


def library_kernels(job: Job) -> str:
    """Return ``Kernel.library`` of a job with launch counts, most frequent first; "" if no kernel has one."""
    found = Counter(kernel.library for kernel in job.kernels if kernel.library).most_common()
    more = ", ..." if len(found) > MOST else ""
    return ", ".join(f"{name} x {count:,}" for name, count in found[:MOST]) + more
