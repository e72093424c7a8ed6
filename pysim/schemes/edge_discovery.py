"""How table schemes come to know their edges where nobody gives them: learned footprints, or hints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.dependence.intra_kernel_sync import held_back
from pysim.dependence.transitive_reduction import without_implied

from .bloom import Hints, hints_of
from .learned import Report, learned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job

    from .registry import Scheme


@dataclass(frozen=True, slots=True)
class Found:
    """Edges as a scheme knows them, and what knowing costs; arrays have one element a launch.

    ``barrier``: 1 where a kernel runs behind barriers. ``look_up``, ``enter``: ticks before and behind the
    admission. ``launch``: further fields of ``gs_launch``; ``footprints``: bytes of memory that they name.
    """

    deps: Dependences
    barrier: NDArray[np.uint32]
    look_up: NDArray[np.uint64]
    enter: NDArray[np.uint64]
    learned: Report | None = None
    hints: Hints | None = None  # edges are found from them in the core, and not those of ``deps``
    launch: dict[str, NDArray[Any]] = field(default_factory=dict)
    footprints: int = 0


def found_of(scheme: Scheme, job: Job, deps: Dependences, values: Mapping[str, int]) -> Found:
    """Return the edges that a table scheme goes by; ``deps`` are the true ones."""
    none = np.zeros(len(job.kernels), np.uint64)
    if scheme.finds == "learned":
        known = learned(job, values)
        spent = known.ranges.astype(np.uint64) * np.uint64(values["scheme.learned.lookup"])
        held = held_back(job, known.deps)
        return Found(held, known.barrier, spent, none, known.report, None, known.launch, known.footprints)
    if scheme.finds == "bloom":
        hints = hints_of(job, values)
        return Found(deps, hints.barrier, hints.look_up, hints.enter, hints=hints)
    if not scheme.barriers:
        deps = held_back(job, deps)
    if scheme.edges == "tb" and not scheme.infinite and values["scheme.table.reduce"]:
        deps = without_implied(deps)
    return Found(deps, none.astype(np.uint32), none, none)
