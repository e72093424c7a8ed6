"""cuDNN's persistent LSTM in fp16 (``ampere_lstm_tile16``): one kernel, weights stay on the SMs.

A thread block (TB) has 16 units, whose rows of the four gates it keeps in registers and shared memory; grids
of the sweep: H / 16 TBs of 256 threads. It takes 16 sequences at a time (time is proportional to batch / 16,
and the same for 256 and 512 units: it is a chain of latencies). A step loads the state of all units, which
all TBs made, multiplies, adds the sums of its warps through shared memory, computes the cells and stores
them. A kernel before fills the states with a value that none has, so that a TB sees when a state is there;
here a semaphore of the step says so. Forward, a group of 16 sequences waits for the one before; backward,
with the gates' gradients for the state, for its own step before (grids are H / 12.8 TBs, we make H / 16).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Affine, Code, Program, Sem
from pysim.workloads.kernels.tiles import Tile, tile_ops

from .rnn_cells import Field, cell_kernel, clear

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .recurrent import Recurrent

    Table = NDArray[np.int64]

UNITS, SEQUENCES, WARPS, ITEM = 16, 16, 8, 2
LINE = 32  # semaphores a line: those of a step have a line of their own
LDSM_LATENCY, MMA_LATENCY = 29, 25  # cycles
GATES, MOST_BATCH = 4, 64


@dataclass(frozen=True)
class Chain:
    """Cycles of a turn that are neither loads nor multiplies: the chain of a cell.

    Fitted to kernel times of the sweep, half ``fit``. ``alone``: of the kernel that runs
    backward for 16 sequences (``bp_smallB``).
    """

    forward: int = 20
    backward: int = 800
    alone: int = 2900


CHAIN = Chain()


@dataclass(frozen=True, slots=True)
class _Case:
    """``wide``: columns of the state that a step multiplies: H forward, 4 H backward.

    ``turns``: groups of sequences times steps; each needs the state that the one ``lag`` turns before made.
    ``keeps``: the gates are stored where the inputs were, for the pass backward.
    """

    hidden: int
    wide: int
    turns: int
    lag: int
    registers: int
    smem: int
    chain: int
    keeps: bool = False


@lru_cache(maxsize=64)
def _program(case: _Case) -> Program:
    """Arguments: weights, values of all steps that a TB adds, states."""
    code = Code()
    code.compute(int=60, control=4, chain=300)
    pitch = case.hidden * ITEM
    rows = GATES * UNITS
    tile = Tile(0, pitch, ITEM, rows, case.hidden, bx=rows * pitch)
    for patterns in tile_ops(tile, WARPS, 16, (rows, case.hidden)):
        code.load(0, *patterns, level=2)
    code.wait(0)
    code.barrier()

    def step(level: int, number: int) -> None:
        inputs = Tile(
            1, GATES * pitch, ITEM, SEQUENCES, UNITS, bx=UNITS * ITEM, step=SEQUENCES * GATES * pitch
        )
        for gate in range(GATES):
            base = gate * pitch + number * inputs.step
            for patterns in tile_ops(inputs, WARPS, ITEM, (SEQUENCES, UNITS), base):
                code.load(1, *patterns, level=level)
        state = Tile(2, case.wide * ITEM, ITEM, SEQUENCES, case.wide, step=SEQUENCES * case.wide * ITEM)
        for patterns in tile_ops(state, WARPS, 16, (SEQUENCES, case.wide), number * state.step):
            code.load(0, *patterns, bypass_l1=True, level=level)
        if number == case.lag:  # polls of the state are its loads
            code.mark_tb_wait(Sem(row=Affine(step=1), stride=LINE), level=level)
        code.wait(0)
        deep = case.wide // WARPS // 16  # groups of 16 of k that are a warp's
        units = GATES * UNITS * case.hidden // case.wide
        code.compute(smem=4 * deep, smem_ops=deep, chain=LDSM_LATENCY)
        code.compute(tensor=max(1, units // 16 * 2 * deep), chain=MMA_LATENCY)
        code.compute(smem=8, smem_ops=4, chain=LDSM_LATENCY)
        code.barrier()
        code.compute(smem=8, smem_ops=8, fp32=8, chain=LDSM_LATENCY)
        code.wait(1)
        code.compute(fp32=60, sfu=10, int=20, chain=case.chain)
        out = Tile(
            2, case.wide * ITEM, ITEM, SEQUENCES, UNITS, bx=UNITS * ITEM, step=SEQUENCES * case.wide * ITEM
        )
        for part in range(case.wide // case.hidden):
            base = (number + case.lag) * out.step + part * pitch
            for patterns in tile_ops(out, WARPS, ITEM, (SEQUENCES, UNITS), base):
                code.store(2, *patterns, level=level)
        if case.keeps:
            for gate in range(GATES):
                base = gate * pitch + number * inputs.step
                for patterns in tile_ops(inputs, WARPS, ITEM, (SEQUENCES, UNITS), base):
                    code.store(2, *patterns, level=level)
        code.mark_tb_signal(Sem(row=Affine(base=number, step=1), stride=LINE), level=level)

    for number in range(min(case.lag, case.turns)):
        step(2, number)
    if case.turns > case.lag:
        mark = code.loop_begin()
        step(0, case.lag)
        code.loop_end(mark, case.turns - case.lag)
    code.exit()
    return Program("persistent_lstm", (tuple(code.ops),), WARPS, case.registers, case.smem, 3)


def _weights(hidden: int, tbs: Table) -> Table:
    zero, first = np.zeros_like(tbs), tbs * GATES * UNITS
    return np.stack([first, first + GATES * UNITS, zero, zero + hidden], 1)


def _columns(rows: tuple[int, int], first: int, wide: int, tbs: Table) -> Table:
    """Return ``wide`` columns (0: a TB's units) from ``first`` on, of some rows."""
    zero = np.zeros_like(tbs)
    col = zero + first if wide else first + tbs * UNITS
    return np.stack([zero + rows[0], zero + rows[1], col, col + (wide or UNITS)], 1)


def _kernel(name: str, case: _Case, w: Tensor, values: Tensor, state: Tensor) -> Kernel:
    tbs, rows, hidden = case.hidden // UNITS, case.turns * SEQUENCES, case.hidden
    first = case.lag * SEQUENCES
    accesses = [Access(w, "read", partial(_weights, hidden))]
    accesses += [
        Access(values, "read", partial(_columns, (0, rows), gate * hidden, 0)) for gate in range(GATES)
    ]
    if case.keeps:
        accesses += [
            Access(values, "write", partial(_columns, (0, rows), gate * hidden, 0)) for gate in range(GATES)
        ]
    accesses.append(Access(state, "read", partial(_columns, (0, rows), 0, case.wide)))
    accesses += [
        Access(state, "write", partial(_columns, (first, rows + first), part * hidden, 0))
        for part in range(case.wide // hidden)
    ]
    flags = np.zeros((case.turns, LINE), np.int64)
    flags[:, 0] = tbs
    return Kernel(
        name, _program(case), (tbs, 1, 1), (w, values, state), tuple(accesses),
        tb_semaphores=flags.reshape(-1), cooperative=True,
    )  # fmt: skip


def check_persistent(p: Recurrent) -> None:
    """Raise WorkloadError for units that warps cannot share, and batches that another kernel runs."""
    if p.hidden % (WARPS * 16) or p.batch % SEQUENCES or p.batch > MOST_BATCH:
        raise WorkloadError(
            f"persistent LSTM: {p.hidden} units, batch {p.batch}: a multiple of 128 and 16, 32, 48 or 64;"
            " larger batches have two kernels of another kind at once"
        )


def persistent_lstm(p: Recurrent, w: Tensor, gates: Tensor, memory: Memory) -> tuple[list[Kernel], Tensor]:
    """Return the kernels of all steps forward, the fill of the states and the LSTM, and all states.

    The states, [16 + steps * batch, H], begin with the first of each sequence of a group.

    ``gates``: [steps * batch, 4 H] of the inputs. Raises WorkloadError as :func:`check_persistent` does.
    """
    check_persistent(p)
    turns = p.steps * p.batch // SEQUENCES
    state = memory.tensor("states", (turns + 1) * SEQUENCES, p.hidden, ITEM)
    case = _Case(p.hidden, p.hidden, turns, 1, 144, 97280, CHAIN.forward, p.direction != "forward_inference")
    return [clear("clear_states", state), _kernel("persistent_lstm", case, w, gates, state)], state


def persistent_back(
    p: Recurrent, w: Tensor, gates: Tensor, dy: Field, memory: Memory
) -> tuple[list[Kernel], Tensor]:
    """Return the kernels of all steps backward, and the gradients of the gates, [steps * batch, 4 H].

    ``dy``: gradients of the outputs, of which the first step's are copied; the others' loads are left out.
    """
    lag, wide = p.batch // SEQUENCES, GATES * p.hidden
    turns = p.steps * lag
    state = memory.tensor("dgates", (turns + lag) * SEQUENCES, wide, ITEM)
    first = memory.tensor("dhy", p.batch, p.hidden, ITEM)
    init = cell_kernel("rnn_copy", [dy], [Field(first)], (p.batch, p.hidden), 1, p.cost)
    case = _Case(p.hidden, wide, turns, lag, 110, 77824, CHAIN.backward if lag > 1 else CHAIN.alone)
    kernels = [clear("clear_dgates", state), init, _kernel("persistent_lstm_back", case, w, gates, state)]
    last = cell_kernel("rnn_copy", [Field(first)], [Field(first)], (p.batch, p.hidden), 1, p.cost)
    done = Tensor("dgates", turns * SEQUENCES, wide, ITEM, state.address + lag * SEQUENCES * wide * ITEM)
    return [*kernels, last], done
