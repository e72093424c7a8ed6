"""Scheme ``fused``: kernels of a job as stages of one persistent kernel, with barriers or semaphores between.

The persistent kernel has as many TBs as are resident at once. In each stage TB b runs the tiles b, b + TBs,
b + 2 TBs and so on. Between stages is a barrier of all TBs, or tiles wait for tiles by semaphore
(``in_kernel_sync``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pysim.dependence.dependences import dependences
from pysim.dependence.producer_tiles import producer_edges
from pysim.errors import WorkloadError
from pysim.program.job import Job, Kernel, Tensor
from pysim.program.marks import Ops, has_tb_waits, publish_ops, replace_ops
from pysim.program.occupancy import occupancy
from pysim.program.regions import overlaps
from pysim.program.semaphores import KernelEdges, SemaphoreTable, first_semaphore, output_semaphores, poll_ops
from pysim.program.warp_program import OP, Code, Op, Program, Sem, Stage
from pysim.program.written_memory import rewritten_by_job

from .barriers import StreamOrder
from .launch_plan import LaunchPlan
from .options import SchemeOption

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.semaphores import TileSemaphores


def fused_plan(job: Job, deps: Dependences, tiles: bool, values: Mapping[str, int]) -> LaunchPlan:
    """Return one launch for each sequence of kernels that marks connect.

    ``tiles``: stages wait by tile semaphores, not at grid barriers. Raises WorkloadError for several streams,
    kernels with intra-kernel waits, or programs without marks.
    """
    if len({k.stream for k in job.kernels}) > 1:
        raise WorkloadError("scheme fused takes jobs of one stream")
    for kernel in job.kernels:
        if has_tb_waits(kernel):
            raise WorkloadError(f"kernel {kernel.name}: its TBs wait for each other: they do not fuse")
    edges = producer_edges(job, deps, "tile" if tiles else "")
    if all(edges.after_all):
        raise WorkloadError(edges.reason or "no two kernels whose programs say what they read and make")
    begins = [i for i, joins in enumerate(edges.after_all) if joins]
    sequences = list(pairwise([*begins, len(job.kernels)]))
    stages: list[Kernel] = []
    for begin, end in sequences:
        stages += _uniform_stages(job.kernels[begin:end]) if end - begin > 1 else job.kernels[begin:end]
    staged = replace(job, kernels=stages)
    if tiles and any(a is not b for a, b in zip(stages, job.kernels, strict=True)):
        # edges between the stages: their TBs and tiles may differ from those of the kernels
        edges, joins = producer_edges(staged, dependences(staged), "tile"), edges.after_all
        if edges.after_all != joins:
            raise WorkloadError(edges.reason or "kernels of which some get other TBs wait for no tiles")
    made = LaunchPlan(job, [], [], np.zeros(0, np.uint32), [], [], unfused=job)
    table = SemaphoreTable()
    launched: list[Kernel] = []
    for begin, end in sequences:
        kernel, base = job.kernels[begin], 0
        if end - begin > 1:
            kernel, needs = _fuse(staged, edges, range(begin, end), tiles, values)
            base = table.add(needs.concatenated())
        made.launch_of_kernel += [len(launched)] * (end - begin)
        made.cooperative.append(int(end - begin > 1))
        launched.append(kernel)
        made.semaphore_bases.append((base, 0, 0, 0))
    count = len(launched)
    # the launches are in one stream: preds order them, events are not needed
    made.job, made.posts_needed = replace(job, kernels=launched, events=()), table.array()
    made.programmatic, made.priority = [0] * count, [0] * count
    made.preds = [(k - 1,) if k else () for k in range(count)]
    return made


def _fuse(
    job: Job, edges: KernelEdges, which: range, tiles: bool, values: Mapping[str, int]
) -> tuple[Kernel, SemaphoreTable]:
    """Return one persistent kernel of stages, and its semaphores, numbered from 0."""
    needs = SemaphoreTable()
    stages = job.kernels[which.start : which.stop]
    inner = KernelEdges(
        edges.after_all, [edges.producers[i] if i in which else {} for i in range(len(edges.producers))]
    )
    output = output_semaphores(job, inner, "tile", needs) if tiles else {}
    programs = [k.program for k in stages]
    registers, smem = max(p.registers for p in programs), max(p.smem for p in programs)
    shell = Program("persistent", ((),), programs[0].warps, registers, smem, 1)
    origin = min((t for k in stages for t in k.args), key=lambda t: t.address)
    name = "+".join(dict.fromkeys(k.name for k in stages))
    kernel = Kernel(name, shell, (1, 1, 1), (origin,), ())
    # as many TBs as are resident at once, at most those of the largest stage that uses shared memory
    widest = max((k.tbs for k in stages if k.program.smem), default=max(k.tbs for k in stages))
    tbs = min(occupancy(kernel, values) * values["gpu.sms"], widest)
    written = rewritten_by_job(job)
    ops: list[Op] = []
    for at, stage in zip(which, stages, strict=True):
        change = _MarkRewriter(job, edges, at, output)
        _add_stage(ops, stage, origin, written, change)
        if not tiles and at + 1 < which.stop:
            sem = Sem(first=needs.add(np.array([tbs], np.int64)))
            ops += publish_ops(tuple(ops), sem, 2)
            code = Code()
            code.poll(sem, level=2)
            ops += code.ops
    code = Code()
    code.exit()
    program = replace(shell, variants=((*ops, *code.ops),))
    return replace(kernel, program=program, grid=(tbs, 1, 1)), needs


def _uniform_stages(stages: Sequence[Kernel]) -> list[Kernel]:
    """Return the kernels as stages with equal TB sizes: that of the kernel with the most shared memory."""
    warps = max(stages, key=lambda k: k.program.smem).program.warps
    made: list[Kernel] = []
    for stage in stages:
        kernel = stage if stage.as_stage is None else stage.as_stage()
        if kernel.program.warps != warps and kernel.with_warps is not None:
            kernel = kernel.with_warps(warps)
        if not isinstance(kernel.program, Program):
            raise WorkloadError(f"kernel {stage.name}: its TBs run different code, and so do not fuse")
        if kernel.program.warps != warps:
            raise WorkloadError(
                f"kernel {stage.name}: {kernel.program.warps} warps a TB, others {warps}: they do not fuse"
            )
        made.append(kernel)
    return made


class _MarkRewriter:
    """Replaces the marks of one stage by polls and posts."""

    def __init__(
        self, job: Job, edges: KernelEdges, index: int, output: Mapping[int, tuple[int, TileSemaphores]]
    ) -> None:
        self.kernel, self.mine = job.kernels[index], output.get(index)
        self.reads = [
            (arg, output[n][1], first_semaphore(output[n][1], edge.row_offset, self.kernel.name))
            for n, edge in edges.producers[index].items()
            if n in output
            for arg in dict.fromkeys(need.arg for need in edge.inputs)
        ]
        self.ops: Ops = ()

    def __call__(self, op: Op) -> Sequence[Op] | None:
        """Return the ops that replace an op; None: it stays."""
        if op.kind != OP["MARK"]:
            return None
        if op.mark == "input" and op.tile is not None:
            return [
                _offset_poll(poll, first)
                for arg, found, first in self.reads
                if arg == op.tile.arg
                for poll in poll_ops(op, found, 0, self.kernel.name)
            ]
        if op.mark == "output" and op.tile is not None and self.mine and op.tile.arg == self.mine[0]:
            found = self.mine[1]
            sem = Sem(
                found.shifted(op.tile.row), op.tile.col, found.rows, found.cols, found.stride, found.first
            )
            return publish_ops(self.ops, sem, op.level)
        return ()


def _offset_poll(op: Op, first: int) -> Op:
    assert op.sem is not None
    return replace(op, sem=replace(op.sem, first=op.sem.first + first))


def _add_stage(
    ops: list[Op], kernel: Kernel, origin: Tensor, written: NDArray[np.int64], change: _MarkRewriter
) -> None:
    """Append the code of a stage: its TB variants between two TILE ops."""
    assert isinstance(kernel.program, Program)
    begin = len(ops)
    fresh = {i for i, t in enumerate(kernel.args) if overlaps(written, t.address, t.address + t.nbytes)}
    bodies: dict[Ops, int] = {}
    flat: list[Op] = []
    ends: list[int] = []
    for variant in kernel.program.variants:
        if variant in bodies:
            continue
        start = begin + 1 + len(flat)
        bodies[variant] = start
        change.ops = variant
        for op in replace_ops(variant, change):
            if op.kind == OP["EXIT"]:
                ends.append(len(flat))
            flat.append(_relocated(op, kernel, origin, fresh, start))
    entries = tuple(bodies[v] for v in kernel.program.variants)
    end = begin + 1 + len(flat)
    stage = Stage(kernel.grid, begin + 1, end, entries * (8 // len(entries)))
    for at in ends:
        flat[at] = Op(OP["TILE"], level=1, stage=stage, target=end)
    ops += [Op(OP["TILE"], stage=stage, target=end), *flat]


def _relocated(op: Op, kernel: Kernel, origin: Tensor, fresh: set[int], start: int) -> Op:
    """Return an op of a stage relocated to op ``start`` of the persistent kernel and its single argument.

    Loads of arguments in ``fresh``, which the job writes, bypass L1: it may hold stale lines.
    """
    if op.kind == OP["LOOP"]:
        return replace(op, target=op.target + start)
    if not op.patterns:
        return op
    moved = tuple(
        replace(p, arg=0, base=p.base + kernel.args[p.arg].address - origin.address) for p in op.patterns
    )
    past = op.bypass_l1 or (op.kind == OP["LOAD"] and any(p.arg in fresh for p in op.patterns))
    return replace(op, patterns=moved, bypass_l1=past)


class Fused(StreamOrder):
    """Kernels are stages of persistent kernels, each launched once."""

    waits_inside: ClassVar[bool] = True
    fuses: ClassVar[bool] = True
    host_launches: ClassVar[bool] = False

    def launch_plan(
        self, options: Sequence[str], job: Job, deps: Dependences, config: Config
    ) -> LaunchPlan | None:
        """Return one launch for each sequence of kernels that marks connect."""
        return fused_plan(job, deps, config.word("scheme.sync.fused") == "tile", config.encoded())


FUSED = Fused(
    "fused",
    "Kernels are stages of one persistent kernel, with a grid barrier or semaphores between them.",
    "gpu.cp.stream_gap",
    options={
        word: SchemeOption(f"{what} between stages", (("scheme.sync.fused", word),))
        for word, what in (("grid", "a grid barrier"), ("tile", "semaphores of tiles"))
    },
)
