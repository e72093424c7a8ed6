"""Device copies and fills: each thread moves 16 B ``unroll`` times, all loads before the stores."""

from __future__ import annotations

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Tensor

from .pointwise import Field, elementwise, flat


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
