"""Batched GEMM: many GEMMs of one shape in one launch, as the attention of a Transformer needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor

from . import cutlass, volta_gemm
from .cutlass import Multistage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .tiling import Tiling

    Ints = NDArray[np.int64]


def _beside(name: str, tensor: Tensor, rows: int, cols: int, batch: int) -> bool:
    """Whether a tensor holds its matrices side by side; else they are stacked."""
    if (tensor.rows, tensor.cols) == (rows, cols * batch):
        return True
    if (tensor.rows, tensor.cols) != (rows * batch, cols):
        raise WorkloadError(
            f"gemm {name}: {tensor.name} is {tensor.rows} x {tensor.cols}, not {batch} of {rows} x {cols}"
        )
    return False


def batched_gemm(
    name: str,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    size: tuple[int, int, int],
    tiling: Tiling | Multistage,
    batch: int,
    *,
    a_t: bool = False,
    b_t: bool = False,
    stream: int = 0,
) -> Kernel:
    """Make C_i = A_i B_i for ``batch`` GEMMs of ``size`` (M, N, K).

    A_i is [K, M] with ``a_t``, B_i is [N, K] with ``b_t``.

    The matrices of a tensor are stacked or side by side (a strided batch of cuBLAS either way), as its shape
    says. The grid's z is the index of the GEMM.
    """
    m, n, k = size
    item = a.item
    if b.item != item or tiling.split_k > 1:
        raise WorkloadError(f"gemm {name}: operands must be of one type, and K is not split")
    shapes = (k, m) if a_t else (m, k), (n, k) if b_t else (k, n), (m, n)
    beside = tuple(_beside(name, t, *shape, batch) for t, shape in zip((a, b, c), shapes, strict=True))
    layout = (a_t, b_t, False, batch, (beside[0], beside[1], beside[2]))
    if isinstance(tiling, Multistage):
        multi = cutlass.Case(tiling, m, n, k, item, c.item, *layout)
        cutlass.check(name, multi, (a, b, c))
        program = cutlass.program_of(multi)
    else:
        volta = volta_gemm.Case(tiling, m, n, k, item, c.item, *layout)
        volta_gemm.check(name, volta, (a, b, c))
        program = volta_gemm.program_of(volta)
    gx, gy, _ = tiling.grid(m, n, k)

    def side(tile: int, whole: int, at: Callable[[Ints], Ints]) -> Callable[[Ints], tuple[Ints, Ints]]:
        def ends(tbs: Ints) -> tuple[Ints, Ints]:
            first = at(tbs) * tile
            return first, np.minimum(first + tile, whole)

        return ends

    down = side(tiling.tm, m, lambda tbs: tbs // gx % gy)
    over = side(tiling.tn, n, lambda tbs: tbs % gx)
    deep = side(k, k, lambda tbs: np.zeros_like(tbs))
    sides = (
        (deep, down) if a_t else (down, deep),
        (over, deep) if b_t else (deep, over),
        (down, over),
    )

    def access(operand: int, tensor: Tensor, mode: Mode) -> Access:
        (rows, cols), shape, across = sides[operand], shapes[operand], beside[operand]

        def regions(tbs: Ints) -> Ints:
            tbs = np.asarray(tbs, np.int64)
            z = tbs // (gx * gy)
            row, col = (0 if across else shape[0]) * z, (shape[1] if across else 0) * z
            edges = [end + row for end in rows(tbs)] + [end + col for end in cols(tbs)]
            return np.stack(edges, axis=1)

        return Access(tensor, mode, regions)

    accesses = (access(0, a, "read"), access(1, b, "read"), access(2, c, "write"))
    grid = (gx, gy, batch)
    return Kernel(
        name, program, grid, (a, b, c), accesses, stream, library=tiling.library, tensor=tiling.tensor
    )
