"""A job as a scheme that waits inside the program launches it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pysim.program.job import Job


@dataclass(slots=True)
class LaunchPlan:
    """A job as a scheme launches it. ``early``, ``semaphores``, ``priority``, ``preds``: one a launch."""

    job: Job
    early: list[int]
    semaphores: list[tuple[int, int, int, int]]
    needs: NDArray[np.uint32]
    priority: list[int]
    preds: list[tuple[int, ...]]
    number: list[int] = field(default_factory=list)  # which launch each kernel of the job became
    cooperative: list[int] = field(default_factory=list)  # 1: its TBs are resident together; empty: none
    order: dict[str, int] = field(default_factory=dict)
    turns: bool = False  # only TBs of a kernel wait inside; the scheme says what launches wait for
    gated: list[int] = field(default_factory=list)  # a table scheme's prologues: 1 where the program has one
    source: Job | None = None  # the job without them, by which its edges are found
    writes: Job | None = None  # of a fused job: what it was made of, which says what is written
