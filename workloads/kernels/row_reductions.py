"""Kernels that reduce each row of a matrix: softmax and layer norm, one TB a row, the row held in registers.

The form is the usual one of frameworks (PyTorch's persistent softmax and vectorised layer norm): a thread
loads its share of the row once, by vectors; each reduction is five shuffles in a warp, a word a warp through
shared memory and a barrier either side; what is left is arithmetic and one store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor
from pysim.program.warp_program import Affine, Code, Pattern, Program, TensorTile

from .tiles import WARP, Tile, emit_loads, tile_ops, vector_width

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHUFFLES = 5  # of 32 lanes, each followed by one operation
SHUFFLE_LATENCY = 23  # cycles, load to use of shared memory (Jia et al. 2018)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a program depends on. ``reads``: operands with all rows, ``shared``: vectors that all rows use."""

    kind: str
    cols: int
    item: int
    warps: int
    reads: int
    shared: int
    reductions: int
    work: tuple[tuple[str, int], ...]  # instructions an element and pipe


def _tile(shape: _Shape, arg: int, row: bool) -> Tile:
    pitch = shape.cols * shape.item
    return Tile(arg, pitch, shape.item, 1, shape.cols, bx=pitch if row else 0)


def _ops(shape: _Shape, tile: Tile) -> list[tuple[Pattern, ...]]:
    # a tile of one row: cut it into chunks that all warps share
    width = vector_width(tile, shape.warps)
    vector = width // shape.item
    chunk = WARP * vector * shape.warps
    found: list[tuple[Pattern, ...]] = []
    for first in range(0, shape.cols, chunk):
        part = Tile(tile.arg, tile.pitch, tile.item, 1, chunk, bx=tile.bx)
        found += tile_ops(part, shape.warps, width, (1, min(chunk, shape.cols - first)), first * tile.item)
    return found


@lru_cache(maxsize=256)
def _program(shape: _Shape) -> Program:
    code = Code()
    code.compute(int=14, control=2)
    for arg in range(shape.reads):
        code.mark_input(TensorTile(arg, Affine(bx=1), 1, Affine(), shape.cols), level=2)
        emit_loads(code, 0, _ops(shape, _tile(shape, arg, True)))
    each = -(-shape.cols // (WARP * shape.warps))
    code.wait(0)
    for _ in range(shape.reductions):
        code.compute(fp32=each, chain=4)
        code.compute(fp32=SHUFFLES, smem=SHUFFLES, smem_ops=SHUFFLES, chain=SHUFFLES * SHUFFLE_LATENCY)
        code.compute(smem=1, smem_ops=1, control=1, chain=4)
        code.barrier()
        words = 1 + SHUFFLES  # a word a warp, then shuffles of them
        code.compute(fp32=SHUFFLES, smem=words, smem_ops=words, chain=words * SHUFFLE_LATENCY)
        code.barrier()
    for arg in range(shape.reads, shape.reads + shape.shared):
        emit_loads(code, 1, _ops(shape, _tile(shape, arg, False)))
    if shape.shared:
        code.wait(1)
    code.mark_main_loop_end()
    code.compute(chain=4, **{pipe: count * each for pipe, count in shape.work})
    target = shape.reads + shape.shared
    for patterns in _ops(shape, _tile(shape, target, True)):
        code.store(2, *patterns, level=2)
    code.mark_output(TensorTile(target, Affine(bx=1), 1, Affine(), shape.cols), level=2)
    code.exit()
    registers = min(255, 24 + -(-each * shape.item // 4) * (shape.reads + 1) // 8 * 8 + 8)
    ops = tuple(code.ops)
    return Program(shape.kind, (ops,) * 8, shape.warps, registers, 4 * WARP, target + 1)


def _rows(tensor: Tensor, mode: Mode, row: bool = True) -> Access:
    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        at = np.asarray(tbs, np.int64) * row
        zero = np.zeros_like(at)
        return np.stack([at, at + 1, zero, zero + tensor.cols], axis=1)

    return Access(tensor, mode, regions)


def _kernel(
    name: str, shape: _Shape, reads: Sequence[Tensor], shared: Sequence[Tensor], target: Tensor, stream: int
) -> Kernel:
    for tensor in (*reads, target):
        if (tensor.rows, tensor.cols, tensor.item) != (target.rows, shape.cols, shape.item):
            raise WorkloadError(f"{name}: operands must all be {target.rows} x {shape.cols}")
    accesses = (
        *(_rows(t, "read") for t in reads),
        *(_rows(t, "read", row=False) for t in shared),
        _rows(target, "write"),
    )
    return Kernel(name, _program(shape), (target.rows, 1, 1), (*reads, *shared, target), accesses, stream)


def _warps(cols: int, item: int) -> int:
    """Warps of a TB: as many as have a vector of 16 B a lane, 1 to 8."""
    warps = 1
    while warps < 8 and warps * WARP * (16 // item) < cols:
        warps *= 2
    return warps


def softmax(name: str, source: Tensor, target: Tensor, *, stream: int = 0) -> Kernel:
    """Softmax of each row: a maximum and a sum; an exponential and a multiplication an element."""
    work = (("fp32", 4), ("sfu", 1))
    shape = _Shape("softmax", source.cols, source.item, _warps(source.cols, source.item), 1, 0, 2, work)
    return _kernel(name, shape, [source], [], target, stream)


def layernorm(
    name: str, inputs: Sequence[Tensor], gain: Tensor, bias: Tensor, target: Tensor, *, stream: int = 0
) -> Kernel:
    """Layer norm of each row of the sum of ``inputs``; ``gain`` and ``bias`` are [1, cols]."""
    work = (("fp32", 3 + len(inputs)), ("int", 1))
    cols, item = target.cols, target.item
    shape = _Shape("layernorm", cols, item, _warps(cols, item), len(inputs), 2, 2, work)
    return _kernel(name, shape, list(inputs), [gain, bias], target, stream)
