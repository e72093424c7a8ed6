"""Lowering: from warp programs to the core's tables of ops, patterns and semaphores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.errors import WorkloadError
from pysim.isa import UNNEEDED

from .memory_budget import INSTRUCTION, claim
from .memory_budget import OP as OP_BYTES
from .recorded_program import CodeTables, RecordedProgram
from .warp_program import OP, PIPE, Affine, Op, Pattern, Program, Sem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from .job import Job, Kernel
    from .tiles import Box

MAX_ARGS = 8
TENSOR_CORES = 70  # the first SM version that has them
_TERMS = ("base", "bx", "by", "bz", "warp", "step", "step2", "s0", "s1")
# fields of an op that the core takes as they are
_COPIED = (
    "kind", "slot", "stages", "level", "bypass_l1", "smem", "issue", "conflicts", "chain", "smem_wait",
    "pipes", "count_plus", "count",
)  # fmt: skip
_MEMORY = (OP["LOAD"], OP["STORE"], OP["REDUCE"])


def interleave_classes(classes: Sequence[int]) -> NDArray[np.int64]:
    """Return the class of each instruction of a block, interleaved as a compiler does.

    ``classes``: instructions of each class. Those of the smaller classes are spread evenly among those of the
    largest, so that none of them issue back to back while a pipe idles. The smaller classes are interleaved
    with each other in proportion.
    """
    main = int(np.argmax(classes))
    rest = [n if i != main else 0 for i, n in enumerate(classes)]
    place = np.concatenate([(np.arange(n) + 0.5) / n for n in rest if n] or [np.zeros(0)])
    others = np.repeat(np.arange(len(classes)), rest)[np.argsort(place, kind="stable")]
    place = np.concatenate([(np.arange(n) + 0.5) / n for n in (classes[main], len(others)) if n])
    mixed = np.concatenate([np.full(classes[main], main), others])
    return np.asarray(mixed[np.argsort(place, kind="stable")])


@lru_cache(maxsize=4096)
def split_block(op: Op, longest: int) -> tuple[Op, ...]:
    """Split a COMPUTE op into near-equal ones of at most ``longest`` instructions; the sums stay exact.

    Raises WorkloadError if the pipes have more instructions than there are issue slots.
    """
    if op.issue <= longest:
        return (op,)
    pieces = -(-op.issue // longest)
    classes = [*op.pipes, op.issue - sum(op.pipes)]
    if classes[-1] < 0:
        raise WorkloadError(f"compute block: {sum(op.pipes)} pipe instructions in {op.issue} issue slots")
    which = interleave_classes(classes)
    edges = [i * op.issue // pieces for i in range(pieces + 1)]
    made: list[Op] = []
    waves = 0
    memory_ops = 0
    fp32, lost = 0, 0
    for at in range(pieces):
        counts = np.bincount(which[edges[at] : edges[at + 1]], minlength=len(classes)).tolist()
        # wavefronts follow the shared-memory instructions, or are even where a block has none
        memory_ops += counts[-1]
        share = op.smem * memory_ops // classes[-1] if classes[-1] else op.smem * (at + 1) // pieces
        # conflicts follow the fp32 instructions, whose pipe they occupy
        fp32 += counts[PIPE["fp32"]]
        total = classes[PIPE["fp32"]]
        late = op.conflicts * fp32 // total if total else op.conflicts * (at + 1) // pieces
        made.append(
            replace(
                op,
                issue=edges[at + 1] - edges[at],
                pipes=tuple(counts[:-1]),
                smem=share - waves,
                conflicts=late - lost,
                chain=op.chain if at == pieces - 1 else 0,
                smem_wait=op.smem_wait if at == pieces - 1 or op.smem_wait == UNNEEDED + 1 else 0,
            )
        )
        waves, lost = share, late
    return tuple(made)


def alignment(pattern: Pattern, name: str) -> int:
    """Return the largest power of two up to 128 that divides every address of a pattern.

    Raises WorkloadError if that is 1.
    """
    align = math.gcd(128, *(getattr(pattern, term) for term in _TERMS), *pattern.offsets)
    if align < 2:
        raise WorkloadError(
            f"program {name}: pattern of argument {pattern.arg}: odd addresses are not supported"
        )
    return align


def _check_copy(pattern: Pattern, op: Op, name: str) -> None:
    """Raise WorkloadError for a shared-memory address that no cp.async has."""
    if (pattern.into or pattern.into_pitch) and not (op.kind == OP["LOAD"] and op.smem):
        raise WorkloadError(f"program {name}: into_pitch = {pattern.into_pitch}: of a copy (smem) alone")
    if not (0 <= pattern.into < 128 and 0 <= pattern.into_pitch < 1 << 16):
        raise WorkloadError(
            f"program {name}: into = {pattern.into}, into_pitch = {pattern.into_pitch}: below 128 and 65536"
        )


@dataclass(slots=True)
class LoweredPrograms:
    """The distinct programs of a job as tables; ``index[k]`` is the program of kernel k.

    ``ops``, ``patterns``, ``sems``, ``stages`` and ``boxes`` are shared by all programs, which name them by
    index; ``box_index`` is where each box is among them.
    ``programs``: one row (``gs_program``) a distinct :class:`Program`, which is ``distinct[i]``. Recorded
    programs come after them, one a kernel: program len(programs) + i is ``recorded[i]``.
    """

    ops: list[dict[str, Any]] = field(default_factory=list)
    patterns: list[dict[str, Any]] = field(default_factory=list)
    lanes: list[tuple[int, ...]] = field(default_factory=list)
    sems: list[Sem] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    box_index: dict[Box, int] = field(default_factory=dict)
    programs: list[dict[str, Any]] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    distinct: list[Program] = field(default_factory=list)
    recorded: list[tuple[RecordedProgram, CodeTables]] = field(default_factory=list)


def _shape(made: LoweredPrograms, pattern: Pattern, program: Program | RecordedProgram) -> int:
    """Return 1 + the index of a pattern's lane offsets in ``made.lanes``; 0 where it has none."""
    if not pattern.offsets:
        return 0
    if len(pattern.offsets) != 32:
        raise WorkloadError(f"program {program.name}: {len(pattern.offsets)} lane offsets: must be 32")
    if pattern.offsets not in made.lanes:
        made.lanes.append(pattern.offsets)
    return made.lanes.index(pattern.offsets) + 1


