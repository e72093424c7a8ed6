"""The GEMM kernels of cuBLAS 13.1 for Hopper's wgmma and TMA (``nvjet``), as sweeps of an H200 saw them.

They are facts of the library, not fitted: a tile of C, the letter that ends the name, how many k-steps of 64
fit in shared memory, the clusters that were seen with the tile. wgmma's 64 rows run along BLAS's m (``T``) or
n (``N``). Tiles of 24,576 elements and more are computed by two warp groups together (``coop``).
"""

from __future__ import annotations

from dataclasses import dataclass

K_STEP = 64  # elements of K a k-step of fp16 and bf16: one row of 128 B
COOPERATIVE = 128 * 192  # elements of a tile from which on both consumer warp groups work on it
PAIRS_OF_64 = (128, 256)  # rows that two warp groups divide into whole wgmma of 64: coopA, else coopB
# k-steps in shared memory where A is not transposed (first) or B is (second), if they are others
FEWER_STAGES = {(96, 64): (8, 10), (96, 128): (6, 7), (192, 192): (3, 4), (256, 160): (4, 3)}
THREADS = 384  # a producer warp group and two consumers


@dataclass(frozen=True, slots=True)
class Nvjet:
    """A kernel of one tile and its clusters.

    Attributes
    ----------
    m, n : int
        Rows and columns of C (column-major, as BLAS) of a tile.
    swapped : bool
        wgmma's rows run along n: the name ends with N.
    stages : int
        K-steps that shared memory holds.
    clusters : tuple of tuple of int
        TBs of a cluster along m and n.
    """

    m: int
    n: int
    swapped: bool
    stages: int
    clusters: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        """Elements of the tile along wgmma's M, a multiple of 64."""
        return self.n if self.swapped else self.m

    @property
    def columns(self) -> int:
        """Elements of the tile along wgmma's N, a multiple of 8."""
        return self.m if self.swapped else self.n

    @property
    def cooperative(self) -> str:
        """How two warp groups share a tile: ``coopA``, ``coopB``, or not at all."""
        if self.m * self.n < COOPERATIVE:
            return ""
        return "coopA" if self.rows in PAIRS_OF_64 else "coopB"

    def stages_of(self, trans_a: str, trans_b: str) -> int:
        """Return the k-steps in shared memory of the kernel for a layout."""
        plain, turned = FEWER_STAGES.get((self.m, self.n), (self.stages, self.stages))
        if trans_b == "T":
            return turned
        return plain if trans_a == "N" else self.stages

    def takes(self, trans_a: str, trans_b: str) -> bool:
        """Say whether the layout fits: TMA fetches at least 32 elements of a side that runs along rows."""
        return not (trans_a == "N" and self.m % 32) and not (trans_b == "T" and self.n % 32)


def _kernel(tile: str, letter: str, stages: int, clusters: str) -> Nvjet:
    m, n = map(int, tile.split("x"))
    pairs = (cluster.split("x") for cluster in clusters.split())
    return Nvjet(m, n, letter == "N", stages, tuple((int(a), int(b)) for a, b in pairs))


