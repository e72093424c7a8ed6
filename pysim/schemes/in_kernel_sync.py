"""Schemes that wait inside the program: what they make of a job's marks, semaphores and launches.

A template says once what its loads read and its stores write (``Code.mark_input``, ``Code.mark_output``)
and where its main loop ends (``Code.mark_main_loop_end``). A scheme turns these marks into polls and posts
of semaphores, one a tile or one a row of tiles of a producer's output, or into nothing, and adds triggers
and waits of programmatic dependent launch. The forms are those of CUDA (griddepcontrol, stream priorities)
and of cuSync (Jangda et al., CGO 2024).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.producer_tiles import producer_edges
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

STARTED = 3  # which of a launch's semaphores; 0: its own, 1 and 2: of the kernels that it reads from
# behind STARTED, in the same stretch: what stands for the counter and the table of tiles, and from TURNS on,
# for each tile, whose turn it is
ORDER, TURNS = 1, 2


@dataclass(frozen=True, slots=True)
class Settings:
    """What a scheme and its options ask for."""

    launch: str = ""  # pdl, graph (programmatic edges), streams; "": one kernel after another
    depend: bool = False  # each TB waits until the kernels before have ended
    policy: str = ""  # semaphores: tile, row, strided, conv; "": none
    late: bool = False
    spread: bool = False
    gate: str = "all"  # of streams: all, first, none
    order: bool = False  # each TB looks its tile up
    early: bool = False  # wait before the first load of anything
    system: bool = False  # fence the system
    each: bool = False  # poll each semaphore


def semaphore_plan(
    name: str, launch: str, job: Job, deps: Dependences, config: Config, depend: bool = False
) -> LaunchPlan:
    """Return the launches under ``scheme.sync``.

    ``launch``: pdl, graph, streams, or empty: one kernel after another; ``depend``: TBs wait for whole
    kernels, not for semaphores; ``name``: of the scheme, for errors.
    """
    if launch in ("pdl", "graph") and not config["scheme.hypothetical"]:
        major, minor = config.device.compute_capability
        if major < 9:
            raise ConfigError(
                f"{name} needs compute capability 9.0, {config.device.name} has {major}.{minor}"
                " (--hypothetical runs it all the same)"
            )
    settings = Settings(
        launch,
        depend,
        "" if depend else config.word("scheme.sync.policy"),
        config.word("scheme.sync.trigger") == "late",
        bool(config["scheme.sync.spread"]),
        config.word("scheme.sync.gate"),
        bool(config["scheme.sync.order"]),
        config.word("scheme.sync.wait") == "early",
        config.word("scheme.sync.fence") == "system",
        config.word("scheme.sync.poll") == "each",
    )
    return plan(job, deps, settings, config.encoded())


def plan(job: Job, deps: Dependences, settings: Settings, values: Mapping[str, int]) -> LaunchPlan:
    """Return how a scheme with these settings launches a job; refuse jobs that it does not apply to."""
    if len({k.stream for k in job.kernels}) > 1:
        raise WorkloadError("schemes that wait inside the program take jobs of one stream")
    edges = producer_edges(job, deps, settings.policy)
    if all(edges.after_all) or (settings.policy and not any(edges.producers)):
        raise WorkloadError(edges.reason or "no program says where it would wait")
    table = SemaphoreTable()
    output = output_semaphores(job, edges, settings.policy, table)
    count = len(job.kernels)
    started = [0] * count
    for index, kernel in enumerate(job.kernels):
        gated = settings.launch == "streams" and index + 1 < count and not edges.after_all[index + 1]
        need = (kernel.tbs if settings.gate == "all" else 1) if gated and settings.gate != "none" else 0
        if need or settings.order or has_tb_waits(kernel):
            started[index] = table.add(_own(kernel, need))
    known: dict[object, Program | RecordedProgram] = {}
    kernels: list[Kernel] = []
    bases: list[tuple[int, int, int, int]] = []
    for index, kernel in enumerate(job.kernels):
        mine = edges.producers[index]
        reads = tuple(
            (tuple(dict.fromkeys(p.arg for p in edge.inputs)), output[n][1]) for n, edge in mine.items()
        )
        follows = index + 1 < count and not edges.after_all[index + 1]
        use = _Use(settings, output.get(index), reads, follows, edges.after_all[index])
        if marks_of(kernel):
            kernel = replace(kernel, program=use.applied(kernel, values, known))
        kernels.append(kernel)
        firsts = [first_semaphore(output[n][1], edge.row_offset, kernel.name) for n, edge in mine.items()]
        firsts += [0, 0]
        bases.append((output[index][1].first if index in output else 0, firsts[0], firsts[1], started[index]))
    return _launched(job, edges, kernels, bases, table, settings, values)


def _own(kernel: Kernel, started: int) -> NDArray[np.int64]:
    """Return what the semaphores from a kernel's STARTED on need."""
    gx, gy, gz = kernel.grid
    tiles = (
        np.tile(np.array([0] + [1] * gz, np.int64), gx * gy)
        if waits_along_z(kernel)
        else np.zeros(0, np.int64)
    )
    if kernel.tb_semaphores is not None:
        tiles = kernel.tb_semaphores
    return np.concatenate((np.array([started, 0], np.int64), tiles))


