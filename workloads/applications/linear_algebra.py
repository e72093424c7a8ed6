"""PolyBench's 3MM, BICG, MVT and GRAMSCHM, and Rodinia's GAUSSIAN and LUD. Sizes and tiles are assumed."""

from __future__ import annotations

from pysim.errors import WorkloadError
from pysim.program.job import Job, Kernel, Memory, Tensor
from pysim.program.memory_budget import claim_launches
from pysim.program.warp_program import Affine
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.gemm_choice import choose_tiling
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.kernels.region import Block, region_kernel


def whole(what: str, size: int, unit: int) -> int:
    """Return how many units a size has; it must be whole ones."""
    if size < unit or size % unit:
        raise WorkloadError(f"{what} = {size}: must be a multiple of {unit}")
    return size // unit


def three_mm(n: int = 512, hints: MachineHints | None = None) -> Job:
    """3MM (PolyBench): E = A B, F = C D, G = E F, all n x n fp32. Assumed: 512, and cuBLAS-like GEMMs."""
    whole("3mm: n", n, 32)
    memory = Memory()
    a, b, c, d, e, f, g = (memory.tensor(name, n, n, 4) for name in "abcdefg")
    tiling = choose_tiling(n, n, n, "fp32", split=False, hints=hints)
    made = [gemm(f"mm{i + 1}", *t, tiling, beta=0) for i, t in enumerate(((a, b, e), (c, d, f), (e, f, g)))]
    return Job("3mm", made)


