"""In-kernel synchronisation: programs with polls and posts of semaphores, and how they are launched.

A template says once what its loads read and its stores write (``Code.mark_input``, ``Code.mark_output``) and
where its main loop ends (``Code.mark_main_loop_end``). A scheme replaces these marks by polls and posts of
semaphores, one a tile or one a row of tiles of a producer's output, or by nothing. It adds the triggers and
waits of programmatic dependent launch. The code follows CUDA (griddepcontrol, stream priorities) and cuSync
(Jangda et al., CGO 2024).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.producer_tiles import may_wait, producer_edges, whole_kernel_edges
from pysim.errors import ConfigError, WorkloadError
from pysim.program.job import Job, Kernel
from pysim.program.marks import (
    Ops,
    has_tb_waits,
    marks_of,
    publish_ops,
    replace_ops,
    rewrite_program,
    waits_along_z,
)
from pysim.program.occupancy import allocated_smem, occupancy
from pysim.program.recorded_program import RecordedProgram
from pysim.program.semaphores import (
    KernelEdges,
    SemaphoreTable,
    TileSemaphores,
    delay_posts,
    first_semaphore,
    output_semaphores,
    poll_ops,
    poll_without_lookahead,
)
from pysim.program.warp_program import OP, Affine, Code, Op, Program, Sem

from .launch_plan import LaunchPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config

# semaphore bases of a launch: 0 is its own tiles, 1 and 2 are the tiles of the kernels that it reads from, 3
# counts its TBs that have started
STARTED = 3
# offsets from STARTED: the counter and table of tiles (cuSync's T), and for each tile which TB has its turn
TILE_COUNTER, TILE_TURNS = 1, 2


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """Settings of in-kernel synchronisation, from ``scheme.sync``."""

    launch: str = ""  # pdl, graph (programmatic edges), streams; "": stream order
    wait_whole_kernels: bool = False  # each TB waits until earlier kernels have ended (griddepcontrol)
    policy: str = ""  # semaphores: tile, row, strided, conv; "": none
    trigger_late: bool = False  # launch dependents after the main loop, not at the start
    spread_tbs: bool = False  # pad shared memory so that each SM gets an even share of TBs
    gate: str = "all"  # with streams, a gate kernel waits for the start of: all, first (TB), none
    look_up_tile: bool = False  # each TB takes its tile from a counter and a table
    wait_early: bool = False  # wait before the first load, not before the first dependent one
    fence_system: bool = False  # fences before posts are system-wide
    poll_each: bool = False  # poll each semaphore, even one known to be posted
    placed: bool = False  # the programs have their triggers


def semaphore_plan(
    name: str, launch: str, job: Job, deps: Dependences, config: Config, wait_whole_kernels: bool = False
) -> LaunchPlan:
    """Return the launches of a job with in-kernel synchronisation, by the parameters ``scheme.sync``.

    ``name``: of the scheme, for errors; ``launch``: pdl, graph, streams, or empty: stream order;
    ``wait_whole_kernels``: TBs wait for whole kernels, not for semaphores. Raises ConfigError for
    programmatic launches before compute capability 9.0, WorkloadError for a job that cannot be synchronised
    so.
    """
    if launch in ("pdl", "graph") and not config["scheme.hypothetical"]:
        major, minor = config.device.compute_capability
        if major < 9:
            raise ConfigError(
                f"{name} needs compute capability 9.0, {config.device.name} has {major}.{minor}"
                " (scheme.hypothetical = 1 runs it all the same)"
            )
    settings = SyncSettings(
        launch,
        wait_whole_kernels,
        "" if wait_whole_kernels else config.word("scheme.sync.policy"),
        config.word("scheme.sync.trigger") == "late",
        bool(config["scheme.sync.spread"]),
        config.word("scheme.sync.gate"),
        bool(config["scheme.sync.order"]),
        config.word("scheme.sync.wait") == "early",
        config.word("scheme.sync.fence") == "system",
        config.word("scheme.sync.poll") == "each",
    )
    return sync_plan(job, deps, settings, config.encoded())


def sync_plan(
    job: Job,
    deps: Dependences,
    settings: SyncSettings,
    values: Mapping[str, int],
    joins: Sequence[bool] | None = None,
) -> LaunchPlan:
    """Return the launches of a job under these settings; ``values``: encoded parameters.

    ``joins``: which kernels start after all before have ended; None: as marks and settings say.
    Raises WorkloadError for several streams, or if no two kernels can be synchronised by their marks.
    """
    if len({k.stream for k in job.kernels}) > 1:
        raise WorkloadError("schemes that wait inside the program take jobs of one stream")
    whole = settings.wait_whole_kernels
    if joins is not None:
        edges = KernelEdges(list(joins), [{} for _ in joins])
    else:
        edges = whole_kernel_edges(job) if whole else producer_edges(job, deps, settings.policy)
    if joins is None and (all(edges.after_all) or (settings.policy and not any(edges.producers))):
        raise WorkloadError(edges.reason or "no program says where it would wait")
    table = SemaphoreTable()
    output = output_semaphores(job, edges, settings.policy, table)
    count = len(job.kernels)
    started = [0] * count
    for index, kernel in enumerate(job.kernels):
        gated = settings.launch == "streams" and index + 1 < count and not edges.after_all[index + 1]
        need = (kernel.tbs if settings.gate == "all" else 1) if gated and settings.gate != "none" else 0
        if need or settings.look_up_tile or has_tb_waits(kernel):
            started[index] = table.add(_own_semaphores(kernel, need))
    known: dict[object, Program | RecordedProgram] = {}
    kernels: list[Kernel] = []
    bases: list[tuple[int, int, int, int]] = []
    for index, kernel in enumerate(job.kernels):
        mine = edges.producers[index]
        reads = tuple(
            (tuple(dict.fromkeys(p.arg for p in edge.inputs)), output[n][1]) for n, edge in mine.items()
        )
        follows = index + 1 < count and not edges.after_all[index + 1]
        use = _KernelSync(settings, output.get(index), reads, follows, edges.after_all[index])
        if marks_of(kernel) or (whole and may_wait(kernel)):
            kernel = replace(kernel, program=use.applied(kernel, values, known))
        kernels.append(kernel)
        firsts = [first_semaphore(output[n][1], edge.row_offset, kernel.name) for n, edge in mine.items()]
        firsts += [0, 0]
        bases.append((output[index][1].first if index in output else 0, firsts[0], firsts[1], started[index]))
    return _launched(job, edges, kernels, bases, table, settings, values)


def _own_semaphores(kernel: Kernel, started: int) -> NDArray[np.int64]:
    """Return the posts needed by the semaphores from a kernel's STARTED on; ``started``: TBs to wait for."""
    gx, gy, gz = kernel.grid
    tiles = (
        np.tile(np.array([0] + [1] * gz, np.int64), gx * gy)
        if waits_along_z(kernel)
        else np.zeros(0, np.int64)
    )
    if kernel.tb_semaphores is not None:
        tiles = kernel.tb_semaphores
    return np.concatenate((np.array([started, 0], np.int64), tiles))