def _turn(kernel: Kernel, op: Op, behind: int) -> Sem:
    """Return the semaphore on which a TB of a kernel waits for its turn, or ``behind`` it the next one."""
    if op.sem is not None:
        return replace(op.sem, first=op.sem.first + TURNS, base=STARTED)
    gx, _, gz = kernel.grid
    return Sem(Affine(by=1), Affine(bx=gz + 1, bz=1), 1, 1, gx * (gz + 1), TURNS + behind, STARTED)


def turn_plan(job: Job, values: Mapping[str, int]) -> LaunchPlan | None:
    """Return the launches of a scheme that does not wait inside, where a kernel's TBs wait for each other."""
    if not any(has_tb_waits(kernel) for kernel in job.kernels):
        return None
    table, count = SemaphoreTable(), len(job.kernels)
    made = LaunchPlan(
        job, [0] * count, [], np.zeros(0, np.uint32), [0] * count, [], list(range(count)), turns=True
    )
    launched, known = [], dict[object, Program | RecordedProgram]()
    for kernel in job.kernels:
        first = table.add(_own(kernel, 0)) if has_tb_waits(kernel) else 0
        made.semaphores.append((0, 0, 0, first))
        use = _Use(Settings(), None, (), False, True)
        program = use.applied(kernel, values, known) if has_tb_waits(kernel) else kernel.program
        launched.append(replace(kernel, program=program))
    made.job, made.needs = replace(job, kernels=launched), table.array()
    made.cooperative = [int(kernel.cooperative) for kernel in launched]
    return made


@dataclass(frozen=True, slots=True)
class _Use:
    """What one kernel's marks become."""

    settings: Settings
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
        """Return the kernel's program with waits and posts; launches that differ in bases only share it."""
        key = self._key(kernel)
        if key not in known:
            program = rewrite_program(kernel.program, lambda ops: self._ops(ops, kernel, values), kernel.name)
            if self.settings.spread and not self.joins and program.smem:
                program = replace(program, smem=spread_smem(kernel, values))
            known[key] = program
        return known[key]

    def _ops(self, ops: Ops, kernel: Kernel, values: Mapping[str, int]) -> Ops:
        front = Code()
        trigger = self.settings.launch in ("pdl", "graph") and self.follows
        if trigger and not self.settings.late:
            front.launch_dependents()
        if self.settings.launch == "streams" and self.follows and self.settings.gate != "none":
            front.post(Sem(base=STARTED), fence=False)
        if self.settings.order:
            # an atomic on the counter, then a load of the table: two round trips, told to all warps
            front.poll(Sem(base=STARTED, first=ORDER))
            front.poll(Sem(base=STARTED, first=ORDER))
        if self.settings.depend:
            front.grid_dependency_wait()
        hoisted = self._first(ops) if self.settings.early else None
        begun = False

        def wait(op: Op) -> list[Op]:
            mine = [
                poll
                for base, (args, found) in enumerate(self.reads)
                if op.tile is not None and op.tile.arg in args
                for poll in poll_ops(op, found, base + 1, kernel.name)
            ]
            return [poll_without_lookahead(each) for each in mine] if self.settings.each else mine

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
            if op.mark == "main_loop_end" and trigger and self.settings.late:
                code = Code()
                code.launch_dependents()
                return code.ops
            if op.mark == "tb_wait":
                code = Code()
                code.poll(_turn(kernel, op, 0), level=op.level)
                return code.ops
            if op.mark == "tb_signal":
                return publish_ops(ops, _turn(kernel, op, 1), op.level)
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
        """Return the first mark of what other kernels make."""
        args = [arg for each, _ in self.reads for arg in each]
        marked = (op for op in ops if op.mark == "input" and op.tile is not None and op.tile.arg in args)
        return next(marked, None)

    def _extra(self, values: Mapping[str, int]) -> int:
        """Return the cycles that a fence of the system takes longer than one of the device."""
        return (
            max(0, values["gpu.sync.fence_system"] - values["gpu.sync.fence"]) if self.settings.system else 0
        )


