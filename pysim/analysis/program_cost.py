"""What one TB of a program costs without contention: filled by ``floors``, read by bounds and estimates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    LoadFacts = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ProgramCost:
    """What one TB of each variant of a program costs without contention: cycles, and work counters.

    A recorded program has a variant for each of its rows. ``far``: the floors with what is known of its
    loads, from the earliest start of a TB of the kernel; ``slow``: no floor, but what a TB of a kernel takes
    alone, by the kernel's number: if all of its loads find L2, if those of the arguments that are not there
    go to DRAM, and which share of these does (None: not known by argument; all of them do). ``single``: the
    floors of kernels of one TB, by their number, with what its addresses tell: wherever it runs, and on the
    first SM. ``passed``: what kernels of a job that touches nothing twice move, by their number
    (``gs_passed``, one a slice).
    """

    floor: Floats
    work: NDArray[np.void]
    floor_by_facts: dict[LoadFacts, Floats] = field(default_factory=dict)
    lone_cycles: dict[int, tuple[Floats, Floats, float | None]] = field(default_factory=dict)
    lone_tb_floor: dict[int, tuple[float, float]] = field(default_factory=dict)
    slice_traffic: dict[int, NDArray[np.void]] = field(default_factory=dict)
