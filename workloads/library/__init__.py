"""Kernels that libraries launch on an H200: cuBLAS 13.1, cuDNN 9.19 and PyTorch 2.11.

``gemm`` and ``attention`` go from a problem to kernels that run; ``choose_gemm`` names the kernel alone::

    from pysim import Job, Memory
    from pysim.workloads import library

    kernels, c = library.gemm(4096, 512, 1024, memory=Memory(), trans_a="T", dtype="bf16")
    Job("linear", list(kernels))

``rnn`` and ``convolution`` take kernels as a profile names them (``told_of``), or choose them::

    conv = library.convolution_of(32, 64, (56, 56), 64, (3, 3), padding=(1, 1))
    kernels = library.convolution(None, (), conv, Memory())
    job = library.rnn(library.Recurrent("gru", 256, 16, 3, "fp16", "forward_training"))

What the calls return:

============================================ ================================================================
``gemm(m, n, k, memory=...)``                a pair: a tuple of kernels in their order, and C
``attention(Attention(...), memory)``        ``.kernels``, a tuple in their order, and ``.outputs``, a tuple
                                             of tensors: O; or dQ and dK with dV, or dQ, dK and dV
``memory_bound.add(memory, a, b)`` and its   ``.kernels`` and ``.outputs``, tuples
like, ``memory_bound.launch("add", ...)``
``convolution(told, others, conv, memory)``  a list of kernels in their order
``rnn(Recurrent(...))``                      a ``Job``, in memory of its own
``choose_gemm(m, n, k)``                     a ``GemmChoice``: name, tile, grid and reasons
``choose_convolution(conv)``                 a pair: the main launch, ``Told``, and a tuple of those beside it
``told_of(text)``                            a ``Told``
============================================ ================================================================

``memory_bound`` has a function for each of PyTorch's element-wise operations, reductions, softmax, LayerNorm,
embedding, dropout, AdamW and copies. All raise WorkloadError for wrong arguments and for what has no
template. Suites ``h200-library-*`` (configs/validate.py) say how close they are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .attentions.attention import attention
    from .attentions.attention_problem import Attention
    from .choices.chooser import choose_gemm
    from .convolutions.chooser import choose_convolution
    from .convolutions.convolution import convolution
    from .convolutions.shape import Convolution, convolution_of
    from .gemms.launches import gemm
    from .gemms.told import Told, told_of
    from .memory import memory_bound
    from .recurrences.recurrent import Recurrent
    from .recurrences.rnn import rnn

__all__ = [
    "Attention",
    "Convolution",
    "Recurrent",
    "Told",
    "attention",
    "choose_convolution",
    "choose_gemm",
    "convolution",
    "convolution_of",
    "gemm",
    "memory_bound",
    "rnn",
    "told_of",
]

# imported when they are used: a choice needs no kernels
_PLACES = {
    "Attention": "attentions.attention_problem",
    "Convolution": "convolutions.shape",
    "Recurrent": "recurrences.recurrent",
    "Told": "gemms.told",
    "attention": "attentions.attention",
    "choose_convolution": "convolutions.chooser",
    "choose_gemm": "choices.chooser",
    "convolution": "convolutions.convolution",
    "convolution_of": "convolutions.shape",
    "gemm": "gemms.launches",
    "memory_bound": "memory",
    "rnn": "recurrences.rnn",
    "told_of": "gemms.told",
}


def __getattr__(name: str) -> object:
    """Import what is asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_PLACES[name]}")
    if name == "memory_bound":
        return import_module(f"{module.__name__}.{name}")
    return getattr(module, name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
