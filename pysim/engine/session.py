"""State that the runs of one call share: dependences, lowered programs, bounds and contracted jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pysim.analysis.lower_bound import Bounds, Guess, SchemeTraits, bounds, raw_estimate, scheme_traits
from pysim.analysis.program_cost import ProgramCost
from pysim.analysis.tb_cost import kept_in_l1, load_facts, lone_kernels, program_costs
from pysim.analysis.traffic import DramTraffic, dram_traffic
from pysim.dependence.dependences import Dependences, dependences
from pysim.errors import WorkloadError
from pysim.program.architecture import other_architecture
from pysim.program.definition_check import check_job
from pysim.program.memory_budget import claim_launches
from pysim.program.occupancy import carveouts
from pysim.program.ops import LoweredPrograms, lower_programs
from pysim.program.pattern_check import check_patterns
from pysim.schemes.prologue import job_without_prologues
from pysim.schemes.registry import Choice, parse_scheme

from .lower import Lowered, lower
from .simulation import Sim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pysim.analysis.program_cost import LoadFacts
    from pysim.clock import Clock
    from pysim.machine.config import Config
    from pysim.program.job import Job

    from .checkpoints import Checkpoints
    from .replay import Contraction
    from .user_rule import UserRule

    _Machine = tuple[tuple[str, int], ...]  # parameters by path, sorted


def _lower_code(job: Job, config: Config) -> LoweredPrograms:
    """Return the programs of a job for the GPU of a configuration."""
    values, gpu = config.encoded(), (config.device.sm, config.device.mma_rate)
    return lower_programs(job, values["gpu.sm.block_max"], values, gpu)


class Session:
    """Caches that the runs of one call share."""

    def __init__(
        self, config: Config, job: Job, threads: int, clock: Clock, deps: Dependences | None = None
    ) -> None:
        if not job.kernels:
            raise WorkloadError(f"job {job.name} has no kernels")
        claim_launches(len(job.kernels), f"job {job.name}", sum(len(k.accesses) for k in job.kernels))
        if deps is None:
            check_job(job)
            check_patterns(job)
        # schemes get the kernels as a tuple: what one of them does must not change what others see
        job = replace(job, kernels=tuple(job.kernels), events=tuple(job.events))
        self.config, self.job, self.threads, self.clock = config, job, threads, clock
        self.deps: Dependences = dependences(job) if deps is None else deps
        self.tbs = sum(k.tbs for k in job.kernels)
        self.note = other_architecture(job, config.device.sm)  # for each of its runs
        self.rule: UserRule | None = None  # dispatch rule of the user
        self.checkpoints: Checkpoints | None = None
        self.programs: dict[tuple[int, ...], LoweredPrograms] = {}
        self.contractions: dict[int, Contraction | None] = {}
        self.traffic_by_l2: dict[int, DramTraffic] = {}  # by bytes of L2
        self.sessions: dict[int, Session] = {}
        # by the parameters of the machine, and whether L1 keeps what was written
        self.program_costs_by_gpu: dict[tuple[_Machine, bool], tuple[LoweredPrograms, list[ProgramCost]]] = {}
        self.raw_estimates: dict[_Machine, Guess] = {}
        self.bounds_cache: dict[tuple[_Machine, int, SchemeTraits], Bounds] = {}

    def lowered(
        self, choice: Choice, config: Config, times: Sequence[float]
    ) -> tuple[Lowered, LoweredPrograms]:
        """Return the core's tables under a scheme; ``times``: of each kernel on an empty GPU, us."""
        values = config.encoded()
        plan = choice.launch_plan(self.job, self.deps, config)
        key = tuple(value for path, value in sorted(values.items()) if path.startswith("gpu.sm."))
        if plan is not None:
            job, programs = plan.job, _lower_code(plan.job, config)
            first: dict[int, float] = {}
            for number, time in zip(plan.launch_of_kernel, times, strict=False):
                first.setdefault(number, time)
            times = [first.get(k, 0.0) for k in range(len(job.kernels))]
        else:
            if key not in self.programs:
                self.programs[key] = _lower_code(self.job, config)
            job, programs = self.job, self.programs[key]
        each = carveouts(job.kernels, values, config.carveouts)
        return lower(job, self.deps, choice, values, programs, each, times, plan), programs

    def contracted(self, made: Contraction) -> Session:
        """Return the session of the contracted job, which is this one where a job was made so."""
        if made.job is self.job:
            return self
        if id(made) not in self.sessions:
            self.sessions[id(made)] = Session(self.config, made.job, self.threads, self.clock, made.deps)
        return self.sessions[id(made)]

    def _floors_after_prologues(self, values: dict[str, int], config: Config) -> list[NDArray[np.float64]]:
        """Return, for each kernel, the least cycles of a TB of each variant after its prologue."""
        job = job_without_prologues(self.job)
        programs = _lower_code(job, config)
        each = carveouts(job.kernels, values, config.carveouts)
        none = [0.0] * len(job.kernels)
        with Sim(lower(job, self.deps, parse_scheme("stream"), values, programs, each, none)) as sim:
            costs = program_costs(sim.sim, programs)
        return [costs[number].floor for number in programs.index]

    def costs(
        self, config: Config, loads: Sequence[tuple[int, int, int]] = ()
    ) -> tuple[LoweredPrograms, list[ProgramCost]]:
        """Return the lowered programs of the job and the cost of their TBs; ``loads``: of ``load_facts``."""
        plain = config.replaced({"scheme.priority": "oldest"})
        with self.clock.phase("load"):
            lowered, programs = self.lowered(parse_scheme("stream"), plain, [0.0] * len(self.job.kernels))
            made = Sim(lowered)
        with made as sim:
            values = config.encoded()
            latency, away = values["gpu.l2.latency"], self.traffic(values).args
            lone = lone_kernels(self.deps)
            return programs, program_costs(sim.sim, programs, loads, latency, self.job, values, lone, away)

    def traffic(self, values: Mapping[str, int]) -> DramTraffic:
        """Return the estimated traffic between DRAM and the L2 of encoded parameters."""
        size = values["gpu.l2.size"]
        if size not in self.traffic_by_l2:
            self.traffic_by_l2[size] = dram_traffic(self.job, size)
        return self.traffic_by_l2[size]

    def bounds(self, config: Config, choice: Choice) -> Bounds:
        """Return bound and estimate; schemes with equal traits and machine parameters share them."""
        values = config.encoded()
        family, prologue = scheme_traits(choice, values), values["scheme.prologue"]
        key = tuple(item for item in sorted(values.items()) if not item[0].startswith(("scheme.", "sim.")))
        if (key, prologue, family) not in self.bounds_cache:
            loads = load_facts(self.job)
            programs, costs = self._costs(key, False, config, loads)
            behind = self._floors_after_prologues(values, config) if prologue else None
            # the estimate is the same for all families
            if key not in self.raw_estimates:
                self.raw_estimates[key] = raw_estimate(
                    self.job, self.deps, programs, costs, values, self.traffic(values)
                )
            if family.keeps_l1:
                loads = kept_in_l1(loads)
                programs, costs = self._costs(key, True, config, loads)
            self.bounds_cache[key, prologue, family] = bounds(
                self.job, self.deps, programs, costs, values, family, loads, behind, self.raw_estimates[key]
            )
        return self.bounds_cache[key, prologue, family]

    def _costs(
        self, key: _Machine, keeps_l1: bool, config: Config, loads: Sequence[LoadFacts]
    ) -> tuple[LoweredPrograms, list[ProgramCost]]:
        """Return what programs cost on a machine, from the cache if they are there."""
        if (key, keeps_l1) not in self.program_costs_by_gpu:
            self.program_costs_by_gpu[key, keeps_l1] = self.costs(config, loads)
        return self.program_costs_by_gpu[key, keeps_l1]