def add_variant(
    made: LoweredPrograms,
    program: Program | RecordedProgram,
    ops: Sequence[Op],
    seen: dict[Any, int],
    longest: int,
    tensor: int,
) -> int:
    """Append one variant's ops to ``made`` and return the index of the first.

    ``seen``: patterns of the program that are in ``made`` already, with their index. ``longest``, ``tensor``:
    instructions a block at most, of a variant without and with tensor instructions.
    """
    entry = len(made.ops)
    if any(op.kind == OP["COMPUTE"] and op.pipes[PIPE["tensor"]] for op in ops):
        longest = min(longest, tensor)
    # asynchronous multiplies are one block: no warp waits for them to issue
    split = [op.kind == OP["COMPUTE"] and not op.per_warp for op in ops]
    pieces = [split_block(op, longest) if cut else (op,) for op, cut in zip(ops, split, strict=True)]
    # schemes have replaced the marks that they use by now
    pieces = [() if op.kind == OP["MARK"] else made_of for op, made_of in zip(ops, pieces, strict=True)]
    starts = np.cumsum([0, *(len(p) for p in pieces)]).tolist()
    for op in (piece for group in pieces for piece in group):
        row: dict[str, Any] = {name: getattr(op, name) for name in _COPIED}
        row["per_warp"] = op.per_warp
        row["pattern"] = 0
        row["target"] = entry + starts[op.target] if op.kind in (OP["LOOP"], OP["TURN"]) else 0
        if op.kind in _MEMORY:
            if len(op.patterns) not in (1, program.warps):
                raise WorkloadError(
                    f"program {program.name}: memory op of {len(op.patterns)} patterns: 1 or {program.warps}"
                )
            if op.patterns not in seen:
                seen[op.patterns] = len(made.patterns)
                for pattern in op.patterns:
                    if not 0 <= pattern.arg < program.args:
                        raise WorkloadError(
                            f"program {program.name}: pattern of argument {pattern.arg} of {program.args}"
                        )
                    _check_copy(pattern, op, program.name)
                    names = (*_TERMS, "lanes", "minor", "width", "arg", "level2", "into", "into_pitch")
                    entry_of = {name: getattr(pattern, name) for name in names}
                    align = alignment(pattern, program.name)
                    made.patterns.append(entry_of | {"align": align, "shape": _shape(made, pattern, program)})
            row["pattern"] = seen[op.patterns]
            row["per_warp"] = int(len(op.patterns) > 1)
        elif op.sem is not None:
            if op.sem not in made.sems:
                made.sems.append(op.sem)
            row["pattern"] = made.sems.index(op.sem)
        elif op.box is not None:
            if op.box not in made.box_index:
                made.box_index[op.box] = len(made.boxes)
                made.boxes.append(op.box)
            row["pattern"] = made.box_index[op.box]
        elif op.stage is not None:
            stage = op.stage
            row["target"] = entry + starts[op.target]
            where: dict[str, Any] = {n: entry + starts[getattr(stage, n)] for n in ("first", "end")}
            where |= {"grid": stage.grid, "entry": tuple(entry + starts[at] for at in stage.entry)}
            if where not in made.stages:
                made.stages.append(where)
            row["pattern"] = made.stages.index(where)
        made.ops.append(row)
    return entry


def _claim_blocks(program: Program, longest: int) -> None:
    """Refuse a program whose compute blocks would take too much memory to split."""
    blocks = [op.issue for ops in {*program.variants} for op in ops if op.issue > longest]
    if blocks:
        size = max(blocks) * INSTRUCTION + sum(blocks) // longest * OP_BYTES
        claim(size, f"program {program.name}: blocks of {sum(blocks):,} instructions")


