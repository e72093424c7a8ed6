"""Kernels that pass over lists of tensors: ``multi_tensor_apply`` of PyTorch and of NVIDIA's apex.

A list has a tensor for each parameter: parameters, gradients, moments. A launch takes tensors until it has
``MOST[lists]`` of them or 320 TBs; a TB takes 65,536 elements of a tensor, 512 threads of four elements at a
time. Both libraries cut work so (ATen/native/cuda/MultiTensorApply.cuh, csrc/multi_tensor_apply.cuh).

The kernel has one argument, memory from address 0 on, since a launch names more tensors than a kernel has
arguments. AdamW alone was measured, by tensor (``pointwise_loops``); counts of the others are by reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor
from pysim.program.warp_program import Code, Op, Pattern
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP

from .pointwise_loops import ADAM_THREADS, CHUNK, CHUNKS, ILP, AdamCost
from .pointwise_parts import flat, line, loads, stores

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOAT = 4
MOST = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}  # tensors of a launch, by the number of lists


@dataclass(frozen=True, slots=True)
class Pass:
    """What a kernel does to each element of its lists.

    ``reads``, ``writes``: places of the lists. ``partial``: a TB leaves a sum of 4 B, in ``sums``.
    """

    name: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    cost: AdamCost
    registers: int
    library: str = ""
    partial: bool = False


@dataclass(frozen=True, slots=True)
class _Beside:
    """What a launch uses beside its lists: ``sums`` that it leaves from ``done`` on, ``numbers`` it reads."""

    sums: Tensor | None
    done: int
    numbers: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """TBs of a launch that take chunks of a tensor, the first of which is ``chunk``."""

    tensor: int
    chunk: int
    first: int
    tbs: int


def packed(sizes: Sequence[int], lists: int) -> list[list[_Piece]]:
    """Return the pieces of each launch for tensors of so many elements."""
    launches: list[list[_Piece]] = [[]]
    used = 0
    for tensor, size in enumerate(sizes):
        chunk, left = 0, -(-size // CHUNK)
        while left:
            if used == CHUNKS or (len(launches[-1]) == MOST[lists] and not chunk):
                launches.append([])
                used = 0
            many = min(left, CHUNKS - used)
            launches[-1].append(_Piece(tensor, chunk, used, many))
            chunk, left, used = chunk + many, left - many, used + many
    return [pieces for pieces in launches if pieces]


def multi_tensor(
    what: Pass,
    lists: Sequence[Sequence[Tensor]],
    sums: Tensor | None = None,
    numbers: Sequence[Tensor] = (),
) -> list[Kernel]:
    """Return the launches of a pass over lists of tensors, the first of each list, the second, and so on.

    ``sums``: where a pass with ``partial`` leaves a sum for each TB of all launches, [1, n] of 4 B.
    ``numbers``: what a TB reads first, such as norms: of 4 B, [1, 1], or [1, tensors], of which it reads that
    of its tensor. Raises WorkloadError for lists of other lengths, and tensors of other sizes.
    """
    sizes = [tensor.rows * tensor.cols for tensor in lists[0]]
    if any([tensor.rows * tensor.cols for tensor in each] != sizes for each in lists):
        raise WorkloadError(f"{what.name}: lists of tensors: must be of the same sizes")
    if len(lists) not in MOST or not sizes:
        raise WorkloadError(
            f"{what.name}: {len(lists)} lists of {len(sizes)} tensors: must be 1 to 5 of some"
        )
    if any(number.cols not in {1, len(sizes)} for number in numbers):
        raise WorkloadError(f"{what.name}: numbers: must be one, or one for each of {len(sizes)} tensors")
    made, done = [], 0
    for pieces in packed(sizes, len(lists)):
        here = [[flat(each[piece.tensor]) for each in lists] for piece in pieces]
        made.append(_launch(what, pieces, here, _Beside(sums, done, tuple(numbers))))
        done += pieces[-1].first + pieces[-1].tbs
    return made


def partial_sums(tensors: Sequence[Tensor]) -> list[int]:
    """Return how many sums a pass with ``partial`` leaves of each tensor."""
    return [-(-tensor.rows * tensor.cols // CHUNK) for tensor in tensors]


def _launch(what: Pass, pieces: list[_Piece], tensors: list[list[Tensor]], beside: _Beside) -> Kernel:
    tbs = pieces[-1].first + pieces[-1].tbs
    sums, done = beside.sums, beside.done
    others = [*beside.numbers, *([sums] if sums else [])]
    end = max(tensor.address + tensor.nbytes for each in (*tensors, others) for tensor in each)
    memory = Tensor("memory", 1, end, 1, 0)
    code: list[tuple[Op, ...]] = []
    rows = np.zeros(tbs, np.uint32)
    accesses = []
    for piece, each in zip(pieces, tensors, strict=True):
        left = each[0].cols - (piece.chunk + piece.tbs - 1) * CHUNK
        sizes = {CHUNK} if left >= CHUNK else {CHUNK, left} if piece.tbs > 1 else {left}
        for size in sorted(sizes, reverse=True):
            last = size != CHUNK
            at = piece.first + piece.tbs - 1
            rows[at if last else slice(piece.first, at + 1)] = len(code)
            code.append(_code(what, piece, each, size, beside))
        accesses += [_access(each[place], "read", piece) for place in what.reads]
        accesses += [_access(each[place], "write", piece) for place in what.writes]
    accesses += [_number_access(number, pieces) for number in beside.numbers]
    if sums is not None:
        accesses.append(_sums_access(sums, done))
    program = warp_specialized(
        what.name, [(ops,) * (ADAM_THREADS // WARP) for ops in code], rows, registers=what.registers, smem=0,
        args=1,
    )  # fmt: skip
    return Kernel(what.name, program, (tbs, 1, 1), (memory,), tuple(accesses), library=what.library)


def _access(tensor: Tensor, mode: Mode, piece: _Piece) -> Access:
    """Return what TBs touch of a tensor: those of other pieces nothing."""

    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        number = np.asarray(tbs, np.int64) - piece.first
        mine = (number >= 0) & (number < piece.tbs)
        first = np.where(mine, (piece.chunk + number) * CHUNK, 0)
        end = np.where(mine, np.minimum(first + CHUNK, tensor.cols), 0)
        return np.stack([np.zeros_like(first), mine.astype(np.int64), first, end], axis=1)

    return Access(tensor, mode, regions)


def _number_access(number: Tensor, pieces: list[_Piece]) -> Access:
    """Return what TBs read of a list of numbers: that of their tensor, or the only one."""
    places = np.concatenate([np.full(p.tbs, p.tensor if number.cols > 1 else 0, np.int64) for p in pieces])

    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        at = places[np.asarray(tbs, np.int64)]
        return np.stack([np.zeros_like(at), np.ones_like(at), at, at + 1], axis=1)

    return Access(number, "read", regions)


def _sums_access(sums: Tensor, done: int) -> Access:
    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        at = np.asarray(tbs, np.int64) + done
        return np.stack([np.zeros_like(at), np.ones_like(at), at, at + 1], axis=1)

    return Access(sums, "write", regions)


def _code(what: Pass, piece: _Piece, tensors: list[Tensor], size: int, beside: _Beside) -> tuple[Op, ...]:
    """Return the code of a TB that takes ``size`` elements; one by one where they are no whole vectors."""
    code, each = Code(), 1 if tensors[0].cols % ILP else ILP
    chunk = ADAM_THREADS * each

    def of(place: int, after: int, active: int | None) -> tuple[Pattern, ...]:
        tensor = tensors[place]
        wide = each * tensor.item
        step, bx = ADAM_THREADS * wide, CHUNK * tensor.item
        base = tensor.address + (piece.chunk - piece.first) * bx + after * step
        return line(0, wide, ADAM_THREADS, base=base, bx=bx, step=step, active=active)

    def turn(after: int, active: int | None) -> None:
        loads(code, 0, [of(place, after, active) for place in what.reads], level=0)
        code.wait(0)
        what.cost.element.times(each).emit(code)
        stores(code, 1, [of(place, after, active) for place in what.writes], level=0)

    for number in beside.numbers:
        base = number.address + (FLOAT * piece.tensor if number.cols > 1 else 0)
        loads(code, 0, [line(0, FLOAT, ADAM_THREADS, base=base, active=1)], level=0)
    if beside.numbers:
        code.wait(0)
    what.cost.begin.emit(code)
    whole, rest = divmod(size, chunk)
    if whole:
        mark = code.loop_begin()
        turn(0, None)
        code.loop_end(mark, whole)
    if rest:
        turn(whole, -(-rest // each))
    if beside.sums is not None:
        code.barrier()
        base = beside.sums.address + beside.done * FLOAT
        code.store(1, *line(0, FLOAT, ADAM_THREADS, base=base, bx=FLOAT, active=1))
    code.exit()
    return tuple(code.ops)
