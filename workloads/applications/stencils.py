"""FDTD-2D, HotSpot, PathFinder, NW, SHOC's FFT and wavefronts; sizes and tiles are assumed."""

from __future__ import annotations

from pysim.errors import WorkloadError
from pysim.program.job import Job, Kernel, Memory, Tensor
from pysim.program.memory_budget import claim_launches
from pysim.program.warp_program import Affine
from pysim.workloads.kernels.region import Block, region_kernel

from .linear_algebra import whole

PAD = 8  # a sector of fp32, which holds a halo of one column


def fdtd2d(n: int = 384, steps: int = 8) -> Job:
    """FDTD-2D (PolyBench), 3 kernels a step, 24 for 8: ey, ex, hz. Assumed: 384 x 384, TBs of 32 x 8."""
    grid = whole("fdtd2d: n", n, 32), whole("fdtd2d: n", n, 8)
    claim_launches(3 * steps, f"fdtd2d: {steps:,} steps", 10 * steps)
    memory = Memory()
    ex, ey, hz = (memory.tensor(name, n + 2, n + 2 * PAD, 4) for name in ("ex", "ey", "hz"))
    row, col = Affine(base=1, by=8), Affine(base=PAD, bx=32)
    before_row, before_col = Affine(base=0, by=8), Affine(base=PAD - 1, bx=32)
    mine = [Block(t, 8, 32, row=row, col=col) for t in (ex, ey, hz)]
    work = {"fp32": 3, "int": 12}
    made = []
    for _ in range(steps):
        above, left = Block(hz, 9, 32, row=before_row, col=col), Block(hz, 8, 33, row=row, col=before_col)
        made.append(region_kernel("ey", grid, 8, [mine[1], above], [mine[1]], work))
        made.append(region_kernel("ex", grid, 8, [mine[0], left], [mine[0]], work))
        right, below = Block(ex, 8, 33, row=row, col=col), Block(ey, 9, 32, row=row, col=col)
        made.append(region_kernel("hz", grid, 8, [mine[2], right, below], [mine[2]], work))
    return Job("fdtd2d", made)


def hotspot(n: int = 384, kernels: int = 10) -> Job:
    """HotSpot (Rodinia), two iterations a kernel: TBs of 16 x 16 threads make 12 x 12 points.

    Assumed: 384 x 384 and 10 kernels; no count was published.
    """
    blocks = whole("hotspot: n", n, 12)
    claim_launches(kernels, "hotspot", 3 * kernels)
    memory = Memory()
    power, one, other = (memory.tensor(name, n + 4, n + 4, 4) for name in ("power", "one", "other"))
    near = Affine(by=12), Affine(bx=12)
    mine = Affine(base=2, by=12), Affine(base=2, bx=12)
    made = []
    for _ in range(kernels):
        reads = [Block(t, 16, 16, *near) for t in (one, power)]
        made.append(
            region_kernel(
                "hotspot", (blocks, blocks), 8, reads, [Block(other, 12, 12, *mine)],
                {"fp32": 14, "int": 20, "smem_ops": 6}, steps=2, chain=30, smem=3072,
            )
        )  # fmt: skip
        one, other = other, one
    return Job("hotspot", made)


def pathfinder(cols: int = 101088, kernels: int = 5) -> Job:
    """PathFinder (Rodinia), 20 rows a kernel: TBs of 256 threads make 216 columns.

    Assumed: Rodinia's 100000 columns, rounded up to whole TBs, and 100 rows, so 5 kernels; no count was
    published.
    """
    tbs = whole("pathfinder: cols", cols, 216)
    claim_launches(kernels, "pathfinder", 3 * kernels, kernels)
    memory = Memory()
    wall = memory.tensor("wall", 20 * kernels, cols + 40, 4)
    one, other = (memory.tensor(name, 1, cols + 40, 4) for name in ("one", "other"))
    made = []
    for k in range(kernels):
        reads = [
            Block(one, 1, 256, col=Affine(bx=216)),
            Block(wall, 1, 256, row=Affine(base=20 * k, step=1), col=Affine(bx=216)),
        ]
        made.append(
            region_kernel(
                "pathfinder", (tbs, 1), 8, reads, [Block(other, 1, 216, col=Affine(base=20, bx=216))],
                {"int": 12, "smem_ops": 4}, steps=20, chain=30, smem=2048,
            )
        )  # fmt: skip
        one, other = other, one
    return Job("pathfinder", made)


