"""What the runs of one call share: dependences, programs, bounds, and the job without what is replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.analysis.lower_bound import Bounds, SchemeTraits, bounds, scheme_traits
from pysim.analysis.program_cost import ProgramCost
from pysim.analysis.tb_cost import load_facts, lone_kernels, program_costs
from pysim.analysis.traffic import args_from_dram
from pysim.dependence.dependences import Dependences, dependences
from pysim.errors import WorkloadError
from pysim.program.architecture import other_architecture
from pysim.program.occupancy import carveout
from pysim.program.ops import LoweredPrograms, lower_programs
from pysim.schemes.prologue import tail_job
from pysim.schemes.registry import Choice, parse_scheme

from .lower import Lowered, lower
from .simulation import Sim

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pysim.clock import Clock
    from pysim.machine.config import Config
    from pysim.program.job import Job

    from .replay import Contraction
    from .user_rule import UserRule


def _lower_code(job: Job, config: Config) -> LoweredPrograms:
    """Return the programs of a job for the GPU of a configuration."""
    values, gpu = config.encoded(), (config.device.sm, config.device.mma_rate)
    return lower_programs(job, values["gpu.sm.block_max"], values, gpu)


class Session:
    """What the runs of one call share."""

    def __init__(
        self, config: Config, job: Job, threads: int, clock: Clock, deps: Dependences | None = None
    ) -> None:
        if not job.kernels:
            raise WorkloadError(f"job {job.name} has no kernels")
        self.config, self.job, self.threads, self.clock = config, job, threads, clock
        self.deps: Dependences = dependences(job) if deps is None else deps
        self.tbs = sum(k.tbs for k in job.kernels)
        self.note = other_architecture(job, config.device.sm)  # for each of its runs
        self.rule: UserRule | None = None  # by which TBs are dispatched
        self.programs: dict[tuple[int, ...], LoweredPrograms] = {}
        self.parts: dict[int, Contraction | None] = {}
        self.away: dict[int, list[tuple[int, float]]] = {}  # by the size of L2
        self.sessions: dict[int, Session] = {}
        self.priced: dict[
            tuple[tuple[str, int], ...], tuple[LoweredPrograms, list[ProgramCost]]
        ] = {}  # by the machine
        self.known: dict[tuple[tuple[tuple[str, int], ...], int, SchemeTraits], Bounds] = {}

    def lowered(
        self, choice: Choice, config: Config, times: Sequence[float]
    ) -> tuple[Lowered, LoweredPrograms]:
        """Return the core's tables under a scheme; ``times``: what each kernel takes alone, us."""
        values = config.encoded()
        plan = choice.launch_plan(self.job, self.deps, config)
        key = tuple(value for path, value in sorted(values.items()) if path.startswith("gpu.sm."))
        if plan is not None:
            job, programs = plan.job, _lower_code(plan.job, config)
            times = [
                times[plan.number.index(k)] if k in plan.number else 0.0 for k in range(len(job.kernels))
            ]
        else:
            if key not in self.programs:
                self.programs[key] = _lower_code(self.job, config)
            job, programs = self.job, self.programs[key]
        each = [carveout(k, values, config.carveouts) for k in job.kernels]
        return lower(job, self.deps, choice, values, programs, each, times, plan), programs

    def inside(self, made: Contraction) -> Session:
        """Return a session of the job without what is replayed."""
        if id(made) not in self.sessions:
            self.sessions[id(made)] = Session(self.config, made.job, self.threads, self.clock, made.deps)
        return self.sessions[id(made)]

    def _behind_prologues(self, values: dict[str, int], config: Config) -> list[NDArray[np.float64]]:
        """Return, for each kernel, what a TB of each variant takes at least behind its prologue, cycles."""
        job = tail_job(self.job)
        programs = _lower_code(job, config)
        each = [carveout(k, values, config.carveouts) for k in job.kernels]
        none = [0.0] * len(job.kernels)
        with Sim(lower(job, self.deps, parse_scheme("stream"), values, programs, each, none)) as sim:
            costs = program_costs(sim.sim, programs)
        return [costs[number].floor for number in programs.index]

    def costs(
        self, config: Config, loads: Sequence[tuple[int, int, int]] = ()
    ) -> tuple[LoweredPrograms, list[ProgramCost]]:
        """Return the programs of the job, and what their TBs cost."""
        plain = config.replaced({"scheme.priority": "oldest"})
        with self.clock.phase("load"):
            lowered, programs = self.lowered(parse_scheme("stream"), plain, [0.0] * len(self.job.kernels))
            made = Sim(lowered)
        with made as sim:
            values = config.encoded()
            latency, size = values["gpu.l2.latency"], values["gpu.l2.size"]
            if size not in self.away:
                self.away[size] = args_from_dram(self.job, size)
            lone, away = lone_kernels(self.deps), self.away[size]
            return programs, program_costs(sim.sim, programs, loads, latency, self.job, values, lone, away)

    def bounds(self, config: Config, choice: Choice) -> Bounds:
        """Return bound and estimate; schemes of a family that pin no machine parameter share them."""
        values = config.encoded()
        family, prologue = scheme_traits(choice, values), values["scheme.prologue"]
        key = tuple(item for item in sorted(values.items()) if not item[0].startswith(("scheme.", "sim.")))
        if (key, prologue, family) not in self.known:
            loads = load_facts(self.job)
            if key not in self.priced:
                self.priced[key] = self.costs(config, loads)
            programs, costs = self.priced[key]
            behind = self._behind_prologues(values, config) if prologue else None
            # the estimate is the same for all families
            guess = next((b.raw_estimate for (k, *_), b in self.known.items() if k == key), None)
            self.known[key, prologue, family] = bounds(
                self.job, self.deps, programs, costs, values, family, loads, behind, guess
            )
        return self.known[key, prologue, family]
