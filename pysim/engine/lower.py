"""From a job and a scheme to the core's tables."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.ops import LoweredPrograms, box_table, lane_table, sem_table, struct_array
from pysim.program.recorded_program import RecordedAccesses
from pysim.program.regions import csr_offsets
from pysim.program.warp_program import OP
from pysim.schemes.core_tables import CoreTables
from pysim.schemes.hooks import all_tables_of, carveout_of, coherence_of, known_edges_of, order_of
from pysim.schemes.priority import PRIORITY, priority_ranks
from pysim.schemes.registry import Choice

from .coherence import fill_coherence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job
    from pysim.schemes.known_edges import KnownEdges
    from pysim.schemes.launch_plan import LaunchPlan
    from pysim.schemes.scheme import Scheme

NONE = 0xFFFFFFFF
_NUMBERS = (
    "preds", "outs", "tb_out_ptr", "tb_outs", "entries", "tb_rows", "blocks", "needs", "set_units",
    "unit_ptr", "unit_sets", "rates",
)  # fmt: skip
# the core's type of a table's rows, where the table's name does not say it: gs_op of ops
_TYPES = dict.fromkeys(_NUMBERS, "uint32_t") | {
    "launches": "gs_launch",
    "accesses": "uint64_t",
    "lanes": "gs_lanes",
    "copied": "gs_copy",
    "sequence": "uint64_t",
    "boxes": "gs_bulk_box",
    "hint_sets": "gs_hint_set",
}


def _recorded(
    programs: LoweredPrograms, launches: NDArray[np.void], tables: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Return the tables with the recorded programs behind; fills what their launches say of them."""
    memories = {id(program.memory): program.memory for program, _ in programs.recorded if program.memory}
    if len(memories) > 1:
        raise WorkloadError("kernels of two traces in one job")
    parts: dict[str, list[NDArray[Any]]] = {
        name: [tables[name]] for name in ("ops", "patterns", "programs", "lanes", "sems", "boxes")
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
        moves = np.isin(ops["kind"], (OP["BULK_LOAD"], OP["BULK_STORE"]))
        before = np.where(posts, held["sems"], np.where(moves, held["boxes"], held["patterns"]))
        ops["pattern"] += before.astype(np.int32)
        ops["target"] += held["ops"]
        row = np.zeros(1, tables["programs"].dtype)
        for name in ("warps", "registers", "smem", "args"):
            row[name] = getattr(program, name)
        row["ops"], row["patterns"], row["rows"] = len(ops), len(patterns), len(made.entries)
        row["first_op"], row["first_pattern"] = held["ops"], held["patterns"]
        row["first_entry"] = add("entries", (made.entries + held["ops"]).astype(np.uint32).reshape(-1))
        add("programs", row)
        add("sems", sem_table(made.sems))
        add("boxes", box_table(made.boxes))
        add("lanes", made.lanes)
        add("patterns", patterns)
        add("ops", ops)
        launch = kernel_of[len(programs.programs) + at]
        if program.tb_rows is not None:
            launches["first_tb_row"][launch] = add("tb_rows", program.tb_rows)
        if program.access_starts is not None:
            launches["first_block"][launch] = add("blocks", program.access_starts)
        launches["first_access"][launch], launches["accesses"][launch] = (
            program.first_access,
            program.access_count,
        )
    joined: dict[str, NDArray[Any]] = {}
    for name, every in parts.items():
        # not concatenate: it would leave the padding of structs out
        joined[name] = np.zeros(held[name], every[0].dtype)
        ends = np.cumsum([len(part) for part in every]).tolist()
        for end, part in zip(ends, every, strict=True):
            joined[name][end - len(part) : end] = part
    memory: RecordedAccesses | None = next(iter(memories.values()), None)
    if memory is not None:
        joined |= {name: getattr(memory, name) for name in ("accesses", "templates", "parts")}
    return tables | joined


@dataclass(slots=True)
class Lowered:
    """A ``gs_job`` and a ``gs_order`` with the arrays that they point into."""

    job: Any
    order: Any
    values: dict[str, int]
    launches: NDArray[np.void]
    tables: list[NDArray[Any]]  # that the job points into
    launched: Job
    scheme: str
    number: Sequence[int]  # which launch each kernel of the job became
    known: KnownEdges  # that the scheme goes by
    entry_bytes: float  # of the dependence table
    list_bytes: float  # of its second buffer


def _copies(job: Job, values: Mapping[str, int], launches: NDArray[np.void]) -> NDArray[np.void]:
    """Return the sectors that the job's copies write; fills what their launches say of them."""
    from pysim._ffi import dtype_of

    parts: list[NDArray[np.void]] = [np.zeros(0, dtype_of("gs_copy"))]
    at = 0
    for index, kernel in enumerate(job.kernels):
        if kernel.copy is None:
            continue
        sectors = kernel.copy.sectors()
        part: NDArray[np.void] = np.zeros(len(sectors), parts[0].dtype)
        before = csr_offsets(sectors[:, 1] - sectors[:, 0])[:-1]
        for name, column in (("first", sectors[:, 0]), ("end", sectors[:, 1]), ("before", before)):
            part[name] = column.astype(np.uint64)
        launches["first_copy"][index], launches["copies"][index] = at, len(part)
        wait, spent = kernel.copy.link_ticks(values)
        launches["copy_wait"][index], launches["copy_time"][index] = wait, spent
        parts.append(part)
        at += len(part)
    return np.concatenate(parts)


def _flat(
    parts: Sequence[Sequence[int]], dtype: type[np.unsignedinteger] = np.uint32
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return (values, first, count) of lists of different length."""
    count = np.array([len(p) for p in parts], np.uint32)
    first = (np.cumsum(count) - count).astype(np.uint32)
    return np.fromiter(chain.from_iterable(parts), dtype, int(count.sum())), first, count


def _tiled(launches: NDArray[np.void], job: Job) -> None:
    """Fill clusters and tiles of the launches."""
    launches["cluster"] = 1
    for index, kernel in enumerate(job.kernels):
        tiles = kernel.tiles
        if tiles is not None:
            launches["cluster"][index] = tiles.cluster
            launches["tiles"][index] = tiles.count
            launches["n_fast"][index] = tiles.n_fast
            launches["steps"][index] = tiles.steps, tiles.last_steps or tiles.steps


def _described(launches: NDArray[np.void], job: Job, values: Mapping[str, int]) -> None:
    """Fill arguments, grids, streams and parameters of the launches."""
    for kernel in job.kernels:
        if len(kernel.args) != kernel.program.args:
            raise WorkloadError(
                f"kernel {kernel.name}: {len(kernel.args)} arguments, its program takes {kernel.program.args}"
            )
    args, first, many = _flat([[t.address for t in kernel.args] for kernel in job.kernels], np.uint64)
    slots = np.arange(len(args)) - np.repeat(first, many)
    launches["arg"][np.repeat(np.arange(len(launches)), many), slots] = args
    launches["grid"] = [kernel.grid for kernel in job.kernels]
    _tiled(launches, job)
    launches["stream"] = [kernel.stream for kernel in job.kernels]
    lines = np.array([kernel.parameter_lines for kernel in job.kernels], np.int64)
    launches["parameters"] = lines * values["gpu.sm.parameters"]
    launches["refetch"] = lines > 0
    if (launches["arg"] % 256).any():
        raise WorkloadError(f"job {job.name}: tensor addresses must be multiples of 256")


def _planned(launches: NDArray[np.void], plan: LaunchPlan | None) -> None:
    """Fill what a scheme that waits inside the program says of each launch."""
    if plan is None:
        return
    launches["early"] = plan.programmatic
    launches["semaphores"] = plan.semaphore_bases
    launches["cooperative"] = plan.cooperative or [0] * len(launches)
    launches["prologue"] = plan.has_prologue or 0
    # streams of higher priority first
    by = np.lexsort((launches["rank"], np.array(plan.priority)))
    launches["rank"][by] = np.arange(len(launches), dtype=np.uint32)


def _ordering(
    scheme: Scheme,
    job: Job,
    deps: Dependences,
    values: Mapping[str, int],
    plan: LaunchPlan | None,
    known: KnownEdges | None,
) -> tuple[KnownEdges, CoreTables]:
    """Return the edges that a scheme goes by, and how it orders a job; prologues do not change its edges."""
    source = plan.source if plan and plan.source else job
    known = known or known_edges_of(scheme, source, deps, values)
    if plan is not None and not plan.has_prologue and not plan.intra_kernel_only:
        return known, CoreTables(plan.preds, order_of(scheme, job, values) | plan.order)
    how = all_tables_of(scheme, source, known, values)
    how.order |= plan.order if plan else {}
    return known, how


def lower(
    job: Job,
    deps: Dependences,
    choice: Choice,
    values: dict[str, int],
    programs: LoweredPrograms,
    carveouts: Sequence[int],
    times: Sequence[float],
    plan: LaunchPlan | None = None,
    known: KnownEdges | None = None,
) -> Lowered:
    """Fill the core's tables. ``values``: encoded parameters; ``carveouts`` and ``times``: one a kernel.

    ``plan``: of a scheme that waits inside the program; ``job`` is the plan's then. ``known``: the edges to
    go by, if not those that the scheme finds.
    """
    from pysim._ffi import dtype_of, ffi

    scheme = choice.scheme
    count = len(job.kernels)
    known, how = _ordering(scheme, job, deps, values, plan, known)
    launches = np.zeros(count, dtype_of("gs_launch"))
    if values["host.submit"] == 1:
        # what costs nothing is no launch of the host's either
        each = [k.copy is None or k.copy.timed for k in job.kernels]
        before = np.cumsum(each) - each
        launches["enqueued"] = before.astype(np.uint64) * np.uint64(values["host.launch"])
    _described(launches, job, values)
    launches["program"], launches["places"] = programs.index, 1
    launches["rank"] = priority_ranks(how.priority or PRIORITY[values["scheme.priority"]], how.preds, times)
    _planned(launches, plan)
    fill_coherence(launches, coherence_of(scheme, values), job, plan)
    launches["carveout"] = carveouts if carveout_of(scheme, values) == "kernel" else max(carveouts)
    pred_table, launches["first_pred"], launches["preds"] = _flat(how.preds)
    for name in ("first_tb_out", "first_tb_row", "first_block"):
        launches[name] = NONE
    empty = np.zeros(0, np.uint32)
    tables: dict[str, NDArray[Any]] = {
        "ops": struct_array("gs_op", programs.ops),
        "patterns": struct_array("gs_pattern", programs.patterns),
        "lanes": lane_table(programs.lanes),
        "sems": sem_table(programs.sems),
        "stages": struct_array("gs_stage", programs.stages),
        "boxes": box_table(programs.boxes),
        "needs": empty if plan is None else plan.posts_needed,
        "programs": struct_array("gs_program", programs.programs),
        "launches": launches,
        "preds": pred_table,
    }
    tables |= how.fill(launches)
    tables["copied"] = _copies(job, values, launches)
    if programs.recorded:
        tables = _recorded(programs, launches, tables)
    if how.one_kernel:
        for name in ("registers", "smem"):
            tables["programs"][name] = tables["programs"][name].max()
        launches["carveout"] = launches["carveout"].max()
    made = ffi.new("gs_job *")
    order = ffi.new("gs_order *", how.order)
    held: list[NDArray[Any]] = []
    for name, table in tables.items():
        whole = np.ascontiguousarray(table)
        ctype = _TYPES.get(name) or f"gs_{name.removesuffix('s')}"
        setattr(made, f"n_{name}", len(whole))
        if len(whole):
            view = ffi.cast(f"{ctype} *", whole.ctypes.data)
            setattr(made, name, view)
            held.append(whole)
    made.tb_buffer = 1 << 16
    number = plan.launch_of_kernel if plan else range(count)
    return Lowered(
        made, order, values, launches, held, job, choice.name, number, known, how.entry_bytes, how.list_bytes
    )
