"""cuDNN's forward attention kernel for Hopper: persistent, warp-specialised, wgmma and TMA.

A tile is 128 queries of a plane. The producer warp loads Q, then a tile of 128 keys and one of their values
for each step, in rings of ``STAGES``. Each of the two consumer groups has 64 queries: S = Q K^T, the online
softmax in registers while the other group multiplies, O += P V. O goes through shared memory to bulk stores.
Sizes are those in the kernels' names and launches (``64x128x128_4x1x1``, one TB an SM); the code is not
public, so the order of its waits is the simplest that the algorithm allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Memory, Tensor
from pysim.program.pipelined_code import PipelinedCode, Ring
from pysim.program.warp_program import Pattern
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.hopper import SHUFFLE

from .attention_flash import MASK_INTS
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
from .attention_problem import ITEM, Attention, Planes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pysim.program.warp_program import Op

KEYS, STAGES, REGISTERS = 128, 3, 168
SMEM = {64: 134144, 128: 232448}  # B
K_FULL, K_EMPTY, V_FULL, V_EMPTY = (
    Ring(0, STAGES, 2),
    Ring(STAGES, STAGES, GROUPS),
    Ring(2 * STAGES, STAGES, 1),
    Ring(3 * STAGES, STAGES, GROUPS),
)
HALF, BIAS = ROWS // 2, 5
SCORES = HALF * KEYS // 128  # of a thread
# Cycles from a TB's start to its first load; until a consumer has its code; of a step and of a tile beside
# what is counted (code that is not public, the next tile from the counter). Found with 20 rows of
# both halves in sight.
# Steps of a TB's first tile take longer: 3,360 cycles (d 128) where later ones take 2,650.
BEGIN, COLD, STEP, STEP_FIRST, TILE, MASK = 700, 100, 250, 800, 2000, 600


@dataclass(frozen=True, slots=True)
class More:
    """What a call does beside attention: ``dropped``: dropout; ``bias``: of scores, [batch * q, k] of 2 B."""

    dropped: bool = False
    bias: Tensor | None = None


NOTHING = More()


class _Writer:
    """Writes the code of the warps of a TB."""

    def __init__(self, problem: Attention, tensors: Sequence[Planes], more: More) -> None:
        self.p, self.tensors, self.more = problem, tensors, more

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
        only = code.turn_begin()
        q, k, v = self.tensors[:3]
        for turn in turns:
            plane, half = turn.plane, KEYS // 2
            code.ring_wait(K_EMPTY, emptied=True)
            code.bulk_load(K_FULL, box(0, q, plane, turn.x * ROWS, ROWS))
            code.bulk_load(K_FULL, box(1, k, plane, 0, KEYS))
            code.ring_wait(V_EMPTY, emptied=True)
            code.bulk_load(V_FULL, box(2, v, plane, 0, KEYS))
            code.advance()
            if turn.steps > 1:
                step = code.loop_begin()
                code.ring_wait(K_EMPTY, emptied=True)
                for part in (0, half):
                    code.bulk_load(K_FULL, box(1, k, plane, KEYS + part, half, KEYS))
                code.ring_wait(V_EMPTY, emptied=True)
                code.bulk_load(V_FULL, box(2, v, plane, KEYS, KEYS, KEYS))
                code.advance()
                code.loop_end(step, turn.steps - 1)
        code.turn_end(only)
        code.exit()
        return tuple(code.ops)

    def biases(self, code: PipelinedCode, turn: Turn, group: int, *, first: bool) -> None:
        """Add the loads of a step's bias: two neighbouring scores a lane, of eight rows at a time."""
        bias = self.more.bias
        if bias is None:
            return
        row = turn.plane // self.p.heads * self.p.q + turn.x * ROWS + group * HALF - (1 + group) * HALF
        for down in range(0, HALF // 4, 8):
            for right in range(0, KEYS, 8):
                base = (row + down) * bias.pitch + (right + (0 if first else KEYS)) * bias.item
                # warps of the groups are 4 to 11 of the TB, 16 rows each
                code.load(
                    1,
                    Pattern(
                        BIAS,
                        4,
                        base=base,
                        warp=16 * bias.pitch,
                        step=KEYS * bias.item,
                        s0=4,
                        s1=bias.pitch,
                        minor=4,
                    ),
                    level=2 if first else 0,
                )

    def step(
        self, code: PipelinedCode, turn: Turn, who: tuple[int, bool, int], *, masked: bool, first: bool
    ) -> None:
        """Add a step of a consumer warp; ``who``: its group, whether it leads, cycles beside the counted."""
        d, (group, leads, more) = self.p.d, who
        code.ring_wait(K_FULL)
        multiply(code, KEYS, d // 16)
        self.biases(code, turn, group, first=first)
        code.multiply_wait(0)
        if self.more.bias is not None:
            code.wait(1)
            code.compute(fp32=SCORES, int=SCORES // 2, chain=4)
        if leads:
            code.ring_arrive(K_EMPTY)
        if masked:
            code.compute(int=MASK_INTS * SCORES, chain=4)
            code.delay(MASK)
        code.compute(int=SCORES, chain=4)
        code.compute(int=8, smem=4, smem_ops=4, chain=2 * SHUFFLE)
        code.compute(sfu=2, fp32=4, chain=20)
        code.compute(fp32=2 * SCORES, sfu=SCORES, int=SCORES // 2, chain=20)
        if self.more.dropped:
            drop(code, SCORES)
        code.delay(more)
        if not first:
            code.compute(fp32=HALF * d // 128, chain=4)
        code.ring_wait(V_FULL)
        multiply(code, d, KEYS // 16)
        code.multiply_wait(0)
        if leads:
            code.ring_arrive(V_EMPTY)
        code.advance()

    def consumer(self, turns: list[Turn], group: int, leads: bool) -> tuple[Op, ...]:
        """Return the code of a warp of a consumer group; one of each group ``leads``."""
        p, code = self.p, self.begin()
        only = code.turn_begin()
        code.delay(COLD)
        for turn in turns:
            who = group, leads, STEP_FIRST if turn is turns[0] else STEP
            self.step(code, turn, who, masked=p.causal and turn.steps == 1, first=True)
            loop = turn.steps - 1 - (1 if p.causal and turn.steps > 1 else 0)
            if loop:
                step = code.loop_begin()
                self.step(code, turn, who, masked=False, first=False)
                code.loop_end(step, loop)
            if p.causal and turn.steps > 1:
                self.step(code, turn, who, masked=True, first=False)
            self.results(code, turn, group, leads)
        code.turn_end(only)
        if leads:
            code.wait_operands_read()
        code.exit()
        return tuple(code.ops)

    def results(self, code: PipelinedCode, turn: Turn, group: int, leads: bool) -> None:
        """Add the stores of a group's O and LSE."""
        p = self.p
        sums = HALF * p.d // 128
        row = turn.x * ROWS + group * HALF
        first = turn.plane * p.q + row
        code.delay(TILE)
        code.compute(smem=4, smem_ops=4, sfu=4, fp32=sums + 4, int=sums // 2, chain=3 * SHUFFLE)
        if leads:
            code.wait_operands_read()  # the tile before has left shared memory
        code.named_barrier(1 + group, 4)
        code.compute(smem=sums // 2, smem_ops=-(-sums // 8), int=sums // 4, chain=4)
        code.named_barrier(1 + group, 4)
        if leads:
            for half in range(2):
                code.store(0, Pattern(4, 4, base=(first + half * WARP) * 4, s0=4), level=2)
            code.bulk_store(box(3, self.tensors[3], turn.plane, row, HALF))


def forward_turns(problem: Attention) -> list[Turn]:
    """Return the tiles in the order in which they are taken."""
    across, steps = problem.q // ROWS, problem.k // KEYS
    return [
        Turn(plane, x, 0, x + 1 if problem.causal else steps)
        for plane in range(problem.planes)
        for x in range(across)
    ]


def hopper_forward(
    problem: Attention,
    memory: Memory,
    operands: tuple[Planes, Planes, Planes],
    o: Planes,
    more: More = NOTHING,
) -> tuple[Kernel, Tensor]:
    """Return the kernel, which writes ``o``, and the LSE of each query [planes * q, 1].

    ``operands``: Q, K, V. Raises WorkloadError where queries or keys are no whole tiles, for kv heads that
    queries share, and for a bias with a causal mask.
    """
    p = problem
    p.require_whole(ROWS, "cuDNN's forward kernel")
    bias = more.bias
    if bias is not None and (p.causal or (bias.rows, bias.cols, bias.item) != (p.batch * p.q, p.k, ITEM)):
        raise WorkloadError(f"attention: bias of {bias.rows} x {bias.cols} of {bias.item} B: no template")
    q, k, v = operands
    lse = memory.tensor("LSE", p.planes * p.q, 1, 4)
    biases = (bias,) if bias is not None else ()
    tensors = (*(each.tensor for each in (q, k, v, o)), lse, *biases)
    writer, dealt = _Writer(p, (q, k, v, o), more), deal(forward_turns(p))
    roles = Roles(writer.producer, writer.consumer, writer.idle())
    program, tiles = persistent_program(
        "cudnn_fprop", dealt, roles, registers=REGISTERS, smem=SMEM[p.d], args=len(tensors)
    )

    def rows_of(plane: int, first: int) -> tuple[int, int]:
        row = plane // p.heads * p.q + first
        return row, row + ROWS

    def of(turn: Turn) -> list[Touched]:
        plane, first = turn.plane, turn.x * ROWS
        return [
            touched(q, "read", plane, first, ROWS),
            touched(k, "read", plane, 0, turn.steps * KEYS),
            touched(v, "read", plane, 0, turn.steps * KEYS),
            touched(o, "write", plane, first, ROWS),
            (lse, "write", plane * p.q + first, plane * p.q + first + ROWS, 0, 1),
            *((each, "read", *rows_of(plane, first), 0, p.k) for each in biases),
        ]

    accesses = turn_accesses(dealt, of)
    grid = (len(dealt), 1, 1)
    return Kernel("cudnn_fprop", program, grid, tensors, accesses, tiles=tiles), lse
