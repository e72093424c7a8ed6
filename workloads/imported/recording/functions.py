"""Functions that PyTorch runs differently on a GPU than on tensors without data, and as one call there.

On the meta device dropout, attention and recurrent modules fall apart into many operations. Here each is the
operation that PyTorch 2.11 dispatches for CUDA (ATen/native/transformers/cuda/sdp_utils.cpp, Dropout.cpp,
RNN.cpp), so that its gradient is CUDA's, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from .recorder import Recorder
from .recurrent import recurrent

aten = torch.ops.aten
HALVES = (torch.float16, torch.bfloat16)
# cuDNN's attention: widths of a head are multiples of 8 up to 128; backward and forward alike
CUDNN_MOST, CUDNN_EACH = 128, 8
# of widths of a head in the memory-efficient kernels: vectors of 16 B (minimum_gemm_alignment, sdp_utils.cpp)
EFFICIENT_EACH = {torch.float16: 8, torch.bfloat16: 8, torch.float32: 4}
KEY = "AutogradMeta"  # of all tensors on the meta device but those of inference mode


@contextmanager
def cuda_functions(recorder: Recorder) -> Iterator[None]:
    """Register the functions of :data:`HANDLERS` for the meta device, for as long as the context lasts."""
    library = torch.library.Library("aten", "IMPL")
    try:
        for name, handler in HANDLERS.items():
            library.impl(name, partial(handler, recorder), KEY)
        yield
    finally:
        library._destroy()


def _dropout(recorder: Recorder, x: Any, p: float, train: bool) -> Any:
    if not train or p in (0, 1) or not x.numel():
        return aten.alias(x) if p != 1 or not train else x * 0
    return aten.native_dropout(x, p, True)[0]


def _attention(
    recorder: Recorder,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    each = EFFICIENT_EACH.get(query.dtype, 0)
    if query.ndim != 4 or not each or query.shape[-1] % each or value.shape[-1] % each:
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]
    needs = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
    width = query.shape[-1]
    alike = width == value.shape[-1] and width % CUDNN_EACH == 0 and width <= CUDNN_MOST
    learned = attn_mask is not None and attn_mask.requires_grad
    bias = None if attn_mask is None else _bias(attn_mask, query, key)
    if query.dtype in HALVES and alike and not learned:
        return aten._scaled_dot_product_cudnn_attention(
            query, key, value, bias, needs, dropout_p, is_causal, False, scale=scale
        )[0]
    if enable_gqa:
        share = query.shape[1] // key.shape[1]
        key, value = (each.repeat_interleave(share, 1) for each in (key, value))
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, bias, needs, dropout_p, is_causal, scale=scale
    )[0]


def _bias(mask: Any, query: Any, key: Any) -> Any:
    """Return what is added to the scores, as every head and sequence sees it.

    A mask of True and False becomes 0 and minus infinity: a fill of each number, and a choice.
    """
    if mask.dtype == torch.bool:
        low = query.new_full((), float("-inf"))
        mask = torch.where(mask, query.new_full((), 0.0), low)
    return mask.expand(*query.shape[:3], key.shape[2])


HANDLERS: dict[str, Callable[..., Any]] = {
    "dropout": _dropout,
    "scaled_dot_product_attention": _attention,
    "gru.input": recurrent("gru"),
    "lstm.input": recurrent("lstm"),
    "rnn_tanh.input": recurrent("vanilla"),
    "rnn_relu.input": recurrent("vanilla"),
}
