"""What an attention call computes, and the tensors that its kernels share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Memory, Mode, Tensor
from pysim.workloads.library.arguments import check_elements, check_flags, check_sizes

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

ITEM = 2  # bytes of fp16 and bf16
MOST_TOKENS = 2**24  # of a sequence: loops over keys are written out
WIDTHS = (64, 128)  # of a head; the sweep has no other


@dataclass(frozen=True, slots=True)
class Attention:
    """softmax(Q K^T) V of ``batch`` x ``heads`` planes, each [q, d] x [k, d], fp16 or bf16.

    ``heads``: of the queries; ``kv_heads``: of keys and values. ``causal``: row i takes keys up to
    i + k - q. Raises WorkloadError for what no kernel here computes.
    """

    batch: int
    heads: int
    kv_heads: int
    q: int
    k: int
    d: int
    causal: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no size or flag, tensors that are too large, and heads that no kernel takes."""
        check_sizes("attention", batch=self.batch, heads=self.heads, kv_heads=self.kv_heads, d=self.d)
        check_sizes("attention", most=MOST_TOKENS, q=self.q, k=self.k)
        check_flags("attention", causal=self.causal)
        check_elements("attention", batch_x_heads_x_q_x_d=(self.batch, self.heads, self.q, self.d))
        check_elements("attention", batch_x_kv_heads_x_k_x_d=(self.batch, self.kv_heads, self.k, self.d))
        if self.d not in WIDTHS:
            raise WorkloadError(f"attention: heads of {self.d}: must be 64 or 128 wide")
        if self.heads % self.kv_heads:
            raise WorkloadError(f"attention: {self.heads} heads are no multiple of {self.kv_heads} kv heads")
        if self.causal and self.q != self.k:
            raise WorkloadError("attention: causal with other numbers of queries and keys is not known")

    @property
    def planes(self) -> int:
        """Pairs of batch and head."""
        return self.batch * self.heads

    @property
    def pitch(self) -> int:
        """Bytes of a row of Q, K, V and O."""
        return self.d * ITEM

    def flops(self, *, backward: bool = False) -> float:
        """FLOP of two GEMMs, of the five of a backward pass; half of them where ``causal``."""
        whole = 4.0 * self.planes * self.q * self.k * self.d * (2.5 if backward else 1.0)
        return whole / 2 if self.causal else whole

    def require_whole(self, rows: int, name: str) -> None:
        """Raise WorkloadError where queries or keys are no whole tiles, or kv heads are shared."""
        self.require_own_keys(name)
        if self.q % rows or self.k % rows:
            raise WorkloadError(
                f"attention: {name} of {self.q} queries and {self.k} keys: known are multiples of {rows}"
            )

    def require_own_keys(self, name: str) -> None:
        """Raise WorkloadError where heads share keys."""
        if self.heads != self.kv_heads:
            raise WorkloadError(
                f"attention: {name} of {self.heads} heads on {self.kv_heads}: known for one query alone"
            )

    def stacked(self, tensor: Tensor, *, keys: bool = False) -> Planes:
        """Return where the rows of the queries (or ``keys``) of each plane are if planes are stacked."""
        return Planes(tensor, self.k if keys else self.q, 1, self.d)

    def rows(self, memory: Memory, name: str, *, keys: bool = False, item: int = ITEM) -> Tensor:
        """Return a new tensor of all planes, one below the other: [planes * q or k, d]."""
        planes, length = (self.batch * self.kv_heads, self.k) if keys else (self.planes, self.q)
        return memory.tensor(name, planes * length, self.d, item)

    def scalars(self, memory: Memory, name: str) -> Tensor:
        """Return a new fp32 tensor with a value for each query: [planes, q]."""
        return memory.tensor(name, self.planes, self.q, 4)


@dataclass(frozen=True, slots=True)
class Planes:
    """Where the rows of each plane are in a tensor: stacked, or heads side by side.

    A plane has ``length`` rows of ``d`` elements. ``heads`` planes are side by side from column ``col0`` on,
    as in [batch * length, heads * d] or a part of a wider tensor; 1: planes are one below the other.
    """

    tensor: Tensor
    length: int
    heads: int
    d: int
    col0: int = 0

    def check(self, name: str, planes: int) -> None:
        """Raise WorkloadError where the tensor does not hold so many planes."""
        t, rows = self.tensor, planes // self.heads * self.length
        if planes % self.heads or t.rows != rows or not 0 <= self.col0 <= t.cols - self.heads * self.d:
            raise WorkloadError(
                f"attention: {name} is {t.rows} x {t.cols}: must have {rows} rows, and {self.heads} heads of"
                f" {self.d} from column {self.col0} on"
            )

    def place(self, plane: int, row: int) -> tuple[int, int]:
        """Return row and column of the tensor."""
        return plane // self.heads * self.length + row, self.col0 + plane % self.heads * self.d

    def access(
        self, mode: Mode, plane: Callable[[Ints], Ints], begin: Callable[[Ints], Ints], many: int
    ) -> Access:
        """Return the access of ``many`` rows of a plane from ``begin(tb)`` on."""

        def regions(tbs: Ints) -> Ints:
            tbs = np.asarray(tbs, np.int64)
            at = plane(tbs)
            row, col = at // self.heads * self.length + begin(tbs), self.col0 + at % self.heads * self.d
            return np.stack([row, row + many, col, col + self.d], 1)

        return Access(self.tensor, mode, regions)

    def strides(self, heads: int) -> tuple[int, int, int, int]:
        """Return bytes: of a row, of a batch of ``heads``, of a head, and before the first."""
        item, pitch = self.tensor.item, self.tensor.pitch
        if self.heads == 1:
            return pitch, heads * self.length * pitch, self.length * pitch, self.col0 * item
        return pitch, self.length * pitch, self.d * item, self.col0 * item


def row_access(
    tensor: Tensor, mode: Mode, begin: Callable[[Ints], Ints], end: Callable[[Ints], Ints]
) -> Access:
    """Return the access of whole rows [begin(tb), end(tb)) of a tensor."""

    def regions(tbs: Ints) -> Ints:
        tbs = np.asarray(tbs, np.int64)
        zero = np.zeros_like(tbs)
        return np.stack([begin(tbs), end(tbs), zero, zero + tensor.cols], 1)

    return Access(tensor, mode, regions)
