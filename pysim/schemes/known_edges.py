"""The edges that a scheme enforces, and the time and memory that finding them takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences


@dataclass(frozen=True, slots=True)
class LearningReport:
    """Counts of a run of ``tb_learned``; the columns of table ``learned``. Copies are no launches here."""

    launches: int
    served: int
    unlearnable: int
    changed: int  # first launches of a known program with another grid or argument layout
    mispredicted: (
        int  # launches that touch other bytes than the first launch of their signature (the model checks)
    )
    signatures: int
    ranges: int  # kept, of all signatures
    looked_up: int  # ranges compared, summed over served launches
    recorded_bytes: int  # written by first launches, and kept
    fetched_bytes: int  # read by served launches


@dataclass(frozen=True, slots=True)
class Hints:
    """Address hints of all launches, as tables of the core (``gs_hint`` and others in core_c/gs_api.h).

    ``launch``: fields of ``gs_launch`` by name, one element a launch. ``barrier``: 1 for launches without
    hints.
    """

    tables: dict[str, NDArray[np.generic]]
    launch: dict[str, NDArray[np.uint32]]
    barrier: NDArray[np.uint32]
    granules: NDArray[np.int64]  # of each launch: granules that its hints name
    lookup_ticks: NDArray[np.uint64]  # of each launch, before its admission
    insert_ticks: NDArray[np.uint64]  # of each launch, after its admission


@dataclass(frozen=True, slots=True)
class ChosenForms:
    """How each pair of kernels is ordered by a scheme that chooses; one element a pair, by consumer.

    ``kernel`` waits for ``producer``. ``form``: tb, kernel, or none of its own; ``reason``: a word that says
    why; ``share``: of the producer's TBs, the most that a TB needs; ``rules``: rules that edges between TBs
    take. ``hints``, ``hint_bytes``: of each launch. ``peak_rules``, ``peak_tbs``: most that the kernels of a
    window take.
    """

    kernel: NDArray[np.int64]
    producer: NDArray[np.int64]
    form: NDArray[np.bytes_]
    reason: NDArray[np.bytes_]
    share: NDArray[np.float64]
    rules: NDArray[np.int64]
    hints: NDArray[np.int64]
    hint_bytes: NDArray[np.int64]
    peak_rules: int
    peak_tbs: int


@dataclass(frozen=True, slots=True)
class KnownEdges:
    """Edges that a scheme enforces, and what finding them costs; arrays have one element a launch.

    ``barrier``: 1 where the kernel waits for all earlier kernels and all later ones wait for it.
    ``lookup_ticks``, ``insert_ticks``: ticks (1/1024 ns) before and after its admission. ``launch``: further
    fields of ``gs_launch``; ``footprints``: bytes of memory for learned footprints. ``whole``: the kernels
    whose ends each launch waits for, beside the edges between TBs; None: none. ``chosen``: of a scheme that
    chooses forms.
    """

    deps: Dependences
    barrier: NDArray[np.uint32]
    lookup_ticks: NDArray[np.uint64]
    insert_ticks: NDArray[np.uint64]
    learned: LearningReport | None = None
    hints: Hints | None = None  # if given, the core finds edges from them instead of ``deps``
    launch: dict[str, NDArray[Any]] = field(default_factory=dict)
    footprints: int = 0
    whole: Sequence[tuple[int, ...]] | None = None
    chosen: ChosenForms | None = None

    @classmethod
    def without_cost(cls, deps: Dependences) -> KnownEdges:
        """Return edges that take no time to find and need no barriers."""
        count = len(deps.preds)
        none = np.zeros(count, np.uint64)
        return cls(deps, none.astype(np.uint32), none, none)
