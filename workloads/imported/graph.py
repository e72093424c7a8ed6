"""A recorded run of a model: operations in the order of their dispatch, between storages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from pysim.errors import WorkloadError, brief

ITEM = {
    "fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int64": 8, "int32": 4, "int16": 2, "int8": 1,
    "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip
FORM = 1  # of the JSON text; a text of another is refused
Kind = Literal["", "parameter", "buffer", "input", "result"]


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor as an operation sees it: a part of a storage.

    ``offset`` and ``strides`` count elements of ``dtype``, a key of :data:`ITEM`.
    """

    storage: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return ITEM[self.dtype]

    @property
    def elements(self) -> int:
        """Elements of the shape; repeated ones count each time."""
        return prod(self.shape)

    @property
    def span(self) -> int:
        """Elements of the storage from the first to the last that the tensor has."""
        if not self.elements:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))

    @property
    def dense(self) -> bool:
        """Whether the elements are one block of memory, in whatever order of dimensions."""
        wide = 1
        for stride, size in sorted(zip(self.strides, self.shape, strict=True)):
            if size == 1:
                continue
            if stride != wide:
                return False
            wide *= size
        return True

    @property
    def contiguous(self) -> bool:
        """Whether the elements are one block of memory, the last dimension innermost."""
        wide = 1
        for stride, size in zip(reversed(self.strides), reversed(self.shape), strict=True):
            if size == 1:
                continue
            if stride != wide:
                return False
            wide *= size
        return True


Argument = Ref | int | float | bool | str | None | tuple["Argument", ...]


@dataclass(frozen=True, slots=True)
class Node:
    """One dispatched operation: its name (``aten.addmm``), overload, arguments by name, and results.

    ``written``: names of arguments that it changes in place.
    """

    op: str
    overload: str
    args: Mapping[str, Argument]
    outputs: tuple[Ref, ...]
    written: tuple[str, ...] = ()

    def refs(self, *, written: bool | None = None) -> Iterator[Ref]:
        """Yield the tensors among the arguments; ``written``: those that are changed, or are not, alone."""
        for name, value in self.args.items():
            if written is None or (name in self.written) == written:
                yield from refs_of(value)

    def ref(self, name: str) -> Ref:
        """Return an argument that is a tensor."""
        value = self.args.get(name)
        if not isinstance(value, Ref):
            raise WorkloadError(f"{self.op}: argument {name} = {value!r}: must be a tensor")
        return value

    def optional(self, name: str) -> Ref | None:
        """Return an argument that is a tensor or is left out."""
        return self.ref(name) if self.args.get(name) is not None else None

    def refs_in(self, name: str) -> tuple[Ref, ...]:
        """Return an argument that is a list of tensors."""
        return tuple(refs_of(self.args.get(name)))

    def number(self, name: str, default: float = 0) -> float:
        """Return an argument that is a number; ``default`` where it is left out."""
        value = self.args.get(name)
        return float(value) if isinstance(value, int | float) else default

    def flag(self, name: str) -> bool:
        """Return an argument that is True or False."""
        return bool(self.args.get(name))

    def ints(self, name: str) -> tuple[int, ...]:
        """Return an argument that is a list of integers, or one of them."""
        value = self.args.get(name)
        if isinstance(value, int):
            return (value,)
        return tuple(int(v) for v in value if isinstance(v, int)) if isinstance(value, tuple) else ()


def refs_of(value: Argument) -> Iterator[Ref]:
    """Yield the tensors of an argument."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from refs_of(each)


@dataclass(frozen=True, slots=True)
class Storage:
    """Memory that tensors share: its bytes, and what it is.

    ``parameter``, ``buffer``, ``input``: it holds data before the first operation; ``result``: it is needed
    after the last one.
    """

    nbytes: int
    kind: Kind = ""


@dataclass(slots=True)
class Graph:
    """Operations in the order of their dispatch, and the storages that they name by number.

    ``tf32``: types that may be computed as TF32, ``gemm`` and ``convolution``. ``notes``: what a reader of
    results must know, a line each.
    """

    name: str
    storages: list[Storage] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    tf32: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    parameters: int = 0

    def to_json(self) -> str:
        """Return the graph as text, a line a node."""
        head = {
            "form": FORM, "name": self.name, "tf32": self.tf32, "notes": self.notes,
            "parameters": self.parameters, "storages": [[s.nbytes, s.kind] for s in self.storages],
        }  # fmt: skip
        lines = [json.dumps(head, sort_keys=True)]
        for node in self.nodes:
            args = {name: _packed(value) for name, value in node.args.items()}
            outputs = [_packed(ref) for ref in node.outputs]
            lines.append(json.dumps([node.op, node.overload, args, outputs, node.written]))
        return "\n".join(lines) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Graph:
        """Return the graph of such a text; raise WorkloadError for any other."""
        try:
            head, *lines = map(json.loads, text.splitlines())
            if head["form"] != FORM:
                raise WorkloadError(f"graph: form {brief(head['form'], 20)}: must be {FORM}")
            made = cls(
                head["name"], [Storage(*each) for each in head["storages"]],
                tf32=tuple(head["tf32"]), notes=tuple(head["notes"]), parameters=head["parameters"],
            )  # fmt: skip
            for op, overload, args, outputs, written in lines:
                given = {name: _unpacked(value) for name, value in args.items()}
                results = tuple(ref for each in outputs for ref in refs_of(_unpacked(each)))
                made.nodes.append(Node(op, overload, given, results, tuple(written)))
        except (KeyError, TypeError, ValueError) as error:
            raise WorkloadError(f"graph: no recorded graph: {brief(error, 60)}") from None
        return made


def _packed(value: Argument) -> object:
    if isinstance(value, Ref):
        return {"ref": [value.storage, value.offset, value.shape, value.strides, value.dtype]}
    return [_packed(each) for each in value] if isinstance(value, tuple) else value


def _unpacked(value: object) -> Argument:
    if isinstance(value, dict):
        storage, offset, shape, strides, dtype = value["ref"]
        if dtype not in ITEM:
            raise WorkloadError(f"graph: type {brief(dtype, 20)}: must be one of {', '.join(ITEM)}")
        return Ref(storage, offset, tuple(shape), tuple(strides), dtype)
    if isinstance(value, list):
        return tuple(_unpacked(each) for each in value)
    if value is None or isinstance(value, int | float | str):
        return value
    raise WorkloadError(f"graph: argument {brief(value, 20)}: no tensor, number, text or list")
