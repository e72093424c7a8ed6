"""Recurrent modules as cuDNN runs them: the nodes ``pysim.rnn`` and ``pysim.rnn_backward`` of the recorder.

A module is a pass for each layer and direction (``library.recurrences.layer``). What forward leaves for
backward is in one tensor of the graph, in the order of the passes. Steps of both directions are launched in
turn, those of the second in a stream of their own. Backward, gradients of states and inputs of all layers
come first, then one fill of all gradients of weights, then these (cudnnRNNBackwardData_v8,
cudnnRNNBackwardWeights_v8).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import ALIGN, Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.graph import Node, Ref
from pysim.workloads.library.memory.pointwise_parts import Work, whole
from pysim.workloads.library.recurrences.layer import Launched, Pass, Weights
from pysim.workloads.library.recurrences.recurrent import ITEM, Recurrent
from pysim.workloads.library.recurrences.rnn_cells import Field
from pysim.workloads.library.recurrences.rnn_persistent import MOST_BATCH

from .images.parts import laid
from .pointwise import element_wise

if TYPE_CHECKING:
    from pysim.workloads.library.moved import Made

STEPS = stand_in("a kernel for each step where both directions have one for all")


def forward(builder: Builder, node: Node) -> None:
    """``pysim.rnn``: the kernels of all layers, steps and directions."""
    module = _Module(builder, node, node.outputs[0])
    module.forward()
    states = node.outputs[1 : 1 + module.states]
    for number, each in enumerate(module.passes):
        launched = module.launched[number]
        written = [module.slice(ref, number) for ref in states]
        if each.p.persistent:
            written += [module.y] if number >= len(module.passes) - module.directions else []
        _touch(launched.steps[-1], written)
    for layer in module.layers:
        module.launch(layer)
    if len(node.outputs) > 1 + module.states:
        module.keep(node.outputs[-1])
    builder.flops += module.flops


def backward(builder: Builder, node: Node) -> None:
    """``pysim.rnn_backward``: gradients of inputs, states and weights."""
    module = _Module(builder, node, node.ref("y"))
    module.forward()
    left = list(node.outputs)
    of_x = left.pop(0) if node.flag("of_x") else None
    of_states, of_weights = left[: module.states], left[module.states :]
    given, *last = (laid(builder, ref) for ref in node.refs_in("given"))
    if len(last) != module.states:
        raise WorkloadError(f"recurrent module: {len(last)} gradients of {module.states} states")
    module.keep(node.ref("kept"))
    gradients = module.weights_of(of_weights)
    dy, both = module.rows(given, module.hidden * module.directions), module.directions == 2
    for layer in reversed(module.layers):
        first: Pass | None = None
        for number in layer:
            each = module.passes[number]
            col = number % module.directions * module.hidden if both else 0
            dh = module.slice(last[0], number)
            launched = each.backward(dy, col, first.dx if first else None, dh=dh, gradients=gradients[number])
            _touch(launched.steps[-1], [module.slice(ref, number) for ref in of_states])
            module.launched[number] = launched
            first = first or each
        dy = module.passes[layer[0]].dx or dy
        module.launch(layer)
    if of_x is not None:
        builder.bind(dy, module.rows(of_x, of_x.shape[-1]))
    begin = min(of_weights, key=lambda ref: ref.offset)
    buffer = builder.graph.storages[begin.storage].nbytes // begin.item
    element_wise(builder, "fill", [], [replace(begin, shape=(buffer,), strides=(1,))], Work())
    for layer in reversed(module.layers):
        for number in layer:
            module.weights(number, gradients[number])
    builder.flops += 2 * module.flops


def _touch(kernels: list[Kernel], written: Sequence[Tensor]) -> None:
    """Let the last kernel of a list write tensors, too, whose values it has: states of the last step."""
    kernels[-1] = replace(
        kernels[-1], accesses=(*kernels[-1].accesses, *(whole(tensor, "write") for tensor in written))
    )


@dataclass(slots=True)
class _Module:
    """The passes of a call, layer by layer, both directions of one in turn; ``of``: its outputs."""

    builder: Builder
    node: Node
    of: Ref
    passes: list[Pass] = field(default_factory=list)
    launched: list[Launched] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    known: dict[Hashable, Made] = field(default_factory=dict)

    @property
    def directions(self) -> int:
        """1 or 2."""
        return self.node.ints("directions")[0]

    @property
    def layers(self) -> list[range]:
        """The numbers of each layer's passes."""
        each = self.directions
        return [range(at * each, (at + 1) * each) for at in range(self.node.ints("layers")[0])]

    @property
    def hidden(self) -> int:
        """Units of a direction."""
        return self.of.shape[-1] // self.directions

    @property
    def states(self) -> int:
        """States of a cell."""
        return len(self.node.refs_in("states"))

    @property
    def y(self) -> Tensor:
        """The outputs, [steps * batch, directions * hidden]."""
        return self.rows(self.of, self.of.shape[-1])

    @property
    def flops(self) -> int:
        """Floating-point operations forward."""
        return sum(
            2 * e.p.wide * (e.p.into + e.p.hidden) * e.p.batch * e.p.steps for e in self.passes
        )  # fmt: skip

    def rows(self, ref: Ref, cols: int) -> Tensor:
        """Return a tensor of all steps as rows."""
        return self.builder.matrix(ref, ref.elements // cols, cols)

    def slice(self, ref: Ref, number: int) -> Tensor:
        """Return what a pass has of a tensor of all passes' states."""
        passes, batch, hidden = ref.shape
        if passes <= number or not ref.contiguous:
            raise WorkloadError(f"recurrent module: states of {ref.shape}, strides {ref.strides}")
        part = replace(
            ref, offset=ref.offset + number * batch * hidden, shape=(batch, hidden), strides=(hidden, 1)
        )
        return self.builder.matrix(part, batch, hidden)

    def weights_of(self, refs: Sequence[Ref]) -> list[Weights]:
        """Return weights, or gradients, of each pass; a module without biases gets memory of its own."""
        each = len(refs) // len([number for layer in self.layers for number in layer])
        made = []
        for begin in range(0, len(refs), each):
            ih, hh, *biases = refs[begin : begin + each]
            wide = ih.shape[0]
            if biases and (biases[1].storage, biases[1].offset) == (
                biases[0].storage,
                biases[0].offset + wide,
            ):
                bias = self.builder.places.part(biases[0], 1, 2 * wide, "bias")
            else:
                bias = self.builder.scratch.tensor("bias", 1, 2 * wide, ih.item)
            made.append(Weights(self._matrix(ih), self._matrix(hh), bias))
        return made

    def _matrix(self, ref: Ref) -> Tensor:
        return self.builder.matrix(ref, ref.shape[0], ref.shape[1])

    def forward(self) -> None:
        """Make the passes, and their kernels forward."""
        node, builder, x = self.node, self.builder, self.node.ref("x")
        steps, batch, inputs = x.shape
        if x.dtype not in ITEM:
            raise WorkloadError(f"recurrent module in {x.dtype}: {', '.join(ITEM)} alone")
        if node.number("dropout"):
            raise WorkloadError("recurrent module with dropout between layers: no template")
        both, weights = self.directions == 2, self.weights_of(node.refs_in("weights"))
        read = self.rows(x, inputs)
        for layer in self.layers:
            p = Recurrent(
                str(node.args["cell"]), self.hidden, batch, steps, x.dtype,
                "forward_backward" if node.flag("training") else "forward_inference", inputs=read.cols,
                device=builder.device, stepwise=both or batch > MOST_BATCH,
            )  # fmt: skip
            made = self.y
            if both and layer != self.layers[-1]:
                made = builder.scratch.tensor("outputs", steps * batch, 2 * self.hidden, p.item)
                self.outputs.append(made)
            for number in layer:
                first = tuple(self.slice(ref, number) for ref in node.refs_in("states"))
                out = Field(made, number % 2 * self.hidden) if both else None
                self.passes.append(
                    Pass(
                        p, builder.scratch, read, weights[number], reverse=both and number % 2 == 1,
                        first=first, out=out, known=self.known,
                    )
                )  # fmt: skip
                self.launched.append(self.passes[-1].forward())
            last = layer == self.layers[-1]
            if not both and last and not p.persistent:
                builder.bind(self.passes[-1].y, made)
            read = made if both else self.passes[-1].y

    def keep(self, kept: Ref) -> None:
        """Put what forward leaves for backward into one tensor of the graph."""
        root, at = self.builder.places.root(kept.storage), 0
        bound = {self.passes[-1].y.address} if self.directions == 1 else set()
        held = [t for each in self.passes for t in each.held if t.address not in bound]
        for tensor in (*self.outputs, *held):
            if at + tensor.nbytes > kept.elements * kept.item:
                raise WorkloadError("recurrent module: what forward keeps is more than was recorded")
            self.builder.bind(tensor, replace(tensor, address=root.address + kept.offset * kept.item + at))
            at += -(-tensor.nbytes // ALIGN) * ALIGN

    def launch(self, layer: Iterable[int]) -> None:
        """Launch the kernels of a layer but for those of gradients of weights."""
        calls = [self.launched[number] for number in layer]
        one = self.passes[0].p
        small = replace(one, stepwise=False).persistent and self.directions == 2
        library = STEPS if small else ""
        for call in calls:
            self.builder.launch(call.before, library=library)
        builder, begun = self.builder, False
        fork = builder.launched - 1
        for steps in zip(*(call.steps for call in calls), strict=True):
            for number, kernels in enumerate(steps):
                if number and not begun:
                    builder.wait(fork, builder.launched)
                    begun = True
                builder.launch([replace(k, stream=number) for k in kernels], library=library)
        if begun:
            builder.wait(builder.launched - 1, builder.launched)  # the next launch, whatever it is
        for call in calls:
            self.builder.launch(call.after, library=library)

    def weights(self, number: int, wanted: Weights) -> None:
        """Launch the kernels of gradients of a pass's weights, which write all of the graph's tensors.

        A GEMM whose parts of k are apart has its result elsewhere; the sums of one bias are those of both.
        """
        each, kernels = self.passes[number], list(self.launched[number].weights)
        found = each.gradients or wanted
        for made, target in zip(found.all, wanted.all, strict=True):
            if made.address == target.address and target is not wanted.bias:
                continue
            at = max(
                i
                for i, kernel in enumerate(kernels)
                if any(a.tensor.address == made.address and a.mode != "read" for a in kernel.accesses)
            )
            kernels[at] = replace(kernels[at], accesses=(*kernels[at].accesses, whole(target, "write")))
        self.builder.launch(kernels)