@lru_cache(maxsize=4096)
def _uses_tensor_pipe(ops: tuple[Op, ...]) -> bool:
    return any(op.kind == OP["COMPUTE"] and op.pipes[PIPE["tensor"]] > 0 for op in ops)


def _has_tensor_ops(kernel: Kernel) -> bool:
    """Whether a program has tensor instructions; False for traces, whose opcodes are checked one by one."""
    program = kernel.program
    if not isinstance(program, RecordedProgram):
        return any(map(_uses_tensor_pipe, set(program.variants)))
    if program.op_lists is None:
        return False
    rows = 1 if program.tb_rows is None else int(program.tb_rows.max()) + 1
    return any(_uses_tensor_pipe(ops) for row in range(rows) for ops in program.op_lists(row))


def lower_programs(
    job: Job,
    longest: int,
    values: Mapping[str, int] | None = None,
    gpu: tuple[int, int] | None = None,
) -> LoweredPrograms:
    """Lower every distinct program of a job once.

    ``longest``: instructions a compute block at most (``gpu.sm.block_max``). ``values``: encoded parameters,
    which recorded programs need; ``gpu``: its SM version and ``mma_rate``. Raises WorkloadError for programs
    that the core cannot run.
    """
    tensor = values["gpu.sm.block_tensor"] if values else longest
    made = LoweredPrograms()
    by_id: dict[int, int] = {}
    by_value: dict[Program, int] = {}
    for kernel in job.kernels:
        program = kernel.program
        if gpu is not None and gpu[0] < TENSOR_CORES and _has_tensor_ops(kernel):
            raise WorkloadError(
                f"kernel {kernel.name}: program {program.name} has tensor instructions, this GPU has no "
                "tensor cores: workloads.make takes the GPU as its second argument"
            )
        if isinstance(program, RecordedProgram):
            if values is None:
                raise WorkloadError(f"program {program.name}: recorded code needs the device's parameters")
            on = program.lower_on if gpu is not None else None
            tables = program.lower(values) if on is None or gpu is None else on(values, gpu)
            made.recorded.append((program, tables))
            made.index.append(-len(made.recorded))
            continue
        number = by_id.get(id(program))
        if number is None:
            number = by_value.get(program)
        if number is None:
            number = len(made.programs)
            if len(program.variants) not in (1, 8) or program.args > MAX_ARGS:
                raise WorkloadError(
                    f"program {program.name}: 1 or 8 variants and at most {MAX_ARGS} arguments"
                )
            _claim_blocks(program, longest)
            row = {"first_op": len(made.ops), "first_pattern": len(made.patterns)}
            seen: dict[Any, int] = {}
            # equal variants share their ops
            starts: dict[tuple[Op, ...], int] = {}
            for ops in program.variants:
                if ops not in starts:
                    starts[ops] = add_variant(made, program, ops, seen, longest, tensor)
            entries = [starts[ops] for ops in program.variants]
            made.programs.append(
                row
                | {name: getattr(program, name) for name in ("warps", "registers", "smem", "args")}
                | {
                    "ops": len(made.ops) - row["first_op"],
                    "patterns": len(made.patterns) - row["first_pattern"],
                }
                | {"entry": tuple(entries * 8 if len(entries) == 1 else entries)}
            )
            made.distinct.append(program)
            by_value[program] = number
        by_id[id(program)] = number
        made.index.append(number)
    made.index = [number if number >= 0 else len(made.programs) - 1 - number for number in made.index]
    return made


def struct_array(ctype: str, rows: Sequence[Mapping[str, Any]]) -> NDArray[np.void]:
    """Return rows as a structured array of a C type of the core, such as ``gs_op``."""
    from pysim._ffi import dtype_of

    table = np.zeros(len(rows), dtype_of(ctype))
    for name in rows[0] if rows else ():
        table[name] = [row[name] for row in rows]
    return table


def lane_table(lanes: Sequence[tuple[int, ...]]) -> NDArray[np.void]:
    """Return lane offsets, 32 a row in bytes, as a table of ``gs_lanes``."""
    return struct_array("gs_lanes", [{"offset": offsets} for offsets in lanes])


def box_table(boxes: Sequence[Box]) -> NDArray[np.void]:
    """Return the boxes of bulk copies as a table of ``gs_bulk_box``."""
    names = ("arg", "rows", "pitch", "plane", "all_rows", "all_bytes", "row", "col")
    return struct_array("gs_bulk_box", [{n: getattr(b, n) for n in names} | {"bytes": b.size} for b in boxes])


def sem_table(sems: Sequence[Sem]) -> NDArray[np.void]:
    """Return the operands of POST and POLL as a table of ``gs_sem``."""

    def five(place: Affine) -> tuple[int, ...]:
        return place.base, place.bx, place.by, place.bz, place.step

    names = ("rows", "cols", "stride", "first", "base", "times", "apart", "ahead", "wrap")
    rows = [{n: getattr(s, n) for n in names} | {"row": five(s.row), "col": five(s.col)} for s in sems]
    return struct_array("gs_sem", rows)
