"""A kernel that reads and writes so many bytes, which stands in where no template knows who takes what.

Each TB of 128 threads takes a slice of every operand, in vectors of 16 B, eight a thread of the largest one.
Which TB of the real kernel takes what is not known, so each may touch all that the kernel touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Kernel, Tensor
from pysim.program.warp_program import Code, Op
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.memory.pointwise_flat import BEGIN
from pysim.workloads.library.memory.pointwise_parts import Work, line, loads, stores

from .builder import whole_accesses

if TYPE_CHECKING:
    from numpy.typing import NDArray

THREADS, VECTOR, EACH, REGISTERS = 128, 16, 4, 32
MOST_TBS, MOST_ARGS = 2**17, 8


def slices(name: str, reads: Sequence[Tensor], writes: Sequence[Tensor], work: Work = Work()) -> Kernel:  # noqa: B008
    """Return the kernel; ``work``: of a vector of the largest operand.

    A kernel has 8 arguments: of more operands the largest are read and written, the others are dependences.
    """
    kept = sorted((*reads, *writes), key=lambda tensor: tensor.nbytes)[-MOST_ARGS:]
    ins, outs = ([t for t in group if t in kept] for group in (reads, writes))
    others = [[_aligned(t) for t in group if t not in kept] for group in (reads, writes)]
    tensors = [*ins, *outs]
    vectors = np.array([max(1, tensor.nbytes // VECTOR) for tensor in tensors], np.int64)
    many = int(max(1, -(-int(vectors.max()) // (THREADS * EACH))))
    tbs = min(many, MOST_TBS)
    share = -(-vectors // tbs)
    number = np.arange(tbs, dtype=np.int64)[:, None]
    counts = np.clip(vectors[None, :] - number * share[None, :], 0, share[None, :])
    kinds, rows = np.unique(counts, axis=0, return_inverse=True)
    code = [_code(tensors, len(ins), kind, share, work) for kind in kinds]
    program = warp_specialized(
        name, [(ops,) * (THREADS // WARP) for ops in code], rows.reshape(-1).astype(np.uint32),
        registers=REGISTERS, smem=0, args=len(tensors),
    )  # fmt: skip
    aligned = [_aligned(tensor) for tensor in tensors]
    accesses = whole_accesses([*aligned[: len(ins)], *others[0]], [*aligned[len(ins) :], *others[1]])
    return Kernel(name, program, (tbs, 1, 1), tuple(aligned), accesses)


def _aligned(tensor: Tensor) -> Tensor:
    """Return the bytes of a tensor from a multiple of 16 on."""
    before = tensor.address % VECTOR
    return Tensor(tensor.name, 1, max(2, tensor.nbytes + before), 1, tensor.address - before)


def _code(
    tensors: Sequence[Tensor], inputs: int, counts: NDArray[np.int64], share: NDArray[np.int64], work: Work
) -> tuple[Op, ...]:
    code = Code()
    BEGIN.emit(code)

    def of(arg: int) -> list[tuple]:  # type: ignore[type-arg]
        width = VECTOR if tensors[arg].nbytes >= VECTOR else _width(tensors[arg].nbytes)
        bx = int(share[arg]) * VECTOR
        turns = range(0, int(counts[arg]), THREADS)
        return [line(arg, width, THREADS, base=t * VECTOR, bx=bx, active=int(counts[arg]) - t) for t in turns]

    for arg in range(inputs):
        loads(code, 0, of(arg))
    if inputs:
        code.wait(0)
    most = int(max(counts)) if len(counts) else 0
    work.times(max(1, -(-most // THREADS))).emit(code)
    for arg in range(inputs, len(tensors)):
        stores(code, 1, of(arg))
    code.exit()
    return tuple(code.ops)


def _width(nbytes: int) -> int:
    """Return the widest access that so few bytes take; 2 at least."""
    return next((width for width in (8, 4) if nbytes >= width), 2)