def _diagonals(memory: Memory, side: int, size: int) -> list[tuple[Tensor, int]]:
    """Return (blocks, up) of the anti-diagonals of a square of blocks of ``size`` x ``size``.

    The blocks of a diagonal are adjacent, between two that are never written, which the edge reads. Block i
    is at i + 1; the one above it is at i + ``up`` of the diagonal before, and the one to the left follows
    that. So each block is contiguous in memory, and no diagonal overlaps another.
    """
    made = []
    for d in range(2 * side - 1):
        tbs = min(d, 2 * side - 2 - d) + 1
        made.append((memory.tensor(f"diagonal{d}", size * (tbs + 2), size, 4), int(d >= side)))
    return made


def _sweep(
    memory: Memory, name: str, side: int, size: int, work: dict[str, int], steps: int, given: bool, smem: int
) -> list[Kernel]:
    """Make a kernel a diagonal; a block needs the last row above it and the last column left of it."""
    diagonals = _diagonals(memory, side, size)
    made = []
    for d, (mine, up) in enumerate(diagonals):
        tbs = mine.rows // size - 2
        here = Block(mine, size, size, Affine(size, size))
        reads = []
        if given:
            costs = memory.tensor(f"given{d}", size * tbs, size, 4)
            reads.append(Block(costs, size, size, Affine(0, size)))
        if d:
            before = diagonals[d - 1][0]
            reads.append(Block(before, 1, size, Affine(size * up + size - 1, size)))
            reads.append(Block(before, size, 1, Affine(size * (up + 1), size), Affine(size - 1)))
        made.append(region_kernel(name, (tbs, 1), 1, reads, [here], work, steps=steps, chain=50, smem=smem))
    return made


def nw(n: int = 2048) -> Job:
    """NW (Rodinia), a kernel a diagonal of blocks of 16 x 16, 2 n/16 - 1: 255 for n = 2048.

    Assumed: blocks are contiguous in memory, diagonal after diagonal; the corner is left out, as its block is
    done when those beside it are.
    """
    blocks = whole("nw: n", n, 16)
    claim_launches(2 * blocks - 1, f"nw: n = {n:,}", 8 * blocks)
    work = {"int": 12, "smem_ops": 4}
    return Job("nw", _sweep(Memory(), "nw", blocks, 16, work, 31, True, 2180))


def fft(kernels: int = 60, batch: int = 256) -> Job:
    """FFT (SHOC), 60 kernels: transforms of 512 complex fp32 in place, forward and back, a TB each.

    Assumed: a batch of 256 (1 MB, its smallest size), 64 threads a TB and 5 n log2(n) flops.
    """
    if min(kernels, batch) < 1:
        raise WorkloadError(f"fft: {kernels} kernels, batch {batch}: must be positive")
    claim_launches(kernels, "fft", 2 * kernels)
    data = Memory().tensor("data", batch, 1024, 4)
    mine = Block(data, 1, 1024, row=Affine(bx=1))
    work = {"fp32": 120, "int": 40, "smem_ops": 32}
    made = [
        region_kernel(
            ("forward", "backward")[number % 2], (batch, 1), 2, [mine], [mine], work,
            steps=3, chain=60, smem=4608, registers=64,
        )
        for number in range(kernels)
    ]  # fmt: skip
    return Job("fft", made)


def wavefront(graphs: int = 6, side: int = 64) -> Job:
    """Wavefronts of side x side tasks one after another, a kernel a diagonal: each task needs two or one.

    Published: six graphs of 4 K tasks. Assumed: a task is a TB of a warp on a block of 8 x 8.
    """
    if min(graphs, side) < 1:
        raise WorkloadError(f"wavefront: {graphs} graphs of side {side}: must be positive")
    launches = graphs * (2 * side - 1)
    claim_launches(launches, f"wavefront: {graphs:,} graphs of side {side:,}", 3 * launches)
    memory = Memory()
    work = {"fp32": 8, "int": 12, "smem_ops": 4}
    made = [k for _ in range(graphs) for k in _sweep(memory, "task", side, 8, work, 16, False, 0)]
    return Job("wavefront", made)
