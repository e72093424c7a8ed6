"""What runs: tensors, programs, kernels and jobs. Plain data; the core and the schemes read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from pysim.errors import WorkloadError

from .warp_program import Recorded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .footprint import Footprint
    from .host_copy import Copy
    from .warp_program import Program

Mode = Literal["read", "write", "update"]
MAX_TBS = 2**31 - 1
ALIGN = 256


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A row-major matrix in global memory, at an address that the job's allocator chose.

    ``pitch`` is the distance of two rows in bytes. Tensors are compared by identity; two tensors may
    share memory (a reused buffer): dependences go by address.
    """

    name: str
    rows: int
    cols: int
    item: int
    address: int

    @property
    def pitch(self) -> int:
        """Bytes from one row to the next."""
        return self.cols * self.item

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor."""
        return self.rows * self.pitch

    def meets(self, other: Tensor) -> bool:
        """Whether the two share memory."""
        return self.address < other.address + other.nbytes and other.address < self.address + self.nbytes


@dataclass(slots=True)
class Memory:
    """Bump allocator of global memory; addresses are multiples of 256 B, as cudaMalloc's are."""

    next_address: int = 1 << 28
    tensors: list[Tensor] = field(default_factory=list)

    def tensor(self, name: str, rows: int, cols: int, item: int) -> Tensor:
        """Allocate a ``rows`` x ``cols`` matrix of ``item``-byte elements."""
        for label, value in (("rows", rows), ("cols", cols), ("item", item)):
            if value <= 0:
                raise WorkloadError(f"tensor {name}: {label} = {value}: must be positive")
        made = Tensor(name, rows, cols, item, self.next_address)
        self.next_address += -(-made.nbytes // ALIGN) * ALIGN
        self.tensors.append(made)
        return made


@dataclass(frozen=True, slots=True)
class Access:
    """One tensor as the TBs of a kernel touch it.

    ``regions(tbs)`` takes TB numbers (int64, any length n) and returns (n, 4) int64: row0, row1, col0,
    col1 in elements, half open; an empty region (row0 >= row1) touches nothing. TB number =
    x + grid_x * (y + grid_y * z).
    """

    tensor: Tensor
    mode: Mode
    regions: Callable[[NDArray[np.int64]], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch of a program on a grid. ``args[i]`` is the tensor that patterns with arg i address.

    What its TBs touch is told by ``accesses``, or by ``footprint`` where the kernel was recorded. With
    ``flags``: what completes each of the kernel's own semaphores, by which its TBs wait for each other; None:
    they wait by their place in z, or not at all. ``behind``: (n, 2) TB numbers: who waits so, and for whom
    (lower ones, that wait for nobody before they go by ``Code.turned``). ``together``: all TBs must be
    resident at once (a cooperative launch). ``parameters``: how many pieces of 64 B of its parameters the
    code reads before it does anything (``gpu.sm.parameters``).
    With ``copy`` it is no kernel but a copy from the host (``copies.copy_of``). ``sized(warps)``:
    the same kernel by TBs of so many warps. ``staged()``: what it is as a stage of a persistent kernel, where
    a compiler made other code of it.
    """

    name: str
    program: Program | Recorded
    grid: tuple[int, int, int]
    args: tuple[Tensor, ...]
    accesses: tuple[Access, ...]
    stream: int = 0
    footprint: Footprint | None = None
    copy: Copy | None = None
    sized: Callable[[int], Kernel] | None = None
    staged: Callable[[], Kernel] | None = None
    flags: NDArray[np.int64] | None = None
    behind: NDArray[np.int64] | None = None
    together: bool = False
    parameters: int = 0

    def __post_init__(self) -> None:
        """Refuse grids that no GPU takes, and two tellings of what is touched."""
        if self.footprint is not None and self.accesses:
            raise WorkloadError(
                f"kernel {self.name}: accesses and a footprint: only one of them may be given"
            )
        total = 1
        for size in self.grid:
            if size <= 0:
                raise WorkloadError(f"kernel {self.name}: grid {self.grid}: every size must be positive")
            total *= size
        if total > MAX_TBS:
            raise WorkloadError(f"kernel {self.name}: grid {self.grid} has {total} TBs: at most {MAX_TBS}")

    @property
    def tbs(self) -> int:
        """Thread blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def affine(self) -> bool:
        """Whether every address follows from TB and arguments, not from data; what a copy writes is told."""
        listed = isinstance(self.program, Recorded) and self.program.blocks is not None
        return self.copy is not None or (self.footprint is None and not listed)


@dataclass(frozen=True, slots=True)
class Job:
    """All kernels of one program run, in the order in which the host launches them.

    ``events`` are (earlier kernel, later kernel) pairs: the host made the later one's stream wait.
    """

    name: str
    kernels: Sequence[Kernel]
    events: Sequence[tuple[int, int]] = ()
    steps: int = 1


def variants(kernel: Kernel) -> NDArray[np.int64]:
    """Return the variant of every TB: the sum of 1 (last x), 2 (last y) and 4 (last z), or its row."""
    if isinstance(kernel.program, Recorded):
        rows = kernel.program.tb_rows
        return np.zeros(kernel.tbs, np.int64) if rows is None else np.asarray(rows, np.int64)
    tb = np.arange(kernel.tbs, dtype=np.int64)
    x, y, z = kernel.grid
    last = [tb % x == x - 1, tb // x % y == y - 1, tb // (x * y) == z - 1]
    return np.asarray(sum(bit.astype(np.int64) << i for i, bit in enumerate(last)))
