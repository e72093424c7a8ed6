"""Pointwise kernels of recurrent cells, one thread an element of [batch, hidden]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Memory, Mode, Tensor
from pysim.program.warp_program import Pattern

from .blocks import Block
from .blocks.cells import GRU, LSTM
from .code import Launch, Warp, launch
from .stream import THREADS, WARPS, positive

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _cell(
    name: str,
    hidden: int,
    batch: int,
    gates: int,
    block: Block,
    order: tuple[tuple[int, int], ...],
    registers: int,
) -> Launch:
    """Make a cell's kernel; ``order`` are (argument, gate) of the memory ops as the SASS has them.

    Arguments 0 and 1 are the results of the recurrent and the input GEMM [batch, gates * hidden], the others
    [batch, hidden].
    """
    positive(name, hidden=hidden, batch=batch)
    if hidden % THREADS:
        raise WorkloadError(f"{name}: hidden = {hidden}: must be a multiple of {THREADS}")
    memory = Memory()
    args = [memory.tensor(label, batch, gates * hidden, 4) for label in ("G", "X")]
    states = max(arg for arg, _ in order) - 1
    args += [memory.tensor(f"state{i}", batch, hidden, 4) for i in range(states)]
    across = hidden // THREADS
    w = Warp()

    def at(op: str, _offset: int) -> tuple[Pattern, ...]:
        arg, gate = order[int(op)]
        pitch = 4 * hidden * (gates if arg < 2 else 1)
        return (Pattern(arg, 4, base=4 * hidden * gate, bx=4 * THREADS, by=pitch, warp=128, s0=4),)

    w.run(block, at)

    def products(tensor: Tensor, mode: Mode, gate: int) -> Access:
        def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
            row, col = np.asarray(tbs, np.int64) // across, np.asarray(tbs, np.int64) % across
            first = gate * hidden + col * THREADS
            return np.stack([row, row + 1, first, first + THREADS], axis=1)

        return Access(tensor, mode, regions)

    writes = {arg for arg, _ in order[2 * gates :]} - {2}
    accesses = [products(args[arg], "write" if arg in writes else "read", gate) for arg, gate in order]
    return launch(
        name, (across, batch, 1), [[w]], None, args, accesses, warps=WARPS, registers=registers
    )  # fmt: skip


def gru_cell(hidden: int = 1536, batch: int = 32) -> Launch:
    """GRU cell: h' = (1 - z) n + z h of the recurrent GEMM's G and the input GEMM's X."""
    order = ((0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2), (2, 0), (3, 0))
    return _cell("gru_cell", hidden, batch, 3, GRU["all"], order, 18)


def lstm_cell(hidden: int = 1536, batch: int = 32) -> Launch:
    """LSTM cell: c' and h' of the GEMMs' G and X and the state c."""
    order = ((1, 0), (0, 0), (1, 1), (0, 1), (1, 2), (1, 3), (0, 3), (0, 2), (2, 0), (3, 0), (4, 0))
    return _cell("lstm_cell", hidden, batch, 4, LSTM["all"], order, 22)
