"""Marks of warp programs: where a template says what its loads read and what its stores write.

A template states this once (``Code.mark_input``, ``Code.mark_output``). A scheme whose TBs wait inside the
program replaces the marks by polls and posts of semaphores; all other schemes drop them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError

from .recorded_program import RecordedProgram
from .warp_program import OP, Code, Op, Program, Sem, TensorTile

if TYPE_CHECKING:
    from .job import Kernel

STORES = (OP["STORE"], OP["REDUCE"])
JUMPS = (OP["LOOP"], OP["TURN"])  # their target is an op
Ops = tuple[Op, ...]


def replace_ops(ops: Ops, change: Callable[[Op], Sequence[Op] | None], front: Sequence[Op] = ()) -> Ops:
    """Return ``ops`` with each op replaced by ``change(op)`` (None: kept), after the ops of ``front``.

    Loops and turns still jump to the op to which they jumped.
    """
    pieces = [(op,) if (made := change(op)) is None else tuple(made) for op in ops]
    starts = np.cumsum([len(front), *(len(p) for p in pieces)]).tolist()
    flat = [*front, *(op for piece in pieces for op in piece)]
    return tuple(replace(op, target=starts[op.target]) if op.kind in JUMPS else op for op in flat)


def marks_of(kernel: Kernel) -> list[Op]:
    """Return the marks of a kernel's program, as TBs inside the grid (variant 0, or row 0) have them."""
    found: list[Op] = []

    def look(ops: Ops) -> Ops:
        if not found:
            found.extend(op for op in ops if op.kind == OP["MARK"])
        return ops

    program = kernel.program
    if isinstance(program, Program):
        look(program.variants[0])
    elif program.rewrite is not None:
        program.rewrite(look)
    return found


def loaded_args(kernel: Kernel) -> set[int]:
    """Return the arguments that a kernel's program loads from."""
    found: set[int] = set()

    def look(ops: Ops) -> Ops:
        found.update(p.arg for op in ops if op.kind == OP["LOAD"] for p in op.patterns)
        return ops

    rewrite_program(kernel.program, look, kernel.name)
    return found


def wait_positions(kernel: Kernel) -> tuple[set[int], bool]:
    """Return which arguments a TB awaits before its first load, and whether all its waits precede its stores.

    The first is a set of argument numbers. The second is False if a loop leads from a store back to a wait.
    """
    first, later, orderly = set[int](), set[int](), True

    def look(ops: Ops) -> Ops:
        nonlocal orderly
        loads = [at for at, op in enumerate(ops) if op.kind == OP["LOAD"]]
        needs = [(at, op.tile) for at, op in enumerate(ops) if op.mark == "input" and op.tile is not None]
        for at, part in needs:
            ahead = at < min(loads, default=len(ops)) and not part.row.step and not part.col.step
            (first if ahead else later).add(part.arg)
        last = max((at for at, _ in needs), default=-1)
        store = min((at for at, op in enumerate(ops) if op.kind in STORES), default=len(ops))
        around = any(op.kind == OP["LOOP"] and at > store and op.target <= last for at, op in enumerate(ops))
        orderly = orderly and last < store and not around
        return ops

    rewrite_program(kernel.program, look, kernel.name)
    return first - later, orderly


def posts_after_accesses(kernel: Kernel) -> bool:
    """Whether all loads and stores of each TB precede its first output mark."""
    last = True

    def look(ops: Ops) -> Ops:
        nonlocal last
        made = [at for at, op in enumerate(ops) if op.mark == "output"]
        if made:
            touched = max((at for at, op in enumerate(ops) if op.kind in (OP["LOAD"], *STORES)), default=-1)
            back = [op.target for op in ops[made[0] :] if op.kind == OP["LOOP"]]
            last = last and touched < made[0] < min(back, default=len(ops))
        return ops

    rewrite_program(kernel.program, look, kernel.name)
    return last


def waits_along_z(kernel: Kernel) -> bool:
    """Whether TBs wait for the TB before them in z (serial split-K)."""
    return kernel.grid[2] > 1 and any(op.mark == "tb_wait" for op in marks_of(kernel))


def has_tb_waits(kernel: Kernel) -> bool:
    """Whether TBs of a kernel wait for other TBs of it."""
    return kernel.tb_semaphores is not None or waits_along_z(kernel)


def listed_output_tiles(kernel: Kernel, made: TensorTile) -> list[TensorTile] | None:
    """Return the distinct tiles of argument ``made.arg`` that the rows of a per-warp program write.

    None if the program is an ordinary one, or if a tile's position depends on the TB, so that ``made`` alone
    gives the position of each TB's tile.
    """
    program, found = kernel.program, dict[TensorTile, None]()
    if not isinstance(program, RecordedProgram) or program.rewrite is None:
        return None

    def look(ops: Ops) -> Ops:
        for op in ops:
            if op.mark == "output" and op.tile is not None and op.tile.arg == made.arg:
                found[op.tile] = None
        return ops

    program.rewrite(look)
    moves = any(p.bx or p.by or p.bz for part in found for p in (part.row, part.col))
    return None if moves else list(found)


def marked_tiles(kernel: Kernel, mark: str) -> list[TensorTile]:
    """Return the distinct tiles of the marks of one kind, ``input`` or ``output``."""
    return list(dict.fromkeys(op.tile for op in marks_of(kernel) if op.mark == mark and op.tile is not None))


def publish_ops(ops: Ops, sem: Sem, level: int) -> list[Op]:
    """Return the ops that publish a TB's stores: waits for acknowledgement, a barrier, and a fenced post."""
    slots = sorted({op.slot for op in ops if op.kind in STORES})
    code = Code()
    for slot in slots:
        code.wait(slot)
    code.barrier()
    code.post(sem, level=level)
    return code.ops


def rewrite_program(
    program: Program | RecordedProgram, change: Callable[[Ops], Ops], name: str
) -> Program | RecordedProgram:
    """Return the program with ``change`` applied to each of its op lists; ``name``: the kernel's, for errors.

    Raises WorkloadError for a program whose code is given as tables (a trace).
    """
    if isinstance(program, Program):
        known: dict[Ops, Ops] = {}
        for ops in program.variants:
            if ops not in known:
                known[ops] = change(ops)
        return replace(program, variants=tuple(known[ops] for ops in program.variants))
    if program.rewrite is None:
        raise WorkloadError(f"kernel {name}: its program is a recorded one, which cannot be changed")
    return program.rewrite(change)
