"""Values of small tensors, kept beside tensors without data.

Models ask for some: whether a mask hides anything, whether positions restart. Those that follow from
constants and from integer inputs of the example are computed on the CPU; others are not known, nor are
those drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

MOST = 1 << 20  # elements of a tensor whose values are kept


class Values:
    """CPU copies of storages on the meta device, by their identity."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}

    def know(self, tensor: Any, value: Any) -> None:
        """Keep the value of an input, an integer tensor on the CPU."""
        whole = not value.is_floating_point()
        if tensor.is_meta and whole and self._small(tensor) and value.device.type == "cpu" and value.numel():
            self._keep(tensor, value)

    def of(self, tensor: Any) -> Any:
        """Return a tensor with its value; None: it is not known."""
        kept = self._known.get(tensor.untyped_storage()._cdata)
        if kept is None or kept.dtype != tensor.dtype:
            return None
        return kept.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def run(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """Compute an operation that was run on the meta device, if all that it reads is known."""
        inputs, outputs = list(_metas((args, kwargs))), list(_metas(out))
        small = all(self._small(tensor) for tensor in (*inputs, *outputs))
        if not small or not outputs or torch.Tag.nondeterministic_seeded in func.tags:
            self._forget(outputs)
            return
        values = {id(tensor): self.of(tensor) for tensor in inputs}
        if any(value is None for value in values.values()):
            self._forget(outputs)
            return
        given = _replaced(args, values)
        named = {
            key: torch.device("cpu") if key == "device" else _replaced(value, values)
            for key, value in kwargs.items()
        }
        try:
            made = list(tensors_in(func(*given, **named)))
        except (RuntimeError, NotImplementedError):
            self._forget(outputs)
            return
        there = {tensor.untyped_storage()._cdata for tensor in inputs}  # views, and what was changed in place
        for tensor, value in zip(outputs, made, strict=False):
            if tensor.untyped_storage()._cdata not in there:
                self._keep(tensor, value)

    def _keep(self, tensor: Any, value: Any) -> None:
        size = tensor.untyped_storage().nbytes() // tensor.element_size()
        kept = torch.zeros(size, dtype=tensor.dtype)
        kept.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).copy_(value)
        self._known[tensor.untyped_storage()._cdata] = kept

    def _forget(self, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            self._known.pop(tensor.untyped_storage()._cdata, None)

    @staticmethod
    def _small(tensor: Any) -> bool:
        size = tensor.untyped_storage().nbytes()
        return not tensor.is_complex() and size <= MOST * tensor.element_size()


def tensors_in(value: Any) -> Iterator[Any]:
    """Yield the tensors in nested sequences and mappings."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors_in(each)
    elif isinstance(value, Mapping):
        yield from tensors_in(list(value.values()))


def _metas(value: Any) -> Iterable[Any]:
    return (tensor for tensor in tensors_in(value) if tensor.is_meta)


def _replaced(value: Any, values: dict[int, Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return values.get(id(value), value)
    if isinstance(value, list | tuple):
        return type(value)(_replaced(each, values) for each in value)
    return value
