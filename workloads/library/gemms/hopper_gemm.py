"""GEMMs as libraries write them for Hopper: warps that load tiles, and warp groups that multiply them.

384 threads. A producer warp loads the operands' tiles of each k-step with bulk copies (TMA), whose lines go
to all thread blocks (TBs) of the cluster that need them. Two consumer warp groups multiply (``wgmma``), from
shared memory. A ring of stages lies between; mbarriers say when a stage is full and when it is empty. The
groups take turns with whole tiles, or share each tile (``split``). A tile's results go through shared memory
to a bulk store, a chunk at a time.

An m64 x n multiply with k of 32 B takes max(n / 2, 16 + n / 4) cycles of an SM's tensor cores. Its results
are there 60 + n / 2 cycles after it began (measured, h200_wgmma.csv). That a group has room for 8 KiB of
results follows from the shared memory that the library's kernels ask for beside their stages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.pipelined_code import SAME_M, SAME_N, PipelinedCode, Ring
from pysim.program.tiles import Box, Tiles
from pysim.program.warp_specialized import warp_specialized

from .hopper_epilogue import NVJET, Cost, Epilogue, Results, store_results
from .operands import checked_operands, first_element

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.warp_program import Op

Split = Literal["none", "m", "n"]
Within = tuple[tuple[int, int], tuple[int, int]]
Terms = tuple[int, int, int, int, int, int, int]
Span: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.int64]]"
NOT_WITHIN: Within = ((0, 0), (0, 0))
STEP = 128  # bytes of k that a k-step takes of each row
STAGES = 16  # at most
STATIC_TURNS = 2  # tiles that a TB takes without a counter, at most
FULL, EMPTY = 0, STAGES  # ring barriers: the first of full, and of empty stages
ISSUE = 7  # issue slots of a multiply: h200_wgmma.csv, 29 cycles for four


@dataclass(frozen=True)
class HopperGemm:
    """C[m, n] = A[m, k] B[k, n] in BLAS terms, and the kernel that computes it.

    ``tile``: rows in m and columns in n; ``split``: what of a tile the two consumer groups share. ``tbs``: of
    the grid, fewer than tiles if they are taken in turn. ``split_k``: parts of k, each with a C of its own;
    ``batch``: products of as many A and B, which lie one behind another (with one part of k).
    ``epilogue``: what is done to a result before it is stored.
    ``item``: bytes of an element of A and B; ``out``: of C. ``trans_a``: A is contiguous in k, else in m;
    ``trans_b``: B is contiguous in n, else in k. ``clipped``: copies end with operands that are smaller than
    a tile, else they ask for rows outside, too. ``pitches``: bytes from one row of A and of B in memory to
    the next; 0: its length. Rows that begin closer overlap, as what the pixels of a convolution read does.
    ``within``: of A and B the columns of the wider tensor in whose rows their products are side by side, and
    the first column (0, 0: they are one below the other).
    """

    m: int
    n: int
    k: int
    tile: tuple[int, int]
    stages: int
    cluster: tuple[int, int]
    tbs: int
    split: Split = "none"
    n_fast: bool = False
    split_k: int = 1
    batch: int = 1
    epilogue: Epilogue = "none"
    item: int = 2
    out: int = 2
    smem: int = 0
    registers: int = 168
    trans_a: bool = True
    trans_b: bool = False
    clipped: bool = False
    pitches: tuple[int, int] = (0, 0)
    within: Within = NOT_WITHIN

    @property
    def tiles(self) -> tuple[int, int]:
        """Tiles in m and in n."""
        return -(-self.m // self.tile[0]), -(-self.n // self.tile[1])

    @property
    def steps(self) -> int:
        """K-steps of a tile; with ``split_k`` of each part but the last."""
        return -(-self._all_steps // self.split_k)

    @property
    def last_steps(self) -> int:
        """K-steps of the last part."""
        return self._all_steps - (self.split_k - 1) * self.steps

    @property
    def _all_steps(self) -> int:
        return -(-self.k * self.item // STEP)

    @property
    def schedule(self) -> Tiles:
        """How the tiles are dealt to TBs."""
        count = (*self.tiles, self.split_k * self.batch)
        last = self.last_steps if self.batch == 1 else 0
        return Tiles(count, self.steps, last, self.cluster, self.n_fast)

    @property
    def turns(self) -> int:
        """Tiles that a TB takes, one after another, at most."""
        return self.schedule.turns(self.tbs)

    @property
    def dynamic(self) -> bool:
        """Whether TBs take their tiles by a counter in memory."""
        return self.turns > STATIC_TURNS

    @property
    def sides(self) -> tuple[int, int]:
        """What of a tile lies along the multiply's m64, and along its n."""
        tm, tn = self.tile
        return (tm, tn) if tm % 64 == 0 else (tn, tm)


