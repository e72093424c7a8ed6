"""Networks with the kernels that PyTorch 2.11 launches on an H200: cuBLAS's GEMMs, its own operations.

The counterparts of ``mlp``, ``rnn`` and ``transformer`` with ``kernels=library``. Inference in one stream,
addresses as PyTorch's caching allocator gives them out. How close each kernel is to the card's:
docs/validation/library.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pysim.errors import WorkloadError
from pysim.program.job import Job, Kernel, Memory, Tensor
from pysim.workloads.framework.autocast import FLOAT, converting
from pysim.workloads.framework.caching import reused
from pysim.workloads.framework.layers import Layer, transformer_layers
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.gemms.launches import gemm
from pysim.workloads.library.hopper import SMS
from pysim.workloads.library.memory import memory_bound
from pysim.workloads.library.memory.pointwise_parts import item_of
from pysim.workloads.library.recurrences.recurrent import GATES
from pysim.workloads.library.recurrences.rnn_cells import CELL, Field, cell_kernel

if TYPE_CHECKING:
    from pysim.workloads.kernels.machine_hints import MachineHints
    from pysim.workloads.library.gemms.hopper_epilogue import Epilogue

HALF = 2  # bytes of an element
Kernels = Literal["own", "library"]
KERNELS = ("own", "library")


def from_library(kernels: str, hints: MachineHints | None, where: str) -> bool:
    """Say whether a network takes the kernels of libraries.

    Raises WorkloadError for another word than ``own`` and ``library``, and for ``library`` on a GPU whose
    libraries were not measured.
    """
    if kernels not in KERNELS:
        raise WorkloadError(f"{where}: kernels = {kernels}: must be {' or '.join(KERNELS)}")
    if kernels == "own":
        return False
    if hints is None or hints.name not in HOPPER:
        gpu = "no GPU is given" if hints is None else f"GPU {hints.name}"
        raise WorkloadError(f"{where}: kernels = library: {gpu}: measured were those of {', '.join(HOPPER)}")
    if hints.sms != SMS:
        raise WorkloadError(
            f"{where}: kernels = library: gpu.sms = {hints.sms}: libraries were measured on {SMS} SMs"
        )
    return True


def _linear(
    memory: Memory, x: Tensor, weights: Sequence[Tensor], dtype: str, epilogue: Epilogue = "none"
) -> tuple[tuple[Kernel, ...], Tensor]:
    """Return the kernels of x W^T, with an epilogue, and their result; ``weights``: W, and a bias."""
    w, *bias = weights
    return gemm(
        w.rows,
        x.rows,
        w.cols,
        memory=memory,
        trans_a="T",
        dtype=dtype,
        epilogue=epilogue,
        operands=(w, x, *bias),
    )


def mlp(layers: int, width: int, batch: int, dtype: str) -> Job:
    """Make ``layers`` linear layers of ``width`` features, each with a ReLU.

    fp16 has bias and ReLU in the epilogue of its GEMM; fp32 has no bias, and a kernel for the ReLU.
    """
    memory, item = Memory(), item_of(dtype)
    kernels: list[Kernel] = []
    x = memory.tensor("x", batch, width, item)
    for layer in range(layers):
        weights = [memory.tensor(f"w{layer}", width, width, item)]
        if item == 2:
            weights.append(memory.tensor(f"b{layer}", 1, width, item))
        made, x = _linear(memory, x, weights, dtype, "bias_relu" if item == 2 else "none")
        kernels += made
        if item != 2:
            launched = memory_bound.relu(memory, x)
            kernels += launched.kernels
            x = launched.outputs[0]
    return Job(f"mlp:layers={layers},width={width}", reused(kernels, memory), steps=layers)


def rnn(kind: str, hidden: int, batch: int, timesteps: int, layers: int, dtype: str) -> Job:
    """Make a recurrent network of cells (``torch.nn.GRUCell``), layer by layer, step by step.

    A step is a GEMM of the input, a GEMM of the state, and a fused cell that adds the biases: cuDNN's, which
    stands in for PyTorch's. ``dtype`` amp: autocast converts parameters once, inputs of the first layer, and
    the states that it begins with.
    """
    amp, dtype = dtype == "amp", "fp16" if dtype == "amp" else dtype
    memory, item, gates = Memory(), item_of(dtype), GATES[kind]
    kernels: list[Kernel] = []
    wide = gates * hidden
    xs = [memory.tensor(f"x[{step}]", batch, hidden, item) for step in range(timesteps)]

    def converted(*tensors: Tensor) -> None:
        """Launch the kernels that write tensors of fp16 from such of fp32."""
        for t in tensors:
            kernels.append(converting(memory.tensor(f"{t.name}_fp32", t.rows, t.cols, FLOAT), t))

    for layer in range(layers):
        w_ih, w_hh = (memory.tensor(f"w_{side}{layer}", wide, hidden, item) for side in ("ih", "hh"))
        bias = memory.tensor(f"bias{layer}", 1, 2 * wide, item)
        h = memory.tensor(f"h{layer}", batch, hidden, item)
        c = memory.tensor(f"c{layer}", batch, hidden, item)
        outs = []
        if amp:
            first = (h, c) if kind == "lstm" else (h,)
            converted(w_ih, w_hh, bias, *(first if layer == 0 else ()))
        for x in xs:
            if amp and layer == 0:
                converted(x)
            from_input, gates_ih = _linear(memory, x, [w_ih], dtype)
            from_state, gates_hh = _linear(memory, h, [w_hh], dtype)
            reads = [Field(each, g * hidden) for each in (gates_ih, gates_hh) for g in range(gates)]
            reads += [Field(bias, g * hidden, shared=True) for g in range(2 * gates)]
            reads += [Field(h)] if kind == "gru" else [Field(c)] if kind == "lstm" else []
            h = memory.tensor("h", batch, hidden, item)
            writes = [Field(h)]
            if kind == "lstm":
                c = memory.tensor("c", batch, hidden, item)
                writes.append(Field(c))
            cell = cell_kernel(f"{kind}_cell", reads, writes, (batch, hidden), gates, CELL)
            cell = replace(cell, library=f"cuDNN's {kind} cell, for PyTorch's")
            kernels += [*from_input, *from_state, cell]
            outs.append(h)
        xs = outs
    return Job(f"{kind}:hidden={hidden},batch={batch}", reused(kernels, memory), steps=timesteps)


def transformer(
    layers: int, hidden: int, heads: int, sequence: int, batch: int, ffn: int, dtype: str, fused: bool
) -> Job:
    """Make encoder layers with a LayerNorm after each sub-layer, a GELU, and cuDNN's attention if ``fused``.

    Raises WorkloadError for fp32, of which batched GEMMs are not all known.
    """
    if item_of(dtype) != HALF:
        raise WorkloadError(f"transformer: kernels = library: dtype = {dtype}: must be fp16")
    memory = Memory()
    layer = Layer(hidden, heads, ffn, batch, sequence, fused=fused, training=False, dtype=dtype)
    kernels = reused(transformer_layers(layer, layers, memory), memory)
    return Job(f"transformer:layers={layers},hidden={hidden}", kernels, steps=layers)
