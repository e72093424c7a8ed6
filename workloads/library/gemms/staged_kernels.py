"""Kernels of cuBLAS for Turing and Ampere by their names: the tile, its warps, registers and shared memory.

What a name does not say (registers, shared memory, warps of CUTLASS's) is from the sweep on an H200.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError

from .staged_tile import StagedTile, Unit

if TYPE_CHECKING:
    from .staged_gemm import Order

_XMMA = re.compile(
    r"sm80_xmma_gemm_f32f32_(?P<type>tf32|f32)f32_f32_(?P<layout>..)_n_tilesize(?P<n>\d+)x(?P<m>\d+)x(?P<k>\d+)"
    r"_stage(?P<stages>\d+)_warpsize(?P<wn>\d+)x(?P<wm>\d+)x1_"
)
_CUTLASS = re.compile(
    r"cutlass_(?P<chip>75|80)_(?P<unit>simt_s|(?:wmma_)?tensorop_)(?P<rest>\w*?)gemm_?(?P<type>bf16|f16|)_?"
    r"(?P<m>\d+)x(?P<n>\d+)(?:_(?P<k>\d+)x(?P<stages>\d+))?_(?P<layout>..)_align(?P<align>\d+)"
)
TURING = 32, 2  # k-step and stages of kernels whose names do not say: their shared memory holds 2 of 32
# warps along m and n of CUTLASS's kernels: threads as launched, warps as square as the tile allows
WARPS = {
    (32, 32): (2, 2),
    (32, 128): (1, 4),
    (128, 32): (4, 1),
    (64, 64): (2, 2),
    (64, 128): (2, 2),
    (128, 64): (2, 2),
    (128, 128): (2, 2),
    (64, 256): (1, 4),
    (256, 64): (4, 1),
    (128, 256): (2, 4),
    (256, 128): (4, 2),
}
TWO_WARPS = ((64, 64, 32, 4), (64, 64, 32, 5))  # tiles and stages of tf32 kernels that have two


def staged_kernel(name: str, registers: int, smem: int) -> tuple[StagedTile, Order, int]:
    """Return the tile of a kernel, the order of its tiles, and the bytes of a copy at most.

    ``registers`` a thread and ``smem`` bytes a TB: as launched. Raises WorkloadError for names of others.
    """
    found = _XMMA.match(name)
    if found:
        size = {key: int(found[key]) for key in ("m", "n", "k", "stages", "wm", "wn")}
        unit: Unit = "mma" if found["type"] == "tf32" else "ffma"
        tile = StagedTile(
            size["m"],
            size["n"],
            size["k"],
            (size["wm"], size["wn"]),
            size["stages"],
            unit,
            4,
            registers,
            smem,
        )
        return tile, "xmma", 4
    found = _CUTLASS.search(name)
    if found is None:
        raise WorkloadError(f"library GEMM: no template for kernel {name[:60]}")
    m, n = int(found["m"]), int(found["n"])
    step, stages = (int(found["k"]), int(found["stages"])) if found["k"] else TURING
    item = 2 if found["type"] else 4
    unit = "ffma" if found["unit"] == "simt_s" else "mma"
    warps = WARPS.get((m, n), (2, 2))
    if item == 4 and unit == "mma" and (m, n, step, stages) in TWO_WARPS:
        warps = 1, 2
    tile = StagedTile(m, n, step, warps, stages, unit, item, registers, smem)
    return tile, "cutlass", min(16, int(found["align"]) * item)
