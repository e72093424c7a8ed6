"""What kernels built with CUTLASS and its relatives have in common: layout of a grid, splits of K."""

from __future__ import annotations

import math

from pysim.workloads.library.hopper import SMS

PART_COST = 0.05  # what a further part of K adds, relative to the waves it saves; read off the sweep
MOST_PARTS = 16
STEPS_A_PART = 2
FEW_TILES = SMS  # up to which a second kernel adds parts of K; the TBs of larger grids add them in turn


def swizzled(tiles_m: int, tiles_n: int) -> tuple[int, int]:
    """Return the grid of CUTLASS's identity swizzle: up to 8 tiles along m of C share a column of TBs.

    The width follows from the tiles along m (n of CUTLASS's transposed problem), as in
    ``GemmIdentityThreadblockSwizzle<8>``. Where it does not divide them some TBs find no work.
    """
    width = 8 if tiles_m >= 6 else 4 if tiles_m >= 3 else 2 if tiles_m >= 2 else 1
    return tiles_n * width, -(-tiles_m // width)


def parts_of_k(tiles: int, k: int, step: int, slots: int, most: int = MOST_PARTS) -> int:
    """Return how many parts K is split into so that waves of `slots` TBs are full.

    Waves a part are what counts: 20 tiles on 264 slots take 13 parts, 272 tiles take 4 (5 waves of quarters
    beat 2 whole ones).
    """
    best, price = 1, float(math.ceil(tiles / slots))
    for parts in range(2, min(most, k // (STEPS_A_PART * step)) + 1):
        waves = math.ceil(tiles * parts / slots) / parts * (1 + PART_COST * (parts - 1))
        if waves < price - 1e-9:
            best, price = parts, waves
    return best
