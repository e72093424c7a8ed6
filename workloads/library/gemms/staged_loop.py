"""The main loop and the epilogue of kernels written for Turing and Ampere, of any operands.

Ampere's (:func:`async_loop`): cp.async fills ``stages`` tiles in shared memory. At the start of a k-step a
warp waits for its copies of that step and for the TB, then copies of the step ``stages - 1`` later are issued
among the multiplies. Elements of less than 4 B have no cp.async, so Turing's loop is used
(:func:`register_loop`): a step's tile is loaded to registers while the one before is multiplied, then stored
to shared memory.

The caller says with which accesses (patterns, one a warp or one for all) a step's tiles are loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.isa import UNNEEDED
from pysim.workloads.kernels.split_k_serial import FIRST_Z, LAST_Z, serial_epilogue
from pysim.workloads.kernels.tiles import WARP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pysim.program.warp_program import Code, Pattern

    from .staged_tile import StagedTile

    Accesses = Sequence[tuple[Pattern, ...]]
    # of a k-step, counted from the TB's first; `step` of a pattern: how far a step moves it
    Copies = Callable[[int], Accesses]

MAX_STEPS = 65535
LDS_LATENCY, LDSM_LATENCY = 23, 29  # cycles, h200_micro.json and h200_steps.csv
FFMA_LATENCY, MMA_LATENCY = 4, 25
WIDE = 16  # bytes a lane of the widest copy
# Cycles for which a narrow copy holds shared memory longer than the model's LSU says (:func:`_held`), fitted
# to half `fit` of the sweep. PIECES: lanes 16 B apart, which meet in 8 banks; NARROW: each line of others
PIECES, NARROW = 4, 2
LATER = 7  # eighths of a cycle a line; fitted to half `fit`: loads of 2 B a lane, 16 B apart, from 8 lines
LINE = 128  # bytes that shared memory moves a cycle


@dataclass(frozen=True, slots=True)
class Cost:
    """What the code of a family costs besides loads and multiplies.

    ``begin``: cycles of a TB before its first load; ``copy``: integer instructions of a copy (its predicate
    and address); ``step``: of a k-step (slots, compare, branch); ``late``: cycles of the fp32 pipe lost of
    1,000 FFMA, to operands in one register bank; ``end``: cycles of a TB between its last multiply and its
    stores; ``reduce``: integer instructions of a reduction in L2.
    """

    begin: int
    copy: int
    step: int
    late: int
    end: int
    reduce: int = 0


def async_loop(code: Code, tile: StagedTile, cost: Cost, steps: int, whole: int, copies: Copies) -> None:
    """Multiply ``steps`` k-steps; of the first ``whole`` all copies are alike, a step apart.

    Raises WorkloadError for no steps or too many, and fewer than two stages.
    """
    if not 0 < steps <= MAX_STEPS or tile.stages < 2:
        raise WorkloadError(f"tile {tile.name}: {steps} k-steps: must be from 1 to {MAX_STEPS}")
    ahead = tile.stages - 1  # k-steps; a slot each: a step's is empty when the step so much later is fetched

    def slot(step: int) -> int:
        return (step + ahead - 1) % ahead  # a loop from step 1 on counts slots from 0

    def fetch(step: int, share: int, of: int) -> None:
        """Add a share of the copies of a step; -1: of the step that a loop from step 1 on fetches."""
        loop = step < 0
        ops = copies(1 if loop else step)
        part = ops[len(ops) * share // of : len(ops) * (share + 1) // of]
        held = sum(_held(patterns) for patterns in part)
        if part:
            code.compute(int=cost.copy * len(part), smem=held, smem_back=UNNEEDED)
        for patterns in part:
            wide = patterns[0].width == WIDE  # cp.async.cg; narrower ones go through L1
            if loop:
                code.load(0, *patterns, bypass_l1=wide, stages=ahead, ahead=ahead, smem=1)
            else:
                code.load(slot(step), *patterns, bypass_l1=wide, level=2, smem=1)

    def multiply(number: int) -> None:
        if number < 0:
            code.wait(0, stages=ahead)
        else:
            code.wait(slot(number))
        code.barrier()
        for group in range(tile.groups):
            if number < 0 or number + ahead < steps:
                fetch(-1 if number < 0 else number + ahead, group, tile.groups)
            _group(code, tile, cost, first=number == 0 and group == 0, begins=group == 0)

    for number in range(min(ahead, steps)):
        fetch(number, 0, 1)
    multiply(0)
    looped = max(0, whole - tile.stages)
    if looped:
        mark = code.loop_begin()
        multiply(-1)
        code.loop_end(mark, looped)
    for number in range(1 + looped, steps):
        multiply(number)
    _last(code, tile, cost)


def register_loop(code: Code, tile: StagedTile, cost: Cost, steps: int, whole: int, copies: Copies) -> None:
    """Multiply as :func:`async_loop` does; loads pass through registers, one step ahead."""
    if not 0 < steps <= MAX_STEPS:
        raise WorkloadError(f"tile {tile.name}: {steps} k-steps: must be from 1 to {MAX_STEPS}")

    moved = (tile.tm + tile.tn) * tile.tk * tile.item

    def fetch(step: int, *, loop: bool = False) -> None:
        ops = copies(step)
        first: list[tuple[Pattern, ...]] = []
        held = []
        for arg in dict.fromkeys(patterns[0].arg for patterns in ops):
            mine = [patterns for patterns in ops if patterns[0].arg == arg]
            # a lane's pieces of 16 B: those after the first are in L1 or on their way
            pieces = WIDE // mine[0][0].width if mine[0][0].s0 == WIDE else 1
            cut = -(-len(mine) // pieces)
            first += mine[:cut]
            held += [-(-WARP // patterns[0].minor) * LATER // 8 for patterns in mine[cut:]]
        code.compute(int=cost.copy * len(ops), smem=sum(held), smem_ops=len(held), smem_back=UNNEEDED)
        for patterns in first:
            code.load(0, *patterns, level=0 if loop else 2)

    def store() -> None:
        code.wait(0)
        if tile.stages == 1:
            code.barrier()  # all have read the only tile
        vectors = -(-moved // (WIDE * WARP * tile.count))
        code.compute(smem=WIDE * WARP // LINE * vectors, smem_ops=vectors, chain=4)
        code.barrier()

    def multiply() -> None:
        for group in range(tile.groups):
            _group(code, tile, cost, first=group == 0, begins=group == 0)
        _last(code, tile, cost)

    fetch(0)
    store()
    looped = max(0, whole - 1)
    if looped:
        mark = code.loop_begin()
        fetch(1, loop=True)
        multiply()
        store()
        code.loop_end(mark, looped)
    for number in range(1 + looped, steps):
        fetch(number)
        multiply()
        store()
    multiply()


def _held(patterns: tuple[Pattern, ...]) -> int:
    """Return for how many cycles more than a wide copy's a copy holds shared memory.

    Measured on an H200: copies of 4 B a lane from one line take 4.4 cycles, from four lines 7.2 to 8.8, those
    of 16 B a lane 6.4 to 9.8 (16 warps, nothing else); the LSU of the model takes 3.0, 4.5 and 7.4 to 8.7.
    """
    first = patterns[0]
    if first.width == WIDE:
        return 0
    if first.s0 == WIDE:
        return PIECES
    return NARROW * -(-WARP // first.minor)


def _group(code: Code, tile: StagedTile, cost: Cost, *, first: bool, begins: bool) -> None:
    """Load the fragments of a group, and multiply those of the group before; a ``first`` has none."""
    work = tile.work
    math = 0 if first else work.fp32
    if work.rounds and not first:
        code.compute(int=work.rounds, chain=FFMA_LATENCY)
    code.compute(
        smem=work.wavefronts,
        smem_ops=work.loads,
        smem_back=None if first else work.wavefronts,
        chain=(LDSM_LATENCY if work.tensor else LDS_LATENCY) if first else 0,
        int=cost.step if begins else 0,
        control=int(begins),
        fp32=math,
        conflicts=math * cost.late // 1000,
        tensor=0 if first else work.tensor,
    )


def _last(code: Code, tile: StagedTile, cost: Cost) -> None:
    """Multiply the last group."""
    work = tile.work
    if work.rounds:
        code.compute(int=work.rounds, chain=FFMA_LATENCY)
    code.compute(
        fp32=work.fp32,
        tensor=work.tensor,
        conflicts=work.fp32 * cost.late // 1000,
        chain=MMA_LATENCY if work.tensor else FFMA_LATENCY,
    )


def epilogue(
    code: Code, tile: StagedTile, cost: Cost, stores: Accesses, kind: int = FIRST_Z | LAST_Z
) -> None:
    """Exchange the sums through shared memory and store them, a few rows at a time, or add them to C at once.

    ``kind``: which part of a split K a TB is (``split_k_serial``).
    """
    # TBs that add their part to C load it all before the first exchange: with a load a round, chains of 8
    # parts are a third too long (h200_library_gemm.csv)
    rounds = 1 if kind != FIRST_Z | LAST_Z else max(1, min(len(stores), tile.outputs // 4))
    each = -(-tile.outputs // rounds)
    waves = max(1, each * 4 * WARP // LINE)
    parts = [list(stores[len(stores) * i // rounds : len(stores) * (i + 1) // rounds]) for i in range(rounds)]

    def exchange(at: int) -> None:
        code.barrier()
        code.compute(smem=waves, smem_ops=-(-each // 2), int=4, chain=4)
        code.barrier()
        code.compute(smem=waves, smem_ops=-(-each // 4), chain=LDS_LATENCY)
        code.compute(fp32=each, int=4 * len(parts[at]) + 4, control=1)

    code.delay(cost.end)
    serial_epilogue(code, 0, parts, kind, exchange)


def atomic_epilogue(code: Code, tile: StagedTile, cost: Cost, reduces: Accesses) -> None:
    """Add the sums to C by reductions in L2, straight from registers."""
    code.delay(cost.end)
    for patterns in reduces:
        code.compute(int=cost.reduce, chain=4)
        code.reduce(1, *patterns, level=2)
