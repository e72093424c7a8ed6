"""PyTorch's execution trace beside a profile: which operator reads and writes which tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pysim.errors import InputError
from pysim.profile.events import Ran
from pysim.profile.losses import Losses

from .stream import EventStream

_TENSOR = 6  # id, id of its storage, offset, elements, bytes an element, device
UNKNOWN = "kernels of no operator in the execution trace: they wait for all"
_KNOWN = "aten::"  # operators whose names say what they write


@dataclass(slots=True)
class _Operator:
    """Ids of the storages that an operator reads and writes."""

    reads: set[int] = field(default_factory=set)
    writes: set[int] = field(default_factory=set)


def _storages(value: object) -> Iterator[int]:
    """Yield the storages of the tensors in a value of an operator's inputs or outputs."""
    if not isinstance(value, list):
        return
    if len(value) == _TENSOR and isinstance(value[-1], str) and all(type(v) is int for v in value[:-1]):
        if value[1] > 0:
            yield value[1]
        return
    for part in value:
        yield from _storages(part)


def _values(node: Mapping[str, object], key: str) -> list[object]:
    """Return inputs or outputs, of either form of the schema."""
    found = node.get(key)
    if isinstance(found, dict):
        found = found.get("values")
    return found if isinstance(found, list) else []


def _id(node: Mapping[str, object]) -> int:
    """Return the record function id of a node, 0: none."""
    attributes = node.get("attrs")
    rows = attributes if isinstance(attributes, list) else []
    found = next(
        (a.get("value") for a in rows if isinstance(a, dict) and a.get("name") == "rf_id"), node.get("rf_id")
    )
    return found if type(found) is int else 0


def _operator(node: Mapping[str, object]) -> _Operator:
    """Return what a node reads and writes. In-place operators write; an unknown one may write all it gets."""
    name, inputs = str(node.get("name", "")), _values(node, "inputs")
    made = _Operator(set(_storages(inputs)), set(_storages(_values(node, "outputs"))))
    base = name.partition(".")[0]
    if not name.startswith(_KNOWN) or base.startswith(("aten::_fused_", "aten::_foreach_")):
        made.writes |= made.reads
    elif base.endswith("_"):
        made.writes |= set(_storages(inputs[:1]))
    return made


def _read(path: Path, losses: Losses) -> dict[int, _Operator]:
    made: dict[int, _Operator] = {}
    for node in EventStream(path, losses, "nodes"):
        number = _id(node)
        if number:
            made[number] = _operator(node)
    if not made:
        raise InputError(f"{path}: no operator with a record function id: no execution trace of PyTorch")
    return made


def tensor_edges(
    path: Path, order: Sequence[Ran], operators: Mapping[int, int], losses: Losses
) -> list[set[int]]:
    """Return, of each kernel in launch order, those that it waits for because of its operator's tensors.

    RAW, WAR and WAW between whole storages; kernels of one operator run in order. A kernel whose operator the
    trace does not have waits for all before it, and all after wait for it. That memory of freed tensors is
    used again is not in the trace. Raises InputError for what is no execution trace, or is of another run.
    """
    known = _read(path, losses)
    writer: dict[int, int] = {}
    readers: dict[int, set[int]] = {}
    made: list[set[int]] = []
    barrier = -1
    previous: tuple[int, int] = (0, -1)  # operator, its last kernel
    met = 0
    for i, ran in enumerate(order):
        number = operators.get(ran.operator, 0)
        operator = known.get(number)
        before = {barrier} if barrier >= 0 else set()
        if operator is None:
            before = set(range(max(barrier, 0), i))
            barrier = i
            losses.add(UNKNOWN, ran.name[:60])
        else:
            met += 1
            if previous[0] == number:
                before.add(previous[1])
            before |= {writer[s] for s in operator.reads | operator.writes if s in writer}
            for storage in operator.writes:
                before |= readers.pop(storage, set())
                writer[storage] = i
            for storage in operator.reads - operator.writes:
                readers.setdefault(storage, set()).add(i)
        previous = number, i
        made.append({k for k in before if k < i})
    if not met:
        raise InputError(
            f"{path}: none of its operators launched a kernel of the profile: it is of another run"
        )
    return made
