"""Placements of programmatic dependent launch in simulation: what they take, and what the oracle says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from pysim.clock import Clock
from pysim.engine.session import Session
from pysim.engine.simulation import Sim
from pysim.errors import ConfigError, DependenceError
from pysim.schemes.barriers import StreamOrder
from pysim.schemes.in_kernel_sync import SyncSettings, sync_plan
from pysim.schemes.registry import Choice, parse_scheme

from .places import with_pdl
from .plan import Placed

if TYPE_CHECKING:
    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job, Kernel
    from pysim.program.recorded_program import RecordedProgram
    from pysim.program.warp_program import Program
    from pysim.schemes.launch_plan import LaunchPlan

LATE_US = 20.0  # that a kernel is late by, so that a race shows; longer than the launch of a kernel takes
_RECORDS = 1 << 12
_TBS = re.compile(r"TB (\d+) of kernel (\d+)")


@dataclass(frozen=True)
class PlacedLaunch(StreamOrder):
    """Programmatic dependent launch with waits and triggers at given places.

    ``placed``: one a kernel; ``late``: of a kernel, cycles that its warps wait behind their trigger.
    """

    waits_inside: ClassVar[bool] = True

    placed: Sequence[Placed] = ()
    late: dict[int, int] = field(default_factory=dict)

    def launch_plan(
        self, options: Sequence[str], job: Job, deps: Dependences, config: Config
    ) -> LaunchPlan | None:
        """Return programmatic launches."""
        # launches that share a program, places and lateness share the changed program, too
        known: dict[object, Program | RecordedProgram] = {}
        kernels: list[Kernel] = []
        for number, (kernel, launch) in enumerate(zip(job.kernels, self.placed, strict=True)):
            late = self.late.get(number, 0)
            cuts = tuple(launch.waits.items()), tuple(launch.triggers.items()), tuple(launch.moved.items())
            key = (id(kernel.program), cuts, launch.trigger_first, late)
            if any(cuts) or late:
                if key not in known:
                    known[key] = with_pdl(
                        kernel, launch.waits, launch.triggers, launch.trigger_first, late, launch.moved
                    )
                kernel = replace(kernel, program=known[key])
            kernels.append(kernel)
        settings = SyncSettings("pdl", placed=True)
        joins = [not launch.early for launch in self.placed]
        return sync_plan(replace(job, kernels=tuple(kernels)), deps, settings, config.encoded(), joins)


@dataclass(frozen=True, slots=True)
class Violation:
    """What the oracle reported: its text, and kernel and TB of the later and of the earlier access.

    ``late``: the kernel that was held up for it; None: none was.
    """

    text: str
    pairs: tuple[tuple[int, int], ...]
    late: int | None = None


class Simulated:
    """Runs of one job on one GPU.

    Raises ConfigError before compute capability 9.0, unless ``scheme.hypothetical`` is set.
    """

    def __init__(self, job: Job, config: Config, threads: int = 1) -> None:
        if not config["scheme.hypothetical"]:
            major, minor = config.device.compute_capability
            if major < 9:
                raise ConfigError(
                    f"programmatic dependent launch needs compute capability 9.0, {config.device.name} has"
                    f" {major}.{minor} (--set scheme.hypothetical=1 runs it all the same)"
                )
        self.session = Session(config, job, threads, Clock())
        self.config = config

    def _run(self, choice: Choice, oracle: bool) -> float:
        config = self.config.replaced({**choice.pins, "sim.oracle": int(oracle)})
        times = [0.0] * len(self.session.job.kernels)
        lowered, _ = self.session.lowered(choice, config, times)
        with Sim(lowered) as sim:
            sim.run(self.session.threads, 0, _RECORDS, False, lambda done: None, lambda: False)
            return int(sim.totals().end) / 1024e3

    def plain_us(self) -> float:
        """Return the time without programmatic launches, in us."""
        return self._run(parse_scheme("stream"), False)

    def _choice(self, placed: Sequence[Placed], late: dict[int, int] | None = None) -> Choice:
        pins = (("scheme.sync.launch", "pdl"),)
        scheme = PlacedLaunch("pdl", "", "gpu.cp.stream_gap", pins, placed=tuple(placed), late=late or {})
        return Choice(scheme)

    def time_us(self, placed: Sequence[Placed]) -> float:
        """Return the time of a placement, in us."""
        return self._run(self._choice(placed), False)

    def violation(self, placed: Sequence[Placed], late: int | None = None) -> Violation | None:
        """Return what the oracle reports of a placement; None: nothing.

        ``late``: a kernel whose TBs wait ``LATE_US`` behind their trigger.
        """
        cycles = round(LATE_US * self.config.number("gpu.clock"))
        try:
            self._run(self._choice(placed, {} if late is None else {late: cycles}), True)
        except DependenceError as error:
            found = tuple((int(kernel), int(tb)) for tb, kernel in _TBS.findall(str(error)))
            return Violation(str(error), found, late)
        return None

    def proof(self, placed: Sequence[Placed], before: int) -> Violation | None:
        """Return a violation of a placement: as it is timed, or if kernel ``before`` is late."""
        return self.violation(placed) or self.violation(placed, before)