def multiply_cycles(n: int) -> float:
    """Cycles of an SM's tensor cores that an m64 x n multiply takes, k of 32 B, operands in shared memory."""
    return max(n / 2, 16 + n / 4)


def step_work(gemm: HopperGemm) -> tuple[float, int, int]:
    """Return a consumer warp's k-step: cycles of the tensor pipe, multiplies, and latency behind the pipe."""
    high, wide = gemm.sides
    if gemm.split == ("m" if gemm.sides == gemm.tile else "n"):
        high //= 2
    elif gemm.split != "none":
        wide //= 2
    rows, pieces = -(-high // 64), -(-wide // 256)
    n = wide // pieces
    count = 4 * rows * pieces
    return count * multiply_cycles(n), count, round(60 + n / 2 - multiply_cycles(n))


def _terms(of: dict[int, int]) -> Terms:
    """Return the terms of a box's first row or byte: 0: one; 1, 2, 3: x, y, z; 4, 5: m, n; 6: the step."""
    one, x, y, z, m, n, step = (of.get(i, 0) for i in range(7))
    return one, x, y, z, m, n, step


def _operand(gemm: HopperGemm, arg: int, rows: int, shared_by: int, along_k: bool) -> Box:
    """Return the box of operand ``arg`` that a TB loads of a k-step: its share of the tile's rows."""
    tile = gemm.tile[arg]
    part = max(1, tile // shared_by)
    part = min(part, rows) if gemm.clipped else part
    # the third number of a tile counts parts of k, or products
    steps, plane = (gemm.steps, 0) if gemm.batch == 1 else (0, rows * gemm.k * gemm.item)
    if along_k:
        wide = gemm.k * gemm.item
        row, col = {1 + arg: tile, 5 - arg: part}, {3: steps * STEP, 6: STEP}
        pitch = gemm.pitches[arg] or wide
        box = Box(arg, part, STEP, pitch, rows, wide, _terms(row), _terms(col), plane)
        return _beside(gemm, box, wide)
    wide, deep = rows * gemm.item, STEP // gemm.item
    pitch = gemm.pitches[arg] or wide
    row, col = {3: steps * deep, 6: deep}, {1 + arg: tile * gemm.item, 5 - arg: part * gemm.item}
    box = Box(arg, deep, part * gemm.item, pitch, gemm.k, wide, _terms(row), _terms(col), plane)
    return _beside(gemm, box, wide)


def _beside(gemm: HopperGemm, box: Box, wide: int) -> Box:
    """Return the box where planes are side by side in a wider tensor, ``wide`` bytes each."""
    cols, first = (size * gemm.item for size in gemm.within[box.arg])
    if not cols:
        return box
    one, x, y, _, m, n, step = box.col
    return replace(box, pitch=cols, all_bytes=cols, col=(first + one, x, y, wide, m, n, step), plane=0)


def _boxes(gemm: HopperGemm) -> tuple[Box, Box, Box]:
    """Return the boxes of A and B that a TB loads of a k-step, and of its tile of C."""
    (tm, tn), (cm, cn) = gemm.tile, gemm.cluster
    a = _operand(gemm, 0, gemm.m, cn, gemm.trans_a)
    b = _operand(gemm, 1, gemm.n, cm, not gemm.trans_b)
    wide, pitch = tm * gemm.out, gemm.m * gemm.out
    plane = gemm.n * pitch if gemm.split_k * gemm.batch > 1 else 0
    return a, b, Box(2, tn, wide, pitch, gemm.n, pitch, _terms({2: tn}), _terms({1: wide}), plane)


def _rings(gemm: HopperGemm) -> tuple[Ring, Ring]:
    """Return the rings of full and of empty stages."""
    cm, cn = gemm.cluster
    groups = 1 if gemm.split == "none" else 2  # consumer groups that read a stage
    return Ring(FULL, gemm.stages, cm + cn), Ring(EMPTY, gemm.stages, (cm + cn - 1) * groups)


def _shared(gemm: HopperGemm) -> tuple[int, int]:
    """Return which TBs of the cluster get a TB's share of A, and of B."""
    cm, cn = gemm.cluster
    return (SAME_M if cn > 1 else 0), (SAME_N if cm > 1 else 0)


def _begin(gemm: HopperGemm, cost: Cost) -> PipelinedCode:
    code = PipelinedCode()
    code.compute(int=20, chain=0)
    code.delay(cost.begin)
    code.barrier()
    if gemm.cluster != (1, 1):
        code.delay(cost.begin_cluster)
        code.cluster_barrier()
    return code


def _producer(gemm: HopperGemm, cost: Cost) -> tuple[Op, ...]:
    full, empty = _rings(gemm)
    a, b, _ = _boxes(gemm)
    code = _begin(gemm, cost)
    tile = code.turn_begin()
    step = code.steps_begin()
    code.ring_wait(empty, emptied=True)
    for box, to in zip((a, b), _shared(gemm), strict=True):
        code.bulk_load(full, box, to=to)
    code.advance()
    code.steps_end(step)
    if gemm.dynamic:
        code.delay(cost.next_tile)
    code.turn_end(tile)
    # other TBs of the cluster may still arrive at this one's barriers
    code.ring_wait(empty, emptied=True, ahead=gemm.stages - 1)
    code.exit()
    return tuple(code.ops)


def _consumer(gemm: HopperGemm, cost: Cost, group: int, leads: bool) -> tuple[Op, ...]:
    """Return the code of a warp of a consumer group; one of each group ``leads``."""
    full, empty = _rings(gemm)
    cycles, count, latency = step_work(gemm)
    in_turn, to = gemm.split == "none", sum(_shared(gemm))
    code = _begin(gemm, cost)
    tile = code.turn_begin(start=group if in_turn else 0, step=2 if in_turn else 1)
    if in_turn and group:
        code.skip_tile()  # the one before is the other group's
    step = code.steps_begin()
    code.ring_wait(full)
    if cost.before:
        code.multiply_wait(0)
        code.delay(cost.before)
    code.multiply(cycles=cycles, count=count, latency=latency, issue=ISSUE)
    code.delay(max(1, cost.step - ISSUE * count))
    code.multiply_wait(1)
    if leads:
        code.ring_arrive(empty, to=to, behind=1, not_first=True)
    code.advance()
    code.steps_end(step)
    code.multiply_wait(0)
    if leads:
        code.ring_arrive(empty, to=to, behind=1)
    store_results(code, _results(gemm, group), _boxes(gemm)[2], cost, group, leads=leads)
    if in_turn and not group:
        code.skip_tile()
    code.turn_end(tile)
    if leads:
        code.wait_operands_read()
    code.exit()
    return tuple(code.ops)


def _results(gemm: HopperGemm, group: int) -> Results:
    """Return what a consumer group stores of a tile."""
    m, n = ((0, size) for size in gemm.tile)
    half = [(group * size // 2, (group + 1) * size // 2) for size in gemm.tile]
    return Results(
        half[0] if gemm.split == "m" else m, half[1] if gemm.split == "n" else n, gemm.out, gemm.epilogue
    )


def hopper_gemm(
    gemm: HopperGemm,
    memory: Memory,
    operands: Sequence[Tensor] | None = None,
    cost: Cost = NVJET,
    counter: Tensor | None = None,
) -> tuple[Kernel, Tensor]:
    """Return the kernel and its C, [split_k * | batch *] n x m (C is contiguous in m).

    ``operands``: A as [batch *] m x k, or k x m, and B as [batch *] n x k, or k x n, by what is contiguous,
    and the bias of each row in m, 1 x m, if the epilogue has one; None: new tensors. ``counter``: what deals
    tiles, if a TB takes many: each TB adds to its first element. Raises WorkloadError for
    stages, clusters, grids, shared memory and operands that no such kernel has.
    """
    cm, cn = gemm.cluster
    size = cm * cn
    if not (2 <= gemm.stages <= STAGES and 1 <= size <= 8 and gemm.tbs % size == 0 and gemm.tbs > 0):
        raise WorkloadError(
            f"Hopper GEMM: {gemm.stages} stages (2 to {STAGES}), clusters of {cm} x {cn} TBs (at most 8), "
            f"{gemm.tbs} TBs"
        )
    if gemm.smem < (needed := gemm.stages * sum(gemm.tile) * STEP):
        raise WorkloadError(f"Hopper GEMM: {gemm.smem} B of shared memory, its stages take {needed} B")
    if gemm.last_steps < 1:
        raise WorkloadError(f"Hopper GEMM: k of {gemm.k} in {gemm.split_k} parts: the last has no k-step")
    if gemm.batch > 1 and gemm.split_k > 1:
        raise WorkloadError(f"Hopper GEMM: {gemm.batch} products of {gemm.split_k} parts of k: one of both")
    if gemm.turns > 65535 or gemm.steps > 65535:
        raise WorkloadError(f"Hopper GEMM: {gemm.turns} tiles a TB of {gemm.steps} k-steps: at most 65535")
    operands = check_operands(gemm, memory, operands)
    a, b = operands[:2]
    bias = operands[2:]
    c = memory.tensor("C", gemm.n * gemm.split_k * gemm.batch, gemm.m, gemm.out)
    idle = _begin(gemm, cost)
    idle.exit()
    row = [_producer(gemm, cost), *[tuple(idle.ops)] * 3]
    row += [_consumer(gemm, cost, group, warp == 0) for group in range(2) for warp in range(4)]
    program = warp_specialized(
        "hopper_gemm", [tuple(row)], None, registers=gemm.registers, smem=gemm.smem, args=3 + len(bias)
    )
    accesses = _accesses(gemm, a, b, c, bias)
    if counter is not None:
        accesses += (Access(counter, "update", first_element),)
    grid = (size, gemm.tbs // size, 1)
    return Kernel("hopper_gemm", program, grid, (a, b, c, *bias), accesses, tiles=gemm.schedule), c


def check_operands(gemm: HopperGemm, memory: Memory, given: Sequence[Tensor] | None) -> Sequence[Tensor]:
    """Return A, B and the bias if there is one: those given, or new ones; refuse others than those needed.

    An operand with a pitch of its own is a tensor of one row.
    """
    wanted = []
    for arg, (name, rows, own) in enumerate((("A", gemm.m, gemm.trans_a), ("B", gemm.n, not gemm.trans_b))):
        high, wide = (rows, gemm.k) if own else (gemm.k, rows)
        if pitch := gemm.pitches[arg]:
            high, wide = 1, (high - 1) * pitch // gemm.item + wide
        cols, first = gemm.within[arg]
        if cols and (first < 0 or first + gemm.batch * wide > cols or wide * gemm.item % STEP):
            raise WorkloadError(
                f"Hopper GEMM: {gemm.batch} x {wide} columns of {name} from {first} on in {cols}: must be"
                f" inside, and multiples of {STEP} B"
            )
        wanted.append((name, high, cols, gemm.item) if cols else (name, gemm.batch * high, wide, gemm.item))
    if gemm.epilogue != "none":
        wanted.append(("bias", 1, gemm.m, gemm.item))
    return checked_operands(given, wanted, memory)


def _accesses(
    gemm: HopperGemm, a: Tensor, b: Tensor, c: Tensor, bias: Sequence[Tensor]
) -> tuple[Access, ...]:
    """Return what TBs read and write, a turn at a time: a TB takes a tile in each."""
    made: list[Access] = []
    for turn in range(gemm.turns):
        made += [
            Access(a, "read", partial(_region, gemm, turn, "a")),
            Access(b, "read", partial(_region, gemm, turn, "b")),
            Access(c, "write", partial(_region, gemm, turn, "c")),
            *(Access(each, "read", partial(_region, gemm, turn, "bias")) for each in bias),
        ]
    return tuple(made)


def _region(gemm: HopperGemm, turn: int, what: str, tbs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rectangle of a tensor that each TB uses in a turn.

    A TB whose tile lies behind the last still loads its share of what its cluster needs.
    """
    tile, (mt, nt) = gemm.schedule.of(tbs, gemm.tbs, turn), gemm.tiles
    (tm, tn), deep = gemm.tile, gemm.steps * (STEP // gemm.item)
    none = np.zeros_like(tile.z)
    part, plane = (tile.z, none) if gemm.batch == 1 else (none, tile.z)
    m: Span = tile.x * tm, np.minimum((tile.x + 1) * tm, gemm.m)
    n: Span = tile.y * tn, np.minimum((tile.y + 1) * tn, gemm.n)
    k: Span = part * deep, np.minimum((part + 1) * deep, gemm.k)
    there, rows, cols, high = (tile.x < mt) & (tile.y < nt), n, m, gemm.n  # of C
    if what == "a":
        there, high = tile.x < mt, gemm.m if gemm.trans_a else gemm.k
        rows, cols = (m, k) if gemm.trans_a else (k, m)
    elif what == "b":
        there, high = tile.y < nt, gemm.k if gemm.trans_b else gemm.n
        rows, cols = (k, n) if gemm.trans_b else (n, k)
    elif what == "bias":
        rows, plane = (none, none + 1), none
    else:
        plane = tile.z
    there &= tile.there
    if what in "ab" and (pitch := gemm.pitches[what == "b"] // gemm.item):
        last = rows[1] - 1
        cols = rows[0] * pitch + cols[0], last * pitch + cols[1]
        rows, high = (none, none + 1), 1
    wide_cols, first_col = (0, 0) if what not in "ab" else gemm.within[what == "b"]
    if wide_cols:
        own = (gemm.trans_a, not gemm.trans_b)[what == "b"]
        at = first_col + plane * (gemm.k if own else (gemm.m, gemm.n)[what == "b"])
        cols, plane = (cols[0] + at, cols[1] + at), none
    sides = rows[0] + plane * high, rows[1] + plane * high, *cols
    return np.stack([np.where(there, side, 0) for side in sides], 1)
