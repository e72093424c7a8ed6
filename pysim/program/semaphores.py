"""Semaphores of tiles: which semaphores a kernel's output has, and the ops that poll and post them.

A semaphore stands for one tile or for one row of tiles of a producer's output. Marks (``marks.py``) say which
tiles a TB reads and writes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError

from .marks import listed_output_tiles, waits_along_z
from .warp_program import OP, Affine, Code, Op, Sem, TensorTile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .job import Job, Kernel

POLLS = 8  # GS_POLLS of the core
LINE = 32  # semaphores a line
SECTOR = 32  # bytes


@dataclass(frozen=True, slots=True)
class TileSemaphores:
    """The semaphores of one kernel's output: one for each block of ``rows`` x ``cols`` elements.

    Block (r, c) has semaphore ``first + r * stride + c``, which ``posts_needed[r * stride + c]`` posts
    complete. Rows count from ``shift`` rows before the tensor's first, so that the tiles of a convolution
    with a halo are aligned. Columns that are ``wrap`` apart share semaphores (0: none do).
    """

    first: int
    rows: int
    cols: int
    stride: int
    posts_needed: NDArray[np.int64]
    shift: int = 0
    wrap: int = 0

    def shifted(self, place: Affine) -> Affine:
        """Return a row of the tensor as a row of these semaphores, which begin ``shift`` rows earlier."""
        return replace(place, base=place.base + self.shift)


def tb_coordinates(place: Affine, kernel: Kernel) -> NDArray[np.int64]:
    """Return the row or column of each TB of a kernel, int64 (TBs,), at loop counter 0."""
    tb = np.arange(kernel.tbs, dtype=np.int64)
    x, y = tb % kernel.grid[0], tb // kernel.grid[0] % kernel.grid[1]
    z = tb // (kernel.grid[0] * kernel.grid[1])
    return place.base + place.bx * x + place.by * y + place.bz * z


def is_aligned(place: Affine, size: int, each: int) -> bool:
    """Whether a tile of ``size`` rows (or columns) never straddles a boundary of ranges of ``each``."""
    terms = (place.base, place.bx, place.by, place.bz, place.step)
    return all(t % each == 0 for t in terms) or (each % size == 0 and all(t % size == 0 for t in terms))


def _within(place: Affine, size: int, each: int) -> bool:
    """Whether a tile whose position no loop moves lies within one range of ``each``."""
    return place.step == 0 and place.base % each + size <= each


def most_rows_touched(place: Affine, size: int, each: int) -> int:
    """Return how many ranges of ``each`` rows a tile of ``size`` rows overlaps at most."""
    if is_aligned(place, size, each):
        return max(1, -(-size // each))
    apart = math.gcd(each, place.bx, place.by, place.bz, place.step)
    return (each - apart + place.base % apart + size - 1) // each + 1


def tile_semaphores(
    first: int, maker: Kernel, made: TensorTile, readers: Iterable[TensorTile], policy: str
) -> TileSemaphores:
    """Return the semaphores of the tiles that ``maker`` writes and ``readers`` read.

    ``first``: number of the first semaphore; ``made``: the tile that a TB writes; ``policy``: ``tile``,
    ``row``, ``strided`` or ``conv``, as in cuSync (Jangda et al., CGO 2024). Raises WorkloadError where tiles
    and semaphores are not aligned.
    """
    tensor = maker.args[made.arg]
    readers = list(readers)
    own = listed_output_tiles(maker, made)
    if own is not None:
        # the first may be one at an edge
        made = replace(made, rows=max(part.rows for part in own), cols=max(part.cols for part in own))
    rows, cols = made.rows, made.cols
    for part in readers:
        rows = part.rows if part.rows % rows == 0 else rows
    if policy == "row" or any(part.cols >= tensor.cols for part in readers):
        cols = tensor.cols
    one = cols >= tensor.cols
    shift = -made.row.base % rows
    row = replace(made.row, base=made.row.base + shift)
    if own is not None:
        fits = all(
            _within(replace(part.row, base=part.row.base + shift), part.rows, rows)
            and (one or _within(part.col, part.cols, cols))
            for part in own
        )
    else:
        fits = is_aligned(row, made.rows, rows) and (one or is_aligned(made.col, made.cols, cols))
    if not fits:
        raise WorkloadError(
            f"kernel {maker.name}: its tiles do not line up with semaphores of {rows} x {cols}"
        )
    if tensor.pitch % SECTOR or (cols * tensor.item % SECTOR and not one):
        # what is read for one tile would hold bytes of another
        raise WorkloadError(f"kernel {maker.name}: its tiles are not whole sectors of {SECTOR} B")
    shifted = [(replace(p.row, base=p.row.base + shift), p.rows) for p in readers]
    if policy == "conv" and all(is_aligned(place, size, rows) for place, size in shifted):
        raise WorkloadError(f"kernel {maker.name}: nothing that it makes is read with a halo around it")
    wrap = _wrap(maker, cols, readers) if policy == "strided" and not one else 0
    wide = -(-(wrap or tensor.cols) // cols)
    stride = wide if LINE % wide == 0 else -(-wide // LINE) * LINE if wide > LINE else LINE
    top, left = tb_coordinates(row, maker), tb_coordinates(made.col, maker)
    if own is not None:
        top = np.array([part.row.base + shift for part in own], np.int64)
        left = np.array([part.col.base for part in own], np.int64)
    index = top // rows * stride + (left % wrap if wrap else left) // cols
    if waits_along_z(maker):
        # the last part of a split says that all are there
        index = index[-maker.grid[0] * maker.grid[1] :]
    # a part that does not line up is taken to reach as far as it may: nothing is missing beyond the end
    down = max((most_rows_touched(place, size, rows) for place, size in shifted), default=1)
    need = np.bincount(index, minlength=(-(-(tensor.rows + shift) // rows) + down - 1) * stride)
    return TileSemaphores(first, rows, cols, stride, need, shift, wrap)


def _wrap(maker: Kernel, cols: int, readers: Sequence[TensorTile]) -> int:
    """Return the distance in columns of tiles that are read together (Q, K and V of attention)."""
    found = {part.spacing for part in readers if part.count > 1}
    if len(found) != 1 or any(part.count == 1 for part in readers):
        raise WorkloadError(f"kernel {maker.name}: nothing that it makes is read in parts that lie apart")
    wrap = found.pop()
    if wrap % cols:
        raise WorkloadError(f"kernel {maker.name}: parts {wrap} columns apart share no tiles of {cols}")
    return wrap


def poll_ops(mark: Op, found: TileSemaphores, base: int, name: str) -> list[Op]:
    """Return the polls that replace an input mark.

    ``found``: the producer's semaphores; ``base``: number of the first that the tensor uses; ``name``: the
    kernel's, for errors. Raises WorkloadError where the tile and the semaphores are not aligned.
    """
    part = mark.tile
    assert part is not None
    one = found.stride == 1  # for all columns
    row = found.shifted(part.row)
    if (
        row.base < 0
        or not (one or is_aligned(part.col, part.cols, found.cols))
        or (not one and part.spacing % found.cols)
    ):
        raise WorkloadError(
            f"kernel {name}: what it reads does not line up with semaphores of {found.rows} x {found.cols}"
        )
    starts = [0] if one or found.wrap else [i * part.spacing // found.cols for i in range(part.count)]
    across = 1 if one else max(1, -(-part.cols // found.cols))
    places = sorted({start + at for start in starts for at in range(across)})
    down = most_rows_touched(row, part.rows, found.rows)
    once = len(places) == 1 and not is_aligned(row, part.rows, found.rows)
    if once:
        groups = list(_runs([places[0] + found.stride * i for i in range(down)]))
    else:
        groups = [
            range(run.start + found.stride * i, run.stop + found.stride * i, run.step)
            for i in range(down)
            for run in _runs(places)
        ]
    made: list[Op] = []
    for group in groups:
        sem = Sem(
            row, Affine() if one else part.col, found.rows, found.cols, found.stride, group.start, base,
            len(group), group.step, 2 if once else int(len(group) == 1), found.wrap,
        )  # fmt: skip
        code = Code()
        code.poll(sem, level=mark.level, ahead=mark.count_plus, limit=mark.count)
        made += code.ops
    return made


def delay_posts(ops: Sequence[Op], cycles: int) -> list[Op]:
    """Return ``ops`` with each post delayed by ``cycles``, the extra time of its fence."""
    code = Code()
    code.delay(cycles)
    return [each for op in ops for each in ((*code.ops, op) if op.kind == OP["POST"] and cycles else (op,))]


def poll_without_lookahead(op: Op) -> Op:
    """Return a poll that does not remember completed semaphores after its own (``Sem.ahead`` 2, not 1)."""
    if op.sem is None or op.sem.ahead != 1:
        return op
    return replace(op, sem=replace(op.sem, ahead=2))


def _runs(places: Sequence[int]) -> Iterator[range]:
    """Split sorted numbers into arithmetic sequences of at most POLLS numbers, as one poll covers."""
    at = 0
    while at < len(places):
        step = places[at + 1] - places[at] if at + 1 < len(places) else 1
        end = at + 1
        while end < len(places) and end - at < POLLS and places[end] - places[end - 1] == step:
            end += 1
        yield range(places[at], places[at] + step * (end - at), step)
        at = end


@dataclass(slots=True)
class SemaphoreTable:
    """All semaphores of a job: ``posts_needed`` of each kernel in turn, ``size`` in all."""

    posts_needed: list[NDArray[np.int64]] = field(default_factory=list)
    size: int = 0

    def add(self, need: NDArray[np.int64]) -> int:
        """Append semaphores, which share no 128 B line with others; return the number of the first."""
        first = self.size
        room = -(-len(need) // LINE) * LINE
        self.posts_needed.append(np.concatenate((need, np.zeros(room - len(need), np.int64))))
        self.size += room
        return first

    def concatenated(self) -> NDArray[np.int64]:
        """Return the posts that complete each semaphore, int64 (size,)."""
        return np.concatenate([np.zeros(0, np.int64), *self.posts_needed])

    def array(self) -> NDArray[np.uint32]:
        """Return the posts that complete each semaphore, as the core reads them."""
        return self.concatenated().astype(np.uint32)


@dataclass(frozen=True, slots=True)
class TileEdge:
    """An edge between two kernels: the consumer reads tiles ``inputs``, the producer writes ``output``.

    The tensor that the consumer reads begins ``row_offset`` rows into the one that the producer writes.
    """

    inputs: tuple[TensorTile, ...]
    output: TensorTile
    row_offset: int


@dataclass(slots=True)
class KernelEdges:
    """The producers of each kernel of a job.

    ``after_all[k]``: kernel k is launched when all earlier kernels have ended, such as after an event.
    ``producers[k]``: the edges of every other kernel, by producer. A producer that others imply is left out,
    if all its accesses to memory that is used again are published before theirs. ``reason``: why programs do
    not allow tile edges, for the first such kernel with ``after_all``.
    """

    after_all: list[bool]
    producers: list[dict[int, TileEdge]]
    reason: str = ""


def output_semaphores(
    job: Job, edges: KernelEdges, policy: str, table: SemaphoreTable
) -> dict[int, tuple[int, TileSemaphores]]:
    """Return, by number of each kernel that others wait for, the argument that it writes and its semaphores.

    Appends them to ``table``. Raises WorkloadError for a kernel of which several outputs are read.
    """
    readers: dict[int, list[TileEdge]] = defaultdict(list)
    for mine in edges.producers:
        for number, edge in mine.items():
            readers[number].append(edge)
    # under `strided`, outputs that are read as one tile get the `tile` policy if others are read in strides
    apart = policy == "strided" and any(
        need.count > 1 for users in readers.values() for edge in users for need in edge.inputs
    )
    found: dict[int, tuple[int, TileSemaphores]] = {}
    for number, users in readers.items():
        maker, made = job.kernels[number], users[0].output
        if any(edge.output.arg != made.arg for edge in users):
            raise WorkloadError(f"kernel {number} ({maker.name}): others read several tensors that it makes")
        own = "tile" if apart and all(need.count == 1 for edge in users for need in edge.inputs) else policy
        each = tile_semaphores(table.size, maker, made, (need for edge in users for need in edge.inputs), own)
        table.add(each.posts_needed)
        found[number] = made.arg, each
    return found


def first_semaphore(found: TileSemaphores, row: int, name: str) -> int:
    """Return the number of the first semaphore of a tensor that begins ``row`` rows into the output."""
    if row % found.rows:
        raise WorkloadError(
            f"kernel {name}: what it reads does not line up with semaphores of {found.rows} rows"
        )
    return found.first + row // found.rows * found.stride
