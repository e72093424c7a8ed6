"""Checks of what users pass to public calls: one line of a WorkloadError names the argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from math import prod
from typing import ParamSpec, TypeVar

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Memory, Tensor

P = ParamSpec("P")
R = TypeVar("R")
MOST = 2**40  # elements of a tensor: several times the memory of an H200
MOST_BYTES = 2**37  # of one that exists: the memory of an H200 is 141 GB
# Layers and steps that have kernels of their own: up to a minute to make, of 10 ms a step
MOST_LAYERS, MOST_STEPS = 2**10, 2**12


def _shown(value: object) -> str:
    """Return a value on one line, cut where it is long; an integer may have too many digits to print."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    text = f"{value.name} of {type(value).__name__}" if isinstance(value, Tensor) else repr(value)
    return " ".join(text[:60].split())


def refuse(what: str, name: str, value: object, wanted: str) -> WorkloadError:
    """Return the error for an argument ``name`` of a call ``what``."""
    return WorkloadError(f"{what}: {name} = {_shown(value)}: must be {wanted}")


def check_sizes(what: str, least: int = 1, most: int = MOST, **sizes: object) -> None:
    """Refuse sizes that are no integers from ``least`` to ``most``."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or not least <= size <= most:
            raise refuse(what, name, size, f"an integer from {least} to {most}")


def check_elements(what: str, **shapes: tuple[int, ...]) -> None:
    """Refuse tensors with too many elements; ``shapes``: by name, joined by ``_x_`` where sizes make it."""
    for name, shape in shapes.items():
        if prod(shape) > MOST:
            sizes = " x ".join(map(_shown, shape))
            raise WorkloadError(f"{what}: {name.replace('_x_', ' x ')} = {sizes}: at most {MOST} elements")


def check_names(what: str, known: Iterable[str], **names: object) -> None:
    """Refuse what is not the text of a known name."""
    known = tuple(known)
    for name, value in names.items():
        if not isinstance(value, str) or value not in known:
            raise refuse(what, name, value, ", ".join(known))


def check_flags(what: str, **flags: object) -> None:
    """Refuse what is neither True nor False."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise refuse(what, name, value, "True or False")


def check_type(what: str, kind: type, **values: object) -> None:
    """Refuse objects of another type."""
    for name, value in values.items():
        if not isinstance(value, kind):
            article = "an" if kind.__name__[0] in "AEIO" else "a"
            raise refuse(what, name, value, f"{article} {kind.__name__}")


def _tensor(what: str, name: str, value: object) -> None:
    """Refuse what is no tensor with elements, and tensors with too many."""
    check_type(what, Tensor, **{name: value})
    if isinstance(value, Tensor):
        check_sizes(what, **{f"rows of {name}": value.rows, f"columns of {name}": value.cols})
        if value.nbytes > MOST_BYTES:
            raise WorkloadError(
                f"{what}: {name} has {value.nbytes} B: at most {MOST_BYTES} B, an H200's memory"
            )


def check_item(what: str, **tensors: Tensor) -> None:
    """Refuse elements that are neither fp16, bf16 nor fp32."""
    for name, tensor in tensors.items():
        if tensor.item not in (2, 4):
            raise WorkloadError(f"{what}: {name} has elements of {tensor.item} B: must be of 2 or 4 B")


def _pair(what: str, name: str, value: object) -> None:
    if not isinstance(value, tuple) or len(value) != 2:
        raise refuse(what, name, value, "two tensors")
    for each in value:
        _tensor(what, name, each)


def _indices(what: str, name: str, value: object) -> None:
    """Refuse what is no array of one dimension of integers."""
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "iu" or not value.size:
        raise refuse(what, name, value, "an array of one dimension of integers")


# by the annotation of an argument
_CHECKS: dict[str, Callable[[str, str, object], None]] = {
    "Memory": lambda what, name, value: check_type(what, Memory, **{name: value}),
    "Tensor": _tensor,
    "tuple[Tensor, Tensor]": _pair,
    "NDArray[np.int64]": _indices,
    "bool": lambda what, name, value: check_flags(what, **{name: value}),
}


def checked_call(function: Callable[P, R]) -> Callable[P, R]:
    """Check arguments by their annotations before ``function`` runs: Memory, Tensor, pairs, indices, bool."""
    shape = signature(function)
    checks = {
        name: _CHECKS[str(each.annotation)]
        for name, each in shape.parameters.items()
        if str(each.annotation) in _CHECKS
    }

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        for name, value in shape.bind(*args, **options).arguments.items():
            if name in checks:
                checks[name](function.__name__, name, value)
        return function(*args, **options)

    return call
