"""Checks what a job defines, before anything runs: each error names kernel, op and field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.isa import OPS
from pysim.params import PIPES

from .job import MODES, Access, Tensor
from .recorded_program import RecordedProgram
from .warp_program import LEVELS, OP, SLOTS, Op, Pattern, Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .job import Job, Kernel

    Ints = NDArray[np.int64]

MAX_ARGS = 8
MAX_COUNT = (1 << 31) - 1  # of instructions, bytes and iterations of one op
MAX_DISTANCE = 1 << 48  # of a pattern, bytes
_TERMS = ("base", "bx", "by", "bz", "warp", "step", "step2", "s0", "s1")
WIDTHS = (1, 2, 4, 8, 16)
_MEMORY = (OP["LOAD"], OP["STORE"], OP["REDUCE"])
_COUNTS = ("smem", "issue", "conflicts", "chain", "smem_wait", "count_plus", "count", "stages")


def check_job(job: Job) -> None:
    """Raise WorkloadError for the first kernel that no GPU could launch as it is defined."""
    kernels: set[int] = set()
    programs: set[int] = set()
    for number, kernel in enumerate(job.kernels):
        if id(kernel) in kernels:
            continue
        kernels.add(id(kernel))
        where = f"job {job.name}: kernel {number} ({kernel.name})"
        check_kernel(where, kernel)
        if id(kernel.program) not in programs:
            programs.add(id(kernel.program))
            check_program(where, kernel)


def check_kernel(where: str, kernel: Kernel) -> None:
    """Raise WorkloadError for arguments and accesses that are none."""
    for number, tensor in enumerate(kernel.args):
        if not isinstance(tensor, Tensor):
            raise WorkloadError(f"{where}: args[{number}] is {type(tensor).__name__}: must be a Tensor")
    if len(kernel.args) != kernel.program.args:
        raise WorkloadError(f"{where}: {len(kernel.args)} args, its program takes {kernel.program.args}")
    for label, given in (("accesses", kernel.accesses), ("hints", kernel.hints or ())):
        for number, access in enumerate(given):
            here = f"{where}: {label}[{number}]"
            if not isinstance(access, Access):
                raise WorkloadError(f"{here} is {type(access).__name__}: must be an Access")
            if access.mode not in MODES:
                raise WorkloadError(f"{here}: mode = {access.mode!r}: must be one of {', '.join(MODES)}")
    for name in ("stream", "parameter_lines"):
        _check_range(where, name, getattr(kernel, name), 0, MAX_COUNT)
    _check_tb_waits(where, kernel)


def _check_tb_waits(where: str, kernel: Kernel) -> None:
    """Raise WorkloadError where TBs wait for TBs of the kernel that do not start before them."""
    if kernel.tb_semaphores is not None:
        posts = np.asarray(kernel.tb_semaphores)
        if posts.ndim != 1 or posts.dtype.kind not in "iu" or (len(posts) and not _within(posts, 0)):
            raise WorkloadError(
                f"{where}: tb_semaphores is {posts.dtype} {posts.shape}: must be integers, posts of each"
            )
    if kernel.tb_edges is None:
        return
    edges = np.asarray(kernel.tb_edges)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise WorkloadError(
            f"{where}: tb_edges is {edges.dtype} {edges.shape}: must be int64 (n, 2): waiting TB, awaited TB"
        )
    wrong = (edges[:, 1] < 0) | (edges[:, 1] >= edges[:, 0]) | (edges[:, 0] >= kernel.tbs)
    if wrong.any():
        waiting, awaited = edges[np.argmax(wrong)].tolist()
        raise WorkloadError(
            f"{where}: tb_edges: TB {waiting} waits for TB {awaited}: must be a lower TB, of 0 to"
            f" {kernel.tbs - 1}"
        )


def _within(values: NDArray[np.integer], least: int) -> bool:
    return bool(values.min() >= least and values.max() <= MAX_COUNT)


def check_program(where: str, kernel: Kernel) -> None:
    """Raise WorkloadError for a program with a size or an op that cannot be."""
    program = kernel.program
    if kernel.copy is not None:
        return
    for name in ("warps", "registers", "smem", "args"):
        value, least = getattr(program, name), int(name in ("warps", "registers"))
        if not isinstance(value, int | np.integer) or not least <= value <= MAX_COUNT:
            raise WorkloadError(
                f"{where}: program {program.name}: {name} = {value!r}: must be an integer from {least} on"
            )
    if program.args > MAX_ARGS:
        raise WorkloadError(f"{where}: program {program.name}: args = {program.args}: at most {MAX_ARGS}")
    if isinstance(program, RecordedProgram):
        return
    if len(program.variants) not in (1, 8):
        raise WorkloadError(f"{where}: program {program.name}: {len(program.variants)} variants: 1 or 8")
    seen: set[int] = set()
    for number, ops in enumerate(program.variants):
        if id(ops) not in seen:
            seen.add(id(ops))
            check_ops(f"{where}: program {program.name}, variant {number}", ops, program)
            _check_flags(f"{where}: program {program.name}, variant {number}", ops, kernel)


def _check_flags(where: str, ops: Sequence[Op], kernel: Kernel) -> None:
    """Raise WorkloadError for a flag that is no semaphore of the kernel (``Code.mark_tb_wait``)."""
    count = 0 if kernel.tb_semaphores is None else len(kernel.tb_semaphores)
    for number, op in enumerate(ops):
        if op.mark in ("tb_wait", "tb_signal") and op.sem is not None and not 0 <= op.sem.first < count:
            raise WorkloadError(
                f"{where}, op {number}: flag {op.sem.first}: the kernel has {count} of tb_semaphores"
            )


def check_ops(where: str, ops: Sequence[Op], program: Program) -> None:
    """Raise WorkloadError for the first op with a field out of range, or where no op ends the warp."""
    if not ops or ops[-1].kind != OP["EXIT"]:
        raise WorkloadError(f"{where}: the last op must be EXIT (code.exit())")
    for number, op in enumerate(ops):
        here = f"{where}, op {number} ({OPS[op.kind][0]})"
        for name in _COUNTS:
            _check_range(here, name, getattr(op, name), 0, MAX_COUNT)
        for (pipe, _), count in zip(PIPES, op.pipes, strict=True):
            _check_range(here, pipe, count, 0, MAX_COUNT)
        _check_range(here, "slot", op.slot, 0, SLOTS - 1)
        _check_range(here, "stages", op.stages, 0, SLOTS - op.slot)
        _check_range(here, "level", op.level, 0, LEVELS - 1)
        if op.kind == OP["LOOP"]:
            _check_range(here, "iterations", op.count, 1, MAX_COUNT)
            _check_range(here, "mark", op.target, 0, number)
        if op.stage is not None and op.kind != OP["TILE"]:
            raise WorkloadError(f"{here}: only a TILE op has a stage")
        if op.kind in _MEMORY:
            if len(op.patterns) not in (1, program.warps):
                raise WorkloadError(
                    f"{here}: {len(op.patterns)} patterns: must be 1, or one a warp ({program.warps})"
                )
            for pattern in op.patterns:
                _check_pattern(here, pattern, program.args)


def _check_range(where: str, name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int | np.integer) or not least <= value <= most:
        bounds = f"from {least} on" if most == MAX_COUNT else f"from {least} to {most}"
        raise WorkloadError(f"{where}: {name} = {value!r}: must be an integer {bounds}")


def _check_pattern(where: str, pattern: Pattern, args: int) -> None:
    if not isinstance(pattern, Pattern):
        raise WorkloadError(f"{where}: {type(pattern).__name__} is no Pattern")
    if pattern.width not in WIDTHS:
        raise WorkloadError(f"{where}: width = {pattern.width!r}: must be one of 1, 2, 4, 8, 16")
    if not 0 <= pattern.arg < args:
        raise WorkloadError(f"{where}: pattern of arg {pattern.arg!r}: the program has {args}")
    _check_range(where, "lanes", pattern.lanes, 0, 0xFFFFFFFF)
    _check_range(where, "minor", pattern.minor, 1, 32)
    _check_range(where, "level2", pattern.level2, 0, LEVELS - 1)
    for name in _TERMS:
        _check_range(where, name, getattr(pattern, name), -MAX_DISTANCE, MAX_DISTANCE)
    if pattern.offsets and len(pattern.offsets) != 32:
        raise WorkloadError(f"{where}: {len(pattern.offsets)} offsets: must be 32, one a lane")
