"""The addresses that the memory ops of a kernel's programs touch, op by op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .recorded_program import RecordedProgram
from .warp_program import LEVELS, OP, Op, Pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from .job import Kernel

    Ints = NDArray[np.int64]


MODES_OF = {OP["LOAD"]: ("read", "update"), OP["STORE"]: ("write", "update"), OP["REDUCE"]: ("update",)}
SAMPLED_STEPS = 8  # iterations of a loop in a sample, beside the last two


def tb_places(kernel: Kernel, tbs: Ints) -> Ints:
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
    last = tb_places(kernel, tbs) == np.array(kernel.grid) - 1
    return np.asarray(last @ np.array([1, 2, 4]), np.int64)


@dataclass(frozen=True, slots=True)
class Touch:
    """A memory op of one warp, or of all: it touches ``base`` + TB . ``by_tb`` + each of ``distances``.

    It is op ``number`` of the op list ``ops``; ``warp`` is -1 where all warps of the list run it.
    """

    ops: Sequence[Op]
    number: int
    op: Op
    pattern: Pattern
    warp: int
    base: int
    by_tb: Ints
    distances: Ints


def touches(kernel: Kernel, row: int, *, every: bool) -> Iterator[Touch]:
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
            counters = loop_counters(ops, number, every=every)
            own = len(op.patterns) > 1
            for warp in warps if own else [-1]:
                pattern = op.patterns[warp if own else 0]
                distances = _distances(op, pattern, counters, [warp] if own else warps)
                if distances.size:
                    base = kernel.args[pattern.arg].address + pattern.base
                    by_tb = np.array([pattern.bx, pattern.by, pattern.bz], np.int64)
                    yield Touch(ops, number, op, pattern, warp, base, by_tb, distances)


def loop_counters(ops: Sequence[Op], number: int, *, every: bool) -> list[Ints]:
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
