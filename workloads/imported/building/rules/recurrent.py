"""Recurrent modules as cuDNN runs them: the node ``pysim.rnn`` of the recorder."""

from __future__ import annotations

from pysim.errors import WorkloadError
from pysim.workloads.framework.recurrent import Stack, recurrent_network
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.graph import Node


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
    _weights(builder, node)
    builder.launch(kernels)


def _weights(builder: Builder, node: Node) -> None:
    """Put the weights of each layer and direction where the module's are; biases are the template's own."""
    own = [tensor for tensor in builder.scratch.tensors if tensor.name in ("w_ih", "w_hh")]
    theirs = [ref for ref in node.refs_in("weights") if len(ref.shape) == 2 and ref.contiguous]
    if len(own) != len(theirs):
        raise WorkloadError(f"recurrent module: {len(theirs)} weights, the kernels read {len(own)}")
    for tensor, ref in zip(own, theirs, strict=True):
        builder.bind(tensor, builder.matrix(ref, tensor.rows, tensor.cols, tensor.name))
