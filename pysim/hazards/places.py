"""Where a wait or a trigger of programmatic dependent launch stands in the op lists of a kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import InputError
from pysim.program.marks import rewrite_program
from pysim.program.op_touches import tb_rows
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import OP, Op, Program

if TYPE_CHECKING:
    from pysim.program.job import Kernel

Ops = Sequence[Op]
# the index of the op before which something stands, by the id of an op list; None: nowhere
Cuts = Mapping[int, int | None]
# the numbers of loads behind such a place that are moved before it, by the id of an op list
Moved = Mapping[int, tuple[int, ...]]

LOADS = (OP["LOAD"], OP["BULK_LOAD"])
STORES = (OP["STORE"], OP["REDUCE"], OP["BULK_STORE"])
_KINDS = {"load": LOADS, "store": STORES}
_AT_ACCESS = re.compile(r"(before|after) (load|store) (\S+)")
WAITS = ("start", "latest", "ahead", "end", "none")
TRIGGERS = ("start", "wait", "loop end", "none")
EVERYWHERE = (*WAITS, "wait")  # places that each kernel has


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the code of a kernel, as users write it.

    ``word``: one of ``WAITS`` or ``TRIGGERS``, or ``before`` or ``after`` the first ``access`` (load, store)
    of the tensor ``tensor``. In a loop that is before or after the outermost loop.
    """

    word: str
    access: str = ""
    tensor: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.word, self.access, self.tensor) if part)


START, LATEST, AHEAD = Place("start"), Place("latest"), Place("ahead")


def parse_place(text: object, words: Sequence[str], what: str) -> Place:
    """Return the place that a text names; ``words``: those that are known; ``what``: for the InputError."""
    if isinstance(text, str):
        clean = " ".join(text.replace("_", " ").split()) if text.replace("_", " ") in words else text.strip()
        if clean in words:
            return Place(clean)
        if found := _AT_ACCESS.fullmatch(" ".join(clean.split())):
            return Place(*found.groups())
    known = ", ".join((*words, "before|after load|store TENSOR"))
    raise InputError(f"{what} = {text!r}: no such place: there are {known}")


@dataclass(frozen=True, slots=True, eq=False)
class _Itself:
    """A program as a key: of equal programs each has its own, as comparing all their ops takes long."""

    program: Program | RecordedProgram

    def __hash__(self) -> int:
        return id(self.program)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.program is other.program


def same_lists(program: Program | RecordedProgram) -> dict[int, int]:
    """Return, by the id of each op list of a program, that of the first equal one, which stands for it.

    Those of a program whose warps differ stand for themselves.
    """
    return {} if isinstance(program, RecordedProgram) else _same_lists(_Itself(program))


@lru_cache(maxsize=1024)
def _same_lists(of: _Itself) -> dict[int, int]:
    first: dict[Ops, int] = {}
    assert isinstance(of.program, Program)
    return {id(ops): first.setdefault(ops, id(ops)) for ops in of.program.variants}


def op_lists(kernel: Kernel) -> tuple[Ops, ...]:
    """Return each distinct op list of the TBs of a kernel."""
    return _op_lists(_Itself(kernel.program), tuple(_rows(kernel)))


def _rows(kernel: Kernel) -> list[int]:
    """Return the distinct rows (``tb_rows``) of the TBs of a kernel; of a large grid those of its corners."""
    program = kernel.program
    if isinstance(program, RecordedProgram):
        return [0] if program.tb_rows is None else np.unique(program.tb_rows).tolist()
    ends = np.array([(0, size - 1) for size in kernel.grid], np.int64)
    corners = np.stack(np.meshgrid(*ends), axis=-1).reshape(-1, 3)
    x, y, _ = kernel.grid
    made: list[int] = np.unique(tb_rows(kernel, corners @ np.array([1, x, x * y]))).tolist()
    return made


@lru_cache(maxsize=1024)
def _op_lists(of: _Itself, rows: tuple[int, ...]) -> tuple[Ops, ...]:
    program = of.program
    made: dict[int, Ops] = {}
    for row in rows:
        lists: Sequence[Ops]
        if isinstance(program, RecordedProgram):
            assert program.op_lists is not None
            lists = program.op_lists(row)
        else:
            first = same_lists(program)[id(program.variants[row])]
            lists = (next(ops for ops in program.variants if id(ops) == first),)
        for ops in lists:
            made.setdefault(id(ops), ops)
    return tuple(made.values())


def has_code(kernel: Kernel) -> bool:
    """Whether the op lists of a kernel are known and can be changed: not of traces, profiles and copies."""
    program = kernel.program
    if kernel.copy is not None:
        return False
    if isinstance(program, RecordedProgram):
        return program.op_lists is not None and program.rewrite is not None
    return bool(program.variants)


def out_of_loops(ops: Ops, at: int) -> int:
    """Return the op before which the outermost loop around op ``at`` begins, or ``at``."""
    # from the innermost loop outwards: a LOOP op comes after its body
    for end, op in enumerate(ops):
        if op.kind == OP["LOOP"] and op.target <= at <= end:
            at = op.target
    return at


def _behind_loops(ops: Ops, at: int) -> int:
    """Return the op behind the outermost loop around op ``at``, or the next one."""
    ends = [end for end, op in enumerate(ops) if op.kind == OP["LOOP"] and op.target <= at <= end]
    return max([at, *ends]) + 1


def end_of(ops: Ops) -> int:
    """Return the op behind all accesses and loops: the last EXIT."""
    return max(at for at, op in enumerate(ops) if op.kind == OP["EXIT"])


