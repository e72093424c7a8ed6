"""Layouts of results that CUDA decides and tensors without data do not: channels last of convolutions."""

from __future__ import annotations

from typing import Any

import torch

LAST = torch.channels_last


def as_on_cuda_laid(name: str, args: Any, out: Any) -> Any:
    """Return an operation's results as CUDA lays them out.

    A convolution has channels last where its images or filters have them (``cudnn_conv_suggest_memory_format``,
    ATen/native/ConvUtils.h, 2.11); so have both of its gradients.
    """
    if name == "convolution" and out.is_meta and _last(args[0], args[1]):
        return torch.empty_like(out, memory_format=LAST)
    if name == "convolution_backward" and _last(args[1], args[2]):
        return tuple(each if each is None or each.ndim != 4 else torch.empty_like(each, memory_format=LAST) for each in out)
    return out


def _last(images: Any, filters: Any) -> bool:
    return images.ndim == 4 and any(
        tensor.is_contiguous(memory_format=LAST) and not tensor.is_contiguous() for tensor in (images, filters)
    )
