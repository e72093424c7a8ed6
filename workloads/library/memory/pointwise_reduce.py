"""Sums of PyTorch 2.11: all elements, each row, each column (``reduce_kernel``, setReduceConfig, Reduce).

The shape of a TB, and whether warps or TBs share an output, follow from the numbers of outputs and of inputs
of each. Where the inputs are contiguous a thread loads vectors of 16 B, each waited for before the next;
along columns it takes four neighbouring columns and four rows at a time. TBs that share an output write their
sums, and the last TB adds them (on the card the last one to end); a memset of their counters comes before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import Affine, Code, Op, Pattern, Sem
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.hopper import SMS
from pysim.workloads.library.memset import memset

from .pointwise_parts import LAST_X, LAST_Y, THREADS_SM, Work, flat, loads, paired, shuffles, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST = 512  # threads of a TB
UNROLL = 4  # vt0
LEAST_VALUES, MOST_VALUES = 16, 256  # of a thread: below, no more TBs share an output; above, they do
FROM = 128  # inputs above which vectors are loaded
COLUMNS = 4  # neighbouring outputs of a thread
REGISTERS = {1: 32, COLUMNS: 54}  # h200_library_pointwise.csv


@dataclass(frozen=True, slots=True)
class ReduceCost:
    """Instructions of a thread: ``begin`` and ``end`` of a sum, each load, and to ``share`` an output.

    ``load``: of four elements; ``partial``: of another TB's sums.
    """

    begin: Work
    load: Work
    end: Work
    share: Work
    partial: Work


@dataclass(frozen=True, slots=True)
class Reduction:
    """Launch of a sum.

    ``outputs`` and ``inputs`` (of each); ``by_rows``: inputs are contiguous. ``block``: threads in x and y.
    ``warps_share``: threads of y share an output. ``split``: TBs that share an output (grid in y).
    ``vector``: neighbouring elements of a load. ``apart``: inputs lie in planes of images, so that a thread
    computes the place of each element, and loads ``UNROLL`` single ones at a time.
    """

    outputs: int
    inputs: int
    by_rows: bool
    block: tuple[int, int]
    warps_share: bool
    split: int
    vector: int
    apart: bool = False

    @property
    def grid(self) -> tuple[int, int]:
        """TBs in x and y."""
        return -(-self.outputs // self.each), self.split

    @property
    def each(self) -> int:
        """Outputs of a TB; the last may have fewer."""
        across = 1 if self.by_rows else self.block[0] * COLUMNS
        return across * (1 if self.warps_share else self.block[1])

    @property
    def smem(self) -> int:
        """Bytes of shared memory, what the compiler reserves included."""
        x, y = self.block
        share = (y > 1 and self.warps_share) or (self.by_rows and x > WARP)
        return 16 + (x * y * 4 * (1 if self.by_rows else COLUMNS) if share else 0)


def _pow2(size: int) -> int:
    return 1 << (size.bit_length() - 1)


def reduction(
    outputs: int, inputs: int, item: int, by_rows: bool, sms: int = SMS, *, apart: bool = False
) -> Reduction:
    """Return the launch for so many sums of so many elements of ``item`` bytes, on a GPU of ``sms`` SMs."""
    fast, slow = (inputs, outputs) if by_rows else (outputs, inputs)
    vector, most = 1, MOST
    if by_rows and inputs > FROM and not apart:
        vector = 16 // item
        fast //= vector
    elif not by_rows:
        vector = next(v for v in (4, 2, 1) if outputs % v == 0)
        fast //= vector
        most //= vector
    x2, y2 = min(_pow2(fast), most), min(_pow2(slow), most)
    x = min(x2, WARP)
    y = min(y2, most // x)
    x = min(x2, most // y)
    step = x if by_rows else 1
    values = -(-inputs // step)
    share = values >= min(y * LEAST_VALUES, MOST_VALUES)
    if share:
        values = -(-inputs // (step * y))
    made = Reduction(outputs, inputs, by_rows, (x, y), share, 1, vector, apart)
    if not by_rows and vector != COLUMNS:
        raise WorkloadError(f"sum of columns: {outputs} columns: must be a multiple of {COLUMNS}")
    target = sms * (THREADS_SM // (x * y))
    if share and values >= MOST_VALUES and made.grid[0] <= target:
        some = min(-(-target // made.grid[0]), -(-values // LEAST_VALUES))
        split = max(some, -(-values // MOST_VALUES))
        made = Reduction(outputs, inputs, by_rows, (x, y), share, split, vector, apart)
    return made


def reduce_kernels(
    source: Tensor, target: Tensor, plan: Reduction, cost: ReduceCost, memory: Memory
) -> list[Kernel]:
    """Return the launches of a sum, a memset of counters first where TBs share it.

    ``source``: [outputs, inputs] if ``plan.by_rows``, else [inputs, outputs]. Raises WorkloadError for blocks
    that are narrower than a warp, columns that TBs cannot share in fours, and where the last loads of a
    thread would have masks that the template has not.
    """
    shared = plan.each
    if plan.block[0] < WARP or (not plan.by_rows and shared % COLUMNS):
        raise WorkloadError(
            f"sum of {plan.outputs} x {plan.inputs}: no template for blocks of {plan.block[0]} threads,"
            f" {shared} outputs a TB"
        )
    view = (
        Tensor(source.name, plan.outputs, plan.inputs, source.item, source.address)
        if plan.by_rows
        else source
    )
    out = flat(target)
    staging = memory.tensor("staging", plan.split, plan.outputs, 4) if plan.split > 1 else None
    args = (view, out) if staging is None else (view, out, staging)
    program = _program(plan, source.item, target.item, cost)
    kernel = Kernel(
        "reduce",
        program,
        (*plan.grid, 1),
        args,
        tuple(_accesses(plan, view, out, staging)),
        tb_semaphores=np.full(plan.grid[0], plan.split - 1, np.int64) if staging else None,
        tb_edges=_edges(plan) if staging else None,
    )
    if staging is None:
        return [kernel]
    counters = memory.tensor("counters", 1, 64, 4)  # TBs that have ended, of each x
    return [memset(counters), replace(kernel, accesses=(*kernel.accesses, whole(counters, "update")))]


def _edges(plan: Reduction) -> NDArray[np.int64]:
    """Return that the last TB of each x waits for those before it."""
    gx, gy = plan.grid
    x, y = np.meshgrid(np.arange(gx), np.arange(gy - 1), indexing="ij")
    return np.stack([(x + gx * (gy - 1)).ravel(), (x + gx * y).ravel()], axis=1).astype(np.int64)


def _turns(plan: Reduction) -> tuple[int, int, int]:
    """Return turns of all threads that share an output, threads with one more, and elements of a turn."""
    together = _sharing(plan) * plan.split * (plan.vector if plan.by_rows else 1)
    whole, rest = divmod(plan.inputs, together)
    if not plan.by_rows:
        return whole, rest, together
    if rest % plan.vector:
        raise WorkloadError(f"sum: {plan.inputs} elements: must be vectors of {plan.vector}")
    return whole, rest // plan.vector, together


def _accesses(plan: Reduction, view: Tensor, out: Tensor, staging: Tensor | None) -> list[Access]:
    gx, gy = plan.grid
    per_tb = plan.each
    whole, rest, together = _turns(plan)

    def place(tbs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        at = np.asarray(tbs, np.int64)
        return at % gx, at // gx

    def reads(turn: int, tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        x, y = place(tbs)
        first = np.minimum(x * per_tb, plan.outputs), np.minimum((x + 1) * per_tb, plan.outputs)
        part = together // gy
        begin = np.minimum(turn * together + y * part, plan.inputs)
        end = np.minimum(begin + part, plan.inputs) if gy > 1 else np.full_like(x, plan.inputs)
        return np.stack([*first, begin, end] if plan.by_rows else [begin, end, *first], axis=1)

    def sums(last: bool, tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        x, y = place(tbs)
        row = np.zeros_like(y) if last else y
        there = y == gy - 1 if last else np.ones_like(y, bool)
        end = np.where(there, gy if last and staging is not None else row + 1, row)
        return np.stack([row, end, x * per_tb, np.minimum((x + 1) * per_tb, plan.outputs)], axis=1)

    def result(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        x, y = place(tbs)
        there = (y == gy - 1).astype(np.int64)
        zero = np.zeros_like(x)
        return np.stack([zero, there, x * per_tb, np.minimum((x + 1) * per_tb, plan.outputs)], axis=1)

    turns = 1 if gy == 1 else whole + (rest > 0)
    made = [Access(view, "read", partial(reads, turn)) for turn in range(turns)]
    made.append(Access(out, "write", result))
    if staging is not None:
        made.append(Access(staging, "write", partial(sums, False)))
        made.append(Access(staging, "read", partial(sums, True)))
    return made


def _program(plan: Reduction, item: int, out: int, cost: ReduceCost) -> RecordedProgram:
    """Return the program; TBs differ in the loads of the last turn, which only some have."""
    whole, rest, _ = _turns(plan)
    gx, gy = plan.grid
    tb = np.arange(gx * gy, dtype=np.int64)
    x, y = tb % gx, tb // gx
    part = _sharing(plan)
    extra = np.clip(rest - y * part, 0, part)
    keys = np.stack([LAST_X * (x == gx - 1) + LAST_Y * (y == gy - 1), extra], axis=1)
    known, row = np.unique(keys, axis=0, return_inverse=True)
    warps = plan.block[0] * plan.block[1] // WARP
    code = [(_code(plan, item, out, cost, whole, int(bits), int(more)),) * warps for bits, more in known]
    registers = REGISTERS[1 if plan.by_rows else COLUMNS]
    args = 2 + (plan.split > 1)
    rows = row.reshape(-1).astype(np.uint32)
    return warp_specialized("reduce", code, rows, registers=registers, smem=plan.smem, args=args)


def _sharing(plan: Reduction) -> int:
    """Return the threads of a TB that share an output."""
    x, y = plan.block
    return (x if plan.by_rows else 1) * (y if plan.warps_share else 1)


@lru_cache(maxsize=1024)
def _code(
    plan: Reduction, item: int, out: int, cost: ReduceCost, whole: int, number: int, extra: int
) -> tuple[Op, ...]:
    """Return the code of a TB: ``whole`` loads of each thread, one more of the first ``extra``."""
    unroll = UNROLL if plan.apart or not plan.by_rows else 1
    code = Code()
    cost.begin.emit(code)
    rounds, more = divmod(whole, unroll)

    def turn(turns: range, step: int, threads: int) -> None:
        for at in turns:
            loads(code, 0, [_inputs(plan, item, at, number, threads, step)], level=0)
        code.wait(0)
        cost.load.times(len(turns) * max(1, plan.vector // 4)).emit(code)

    if rounds:
        mark = code.loop_begin()
        turn(range(unroll), unroll, 0)
        code.loop_end(mark, rounds)
    if more:
        turn(range(rounds * unroll, whole), 0, 0)
    if extra:
        turn(range(whole, whole + 1), 0, extra)
    _combine(code, plan)
    if plan.split > 1:
        _share(code, plan, number, cost)
    if plan.split == 1 or number & LAST_Y:
        cost.end.emit(code)
        code.store(1, *_outputs(plan, 1, out, number, 0), level=2)
    code.exit()
    return tuple(code.ops)


def _inputs(
    plan: Reduction, item: int, turn: int, number: int, threads: int, step: int
) -> tuple[Pattern, ...]:
    """Return the load of a turn; ``threads`` that share an output take part (0: all)."""
    x, y = plan.block
    gx, _ = plan.grid
    outputs = plan.outputs
    pitch = (plan.inputs if plan.by_rows else outputs) * item
    wide = plan.vector * item
    along = wide if plan.by_rows else pitch  # bytes from an input of a thread to that of the next
    part = _sharing(plan)
    per_tb = plan.each
    left = outputs - (gx - 1) * per_tb if number & LAST_X else per_tb
    made = []
    for warp in range(x * y // WARP):
        tx, ty = warp * WARP % x, warp * WARP // x
        if plan.by_rows:
            mine, first = (tx + ty * x, 0) if plan.warps_share else (tx, ty)
            lanes = WARP if first < left else 0
            lanes = min(lanes, max(0, threads - mine)) if threads else lanes
            bx, place = per_tb * pitch, first * pitch
        else:
            mine, first = (ty, tx * COLUMNS) if plan.warps_share else (0, (tx + ty * x) * COLUMNS)
            lanes = min(WARP, max(0, (left - first) // COLUMNS))
            lanes = 0 if threads and mine >= threads else lanes
            bx, place = per_tb * item, first * item
        base = place + (mine + turn * part * plan.split) * along
        move = step * part * plan.split * along
        made.append(
            paired(
                Pattern(
                    0, wide, base=base, bx=bx, by=part * along, step=move, s0=wide, lanes=(1 << lanes) - 1
                )
            )
        )
    return tuple(made) if any(p.lanes for p in made) else ()


def _outputs(plan: Reduction, arg: int, item: int, number: int, by: int) -> tuple[Pattern, ...]:
    """Return the stores of a TB's outputs by their threads."""
    x, y = plan.block
    gx, _ = plan.grid
    per_tb = plan.each
    left = plan.outputs - (gx - 1) * per_tb if number & LAST_X else per_tb
    patterns = []
    for warp in range(x * y // WARP):
        tx, ty = warp * WARP % x, warp * WARP // x
        if plan.by_rows:
            there = tx == 0 and (ty == 0 or not plan.warps_share) and ty < left
            store = Pattern(arg, item, base=ty * item, bx=per_tb * item, by=by, lanes=int(there))
            patterns.append(paired(store))
            continue
        col = tx * COLUMNS if plan.warps_share else (tx + ty * x) * COLUMNS
        lanes = min(WARP, max(0, (left - col) // COLUMNS)) * (ty == 0 or not plan.warps_share)
        wide = COLUMNS * item
        patterns.append(
            Pattern(arg, wide, base=col * item, bx=per_tb * item, by=by, s0=wide, lanes=(1 << lanes) - 1)
        )
    return tuple(patterns)


def _combine(code: Code, plan: Reduction) -> None:
    """Add the sums of threads: halves of x through shared memory down to a warp, shuffles; halves of y."""
    x, y = plan.block
    wide = 1 if plan.by_rows else COLUMNS

    def halve() -> None:
        code.compute(smem=wide, smem_ops=1, control=2, int=4, chain=4)
        code.barrier()
        code.compute(smem=wide, smem_ops=1, fp32=wide, chain=23)

    if plan.by_rows:
        while x > WARP:
            halve()
            x //= 2
        shuffles(code, 1)
    if plan.warps_share:
        while y > 1:
            halve()
            y //= 2


def _share(code: Code, plan: Reduction, number: int, cost: ReduceCost) -> None:
    """Write the TB's sums and count it; the last TB reads all sums and adds them."""
    code.store(1, *_outputs(plan, 2, 4, number, plan.outputs * 4), level=2)
    code.wait(1)
    code.barrier()
    flag = Sem(row=Affine(bx=1))
    if not number & LAST_Y:
        code.mark_tb_signal(flag)
        return
    code.mark_tb_wait(flag)
    cost.share.emit(code)
    x, y = plan.block
    threads = x * y if plan.by_rows else y
    pitch = plan.outputs * 4
    left = plan.outputs - (plan.grid[0] - 1) * plan.each if number & LAST_X else plan.each
    for first in range(0, plan.split, threads):
        patterns = []
        for warp in range(x * y // WARP):
            tx, ty = warp * WARP % x, warp * WARP // x
            if plan.by_rows:
                lanes = min(max(plan.split - first - (tx + ty * x), 0), WARP)
                at = (first + tx + ty * x) * pitch
                patterns.append(
                    Pattern(
                        2, 4, base=at, bx=pitch if plan.outputs > 1 else 0, s0=pitch, lanes=(1 << lanes) - 1
                    )
                )
            else:
                at = (first + ty) * pitch + tx * COLUMNS * 4
                lanes = min(WARP, max(0, left // COLUMNS - tx)) if first + ty < plan.split else 0
                patterns.append(Pattern(2, 16, base=at, bx=x * COLUMNS * 4, s0=16, lanes=(1 << lanes) - 1))
        if any(p.lanes for p in patterns):
            code.load(0, *patterns, level=2)
            code.wait(0)
            cost.partial.emit(code)
    _combine(code, plan)
