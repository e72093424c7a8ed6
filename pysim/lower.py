"""From a job and a scheme to the core's tables."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import WorkloadError
from .found import Found, found_of
from .grain import forms_of
from .ordering import Ordering, ordering_of
from .program import OP, PIPE, Accesses, Op, Pattern, Place, Program, Recorded, Sem, Tables
from .regions import common, meets, pointers
from .schemes import (
    PRIORITY,
    Choice,
    carveout_mode,
    coherence_of,
    order_of,
    ranks,
    rewritten_by_job,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from .dependences import Dependences
    from .job import Job
    from .schemes import Scheme
    from .waits import Plan

NONE = 0xFFFFFFFF
MAX_ARGS = 8
_TERMS = ("base", "bx", "by", "bz", "warp", "step", "step2", "s0", "s1")
_MEMORY = (OP["LOAD"], OP["STORE"], OP["REDUCE"])


def mixture(classes: Sequence[int]) -> NDArray[np.int64]:
    """Return the class of each instruction of a block, as a compiler mixes them.

    All that is not of the largest class lies evenly between the instructions of the largest, so that two
    of the rest do not follow each other while a pipe waits, and the rest is a mixture of its own.
    """
    main = int(np.argmax(classes))
    rest = [n if i != main else 0 for i, n in enumerate(classes)]
    place = np.concatenate([(np.arange(n) + 0.5) / n for n in rest if n] or [np.zeros(0)])
    others = np.repeat(np.arange(len(classes)), rest)[np.argsort(place, kind="stable")]
    place = np.concatenate([(np.arange(n) + 0.5) / n for n in (classes[main], len(others)) if n])
    mixed = np.concatenate([np.full(classes[main], main), others])
    return np.asarray(mixed[np.argsort(place, kind="stable")])


def cut(op: Op, longest: int) -> list[Op]:
    """Split a compute block into near-equal blocks of at most ``longest`` instructions; totals are exact."""
    if op.issue <= longest:
        return [op]
    pieces = -(-op.issue // longest)
    classes = [*op.pipes, op.issue - sum(op.pipes)]
    if classes[-1] < 0:
        raise WorkloadError(f"compute block: {sum(op.pipes)} pipe instructions in {op.issue} issue slots")
    which = mixture(classes)
    edges = [i * op.issue // pieces for i in range(pieces + 1)]
    made: list[Op] = []
    waves = 0
    memory_ops = 0
    fp32, lost = 0, 0
    for at in range(pieces):
        counts = np.bincount(which[edges[at] : edges[at + 1]], minlength=len(classes)).tolist()
        # wavefronts go with the shared-memory instructions, or evenly where a block has none
        memory_ops += counts[-1]
        share = op.smem * memory_ops // classes[-1] if classes[-1] else op.smem * (at + 1) // pieces
        # and conflicts with the fp32 instructions, whose pipe they hold
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
                smem_wait=op.smem_wait if at == pieces - 1 else 0,
            )
        )
        waves, lost = share, late
    return made


def alignment(pattern: Pattern, name: str) -> int:
    """Return the largest power of two up to 128 that divides every address of a pattern."""
    align = math.gcd(128, *(getattr(pattern, term) for term in _TERMS), *pattern.offsets)
    if align < 2:
        raise WorkloadError(
            f"program {name}: pattern of argument {pattern.arg}: odd addresses are not supported"
        )
    return align


@dataclass(slots=True)
class Programs:
    """The distinct programs of a job as tables; ``index[k]`` is the program of kernel k.

    Entries and patterns count over all programs, loop targets from the entry of their variant. Recorded
    programs come behind the others, one a kernel; program len(programs) + i is ``recorded[i]``.
    """

    ops: list[dict[str, Any]] = field(default_factory=list)
    patterns: list[dict[str, Any]] = field(default_factory=list)
    lanes: list[tuple[int, ...]] = field(default_factory=list)
    sems: list[Sem] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    programs: list[dict[str, Any]] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    examples: list[Program] = field(default_factory=list)
    recorded: list[tuple[Recorded, Tables]] = field(default_factory=list)


def _shape(made: Programs, pattern: Pattern, program: Program | Recorded) -> int:
    """Return the number of a pattern's own distances of lanes, from 1 on; 0 where it has none."""
    if not pattern.offsets:
        return 0
    if len(pattern.offsets) != 32:
        raise WorkloadError(f"program {program.name}: {len(pattern.offsets)} lane offsets: must be 32")
    if pattern.offsets not in made.lanes:
        made.lanes.append(pattern.offsets)
    return made.lanes.index(pattern.offsets) + 1


