"""GEMM C[M, N] = A[M, K] B[K, N] in fp16 as CUTLASS 2.x writes it for Ampere.

Its parts are those of CUTLASS's own documentation ("Efficient GEMM in CUDA"): a pipeline of ``stages`` tiles
in shared memory that cp.async fills past L1, swizzled so that neither cp.async nor ldmatrix has bank
conflicts; each warp computes ``wm`` x ``wn`` outputs by mma.m16n8k16 with fp32 sums, and loads the fragments
of the next 16 of K while it multiplies those at hand; sums go through shared memory to 16-byte stores, eight
rows a warp at a time. Instruction counts follow from these shapes; integer work is counted in the source,
not in SASS.

All tensors are row-major. x of the grid runs over tiles of N, y over tiles of M, z over parts of K (CUTLASS's
horizontal swizzle), which add to C in turn (``split_k_serial``). ldmatrix reads either storage order of an
operand at one cost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar

from pysim.errors import WorkloadError
from pysim.program.job import MMA_16816, Kernel, Tensor
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import SLOTS, Affine, Code, Program, TensorTile

from . import gemm_case
from .gemm_case import Loads, agreed
from .split_k_serial import FIRST_Z, LAST_Z, epilogue_rounds, serial_epilogue, serial_program
from .tiles import WARP, Tile, emit_loads, tile_ops

ITEM = 2
MMA = (16, 8, 16)  # M, N, K of an mma
VECTOR = 16  # bytes of a cp.async, of a store and of a row of ldmatrix, where rows are aligned to them
COPY = 4  # bytes of the shortest cp.async: what is aligned to less passes through registers
LINE = 128  # bytes that shared memory moves a cycle
WAVEFRONTS = 4  # of an ldmatrix.x4
MAX_STEPS = 65535
# Integer and control instructions, counted in CUTLASS's source: predicate of a cp.async, its two 64-bit
# addresses and its slot; a step's wraps of both slots, compare and branch; a fragment load's swizzled
# address.
INTS_COPY, INTS_STEP, INTS_GROUP = 5, 14, 4
INTS_BEGIN = 180  # iterators of a TB
INTS_STORE = 8  # predicate and address of a store
LDSM_LATENCY = 29  # cycles; as on Hopper
MMA_LATENCY = 25
# GELU of an output: its argument, erff (a polynomial of nine FMAs and a tail with one exponential) and the
# two multiplications; to and from fp16
GELU = {"fp32": 21, "int": 6, "sfu": 1}
_TILE = re.compile(r"(\d{1,4})x(\d{1,4})x(\d{1,4})x(\d{1,4})x(\d{1,4})x(\d{1,4})")


@dataclass(frozen=True, slots=True)
class Multistage:
    """How a GEMM is tiled: ``tm`` x ``tn`` x ``tk`` a TB, ``wm`` x ``wn`` a warp, K in ``split_k`` parts.

    ``waits_b``: where TBs wait inside their programs, they wait for what they read of B, too; cuSync's wait
    for A alone, as B holds weights.
    """

    tm: int
    tn: int
    tk: int
    wm: int
    wn: int
    stages: int = 3
    split_k: int = 1
    gelu: bool = False
    waits_b: bool = False
    # of a Volta tile (``tiling.Tiling``): here rows of tiles are dispatched in turn, and code is at hand
    column_raster: ClassVar[bool] = False
    fetch: ClassVar[int] = 0
    tensor: ClassVar[str] = MMA_16816  # instruction (``Kernel.tensor``)

    def __post_init__(self) -> None:
        """Refuse tiles that CUTLASS's mma and cp.async cannot be cut into."""
        if self.wm <= 0 or self.wn <= 0 or self.tm % self.wm or self.tn % self.wn:
            raise WorkloadError(f"tile {self.name}: the TB's sizes must be multiples of the warp's")
        if self.wm % MMA[0] or self.wn % MMA[0] or self.tk not in (32, 64) or self.warps > 32:
            raise WorkloadError(
                f"tile {self.name}: a warp's sizes must be multiples of 16, K 32 or 64, and a TB has at most"
                " 32 warps"
            )
        if self.tm * self.tk * ITEM % (VECTOR * WARP * self.warps) or (
            self.tn * self.tk * ITEM % (VECTOR * WARP * self.warps)
        ):
            raise WorkloadError(f"tile {self.name}: its threads cannot share the copies evenly")
        if not 3 <= self.stages <= SLOTS:
            raise WorkloadError(f"tile {self.name}: stages = {self.stages}: must be from 3 to {SLOTS}")
        if self.split_k < 1:
            raise WorkloadError(f"tile {self.name}: split K = {self.split_k}: must be positive")

    @property
    def name(self) -> str:
        """M, N and K of a TB and of a warp."""
        return f"{self.tm}x{self.tn}x{self.tk}x{self.wm}x{self.wn}x{self.tk}"

    @property
    def library(self) -> str:
        """The instruction, the tile, and the parts of K where there are several: name in reports."""
        return f"{MMA_16816}_{self.name}" + (f"_splitK{self.split_k}" if self.split_k > 1 else "")

    @property
    def warps(self) -> int:
        """Warps of a TB."""
        return (self.tm // self.wm) * (self.tn // self.wn)

    @property
    def groups(self) -> int:
        """Groups of 16 of K in a step."""
        return self.tk // MMA[2]

    @property
    def mmas(self) -> int:
        """The mma of a warp for a group."""
        return (self.wm // MMA[0]) * (self.wn // MMA[1])

    @property
    def fragments(self) -> int:
        """The ldmatrix.x4 of a warp for a group; each loads 16 x 16 values in four wavefronts."""
        return self.wm // 16 + self.wn // 16

    @property
    def registers(self) -> int:
        """32-bit registers a thread: sums, two fragments an operand, addresses."""
        sums = self.wm * self.wn // WARP
        fragments = 2 * (self.wm + self.wn) * MMA[2] * ITEM // (4 * WARP)
        return min(255, -(-(sums + fragments + 40) // 8) * 8)

    @property
    def smem(self) -> int:
        """Shared memory of a TB in bytes."""
        return self.stages * (self.tm + self.tn) * self.tk * ITEM

    def chunk(self, k: int) -> int:
        """K of one part of the split: whole steps."""
        steps = -(-k // self.tk)
        return -(-steps // self.split_k) * self.tk

    def grid(self, m: int, n: int, k: int) -> tuple[int, int, int]:
        """TBs in x (N), y (M) and z (K); fewer parts than split_k where K is too short."""
        return -(-n // self.tn), -(-m // self.tm), -(-k // self.chunk(k))


def multistage(tile: str, stages: int, split_k: int, *, gelu: bool = False) -> Multistage:
    """Return the tiling of ``"128x256x32x64x64x32"``: M, N, K of a TB, then of a warp (K the same)."""
    match = _TILE.fullmatch(tile)
    if match is None:
        raise WorkloadError(f"tile {tile[:40]!r}: must be six sizes, MxNxK of a TB and of a warp")
    tm, tn, tk, wm, wn, wk = (int(size) for size in match.groups())
    if wk != tk:
        raise WorkloadError(f"tile {tile}: K of a warp must be K of the TB")
    return Multistage(tm, tn, tk, wm, wn, stages, split_k, gelu)


@dataclass(frozen=True, slots=True)
class Case(gemm_case.Case):
    """A GEMM of Ampere's kind: cp.async fills a pipeline of stages."""

    tiling: Multistage


def copy_width(tile: Tile, widest: int = VECTOR) -> int:
    """Return the bytes a lane of a copy or store: as many as the alignment of the tile's rows allows."""
    width = widest
    while width > tile.item and not tile.aligned(width):
        width //= 2
    return width


class _Writer:
    """Writes the main loop of the TBs of which ``rows`` x ``cols`` of C exist.

    Step s uses slot (s - 1) mod stages, so that a loop from step 1 on counts slots from 0.
    """

    def __init__(self, code: Code, case: Case, valid: tuple[int, int], depth: int, first: int = 0) -> None:
        self.code, self.case, self.first, self.valid = code, case, first, valid
        self.steps = -(-depth // case.tiling.tk)
        self.rest = depth % case.tiling.tk
        self.ahead = case.tiling.stages - 1

    def copies(self, near: int) -> tuple[Loads, Loads]:
        """Return the cp.async of B and of A for step ``near``, of which the last may be cut short."""
        case, t, (rows, cols) = self.case, self.case.tiling, self.valid
        k = self.rest if self.rest and near == self.steps - 1 else t.tk
        a, b, _ = case.operands()
        at = self.first + near
        of_a = (k, rows) if case.a_t else (rows, k)
        of_b = (cols, k) if case.b_t else (k, cols)
        return (
            tile_ops(b, t.warps, copy_width(b), of_b, at * b.step),
            tile_ops(a, t.warps, copy_width(a), of_a, at * a.step),
        )

    def fetch(self, step: int, share: int, of: int) -> None:
        """Add part ``share`` of ``of`` of the cp.async of a step; -1: of the step that a loop fetches."""
        code, t, loop = self.code, self.case.tiling, step < 0
        near = 1 if loop else step
        if share == 0:
            code.mark_loads()
        parts = self.case.parts(t.tm, t.tn, t.tk, self.first + near)
        for part, ops in zip(parts[::-1], self.copies(near), strict=True):
            first, last = (-(-len(ops) * part_of // of) for part_of in (share, share + 1))
            if share == 0 and (t.waits_b or part.arg == 0):
                code.mark_input(part, level=0 if loop else 2, ahead=self.ahead if loop else 0)
            copied = ops[first:last]
            code.compute(int=INTS_COPY * len(copied))
            direct = all(patterns[0].width >= COPY for patterns in copied)
            for patterns in copied:
                if loop:
                    code.load(0, *patterns, bypass_l1=direct, stages=t.stages, ahead=self.ahead)
                else:
                    code.load((step + self.ahead) % t.stages, *patterns, bypass_l1=direct, level=2)
            if not direct:
                code.compute(smem=len(copied), smem_ops=len(copied))

    def step(self, number: int) -> None:
        """Multiply the last group of the step before and all of this one but its last; -1: in a loop."""
        code, t = self.code, self.case.tiling
        if number < 0:
            code.wait(0, stages=t.stages)
        else:
            code.wait((number + self.ahead) % t.stages)
        code.barrier()
        waves = WAVEFRONTS * t.fragments
        for group in range(t.groups):
            if number < 0 or number + self.ahead < self.steps:
                self.fetch(-1 if number < 0 else number + self.ahead, group, t.groups)
            first = number == 0 and group == 0
            code.compute(
                smem=waves, smem_ops=t.fragments, chain=LDSM_LATENCY, smem_back=None if first else waves,
                int=INTS_GROUP + (INTS_STEP if group == 0 else 0), control=1, tensor=0 if first else t.mmas,
            )  # fmt: skip


def _variant(case: Case, number: int) -> Code:
    """Ops of the TBs that are last in x, y, z as the bits of ``number`` say."""
    code, valid = Code(), case.valid(number)
    main_loop(code, case, valid, 0, case.depth(number, LAST_Z))
    code.mark_main_loop_end()
    epilogue(code, case, valid, number)
    code.exit()
    return code


def main_loop(code: Code, case: Case, valid: tuple[int, int], first: int, depth: int) -> None:
    """Multiply ``depth`` of K of a tile from step ``first`` on; ``valid`` rows and columns of C exist.

    Where K ends within a step, what does not exist is not copied, and the whole step is multiplied.
    """
    t = case.tiling
    loop = _Writer(code, case, valid, depth, first)
    if not 0 < loop.steps <= MAX_STEPS:
        raise WorkloadError(f"GEMM {t.name}: {loop.steps} steps a TB: must be from 1 to {MAX_STEPS}")
    code.compute(int=INTS_BEGIN, control=8)
    for number in range(min(loop.ahead, loop.steps)):
        loop.fetch(number, 0, 1)
    loop.step(0)
    looped = max(0, depth // t.tk - t.stages)
    if looped:
        mark = code.loop_begin()
        loop.step(-1)
        code.loop_end(mark, looped)
    for rest in range(1 + looped, loop.steps):
        loop.step(rest)
    code.compute(tensor=t.mmas, chain=MMA_LATENCY)


def epilogue(code: Code, case: Case, valid: tuple[int, int], number: int) -> None:
    """Exchange the sums through shared memory, eight rows a warp at a time, and store or add them."""
    t = case.tiling
    c = case.operands()[2]
    stores = epilogue_rounds(tile_ops(c, t.warps, copy_width(c), valid), t.wm)
    each = t.wm * t.wn // WARP // len(stores)  # sums of a thread in a round
    written = each * 4 * WARP // LINE
    last = number & LAST_Z or t.split_k == 1
    if case.bias and last:
        bias = case.bias_tile()
        ops = tile_ops(bias, t.warps, copy_width(bias), (1, valid[1]))
        emit_loads(code, 0, ops)
        code.wait(0)
        code.compute(fp32=t.wm * t.wn // WARP, int=len(ops), chain=4)
    unit = GELU if t.gelu and last else {}
    work = {"fp32": each, "int": 2 * each} | {pipe: each * count for pipe, count in unit.items()}

    def exchange(at: int) -> None:
        code.barrier()
        code.compute(smem=written, smem_ops=-(-each // 2), int=4, chain=4)
        code.barrier()
        code.compute(smem=written, smem_ops=-(-each // 4), chain=LDSM_LATENCY)
        code.compute(**(work | {"int": work["int"] + INTS_STORE * len(stores[at]), "control": 1}))

    kind = number if t.split_k > 1 else LAST_Z | FIRST_Z
    serial_epilogue(code, 0, stores, kind, exchange, read=case.beta)
    if last:
        row, col = case.place(2, Affine(by=t.tm), Affine(bx=t.tn))
        code.mark_output(TensorTile(2, row, t.tm, col, t.tn), level=2)


@lru_cache(maxsize=1024)
def program_of(case: Case) -> Program | RecordedProgram:
    """Build a program once: launches of one shape share it."""
    t = case.tiling
    name = f"cutlass_{t.name}"
    if t.split_k > 1:
        return serial_program(
            name, t.grid(case.m, case.n, case.k), partial(_variant, case),
            warps=t.warps, registers=t.registers, smem=t.smem, args=case.args,
        )  # fmt: skip
    variants = tuple(tuple(_variant(case, number).ops) for number in range(8))
    return Program(name, variants, t.warps, t.registers, t.smem, case.args)


def case_of(
    name: str,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    tiling: Multistage,
    *,
    a_t: bool = False,
    b_t: bool = False,
    beta: float = 0.0,
    bias: bool = False,
) -> Case:
    """Return the case of a GEMM of tensors whose shapes and items must agree."""
    m, n, k, times = agreed(name, a, b, c, a_t=a_t, b_t=b_t, wide=True)
    case = Case(tiling, m, n, k, ITEM, ITEM, a_t, b_t, beta != 0.0, times=times, bias=bias)
    check(name, case, (a, b, c))
    return case


def check(name: str, case: Case, tensors: tuple[Tensor, Tensor, Tensor]) -> None:
    """Raise WorkloadError where the operands are no fp16."""
    if any(tensor.item != ITEM for tensor in tensors):
        raise WorkloadError(f"gemm {name}: mma.m16n8k16 takes operands of {ITEM} bytes an element")


def cutlass_gemm(
    name: str,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    tiling: Multistage,
    *,
    a_t: bool = False,
    b_t: bool = False,
    beta: float = 0.0,
    bias: Tensor | None = None,
    stream: int = 0,
) -> Kernel:
    """Make the kernel C = A B + beta C + bias in fp16 (``gemm.gemm``).

    Parts of a split K add to C in turn. Where A has several times K columns, the first K are read, and each
    step waits for its columns in every K of them, as a gated unit in between would.
    """
    case = case_of(name, a, b, c, tiling, a_t=a_t, b_t=b_t, beta=beta, bias=bias is not None)
    gx, gy, gz = tiling.grid(case.m, case.n, case.k)
    accesses = case.accesses(a, b, c, lambda t: t % gx, lambda t: t // gx % gy, lambda t: t // (gx * gy))
    more = () if bias is None else (bias,)
    of_bias = (case.bias_access(each, lambda t: t % gx, lambda t: t // (gx * gy)) for each in more)
    grid = (gx, gy, gz)
    return Kernel(
        name,
        program_of(case),
        grid,
        (a, b, c, *more),
        (*accesses, *of_bias),
        stream,
        library=tiling.library,
        tensor=tiling.tensor,
    )