def _turn_semaphore(kernel: Kernel, op: Op, after: int) -> Sem:
    """Return the semaphore of a TB's turn along z (``after`` = 0), or of the next TB's turn (1)."""
    if op.sem is not None:
        return replace(op.sem, first=op.sem.first + TILE_TURNS, base=STARTED)
    gx, _, gz = kernel.grid
    return Sem(Affine(by=1), Affine(bx=gz + 1, bz=1), 1, 1, gx * (gz + 1), TILE_TURNS + after, STARTED)


def intra_kernel_plan(job: Job, values: Mapping[str, int]) -> LaunchPlan | None:
    """Return the launches of a job whose kernels have intra-kernel waits alone; None: it has none."""
    if not any(has_tb_waits(kernel) for kernel in job.kernels):
        return None
    table, count = SemaphoreTable(), len(job.kernels)
    made = LaunchPlan(
        job,
        [0] * count,
        [],
        np.zeros(0, np.uint32),
        [0] * count,
        [],
        list(range(count)),
        intra_kernel_only=True,
    )
    launched, known = [], dict[object, Program | RecordedProgram]()
    for kernel in job.kernels:
        first = table.add(_own_semaphores(kernel, 0)) if has_tb_waits(kernel) else 0
        made.semaphore_bases.append((0, 0, 0, first))
        use = _KernelSync(SyncSettings(), None, (), False, True)
        program = use.applied(kernel, values, known) if has_tb_waits(kernel) else kernel.program
        launched.append(replace(kernel, program=program))
    made.job, made.posts_needed = replace(job, kernels=launched), table.array()
    made.cooperative = [int(kernel.cooperative) for kernel in launched]
    return made