def add_variant(
    made: Programs, program: Program | Recorded, ops: Sequence[Op], seen: dict[Any, int], longest: int
) -> int:
    """Append one variant's ops and return where it starts."""
    entry = len(made.ops)
    pieces = [cut(op, longest) if op.kind == OP["COMPUTE"] else [op] for op in ops]
    # marks are for schemes: what they did not make use of goes
    pieces = [[] if op.kind == OP["MARK"] else made_of for op, made_of in zip(ops, pieces, strict=True)]
    starts = np.cumsum([0, *(len(p) for p in pieces)]).tolist()
    for op in (piece for group in pieces for piece in group):
        row: dict[str, Any] = {
            name: getattr(op, name)
            for name in (
                *(
                    "kind",
                    "slot",
                    "stages",
                    "level",
                    "bypass_l1",
                    "smem",
                    "issue",
                    "conflicts",
                    "chain",
                    "smem_wait",
                    "pipes",
                ),
                *("count_plus", "count"),
            )
        }
        row["per_warp"] = 0
        row["pattern"] = 0
        row["target"] = entry + starts[op.target] if op.kind == OP["LOOP"] else 0
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
                    names = (*_TERMS, "lanes", "minor", "width", "arg", "level2")
                    entry_of = {name: getattr(pattern, name) for name in names}
                    align = alignment(pattern, program.name)
                    made.patterns.append(entry_of | {"align": align, "shape": _shape(made, pattern, program)})
            row["pattern"] = seen[op.patterns]
            row["per_warp"] = int(len(op.patterns) > 1)
        elif op.sem is not None:
            if op.sem not in made.sems:
                made.sems.append(op.sem)
            row["pattern"] = made.sems.index(op.sem)
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


def lower_programs(job: Job, longest: int, values: Mapping[str, int] | None = None) -> Programs:
    """Lower every distinct program once; recorded ones need the device's encoded ``values``."""
    made = Programs()
    by_id: dict[int, int] = {}
    by_value: dict[Program, int] = {}
    for kernel in job.kernels:
        program = kernel.program
        if isinstance(program, Recorded):
            if values is None:
                raise WorkloadError(f"program {program.name}: recorded code needs the device's parameters")
            made.recorded.append((program, program.lowered(values)))
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
            row = {"first_op": len(made.ops), "first_pattern": len(made.patterns)}
            seen: dict[Any, int] = {}
            # variants are often the same: equal ones share their ops
            starts: dict[tuple[Op, ...], int] = {}
            for ops in program.variants:
                if ops not in starts:
                    starts[ops] = add_variant(made, program, ops, seen, longest)
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
            made.examples.append(program)
            by_value[program] = number
        by_id[id(program)] = number
        made.index.append(number)
    made.index = [number if number >= 0 else len(made.programs) - 1 - number for number in made.index]
    return made


