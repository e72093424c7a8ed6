"""Kernels that libraries launch on an H200: cuBLAS 13.1, cuDNN 9.19 and PyTorch 2.11.

``gemm`` and ``attention`` go from a problem to kernels that run; ``choose_gemm`` names the kernel alone::

    from pysim import Job, Memory
    from pysim.workloads import library

    kernels, c = library.gemm(4096, 512, 1024, memory=Memory(), trans_a="T", dtype="bf16")
    Job("linear", list(kernels))

``memory_bound`` has a function for each of PyTorch's element-wise operations, reductions, softmax, LayerNorm,
embedding, dropout, AdamW and copies. ``rnn`` and ``convolution`` make a recurrent pass and a convolution
from the kernels that a profile names. Suites ``h200-library-*`` (configs/validate.py) say how close they are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .attentions.attention import attention
    from .attentions.attention_problem import Attention
    from .choices.chooser import choose_gemm
    from .convolutions.convolution import convolution
    from .gemms.launches import gemm
    from .memory import memory_bound
    from .recurrences.rnn import rnn

__all__ = ["Attention", "attention", "choose_gemm", "convolution", "gemm", "memory_bound", "rnn"]

# imported when they are used: a choice needs no kernels
_PLACES = {
    "Attention": "attentions.attention_problem",
    "attention": "attentions.attention",
    "choose_gemm": "choices.chooser",
    "convolution": "convolutions.convolution",
    "gemm": "gemms.launches",
    "memory_bound": "memory",
    "rnn": "recurrences.rnn",
}


def __getattr__(name: str) -> object:
    """Import what is asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_PLACES[name]}")
    if name == "memory_bound":
        return import_module(f"{module.__name__}.{name}")
    return getattr(module, name)
