"""Warp-specialized programs: each warp of a TB has its own op list.

A :class:`~pysim.Program` has one op list for all warps, and distinguishes TBs only by whether they are last
in x, y or z. Code that branches on the warp (``if (threadIdx.x < 72)``) or on the position in the grid (a
halo at the edge) is written here as rows of op lists, one list a warp. The core runs them like recorded code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError

from .ops import LoweredPrograms, add_variant, lane_table, struct_array
from .recorded_program import CodeTables, RecordedProgram
from .warp_program import Op

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

WarpOps = tuple[tuple[Op, ...], ...]


def warp_specialized(
    name: str,
    code: Sequence[WarpOps],
    tb_rows: NDArray[np.uint32] | None,
    *,
    registers: int,
    smem: int,
    args: int,
) -> RecordedProgram:
    """Return the program of a kernel from op lists ``code[row][warp]``.

    ``tb_rows``: uint32 (TBs,), the row of each TB; None: row 0. ``registers``: a thread; ``smem``: bytes a
    TB; ``args``: tensors that the kernel takes. Raises WorkloadError where rows have different numbers of
    warps, or a TB names a row that does not exist.
    """
    warps = len(code[0])
    if any(len(row) != warps for row in code):
        raise WorkloadError(f"program {name}: rows of different numbers of warps")
    if tb_rows is not None and (len(tb_rows) == 0 or int(tb_rows.max()) >= len(code)):
        raise WorkloadError(f"program {name}: a TB of a row that is not among {len(code)}")

    known: dict[tuple[int, int], CodeTables] = {}  # a kernel that is launched often is lowered once

    def lowered(values: Mapping[str, int]) -> CodeTables:
        longest = values["gpu.sm.block_max"], values["gpu.sm.block_tensor"]
        if longest not in known:
            known[longest] = lowered_for(*longest)
        return known[longest]

    def lowered_for(longest: int, tensor: int) -> CodeTables:
        made = LoweredPrograms()
        shared: dict[tuple[Op, ...], int] = {}
        entries = np.zeros((len(code), warps), np.uint32)
        seen: dict[object, int] = {}
        same: dict[int, int] = {}  # op lists that are one object need not be compared
        for at, row in enumerate(code):
            for warp, ops in enumerate(row):
                if id(ops) not in same:
                    if ops not in shared:
                        shared[ops] = add_variant(made, program, ops, seen, longest, tensor)
                    same[id(ops)] = shared[ops]
                entries[at, warp] = same[id(ops)]
        return CodeTables(
            struct_array("gs_op", made.ops),
            struct_array("gs_pattern", made.patterns),
            lane_table(made.lanes),
            entries,
            made.sems,
            made.boxes,
        )

    def rewritten(change: Callable[[tuple[Op, ...]], tuple[Op, ...]]) -> RecordedProgram:
        done: dict[int, tuple[Op, ...]] = {}
        for ops in (ops for row in code for ops in row):
            if id(ops) not in done:
                done[id(ops)] = change(ops)
        changed = [tuple(done[id(ops)] for ops in row) for row in code]
        return warp_specialized(name, changed, tb_rows, registers=registers, smem=smem, args=args)

    program = RecordedProgram(
        name,
        warps,
        registers,
        smem,
        args,
        lowered,
        tb_rows=tb_rows,
        op_lists=lambda row: code[row],
        rewrite=rewritten,
    )
    return program
