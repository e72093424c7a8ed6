"""A multi-layer perceptron: one GEMM a layer, as a framework with fused epilogues launches it."""

from __future__ import annotations

from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.program.memory_budget import claim_launches
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.gemm_choice import Dtype, choose_tiling
from pysim.workloads.kernels.machine_hints import MachineHints

from . import pytorch
from .pytorch import Kernels, from_library

MOST = 1 << 16


def mlp(
    layers: int = 8,
    width: int = 1024,
    batch: int = 128,
    dtype: Dtype = "fp16",
    kernels: Kernels = "own",
    hints: MachineHints | None = None,
) -> Job:
    """Make ``layers`` dependent GEMMs X[batch, width] W[width, width].

    The nonlinearity is in the epilogue. Two activations take turns, as a caching allocator gives them out.
    ``kernels``: this project's (``own``) or those that PyTorch launches (``library``, see ``pytorch``).
    """
    for label, value in {"layers": layers, "width": width, "batch": batch}.items():
        if not 1 <= value <= MOST:
            raise WorkloadError(f"mlp: {label} = {value}: must be from 1 to {MOST}")
    claim_launches(layers, f"mlp: {layers:,} layers", 3 * layers)
    item = 4 if dtype == "fp32" else 2
    if width * item % 16:
        raise WorkloadError(f"mlp: width = {width}: rows must be multiples of 16 B")
    if from_library(kernels, hints, "mlp"):
        return pytorch.mlp(layers, width, batch, dtype)
    tiling = choose_tiling(batch, width, width, dtype, b_t=True, hints=hints or MachineHints(), split=False)
    memory = Memory()
    held = [memory.tensor(f"x{i}", batch, width, item) for i in range(2)]
    made = []
    for layer in range(layers):
        w = memory.tensor(f"w{layer}", width, width, item)
        made.append(gemm("layer", held[layer % 2], w, held[1 - layer % 2], tiling, b_t=True))
    return Job(f"mlp:layers={layers},width={width}", made, steps=layers)