def _by_rows(name: str, a: Tensor, x: Tensor, y: Tensor, update: bool) -> Kernel:
    """Make y = A x (update: y += A x): a thread a row, which it reads a sector at a time."""
    down = [Block(y, 1, 128, col=Affine(bx=128))]
    step = Affine(step=8)
    reads = [Block(a, 128, 8, row=Affine(bx=128), col=step), Block(x, 1, 8, col=step)]
    return region_kernel(
        name, (a.rows // 128, 1), 4, reads + down * update, down, {"fp32": 8, "int": 6}, steps=a.cols // 8
    )


def _by_cols(name: str, a: Tensor, x: Tensor, y: Tensor, update: bool) -> Kernel:
    """Make y = A^T x (update: y += A^T x): a thread a column, four rows at a time as compilers unroll it."""
    along = [Block(y, 1, 128, col=Affine(bx=128))]
    step = Affine(step=4)
    reads = [Block(a, 4, 128, row=step, col=Affine(bx=128)), Block(x, 1, 4, col=step)]
    return region_kernel(
        name, (a.cols // 128, 1), 4, reads + along * update, along, {"fp32": 4, "int": 6}, steps=a.rows // 4
    )


def _vectors(memory: Memory, n: int, names: str) -> list[Tensor]:
    return [memory.tensor(name, 1, n, 4) for name in names]


def bicg(n: int = 2048) -> Job:
    """BICG (PolyBench), 2 kernels: s = A^T r, then q = A p. Assumed: n = 2048, TBs of 128 threads."""
    whole("bicg: n", n, 128)
    memory = Memory()
    a = memory.tensor("a", n, n, 4)
    r, s, p, q = _vectors(memory, n, "rspq")
    return Job("bicg", [_by_cols("bicg1", a, r, s, False), _by_rows("bicg2", a, p, q, False)])


def mvt(n: int = 2048) -> Job:
    """MVT (PolyBench), 2 kernels: x1 += A y1, then x2 += A^T y2. Assumed: n = 2048, TBs of 128 threads."""
    whole("mvt: n", n, 128)
    memory = Memory()
    a = memory.tensor("a", n, n, 4)
    x1, x2, y1, y2 = _vectors(memory, n, "uvwz")
    return Job("mvt", [_by_rows("mvt1", a, y1, x1, True), _by_cols("mvt2", a, y2, x2, True)])


def gramschm(cols: int = 64, rows: int = 512) -> Job:
    """GRAMSCHM (PolyBench), 3 kernels a column, 192 for 64 columns: norm, scale, and take from the rest.

    Assumed: 512 rows, TBs of 256 threads.
    """
    down = whole("gramschm: rows", rows, 256)
    if cols < 1:
        raise WorkloadError(f"gramschm: cols = {cols}: must be positive")
    claim_launches(3 * cols, f"gramschm: {cols:,} columns", 9 * cols, 3 * cols)
    memory = Memory()
    a, q, r = (memory.tensor(name, *size, 4) for name, size in
               (("a", (rows, cols)), ("q", (rows, cols)), ("r", (cols, cols))))  # fmt: skip
    made = []
    for k in range(cols):
        here = Affine(base=k)
        norm = Block(r, 1, 1, row=here, col=here)
        column = Block(a, 32, 1, row=Affine(step=32), col=here)
        work = {"fp32": 4, "int": 4, "smem_ops": 4}
        made.append(
            region_kernel("norm", (1, 1), 1, [column], [norm], work, steps=rows // 32, chain=60, smem=256)
        )
        part = Affine(bx=256)
        scaled = Block(q, 256, 1, row=part, col=here)
        reads = [Block(a, 256, 1, row=part, col=here), norm]
        made.append(region_kernel("scale", (down, 1), 8, reads, [scaled], {"fp32": 8, "sfu": 1, "int": 4}))
        left = cols - k - 1
        rest = Block(a, 32, max(left, 1), row=Affine(step=32), col=Affine(base=min(k + 1, cols - 1)))
        row = Block(r, 1, max(left, 1), row=here, col=Affine(base=min(k + 1, cols - 1)))
        reads = [Block(q, 32, 1, row=Affine(step=32), col=here)]
        # no column follows the last one: its third kernel is launched and has nothing to do
        made.append(
            region_kernel(
                "update", (1, 1), 8, [*reads, rest] if left else reads, [row, rest] if left else [],
                {"fp32": 16, "int": 8}, steps=rows // 32, registers=40,
            )
        )  # fmt: skip
    return Job("gramschm", made)


def gaussian(n: int = 256) -> Job:
    """GAUSSIAN (Rodinia), 2 kernels a column, 510 for n = 256: Fan1 makes multipliers, Fan2 takes rows off.

    Assumed: tiles of 16 x 16 that stay in place (Rodinia's move with the pivot), a grid of TBs with work
    alone, and a Fan1 that keeps multipliers and pivot row as rows of two matrices; no right-hand side.
    """
    blocks = whole("gaussian: n", n, 16)
    claim_launches(2 * n, f"gaussian: n = {n:,}", 9 * n, 2 * n)
    memory = Memory()
    a, m, u = (memory.tensor(name, n, n, 4) for name in "amu")
    made = []
    for t in range(n - 1):
        first = (t + 1) // 16
        pivot, on, left = Affine(base=t), Affine(base=16 * first), blocks - first
        reads = [Block(a, 16 * left, 1, row=on, col=pivot), Block(a, 1, 16 * left, row=pivot, col=on)]
        reads.append(Block(a, 1, 1, row=pivot, col=pivot))
        kept = [Block(to, 1, 16 * left, row=pivot, col=on) for to in (m, u)]
        made.append(region_kernel("fan1", (1, 1), -(-left // 2), reads, kept, {"fp32": 8, "int": 6}))
        tile = Block(a, 16, 16, row=Affine(on.base, by=16), col=Affine(on.base, bx=16))
        # both are kept as rows: the rows of a tile are columns of m
        reads = [Block(m, 1, 16, pivot, tile.row), Block(u, 1, 16, pivot, tile.col)]
        made.append(region_kernel("fan2", (left, left), 8, [*reads, tile], [tile], {"fp32": 1, "int": 10}))
    return Job("gaussian", made)


def lud(n: int = 256) -> Job:
    """LUD (Rodinia), blocks of 16: diagonal, perimeter and internal kernels, 3 n/16 - 2: 46 for n = 256."""
    blocks = whole("lud: n", n, 16)
    claim_launches(3 * blocks, f"lud: n = {n:,}", 11 * blocks, 3 * blocks)
    memory = Memory()
    a = memory.tensor("a", n, n, 4)

    def block(row: Affine, col: Affine) -> Block:
        return Block(a, 16, 16, row=row, col=col)

    made = []
    for i in range(blocks):
        left, here = blocks - i - 1, Affine(base=16 * i)
        corner = block(here, here)
        work = {"fp32": 4, "int": 6, "smem_ops": 6}
        # 16 threads, one step a row, each waiting for the one before in shared memory
        made.append(
            region_kernel("diagonal", (1, 1), 1, [corner], [corner], work, steps=16, chain=60, smem=1024)
        )
        if not left:
            break
        on = 16 * (i + 1)
        right, below = block(here, Affine(base=on, bx=16)), block(Affine(base=on, bx=16), here)
        made.append(
            region_kernel(
                "perimeter", (left, 1), 1, [corner, right, below], [right, below],
                {"fp32": 16, "int": 16, "smem_ops": 16}, steps=16, chain=30, smem=3072,
            )
        )  # fmt: skip
        inner = block(Affine(base=on, by=16), Affine(base=on, bx=16))
        made.append(
            region_kernel(
                "internal", (left, left), 8,
                [block(here, Affine(base=on, bx=16)), block(Affine(base=on, by=16), here), inner], [inner],
                {"fp32": 16, "int": 12, "smem_ops": 32}, smem=2048,
            )
        )  # fmt: skip
    return Job("lud", made)
