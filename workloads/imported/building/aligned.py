"""Kernels on views that begin within 256 B: the core takes addresses of arguments that are multiples of it.

The rest of such an address is added to what the program adds to the argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pysim.errors import WorkloadError
from pysim.program.job import ALIGN, Kernel, Tensor
from pysim.program.marks import rewrite_program
from pysim.program.warp_program import Op


def shifted(kernel: Kernel, addresses: Sequence[int]) -> Kernel:
    """Return a kernel whose arguments will be at ``addresses``, with code for :func:`aligned` ones.

    Raises WorkloadError where the program names tiles or boxes of such an argument.
    """
    rests = [address % ALIGN for address in addresses]
    if not any(rests):
        return kernel

    def change(ops: tuple[Op, ...]) -> tuple[Op, ...]:
        return tuple(_moved(op, rests, kernel.name) for op in ops)

    program = rewrite_program(kernel.program, change, kernel.name)
    return replace(kernel, program=program, with_warps=None, as_stage=None)


def aligned(tensor: Tensor) -> Tensor:
    """Return the memory of a tensor from a multiple of 256 B on."""
    rest = tensor.address % ALIGN
    return Tensor(tensor.name, 1, rest + tensor.nbytes, 1, tensor.address - rest) if rest else tensor


def _moved(op: Op, rests: Sequence[int], name: str) -> Op:
    if any(part is not None and rests[part.arg] for part in (op.tile, op.box)):
        raise WorkloadError(f"kernel {name}: an operand that begins at no multiple of {ALIGN} B: no template")
    if not any(rests[pattern.arg] for pattern in op.patterns):
        return op
    patterns = tuple(replace(pattern, base=pattern.base + rests[pattern.arg]) for pattern in op.patterns)
    return replace(op, patterns=patterns)
