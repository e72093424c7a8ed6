"""What runs: tensors, kernels and jobs. Plain data, which the schemes and the core read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from pysim.errors import PickleError, WorkloadError, brief

from .origin import MadeBy, Origin, remade
from .recorded_program import RecordedProgram

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .footprint import Footprint
    from .host_copy import HostCopy
    from .periods.shortened import Shortened
    from .tiles import Tiles
    from .totals import Totals
    from .warp_program import Program

Mode = Literal["read", "write", "update"]
MODES = get_args(Mode)
MAX_TBS = 2**31 - 1
HMMA_884, MMA_16816 = "HMMA.884", "mma.m16n8k16"  # tensor instructions: before sm_80, and from there on
ALIGN = 256
MAX_ADDRESS = 1 << 62  # so that differences of addresses fit in 64 bits


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A row-major matrix in global memory, at an address that the job's allocator chose.

    ``rows`` and ``cols`` count elements of ``item`` bytes; ``address`` is in bytes. Tensors are compared by
    identity. Two tensors may share memory (a reused buffer): dependences follow from addresses.

    Raises WorkloadError for a size or an address that is negative or no integer.
    """

    name: str
    rows: int
    cols: int
    item: int
    address: int

    def __post_init__(self) -> None:
        """Refuse what is no size or address; a trace that only reads has a tensor without rows."""
        for label in ("rows", "cols", "item", "address"):
            value = getattr(self, label)
            if not isinstance(value, int | np.integer) or isinstance(value, bool):
                raise WorkloadError(f"tensor {self.name}: {label} = {value!r}: must be an integer")
            if value < 0:
                raise WorkloadError(f"tensor {self.name}: {label} = {value}: must not be negative")
            object.__setattr__(self, label, int(value))  # of numpy, whose products may overflow

    @property
    def pitch(self) -> int:
        """Bytes from one row to the next."""
        return self.cols * self.item

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor."""
        return self.rows * self.pitch

    def overlaps(self, other: Tensor) -> bool:
        """Whether the two tensors share a byte of memory."""
        return self.address < other.address + other.nbytes and other.address < self.address + self.nbytes


@dataclass(slots=True)
class Memory:
    """Bump allocator of global memory; addresses are multiples of 256 B, as cudaMalloc's are."""

    next_address: int = 1 << 28
    tensors: list[Tensor] = field(default_factory=list)

    def tensor(self, name: str, rows: int, cols: int, item: int) -> Tensor:
        """Allocate a ``rows`` x ``cols`` matrix of ``item``-byte elements.

        Raises WorkloadError if one of the three is not positive, and for a tensor that ends beyond 2**62 B.
        """
        for label, value in (("rows", rows), ("cols", cols), ("item", item)):
            if value <= 0:
                raise WorkloadError(f"tensor {name}: {label} = {value}: must be positive")
        made = Tensor(name, rows, cols, item, self.next_address)
        if made.address + made.nbytes > MAX_ADDRESS:
            raise WorkloadError(f"tensor {name}: {rows} x {cols} of {item} B: ends beyond {MAX_ADDRESS} B")
        self.next_address += -(-made.nbytes // ALIGN) * ALIGN
        self.tensors.append(made)
        return made


@dataclass(frozen=True, slots=True)
class Access:
    """What the TBs of a kernel read, write or update (an atomic) of one tensor.

    ``regions(tbs)`` takes TB numbers (int64, any length n) and returns (n, 4) int64: row0, row1, col0,
    col1 in elements, half open; an empty region (row0 >= row1) touches nothing. TB number =
    x + grid_x * (y + grid_y * z).
    """

    tensor: Tensor
    mode: Mode
    regions: Callable[[NDArray[np.int64]], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch: a program, the grid that runs it, and the memory that its TBs touch.

    Parameters
    ----------
    name
        Name in result tables.
    program
        Code of its TBs: warps a TB, registers a thread, shared memory in bytes, ops.
    grid
        TBs in x, y and z, each at least 1, at most 2**31 - 1 in all.
    args
        Tensors; a pattern with ``arg`` i addresses ``args[i]``. As many as the program takes.
    accesses
        What each TB reads, writes and updates, tensor by tensor: dependences follow from it.
    stream
        Number of its CUDA stream.
    footprint
        Recorded byte ranges of each TB, instead of ``accesses`` (traces).
    copy
        The launch is a copy from the host and runs no program (``copies.copy_kernel``).
    with_warps
        ``with_warps(warps)`` returns the same kernel with TBs of that many warps.
    as_stage
        ``as_stage()`` returns the kernel as a stage of a persistent kernel, where the compiler makes other
        code of it.
    tb_semaphores
        int64, (n,): the posts that complete each semaphore by which TBs of this kernel wait for each other.
        None: a TB waits at most for the TB before it in z (``Code.mark_tb_wait``).
    tb_edges
        int64, (n, 2): (waiting TB, TB that it waits for) within the kernel; the second number is lower.
    cooperative
        All TBs must be resident at once, as ``cudaLaunchCooperativeKernel`` asks.
    parameter_lines
        64 B lines of kernel parameters that the code reads before all else; each delays the first TB on an
        SM by ``gpu.sm.parameters`` cycles.
    library
        Name of the library kernel that it stands for, such as ``fp16_s884gemm_128x64``; "": of none. Reports
        show it; it decides nothing.
    tensor
        Which instruction the tensor counts of its program are of: ``HMMA.884`` or ``mma.m16n8k16``; "": the
        GPU's own, whichever it is.
    tiles
        Its output tiles, if its warps take them in turn; needs compute capability 9.0.
    programmatic
        Whether schemes with programmatic dependent launch may launch it so; False: a memset, or a kernel
        whose caller does not ask for it. The launch before it and the one after it then do not overlap it.
    hints
        What software states that each TB touches, at least as much as ``accesses``; None: just that. Schemes
        ``tb_auto`` and ``tb_bloom`` order by it.

    Raises
    ------
    WorkloadError
        A grid that no GPU takes, both ``accesses`` and a ``footprint``, a ``library`` that is no text, or a
        ``tensor`` instruction that is not known.

    Examples
    --------
    A kernel of 80 TBs of one warp, each of which reads 4 KiB of a tensor, a line a load:

    >>> import numpy as np
    >>> from pysim import Access, Code, Job, Kernel, Memory, Pattern, Program, simulate
    >>> tensor = Memory().tensor("x", rows=80, cols=1024, item=4)
    >>> code = Code()
    >>> loop = code.loop_begin()
    >>> code.load(0, Pattern(0, 4, bx=4096, step=128, s0=4))
    >>> code.wait(0)
    >>> code.loop_end(loop, 32)
    >>> code.exit()
    >>> program = Program("read", (tuple(code.ops),), warps=1, registers=16, smem=0, args=1)
    >>> def rows(tbs):  # a TB touches its row: row0, row1, col0, col1
    ...     return np.stack([tbs, tbs + 1, 0 * tbs, 0 * tbs + 1024], axis=1)
    >>> kernel = Kernel("read", program, (80, 1, 1), (tensor,), (Access(tensor, "read", rows),))
    >>> result = simulate("titan_v", Job("read", [kernel]), "stream")
    >>> int(result.tables()["runs"]["dram_bytes"][0]) == tensor.nbytes
    True
    """

    name: str
    program: Program | RecordedProgram
    grid: tuple[int, int, int]
    args: tuple[Tensor, ...]
    accesses: tuple[Access, ...]
    stream: int = 0
    footprint: Footprint | None = None
    copy: HostCopy | None = None
    with_warps: Callable[[int], Kernel] | None = None
    as_stage: Callable[[], Kernel] | None = None
    tb_semaphores: NDArray[np.int64] | None = None
    tb_edges: NDArray[np.int64] | None = None
    cooperative: bool = False
    parameter_lines: int = 0
    library: str = ""
    tensor: str = ""
    tiles: Tiles | None = None
    programmatic: bool = True
    hints: tuple[Access, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a grid that no GPU takes, and accesses beside a footprint."""
        if self.footprint is not None and self.accesses:
            raise WorkloadError(
                f"kernel {self.name}: accesses and a footprint: only one of them may be given"
            )
        if not isinstance(self.library, str):
            raise WorkloadError(f"kernel {self.name}: library = {self.library!r}: must be text")
        if self.tensor not in ("", HMMA_884, MMA_16816):
            raise WorkloadError(
                f"kernel {self.name}: tensor = {self.tensor!r}: must be {HMMA_884}, {MMA_16816} or empty"
            )
        for label in ("args", "accesses", *(("hints",) if self.hints is not None else ())):
            given = getattr(self, label)
            if isinstance(given, list):
                object.__setattr__(self, label, tuple(given))
            elif not isinstance(given, tuple):
                raise WorkloadError(f"kernel {self.name}: {label} = {type(given).__name__}: must be a tuple")
        if not isinstance(self.grid, tuple) or len(self.grid) != 3:
            raise WorkloadError(f"kernel {self.name}: grid = {self.grid!r}: must be three sizes: x, y, z")
        total = 1
        for size in self.grid:
            if not isinstance(size, int | np.integer) or size <= 0:
                raise WorkloadError(
                    f"kernel {self.name}: grid {self.grid}: every size must be a positive integer"
                )
            total *= int(size)
        if total > MAX_TBS:
            raise WorkloadError(f"kernel {self.name}: grid {self.grid} has {total} TBs: at most {MAX_TBS}")

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the kernel; a PickleError says what to do instead where a function of it has no name."""
        regions = (access.regions for access in (*self.accesses, *(self.hints or ())))
        parts = [self.with_warps, self.as_stage, *regions]
        if isinstance(self.program, RecordedProgram):
            parts += [getattr(self.program, name) for name in ("lower", "op_lists", "lower_on", "rewrite")]
        if not all(part is None or _has_name(part) for part in parts):
            raise PickleError(
                f"kernel {brief(self.name)} cannot be pickled, nor can its job or result: it has local"
                " functions. Send the tables() of a result, write it with to_file, or make the job in the"
                " other process"
            )
        return object.__reduce_ex__(self, protocol)

    def __copy__(self) -> Kernel:
        return replace(self)

    def __deepcopy__(self, memo: dict[int, object]) -> Kernel:
        return replace(self, **{each.name: deepcopy(getattr(self, each.name), memo) for each in fields(self)})

    @property
    def tbs(self) -> int:
        """Thread blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def affine(self) -> bool:
        """Whether every address follows from TB and arguments, not from data; so it does for a host copy."""
        listed = isinstance(self.program, RecordedProgram) and self.program.access_starts is not None
        return self.copy is not None or (self.footprint is None and not listed)


@dataclass(frozen=True, slots=True)
class Job:
    """All kernels of one program run, in the order in which the host launches them.

    ``events`` are (earlier kernel, later kernel) pairs of indices: the later one's stream waits for a CUDA
    event that the host recorded after the earlier one. ``steps``: how many equal steps (time steps, layers)
    the job has. ``arguments``: what it was built from, as key=value,key=value; the column of ``runs``.
    ``totals``: parameters and floating-point operations of a network; None: nobody counted them.
    ``shortened``: equal periods of which the job holds only some; None: it holds all.

    A job of ``pysim.workloads.make`` or of a trace is pickled as the call that made it, and is made again
    where it is unpickled. Any other is pickled by value; where a kernel of it has a lambda or a local
    function (:class:`Access`) pickling raises a PickleError, a TypeError.
    """

    name: str
    kernels: Sequence[Kernel]
    events: Sequence[tuple[int, int]] = ()
    steps: int = 1
    arguments: str = ""
    totals: Totals | None = None
    shortened: Shortened | None = None
    made_by: MadeBy | None = field(default=None, repr=False, compare=False)

    @property
    def origin(self) -> Origin | None:
        """The call that made the job; None where it is not known, or made other kernels or events."""
        made = self.made_by
        same = made is not None and made.kernels is self.kernels and made.events is self.events
        return made.origin if made is not None and same else None

    def with_origin(self, origin: Origin) -> Job:
        """Return the job with the call that makes it again."""
        kernels, events = tuple(self.kernels), tuple(self.events)  # nobody can change them in place
        return replace(self, kernels=kernels, events=events, made_by=MadeBy(origin, kernels, events))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the call that made the job, or its kernels."""
        made = self.origin
        if made is None:
            return object.__reduce_ex__(replace(self, made_by=None) if self.made_by else self, protocol)
        labels = {each: getattr(self, each) for each in ("name", "steps", "arguments", "totals", "shortened")}
        return remade, (made.make, made.args, labels)

    def __copy__(self) -> Job:
        return replace(self)

    def __deepcopy__(self, memo: dict[int, object]) -> Job:
        made = replace(
            self, kernels=deepcopy(self.kernels, memo), events=deepcopy(self.events, memo), made_by=None
        )
        return made.with_origin(self.origin) if self.origin else made

    def with_arguments(self, arguments: Mapping[str, object]) -> Job:
        """Return the job with these arguments as text; a bool is 0 or 1, None and "" are left out."""
        shown = {key: int(a) if isinstance(a, bool) else a for key, a in arguments.items()}
        text = ",".join(f"{key}={value}" for key, value in shown.items() if value not in (None, ""))
        return replace(self, arguments=text)


def _has_name(part: Callable[..., Any]) -> bool:
    """Whether a function, or one with arguments filled in, is found by its name, as pickle does."""
    if isinstance(part, partial):
        given = (part.func, *part.args, *part.keywords.values())
        return all(_has_name(each) for each in given if callable(each))
    return not isinstance(part, FunctionType) or "<" not in part.__qualname__


def tb_variants(kernel: Kernel) -> NDArray[np.int64]:
    """Return the variant of every TB, int64 (TBs,): the sum of 1 (last in x), 2 (in y) and 4 (in z).

    Of a :class:`RecordedProgram` it is the row of each TB.
    """
    if isinstance(kernel.program, RecordedProgram):
        rows = kernel.program.tb_rows
        return np.zeros(kernel.tbs, np.int64) if rows is None else np.asarray(rows, np.int64)
    return _small_grid(kernel.grid) if kernel.tbs <= _SMALL else _variants_of(kernel.grid)


_SMALL = 4096  # TBs of grids whose variants are kept: jobs of many small kernels ask for the same again


def _variants_of(grid: tuple[int, int, int]) -> NDArray[np.int64]:
    x, y, z = grid
    tb = np.arange(x * y * z, dtype=np.int64)
    last = [tb % x == x - 1, tb // x % y == y - 1, tb // (x * y) == z - 1]
    return np.asarray(sum(bit.astype(np.int64) << i for i, bit in enumerate(last)))


@lru_cache(maxsize=256)
def _small_grid(grid: tuple[int, int, int]) -> NDArray[np.int64]:
    made = _variants_of(grid)
    made.flags.writeable = False  # all kernels of the grid share it
    return made
