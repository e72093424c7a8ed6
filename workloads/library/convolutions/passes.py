"""Kernels beside a convolution that go once over a tensor: scaling, padding of channels, copies, flips.

A TB takes as many elements at a time as it has threads, and then those that lie a grid further on. Threads of
a TB are not in what a sweep of names, grids and registers reports: they are those of the kernel's launches.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.recorded_program import RecordedProgram
    from pysim.program.warp_program import Op
    from pysim.workloads.library.gemms.told import Told

    from .shape import Convolution

    Ints = NDArray[np.int64]

PADDED = 8  # channels are padded to multiples of so many
BEGIN = 300  # cycles before the first element, an estimate


class _Pass(NamedTuple):
    """Threads of a TB, integer instructions of an element, whether it reads a tensor of as many elements."""

    threads: int
    ints: int
    reads: bool


# Instructions of an element are fitted to half `fit`; padding and copies divide an index by each dimension
PASSES = {
    "scalePackedTensor_kernel": _Pass(256, 30, True),
    "nhwcAddPaddingKernel": _Pass(1024, 36, True),
    "flip_filter": _Pass(1024, 60, True),
    "kern_precompute_indices": _Pass(128, 60, False),
    "fill": _Pass(512, 4, False),
}
CONTIGUOUS, COPY_THREADS, COPY_EACH, COPY_INTS = "elementwise_kernel", 128, 4, 40  # PyTorch's strided copy


@lru_cache(maxsize=256)
def _program(
    name: str, threads: int, chunks: int, grid: int, item: int, ints: int, reads: bool, registers: int
) -> RecordedProgram:
    """Return the program of ``chunks`` pieces of ``threads`` elements that ``grid`` TBs take in turn."""
    warps, row = threads // WARP, grid * threads * item

    def variant(turns: int) -> tuple[Op, ...]:
        code = Code()
        code.compute(int=20, control=4, chain=BEGIN)
        mark = code.loop_begin()
        code.compute(int=ints, control=2)
        where: dict[str, Any] = {"bx": threads * item, "step": row, "warp": WARP * item, "s0": item}
        if reads:
            code.load(0, Pattern(0, item, **where))
            code.wait(0)
        code.store(1, Pattern(int(reads), item, **where))
        code.loop_end(mark, turns)
        code.exit()
        return tuple(code.ops)

    most, more = -(-chunks // grid), (chunks - 1) % grid + 1  # TBs that take `most` pieces
    found = [(variant(most),) * warps]
    rows = np.zeros(grid, np.uint32)
    if more < grid:
        found.append((variant(most - 1),) * warps)
        rows[more:] = 1
    return warp_specialized(name, found, rows, registers=registers, smem=0, args=1 + reads)


def _region(threads: int, chunks: int, grid: int, tbs: Ints) -> Ints:
    tbs = np.asarray(tbs, np.int64)
    turns = (chunks - tbs - 1) // grid + 1
    return np.stack([0 * tbs, turns, tbs * threads, (tbs + 1) * threads], 1)


def one_pass(
    told: Told, elements: int, item: int, memory: Memory, target: int | None = None, source: int | None = None
) -> Kernel:
    """Return a kernel of :data:`PASSES` that writes ``elements`` of ``item`` bytes.

    ``target``, ``source``: addresses that it writes and reads; None: new memory.
    """
    made = PASSES[told.name]
    if elements < 1:
        raise WorkloadError(f"convolution: {told.name} of {elements} elements: must be positive")
    chunks = -(-elements // made.threads)
    grid = min(told.tbs, chunks)
    rows, cols = -(-chunks // grid), grid * made.threads
    addresses = [source, target] if made.reads else [target]
    tensors = []
    for name, address in zip(("source", "result")[-len(addresses) :], addresses, strict=True):
        new = Tensor(name, rows, cols, item, address) if address is not None else None
        tensors.append(new or memory.tensor(name, rows, cols, item))
    program = _program(told.name, made.threads, chunks, grid, item, made.ints, made.reads, told.registers)
    region = partial(_region, made.threads, chunks, grid)
    accesses = [Access(tensors[-1], "write", region)]
    if made.reads:
        accesses.insert(0, Access(tensors[0], "read", region))
    return Kernel(told.name, program, (grid, 1, 1), tuple(tensors), tuple(accesses))


def elements_of(told: Told, conv: Convolution, number: int) -> int:
    """Return the elements of the kernel that is number ``number`` of those with its name.

    Padding: of the images (backward data: of the gradients of the filters first), then of the filters.
    """
    images, filters = conv.inputs * conv.channels, conv.filters * conv.channels * conv.taps
    if told.name == "nhwcAddPaddingKernel":
        channels = -(-conv.channels // PADDED) * PADDED
        small = conv.filters * conv.taps * channels
        large = conv.inputs * channels
        return large if (number == 0) != (conv.direction == "backward_data") else small
    if told.name == "flip_filter":
        return conv.pixels * conv.filters if conv.direction == "backward_weights" else filters
    if told.name == "kern_precompute_indices":
        return conv.channels * conv.taps
    return images


def contiguous(told: Told, conv: Convolution, memory: Memory, target: int | None = None) -> Kernel:
    """Return the copy of the result's gradients from channels last to channels first, as PyTorch makes it.

    Threads go along the target, so that each lane reads a sector of its own.
    """
    pixels, channels, item = conv.out[0] * conv.out[1], conv.filters, conv.item
    chunk = COPY_THREADS * COPY_EACH
    blocks = -(-pixels // chunk)
    grid = blocks, channels, conv.images
    source = memory.tensor("gradients", conv.images * blocks * chunk, channels, item)
    result = memory.tensor("copied", conv.images * channels, blocks * chunk, item)
    if target is not None:
        result = Tensor(result.name, result.rows, result.cols, item, target)
    code, line = Code(), channels * item
    plane = blocks * chunk * item
    code.compute(int=20, control=4, chain=BEGIN)
    turns = min(COPY_EACH, -(-pixels // COPY_THREADS))
    for turn in range(turns):
        code.compute(int=COPY_INTS)
        code.load(
            0,
            Pattern(
                0, item, base=turn * COPY_THREADS * line, bx=chunk * line, by=item, bz=plane * channels,
                warp=WARP * line, s0=line,
            ),
        )  # fmt: skip
    code.wait(0)
    for turn in range(turns):
        code.compute(int=COPY_INTS)
        code.store(
            1,
            Pattern(
                1, item, base=turn * COPY_THREADS * item, bx=chunk * item, by=plane, bz=plane * channels,
                warp=WARP * item, s0=item,
            ),
        )  # fmt: skip
    code.exit()
    program = Program(told.name, (tuple(code.ops),), COPY_THREADS // WARP, told.registers, 0, 2)

    def read(tbs: Ints) -> Ints:
        x, y, z = tbs % blocks, tbs // blocks % channels, tbs // (blocks * channels)
        first = (z * blocks + x) * chunk
        return np.stack([first, first + chunk, y, y + 1], 1)

    def written(tbs: Ints) -> Ints:
        x, row = tbs % blocks, tbs // blocks
        return np.stack([row, row + 1, x * chunk, (x + 1) * chunk], 1)

    accesses = Access(source, "read", read), Access(result, "write", written)
    return Kernel(told.name, program, grid, (source, result), accesses)