@dataclass(frozen=True, slots=True)
class _KernelSync:
    """Replaces the marks of one kernel by polls, posts and triggers.

    ``output``: (argument, semaphores) of its tiles; ``reads``: (arguments, semaphores) of each producer;
    ``joins``: it starts after all earlier kernels have ended.
    """

    settings: SyncSettings
    output: tuple[int, TileSemaphores] | None
    reads: tuple[tuple[tuple[int, ...], TileSemaphores], ...]
    follows: bool  # the next kernel may start before this one has ended
    joins: bool

    def _key(self, kernel: Kernel) -> object:
        shape = tuple((c.rows, c.cols, c.stride, c.shift, c.wrap) for _, c in self.reads)
        mine = self.output and (
            self.output[0],
            self.output[1].rows,
            self.output[1].cols,
            self.output[1].stride,
            self.output[1].shift,
            self.output[1].wrap,
        )
        which = tuple(args for args, _ in self.reads)
        return id(kernel.program), kernel.grid, shape, mine, which, self.follows, self.joins

    def applied(
        self, kernel: Kernel, values: Mapping[str, int], known: dict[object, Program | RecordedProgram]
    ) -> Program | RecordedProgram:
        """Return the program with waits and posts; launches that differ only in semaphore bases share it."""
        key = self._key(kernel)
        if key not in known:
            program = rewrite_program(kernel.program, lambda ops: self._ops(ops, kernel, values), kernel.name)
            if self.settings.spread_tbs and not self.joins and program.smem:
                program = replace(program, smem=spread_smem(kernel, values))
            known[key] = program
        return known[key]

    def _ops(self, ops: Ops, kernel: Kernel, values: Mapping[str, int]) -> Ops:
        front = Code()
        trigger = self.settings.launch in ("pdl", "graph") and self.follows and not self.settings.placed
        if trigger and not self.settings.trigger_late:
            front.launch_dependents()
        if self.settings.launch == "streams" and self.follows and self.settings.gate != "none":
            front.post(Sem(base=STARTED), fence=False)
        if self.settings.look_up_tile:
            # two round trips: an atomic on the counter, a load of the table; all warps wait for them
            front.poll(Sem(base=STARTED, first=TILE_COUNTER))
            front.poll(Sem(base=STARTED, first=TILE_COUNTER))
        if self.settings.wait_whole_kernels:
            front.grid_dependency_wait()
        hoisted = self._first(ops) if self.settings.wait_early else None
        begun = False

        def wait(op: Op) -> list[Op]:
            mine = [
                poll
                for base, (args, found) in enumerate(self.reads)
                if op.tile is not None and op.tile.arg in args
                for poll in poll_ops(op, found, base + 1, kernel.name)
            ]
            return [poll_without_lookahead(each) for each in mine] if self.settings.poll_each else mine

        def change(op: Op) -> Sequence[Op] | None:
            nonlocal begun
            if op.kind != OP["MARK"]:
                return None
            if hoisted is not None and op.mark == "loads" and not begun:
                begun = True
                return wait(hoisted)
            if hoisted is not None and op is hoisted:
                if not begun:
                    raise WorkloadError(
                        f"kernel {kernel.name}: its program does not say where its loads begin"
                    )
                return ()
            if op.mark == "main_loop_end" and trigger and self.settings.trigger_late:
                code = Code()
                code.launch_dependents()
                return code.ops
            if op.mark == "tb_wait":
                code = Code()
                code.poll(_turn_semaphore(kernel, op, 0), level=op.level)
                return code.ops
            if op.mark == "tb_signal":
                return publish_ops(ops, _turn_semaphore(kernel, op, 1), op.level)
            part = op.tile
            if op.mark == "input":
                return wait(op)
            if op.mark == "output" and part is not None and self.output and part.arg == self.output[0]:
                found = self.output[1]
                sem = Sem(
                    found.shifted(part.row), part.col, found.rows, found.cols, found.stride, wrap=found.wrap
                )
                return delay_posts(publish_ops(ops, sem, op.level), self._extra(values))
            return ()

        return replace_ops(ops, change, front.ops)

    def _first(self, ops: Ops) -> Op | None:
        """Return the first mark of an input that another kernel makes."""
        args = [arg for each, _ in self.reads for arg in each]
        marked = (op for op in ops if op.mark == "input" and op.tile is not None and op.tile.arg in args)
        return next(marked, None)

    def _extra(self, values: Mapping[str, int]) -> int:
        """Return the cycles that a system-wide fence takes beyond a device-wide one."""
        return (
            max(0, values["gpu.sync.fence_system"] - values["gpu.sync.fence"])
            if self.settings.fence_system
            else 0
        )


