"""Mixed precision as ``torch.autocast`` runs it: what it converts before an operation, and the loss scale.

Parameters and their gradients are fp32. Products and convolutions take operands of 16 bits: a parameter is
converted where it is first used, and kept until the step ends; an activation each time. Norms, softmax and
losses take fp32; what is on no list takes its operands as they are, of two types the wider one. In fp16 the
loss is multiplied by a scale; after the backward pass ``GradScaler`` divides gradients by it and looks for
those that are not finite (``_amp_foreach_non_finite_check_and_unscale_``), then adapts the scale. Unless the
optimiser is a fused one the host waits for what was found, a gap that is left out here. cuDNN's recurrent
layers run in fp16 under autocast of either type; each call converts their parameters anew, into one buffer.
(torch/amp/grad_scaler.py, ATen/autocast_mode.cpp, ATen/cudnn/AutocastRNN.cpp and native/cuda/AmpKernels.cu of
PyTorch 2.11)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pysim.errors import WorkloadError
from pysim.program.job import ALIGN, Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory import multi_tensor as multi
from pysim.workloads.library.memory import pointwise_costs as costs
from pysim.workloads.library.memory.pointwise_flat import vectorised
from pysim.workloads.library.memory.pointwise_parts import Work, whole

from .tape import Gradients, Tape, Value, one, operation

AMP = {"amp": "fp16", "amp-bf16": "bf16"}  # what a network's ``dtype`` says, and the type of 16 bits
FLOAT, HALF = 4, 2
RECURRENT = "fp16"  # what cuDNN's recurrent layers compute in under autocast, whatever its type
MIXED = stand_in("unrolled_elementwise_kernel with casts", measured=False)
CHECKED = stand_in("multi_tensor_apply_kernel, UnaryOpFunctor (unscale)", measured=False)
SCALED = stand_in("amp_update_scale_cuda_kernel", measured=False)


def stored(dtype: str) -> str:
    """Return the type of parameters that a network's ``dtype`` says."""
    return "fp32" if dtype in AMP else dtype


@operation
def cast(tape: Tape, a: Value, source: str, target: str) -> Value:
    """Return ``a`` in another type; its gradient is converted back."""
    made = tape.run(memory_ops.cast(tape.memory, a.tensor, source, target))

    def backward(given: Gradients) -> Gradients:
        return (tape.run(memory_ops.cast(tape.memory, one(given), target, source)),)

    return tape.record((made,), (a,), backward)[0]


def narrow(tape: Tape, a: Value) -> Value:
    """Return ``a`` as a product takes it: under autocast of 16 bits, a parameter converted once a step."""
    if not tape.amp or a.tensor.item < FLOAT:
        return a
    if a in tape.narrowed:
        return tape.narrowed[a]
    made = cast(tape, a, "fp32", tape.amp)
    if a.operation is None and a.wanted:
        tape.narrowed[a] = made
    return made


def converting(source: Tensor, target: Tensor) -> Kernel:
    """Return the kernel that writes a tensor of fp32 in a type of 16 bits, at a place that is there."""
    return vectorised("cast", [source], [target], Work(ints=costs.CONVERT))


def stored_item(tape: Tape, item: int) -> int:
    """Return the bytes of an element of a parameter, where those of an operand are ``item``."""
    return FLOAT if tape.amp else item


