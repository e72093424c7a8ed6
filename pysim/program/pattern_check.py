"""Whether every address that a kernel's programs can touch lies in the regions that the kernel declares.

Dependences follow from the declared regions and times from the addresses: where the two differ, an edge is
missing in silence. Loads must lie in what is read or updated, stores in what is written or updated, and
reductions in what is updated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.isa import OPS

from .access_regions import checked_regions
from .box_check import check_kernel_boxes
from .recorded_program import RecordedProgram
from .warp_program import LEVELS, OP, Op, Pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from .job import Job, Kernel, Tensor

    Ints = NDArray[np.int64]

MODES_OF = {OP["LOAD"]: ("read", "update"), OP["STORE"]: ("write", "update"), OP["REDUCE"]: ("update",)}
WORDS = {OP["LOAD"]: "reads", OP["STORE"]: "writes", OP["REDUCE"]: "updates"}
MIDDLE_TBS = 3  # of a kernel that a sample has beside those at the corners of its grid
SAMPLED_STEPS = 8  # iterations of a loop in a sample, beside the last two
MOST = 1 << 20  # addresses that are looked at at once


def check_patterns(job: Job, *, every: bool = False) -> int:
    """Raise WorkloadError for the first address outside of the declared regions; return the kernels checked.

    A sample of TBs and iterations of each distinct program and grid is looked at, those at the edges among
    them; ``every``: all TBs and iterations of all kernels. Traces and copies have nothing to compare.
    """
    seen: set[object] = set()
    for number, kernel in enumerate(job.kernels):
        shapes = tuple((tensor.rows, tensor.cols, tensor.item) for tensor in kernel.args)
        key: object = id(kernel) if every else (id(kernel.program), kernel.grid, shapes, len(kernel.accesses))
        if key not in seen:
            seen.add(key)
            check_kernel_patterns(f"job {job.name}: kernel {number} ({kernel.name})", kernel, every=every)
    return len(seen)


def check_kernel_patterns(where: str, kernel: Kernel, *, every: bool = False) -> None:
    """Raise WorkloadError for the first address of a kernel outside of its declared regions."""
    program = kernel.program
    if kernel.copy is not None or kernel.footprint is not None:
        return
    if isinstance(program, RecordedProgram) and program.op_lists is None:
        return
    tbs = np.arange(kernel.tbs, dtype=np.int64) if every else sample_tbs(kernel.grid)
    regions = [(a.mode, a.tensor, checked_regions(a, tbs, where)) for a in kernel.accesses]
    check_kernel_boxes(where, kernel, tbs, regions, every=every)
    boxes = [(mode, _Boxes.of(tensor, region)) for mode, tensor, region in regions]
    place = _place(kernel, tbs)
    rows = tb_rows(kernel, tbs)
    for row in np.unique(rows).tolist():
        mine = np.flatnonzero(rows == row)
        ends = np.array([box.ends(mine) for _, box in boxes], np.int64).reshape(-1, 2)
        for touch in _touches(kernel, row, every=every):
            each = max(1, MOST // touch.distances.size)
            for first in range(0, len(mine), each):
                some = mine[first : first + each]
                at = touch.base + (place[some] @ touch.by_tb)[:, None] + touch.distances[None, :]
                inside = np.zeros(at.shape, bool)
                # of many boxes few hold these addresses
                near = (ends[:, 0] <= at.max() + touch.pattern.width) & (ends[:, 1] > at.min())
                for mode, box in (boxes[n] for n in np.flatnonzero(near).tolist()):
                    if mode in MODES_OF[touch.op.kind]:
                        inside |= box.hold(some, at) & box.hold(some, at + (touch.pattern.width - 1))
                if not inside.all():
                    tb, lane = np.argwhere(~inside)[0]
                    raise WorkloadError(_outside(where, kernel, place[some][tb], touch, int(at[tb, lane])))


def sample_tbs(grid: tuple[int, int, int]) -> Ints:
    """Return numbers of TBs: those at the corners of the grid, and some evenly spaced, sorted."""
    x, y, z = (axis.ravel() for axis in np.meshgrid(*(np.array([0, size - 1], np.int64) for size in grid)))
    total = grid[0] * grid[1] * grid[2]
    middle = np.linspace(0, total - 1, MIDDLE_TBS + 2).astype(np.int64)
    return np.union1d(x + grid[0] * (y + grid[1] * z), middle)


def _place(kernel: Kernel, tbs: Ints) -> Ints:
    """Return x, y and z of TBs, int64 (n, 3)."""
    gx, gy, _ = kernel.grid
    return np.stack([tbs % gx, tbs // gx % gy, tbs // (gx * gy)], axis=1)


def tb_rows(kernel: Kernel, tbs: Ints) -> Ints:
    """Return which op lists each TB runs: its variant, or its row of a program that differs by TB."""
    program = kernel.program
    if isinstance(program, RecordedProgram):
        return (
            np.zeros(len(tbs), np.int64) if program.tb_rows is None else program.tb_rows[tbs].astype(np.int64)
        )
    if len(program.variants) == 1:
        return np.zeros(len(tbs), np.int64)
    last = _place(kernel, tbs) == np.array(kernel.grid) - 1
    return np.asarray(last @ np.array([1, 2, 4]), np.int64)


@dataclass(frozen=True, slots=True)
class _Boxes:
    """A rectangle of memory for each TB: ``rows`` of ``length`` bytes, ``pitch`` apart, from ``start`` on."""

    start: Ints
    rows: Ints
    length: Ints
    pitch: int

    @classmethod
    def of(cls, tensor: Tensor, regions: Ints) -> _Boxes:
        row0, row1, col0, col1 = regions.T
        start = tensor.address + row0 * tensor.pitch + col0 * tensor.item
        return cls(start, row1 - row0, (col1 - col0) * tensor.item, tensor.pitch)

    def ends(self, tbs: Ints) -> tuple[int, int]:
        """Return between which addresses the rectangles of some TBs lie; two zeros where all are empty."""
        some = tbs[(self.rows[tbs] > 0) & (self.length[tbs] > 0)]
        if not len(some):
            return 0, 0
        last = self.start[some] + (self.rows[some] - 1) * self.pitch + self.length[some]
        return int(self.start[some].min()), int(last.max())

    def hold(self, tbs: Ints, at: Ints) -> NDArray[np.bool_]:
        """Whether each address lies in the rectangle of its TB; ``at``: (TBs, addresses)."""
        row, col = np.divmod(at - self.start[tbs, None], self.pitch)
        inside = (row >= 0) & (row < self.rows[tbs, None]) & (col < self.length[tbs, None])
        return np.asarray(inside)


@dataclass(frozen=True, slots=True)
class _Touch:
    """A memory op of one warp, or of all: it touches ``base`` + TB . ``by_tb`` + each of ``distances``."""

    number: int
    op: Op
    pattern: Pattern
    warp: int  # -1: all
    base: int
    by_tb: Ints
    distances: Ints


def _touches(kernel: Kernel, row: int, *, every: bool) -> Iterator[_Touch]:
    """Yield the memory ops of the TBs of a row; ``every``: in all iterations of loops."""
    program = kernel.program
    if isinstance(program, RecordedProgram):
        assert program.op_lists is not None
        lists = program.op_lists(row)
        codes = {id(ops): (ops, [w for w, other in enumerate(lists) if other is ops]) for ops in lists}
    else:
        codes = {0: (program.variants[row], list(range(program.warps)))}
    for ops, warps in codes.values():
        for number, op in enumerate(ops):
            if op.kind not in MODES_OF:
                continue
            counters = _counters(ops, number, every=every)
            own = len(op.patterns) > 1
            for warp in warps if own else [-1]:
                pattern = op.patterns[warp if own else 0]
                distances = _distances(op, pattern, counters, [warp] if own else warps)
                if distances.size:
                    base = kernel.args[pattern.arg].address + pattern.base
                    by_tb = np.array([pattern.bx, pattern.by, pattern.bz], np.int64)
                    yield _Touch(number, op, pattern, warp, base, by_tb, distances)


def _counters(ops: Sequence[Op], number: int, *, every: bool) -> list[Ints]:
    """Return the values that the counter of each loop level takes at an op."""
    made = [np.zeros(1, np.int64) for _ in range(LEVELS)]
    for at in range(number, len(ops)):
        loop = ops[at]
        if loop.kind == OP["LOOP"] and loop.target <= number:
            if every or loop.count <= SAMPLED_STEPS:
                made[loop.level] = np.arange(loop.count, dtype=np.int64)
            else:
                some = np.linspace(0, loop.count - 1, SAMPLED_STEPS).astype(np.int64)
                made[loop.level] = np.union1d(some, [loop.count - 2])
    return made


def _distances(op: Op, pattern: Pattern, counters: list[Ints], warps: Sequence[int]) -> Ints:
    """Return the distances from where a TB's pattern begins, of all lanes of the warps in all iterations."""
    lane = np.arange(32, dtype=np.int64)
    lane = lane[(pattern.lanes >> lane & 1).astype(bool)]
    apart = lane // pattern.minor * pattern.s1 + lane % pattern.minor * pattern.s0
    if pattern.offsets:
        apart = np.array(pattern.offsets, np.int64)[lane]
    here = counters[op.level]
    step = here + op.count_plus
    runs = step < op.count if op.count else np.ones(len(step), bool)
    if pattern.level2 == op.level:
        moved = (step * pattern.step + here * pattern.step2)[runs]
    else:
        moved = np.add.outer(step[runs] * pattern.step, counters[pattern.level2] * pattern.step2).ravel()
    by_warp = np.array(warps, np.int64) * pattern.warp
    where = np.add.outer(np.unique(moved), np.unique(by_warp)).ravel()
    return np.asarray(np.add.outer(where, apart).ravel())


def _outside(where: str, kernel: Kernel, tb: Ints, touch: _Touch, at: int) -> str:
    tensor = kernel.args[touch.pattern.arg]
    off = at - tensor.address
    place = f"byte {off} of {tensor.name} ({tensor.rows} x {tensor.cols} of {tensor.item} B)"
    if 0 <= off < tensor.nbytes:
        row, col = off // tensor.pitch, off % tensor.pitch // tensor.item
        place = f"row {row}, column {col} of {tensor.name} ({tensor.rows} x {tensor.cols})"
    modes, warp = " or ".join(MODES_OF[touch.op.kind]), "" if touch.warp < 0 else f", warp {touch.warp}"
    return (
        f"{where}: TB {tuple(tb.tolist())}{warp}: op {touch.number} ({OPS[touch.op.kind][0]})"
        f" {WORDS[touch.op.kind]} {place}, which no access of mode {modes} declares"
    )
