"""What the names of cuDNN's kernels say: tile, stages, warps."""

from __future__ import annotations

import re

from pysim.errors import WorkloadError

_SIZES = re.compile(r"tilesize(\d+)x(\d+)x(\d+)")
_STAGED = re.compile(r"stage(\d+)_warpsize(\d+)x(\d+)x1")


def tile_of(name: str) -> tuple[int, int, int]:
    """Return the three sizes of a tile in the name's order; refuse names without."""
    found = _SIZES.search(name)
    if found is None:
        raise WorkloadError(f"convolution: no template for kernel {name[:60]}")
    first, second, deep = map(int, found.groups())
    return first, second, deep


def warps_of(name: str) -> tuple[int, int, int]:
    """Return stages, and warps along the tile's first and second size; refuse names without."""
    found = _STAGED.search(name)
    if found is None:
        raise WorkloadError(f"convolution: no template for kernel {name[:60]}")
    stages, first, second = map(int, found.groups())
    return stages, first, second
