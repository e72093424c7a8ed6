"""Products: ``mm``, ``addmm`` and batched ones as cuBLAS computes them, operands where they are."""

from __future__ import annotations

from dataclasses import dataclass

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.graph import Node, Ref
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.gemms.hopper_epilogue import Epilogue
from pysim.workloads.library.gemms.launches import gemm
from pysim.workloads.library.memory.pointwise_parts import Work

from .pointwise import element_wise

PLAIN = (0, 0)
TYPES = ("fp32", "fp16", "bf16")


@dataclass(frozen=True, slots=True)
class _Operand:
    """A matrix as BLAS takes it: whether its rows run along k, and its columns within wider rows."""

    tensor: Tensor
    along_k: bool
    within: tuple[int, int] = PLAIN


def mm(builder: Builder, node: Node) -> None:
    """``mm``: a product without a bias."""
    _product(builder, node.ref("self"), node.ref("mat2"), node.outputs[0], None)


def addmm(builder: Builder, node: Node) -> None:
    """``addmm``: with a vector as epilogue of the product, with anything else copied into the result first.

    So ATen/native/cuda/Blas.cpp (2.11) decides: cuBLASLt takes a contiguous vector as long as the rows of C.
    """
    bias, x, w, out = node.ref("self"), node.ref("mat1"), node.ref("mat2"), node.outputs[0]
    plain = node.number("beta", 1) == node.number("alpha", 1) == 1
    if (
        plain
        and len(bias.shape) == 1
        and bias.contiguous
        and bias.shape[0] == w.shape[1] > 1
        and w.shape[0] > 1
    ):
        _product(builder, x, w, out, bias)
        return
    element_wise(builder, "copy_bias", [bias], [out], Work())
    _product(builder, x, w, out, None, stand_in("C is not read"))


def bmm(builder: Builder, node: Node) -> None:
    """``bmm``: a batch of products."""
    _product(builder, node.ref("self"), node.ref("mat2"), node.outputs[0], None)


def baddbmm(builder: Builder, node: Node) -> None:
    """``baddbmm``: a batch of products that are added to a copy."""
    if node.number("beta", 1):
        element_wise(builder, "copy_bias", [node.ref("self")], [node.outputs[0]], Work())
    _product(
        builder, node.ref("batch1"), node.ref("batch2"), node.outputs[0], None, stand_in("C is not read")
    )


def _product(builder: Builder, x: Ref, w: Ref, out: Ref, bias: Ref | None, library: str = "") -> None:
    """Add the kernels of ``out`` = x w + bias, all row-major, with a batch in front or without.

    In BLAS terms C is the transposed result, A is ``w`` and B is ``x``.
    """
    rows, inner, cols = x.shape[-2], x.shape[-1], w.shape[-1]
    batch = x.shape[0] if len(x.shape) == 3 else 1
    if not out.elements:
        return
    if not inner or out.dtype not in TYPES:
        raise WorkloadError(
            f"product of {x.shape} and {w.shape} in {out.dtype}: types are {', '.join(TYPES)}"
        )
    dtype = "tf32" if out.dtype == "fp32" and "gemm" in builder.graph.tf32 else out.dtype
    a = _operand(builder, w, batch, last=False)
    b = _operand(builder, x, batch, last=True)
    trans = "T" if a.along_k else "N", "N" if b.along_k else "T"
    target = builder.matrix(out, batch * rows, cols)
    biases = [builder.matrix(bias, 1, cols, "bias")] if bias is not None else []

    def made(
        operands: list[Tensor], within: tuple[tuple[int, int], tuple[int, int]]
    ) -> tuple[tuple[Kernel, ...], Tensor]:
        epilogue: Epilogue = "bias" if len(operands) > 2 else "none"
        return gemm(
            cols, rows, inner, memory=builder.scratch, trans_a=trans[0], trans_b=trans[1], dtype=dtype,
            batch=batch, epilogue=epilogue, operands=operands, within=within, device=builder.device,
        )  # fmt: skip

    wide = a.within, b.within
    if biases and builder.device not in HOPPER:
        biases, library = [], stand_in("without a bias")
    try:
        kernels, c = made([a.tensor, b.tensor, *biases], wide)
    except WorkloadError:
        if not biases:
            raise
        kernels, c = made([a.tensor, b.tensor], wide)
        library = stand_in("without a bias")
    builder.flops += 2 * batch * rows * cols * inner
    builder.bind(c, target)
    builder.launch(kernels, library=library)


def _operand(builder: Builder, ref: Ref, batch: int, *, last: bool) -> _Operand:
    """Return a matrix, [rows, columns] in a batch or not; ``last``: k is the last of its dimensions.

    Where neither dimension is contiguous it is copied first, as PyTorch does (``prepare_matrix_for_cublas``).
    """
    (high, wide), (down, right) = ref.shape[-2:], ref.strides[-2:]
    apart = ref.strides[0] if batch > 1 else 0
    if (right == 1 or wide == 1) and (down >= wide or high == 1):
        found = _rows(builder, ref, (high, wide), down if high > 1 else wide, batch, apart)
        if found is not None:
            return _Operand(found[0], last, found[1])
    if (down == 1 or high == 1) and (right >= high or wide == 1):
        found = _rows(builder, ref, (wide, high), right if wide > 1 else high, batch, apart)
        if found is not None:
            return _Operand(found[0], not last, found[1])
    return _Operand(_copied(builder, ref, batch), last)


def _rows(
    builder: Builder, ref: Ref, shape: tuple[int, int], pitch: int, batch: int, apart: int
) -> tuple[Tensor, tuple[int, int]] | None:
    """Return the rows of a batch of matrices, and their columns within wider rows; None: neither way."""
    high, wide = shape
    if pitch == wide and (batch == 1 or apart == high * wide):
        return builder.places.part(ref, batch * high, wide), PLAIN
    if builder.device not in HOPPER or ref.dtype == "fp32" or (batch > 1 and apart != wide):
        return None
    try:
        tensor, col = builder.places.rows(ref, pitch, high)
    except WorkloadError:
        return None
    step = 128 // ref.item  # columns of a box of TMA
    return (tensor, (pitch, col)) if col + batch * wide <= pitch and wide % step == 0 else None


def _copied(builder: Builder, ref: Ref, batch: int) -> Tensor:
    """Return a contiguous copy of a matrix or a batch, made by a kernel."""
    high, wide = ref.shape[-2:]
    made = builder.temporary(ref)
    element_wise(builder, "copy_operand", [ref], [made], Work())
    return builder.matrix(made, batch * high, wide)
