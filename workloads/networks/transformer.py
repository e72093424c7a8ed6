"""Transformer encoder layers, launched as a framework without fused attention launches them."""

from __future__ import annotations

from pysim.errors import WorkloadError
from pysim.program.job import Job, Kernel, Memory, Tensor
from pysim.program.memory_budget import claim_launches
from pysim.workloads.kernels.batched_gemm import batched_gemm
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.gemm_choice import AnyTiling, Dtype, choose_tiling
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.kernels.row_reductions import layernorm, softmax

from . import pytorch
from .pytorch import Kernels, from_library


def _check(sizes: dict[str, int]) -> None:
    """Refuse sizes that are not positive, and heads that do not share columns evenly."""
    for label, value in sizes.items():
        if value < 1:
            raise WorkloadError(f"transformer: {label} = {value}: must be positive")
    if sizes["hidden"] % sizes["heads"]:
        hidden, heads = sizes["hidden"], sizes["heads"]
        raise WorkloadError(f"transformer: hidden = {hidden}: must be a multiple of heads = {heads}")


def transformer(
    layers: int = 6,
    hidden: int = 512,
    heads: int = 8,
    sequence: int = 128,
    batch: int = 4,
    ffn: int = 2048,
    dtype: Dtype = "fp16",
    kernels: Kernels = "own",
    fused: bool = False,
    hints: MachineHints | None = None,
) -> Job:
    """Make encoder layers with layer norm after each sub-layer (Vaswani et al. 2017): eleven kernels a layer.

    GEMMs for Q, K and V, scores and context of all heads as batched GEMMs with a softmax between them, output
    GEMM, residual and layer norm, two GEMMs (the first with a ReLU in its epilogue), residual and layer norm.
    The defaults are that paper's base model. Tokens are ordered by position, as in Megatron-LM, so that each
    head of each sequence is a block of columns. Each layer reuses the activation buffers of the one before,
    as under a caching allocator.

    ``kernels``: this project's (``own``), or those that PyTorch launches (``library``, see ``pytorch``),
    which order tokens by sequence and have one GEMM for Q, K and V. ``fused``: one kernel makes scores,
    softmax and context.
    """
    sizes = {
        "layers": layers, "hidden": hidden, "heads": heads, "sequence": sequence, "batch": batch, "ffn": ffn,
    }  # fmt: skip
    _check(sizes)
    if from_library(kernels, hints, "transformer"):
        return pytorch.transformer(layers, hidden, heads, sequence, batch, ffn, dtype, fused)
    if fused:
        raise WorkloadError("transformer: fused = 1: needs kernels = library")
    item, tokens, size = 4 if dtype == "fp32" else 2, batch * sequence, hidden // heads
    if size * item % 16 or sequence * item % 16:
        raise WorkloadError(
            f"transformer: {size} columns a head, {sequence} a row of scores: need 16 B steps"
        )
    claim_launches(11 * layers, f"transformer: {layers:,} layers", 35 * layers)
    memory, pairs = Memory(), batch * heads
    machine = hints or MachineHints()

    def tile(m: int, n: int, k: int, gemms: int = 1) -> AnyTiling:
        # the chooser takes the batch for one GEMM with more rows
        return choose_tiling(m * gemms, n, k, dtype, hints=machine, split=False)

    def wide(tensor: Tensor) -> Tensor:
        """See [tokens, hidden] as [positions, sequences x heads x columns of a head]."""
        return Tensor(tensor.name, sequence, batch * hidden, item, tensor.address)

    x, other, y, q, k, v, context, projected, outer = (
        memory.tensor(name, tokens, hidden, item)
        for name in ("x", "z", "y", "q", "k", "v", "context", "projected", "outer")
    )
    scores, shares = (memory.tensor(name, pairs * sequence, sequence, item) for name in ("scores", "shares"))
    inner = memory.tensor("inner", tokens, ffn, item)
    square, score, mix = (
        tile(tokens, hidden, hidden),
        tile(sequence, sequence, size, pairs),
        tile(sequence, size, sequence, pairs),
    )
    up, down = tile(tokens, ffn, hidden), tile(tokens, hidden, ffn)
    made: list[Kernel] = []
    for layer in range(layers):

        def held(name: str, rows: int, cols: int, layer: int = layer) -> Tensor:
            return memory.tensor(f"{name}{layer}", rows, cols, item)

        def norm(name: str, inputs: list[Tensor], target: Tensor) -> Kernel:
            return layernorm(
                name, inputs, held(f"{name}_gain", 1, hidden), held(f"{name}_bias", 1, hidden), target
            )

        for name, target in (("q", q), ("k", k), ("v", v)):
            made.append(
                gemm(f"project_{name}", x, held(f"w_{name}", hidden, hidden), target, square, b_t=True)
            )
        made += [
            batched_gemm(
                "scores", wide(q), wide(k), scores, (sequence, sequence, size), score, pairs, b_t=True
            ),
            softmax("softmax", scores, shares),
            batched_gemm("context", shares, wide(v), wide(context), (sequence, size, sequence), mix, pairs),
            gemm("project_out", context, held("w_out", hidden, hidden), projected, square, b_t=True),
            norm("norm1", [x, projected], y),
            gemm("ffn_up", y, held("w_up", ffn, hidden), inner, up, b_t=True),
            gemm("ffn_down", inner, held("w_down", hidden, ffn), outer, down, b_t=True),
            norm("norm2", [y, outer], other),
        ]
        x, other = other, x
    return Job(f"transformer:layers={layers},hidden={hidden}", made, steps=layers)
