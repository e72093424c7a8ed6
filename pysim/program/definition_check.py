"""Checks what a job defines, before anything runs: each error names kernel, op and field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.isa import OPS
from pysim.params import PIPES

from .job import MODES, Tensor
from .recorded_program import RecordedProgram
from .warp_program import LEVELS, OP, SLOTS, Op, Pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .job import Access, Job, Kernel

    Ints = NDArray[np.int64]

MAX_ARGS = 8
MAX_COUNT = (1 << 31) - 1  # of instructions, bytes and iterations of one op
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
    for number, access in enumerate(kernel.accesses):
        if access.mode not in MODES:
            raise WorkloadError(
                f"{where}: accesses[{number}]: mode = {access.mode!r}: must be one of {', '.join(MODES)}"
            )
    if kernel.stream < 0:
        raise WorkloadError(f"{where}: stream = {kernel.stream}: must not be negative")


def regions_in(where: str, access: Access, tbs: Ints) -> Ints:
    """Return the regions of TBs, int64 (n, 4): row0, row1, col0, col1 in elements.

    Raises WorkloadError where ``Access.regions`` returns something else, or a region outside of its tensor.
    """
    tensor = access.tensor
    try:
        made = np.asarray(access.regions(tbs))
    except (TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError) as error:
        raise WorkloadError(f"{where}: regions of {tensor.name}: {type(error).__name__}: {error}") from error
    if made.shape != (len(tbs), 4) or made.dtype.kind not in "iu":
        raise WorkloadError(
            f"{where}: regions of {tensor.name} returned {made.dtype} {made.shape}: must be int64"
            f" ({len(tbs)}, 4): row0, row1, col0, col1 of each TB"
        )
    made = made.astype(np.int64, copy=False)
    row0, row1, col0, col1 = made.T
    touched = (row0 < row1) & (col0 < col1)
    wrong = touched & ((row0 < 0) | (col0 < 0) | (row1 > tensor.rows) | (col1 > tensor.cols))
    if wrong.any():
        at = int(np.argmax(wrong))
        first, last, left, right = made[at].tolist()
        raise WorkloadError(
            f"{where}: TB {tbs[at]} {access.mode}s rows {first} to {last} and columns {left} to {right} of"
            f" {tensor.name}, which has {tensor.rows} x {tensor.cols}"
        )
    return made


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
            check_ops(f"{where}: program {program.name}, variant {number}", ops, program.warps, program.args)


def check_ops(where: str, ops: Sequence[Op], warps: int, args: int) -> None:
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
        if op.kind in _MEMORY:
            if len(op.patterns) not in (1, warps):
                raise WorkloadError(
                    f"{here}: {len(op.patterns)} patterns: must be 1, or one a warp ({warps})"
                )
            for pattern in op.patterns:
                _check_pattern(here, pattern, args)


def _check_range(where: str, name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int | np.integer) or not least <= value <= most:
        bounds = f"from {least} to {most}" if most < MAX_COUNT else f"from {least} on"
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
