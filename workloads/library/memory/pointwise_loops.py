"""Kernels of PyTorch whose TBs loop over elements: dropout with Philox numbers, and the fused AdamW step.

``fused_dropout_kernel_vec``: 256 threads, as many TBs as the card holds at full occupancy at most; a thread
takes a vector of 16 B (fp32: four, bf16: eight elements) or the longest that divides all elements, then one a
grid further on. ``multi_tensor_apply``:
512 threads, 65,536 elements a TB, at most 320 TBs a launch, four elements of a thread at a time.
Shapes follow ATen/native/cuda (Dropout, MultiTensorApply, fused_adam_utils) of PyTorch 2.11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor
from pysim.program.warp_program import Code, Op, Pattern, Program
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.hopper import SMS

from .pointwise_parts import LAST_X, THREADS_SM, Work, even, flat, line, loads, paired, stores

if TYPE_CHECKING:
    from numpy.typing import NDArray

DROP_THREADS = 256
DROP_REGISTERS = {4: 51, 2: 55}  # of a thread, by bytes of an element: h200_library_pointwise.csv
CHUNK, CHUNKS = 65536, 320  # kChunkSize; depth_to_max_blocks of four lists
ADAM_THREADS, ILP = 512, 4
ADAM_REGISTERS = {4: 60, 2: 61}  # h200_library_pointwise.csv


@dataclass(frozen=True, slots=True)
class DropoutCost:
    """Instructions of dropout: before the loop (the state of Philox), and of four elements."""

    begin: Work
    four: Work


@dataclass(frozen=True, slots=True)
class AdamCost:
    """Instructions of the AdamW step: before the loop (two powers in double), and of an element."""

    begin: Work
    element: Work


def dropout_grid(elements: int, sms: int = SMS) -> int:
    """Return the TBs of a dropout on a GPU of ``sms`` SMs."""
    return min(-(-elements // DROP_THREADS), sms * (THREADS_SM // DROP_THREADS))


def dropout_kernel(source: Tensor, target: Tensor, mask: Tensor, cost: DropoutCost, sms: int = SMS) -> Kernel:
    """Return a dropout of ``source``; ``mask``: a byte an element. Raises WorkloadError for other sizes."""
    a, b, m = flat(source), flat(target), flat(mask)
    vector = math.gcd(16 // a.item, a.cols)
    if b.cols != a.cols or m.cols != a.cols or m.item != 1 or b.item != a.item:
        raise WorkloadError(
            f"dropout: {a.cols} elements of {a.item} B, mask of {m.cols}: must be as many, in bytes"
        )
    m = even(m)
    grid = dropout_grid(a.cols, sms)
    chunk = DROP_THREADS * vector
    turns = -(-a.cols // (grid * chunk))
    code: dict[tuple[int, int], tuple[Op, ...]] = {}
    keys = []
    for tb in range(grid):
        left = a.cols - (tb + (turns - 1) * grid) * chunk
        key = (turns, min(left, chunk)) if left > 0 else (turns - 1, chunk)
        keys.append(key)
        if key not in code:
            code[key] = _dropout_code(*key, (a.item, vector), grid, cost)
    known = list(code)
    rows = np.array([known.index(key) for key in keys], np.uint32)
    ops = [(code[key],) * (DROP_THREADS // WARP) for key in known]
    program = warp_specialized("dropout", ops, rows, registers=DROP_REGISTERS[a.item], smem=0, args=3)

    def access(tensor: Tensor, mode: Mode, turn: int) -> Access:
        def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
            first = np.minimum((np.asarray(tbs, np.int64) + turn * grid) * chunk, tensor.cols)
            zero = np.zeros_like(first)
            return np.stack([zero, zero + 1, first, np.minimum(first + chunk, tensor.cols)], axis=1)

        return Access(tensor, mode, regions)

    each: tuple[tuple[Tensor, Mode], ...] = ((a, "read"), (b, "write"), (m, "write"))
    accesses = tuple(access(tensor, mode, turn) for turn in range(turns) for tensor, mode in each)
    return Kernel("dropout", program, (grid, 1, 1), (a, b, m), accesses)


def _dropout_code(
    turns: int, last: int, sizes: tuple[int, int], grid: int, cost: DropoutCost
) -> tuple[Op, ...]:
    """Return the code of a TB; ``last``: elements that it has in its last turn.

    ``sizes``: bytes of an element, and elements of a vector.
    """
    item, vector = sizes
    chunk = DROP_THREADS * vector
    code = Code()
    cost.begin.emit(code)

    def turn(active: int | None, after: int) -> None:
        def of(arg: int, width: int) -> tuple[Pattern, ...]:
            size = width * DROP_THREADS
            made = line(
                arg,
                width,
                DROP_THREADS,
                base=after * grid * size,
                bx=size,
                step=grid * size,
                active=active,
            )
            return tuple(map(paired, made))

        cost.four.times(max(1, vector // 4)).emit(code)
        code.load(0, *of(0, vector * item), level=0)
        code.wait(0)
        code.store(1, *of(1, vector * item), level=0)
        code.store(1, *of(2, vector), level=0)
        code.barrier()

    whole = turns if last == chunk else turns - 1
    if whole > 0:
        mark = code.loop_begin()
        turn(None, 0)
        code.loop_end(mark, whole)
    if whole < turns and turns > 0:
        turn(last // vector, whole)
    code.exit()
    return tuple(code.ops)


def adamw_grids(elements: int) -> list[int]:
    """Return the TBs of each launch of a fused AdamW step."""
    chunks = -(-elements // CHUNK)
    return [min(CHUNKS, chunks - first) for first in range(0, chunks, CHUNKS)]


def adamw_kernels(
    parameter: Tensor, gradient: Tensor, moments: tuple[Tensor, Tensor], step: Tensor, cost: AdamCost
) -> list[Kernel]:
    """Return the launches of an AdamW step of one tensor; parameter and moments are updated in place.

    ``step``: the number of steps, one element. Raises WorkloadError for sizes that are no multiple of four.
    """
    tensors = [flat(tensor) for tensor in (parameter, gradient, *moments)]
    elements, item = tensors[0].cols, tensors[0].item
    if elements % ILP or any((t.cols, t.item) != (elements, item) for t in tensors):
        raise WorkloadError(f"AdamW: {elements} elements: must be a multiple of {ILP}, equal in all tensors")
    made = []
    for number, tbs in enumerate(adamw_grids(elements)):
        first = number * CHUNKS * CHUNK
        size = min(tbs * CHUNK, elements - first)
        parts = [Tensor(t.name, 1, size, item, t.address + first * item) for t in tensors]
        program = _adamw_program((size - 1) % CHUNK + 1, item, cost)
        accesses = [_chunks(part, "read") for part in parts]
        accesses += [_chunks(parts[at], "write") for at in (0, 2, 3)]
        accesses.append(Access(step, "read", _first_element))
        made.append(Kernel("adamw", program, (tbs, 1, 1), (*parts, step), tuple(accesses)))
    return made


def _first_element(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.tile(np.array([0, 1, 0, 1], np.int64), (len(tbs), 1))


def _chunks(tensor: Tensor, mode: Mode) -> Access:
    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        first = np.asarray(tbs, np.int64) * CHUNK
        zero = np.zeros_like(first)
        return np.stack([zero, zero + 1, first, np.minimum(first + CHUNK, tensor.cols)], axis=1)

    return Access(tensor, mode, regions)


@lru_cache(maxsize=64)
def _adamw_program(last: int, item: int, cost: AdamCost) -> Program:
    wide, chunk = ILP * item, ADAM_THREADS * ILP

    def turn(code: Code, after: int, active: int | None) -> None:
        def of(arg: int) -> tuple[Pattern, ...]:
            size = ADAM_THREADS * wide
            return line(arg, wide, ADAM_THREADS, base=after * size, bx=CHUNK * item, step=size, active=active)

        loads(code, 0, [of(arg) for arg in range(4)], level=0)
        code.wait(0)
        cost.element.times(ILP).emit(code)
        stores(code, 1, [of(arg) for arg in (0, 2, 3)], level=0)

    variants = []
    for number in range(8):
        size = last if number & LAST_X else CHUNK
        whole, rest = divmod(size, chunk)
        code = Code()
        one = line(4, 4, ADAM_THREADS, active=1)
        code.load(0, *one, level=2)
        code.wait(0)
        cost.begin.emit(code)
        if whole:
            mark = code.loop_begin()
            turn(code, 0, None)
            code.loop_end(mark, whole)
        if rest:
            turn(code, whole, rest // ILP)
        code.exit()
        variants.append(tuple(code.ops))
    return Program("adamw", tuple(variants), ADAM_THREADS // WARP, ADAM_REGISTERS[item], 0, 5)