def spread_smem(kernel: Kernel, values: Mapping[str, int]) -> int:
    """Return the shared memory of a TB with which no more TBs than an even share fit on an SM."""
    most, held = values["gpu.sm.smem"], occupancy(kernel, values)
    share = min(held, -(-kernel.tbs // values["gpu.sms"]))
    extra = allocated_smem(kernel, values) - kernel.program.smem
    if share == held:
        return kernel.program.smem
    return max(kernel.program.smem, (int((most - extra) / (share + 1) / 1024) + 1) * 1024)


def gate() -> Program:
    """Return the program of a kernel that waits until all TBs of another have started."""
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
    settings: Settings,
    values: Mapping[str, int],
) -> LaunchPlan:
    """Return the launches: programmatic ones, or two streams with gates between."""
    made = LaunchPlan(job, [], [], table.array(), [], [])
    launched: list[Kernel] = []
    program = gate()

    def add(
        kernel: Kernel, sems: tuple[int, int, int, int], preds: Iterable[int], early: bool = False
    ) -> None:
        made.preds.append(tuple(sorted(preds)))
        made.early.append(int(early))
        made.semaphores.append(sems)
        launched.append(kernel)

    begin, side = 0, 0  # the first launch that has not surely ended; which of two streams comes next
    last: list[tuple[int, ...]] = [(), ()]  # what the next launch of each stream waits for
    for index, kernel in enumerate(kernels):
        if edges.after_all[index]:
            here = len(launched)
            made.number.append(here)
            add(replace(kernel, stream=0), bases[index], range(begin, here))
            # the second stream forks before it
            begin, side, last = here, 1, [(here,), made.preds[here]]
        elif settings.launch == "streams" and settings.gate == "none":
            made.number.append(len(launched))
            add(replace(kernel, stream=side), bases[index], last[side])
            last[side] = (len(launched) - 1,)
            side = 1 - side
        elif settings.launch == "streams":
            wait = Kernel(f"gate {kernel.name}", program, (1, 1, 1), (), (), side)
            add(wait, (0, bases[index - 1][STARTED], 0, 0), last[side])
            made.number.append(len(launched))
            add(replace(kernel, stream=side), bases[index], (len(launched) - 1,))
            last[side] = (len(launched) - 1,)
            side = 1 - side
        else:
            made.number.append(len(launched))
            add(kernel, bases[index], (len(launched) - 1,), bool(settings.launch))
    made.job = replace(job, kernels=launched)
    made.cooperative = [int(kernel.cooperative) for kernel in launched]
    # what waits gives way to what it waits for: behind full gates the second stream has the lower priority;
    # else a third kernel may come while TBs of the second have not started, and the older goes first
    made.priority = [k.stream * (settings.gate == "all") for k in launched]
    if settings.launch in ("pdl", "graph"):
        way = "early_graph" if settings.launch == "graph" else "early"
        made.order = {"early": values[f"gpu.cp.{way}_gap"], "in_flight": values[f"gpu.cp.{way}_depth"]}
    made.order["refetch"] = values["gpu.sm.refetch"] if settings.launch in ("pdl", "streams") else 0
    return made
