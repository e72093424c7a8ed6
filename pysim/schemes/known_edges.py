"""The edges that a scheme goes by, and what it costs the scheme to know them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences


@dataclass(frozen=True, slots=True)
class LearningReport:
    """What learning came to. Launches do not count copies, whose ranges are given and not learned."""

    launches: int
    served: int
    unlearnable: int
    changed: int  # first launches of a program that was known with another grid or layout
    mispredicted: int  # a check of the model: launches that do not touch what their signature's first one did
    signatures: int
    ranges: int  # kept, of all signatures
    looked_up: int  # ranges, counted once for each served launch
    recorded_bytes: int  # written by first launches, and kept
    fetched_bytes: int  # read by served launches


@dataclass(frozen=True, slots=True)
class Hints:
    """The core's tables of hints (``gs_hint`` and what follows it in core_c/gs_api.h).

    ``launch``: fields of ``gs_launch`` by name, one element a launch. ``barrier``: 1 where no hint came.
    """

    tables: dict[str, NDArray[np.generic]]
    launch: dict[str, NDArray[np.uint32]]
    barrier: NDArray[np.uint32]
    granules: NDArray[np.int64]  # of each launch: how many its hints name
    look_up: NDArray[np.uint64]  # ticks before its admission, and after it
    enter: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class KnownEdges:
    """Edges as a scheme knows them, and what knowing costs; arrays have one element a launch.

    ``barrier``: 1 where a kernel runs after barriers. ``look_up``, ``enter``: ticks (1/1024 ns) before and
    after the admission. ``launch``: further fields of ``gs_launch``; ``footprints``: bytes of memory that
    they name.
    """

    deps: Dependences
    barrier: NDArray[np.uint32]
    look_up: NDArray[np.uint64]
    enter: NDArray[np.uint64]
    learned: LearningReport | None = None
    hints: Hints | None = None  # the core finds edges from them, and ignores those of ``deps``
    launch: dict[str, NDArray[Any]] = field(default_factory=dict)
    footprints: int = 0

    @classmethod
    def free(cls, deps: Dependences) -> KnownEdges:
        """Return edges that are known without a cost and without barriers."""
        count = len(deps.preds)
        none = np.zeros(count, np.uint64)
        return cls(deps, none.astype(np.uint32), none, none)
