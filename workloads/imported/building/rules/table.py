"""Which rule makes the kernels of an operator: each stands here once."""

from __future__ import annotations

from collections.abc import Callable

from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.graph import Node
from pysim.workloads.library.memory import pointwise_costs as costs
from pysim.workloads.library.memory.pointwise_parts import Work

from . import attention, copies, gemms, optimizers, recurrent, rows
from .images import convolutions, layers
from .pointwise import pointwise
from .stand_in import moving

Rule = Callable[[Builder, Node], None]
# instructions of an element beside its loads and stores, by reason where no sweep has them
TEST, CHOOSE, NEGATE = Work(ints=1), Work(ints=2), Work(ints=1)
ROOT, DIVIDE = Work(fp32=6, sfu=1), Work(fp32=8, sfu=1, control=1)
EXPONENTIAL, LOGARITHM, WAVE = (
    Work(fp32=4, sfu=1),
    Work(fp32=8, ints=4, sfu=1),
    Work(fp32=16, ints=8, control=2),
)
SIGMOID, SMOOTH = Work(fp32=6, sfu=2), Work(fp32=14, sfu=3, control=1)
CLIP, GATE = Work(fp32=2), Work(fp32=4, control=1)
POWER = Work(fp32=3, control=1)  # of 2, 3 and 0.5, which PyTorch multiplies; others take a call

ELEMENT_WISE: dict[str, Work] = {
    "abs": NEGATE, "add": costs.ADD, "addcdiv": DIVIDE, "addcmul": Work(fp32=2), "bitwise_and": TEST,
    "bitwise_not": TEST, "bitwise_or": TEST, "clamp": CLIP, "clamp_max": CLIP, "clamp_min": CLIP, "cos": WAVE,
    "div": DIVIDE, "elu": SMOOTH, "eq": TEST, "erf": costs.GELU_ERF, "exp": EXPONENTIAL, "exp2": EXPONENTIAL,
    "floor": TEST, "floor_divide": DIVIDE, "fmod": DIVIDE, "ge": TEST, "gelu": costs.GELU_ERF,
    "gelu_backward": costs.GELU_ERF_BACKWARD, "gt": TEST, "hardsigmoid": GATE, "hardsigmoid_backward": GATE,
    "hardswish": GATE, "hardswish_backward": GATE, "hardtanh": CLIP, "hardtanh_backward": CLIP, "isinf": TEST,
    "isnan": TEST, "le": TEST, "leaky_relu": CLIP, "leaky_relu_backward": CLIP, "lerp": Work(fp32=3),
    "log": LOGARITHM, "log1p": LOGARITHM, "log2": LOGARITHM, "logical_and": TEST, "logical_not": TEST,
    "logical_or": TEST, "lt": TEST, "masked_fill": CHOOSE, "maximum": CLIP, "minimum": CLIP, "mul": costs.MUL,
    "ne": TEST, "neg": NEGATE, "pow": POWER, "reciprocal": DIVIDE, "relu": costs.RELU, "remainder": DIVIDE,
    "round": TEST, "rsqrt": costs.RSQRT, "rsub": costs.ADD, "sgn": TEST, "sigmoid": SIGMOID,
    "sigmoid_backward": Work(fp32=3), "sign": TEST, "silu": costs.SILU, "silu_backward": SMOOTH, "sin": WAVE,
    "softplus": SMOOTH, "softplus_backward": SMOOTH, "sqrt": ROOT, "square": costs.MUL, "sub": costs.ADD,
    "tanh": costs.TANH, "tanh_backward": Work(fp32=3), "threshold_backward": CLIP, "tril": CHOOSE,
    "triu": CHOOSE, "where": CHOOSE, "bitwise_xor": TEST, "bitwise_left_shift": TEST,
    "bitwise_right_shift": TEST,
}  # fmt: skip

FOREACH: dict[str, Work] = {
    "add": Work(fp32=1), "addcdiv": DIVIDE, "addcmul": Work(fp32=2), "div": DIVIDE, "lerp": Work(fp32=3),
    "mul": Work(fp32=1), "neg": NEGATE, "sqrt": ROOT, "sub": Work(fp32=1), "zero": Work(), "maximum": CLIP,
    "reciprocal": DIVIDE, "copy": Work(),
}  # fmt: skip

