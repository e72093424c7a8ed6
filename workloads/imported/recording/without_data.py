"""Models and inputs without data: copies on PyTorch's meta device. What a user gave is not changed."""

from __future__ import annotations

import copy
from typing import Any

import torch

from pysim.errors import WorkloadError

from .recurrent import flattened


def meta_model(model: Any) -> Any:
    """Return a copy of a module whose parameters and buffers have shapes and types, and no data.

    A parameter that is used twice stays one. Raises WorkloadError for what is no module or cannot be copied.
    """
    if not isinstance(model, torch.nn.Module):
        raise WorkloadError(f"from_torch: model = {type(model).__name__}: must be a torch.nn.Module")
    if isinstance(model, torch.jit.ScriptModule):
        raise WorkloadError("from_torch: a scripted model: must be the module that torch.jit compiled")
    known: dict[int, Any] = {}
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            known[id(tensor)] = _empty(tensor)
        for module in model.modules():
            if isinstance(module, torch.nn.RNNBase):
                known.update(_flat(module))
        for module in model.modules():
            for value in vars(module).values():
                if isinstance(value, torch.Tensor):
                    known.setdefault(id(value), _empty(value))
        try:
            return copy.deepcopy(model, known)
        except (TypeError, RuntimeError) as error:
            raise WorkloadError(
                f"from_torch: the model cannot be copied: {str(error).splitlines()[0]}"
            ) from None


def meta_inputs(value: Any) -> Any:
    """Return inputs with their tensors on the meta device; lists, tuples and dictionaries are kept."""
    if isinstance(value, torch.Tensor):
        if any(not isinstance(size, int) for size in value.shape):
            raise WorkloadError(
                f"from_torch: an input of shape {tuple(value.shape)}: symbolic sizes: give an example"
            )
        return value.detach().to("meta").requires_grad_(value.requires_grad)
    if isinstance(value, list | tuple):
        made = [meta_inputs(each) for each in value]
        return type(value)(made) if type(value) in (list, tuple) else type(value)(*made)
    if isinstance(value, dict):
        return {key: meta_inputs(each) for key, each in value.items()}
    return value


def _flat(module: Any) -> dict[int, Any]:
    """Return the weights of a recurrent module by identity, in one storage, as they are on CUDA."""
    weights = list(module.parameters())
    if len({weight.dtype for weight in weights}) != 1 or module.proj_size:
        return {}
    made = flattened(weights, torch.empty(0, dtype=weights[0].dtype, device="meta"))
    return {
        id(old): torch.nn.Parameter(new, old.requires_grad) for old, new in zip(weights, made, strict=True)
    }


def _empty(tensor: Any) -> Any:
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(made, tensor.requires_grad)
    return made
