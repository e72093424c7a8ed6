"""The memory that ops and kernels touch, TB by TB, in 32-byte sectors: exact, from patterns or regions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pysim.program.op_touches import MODES_OF, Touch, tb_places, tb_rows, touches
from pysim.program.recorded_program import RecordedProgram
from pysim.program.regions import SECTOR, Regions, expand_ranges, intersection, merge_sorted, union
from pysim.program.warp_program import OP, Op

from .places import LOADS, STORES, op_lists, same_lists

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pysim.program.access_regions import SharedRegions
    from pysim.program.job import Kernel, Tensor

    Ints = NDArray[np.int64]

_BULK = {OP["BULK_LOAD"]: ("read", "update"), OP["BULK_STORE"]: ("write", "update")}
_PAIRS = 1 << 22  # ranges of TBs that are looked at at once


class Touched(Protocol):
    """Memory that TBs of a kernel touch."""

    def sectors(self) -> Ints:
        """Return the sectors that any TB touches, as sorted and disjoint (n, 2) ranges."""

    def meeting(self, spans: Ints) -> Ints:
        """Return the TBs that touch a sector of some sorted, disjoint ranges; sorted."""


def _meets(lo: Ints, hi: Ints, spans: Ints) -> NDArray[np.bool_]:
    """Whether each range meets one of some sorted, disjoint ranges."""
    at = np.searchsorted(spans[:, 1], lo, side="right")
    inside = at < len(spans)
    return np.asarray(inside & (spans[np.minimum(at, len(spans) - 1), 0] < hi))


@dataclass(slots=True)
class TouchedByOp:
    """What a pattern of a memory op touches: ``runs`` of bytes (n, 2) behind the ``offset`` of each TB.

    ``tbs`` are the TBs that run the op; ``address`` is that of the argument.
    """

    address: int
    runs: Ints
    offset: Ints
    tbs: Ints
    _sectors: Ints | None = None

    @classmethod
    def of(cls, touch: Touch, address: int, tbs: Ints, places: Ints) -> TouchedByOp:
        """Return what TBs at these places touch; ``address``: of the argument of the pattern."""
        starts = np.unique(touch.distances) + (touch.base - address)
        lo, hi, _ = merge_sorted(starts, starts + touch.pattern.width, np.zeros(len(starts), np.int64))
        return cls(address, np.stack([lo, hi], axis=1), places @ touch.by_tb, tbs)

    def moved(self, address: int) -> TouchedByOp:
        """Return the same of an argument at another address."""
        return TouchedByOp(address, self.runs, self.offset, self.tbs)

    def _ranges(self, offsets: Ints) -> Iterator[tuple[slice, Ints, Ints]]:
        """Yield (which offsets, first sectors, ends) of the runs behind offsets, (offsets, runs)."""
        each = max(1, _PAIRS // len(self.runs))
        for first in range(0, len(offsets), each):
            some = slice(first, first + each)
            begin = self.address + offsets[some, None]
            lo, hi = begin + self.runs[None, :, 0], begin + self.runs[None, :, 1]
            yield some, lo // SECTOR, -(-hi // SECTOR)

    def sectors(self) -> Ints:
        """Return the sectors that any TB touches, as sorted and disjoint (n, 2) ranges."""
        if self._sectors is None:
            parts = [
                union(np.stack([lo.ravel(), hi.ravel()], axis=1))
                for _, lo, hi in self._ranges(np.unique(self.offset))
            ]
            self._sectors = union(np.concatenate(parts))
        return self._sectors

    def meeting(self, spans: Ints) -> Ints:
        """Return the TBs that touch a sector of some sorted, disjoint ranges; sorted."""
        offsets, of = np.unique(self.offset, return_inverse=True)
        hit = np.zeros(len(offsets), bool)
        for some, lo, hi in self._ranges(offsets):
            hit[some] = _meets(lo, hi, spans).any(axis=1)
        return self.tbs[hit[of.reshape(-1)]]


@dataclass(slots=True)
class TouchedRegions:
    """What an access declares: the regions of its TBs."""

    regions: Regions
    _sectors: Ints | None = None

    def sectors(self) -> Ints:
        """Return the sectors that any TB touches, as sorted and disjoint (n, 2) ranges."""
        if self._sectors is None:
            lo, hi, _ = self.regions.intervals()
            self._sectors = union(np.stack([lo, hi], axis=1))
        return self._sectors

    def meeting(self, spans: Ints) -> Ints:
        """Return the TBs that touch a sector of some sorted, disjoint ranges; sorted."""
        lo, hi, region = self.regions.intervals()
        hit = np.unique(region[_meets(lo, hi, spans)])
        first = self.regions.ptr[hit]
        return np.unique(self.regions.tbs[expand_ranges(first, self.regions.ptr[hit + 1] - first)])


@dataclass(frozen=True, slots=True)
class AccessOfOp:
    """An access by op ``number`` of the op list with id ``ops`` (-1: of all lists)."""

    ops: int
    number: int
    writes: bool
    tensor: Tensor
    touched: Touched


class TouchedByKernels:
    """What the ops of kernels touch, and what kernels declare; launches of one program share the work."""

    def __init__(self, regions: SharedRegions) -> None:
        self.regions = regions
        self._ops: dict[tuple[object, ...], list[AccessOfOp]] = {}
        self._held: list[object] = []  # whose ids are keys
        self._declared: dict[tuple[int, int], TouchedRegions] = {}  # by shape and address
        self._moved: dict[tuple[int, int], TouchedByOp] = {}  # by what is moved, and address
        self._by_ops: dict[tuple[object, ...], list[AccessOfOp]] = {}

    def declared(self, kernel: Kernel, name: str) -> list[AccessOfOp]:
        """Return what a kernel declares; ``name``: for errors."""
        made = []
        for access in kernel.accesses:
            regions = self.regions.of(access, kernel.tbs, name)
            if len(regions):
                key = (regions.shape, regions.address)
                touched = self._declared.setdefault(key, TouchedRegions(regions))
                made.append(AccessOfOp(-1, 0, access.mode != "read", access.tensor, touched))
        return made

    def by_ops(self, kernel: Kernel, declared: Sequence[AccessOfOp]) -> list[AccessOfOp]:
        """Return what each memory op of a kernel touches, in the order of the ops' numbers.

        Bulk copies, and ops of loops over tiles, count as all that the kernel declares of their tensor. What
        is declared and touched by no op (a kernel may load from a stand-in of its input) counts with the
        first memory op, or at once.
        """
        told = tuple((id(access.touched), access.writes, access.tensor) for access in declared)
        all_of_it = (id(kernel.program), kernel.grid, kernel.args, kernel.tiles, told)
        if all_of_it not in self._by_ops:
            self._held.append(kernel.program)
            made = [*self._placed(kernel), *self._unresolved(kernel, declared)]
            left = [access for access in declared if not any(_same_memory(access, op) for op in made)]
            made += self._at_first(kernel, left)
            self._by_ops[all_of_it] = sorted(made, key=lambda access: access.number)
        return self._by_ops[all_of_it]

    def _placed(self, kernel: Kernel) -> Iterator[AccessOfOp]:
        """Yield what ops with patterns touch of the arguments of a kernel."""
        key = (id(kernel.program), kernel.grid, tuple(t.nbytes for t in kernel.args), kernel.tiles)
        if key not in self._ops:
            self._ops[key] = self._patterns(kernel)
        for access in self._ops[key]:
            arg, touched = kernel.args[int(access.tensor.name)], access.touched
            assert isinstance(touched, TouchedByOp)
            where = (id(touched), arg.address)
            if where not in self._moved:
                self._moved[where] = touched.moved(arg.address)
            yield AccessOfOp(access.ops, access.number, access.writes, arg, self._moved[where])

    @staticmethod
    def _at_first(kernel: Kernel, left: Sequence[AccessOfOp]) -> list[AccessOfOp]:
        """Return accesses with the first memory op of each op list: loads with the first load."""
        made: list[AccessOfOp] = []
        for access in left:
            kinds = (*LOADS, *STORES) if access.writes else LOADS
            firsts = {
                id(ops): next((n for n, op in enumerate(ops) if op.kind in kinds), None)
                for ops in op_lists(kernel)
            }
            placed = {ops: at for ops, at in firsts.items() if at is not None} or dict.fromkeys(firsts, 0)
            made += [replace(access, ops=ops, number=at) for ops, at in placed.items()]
        return made

    def _patterns(self, kernel: Kernel) -> list[AccessOfOp]:
        """Return what ops with patterns touch; the tensor of each is only a name, the argument's number."""
        from pysim.program.job import Tensor

        every = np.arange(kernel.tbs, dtype=np.int64)
        rows, places, made = tb_rows(kernel, every), tb_places(kernel, every), list[AccessOfOp]()
        same = same_lists(kernel.program)
        for row in np.unique(rows).tolist():
            mine = np.flatnonzero(rows == row)
            for touch in touches(kernel, row, every=True):
                if not _counted(touch.ops, touch.number):
                    continue
                arg = touch.pattern.arg
                touched = TouchedByOp.of(touch, kernel.args[arg].address, mine, places[mine])
                name = Tensor(str(arg), 0, 0, 0, 0)
                writes = touch.op.kind in STORES
                ops = same.get(id(touch.ops), id(touch.ops))
                made.append(AccessOfOp(ops, touch.number, writes, name, touched))
        return made

    @staticmethod
    def _unresolved(kernel: Kernel, declared: Sequence[AccessOfOp]) -> list[AccessOfOp]:
        """Return bulk copies and ops of loops over tiles, as what the kernel declares."""
        program, made = kernel.program, list[AccessOfOp]()
        if not isinstance(program, RecordedProgram) or kernel.tiles is None:
            return made
        for ops in op_lists(kernel):
            for number, op in enumerate(ops):
                args = [op.box.arg] if op.box is not None else []
                if op.kind in MODES_OF and not _counted(ops, number):
                    args = [part.arg for part in op.patterns]
                for tensor in {kernel.args[arg] for arg in args}:
                    writes = op.kind in STORES
                    made += [
                        AccessOfOp(id(ops), number, writes, tensor, access.touched)
                        for access in declared
                        if access.tensor.overlaps(tensor) and (access.writes or op.kind in LOADS)
                    ]
        return made


def _counted(ops: Sequence[Op], number: int) -> bool:
    """Whether the counters of all loops around an op are known: not of loops over tiles and their steps."""
    loops = (op for op in ops[number:] if op.kind == OP["LOOP"] and op.target <= number)
    return all(loop.count and not loop.per_warp and ops[loop.target].kind != OP["TURN"] for loop in loops)


def _same_memory(access: AccessOfOp, op: AccessOfOp) -> bool:
    """Whether an op touches some of what an access declares, in the same direction."""
    if access.writes != op.writes:
        return False
    one, other = access.touched.sectors(), op.touched.sectors()
    apart = one[-1, 1] <= other[0, 0] or other[-1, 1] <= one[0, 0]
    return not apart and len(intersection(one, other)) > 0


def common(one: Touched, other: Touched) -> Ints:
    """Return the sectors that both touch, as sorted and disjoint (n, 2) ranges."""
    return intersection(one.sectors(), other.sectors())
