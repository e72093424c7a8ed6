"""What a GEMM computes, whatever its program: sizes, storage orders, batches, and what its TBs touch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Mode, Tensor
from pysim.program.warp_program import Affine, Pattern, TensorTile

from .split_k_serial import LAST_X, LAST_Y
from .tiles import Tile, blocks_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

Loads = list[tuple[Pattern, ...]]


class Tiled(Protocol):
    """How any GEMM is cut: a TB makes ``tm`` x ``tn`` of C in steps of ``tk``; ``split_k`` parts of K."""

    @property
    def tm(self) -> int:
        """Rows of C that a TB makes."""

    @property
    def tn(self) -> int:
        """Columns of C that a TB makes."""

    @property
    def tk(self) -> int:
        """K of a step of the main loop."""

    @property
    def split_k(self) -> int:
        """Parts of K, each a TB of its own."""

    def chunk(self, k: int) -> int:
        """Return K of one part of the split: whole steps."""

    def grid(self, m: int, n: int, k: int) -> tuple[int, int, int]:
        """Return TBs in x (N), y (M) and z (K)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operand's matrices are in a tensor whose rows have ``cols`` elements.

    The first matrix begins at column ``first``; each next one ``down`` rows below and ``right`` columns on.
    """

    cols: int
    first: int = 0
    down: int = 0
    right: int = 0


Places = tuple[Place, Place, Place]


@dataclass(frozen=True, slots=True)
class Case:
    """What a GEMM's program depends on: the tiling, sizes in elements, bytes an element and storage orders.

    ``batch``: GEMMs in one launch, along z of the grid. ``places``: where the matrices of A, B and C are;
    empty: each fills its tensor. ``times``: A has so many times K columns; the first are read, all are waited
    for. ``bias``: a row of N, argument 3, is added to each row of C.
    """

    tiling: Tiled
    m: int
    n: int
    k: int
    item: int
    c_item: int
    a_t: bool
    b_t: bool
    beta: bool
    batch: int = 1
    places: Places | tuple[()] = ()
    times: int = 1
    bias: bool = False

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        """Rows and columns of A, B and C as they are stored."""
        a = (self.k, self.m) if self.a_t else (self.m, self.k)
        return a, (self.n, self.k) if self.b_t else (self.k, self.n), (self.m, self.n)

    @property
    def args(self) -> int:
        """Arguments of the kernel: A, B, C and a bias."""
        return 4 if self.bias else 3

    def operands(self) -> tuple[Tile, Tile, Tile]:
        """Tiles of A, B and C as their tensors are stored."""
        t, chunk = self.tiling, self.tiling.chunk(self.k)
        (ap, az, a0), (bp, bz, b0), (cp, cz, c0) = self._strides()
        item, out, many = self.item, self.c_item, bool(self.places)
        if self.a_t:
            az = az if many else chunk * ap
            a = Tile(0, ap, item, t.tk, t.tm, by=t.tm * item, bz=az, step=t.tk * ap, base=a0)
        else:
            az = az if many else chunk * item
            a = Tile(0, ap, item, t.tm, t.tk, by=t.tm * ap, bz=az, step=t.tk * item, base=a0)
        if self.b_t:
            bz = bz if many else chunk * item
            b = Tile(1, bp, item, t.tn, t.tk, bx=t.tn * bp, bz=bz, step=t.tk * item, base=b0)
        else:
            bz = bz if many else chunk * bp
            b = Tile(1, bp, item, t.tk, t.tn, bx=t.tn * item, bz=bz, step=t.tk * bp, base=b0)
        return a, b, Tile(2, cp, out, t.tm, t.tn, bx=t.tn * out, by=t.tm * cp, bz=cz, base=c0)

    def _strides(self) -> list[tuple[int, int, int]]:
        """Return bytes from row to row, from GEMM to GEMM and before the first one, of A, B and C."""
        items = self.item, self.item, self.c_item
        if self.places:
            found = zip(self.places, items, strict=True)
            return [(p.cols * i, (p.down * p.cols + p.right) * i, p.first * i) for p, i in found]
        cols = [shape[1] for shape in self.shapes]
        cols[0] *= self.times
        return [(wide * item, 0, 0) for wide, item in zip(cols, items, strict=True)]

    def bias_tile(self) -> Tile:
        """Return the part of the bias that a TB adds."""
        t, item = self.tiling, self.c_item
        return Tile(3, self.n * item, item, 1, t.tn, bx=t.tn * item)

    def place(self, operand: int, row: Affine, col: Affine) -> tuple[Affine, Affine]:
        """Return where a part of an operand begins, with the offset of the GEMM in a batch."""
        if not self.places:
            return row, col
        at = self.places[operand]
        return replace(row, bz=at.down), replace(col, base=col.base + at.first, bz=at.right)

    def parts(self, rows: int, cols: int, k: int, at: int) -> tuple[TensorTile, TensorTile]:
        """Return what is read of A and B for ``k`` of the tile, ``at`` k-steps from where the loop is."""
        t = self.tiling
        deep = Affine(base=at * t.tk, bz=t.chunk(self.k), step=t.tk)
        down, across = Affine(by=t.tm), Affine(bx=t.tn)
        if self.places:
            deep = replace(deep, bz=0)
            row, col = self.place(0, *((deep, down) if self.a_t else (down, deep)))
            a = TensorTile(0, row, k, col, rows) if self.a_t else TensorTile(0, row, rows, col, k)
            row, col = self.place(1, *((across, deep) if self.b_t else (deep, across)))
            return a, TensorTile(1, row, cols, col, k) if self.b_t else TensorTile(1, row, k, col, cols)
        apart = self.k if self.times > 1 else 0
        a = (
            TensorTile(0, deep, k, down, rows)
            if self.a_t
            else TensorTile(0, down, rows, deep, k, self.times, apart)
        )
        return a, TensorTile(1, across, cols, deep, k) if self.b_t else TensorTile(1, deep, k, across, cols)

    def valid(self, number: int) -> tuple[int, int]:
        """Return how many rows and columns of a tile exist that is last in x and y as ``number`` says."""
        t = self.tiling
        gx, gy, _ = t.grid(self.m, self.n, self.k)
        rows = self.m - (gy - 1) * t.tm if number & LAST_Y else t.tm
        return rows, self.n - (gx - 1) * t.tn if number & LAST_X else t.tn

    def depth(self, number: int, last_z: int) -> int:
        """Return K of a TB that is the last in z where ``number`` has the bit ``last_z``, or of a batch."""
        t = self.tiling
        if self.places:
            return self.k
        gz = t.grid(self.m, self.n, self.k)[2]
        return self.k - (gz - 1) * t.chunk(self.k) if number & last_z else t.chunk(self.k)

    def accesses(
        self,
        a: Tensor,
        b: Tensor,
        c: Tensor,
        xs: Callable[[Ints], Ints],
        ys: Callable[[Ints], Ints],
        zs: Callable[[Ints], Ints],
    ) -> tuple[Access, ...]:
        """Return what TBs touch of one GEMM; ``xs``, ``ys``, ``zs`` give a TB's tile from its number."""
        t, chunk = self.tiling, self.tiling.chunk(self.k)
        used = a if self.times == 1 else replace(a, cols=self.k)
        a_reads = (
            blocks_of(used, (chunk, t.tm), zs, ys) if self.a_t else blocks_of(used, (t.tm, chunk), ys, zs)
        )
        b_reads = blocks_of(b, (t.tn, chunk), xs, zs) if self.b_t else blocks_of(b, (chunk, t.tn), zs, xs)
        c_tiles = blocks_of(c, (t.tm, t.tn), ys, xs)
        mode: Mode = "update" if t.split_k > 1 else "write"
        made = [Access(a, "read", a_reads), Access(b, "read", b_reads), Access(c, mode, c_tiles)]
        if self.beta and t.split_k == 1:
            made.append(Access(c, "read", c_tiles))
        return tuple(made)

    def bias_access(self, bias: Tensor, xs: Callable[[Ints], Ints], zs: Callable[[Ints], Ints]) -> Access:
        """Return what TBs read of the bias: of a split K, those of the last part."""
        parts = 1 if self.places else self.tiling.grid(self.m, self.n, self.k)[2]
        return Access(bias, "read", partial(_bias_part, self.tiling.tn, self.n, parts, xs, zs))


