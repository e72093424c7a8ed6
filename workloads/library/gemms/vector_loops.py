"""Main loops of cuBLAS's kernels for one or few columns: what a warp loads, shares and executes of a k-step.

All load 4 B a lane at most. ``dots``: each warp loads what it needs of both matrices itself. Others: the TB
loads a step's columns of B, in ``largek`` its rows of A too, into shared memory. Nothing is loaded ahead of a
step but where ``ahead`` says so. Loads, instructions, reads and wavefronts of shared memory are counts of
Nsight Compute on an H200, a warp and step (h200_library_column_counters.csv). ``chain`` and ``begin`` are
fitted to GEMMs of other sizes than the sweep's (h200_library_columns.csv): single TBs on an SM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pysim.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Loop(NamedTuple):
    """What a k-step of a family takes.

    ``deep``: k of a step, of one lane with ``dots``; ``cols``: columns that are multiplied, however few there
    are. A warp executes ``ints`` instructions besides loads and multiplies, and ``reads`` of shared memory of
    ``waves`` wavefronts; for ``chain`` cycles instructions wait for each other. ``stages_a``: A goes through
    shared memory, too, and is awaited before B is loaded; ``ahead``: steps by which loads are issued
    earlier. ``begin``: cycles from a TB's start to its first load.
    """

    deep: int
    cols: int
    dots: bool
    ints: int
    reads: int
    waves: int
    chain: int
    stages_a: bool = False
    ahead: int = 0
    begin: int = 600


# gemvx: unrolled 32 times: a load of A, one of x, a multiply and three others
GEMVX = Loop(32, 1, dots=True, ints=96, reads=0, waves=0, chain=130, begin=1400)
GEMV2T = Loop(128, 1, dots=False, ints=38, reads=8, waves=11, chain=110, begin=1000)
# by columns of a TB; `waves` of these hold those of global loads beyond one each: a load takes two rows
SN_TN = {
    2: Loop(64, 2, dots=False, ints=35, reads=5, waves=16, chain=200, ahead=2, begin=250),
    4: Loop(64, 4, dots=False, ints=39, reads=6, waves=30, chain=170, ahead=2, begin=250),
    8: Loop(64, 8, dots=False, ints=49, reads=34, waves=40, chain=70),
}
SN_NN = {
    2: Loop(32, 2, dots=False, ints=30, reads=4, waves=9, chain=10),
    4: Loop(32, 4, dots=False, ints=30, reads=8, waves=20, chain=10),
}
LARGEK = Loop(16, 8, dots=False, ints=45, reads=32, waves=49, chain=400, stages_a=True)


def loop_of(name: str, cols: int) -> Loop:
    """Return the loop of a kernel that computes ``cols`` columns a TB; refuse names that are not known."""
    if name.startswith(("gemvx", "gemvNSP", "dot")):
        return GEMVX
    if name.startswith("gemv2T"):
        return GEMV2T
    if name.startswith("sgemm_largek"):
        return LARGEK
    tables: Mapping[str, dict[int, Loop]] = {"gemmSN_TN": SN_TN, "gemmSN_NN": SN_NN}
    for start, table in tables.items():
        if name.startswith(start):
            return next((loop for most, loop in table.items() if cols <= most), table[max(table)])
    raise WorkloadError(f"library GEMM: no template for kernel {name[:60]}")