def _recorded(
    programs: Programs, launches: NDArray[np.void], tables: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Return the tables with the recorded programs behind; fills what their launches say of them."""
    memories = {id(program.memory): program.memory for program, _ in programs.recorded if program.memory}
    if len(memories) > 1:
        raise WorkloadError("kernels of two traces in one job")
    parts: dict[str, list[NDArray[Any]]] = {
        name: [tables[name]] for name in ("ops", "patterns", "programs", "lanes", "sems")
    }
    parts |= {name: [np.zeros(0, np.uint32)] for name in ("entries", "tb_rows", "blocks")}
    held = {name: sum(len(part) for part in every) for name, every in parts.items()}
    kernel_of = {number: kernel for kernel, number in enumerate(programs.index)}

    def add(name: str, part: NDArray[Any]) -> int:
        parts[name].append(part)
        held[name] += len(part)
        return held[name] - len(part)

    for at, (program, made) in enumerate(programs.recorded):
        ops, patterns = made.ops.copy(), made.patterns.copy()
        patterns["shape"] += np.where(patterns["shape"] > 0, held["lanes"], 0).astype(np.uint32)
        posts = np.isin(ops["kind"], (OP["POST"], OP["POLL"]))
        ops["pattern"] += np.where(posts, held["sems"], held["patterns"]).astype(np.int32)
        ops["target"] += held["ops"]
        row = np.zeros(1, tables["programs"].dtype)
        for name in ("warps", "registers", "smem", "args"):
            row[name] = getattr(program, name)
        row["ops"], row["patterns"], row["rows"] = len(ops), len(patterns), len(made.entries)
        row["first_op"], row["first_pattern"] = held["ops"], held["patterns"]
        row["first_entry"] = add("entries", (made.entries + held["ops"]).astype(np.uint32).reshape(-1))
        add("programs", row)
        add("sems", sem_table(made.sems))
        add("lanes", made.lanes)
        add("patterns", patterns)
        add("ops", ops)
        launch = kernel_of[len(programs.programs) + at]
        if program.tb_rows is not None:
            launches["first_tb_row"][launch] = add("tb_rows", program.tb_rows)
        if program.blocks is not None:
            launches["first_block"][launch] = add("blocks", program.blocks)
        launches["first_access"][launch], launches["accesses"][launch] = (
            program.first_access,
            program.accesses,
        )
    joined: dict[str, NDArray[Any]] = {}
    for name, every in parts.items():
        # not concatenate: it would leave the padding of structs out
        joined[name] = np.zeros(held[name], every[0].dtype)
        ends = np.cumsum([len(part) for part in every]).tolist()
        for end, part in zip(ends, every, strict=True):
            joined[name][end - len(part) : end] = part
    memory: Accesses | None = next(iter(memories.values()), None)
    if memory is not None:
        joined |= {name: getattr(memory, name) for name in ("accesses", "templates", "parts")}
    return tables | joined


def table_of(ctype: str, rows: Sequence[Mapping[str, Any]]) -> NDArray[np.void]:
    """Return dict rows as an array with the core's layout."""
    from ._ffi import dtype_of

    table = np.zeros(len(rows), dtype_of(ctype))
    for name in rows[0] if rows else ():
        table[name] = [row[name] for row in rows]
    return table


def lane_table(lanes: Sequence[tuple[int, ...]]) -> NDArray[np.void]:
    """Return distances of lanes as the core's table."""
    return table_of("gs_lanes", [{"offset": offsets} for offsets in lanes])


def sem_table(sems: Sequence[Sem]) -> NDArray[np.void]:
    """Return uses of semaphores as the core's table."""

    def five(place: Place) -> tuple[int, ...]:
        return place.base, place.bx, place.by, place.bz, place.step

    names = ("rows", "cols", "stride", "first", "base", "times", "apart", "ahead", "wrap")
    rows = [{n: getattr(s, n) for n in names} | {"row": five(s.row), "col": five(s.col)} for s in sems]
    return table_of("gs_sem", rows)


@dataclass(slots=True)
class Lowered:
    """A ``gs_job`` and a ``gs_order`` with the arrays that they point into."""

    job: Any
    order: Any
    values: dict[str, int]
    launches: NDArray[np.void]
    keep: list[Any]
    launched: Job
    number: Sequence[int]  # which launch each kernel of the job became
    found: Found
    entry_bytes: float  # of the dependence table
    list_bytes: float  # of its second buffer


def _bypass(job: Job) -> list[int]:
    """Return, for each kernel, the arguments whose memory the job writes, as bits.

    A recorded kernel reads less than its arguments hold; its other bits go for all that it reads.
    """
    written = rewritten_by_job(job)
    made: list[int] = []
    for kernel in job.kernels:
        spans, bits = written, 0
        if kernel.footprint is not None:
            spans = common(kernel.footprint.read(kernel.tbs, kernel.name), written)
            bits = (0xFFFFFFFF << len(kernel.args)) & 0xFFFFFFFF if len(spans) else 0
        for slot, tensor in enumerate(kernel.args):
            if meets(spans, tensor.address, tensor.address + tensor.nbytes):
                bits |= 1 << slot
        made.append(bits)
    return made


def _copies(job: Job, values: Mapping[str, int], launches: NDArray[np.void]) -> NDArray[np.void]:
    """Return the sectors that the job's copies write; fills what their launches say of them."""
    from ._ffi import dtype_of

    parts: list[NDArray[np.void]] = [np.zeros(0, dtype_of("gs_copy"))]
    at = 0
    for index, kernel in enumerate(job.kernels):
        if kernel.copy is None:
            continue
        sectors = kernel.copy.sectors()
        part: NDArray[np.void] = np.zeros(len(sectors), parts[0].dtype)
        before = pointers(sectors[:, 1] - sectors[:, 0])[:-1]
        for name, column in (("first", sectors[:, 0]), ("end", sectors[:, 1]), ("before", before)):
            part[name] = column.astype(np.uint64)
        launches["first_copy"][index], launches["copies"][index] = at, len(part)
        wait, spent = kernel.copy.ticks(values)
        launches["copy_wait"][index], launches["copy_time"][index] = wait, spent
        parts.append(part)
        at += len(part)
    return np.concatenate(parts)


def _flat(
    parts: Sequence[Sequence[int]],
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return (values, first, count) of lists of different length."""
    count = np.array([len(p) for p in parts], np.uint32)
    first = (np.cumsum(count) - count).astype(np.uint32)
    return np.array([v for p in parts for v in p], np.uint32), first, count


def _planned(launches: NDArray[np.void], plan: Plan | None) -> None:
    """Fill what a scheme that waits inside the program says of each launch."""
    if plan is None:
        return
    launches["early"] = plan.early
    launches["semaphores"] = plan.semaphores
    launches["cooperative"] = plan.cooperative or [0] * len(launches)
    launches["prologue"] = plan.gated or 0
    # streams of higher priority first
    by = np.lexsort((launches["rank"], np.array(plan.priority)))
    launches["rank"][by] = np.arange(len(launches), dtype=np.uint32)


def _ordering(
    scheme: Scheme,
    job: Job,
    deps: Dependences,
    values: Mapping[str, int],
    plan: Plan | None,
    found: Found | None,
) -> tuple[Found, Ordering]:
    """Return the edges that a scheme goes by, and how it orders a job; prologues do not change its edges."""
    source = plan.source if plan and plan.source else job
    found = found or found_of(scheme, source, deps, values)
    if plan is not None and not plan.gated and not plan.turns:
        return found, Ordering(plan.preds, order_of(scheme, job, values) | plan.order)
    how = ordering_of(scheme, source, found, values)
    if (
        how.nodes is not None
        and scheme.edges == "tb"
        and not scheme.infinite
        and values["scheme.table.group"]
    ):
        how.forms = forms_of(source, found.deps, values)
    how.order |= plan.order if plan else {}
    return found, how


def lower(
    job: Job,
    deps: Dependences,
    choice: Choice,
    values: dict[str, int],
    programs: Programs,
    carveouts: Sequence[int],
    times: Sequence[float],
    plan: Plan | None = None,
    found: Found | None = None,
) -> Lowered:
    """Fill the core's tables. ``values``: encoded parameters; ``carveouts`` and ``times``: one a kernel.

    ``plan``: of a scheme that waits inside the program; ``job`` is the plan's then. ``found``: the edges to
    go by, if not those that the scheme finds.
    """
    from ._ffi import dtype_of, ffi

    scheme = choice.scheme
    count = len(job.kernels)
    found, how = _ordering(scheme, job, deps, values, plan, found)
    launches = np.zeros(count, dtype_of("gs_launch"))
    if values["host.submit"] == 1:
        # what costs nothing is no launch of the host's either
        each = [k.copy is None or k.copy.timed for k in job.kernels]
        before = np.cumsum(each) - each
        launches["enqueued"] = before.astype(np.uint64) * np.uint64(values["host.launch"])
    for index, kernel in enumerate(job.kernels):
        if len(kernel.args) != kernel.program.args:
            raise WorkloadError(
                f"kernel {kernel.name}: {len(kernel.args)} arguments, its program takes {kernel.program.args}"
            )
        launches["arg"][index, : len(kernel.args)] = [t.address for t in kernel.args]
        launches["grid"][index] = kernel.grid
        launches["stream"][index] = kernel.stream
    if (launches["arg"] % 256).any():
        raise WorkloadError(f"job {job.name}: tensor addresses must be multiples of 256")
    launches["program"], launches["places"] = programs.index, 1
    launches["rank"] = ranks(how.priority or PRIORITY[values["scheme.priority"]], how.preds, times)
    _planned(launches, plan)
    if coherence_of(scheme, values) == "bypass":
        launches["bypass"] = _bypass(job)
    launches["carveout"] = carveouts if carveout_mode(scheme, values) == "kernel" else max(carveouts)
    pred_table, launches["first_pred"], launches["preds"] = _flat(how.preds)
    for name in ("first_tb_out", "first_tb_row", "first_block"):
        launches[name] = NONE
    empty = np.zeros(0, np.uint32)
    tables: dict[str, NDArray[Any]] = {
        "ops": table_of("gs_op", programs.ops),
        "patterns": table_of("gs_pattern", programs.patterns),
        "lanes": lane_table(programs.lanes),
        "sems": sem_table(programs.sems),
        "stages": table_of("gs_stage", programs.stages),
        "needs": empty if plan is None else plan.needs,
        "programs": table_of("gs_program", programs.programs),
        "launches": launches,
        "preds": pred_table,
    }
    tables |= how.fill(launches)
    tables["copied"] = _copies(job, values, launches)
    if programs.recorded:
        tables = _recorded(programs, launches, tables)
    if how.merged:
        for name in ("registers", "smem"):
            tables["programs"][name] = tables["programs"][name].max()
    made = ffi.new("gs_job *")
    order = ffi.new("gs_order *", how.order)
    keep: list[Any] = [made, order]
    types = (
        {name: f"gs_{name.removesuffix('s')}" for name in tables}
        | {
            "launches": "gs_launch",
            "accesses": "uint64_t",
            "lanes": "gs_lanes",
            "copied": "gs_copy",
            "sequence": "uint64_t",
            "hint_sets": "gs_hint_set",
        }
        | dict.fromkeys(
            (
                *("preds", "outs", "tb_out_ptr", "tb_outs", "entries", "tb_rows", "blocks", "needs"),
                *("set_units", "unit_ptr", "unit_sets", "rates"),
            ),
            "uint32_t",
        )
    )
    for name, table in tables.items():
        whole = np.ascontiguousarray(table)
        ctype = types[name]
        setattr(made, f"n_{name}", len(whole))
        if len(whole):
            view = ffi.cast(f"{ctype} *", whole.ctypes.data)
            setattr(made, name, view)
            keep.append(whole)
    made.tb_buffer = 1 << 16
    number = plan.number if plan else range(count)
    return Lowered(made, order, values, launches, keep, job, number, found, how.entry_bytes, how.list_bytes)