def flattened(tape: Tape, weights: Sequence[Value]) -> list[Value]:
    """Return parameters of fp32 as a call of cuDNN takes them under autocast: in fp16, in a buffer of zeros.

    Nothing is kept for a later call. Gradients are converted back one by one.
    """
    sizes = [-(-w.tensor.rows * w.tensor.cols * HALF // ALIGN) * ALIGN for w in weights]
    buffer = tape.memory.tensor("weights", 1, sum(sizes) // HALF, HALF)
    (zero,) = memory_ops.fill(tape.memory, 1, buffer.cols, RECURRENT).kernels
    tape.launch([_filled(zero, buffer)])
    address, made = buffer.address, []
    for weight, size in zip(weights, sizes, strict=True):
        made.append(_into(tape, weight, address))
        address += size
    return made


@operation
def _into(tape: Tape, weight: Value, address: int) -> Value:
    """Return a parameter in fp16, at an address."""
    t = weight.tensor
    made = Tensor(t.name, t.rows, t.cols, HALF, address)
    tape.launch([converting(t, made)])

    def backward(given: Gradients) -> Gradients:
        return (tape.run(memory_ops.cast(tape.memory, one(given), RECURRENT, "fp32")),)

    return tape.record((made,), (weight,), backward)[0]


def first_states(tape: Tape, x: Value, rows: int, hidden: int, many: int) -> tuple[Tensor, ...]:
    """Return the ``many`` states, [rows, hidden], that a recurrent call begins with; none if it makes them.

    They are zeros of the type of ``x``: where that is fp32, autocast converts each.
    """
    if not tape.amp or x.tensor.item < FLOAT:
        return ()
    zeros = [memory_ops.fill(tape.memory, rows, hidden, "fp32") for _ in range(many)]
    tape.launch(kernel for each in zeros for kernel in each.kernels)
    return tuple(tape.run(memory_ops.cast(tape.memory, each.outputs[0], "fp32", RECURRENT)) for each in zeros)


def wide(tape: Tape, a: Value) -> Value:
    """Return ``a`` as a norm, a softmax and a loss take it: under autocast in fp32."""
    if not tape.amp or a.tensor.item == FLOAT:
        return a
    return cast(tape, a, tape.amp, "fp32")


def converted_to(tape: Tape, t: Tensor, item: int) -> Tensor:
    """Return a tensor with elements of so many bytes, converted where it has others."""
    if t.item == item:
        return t
    types = ("fp32", tape.amp) if item < t.item else (tape.amp, "fp32")
    return tape.run(memory_ops.cast(tape.memory, t, *types))


def mixed_mul(tape: Tape, a: Tensor, b: Tensor) -> Tensor:
    """Return a x b, in fp32 where they are of two types."""
    if a.item == b.item:
        return tape.run(memory_ops.mul(tape.memory, a, b))
    made = tape.memory.tensor("mul", a.rows, a.cols, FLOAT)
    kernel = vectorised("mul", [a, b], [made], Work(costs.MUL.fp32, costs.MUL.ints + costs.CONVERT))
    tape.launch([replace(kernel, library=MIXED)])
    return made


def mixed_add(tape: Tape, a: Value, b: Value) -> Value:
    """Return a + b of two types, in fp32; the gradient of that of 16 bits is converted."""
    made = tape.memory.tensor("add", a.tensor.rows, a.tensor.cols, FLOAT)
    work = Work(costs.ADD.fp32, costs.ADD.ints + costs.CONVERT, control=2)
    kernel = vectorised("add", [a.tensor, b.tensor], [made], work)
    tape.launch([replace(kernel, library=MIXED)])

    def backward(given: Gradients) -> Gradients:
        return tuple(
            one(given)
            if value.tensor.item == FLOAT
            else tape.run(memory_ops.cast(tape.memory, one(given), "fp32", tape.amp))
            for value in (a, b)
        )

    return tape.record((made,), (a, b), backward)[0]


def scaled(tape: Tape, loss: Value) -> Value:
    """Return a loss of one element, or of one a sequence, times the scale, where there is one."""
    if tape.amp != "fp16":
        return loss
    scale = tape.memory.tensor("scale", 1, 1, FLOAT)

    def times(t: Tensor) -> Tensor:
        if t.rows * t.cols == 1:
            return tape.run(memory_ops.mul(tape.memory, t, scale))
        made = tape.memory.tensor("mul", t.rows, t.cols, FLOAT)
        tape.launch([_touching(vectorised("mul", [t], [made], costs.MUL), scale, "read")])
        return made

    def backward(given: Gradients) -> Gradients:
        return (times(one(given)),)

    return tape.record((times(loss.tensor),), (loss,), backward)[0]


def stepped(tape: Tape, weights: Sequence[Value], step: list[Kernel]) -> list[Kernel]:
    """Return an optimiser's step with what ``GradScaler`` launches before and after it in fp16.

    The step waits for what was found in all gradients. Raises WorkloadError where there is none.
    """
    if tape.amp != "fp16" or not step:
        return step
    memory, gradients = tape.memory, [w.gradient for w in weights if w.gradient is not None]
    if not gradients:
        raise WorkloadError("loss scale: no parameter has a gradient")
    found, scale, steps = (memory.tensor(name, 1, 1, FLOAT) for name in ("found_inf", "scale", "growth"))
    check = multi.Pass("unscale_and_check", (0,), (0,), costs.FOREACH_MUL, 32, CHECKED)
    checks = [_touching(k, found, "update") for k in multi.multi_tensor(check, [gradients])]
    update = vectorised("update_scale", [found, scale, steps], [scale, steps], costs.ADD)
    (zero,) = memory_ops.fill(memory, 1, 1, "fp32").kernels
    begin = [_filled(zero, found), *checks]
    return [*begin, *(_touching(k, found, "read") for k in step), replace(update, library=SCALED)]


def _filled(kernel: Kernel, tensor: Tensor) -> Kernel:
    """Return a fill of a tensor of the same size."""
    return replace(kernel, args=(tensor,), accesses=(whole(tensor, "write"),))


def _touching(kernel: Kernel, tensor: Tensor, mode: str) -> Kernel:
    return replace(kernel, accesses=(*kernel.accesses, whole(tensor, mode)))  # type: ignore[arg-type]
