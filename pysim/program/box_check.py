"""Whether what bulk copies move lies in the regions that their kernel declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError

from .recorded_program import RecordedProgram
from .warp_program import OP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .job import Kernel, Tensor
    from .tiles import Box, TileOf

    Ints = NDArray[np.int64]

_MODES = {OP["BULK_LOAD"]: ("read", "update"), OP["BULK_STORE"]: ("write", "update")}


def check_kernel_boxes(
    where: str, kernel: Kernel, tbs: Ints, regions: Sequence[tuple[str, Tensor, Ints]], *, every: bool
) -> None:
    """Raise WorkloadError for the first bulk copy of ``tbs`` outside of the declared regions.

    ``regions``: mode, tensor, and row0, row1, col0, col1 of each thread block, int64 (TBs, 4). ``every``: in
    all turns and steps, else in the first and the last ones.
    """
    program = kernel.program
    if kernel.tiles is None or not isinstance(program, RecordedProgram) or program.op_lists is None:
        return
    if program.tb_rows is None:
        _check_row(where, kernel, 0, tbs, regions, every=every)
        return
    rows = np.asarray(program.tb_rows, np.int64)[tbs]
    for row in np.unique(rows).tolist():
        mine = rows == row
        of_row = [(mode, tensor, region[mine]) for mode, tensor, region in regions]
        _check_row(where, kernel, row, tbs[mine], of_row, every=every)


def _check_row(
    where: str,
    kernel: Kernel,
    row_of_code: int,
    tbs: Ints,
    regions: Sequence[tuple[str, Tensor, Ints]],
    *,
    every: bool,
) -> None:
    """Check the thread blocks ``tbs``, which run a row of the program."""
    tiles, program = kernel.tiles, kernel.program
    assert tiles is not None
    assert isinstance(program, RecordedProgram)
    assert program.op_lists is not None
    ops = dict.fromkeys((op.kind, op.box) for ops in program.op_lists(row_of_code) for op in ops if op.box)
    turns, steps = tiles.turns(kernel.tbs), range(max(tiles.steps, tiles.last_steps))
    for turn in range(turns) if every else sorted({0, min(1, turns - 1), turns - 1}):
        tile = tiles.of(tbs, kernel.tbs, turn)
        for kind, box in ops:
            assert box is not None
            tensor = kernel.args[box.arg]
            mine = [r for mode, of, r in regions if of is tensor and mode in _MODES[kind]]
            for step in steps if every else (steps[0], steps[-1]):
                outside = _outside(tensor, box, tile, step, mine)
                if outside is not None:
                    tb, row, col = outside
                    word = "reads" if kind == OP["BULK_LOAD"] else "writes"
                    raise WorkloadError(
                        f"{where}: TB {tbs[tb]}: a bulk copy {word} row {row}, column {col} of {tensor.name} "
                        f"({tensor.rows} x {tensor.cols}) and what follows, which no access of mode "
                        f"{' or '.join(_MODES[kind])} declares"
                    )


def _outside(
    tensor: Tensor, box: Box, tile: TileOf, step: int, regions: Sequence[Ints]
) -> tuple[int, int, int] | None:
    """Return thread block, row and column of the first box of a step outside of all regions.

    Boxes with another pitch than the tensor go by address in a tensor of one row, and are outside of others.
    """
    row, row_end, col, col_end = box.place(tile, step)
    if box.pitch != tensor.pitch and box.rows > 1:
        none = (row >= row_end) | (col >= col_end)
        begin, end = row * box.pitch + col, (row_end - 1) * box.pitch + col_end
        col, col_end = np.where(none, 0, begin), np.where(none, 0, end)
        row, row_end = np.zeros_like(row), np.full_like(row, 1 if tensor.rows == 1 else tensor.rows + 1)
    plane = tile.z * (box.plane // tensor.pitch)
    row, row_end, col, col_end = row + plane, row_end + plane, col // tensor.item, -(-col_end // tensor.item)
    held = (row >= row_end) | (col >= col_end) | ~tile.there
    for region in regions:
        held |= (
            (region[:, 0] <= row)
            & (row_end <= region[:, 1])
            & (region[:, 2] <= col)
            & (col_end <= region[:, 3])
        )
    bad = np.flatnonzero(~held)
    return (int(bad[0]), int(row[bad[0]]), int(col[bad[0]])) if len(bad) else None
