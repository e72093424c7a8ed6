"""cuDNN's backward attention kernel for Hopper: persistent, warp-specialised, wgmma and TMA.

A tile is 128 keys of a plane with their values, which stay in shared memory; a step is 64 queries. The
producer warp loads Q and dO of each step. Each of the two consumer groups has 64 keys: S^T = K Q^T and
dP^T = V dO^T, then P and dS in registers and shared memory, dV += P^T dO and dK += dS^T Q; with dS of both
groups, each computes half of the columns of dQ and adds it to fp32 sums in memory by reductions of a line
each. Sizes are those in the kernels' names and launches (``64x64x128_1x4x1``, one TB an SM); the code is not
public. That the reductions are no bulk copies follows from the times: steps with bulk copies are 480 cycles
(d 64) and 870 (d 128) too short, and a warp's 16 and 32 reductions take 410 and 820.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.program.job import Kernel, Tensor
from pysim.program.pipelined_code import PipelinedCode, Ring
from pysim.program.warp_program import Pattern

from .attention_flash import MASK_INTS
from .attention_flash_backward import INTS_REDUCE, REDUCE_GAP
from .attention_hopper import BEGIN
from .attention_persistent import (
    GROUPS,
    ROWS,
    Roles,
    Touched,
    Turn,
    box,
    deal,
    drop,
    multiply,
    persistent_program,
    touched,
    turn_accesses,
)
from .attention_problem import Attention, Planes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pysim.program.warp_program import Op

QUERIES, STAGES, REGISTERS = 64, 2, 168
SMEM = {64: 152576, 128: 216064}  # B
Q_FULL, Q_EMPTY, DO_FULL, DO_EMPTY = (
    Ring(0, STAGES, 3),
    Ring(STAGES, STAGES, GROUPS),
    Ring(2 * STAGES, STAGES, 1),
    Ring(3 * STAGES, STAGES, GROUPS),
)
HALF = ROWS // 2
SCORES = HALF * QUERIES // 128  # of a thread
# Cycles of a consumer for a step and for a tile besides what is counted: waits of code that is not public;
# found with ten rows of both halves in sight.
STEP, STEP_FIRST, COLD, TILE, MASK = 650, 1050, 2200, 3200, 600


class _Writer:
    """Writes the code of the warps of a TB."""

    def __init__(self, problem: Attention, tensors: Mapping[int, Planes], dropped: bool) -> None:
        self.p, self.tensors, self.dropped = problem, tensors, dropped

    def begin(self) -> PipelinedCode:
        """Return code up to the barrier before the first load."""
        code = PipelinedCode()
        code.compute(int=20, chain=0)
        code.delay(BEGIN)
        code.barrier()
        return code

    def idle(self) -> tuple[Op, ...]:
        """Return the code of a warp with nothing to do."""
        code = self.begin()
        code.exit()
        return tuple(code.ops)

    def producer(self, turns: list[Turn]) -> tuple[Op, ...]:
        """Return the loads of all tiles."""
        code = self.begin()
        q, k, v, do = (self.tensors[arg] for arg in range(4))
        only = code.turn_begin()
        for turn in turns:
            plane, base = turn.plane, turn.first * QUERIES
            keys, third = turn.x * ROWS, QUERIES // 4
            code.ring_wait(Q_EMPTY, emptied=True)
            code.bulk_load(Q_FULL, box(1, k, plane, keys, ROWS))
            code.bulk_load(Q_FULL, box(2, v, plane, keys, ROWS))
            code.bulk_load(Q_FULL, box(0, q, plane, base, QUERIES))
            code.ring_wait(DO_EMPTY, emptied=True)
            code.bulk_load(DO_FULL, box(3, do, plane, base, QUERIES))
            code.advance()
            step = code.loop_begin()
            code.ring_wait(Q_EMPTY, emptied=True)
            for first, rows in ((0, 2 * third), (2 * third, third), (3 * third, third)):
                code.bulk_load(Q_FULL, box(0, q, plane, base + QUERIES + first, rows, QUERIES))
            code.ring_wait(DO_EMPTY, emptied=True)
            code.bulk_load(DO_FULL, box(3, do, plane, base + QUERIES, QUERIES, QUERIES))
            code.advance()
            code.loop_end(step, turn.steps - 1)
        code.turn_end(only)
        code.exit()
        return tuple(code.ops)

    def step(
        self, code: PipelinedCode, first: int, group: int, leads: bool, more: int, *, masked: bool
    ) -> None:
        """Add a step of a consumer warp; its queries begin at row ``first`` (+ 64 a step of a loop)."""
        d = self.p.d
        code.ring_wait(Q_FULL)
        multiply(code, QUERIES, d // 16)
        code.ring_wait(DO_FULL)
        multiply(code, QUERIES, d // 16)
        code.multiply_wait(1)
        if masked:
            code.compute(int=MASK_INTS * SCORES, chain=4)
            code.delay(MASK)
        code.compute(fp32=SCORES, sfu=SCORES, int=SCORES // 2, chain=20)
        if self.dropped:
            drop(code, SCORES)
        code.delay(more)
        code.multiply_wait(0)
        code.compute(fp32=2 * SCORES, int=SCORES // 2, chain=4)
        code.compute(smem=SCORES // 2, smem_ops=SCORES // 4, chain=4)
        code.named_barrier(1, 4 * GROUPS)
        multiply(code, d, QUERIES // 16)
        multiply(code, d // 2, ROWS // 16)
        multiply(code, d, QUERIES // 16)
        code.multiply_wait(1)
        if leads:
            code.wait_operands_read()
            code.ring_arrive(DO_EMPTY)
        self.reductions(code, first, group)
        code.multiply_wait(0)
        if leads:
            code.ring_arrive(Q_EMPTY)
        code.advance()

    def reductions(self, code: PipelinedCode, first: int, group: int) -> None:
        """Add a group's half of dQ to its sums, a line of a warp at a time."""
        pitch = self.p.d * 4
        lines = QUERIES * pitch // 128 // GROUPS  # of a group
        warps = 4
        code.compute(int=INTS_REDUCE * lines // warps, chain=0)
        for line in range(0, lines, warps):
            # warps of the group are 4 to 7, or 8 to 11, of the TB
            base = first * pitch + (group * lines + line - warps * (1 + group)) * 128
            pattern = Pattern(4, 4, base=base, warp=128, step=QUERIES * pitch, s0=4)
            code.reduce(0, pattern)
            code.delay(REDUCE_GAP)

    def consumer(self, turns: list[Turn], group: int, leads: bool) -> tuple[Op, ...]:
        """Return the code of a warp of a consumer group; one of each group ``leads``."""
        p, code = self.p, self.begin()
        only = code.turn_begin()
        code.delay(COLD)
        for turn in turns:
            first = turn.plane * p.q + turn.first * QUERIES
            masks = ROWS // QUERIES if p.causal else 0
            more = STEP_FIRST if turn is turns[0] else STEP
            for begin, steps in ((0, masks), (masks, turn.steps - masks)):
                if steps:
                    step = code.loop_begin()
                    self.step(code, first + begin * QUERIES, group, leads, more, masked=begin < masks)
                    code.loop_end(step, steps)
            self.results(code, turn, group, leads)
        code.turn_end(only)
        if leads:
            code.wait_operands_read()
        code.exit()
        return tuple(code.ops)

    def results(self, code: PipelinedCode, turn: Turn, group: int, leads: bool) -> None:
        """Add the stores of a group's dK and dV."""
        p = self.p
        sums = HALF * p.d // 128
        first = turn.x * ROWS + group * HALF
        code.delay(TILE)
        for tensor in (5, 6):
            if leads:
                code.wait_operands_read()
            code.named_barrier(2 + group, 4)
            code.compute(fp32=sums, smem=sums // 2, smem_ops=-(-sums // 8), int=3 * sums // 4, chain=4)
            code.named_barrier(2 + group, 4)
            if leads:
                code.bulk_store(box(tensor, self.tensors[tensor], turn.plane, first, HALF))


def backward_turns(problem: Attention) -> list[Turn]:
    """Return the tiles in the order in which they are taken."""
    steps, each = problem.q // QUERIES, ROWS // QUERIES
    return [
        Turn(plane, x, first, steps - first)
        for plane in range(problem.planes)
        for x in range(problem.k // ROWS)
        for first in [x * each if problem.causal else 0]
    ]


def hopper_backward(
    problem: Attention,
    operands: tuple[Planes, Planes, Planes, Planes],
    results: tuple[Planes, Planes],
    sums: tuple[Tensor, Tensor],
    *,
    dropped: bool = False,
) -> Kernel:
    """Return the kernel, which writes dK and dV, the ``results``.

    ``operands``: Q, K, V, dO; ``sums``: the rows' sums of dO O, and the fp32 dQ that it adds to; ``dropped``:
    with dropout. Raises WorkloadError where queries or keys are no whole tiles, and for kv heads that queries
    share.
    """
    p = problem
    p.require_whole(ROWS, "cuDNN's backward kernel")
    q, k, v, do = operands
    dots, dq = sums
    dk, dv = results
    views = {0: q, 1: k, 2: v, 3: do, 5: dk, 6: dv}
    tensors = (q.tensor, k.tensor, v.tensor, do.tensor, dq, dk.tensor, dv.tensor, dots)
    writer, dealt = _Writer(p, views, dropped), deal(backward_turns(p))
    roles = Roles(writer.producer, writer.consumer, writer.idle())
    program, tiles = persistent_program(
        "cudnn_bprop", dealt, roles, registers=REGISTERS, smem=SMEM[p.d], args=len(tensors)
    )

    def of(turn: Turn) -> list[Touched]:
        plane, base, first = turn.plane, turn.plane * p.q, turn.first * QUERIES
        return [
            *(touched(t, "read", plane, first, p.q - first) for t in (q, do)),
            *(touched(t, "read", plane, turn.x * ROWS, ROWS) for t in (k, v)),
            (dots, "read", plane, plane + 1, 0, p.q),
            (dq, "update", base + first, base + p.q, 0, p.d),
            *(touched(t, "write", plane, turn.x * ROWS, ROWS) for t in (dk, dv)),
        ]

    accesses = turn_accesses(dealt, of)
    return Kernel("cudnn_bprop", program, (len(dealt), 1, 1), tensors, accesses, tiles=tiles)
