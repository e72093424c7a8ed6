"""cuDNN's changes of layout: images with channels first to channels last, or back.

A thread block of 256 threads moves 32 pixels of 32 channels of an image through shared memory: x of the grid
runs over pixels, y over channels, z over images.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.workloads.library.gemms.told import Told

    Table = NDArray[np.int64]

SIDE, WARPS = 32, 8
BEGIN = 200  # cycles before the first load: divisions of addresses, an estimate
INTS = 10  # instructions of an access: bounds and address, an estimate


@lru_cache(maxsize=128)
def _program(grid: tuple[int, int, int], item: int, registers: int) -> Program:
    pixels, channels = grid[0] * SIDE, grid[1] * SIDE
    plane, code = pixels * channels * item, Code()
    code.compute(int=40, control=4, chain=BEGIN)

    def rows(arg: int, pitch: int, x: int, y: int) -> list[Pattern]:
        """Return accesses of rows of 32 elements: a warp takes every eighth."""
        return [
            Pattern(arg, item, base=row * pitch, bx=x, by=y, bz=plane, warp=pitch, s0=item)
            for row in range(0, SIDE, WARPS)
        ]

    for pattern in rows(0, pixels * item, SIDE * item, SIDE * pixels * item):
        code.compute(int=INTS)
        code.load(0, pattern, level=2)
    code.wait(0)
    many = SIDE // WARPS
    code.compute(smem=many, smem_ops=many, chain=30)
    code.barrier()
    code.compute(smem=many, smem_ops=many, fp32=2 * many, chain=30)
    for pattern in rows(1, channels * item, SIDE * channels * item, SIDE * item):
        code.compute(int=INTS)
        code.store(1, pattern, level=2)
    code.exit()
    return Program("relayout", (tuple(code.ops),), WARPS, registers, SIDE * (SIDE + 1) * item, 2)


def _region(grid: tuple[int, int, int], turned: bool, tbs: Table) -> Table:
    x, y, z = tbs % grid[0], tbs // grid[0] % grid[1], tbs // (grid[0] * grid[1])
    row, col, rows = (x, y, grid[0]) if turned else (y, x, grid[1])
    first = (z * rows + row) * SIDE
    return np.stack([first, first + SIDE, col * SIDE, (col + 1) * SIDE], 1)


def relayout(told: Told, memory: Memory, item: int, tensor: Tensor, *, reads: bool) -> Kernel:
    """Return the kernel of a launch; edges are rounded up to whole tiles of 32 x 32.

    It ``reads`` from the address of ``tensor``, or writes there.
    """
    grid = told.grid
    sizes = (grid[1] * SIDE, grid[0] * SIDE)
    source = memory.tensor("source", grid[2] * sizes[0], sizes[1], item)
    result = memory.tensor("result", grid[2] * sizes[1], sizes[0], item)
    if reads:
        source = replace(source, address=tensor.address)
    else:
        result = replace(result, address=tensor.address)
    accesses = (
        Access(source, "read", partial(_region, grid, False)),
        Access(result, "write", partial(_region, grid, True)),
    )
    program = _program(grid, item, told.registers)
    return Kernel(told.name, program, grid, (source, result), accesses)
