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
from .op_touches import MODES_OF, Touch, tb_places, tb_rows, touches
from .recorded_program import RecordedProgram
from .warp_program import OP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .job import Job, Kernel, Tensor

    Ints = NDArray[np.int64]

WORDS = {OP["LOAD"]: "reads", OP["STORE"]: "writes", OP["REDUCE"]: "updates"}
MIDDLE_TBS = 3  # of a kernel that a sample has beside those at the corners of its grid
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
    place = tb_places(kernel, tbs)
    rows = tb_rows(kernel, tbs)
    for row in np.unique(rows).tolist():
        mine = np.flatnonzero(rows == row)
        ends = np.array([box.ends(mine) for _, box in boxes], np.int64).reshape(-1, 2)
        for touch in touches(kernel, row, every=every):
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


def _outside(where: str, kernel: Kernel, tb: Ints, touch: Touch, at: int) -> str:
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
