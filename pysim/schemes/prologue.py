"""Prologues: the part of a kernel's program that depends on no other kernel, and where it ends.

A table scheme holds a TB until its edges are satisfied, so the TB cannot load weights while it waits. With a
prologue a TB is dispatched earlier, and waits in its program (DEPEND) before the first op that loads memory
which an earlier launch writes, or stores to memory which an earlier launch touches. If that op is in a loop,
the TB waits before the loop. A kernel whose prologue does no useful work is held before dispatch as usual,
and so is one with clusters of TBs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.marks import JUMPS, rewrite_program
from pysim.program.recorded_program import RecordedProgram
from pysim.program.regions import overlaps, union
from pysim.program.warp_program import OP, Op, Program

from .launch_plan import LaunchPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Job, Kernel

    Ints = NDArray[np.int64]
    Ops = tuple[Op, ...]

_WORTH_KINDS = (OP["LOAD"], OP["DELAY"])
_LOADS = (OP["LOAD"], OP["BULK_LOAD"])
_STORES = (OP["STORE"], OP["REDUCE"], OP["BULK_STORE"])
_NONE = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class DependentArgs:
    """Arguments whose loads, and whose stores, depend on an earlier launch."""

    loads: frozenset[int]
    stores: frozenset[int]

    def _depends(self, op: Op) -> bool:
        mine = self.loads if op.kind in _LOADS else self.stores if op.kind in _STORES else frozenset()
        return any(part.arg in mine for part in (*op.patterns, *((op.box,) if op.box else ())))

    def split(self, ops: Ops) -> tuple[Ops, Ops, bool]:
        """Return (prologue, the ops after it, whether one of these depends on an earlier launch).

        Independent loads right after the first dependent load are moved before it.
        """
        at = next((i for i, op in enumerate(ops) if self._depends(op)), None)
        if at is None:
            end = next(i for i, op in enumerate(ops) if op.kind == OP["EXIT"])
            return ops[:end], ops[end:], False
        # from the innermost loop outwards: a LOOP op comes after its body
        for end, op in enumerate(ops):
            if op.kind == OP["LOOP"] and op.target <= at <= end:
                at = op.target
        targets = {op.target for op in ops if op.kind == OP["LOOP"]}
        stop = at
        while ops[stop].kind in (OP["LOAD"], OP["MARK"]) and stop not in targets:
            stop += 1
        own = tuple(op for op in ops[at:stop] if op.kind == OP["LOAD"] and not self._depends(op))
        others = tuple(op for op in ops[at:stop] if op.kind != OP["LOAD"] or self._depends(op))
        return ops[:at] + own, others + ops[stop:], True


def _spans(kernel: Kernel) -> tuple[Ints, Ints]:
    """Return the byte ranges that a launch reads, and those that it writes, by whole tensors."""
    if kernel.footprint is not None:
        return kernel.footprint.read_ranges(kernel.tbs, kernel.name), kernel.footprint.written_ranges(
            kernel.tbs, kernel.name
        )
    made: list[Ints] = []
    for writes in (False, True):
        tensors = [a.tensor for a in kernel.accesses if (a.mode != "read") == writes]
        made.append(np.array([(t.address, t.address + t.nbytes) for t in tensors], np.int64).reshape(-1, 2))
    return made[0], made[1]


def dependent_args(job: Job) -> list[DependentArgs | None]:
    """Return the dependent arguments of each launch; None: its accesses are not all in its arguments."""
    made: list[DependentArgs | None] = []
    seen: set[tuple[bool, int, int]] = set()
    touched, written = _NONE, _NONE
    for kernel in job.kernels:
        held = all(
            any(a.address <= t.address and t.address + t.nbytes <= a.address + a.nbytes for a in kernel.args)
            for t in (access.tensor for access in kernel.accesses)
        )
        if kernel.footprint is not None or not held:
            made.append(None)
        else:
            loads, stores = (
                frozenset(
                    i for i, a in enumerate(kernel.args) if overlaps(spans, a.address, a.address + a.nbytes)
                )
                for spans in (written, touched)
            )
            made.append(DependentArgs(loads, stores))
        for writes, spans in enumerate(_spans(kernel)):
            new = [s for s in spans.tolist() if (bool(writes), *s) not in seen]
            seen.update((bool(writes), *s) for s in new)
            if new:
                rows = np.array(new, np.int64)
                touched = union(np.concatenate([touched, rows]))
                written = union(np.concatenate([written, rows])) if writes else written
    return made


def _with_wait(ops: Ops, needs: DependentArgs) -> Ops:
    """Return the ops with a DEPEND at the end of the prologue."""
    prologue, rest, _ = needs.split(ops)
    # no loop spans the wait, so all later targets shift by one
    later = (replace(op, target=op.target + 1) if op.kind in JUMPS else op for op in rest)
    return (*prologue, Op(OP["DEPEND"]), *later)


def _without_prologue(ops: Ops, needs: DependentArgs) -> Ops:
    """Return the ops after the prologue."""
    prologue, rest, _ = needs.split(ops)
    return tuple(replace(op, target=op.target - len(prologue)) if op.kind in JUMPS else op for op in rest)


def _worth_a_wait(program: Program | RecordedProgram, needs: DependentArgs) -> bool:
    """Whether the prologue does useful work: it has a LOAD or a DELAY."""
    found: list[bool] = []

    def look(ops: Ops) -> Ops:
        prologue, _, waits = needs.split(ops)
        found.append(waits and any(op.kind in _WORTH_KINDS for op in prologue))
        return ops

    if isinstance(program, RecordedProgram) and program.rewrite is None:
        return False
    rewrite_program(program, look, program.name)
    return any(found)


def _split(job: Job, tails: bool) -> list[Kernel]:
    """Return the kernels with a DEPEND in their programs, or (``tails``) without their prologues.

    Kernels without a useful prologue stay as they are.
    """
    known: dict[tuple[int, DependentArgs], Program | RecordedProgram] = {}
    made: list[Kernel] = []
    for kernel, needs in zip(job.kernels, dependent_args(job), strict=True):
        clustered = kernel.tiles is not None and kernel.tiles.cluster != (1, 1)
        if needs is None or kernel.copy is not None or clustered:
            made.append(kernel)
            continue
        key = (id(kernel.program), needs)
        if key not in known:
            program = kernel.program
            if _worth_a_wait(program, needs):
                program = rewrite_program(
                    program, partial(_without_prologue if tails else _with_wait, needs=needs), kernel.name
                )
            known[key] = program
        program = known[key]
        made.append(kernel if program is kernel.program else replace(kernel, program=program))
    return made


def job_without_prologues(job: Job) -> Job:
    """Return the job without the prologues: what a TB must still do when its edges are satisfied."""
    return replace(job, kernels=_split(job, tails=True))


def prologue_plan(job: Job) -> LaunchPlan:
    """Return the launches of a table scheme with prologues.

    It needs ``scheme.coherence`` = bypass: L1 must not hold lines that the job rewrites.
    """
    kernels: Sequence[Kernel] = _split(job, tails=False)
    count = len(kernels)
    gated = [int(new is not old) for new, old in zip(kernels, job.kernels, strict=True)]
    none = np.zeros(0, np.uint32)
    semaphores = [(0, 0, 0, 0)] * count
    made = LaunchPlan(
        replace(job, kernels=kernels), [0] * count, semaphores, none, [0] * count, [], list(range(count))
    )
    made.order, made.has_prologue, made.source = {"prologue": 1}, gated, job
    return made
