"""What an attention call computes, and the tensors that its kernels share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Memory, Mode, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

ITEM = 2  # bytes of fp16 and bf16
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
        """Refuse sizes that are not positive, and heads that no kernel takes."""
        if min(self.batch, self.heads, self.kv_heads, self.q, self.k) <= 0:
            raise WorkloadError("attention: every size must be positive")
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

    def rows(self, memory: Memory, name: str, *, keys: bool = False, item: int = ITEM) -> Tensor:
        """Return a new tensor of all planes, one below the other: [planes * q or k, d]."""
        planes, length = (self.batch * self.kv_heads, self.k) if keys else (self.planes, self.q)
        return memory.tensor(name, planes * length, self.d, item)

    def scalars(self, memory: Memory, name: str) -> Tensor:
        """Return a new fp32 tensor with a value for each query: [planes, q]."""
        return memory.tensor(name, self.planes, self.q, 4)


def row_access(
    tensor: Tensor, mode: Mode, begin: Callable[[Ints], Ints], end: Callable[[Ints], Ints]
) -> Access:
    """Return the access of whole rows [begin(tb), end(tb)) of a tensor."""

    def regions(tbs: Ints) -> Ints:
        tbs = np.asarray(tbs, np.int64)
        zero = np.zeros_like(tbs)
        return np.stack([begin(tbs), end(tbs), zero, zero + tensor.cols], 1)

    return Access(tensor, mode, regions)
