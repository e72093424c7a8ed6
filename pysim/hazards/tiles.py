"""Hazards of a job under ``cusync``: TBs that no semaphore orders, and TBs that may hold all slots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.clock import Clock
from pysim.engine.session import Session
from pysim.engine.simulation import Sim
from pysim.errors import DeadlockError, DependenceError
from pysim.program.access_regions import checked_regions
from pysim.program.regions import SECTOR, intersection, union
from pysim.schemes.registry import parse_scheme

from .room import filling_tbs
from .semaphores import SemaphoreCheck, Uncovered, Waits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.machine.config import Config
    from pysim.program.job import Job, Kernel

    Ints = NDArray[np.int64]

_RECORDS = 1 << 12
_SHOWN = 6


@dataclass(slots=True)
class TileVerdict:
    """What was found of a job under a scheme with semaphores.

    ``stuck``: why TBs may wait for ever, one line each; ``relies``: why they do not, as long as a rule of
    dispatch holds; ``oracle``: what a run under the oracle said, if it was asked for.
    """

    scheme: str
    waits: list[Waits]
    stuck: list[str] = field(default_factory=list)
    relies: list[str] = field(default_factory=list)
    oracle: str = ""

    @property
    def unsafe(self) -> bool:
        """Whether something is wrong."""
        return bool(self.stuck) or any(one.uncovered for one in self.waits)


def check_tiles(job: Job, options: str, config: Config, prove: bool, threads: int) -> TileVerdict:
    """Return the hazards of a job under ``cusync:OPTIONS``.

    Raises WorkloadError where the scheme refuses the job, ConfigError for an unknown option.
    """
    choice = parse_scheme(f"cusync:{options}" if options else "cusync")
    config = config.replaced({**choice.pins, "sim.oracle": 1})
    session = Session(config, job, threads, Clock())
    plan = choice.launch_plan(session.job, session.deps, config)
    assert plan is not None
    made = TileVerdict(choice.name, SemaphoreCheck(plan, session.deps).kernels())
    for waits in made.waits:
        kernel = job.kernels[waits.kernel]
        if waits.never:
            which = f"semaphore {waits.never[0]}"
            made.stuck.append(
                f"kernel {waits.kernel} ({kernel.name}): {which} gets fewer posts than it needs"
            )
        launch, gate = (config.word(f"scheme.sync.{name}") for name in ("launch", "gate"))
        if launch == "streams" and gate != "all":
            made.relies += _slots(job, waits, config.encoded())
    if prove:
        made.oracle = "the oracle finds nothing"
        lowered, _ = session.lowered(choice, config, [0.0] * len(job.kernels))
        try:
            with Sim(lowered) as sim:
                sim.run(threads, 0, _RECORDS, False, lambda done: None, lambda: False)
        except (DependenceError, DeadlockError) as error:
            made.oracle = f"in simulation: {error}"
    return made


def _slots(job: Job, waits: Waits, values: Mapping[str, int]) -> list[str]:
    """Return a line for each producer whose TBs may find no room beside those that wait for them."""
    kernel, made = job.kernels[waits.kernel], []
    for number in waits.producers:
        fill = filling_tbs(kernel, job.kernels[number], values)
        if fill is not None and kernel.tbs >= fill:
            made.append(
                f"kernel {waits.kernel} ({kernel.name}): {fill:,} of its {kernel.tbs:,} TBs fill the GPU and"
                f" wait for kernel {number} ({job.kernels[number].name}): no deadlock only if its TBs are"
                " dispatched first"
            )
    return made


def shared_bytes(job: Job, hazard: Uncovered) -> tuple[str, int, int]:
    """Return tensor, first byte and end of the first stretch that the first TBs of a hazard both touch."""
    (tb, other), kernels = hazard.pairs[0], (job.kernels[hazard.after], job.kernels[hazard.before])
    for mine in kernels[0].accesses:
        for theirs in kernels[1].accesses:
            if mine.mode == theirs.mode == "read" or not mine.tensor.overlaps(theirs.tensor):
                continue
            shared = intersection(_sectors(mine, tb), _sectors(theirs, other))
            if len(shared):
                lo, hi = (shared[0] * SECTOR - mine.tensor.address).tolist()
                return mine.tensor.name, max(lo, 0), min(hi, mine.tensor.nbytes)
    return "?", 0, 0


def _sectors(access: Any, tb: int) -> Ints:
    tensor = access.tensor
    row0, row1, col0, col1 = checked_regions(access, np.array([tb], np.int64))[0].tolist()
    start = tensor.address + np.arange(row0, row1, dtype=np.int64) * tensor.pitch + col0 * tensor.item
    end = start + max(0, col1 - col0) * tensor.item
    return union(np.stack([start // SECTOR, -(-end // SECTOR)], axis=1))


def tile_lines(verdict: TileVerdict, job: Job) -> list[str]:
    """Return the verdict as text: one line a kernel that waits, then what is wrong."""
    made: list[str] = []
    kernels: Sequence[Kernel] = job.kernels
    for waits in verdict.waits:
        if not waits.edges and not waits.semaphores:
            continue
        name = f"{waits.kernel} {kernels[waits.kernel].name}"
        after = ", ".join(f"{n} {kernels[n].name}" for n in waits.producers)
        how = (
            f"waits for {after}: {waits.semaphores} semaphores of up to {waits.most} TBs"
            if waits.semaphores
            else "starts after all kernels before it"
        )
        left = sum(len(one.pairs) for one in waits.uncovered)
        state = f"unsafe: {left:,} of {waits.edges:,} TB pairs unordered" if left else "safe"
        made.append(f"{name}  {how}  {state}")
    wrong = [one for waits in verdict.waits for one in waits.uncovered]
    made += [f"  {_hazard_line(one, job)}" for one in wrong[:_SHOWN]]
    made += [f"  and {len(wrong) - _SHOWN} more (--json)"] if len(wrong) > _SHOWN else []
    made += [f"deadlock: {line}" for line in verdict.stuck]
    made += [f"relies on dispatch: {line}" for line in verdict.relies]
    return made + ([verdict.oracle] if verdict.oracle else [])


def _hazard_line(one: Uncovered, job: Job) -> str:
    (tb, other), (tensor, lo, hi) = one.pairs[0], shared_bytes(job, one)
    first, second = (f"kernel {n} ({job.kernels[n].name})" for n in (one.after, one.before))
    return (
        f"{one.kind}: TB {tb} of {first} does not wait for TB {other} of {second}: bytes {lo:,} to {hi:,} of"
        f" {tensor}; {len(one.pairs):,} such pairs"
    )


def tile_dict(verdict: TileVerdict, job: Job) -> dict[str, Any]:
    """Return the verdict as plain values."""
    kernels = []
    for waits in verdict.waits:
        wrong = []
        for one in waits.uncovered:
            tensor, lo, hi = shared_bytes(job, one)
            wrong.append(
                {
                    "kind": one.kind,
                    "before": one.before,
                    "tb_pairs": one.pairs,
                    "tensor": tensor,
                    "first_bytes": [lo, hi],
                }
            )
        kernels.append(
            {
                "kernel": waits.kernel,
                "name": job.kernels[waits.kernel].name,
                "producers": waits.producers,
                "semaphores": waits.semaphores,
                "tbs_a_semaphore": waits.most,
                "tb_pairs": waits.edges,
                "uncovered": wrong,
            }
        )
    made: dict[str, Any] = {"scheme": verdict.scheme, "safe": not verdict.unsafe, "kernels": kernels}
    made |= {"deadlock": verdict.stuck, "relies_on_dispatch": verdict.relies}
    return made | ({"oracle": verdict.oracle} if verdict.oracle else {})