KERNELS: tuple[Nvjet, ...] = (
    _kernel("8x64", "N", 16, "2x1 4x1"),
    _kernel("16x64", "N", 16, "2x1 4x1"),
    _kernel("24x64", "N", 16, "2x1 4x1 4x2"),
    _kernel("32x64", "N", 16, "2x1 4x1 4x2"),
    _kernel("32x128", "N", 10, "4x2"),
    _kernel("32x192", "N", 7, "4x2"),
    _kernel("40x64", "N", 16, "4x1 4x2"),
    _kernel("48x64", "N", 15, "4x1 4x2"),
    _kernel("56x64", "N", 14, "4x1 4x2"),
    _kernel("64x8", "T", 16, "1x1 1x2 2x1 2x4 4x1 4x2"),
    _kernel("64x16", "T", 16, "1x2 2x1 2x4 4x1 4x2"),
    _kernel("64x24", "T", 16, "2x4"),
    _kernel("64x32", "T", 16, "1x2 2x1 2x4 4x1 4x2"),
    _kernel("64x40", "T", 16, "2x4"),
    _kernel("64x48", "T", 15, "1x4 2x4"),
    _kernel("64x64", "T", 13, "2x1 2x4 4x1 4x2"),
    _kernel("64x80", "T", 11, "4x2"),
    _kernel("64x88", "T", 11, "2x1"),
    _kernel("64x96", "T", 10, "2x1 4x2"),
    _kernel("64x128", "N", 8, "2x1 4x2"),
    _kernel("64x200", "T", 6, "4x1"),
    _kernel("64x216", "T", 6, "4x2"),
    _kernel("64x256", "N", 5, "2x1"),
    _kernel("64x384", "T", 3, "2x1"),
    _kernel("64x512", "T", 2, "2x1"),
    _kernel("72x64", "N", 12, "1x2 4x1"),
    _kernel("72x128", "N", 8, "2x4"),
    _kernel("80x64", "N", 11, "1x2 4x1 4x2"),
    _kernel("80x128", "N", 8, "2x1 4x1 4x2"),
    _kernel("88x64", "N", 11, "4x1"),
    _kernel("96x64", "N", 10, "1x1 1x2 2x1 2x4 4x1 4x2"),
    _kernel("96x128", "N", 7, "1x2 2x1 4x1"),
    _kernel("112x64", "N", 9, "2x1 4x1 4x2"),
    _kernel("112x128", "N", 7, "1x4 4x2"),
    _kernel("128x8", "T", 12, "2x1 4x1"),
    _kernel("128x16", "T", 11, "1x4 2x1 4x1"),
    _kernel("128x32", "T", 10, "2x1 2x4 4x1"),
    _kernel("128x40", "T", 10, "2x4"),
    _kernel("128x48", "T", 9, "2x4"),
    _kernel("128x56", "T", 9, "2x4"),
    _kernel("128x64", "T", 8, "1x2 2x1 2x4 4x1"),
    _kernel("128x72", "T", 8, "4x2"),
    _kernel("128x96", "T", 7, "1x2"),
    _kernel("128x104", "T", 7, "4x2"),
    _kernel("128x112", "T", 7, "2x4"),
    _kernel("128x120", "T", 6, "2x4"),
    _kernel("128x128", "T", 6, "2x1 2x4 4x1 4x2"),
    _kernel("128x160", "T", 5, "2x1 4x2"),
    _kernel("128x192", "N", 5, "1x2 2x1"),
    _kernel("128x200", "T", 5, "4x1"),
    _kernel("128x216", "T", 4, "1x1 2x1 4x2"),
    _kernel("128x256", "N", 4, "2x1 2x4 4x2"),
    _kernel("144x64", "N", 8, "1x2 2x1 4x1"),
    _kernel("144x128", "N", 6, "1x2 2x1 2x2 2x4 4x1"),
    _kernel("168x64", "N", 7, "2x1 4x1"),
    _kernel("168x128", "N", 5, "1x2 2x1 2x4 4x1"),
    _kernel("176x64", "N", 7, "4x1"),
    _kernel("176x128", "N", 5, "1x2 2x4 4x1"),
    _kernel("192x8", "T", 8, "1x1 2x1 2x4 4x1 4x2"),
    _kernel("192x16", "T", 8, "2x1 4x1"),
    _kernel("192x32", "T", 7, "2x1 4x1"),
    _kernel("192x64", "T", 6, "1x2 2x1"),
    _kernel("192x96", "T", 5, "1x2"),
    _kernel("192x128", "T", 5, "1x2 2x1 2x4"),
    _kernel("192x192", "N", 4, "1x2 2x1"),
    _kernel("192x208", "T", 4, "2x1"),
    _kernel("256x8", "T", 6, "2x1 4x1"),
    _kernel("256x16", "T", 6, "2x1 4x1"),
    _kernel("256x32", "T", 5, "4x1"),
    _kernel("256x48", "T", 5, "1x2"),
    _kernel("256x64", "T", 5, "1x2"),
    _kernel("256x96", "T", 4, "1x2"),
    _kernel("256x104", "T", 4, "4x2"),
    _kernel("256x112", "T", 4, "2x4"),
    _kernel("256x120", "T", 4, "2x1"),
    _kernel("256x128", "T", 4, "1x2 1x4 2x4 4x2"),
    _kernel("256x136", "T", 4, "1x2"),
    _kernel("256x144", "T", 4, "1x2 2x1"),
    _kernel("256x152", "T", 4, "1x2"),
    _kernel("256x160", "T", 4, "1x2"),
    _kernel("320x64", "T", 4, "1x2 4x2"),
    _kernel("320x128", "T", 3, "1x2 1x4 2x4 4x2"),
    _kernel("384x8", "T", 4, "1x1 2x1 4x1"),
    _kernel("384x16", "T", 4, "4x1"),
    _kernel("384x32", "T", 4, "4x1"),
    _kernel("384x64", "N", 3, "1x2 4x1"),
    _kernel("512x8", "T", 3, "1x1 2x1 4x1"),
    _kernel("512x16", "T", 3, "4x1"),
    _kernel("512x32", "T", 3, "4x1"),
    _kernel("512x64", "N", 2, "1x2"),
)
