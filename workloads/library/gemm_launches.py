"""What a library launches for a GEMM on Hopper: a reset, the GEMM, the sum of a split k."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.pointwise import Field, elementwise, flat

from .hopper_gemm import NVJET, Cost, HopperGemm, hopper_gemm

if TYPE_CHECKING:
    from numpy.typing import NDArray

REDUCE_THREADS = 512  # <32, 16> in the name of the reduction; an element each
STATIC_TURNS = 2  # tiles that a TB takes without a counter in memory, which a memset resets (memory_operations)


def gemm_launches(
    gemm: HopperGemm,
    memory: Memory,
    operands: tuple[Tensor, Tensor] | None = None,
    cost: Cost = NVJET,
) -> tuple[tuple[Kernel, ...], Tensor]:
    """Return the kernels of a GEMM in their order, and its C, n x m.

    Parts of a split k are fp32, and are added by a kernel of their own. Raises WorkloadError as
    :func:`hopper_gemm` does.
    """
    made: list[Kernel] = []
    if gemm.turns > STATIC_TURNS:
        made.append(memset(memory.tensor("counter", 1, 64, 4)))
    parts = replace(gemm, out=4) if gemm.split_k > 1 else gemm
    kernel, c = hopper_gemm(parts, memory, operands, cost)
    made.append(kernel)
    if gemm.split_k > 1:
        kernel, c = split_k_sum(c, gemm.split_k, memory, gemm.out)
        made.append(kernel)
    return tuple(made), c


def split_k_sum(parts: Tensor, splits: int, memory: Memory, out: int) -> tuple[Kernel, Tensor]:
    """Return the kernel that adds the ``splits`` parts of a C, and C, of ``out``-byte elements."""
    c = memory.tensor("C", parts.rows // splits, parts.cols, out)
    size = c.rows * c.cols
    reads = [Field(flat(parts), part * size) for part in range(splits)]
    kernel = elementwise(
        "split_k_sum",
        reads,
        [Field(flat(c))],
        cols=size,
        per_element={"fp32": splits, "int": 8},
        threads=REDUCE_THREADS,
        widest=4,
    )
    return kernel, c


def memset(tensor: Tensor) -> Kernel:
    """Return a kernel that clears a small tensor: one warp, a store."""
    code = Code()
    code.compute(int=8, control=8, chain=8)
    code.store(0, Pattern(0, 4, s0=4))
    code.exit()

    def whole(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.tile(np.array([0, 1, 0, 32], np.int64), (len(tbs), 1))

    program = Program("memset", (tuple(code.ops),), 1, 16, 0, 1)
    return Kernel("memset", program, (1, 1, 1), (tensor,), (Access(tensor, "write", whole),))
