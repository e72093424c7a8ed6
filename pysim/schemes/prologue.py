"""Prologues: the part of a kernel's program that depends on no other kernel, and where it ends.

A table scheme gates before dispatch, so its TBs cannot load weights while they wait. With a prologue they
are dispatched ahead, and wait inside (DEPEND) before the first op that touches memory which an earlier
launch writes, or that stores to memory which an earlier launch touches. Such an op in a loop is waited for
before the loop. A kernel without a prologue worth the wait is gated before dispatch, as ever.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.marks import rewrite_program
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

_WORTH = (OP["LOAD"], OP["DELAY"])
_STORES = (OP["STORE"], OP["REDUCE"])
_NONE = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class Needs:
    """Arguments whose loads, and whose stores, depend on an earlier launch."""

    loads: frozenset[int]
    stores: frozenset[int]

    def _depends(self, op: Op) -> bool:
        mine = self.loads if op.kind == OP["LOAD"] else self.stores if op.kind in _STORES else frozenset()
        return any(pattern.arg in mine for pattern in op.patterns)

    def split(self, ops: Ops) -> tuple[Ops, Ops, bool]:
        """Return the prologue, what lies behind it, and whether anything there depends on others.

        Loads that depend on nobody and stand beside the first one that does are issued before it.
        """
        at = next((i for i, op in enumerate(ops) if self._depends(op)), None)
        if at is None:
            end = next(i for i, op in enumerate(ops) if op.kind == OP["EXIT"])
            return ops[:end], ops[end:], False
        # from the inmost loop outwards: a loop's own op lies behind its body
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


def needs_of(job: Job) -> list[Needs | None]:
    """Return what each launch depends on; None: its program says nothing of its arguments."""
    made: list[Needs | None] = []
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
            made.append(Needs(loads, stores))
        for writes, spans in enumerate(_spans(kernel)):
            new = [s for s in spans.tolist() if (bool(writes), *s) not in seen]
            seen.update((bool(writes), *s) for s in new)
            if new:
                rows = np.array(new, np.int64)
                touched = union(np.concatenate([touched, rows]))
                written = union(np.concatenate([written, rows])) if writes else written
    return made


def _gated(ops: Ops, needs: Needs) -> Ops:
    """Return the ops with a wait at the end of the prologue, before the end at the latest."""
    front, behind, _ = needs.split(ops)
    # no loop reaches across the wait
    later = (replace(op, target=op.target + 1) if op.kind == OP["LOOP"] else op for op in behind)
    return (*front, Op(OP["DEPEND"]), *later)


def _tail(ops: Ops, needs: Needs) -> Ops:
    """Return the ops behind the prologue."""
    front, behind, _ = needs.split(ops)
    return tuple(replace(op, target=op.target - len(front)) if op.kind == OP["LOOP"] else op for op in behind)


def _has(program: Program | RecordedProgram, needs: Needs) -> bool:
    """Whether a prologue is worth a wait inside: it loads something, or takes its time."""
    found: list[bool] = []

    def look(ops: Ops) -> Ops:
        front, _, waits = needs.split(ops)
        found.append(waits and any(op.kind in _WORTH for op in front))
        return ops

    if isinstance(program, RecordedProgram) and program.rewrite is None:
        return False
    rewrite_program(program, look, program.name)
    return any(found)


def _split(job: Job, tails: bool) -> list[Kernel]:
    """Return the kernels with a wait in their programs, or with what lies behind it; others as they are."""
    known: dict[tuple[int, Needs], Program | RecordedProgram] = {}
    made: list[Kernel] = []
    for kernel, needs in zip(job.kernels, needs_of(job), strict=True):
        if needs is None or kernel.copy is not None:
            made.append(kernel)
            continue
        key = (id(kernel.program), needs)
        if key not in known:
            program = kernel.program
            if _has(program, needs):
                program = rewrite_program(
                    program, partial(_tail if tails else _gated, needs=needs), kernel.name
                )
            known[key] = program
        program = known[key]
        made.append(kernel if program is kernel.program else replace(kernel, program=program))
    return made


def tail_job(job: Job) -> Job:
    """Return the job of what lies behind the prologues: what a TB must do after it was let on."""
    return replace(job, kernels=_split(job, tails=True))


def prologue_plan(job: Job) -> LaunchPlan:
    """Return how a table scheme launches a job with prologues; L1 must hold nothing that the job rewrites."""
    kernels: Sequence[Kernel] = _split(job, tails=False)
    count = len(kernels)
    gated = [int(new is not old) for new, old in zip(kernels, job.kernels, strict=True)]
    none = np.zeros(0, np.uint32)
    semaphores = [(0, 0, 0, 0)] * count
    made = LaunchPlan(
        replace(job, kernels=kernels), [0] * count, semaphores, none, [0] * count, [], list(range(count))
    )
    made.order, made.gated, made.source = {"prologue": 1}, gated, job
    return made
