"""Programs whose warps and TBs may differ: code and accesses as the core's tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from .tiles import Box
    from .warp_program import Op, Sem


@dataclass(frozen=True, slots=True, eq=False)
class RecordedAccesses:
    """Recorded accesses, which the core reads in place; fields of ``gs_job`` (core_c/gs_api.h).

    ``accesses``: uint64; ``templates``: gs_template; ``parts``: gs_part. They may be mapped from a file.
    """

    accesses: NDArray[Any]
    templates: NDArray[Any]
    parts: NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class CodeTables:
    """Code of one recorded kernel as the core's tables, lowered for one device.

    ``ops`` (gs_op), ``patterns`` (gs_pattern) and ``lanes`` (gs_lanes: 32 offsets in bytes each) are indexed
    from 0. ``entries``: uint32, (rows, warps), the first op of each warp of a row. ``sems``: the semaphores
    that POST and POLL ops name by index; ``boxes``: those of bulk copies.
    """

    ops: NDArray[Any]
    patterns: NDArray[Any]
    lanes: NDArray[Any]
    entries: NDArray[Any]
    sems: Sequence[Sem] = ()
    boxes: Sequence[Box] = ()


@dataclass(frozen=True, slots=True, eq=False)
class RecordedProgram:
    """Code of one launch whose warps and TBs may differ: from a trace, or from ``warp_specialized``.

    ``lower(values)`` returns its :class:`CodeTables` for the device with these encoded parameters.
    ``tb_rows``: uint32, (TBs,), the row of ``CodeTables.entries`` that each TB runs; None: all run row 0.
    ``access_starts``: uint32, (TBs * warps,), where the accesses of each warp begin among the
    ``access_count`` entries of ``memory.accesses`` from ``first_access`` on, or None.
    ``lower_on(values, (SM version, mma_rate))`` lowers for a known GPU, where that makes a difference.
    ``binary``: SM version of the GPU that it was recorded for; 0: any. ``op_lists(row)`` returns the op list
    of each warp of a row; None: there are none (a trace). ``rewrite(change)`` returns the same code with each
    op list changed; None: it cannot be changed.
    """

    name: str
    warps: int
    registers: int
    smem: int
    args: int
    lower: Callable[[Mapping[str, int]], CodeTables]
    memory: RecordedAccesses | None = None
    tb_rows: NDArray[Any] | None = None
    access_starts: NDArray[Any] | None = None
    first_access: int = 0
    access_count: int = 0
    op_lists: Callable[[int], Sequence[tuple[Op, ...]]] | None = None
    lower_on: Callable[[Mapping[str, int], tuple[int, int]], CodeTables] | None = None
    binary: int = 0
    rewrite: Callable[[Callable[[tuple[Op, ...]], tuple[Op, ...]]], RecordedProgram] | None = None
