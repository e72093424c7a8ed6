"""Batched GEMM: many GEMMs of one shape in one launch, as the attention of a Transformer needs them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor

from . import cutlass, volta_gemm
from .cutlass import Multistage
from .gemm_case import Place, Places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .tiling import Tiling

    Ints = NDArray[np.int64]


def place_in(name: str, tensor: Tensor, rows: int, cols: int, batch: int) -> Place:
    """Return where ``batch`` matrices of ``rows`` x ``cols`` that fill a tensor are: stacked or side by side.

    Raises WorkloadError for a tensor of another shape.
    """
    if (tensor.rows, tensor.cols) == (rows, cols * batch):
        return Place(tensor.cols, right=cols)
    if (tensor.rows, tensor.cols) != (rows * batch, cols):
        raise WorkloadError(
            f"gemm {name}: {tensor.name} is {tensor.rows} x {tensor.cols}, not {batch} of {rows} x {cols}"
        )
    return Place(cols, down=rows)


def _check_place(name: str, tensor: Tensor, place: Place, shape: tuple[int, int], batch: int) -> None:
    """Raise WorkloadError where a matrix is outside its tensor."""
    rows = (batch - 1) * place.down + shape[0]
    cols = place.first + (batch - 1) * place.right + shape[1]
    if place.cols != tensor.cols or rows > tensor.rows or cols > tensor.cols:
        raise WorkloadError(
            f"gemm {name}: {tensor.name} is {tensor.rows} x {tensor.cols}: no {batch} of {shape[0]} x"
            f" {shape[1]} from column {place.first} on"
        )


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
    places: Sequence[Place | None] = (None, None, None),
    bias: Tensor | None = None,
    stream: int = 0,
) -> Kernel:
    """Make C_i = A_i B_i + bias for ``batch`` GEMMs of ``size`` (M, N, K).

    A_i is [K, M] with ``a_t``, B_i is [N, K] with ``b_t``, ``bias`` is [1, N]. The matrices of a tensor are
    where ``places`` says; None: stacked or side by side (a strided batch of cuBLAS either way), as its shape
    says. The grid's z is the index of the GEMM.
    """
    m, n, k = size
    item = a.item
    if b.item != item or tiling.split_k > 1:
        raise WorkloadError(f"gemm {name}: operands must be of one type, and K is not split")
    shapes = (k, m) if a_t else (m, k), (n, k) if b_t else (k, n), (m, n)
    found = [
        given or place_in(name, tensor, *shape, batch)
        for given, tensor, shape in zip(places, (a, b, c), shapes, strict=True)
    ]
    for place, tensor, shape in zip(found, (a, b, c), shapes, strict=True):
        _check_place(name, tensor, place, shape, batch)
    at: Places = (found[0], found[1], found[2])
    case: cutlass.Case | volta_gemm.Case
    if isinstance(tiling, Multistage):
        case = cutlass.Case(
            tiling, m, n, k, item, c.item, a_t, b_t, False, batch, at, bias=bias is not None
        )  # fmt: skip
        cutlass.check(name, case, (a, b, c))
        program = cutlass.program_of(case)
    else:
        case = volta_gemm.Case(
            tiling, m, n, k, item, c.item, a_t, b_t, False, batch, at, bias=bias is not None
        )  # fmt: skip
        volta_gemm.check(name, case, (a, b, c))
        program = volta_gemm.program_of(case)
    gx, gy, _ = tiling.grid(m, n, k)
    down, over = _Side(tiling.tm, m, gx, gy, "y"), _Side(tiling.tn, n, gx, gy, "x")
    deep = _Side(k, k, gx, gy, "")
    sides = (deep, down) if a_t else (down, deep), (over, deep) if b_t else (deep, over), (down, over)
    modes: tuple[Mode, ...] = ("read", "read", "write")
    accesses = [
        Access(tensor, mode, partial(_regions, side, place))
        for tensor, mode, side, place in zip((a, b, c), modes, sides, at, strict=True)
    ]
    more = () if bias is None else (bias,)
    accesses += [case.bias_access(each, lambda t: t % gx, lambda t: t // (gx * gy)) for each in more]
    return Kernel(
        name,
        program,
        (gx, gy, batch),
        (a, b, c, *more),
        tuple(accesses),
        stream,
        library=tiling.library,
        tensor=tiling.tensor,
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """What a TB touches along one side of a matrix: ``tile`` of ``whole``, by its x or y, or all of it."""

    tile: int
    whole: int
    gx: int
    gy: int
    axis: str

    def ends(self, tbs: Ints) -> tuple[Ints, Ints]:
        number = tbs % self.gx if self.axis == "x" else tbs // self.gx % self.gy
        first = number * self.tile if self.axis else np.zeros_like(tbs)
        return first, np.minimum(first + self.tile, self.whole)

    def matrix(self, tbs: Ints) -> Ints:
        """Return the GEMM of each TB."""
        return tbs // (self.gx * self.gy)


def _regions(sides: tuple[_Side, _Side], place: Place, tbs: Ints) -> Ints:
    """Return the rows and columns of a tensor that TBs touch."""
    tbs = np.asarray(tbs, np.int64)
    (row0, row1), (col0, col1) = (side.ends(tbs) for side in sides)
    z = sides[0].matrix(tbs)
    row, col = z * place.down, place.first + z * place.right
    return np.stack([row0 + row, row1 + row, col0 + col, col1 + col], axis=1)
