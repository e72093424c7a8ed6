"""Serial split K: the parts of a split K add to C in turn, as in CUTLASS.

The TBs of one tile of C wait for each other by a semaphore of the kernel's own: the first part stores, each
other one loads the sum so far, adds and stores. Parts are along z, so a TB's predecessor starts before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.program.warp_specialized import warp_specialized

if TYPE_CHECKING:
    from collections.abc import Callable

    from pysim.program.recorded_program import RecordedProgram
    from pysim.program.warp_program import Code, Pattern

    Loads = list[tuple[Pattern, ...]]

ROUND = 8  # rows of a warp that an epilogue exchanges through shared memory at a time
LAST_X, LAST_Y, LAST_Z, FIRST_Z = 1, 2, 4, 8  # bits of a class of TBs: at which edges of the grid they are


def serial_program(
    name: str,
    grid: tuple[int, int, int],
    variant: Callable[[int], Code],
    *,
    warps: int,
    registers: int,
    smem: int,
    args: int,
) -> RecordedProgram:
    """Make a program with one ``variant(bits)`` for each class of TBs that the grid has."""
    gx, gy, gz = grid
    tb = np.arange(gx * gy * gz, dtype=np.int64)
    x, y, z = tb % gx, tb // gx % gy, tb // (gx * gy)
    kinds = (
        LAST_X * (x == gx - 1) + LAST_Y * (y == gy - 1) + LAST_Z * (z == gz - 1) + FIRST_Z * (z == 0)
    ).astype(np.int64)
    # where a scheme asks what a kernel makes, the first row answers: one within the edges, and the last part
    found = sorted(set(kinds.tolist()), key=lambda kind: (kind & (LAST_X | LAST_Y), not kind & LAST_Z))
    row = np.zeros(16, np.uint32)
    row[found] = np.arange(len(found))
    code = [(tuple(variant(kind).ops),) * warps for kind in found]
    return warp_specialized(name, code, row[kinds], registers=registers, smem=smem, args=args)


def epilogue_rounds(ops: Loads, rows: int) -> list[Loads]:
    """Cut the stores of a tile, of which a warp has so many rows, into the rounds of CUTLASS's epilogue."""
    many = max(1, rows // ROUND)
    return [ops[len(ops) * i // many : len(ops) * (i + 1) // many] for i in range(many)]


def serial_epilogue(
    code: Code,
    slot: int,
    rounds: list[Loads],
    kind: int,
    work: Callable[[int], None],
    *,
    read: bool = False,
) -> None:
    """Add the stores of an epilogue, ``work(i)`` before those of round i, and the TB's turn around them.

    ``read``: the first part adds to C, too.
    """
    read = read or not kind & FIRST_Z
    if not kind & FIRST_Z:
        code.mark_tb_wait()
    for number, stores in enumerate(rounds):
        if read:
            for patterns in stores:
                code.load(slot, *patterns, bypass_l1=True, level=2)
        work(number)
        if read:
            code.wait(slot)
        for patterns in stores:
            code.store(slot + 1, *patterns, level=2)
    if not kind & LAST_Z:
        code.mark_tb_signal()
