"""Long GEMMs of Turing's and Ampere's kernels in little time: from shorter ones, linear in waves and k-steps.

TBs are equal, so a GEMM's time is a + b W + c S + d W S in waves W of TBs and k-steps S of a TB, once W is at
least one and S fills the pipeline. Four GEMMs of few waves and steps give the constants; where only one of
both is large, two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.choices.choice import Problem
from pysim.workloads.library.gemms.launches import Launch
from pysim.workloads.library.gemms.staged_kernels import staged_kernel

SMS, REGISTERS, SMEM, WARPS = 132, 65536, 227 * 1024, 64  # of an H200, of an SM
EXACT = 60_000  # k-steps of all TBs up to which a GEMM is simulated whole, about 10 s
WAVES = 1, 2
STEPS = 40, 80  # k-steps of FFMA; kernels for mma, whose steps are four times as long, take a quarter
FFMA_STEP = 8  # K of a k-step of FFMA


@dataclass(frozen=True, slots=True)
class Sizes:
    """TBs of a wave, waves, and k-steps of a TB of a GEMM."""

    wave: int
    waves: float
    steps: int


def sizes_of(launch: Launch, problem: Problem) -> Sizes | None:
    """Return the sizes of a launch; None for kernels of other families."""
    if not launch.name.startswith(("sm80_xmma", "cutlass")):
        return None
    tile, _, _ = staged_kernel(launch.name, launch.registers, launch.smem)
    threads = WARP * tile.count
    fit = min(
        REGISTERS // (-(-tile.registers // 8) * 8 * threads), SMEM // (tile.smem + 1024), WARPS // tile.count
    )
    wave = SMS * max(1, fit)
    tbs = -(-problem.m // tile.tm) * -(-problem.n // tile.tn) * launch.split_k
    return Sizes(wave, tbs / wave, -(-problem.k // (launch.split_k * tile.tk)))


def sampled(launch: Launch, problem: Problem, time_of: Callable[[Problem], float]) -> tuple[float, str]:
    """Return the time of a GEMM from ``time_of`` of it or of shorter ones, and ``(sampled)`` or nothing."""
    sizes = sizes_of(launch, problem)
    if sizes is None or sizes.wave * sizes.waves * sizes.steps <= EXACT:
        return time_of(problem), ""
    tile, _, _ = staged_kernel(launch.name, launch.registers, launch.smem)
    steps = [count if tile.tk == FFMA_STEP else count // 4 for count in STEPS]
    if sizes.steps <= 2 * steps[1]:
        steps = [sizes.steps]
    waves = list(WAVES) if sizes.waves > 2 * WAVES[1] else [0]
    times: dict[tuple[float, int], float] = {}
    for many in waves:
        cut = _cut(problem, tile.tm, tile.tn, many * sizes.wave / launch.split_k)
        for count in steps:
            k = problem.k if len(steps) == 1 else count * tile.tk * launch.split_k
            times[many or sizes.waves, count] = time_of(replace(cut, k=k))
    return _extrapolated(times, sizes), "(sampled)"


def _cut(problem: Problem, tm: int, tn: int, tiles: float) -> Problem:
    """Return the problem cut to at most so many tiles (0: all of them), whole rows or columns of them."""
    across, down = -(-problem.m // tm), -(-problem.n // tn)
    if tiles == 0:
        return problem
    if down >= across:
        left = min(down, max(1, int(tiles / across)))
        return replace(problem, n=min(problem.n, left * tn))
    left = min(across, max(1, int(tiles / down)))
    return replace(problem, m=min(problem.m, left * tm))


def _extrapolated(times: dict[tuple[float, int], float], sizes: Sizes) -> float:
    """Return the time at the sizes of the whole, along waves for each number of steps, then along steps."""

    def line(points: list[tuple[float, float]], at: float) -> float:
        (x0, y0), (x1, y1) = points[0], points[-1]
        return y1 if x1 == x0 else y1 + (y1 - y0) / (x1 - x0) * (at - x1)

    by_steps = []
    for count in dict.fromkeys(count for _, count in times):
        of = sorted((waves, time) for (waves, other), time in times.items() if other == count)
        # a last wave that leaves SMs without work takes as long; TBs that share an SM go on faster alone
        share = sizes.wave // SMS
        by_steps.append((float(count), line(of, math.ceil(sizes.waves * share) / share)))
    return line(by_steps, float(sizes.steps))
