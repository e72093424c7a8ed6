"""Optimisers as they run on a GPU: over lists of parameters (``foreach``) unless ``fused`` is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import torch
from torch.optim import optimizer as torch_optimizer

from pysim.errors import ConfigError, WorkloadError

Factory = Callable[[Any], Any]
NAMES: dict[str, Factory] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1e-3),
    "sgd_fused": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, fused=True),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
    "adam_fused": lambda parameters: torch.optim.Adam(parameters, lr=1e-3, fused=True),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
    "adamw_fused": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, fused=True),
}
_SUPPORT = tuple(
    f"_get_{what}_supported_devices" for what in ("foreach_kernels", "fused_kernels", "capturable")
)

FUSED_SGD = "aten::_fused_sgd_"  # changes tensors in place, so that one without data has nothing to do


@contextmanager
def as_on_cuda() -> Iterator[None]:
    """Let optimisers choose for tensors without data as for those of CUDA."""
    with ExitStack() as stack:
        if not torch._C._dispatch_has_kernel_for_dispatch_key(FUSED_SGD, "Meta"):
            library = stack.enter_context(torch.library._scoped_library("aten", "IMPL", "Meta"))
            library.impl(FUSED_SGD, lambda *args, **kwargs: None)
        stack.enter_context(_supported())
        yield


@contextmanager
def _supported() -> Iterator[None]:
    """Let optimisers take tensors without data for those of CUDA."""
    modules = [torch_optimizer, *(import_module(f"torch.optim.{name}") for name in ("adam", "sgd"))]
    kept = [(m, name, getattr(m, name)) for m in modules for name in _SUPPORT if hasattr(m, name)]

    def supported(*args: Any, **kwargs: Any) -> list[str]:
        return ["cuda", "meta"]

    try:
        for module, name, _ in kept:
            setattr(module, name, supported)
        yield
    finally:
        for module, name, old in kept:
            setattr(module, name, old)


def optimizer_of(train: str | Factory | bool, parameters: Any) -> tuple[Any, str]:
    """Return an optimiser, and a line that says which form it has; True: AdamW.

    Raises ConfigError for an unknown name, WorkloadError for a factory that makes no optimiser.
    """
    if train is True:
        train = "adamw"
    if isinstance(train, str):
        if train not in NAMES:
            raise ConfigError(f"from_torch: train = {train!r}: must be {', '.join(NAMES)}, or a factory")
        factory = NAMES[train]
    elif callable(train):
        factory = train
    else:
        raise ConfigError(f"from_torch: train = {train!r}: must be {', '.join(NAMES)}, or a factory")
    made = factory(parameters)
    if not isinstance(made, torch.optim.Optimizer):
        raise WorkloadError(
            f"from_torch: train returned {type(made).__name__}: must be a torch.optim.Optimizer"
        )
    group = made.param_groups[0]
    form = (
        "fused"
        if group.get("fused")
        else "a tensor after another"
        if group.get("foreach") is False
        else "foreach"
    )
    return made, f"optimiser {type(made).__name__}, {form}"


def with_state(optimizer: Any) -> None:
    """Let an optimiser make its state by a step, so that a recorded one is as all others."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for parameter in parameters:
        parameter.grad = torch.empty_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
