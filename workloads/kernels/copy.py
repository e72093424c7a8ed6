"""Device copies and fills: each thread moves 16 B ``unroll`` times, all loads before the stores."""

from __future__ import annotations

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Tensor

from .pointwise import Field, elementwise, flat
from .tiles import WARP

COPIED = 512  # elements that a TB of PyTorch's element-wise kernels takes
OFFSET_INTS = 8  # of an element: its row and column by a multiplication with an inverse, and two addresses


def copy(
    name: str,
    source: Tensor,
    target: Tensor,
    *,
    start: int = 0,
    target_start: int = 0,
    count: int = 0,
    threads: int = 256,
    unroll: int = 4,
    stream: int = 0,
) -> Kernel:
    """Copy ``count`` elements (0: all) from flat element ``start`` to ``target_start`` of another tensor."""
    count = count or source.rows * source.cols - start
    if source.item != target.item:
        raise WorkloadError(f"copy {name}: elements of {source.item} and {target.item} B: must be equal")
    a = flat(source)
    b = a if target is source else flat(target)
    return elementwise(
        name, [Field(a, start)], [Field(b, target_start)], cols=count,
        per_element={}, threads=threads, unroll=unroll, stream=stream,
    )  # fmt: skip


def fill(name: str, target: Tensor, *, threads: int = 256, unroll: int = 1, stream: int = 0) -> Kernel:
    """Write all of a tensor (a memset, which split-K GEMMs need before their updates)."""
    view = flat(target)
    return elementwise(
        name, [], [Field(view)], cols=view.cols, per_element={}, threads=threads, unroll=unroll, stream=stream
    )


def copy_rows(name: str, row: Tensor, target: Tensor, *, stream: int = 0) -> Kernel:
    """Copy a row to each row of a tensor, as PyTorch's copy of an expanded tensor does.

    ``elementwise_kernel<128, 4>``: an element at a time, whose place divisions give (ATen, native/cuda).
    """
    rows_per_tb = max(1, min(WARP, COPIED // target.cols))
    return elementwise(
        name,
        [Field(row, repeated=True)],
        [Field(target)],
        cols=target.cols,
        per_element={"int": OFFSET_INTS},
        threads=128,
        widest=target.item,
        unroll=4,
        rows_per_tb=rows_per_tb,
        stream=stream,
    )
