"""Layouts of results that CUDA decides and tensors without data do not: channels last of convolutions."""

from __future__ import annotations

from typing import Any

import torch

LAST = torch.channels_last


def as_on_cuda_laid(name: str, args: Any, out: Any) -> Any:
    """Return an operation's results as CUDA lays them out.

    A convolution has channels last where its images or filters have them, and so have both of its gradients
    (``cudnn_conv_suggest_memory_format``, ATen/native/ConvUtils.h, 2.11).
    """
    if name == "convolution" and out.is_meta and _last(args[0], args[1]):
        return torch.empty_like(out, memory_format=LAST)
    if name == "convolution_backward" and _last(args[1], args[2]):
        return tuple(map(_as_last, out))
    return out


def _as_last(tensor: Any) -> Any:
    wanted = tensor is not None and tensor.ndim == 4
    return torch.empty_like(tensor, memory_format=LAST) if wanted else tensor


def _last(images: Any, filters: Any) -> bool:
    return images.ndim == 4 and any(
        tensor.is_contiguous(memory_format=LAST) and not tensor.is_contiguous()
        for tensor in (images, filters)
    )