def _first_access(kernel: Kernel, ops: Ops, place: Place) -> int | None:
    for at, op in enumerate(ops):
        if op.kind in _KINDS[place.access]:
            args = [part.arg for part in (*op.patterns, *((op.box,) if op.box else ()))]
            if any(kernel.args[arg].name == place.tensor for arg in args):
                return at
    return None


def cuts_of(kernel: Kernel, place: Place, where: str) -> dict[int, int | None]:
    """Return where a place is in each op list; a list without the access that it names waits at its start.

    Raises InputError, which begins with ``where``, where no op list has what the place names.
    """
    made: dict[int, int | None] = {}
    found = place.word in ("start", "end", "none")
    for ops in op_lists(kernel):
        at: int | None = None
        if place.word == "start":
            at = 0
        elif place.word == "end":
            at = end_of(ops)
        elif place.word == "loop end":
            at = next((n for n, op in enumerate(ops) if op.mark == "main_loop_end"), None)
            found = found or at is not None
        elif place.word != "none":
            at = _first_access(kernel, ops, place)
            found = found or at is not None
            inside = out_of_loops if place.word == "before" else _behind_loops
            at = 0 if at is None else inside(ops, at)
        made[id(ops)] = at
    if not found:
        names = ", ".join(dict.fromkeys(tensor.name for tensor in kernel.args))
        what = (
            "its program does not say where its main loop ends"
            if place.word == "loop end"
            else f"its program has no {place.access} of {place.tensor}: its tensors are {names}"
        )
        raise InputError(f"{where}: {place}: {what}")
    return made


def triggers_of(kernel: Kernel, place: Place, waits: Cuts, where: str) -> dict[int, int | None]:
    """Return where a trigger is in each op list; ``waits``: where the waits are."""
    return dict(waits) if place.word == "wait" else cuts_of(kernel, place, where)


def described(kernel: Kernel, ops: Ops, at: int | None) -> str:
    """Return a place as users read it: ``start``, ``before load a`` and so on."""
    if at is None:
        return "none"
    kinds = {**dict.fromkeys(LOADS, "load"), **dict.fromkeys(STORES, "store")}
    before = [op for op in ops[:at] if op.kind in kinds]
    if not before and not any(op.kind in (OP["COMPUTE"], OP["DELAY"]) for op in ops[:at]):
        return "start"
    for op in ops[at:]:
        if op.kind in kinds:
            arg = op.box.arg if op.box is not None else op.patterns[0].arg
            return f"before {kinds[op.kind]} {kernel.args[arg].name}"
    return "end"


def loads_behind(ops: Ops, at: int) -> list[int]:
    """Return the loads that may be moved to a place before op ``at``: those ahead of any wait or loop.

    Blocks of instructions between them, which compute addresses, stay where they are.
    """
    targets = {op.target for op in ops if op.kind == OP["LOOP"]}
    stop = at
    while stop not in targets and ops[stop].kind in (OP["LOAD"], OP["MARK"], OP["COMPUTE"]):
        stop += 1
    return [number for number in range(at, stop) if ops[number].kind == OP["LOAD"]]


def with_pdl(
    kernel: Kernel,
    waits: Cuts,
    triggers: Cuts,
    trigger_first: bool,
    delay: int = 0,
    moved: Moved | None = None,
) -> Program | RecordedProgram:
    """Return the program with DEPEND and TRIGGER ops at these places.

    ``moved``: loads that go before the wait. ``trigger_first``: of those at one place the trigger goes before
    the wait. ``delay``: cycles that each warp waits right behind its trigger, or at its start where it has
    none.
    """

    def change(ops: tuple[Op, ...]) -> tuple[Op, ...]:
        wait, trigger = waits.get(id(ops)), triggers.get(id(ops))
        first = (moved or {}).get(id(ops), ())
        if wait is not None and first:
            rest = tuple(op for number, op in enumerate(ops[wait:], wait) if number not in first)
            ops = (*ops[:wait], *(ops[number] for number in first), *rest)
            trigger = wait + len(first) if trigger == wait else trigger
            wait += len(first)
        added: list[tuple[int, int, Op]] = []
        if wait is not None:
            added.append((wait, 1, Op(OP["DEPEND"])))
        if trigger is not None:
            added.append((trigger, 0 if trigger_first else 2, Op(OP["TRIGGER"])))
        if delay:
            added.append((trigger or 0, 3 if trigger is None or not trigger_first else 0, _delay(delay)))
        return inserted(ops, [(at, op) for at, _, op in sorted(added, key=lambda row: row[:2])])

    return rewrite_program(kernel.program, change, kernel.name)


def _delay(cycles: int) -> Op:
    return Op(OP["DELAY"], count=cycles)


def inserted(ops: tuple[Op, ...], added: Sequence[tuple[int, Op]]) -> tuple[Op, ...]:
    """Return the ops with others before them: (index, op) pairs by index.

    A loop goes back to its first op, not to what stands before the loop; a turn that ends goes to what stands
    behind it.
    """
    at = [index for index, _ in added]
    made: list[Op] = []
    for number, op in enumerate([*ops, None]):
        made += [new for index, new in added if index == number]
        if op is None:
            break
        if op.kind == OP["LOOP"]:
            op = replace(op, target=op.target + sum(index <= op.target for index in at))
        elif op.kind == OP["TURN"]:
            op = replace(op, target=op.target + sum(index < op.target for index in at))
        made.append(op)
    return tuple(made)
