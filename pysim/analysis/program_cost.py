"""What one TB of a program costs without contention: filled by ``tb_cost``, read by bounds and estimates."""

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
    """What one TB of each variant of a program costs without contention.

    Arrays have one element a variant: 8, or one for each row of a recorded program. Floors are lower bounds.

    Attributes
    ----------
    floor
        Cycles that a TB takes at least, whatever the caches hold: float64.
    work
        Its work counters (``gs_work``): instructions by pipe, sectors loaded and stored, wavefronts.
    floor_by_facts
        Floors that use what is known of the loads (``load_facts``), counted from the earliest start of a TB
        of the kernel.
    lone_cycles
        By kernel number, what a TB takes alone: with all loads from L2; with loads of the absent arguments
        from DRAM; and the share of loads of these that go to DRAM (None: not known by argument). Estimates,
        no floors.
    lone_tb_floor
        By kernel number, the floor of a kernel of one TB from its addresses: on any SM, and on the first SM.
    slice_traffic
        By kernel number, the traffic of each L2 slice (``gs_passed``, one a slice), for jobs that touch no
        sector twice.
    """

    floor: Floats
    work: NDArray[np.void]
    floor_by_facts: dict[LoadFacts, Floats] = field(default_factory=dict)
    lone_cycles: dict[int, tuple[Floats, Floats, float | None]] = field(default_factory=dict)
    lone_tb_floor: dict[int, tuple[float, float]] = field(default_factory=dict)
    slice_traffic: dict[int, NDArray[np.void]] = field(default_factory=dict)
