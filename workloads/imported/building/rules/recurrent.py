"""Recurrent modules as cuDNN runs them: the node ``pysim.rnn`` of the recorder."""

from __future__ import annotations

from dataclasses import replace

from pysim.errors import WorkloadError
from pysim.program.job import Tensor
from pysim.workloads.framework.recurrent import Stack, recurrent_network
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.graph import Node
from pysim.workloads.library.memory.pointwise_parts import whole


def forward(builder: Builder, node: Node) -> None:
    """Add the kernels of all layers, steps and directions."""
    x, out = node.ref("x"), node.outputs[0]
    steps, batch, inputs = x.shape
    layers, directions = node.ints("layers")[0], node.ints("directions")[0]
    cell, hidden = str(node.args["cell"]), out.shape[-1] // directions
    if x.dtype not in ("fp32", "fp16"):
        raise WorkloadError(f"recurrent module in {x.dtype}: fp32 and fp16 alone")
    if node.number("dropout"):
        raise WorkloadError("recurrent module with dropout between layers: no template")
    stack = Stack(cell, inputs, hidden, layers, batch, steps, directions == 2, dtype=x.dtype)
    kernels = recurrent_network(stack, builder.scratch).kernels
    given = [t for t in builder.scratch.tensors if t.name == "x"]
    made = [t for t in builder.scratch.tensors if t.name == "y"]
    target = builder.matrix(out, steps * batch, hidden * directions)
    builder.bind(given[0], builder.matrix(x, steps * batch, inputs))
    builder.bind(made[-1], target)
    gates = {"vanilla": 1, "gru": 3, "lstm": 4}[cell] * hidden
    wide = [inputs, *([hidden * directions] * (layers - 1))]
    builder.flops += sum(2 * gates * (into + hidden) * batch * steps * directions for into in wide)
    # weights that the kernels of a layer read are copies of their own: the module's are named beside them
    weights: list[Tensor] = [builder.flat(ref) for ref in node.refs_in("weights") if ref.dense]
    first = replace(kernels[0], accesses=(*kernels[0].accesses, *(whole(tensor) for tensor in weights)))
    builder.launch([first, *kernels[1:]])
