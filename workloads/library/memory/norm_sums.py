"""``cleanup`` of apex's ``multi_tensor_l2norm``: norms from the sums that TBs of lists of tensors left.

A TB of 512 threads adds the sums of a norm, a thread each 512th, and takes the root
(csrc/multi_tensor_l2norm_kernel.cu).
All TBs that use a norm wait for it, so a pass of LAMB begins only when the norms before it are complete.
Instruction counts are by reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Op
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP

from .pointwise_parts import line, shuffles

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOAT = 4
REGISTERS = 32
THREADS = 512
ROOT = 200  # cycles of the square root and of what follows it, by reason


def norms_of_sums(sums: Tensor, counts: Sequence[int], norms: Tensor, library: str = "") -> Kernel:
    """Return the kernel whose TB t adds the next ``counts[t]`` of ``sums`` [1, n] and leaves a norm.

    ``norms``: [1, TBs]; both of 4 B. Raises WorkloadError where counts are not those of the sums and norms.
    """
    if sum(counts) != sums.cols or len(counts) != norms.cols or min(counts, default=0) < 1:
        raise WorkloadError(f"norms: {len(counts)} TBs of {sum(counts)} sums: {norms.cols} of {sums.cols}")
    ends = np.cumsum(np.array(counts, np.int64))
    firsts = ends - np.array(counts, np.int64)

    def summed(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        zero = np.zeros(len(tbs), np.int64)
        return np.stack([zero, zero + 1, firsts[tbs], ends[tbs]], axis=1)

    def left(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        zero, at = np.zeros(len(tbs), np.int64), np.asarray(tbs, np.int64)
        return np.stack([zero, zero + 1, at, at + 1], axis=1)

    code = [
        _code(sums.address + int(first) * FLOAT, count, norms.address + tb * FLOAT)
        for tb, (first, count) in enumerate(zip(firsts, counts, strict=True))
    ]
    memory = Tensor("memory", 1, max(t.address + t.nbytes for t in (sums, norms)), 1, 0)
    program = warp_specialized(
        "cleanup", [(ops,) * (THREADS // WARP) for ops in code], np.arange(len(code), dtype=np.uint32),
        registers=REGISTERS, smem=THREADS * FLOAT, args=1,
    )  # fmt: skip
    accesses = (Access(sums, "read", summed), Access(norms, "write", left))
    return Kernel("cleanup", program, (len(counts), 1, 1), (memory,), accesses, library=library)


def _code(base: int, count: int, out: int) -> tuple[Op, ...]:
    code, step = Code(), THREADS * FLOAT
    whole, rest = divmod(count, THREADS)
    if whole:
        mark = code.loop_begin()
        code.load(0, *line(0, FLOAT, THREADS, base=base, step=step), level=0)
        code.wait(0)
        code.compute(fp32=1, chain=4)
        code.loop_end(mark, whole)
    if rest:
        code.load(0, *line(0, FLOAT, THREADS, base=base + whole * step, active=rest), level=0)
        code.wait(0)
    code.barrier()
    shuffles(code, 1)
    code.delay(ROOT)
    code.store(1, *line(0, FLOAT, THREADS, base=out, active=1))
    code.exit()
    return tuple(code.ops)
