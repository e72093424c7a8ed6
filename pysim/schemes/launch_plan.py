"""Launches of a job under a scheme that changes its programs or waits inside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pysim.program.job import Job


@dataclass(slots=True)
class LaunchPlan:
    """Launches of a job: its kernels with rewritten programs, fused kernels, gate kernels.

    ``job``: the launches as a job. One entry a launch: ``programmatic``, 1: launched before earlier launches
    have ended; ``semaphore_bases``, first semaphores (its own, two producers', its started TBs);
    ``priority``, of its stream, 0 first; ``preds``, launches that it waits for; ``cooperative``, 1: all its
    TBs are resident together (empty: none); ``has_prologue``, 1: its TBs wait after a prologue (empty:
    none). ``posts_needed``: posts after which a poll of each semaphore succeeds. ``launch_of_kernel``: the
    launch of each kernel of the original job. ``order``: further fields of ``gs_order``.
    ``intra_kernel_only``: TBs wait only for TBs of their kernel; the scheme orders the launches. ``source``:
    the job without prologues, from which edges are found. ``unfused``: the job before fusion, which tells
    what memory is written.
    """

    job: Job
    programmatic: list[int]
    semaphore_bases: list[tuple[int, int, int, int]]
    posts_needed: NDArray[np.uint32]
    priority: list[int]
    preds: list[tuple[int, ...]]
    launch_of_kernel: list[int] = field(default_factory=list)
    cooperative: list[int] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)
    intra_kernel_only: bool = False
    has_prologue: list[int] = field(default_factory=list)
    source: Job | None = None
    unfused: Job | None = None