def spread_smem(kernel: Kernel, values: Mapping[str, int]) -> int:
    """Return the bytes of shared memory a TB at which an SM holds no more than an even share of the TBs."""
    most, held = values["gpu.sm.smem"], occupancy(kernel, values)
    share = min(held, -(-kernel.tbs // values["gpu.sms"]))
    extra = allocated_smem(kernel, values) - kernel.program.smem
    if share == held:
        return kernel.program.smem
    return max(kernel.program.smem, (int((most - extra) / (share + 1) / 1024) + 1) * 1024)


def gate_program() -> Program:
    """Return the program of a gate kernel, which waits until TBs of another kernel have started."""
    code = Code()
    code.poll(Sem(base=1))
    code.exit()
    return Program("gate", (tuple(code.ops),), 1, 16, 0, 0)


def _launched(
    job: Job,
    edges: KernelEdges,
    kernels: list[Kernel],
    bases: list[tuple[int, int, int, int]],
    table: SemaphoreTable,
    settings: SyncSettings,
    values: Mapping[str, int],
) -> LaunchPlan:
    """Return the launches: programmatic ones, or two streams with gate kernels between."""
    made = LaunchPlan(job, [], [], table.array(), [], [])
    launched: list[Kernel] = []
    program = gate_program()

    def add(
        kernel: Kernel, sems: tuple[int, int, int, int], preds: Iterable[int], early: bool = False
    ) -> None:
        made.preds.append(tuple(sorted(preds)))
        made.programmatic.append(int(early))
        made.semaphore_bases.append(sems)
        launched.append(kernel)

    begin, side = 0, 0  # first launch that may still run; the stream of the next kernel
    last: list[tuple[int, ...]] = [(), ()]  # what the next launch of each stream waits for
    for index, kernel in enumerate(kernels):
        if edges.after_all[index]:
            here = len(launched)
            made.launch_of_kernel.append(here)
            add(replace(kernel, stream=0), bases[index], range(begin, here))
            # the second stream forks before it
            begin, side, last = here, 1, [(here,), made.preds[here]]
        elif settings.launch == "streams" and settings.gate == "none":
            made.launch_of_kernel.append(len(launched))
            add(replace(kernel, stream=side), bases[index], last[side])
            last[side] = (len(launched) - 1,)
            side = 1 - side
        elif settings.launch == "streams":
            wait = Kernel(f"gate {kernel.name}", program, (1, 1, 1), (), (), side)
            add(wait, (0, bases[index - 1][STARTED], 0, 0), last[side])
            made.launch_of_kernel.append(len(launched))
            add(replace(kernel, stream=side), bases[index], (len(launched) - 1,))
            last[side] = (len(launched) - 1,)
            side = 1 - side
        else:
            made.launch_of_kernel.append(len(launched))
            add(kernel, bases[index], (len(launched) - 1,), bool(settings.launch))
    made.job = replace(job, kernels=launched)
    made.cooperative = [int(kernel.cooperative) for kernel in launched]
    # waiting TBs must not take the slots of TBs that they wait for. With full gates the second stream has the
    # lower priority. Without, a third kernel may come before all TBs of the second have started: the older
    # kernel goes first
    made.priority = [k.stream * (settings.gate == "all") for k in launched]
    if settings.launch in ("pdl", "graph"):
        way = "early_graph" if settings.launch == "graph" else "early"
        made.order = {"early": values[f"gpu.cp.{way}_gap"], "in_flight": values[f"gpu.cp.{way}_depth"]}
    made.order["refetch"] = values["gpu.sm.refetch"] if settings.launch in ("pdl", "streams") else 0
    return made
