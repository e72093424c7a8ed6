"""Records what PyTorch dispatches: each operation that is no view, with the storages that it touches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pysim.errors import WorkloadError
from pysim.workloads.imported.graph import Argument, Graph, Kind, Node, Ref, Storage

from .layouts import as_on_cuda_laid
from .values import Values, tensors_in

DTYPES = {
    torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "fp8", torch.float8_e5m2: "fp8", torch.int64: "int64", torch.int32: "int32",
    torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8", torch.bool: "bool",
    torch.complex64: "complex64", torch.complex128: "complex128",
}  # fmt: skip
# need data, which tensors on the meta device have not
READS_DATA = (
    "_local_scalar_dense",
    "item",
    "nonzero",
    "masked_select",
    "is_nonzero",
    "equal",
    "unique_dim",
    "_unique2",
)
VALUE = ("_local_scalar_dense", "item", "is_nonzero", "equal")  # of these the result is no tensor
QUIET = ("profiler", "prim", "prims", "inductor")  # namespaces whose operations launch nothing
# allocate, or say something of a tensor, and launch nothing
NO_KERNEL = (
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted", "lift_fresh",
    "sym_size", "sym_stride", "sym_numel", "is_pinned", "_has_compatible_shallow_copy_type", "set_",
    "resize_",    "as_strided_", "_assert_async", "_assert_tensor_metadata", "record_stream",
)  # fmt: skip


class Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Adds a node to ``graph`` for each operation on the meta device, while it is entered.

    Operations on tensors of the CPU alone run on the host and are left out, as are views.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.on = True
        self.asked = ""  # what errors of this iteration begin with
        self.values = Values()
        self.names: dict[int, str] = {}  # of parameters, by the identity of their storages
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []  # storages stay alive, so that no address is used twice

    def know(self, tensors: Iterable[Any], kind: Kind) -> None:
        """Give numbers to storages that hold data before the first operation."""
        for tensor in tensors:
            self._number(tensor, kind)

    def keep(self, tensors: Iterable[Any]) -> None:
        """Mark storages that are needed after the last operation."""
        for tensor in tensors:
            number = self._numbers.get(tensor.untyped_storage()._cdata)
            if number is not None and not self.graph.storages[number].kind:
                about = self.graph.storages[number]
                self.graph.storages[number] = Storage(about.nbytes, "result")

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operation and record it."""
        kwargs = dict(kwargs or {})
        name = func._schema.name.partition("::")[2]
        if name in READS_DATA and any(t.is_meta for t in tensors_in((args, kwargs))):
            return self._value(func, name, args, kwargs)
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
            with self:  # in inference mode operations come whole
                return func.decompose(*args, **kwargs)
        out = as_on_cuda_laid(name, args, func(*args, **kwargs))
        self.values.run(func, args, kwargs, out)
        if name == "embedding":
            self._check_rows(*args[:2])
        if self.on and func.namespace not in QUIET and name not in NO_KERNEL:
            self._record(func, name, args, kwargs, out)
        return out

    def emit(self, op: str, args: Mapping[str, Any], outputs: Sequence[Any]) -> None:
        """Add a node of our own, for a module that is kept whole."""
        if self.on:
            given = {key: self._argument(value) for key, value in args.items()}
            self.graph.nodes.append(Node(op, "", given, tuple(map(self._ref, outputs))))

    def _value(self, func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Return what an operation says of values that are known; raise NeedsData for others."""
        known = [self.values.of(a) if isinstance(a, torch.Tensor) and a.is_meta else a for a in args]
        if name not in VALUE or any(a is None for a in known):
            raise NeedsData(name)
        return func(*known, **kwargs)

    def _check_rows(self, table: Any, index: Any) -> None:
        """Refuse rows that a table has not, such as positions beyond those that were learned.

        On a GPU they are an assertion that fails. Values of inputs (tokens) are examples and may be any.
        """
        number = self._numbers.get(index.untyped_storage()._cdata)
        given = number is not None and self.graph.storages[number].kind == "input"
        rows = None if given else self.values.of(index)
        if rows is not None and rows.numel() and int(rows.max()) >= table.shape[0]:
            name = self.names.get(table.untyped_storage()._cdata, "embedding")
            row, most = int(rows.max()), table.shape[0] - 1
            raise WorkloadError(f"from_torch: {self.asked}{name}: row {row}: at most {most}")

    def _record(self, func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> None:
        given, written = {}, []
        for number, argument in enumerate(func._schema.arguments):
            if number < len(args):
                value = args[number]
            elif argument.name in kwargs:
                value = kwargs[argument.name]
            else:
                value = argument.default_value
            given[argument.name] = value
            if argument.alias_info is not None and argument.alias_info.is_write:
                written.append(argument.name)
        inputs, outputs = list(tensors_in(given)), list(tensors_in(out))
        if not any(tensor.is_meta for tensor in (*inputs, *outputs)):
            return
        known = {t.untyped_storage()._cdata for t in inputs}
        fresh = [t for t in outputs if t.untyped_storage()._cdata not in known]
        if not written and not fresh:
            return  # a view
        arguments = {key: self._argument(value) for key, value in given.items()}
        results = tuple(self._ref(t) for t in outputs if t.is_meta)
        overload = func._overloadname
        node = Node(f"{func.namespace}.{name}", overload, arguments, results, tuple(written))
        self.graph.nodes.append(node)

    def _argument(self, value: Any) -> Argument:
        if isinstance(value, torch.Tensor):
            if value.is_meta:
                return self._ref(value)
            return "host" if value.ndim else float(value.to(torch.float64))
        if isinstance(value, list | tuple):
            return tuple(self._argument(each) for each in value)
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            raise WorkloadError("from_torch: a symbolic size: shapes are those of the example inputs alone")
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return DTYPES.get(value, str(value)) if isinstance(value, torch.dtype) else str(value)

    def _ref(self, tensor: Any) -> Ref:
        dtype = DTYPES.get(tensor.dtype)
        if dtype is None:
            raise WorkloadError(
                f"from_torch: a tensor of {tensor.dtype}: must be of {', '.join(DTYPES.values())}"
            )
        number = self._number(tensor, "")
        shape, strides = tuple(map(int, tensor.shape)), tuple(map(int, tensor.stride()))
        return Ref(number, int(tensor.storage_offset()), shape, strides, dtype)

    def _number(self, tensor: Any, kind: Kind) -> int:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._numbers:
            self._kept.append(storage)
            self._numbers[storage._cdata] = len(self.graph.storages)
            self.graph.storages.append(Storage(int(storage.nbytes()), kind))
        return self._numbers[storage._cdata]


class NeedsData(Exception):  # noqa: N818
    """An operation asked for the value of a tensor."""