def _bias_part(
    tn: int, n: int, parts: int, xs: Callable[[Ints], Ints], zs: Callable[[Ints], Ints], tbs: Ints
) -> Ints:
    tbs = np.asarray(tbs, np.int64)
    first = xs(tbs) * tn
    last = np.ones_like(first) if parts == 1 else (zs(tbs) == parts - 1).astype(np.int64)
    return np.stack([np.zeros_like(first), last, first, np.minimum(first + tn, n)], axis=1)


def column_major(m: int, n: int, k: int, a_t: bool, b_t: bool) -> tuple[int, int, int, bool, bool]:
    """Turn a cuBLAS (column-major) problem into ours: C^T = op(B)^T op(A)^T; returns m, n, k, a_t, b_t."""
    return n, m, k, b_t, a_t


def agreed(
    name: str, a: Tensor, b: Tensor, c: Tensor, *, a_t: bool, b_t: bool, wide: bool
) -> tuple[int, int, int, int]:
    """Return M, N, K of C = op(A) op(B), and how many times K columns A has: more than one if ``wide``.

    Raises WorkloadError where the shapes of the tensors do not agree.
    """
    m, k = (a.cols, a.rows) if a_t else (a.rows, a.cols)
    kb, n = (b.cols, b.rows) if b_t else (b.rows, b.cols)
    times = k // kb if wide and not a_t and k % kb == 0 else 1
    if kb != k // times or (c.rows, c.cols) != (m, n):
        shapes = f"A is {m} x {k}, B is {kb} x {n}, C is {c.rows} x {c.cols}"
        raise WorkloadError(f"gemm {name}: {shapes}: shapes must agree")
    return m, n, kb, times