# move rows or elements to places that data says
MOVING = (
    "cumsum", "gather", "index", "index_add", "index_copy", "index_put", "index_select", "roll", "scatter",
    "scatter_add", "flip", "masked_scatter", "repeat_interleave", "constant_pad_nd", "isin",
    "_index_put_impl",
)  # fmt: skip

FILLING = (
    "fill", "zero", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "scalar_tensor",
    "new_full",
    "new_zeros", "new_ones", "eye", "normal", "uniform", "bernoulli", "rand", "randn", "lift_fresh_copy",
)  # fmt: skip
REDUCED = "amax", "amin", "any", "all", "max", "min", "argmax", "argmin", "prod"  # by the kernel of a sum

RULES: dict[str, Rule] = {
    **{name: pointwise(name, work) for name, work in ELEMENT_WISE.items()},
    **{f"_foreach_{name}": optimizers.foreach(work) for name, work in FOREACH.items()},
    **dict.fromkeys(MOVING, moving),
    # memory
    **dict.fromkeys(FILLING, copies.fill),
    "arange": copies.arange,
    **dict.fromkeys(("clone", "copy", "_to_copy", "contiguous"), copies.copied),
    "cat": copies.concatenation,
    "stack": copies.concatenation,
    "embedding": copies.embedding,
    "embedding_dense_backward": copies.embedding_gradient,
    "native_dropout": copies.dropout,
    "native_dropout_backward": copies.dropout_gradient,
    "select_backward": copies.part_gradient,
    "slice_backward": copies.part_gradient,
    # products and attention
    "mm": gemms.mm,
    "addmm": gemms.addmm,
    "bmm": gemms.bmm,
    "baddbmm": gemms.baddbmm,
    "_scaled_dot_product_cudnn_attention": attention.forward,
    "_scaled_dot_product_cudnn_attention_backward": attention.backward,
    "_scaled_dot_product_efficient_attention": attention.efficient,
    "_scaled_dot_product_efficient_attention_backward": attention.efficient,
    # rows
    "native_layer_norm": rows.layer_norm,
    "native_layer_norm_backward": rows.layer_norm_backward,
    "_softmax": rows.softmax,
    "_safe_softmax": rows.softmax,
    "_log_softmax": rows.softmax,
    "_softmax_backward_data": rows.softmax_backward,
    "_log_softmax_backward_data": rows.softmax_backward,
    "nll_loss_forward": rows.nll_loss,
    "nll_loss_backward": rows.nll_loss_backward,
    "sum": rows.reduction(exact=True),
    "mean": rows.reduction(exact=True),
    **{name: rows.reduction() for name in REDUCED},
    # images
    "convolution": convolutions.convolution,
    "convolution_backward": convolutions.convolution_backward,
    "native_batch_norm": layers.batch_norm,
    "native_batch_norm_backward": layers.batch_norm_gradient,
    "max_pool2d_with_indices": layers.max_pooling,
    "max_pool2d_with_indices_backward": layers.max_pooling_gradient,
    "avg_pool2d": layers.average_pooling,
    "avg_pool2d_backward": layers.average_pooling_gradient,
    "_adaptive_avg_pool2d": layers.adaptive_pooling,
    "_adaptive_avg_pool2d_backward": layers.adaptive_pooling_gradient,
    # recurrent modules and optimisers
    "rnn": recurrent.forward,
    "rnn_backward": recurrent.backward,
    "_fused_adam": optimizers.fused_adam,
    "_fused_adamw": optimizers.fused_adam,
    "_fused_sgd": optimizers.fused_sgd,
}  # fmt: skip


def rule_of(op: str) -> Rule | None:
    """Return the rule of an operator, ``aten.add_`` as ``aten.add``; None: there is none."""
    name = op.partition(".")[2]
    return RULES.get(name) or RULES.get(name.removesuffix("_"))
