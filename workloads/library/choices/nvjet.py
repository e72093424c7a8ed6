"""fp16 and bf16 on Hopper: which ``nvjet`` kernel cuBLAS takes where rows start at multiples of 16 B.

The library has a kernel for almost every tile, so that a grid can fill 132 SMs in few waves. The rule prices
every kernel whose layout fits, with every cluster and split of K, and takes the cheapest:

1. *Waves*: tiles, rounded up to whole clusters, times parts of K, over the TBs that fit at a time: 132, or
   120 in clusters of 4 and 8. K is split only where all parts run at once.
2. *K-step* of 64: wgmma's cycles and a floor, and cycles for each row that a TB fetches.
3. *Time*: waves times k-steps, and the result's way out; added to the time of the bytes from DRAM, a little
   of which hides the other; a split adds a second kernel and the traffic of the parts.
4. *Preferences* in per cent (``PREFERENCES``): what the library's own estimate weighs and a time does not
   show: whole multiples of 64, clusters, little padding, few TBs.

Then a cluster is turned so that it fetches the least: the larger side of the tile is the one shared.

The constants were fitted to choices of the library, not to times, and are not the machine's (``FLOOR`` comes
out near the 185 cycles that these kernels take, DRAM's bytes a cycle do not): they are what its heuristic
behaves like. ``accuracy`` has the figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from .choice import GemmChoice, Problem
from .nvjet_kernels import K_STEP, KERNELS, Nvjet

TBS_AT_A_TIME = {1: 132, 2: 132, 4: 120, 8: 120}  # by TBs of a cluster; an SM holds one TB. Measured
SPLITS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 16, 22, 33, 44, 66)  # those seen
LEAST_STEPS = 4  # of a part of K
ROW_BYTES = K_STEP * 2  # of a row of A or B in a k-step
BUSY = 96  # TBs from which on clusters of 8 cost more: not every GPC has SMs for a third one
TYPES = {"fp16": "hsh", "bf16": "tst"}
RUNNERS_UP = 3

# name: (value, unit, how it was got). `fit`: most likely choices of 886 rows, fp16 and bf16 together
CONSTANTS: dict[str, tuple[float, str, str]] = {
    "fixed": (19.6, "cycles", "fit; what all kernels pay changes no choice, so this is no launch time"),
    "floor": (236.3, "cycles a k-step", "fit"),
    "row_byte": (0.00955, "cycles/B", "fit; rows that a TB fetches in a k-step"),
    "step_power": (2.607, "", "fit; power of the sum of wgmma and floor: 1 adds, more takes the larger"),
    "result_byte": (0.0092, "cycles/B", "fit; C of a tile; once, or a wave where warp groups share a tile"),
    "dram": (3391.0, "B/cycle", "fit; A, B and C once"),
    "dram_tb": (70.6, "B/cycle a TB", "fit; what one TB can draw"),
    "time_power": (1.434, "", "fit; power of the sum of k-steps and DRAM"),
    "split": (1486.0, "cycles", "fit; the kernel that adds parts"),
    "split_part": (2147.0, "cycles a part", "fit"),
    "split_bytes": (498.3, "B/cycle", "fit; fp32 parts"),
}
# what a property of a kernel adds to its price, in per cent. All `fit`
PREFERENCES: dict[str, tuple[float, str]] = {
    "swapped": (-0.79, "wgmma's rows along n"),
    "odd_32": (3.94, "wgmma's N an odd multiple of 32"),
    "odd_16": (3.35, "an odd multiple of 16"),
    "odd_8": (4.72, "an odd multiple of 8, but 8 itself"),
    "cluster_2": (-3.03, "clusters of 2"),
    "cluster_4": (-6.14, "clusters of 4"),
    "cluster_8": (-7.58, "clusters of 8"),
    "busy_8": (1.66, "clusters of 8 that fill more than 96 SMs in one wave, a further 24 TBs"),
    "padding": (7.79, "a natural logarithm of padded elements of C over its elements"),
    "tbs": (6.08, "a natural logarithm of TBs at a time"),
    "cooperative": (3.23, "both warp groups on one tile"),
    "cooperative_swapped": (1.89, "and wgmma's rows along n"),
    "along_n": (-1.14, "a cluster of more than one TB along n"),
}


def constants() -> dict[str, float]:
    """Return values of CONSTANTS and PREFERENCES by name."""
    return {name: entry[0] for table in (CONSTANTS, PREFERENCES) for name, entry in table.items()}


@dataclass(frozen=True)
class Candidate:
    """A kernel with a cluster and a split, for a problem."""

    kernel: Nvjet
    cluster: tuple[int, int]
    split: int
    problem: Problem

    @cached_property
    def tiles(self) -> tuple[int, int]:
        """Tiles of C along m and n."""
        return -(-self.problem.m // self.kernel.m), -(-self.problem.n // self.kernel.n)

    @cached_property
    def size(self) -> int:
        """TBs of a cluster."""
        return self.cluster[0] * self.cluster[1]

    @cached_property
    def work(self) -> int:
        """Tiles, rounded up to whole clusters, times parts of K, of all products."""
        (mt, nt), (cm, cn) = self.tiles, self.cluster
        return -(-mt // cm) * cm * -(-nt // cn) * cn * self.split * self.problem.batch

    @cached_property
    def at_a_time(self) -> int:
        """TBs of the launch: those that fit at a time at most, each then takes several tiles."""
        return min(self.work, TBS_AT_A_TIME[self.size])

    @cached_property
    def waves(self) -> int:
        """Tiles that the busiest TB takes."""
        return -(-self.work // TBS_AT_A_TIME[self.size])

    @cached_property
    def fetched(self) -> float:
        """Rows of A and B that a TB fetches in a k-step, the others come from TBs of its cluster."""
        return self.kernel.m / self.cluster[1] + self.kernel.n / self.cluster[0]

    def fits(self) -> bool:
        """Say whether clusters are no larger than C and parts of K all run at once."""
        (mt, nt), (cm, cn) = self.tiles, self.cluster
        if cm > mt or cn > nt:
            return False
        if self.split > 1 and self.problem.batch > 1:
            return False
        whole = self.split * LEAST_STEPS <= -(-self.problem.k // K_STEP)
        return self.split == 1 or (whole and self.work <= TBS_AT_A_TIME[self.size])


def wgmma_cycles(kernel: Nvjet) -> float:
    """Return the cycles of a k-step's wgmma: m64nNk16 takes max(N/2, 16 + N/4) of an SM (measured)."""
    n = kernel.columns
    return K_STEP // 16 * (kernel.rows // 64) * max(n / 2, 16 + n / 4)


def _preference(it: Candidate, c: dict[str, float]) -> float:
    """Return the sum of preferences in per cent."""
    kernel, problem = it.kernel, it.problem
    n = kernel.columns
    total = c["swapped"] * kernel.swapped
    for odd in (32, 16, 8):
        if n % (2 * odd) == odd and n > 8:
            total += c[f"odd_{odd}"]
    if it.size > 1:
        total += c[f"cluster_{it.size}"]
    if it.size == 8 and it.waves == 1:
        total += c["busy_8"] * max(0, it.at_a_time - BUSY) / 24
    mt, nt = it.tiles
    total += c["padding"] * math.log(mt * kernel.m * nt * kernel.n / (problem.m * problem.n))
    total += c["tbs"] * math.log(it.at_a_time)
    if kernel.cooperative:
        total += c["cooperative"] + c["cooperative_swapped"] * kernel.swapped
    return total + c["along_n"] * (it.cluster[1] > 1)


def cost(it: Candidate, c: dict[str, float]) -> float:
    """Return the price of a candidate, in cycles, with the constants `c`."""
    kernel, (m, n, k) = it.kernel, (it.problem.m, it.problem.n, it.problem.k)
    rows = min(kernel.m, m) + min(kernel.n, n)
    power = c["step_power"]
    step = (wgmma_cycles(kernel) ** power + c["floor"] ** power) ** (1 / power)
    step += c["row_byte"] * rows * ROW_BYTES
    results = it.waves if kernel.cooperative else 1
    steps = math.ceil(math.ceil(k / K_STEP) / it.split)
    body = it.waves * steps * step + results * c["result_byte"] * kernel.m * kernel.n * 2
    dram = 2 * it.problem.batch * ((m + n) * k + m * n) / min(c["dram"], c["dram_tb"] * it.at_a_time)
    power = c["time_power"]
    total: float = c["fixed"] + (body**power + dram**power) ** (1 / power)
    if it.split > 1:
        total += c["split"] + c["split_part"] * it.split + 4 * m * n * it.split / c["split_bytes"]
    return total * math.exp(_preference(it, c) / 100)


def candidates(problem: Problem) -> list[Candidate]:
    """Return what the library can launch for a problem."""
    return [
        it
        for kernel in KERNELS
        if kernel.takes(problem.trans_a, problem.trans_b)
        for cluster in kernel.clusters
        for split in SPLITS
        if (it := Candidate(kernel, cluster, split, problem)).fits()
    ]


def _turned(it: Candidate) -> Candidate:
    """Return the candidate with the cluster of its size that needs the fewest waves, then fetches least."""
    others = [
        Candidate(it.kernel, cluster, it.split, it.problem)
        for cluster in it.kernel.clusters
        if cluster[0] * cluster[1] == it.size
    ]
    return min((o for o in others if o.fits()), key=lambda o: (o.waves, o.fetched, o.cluster[1]))


def _reasons(it: Candidate) -> tuple[str, ...]:
    kernel, (mt, nt) = it.kernel, it.tiles
    said = [
        f"tiles of {kernel.m} x {kernel.n} make a grid of {mt} x {nt}: {it.work} TBs of work in {it.waves} "
        f"waves of at most {TBS_AT_A_TIME[it.size]}",
        f"a k-step of 64 takes {wgmma_cycles(kernel):.0f} cycles of wgmma",
    ]
    if it.split > 1:
        said.append(f"K is split into {it.split} parts, as {it.work // it.split} TBs leave SMs idle")
    if it.size > 1:
        said.append(
            f"clusters of {it.cluster[0]} x {it.cluster[1]} fetch {it.fetched:.0f} rows of A and B a TB and "
            f"k-step, not {kernel.m + kernel.n}"
        )
    return tuple(said)


def as_choice(it: Candidate, price: float, runners_up: tuple[GemmChoice, ...] = ()) -> GemmChoice:
    """Return a candidate as the library reports it."""
    kernel, problem, (cm, cn) = it.kernel, it.problem, it.cluster
    order = "v" if cn == 1 and cm > 1 else "h"
    stages = kernel.stages_of(problem.trans_a, problem.trans_b)
    letters = problem.trans_a + problem.trans_b + ("N" if kernel.swapped else "T")
    words = [kernel.cooperative, "splitK" if it.split > 1 else "", letters]
    name = f"nvjet_sm90_{TYPES[problem.dtype]}_{kernel.m}x{kernel.n}_{K_STEP}x{stages}_{cm}x{cn}_{order}_bz_"
    return GemmChoice(
        name + "_".join(word for word in words if word),
        "nvjet",
        (kernel.m, kernel.n, K_STEP),
        stages,
        it.cluster,
        it.split,
        "kernel" if it.split > 1 else "",
        order,
        kernel.cooperative,
        (it.size, it.at_a_time // it.size, 1),
        price,
        _reasons(it),
        runners_up,
    )


def choose(problem: Problem, c: dict[str, float] | None = None) -> GemmChoice:
    """Return the kernel for a problem of fp16 or bf16 whose rows start at multiples of 16 B."""
    values = constants() if c is None else c
    best: dict[Nvjet, tuple[float, Candidate]] = {}
    for it in candidates(problem):
        price = cost(it, values)
        if it.kernel not in best or price < best[it.kernel][0]:
            best[it.kernel] = (price, it)
    ranked = sorted(best.values(), key=lambda pair: pair[0])[: RUNNERS_UP + 1]
    first, *others = [(price, _turned(it)) for price, it in ranked]
    return as_choice(first[1], first[0], tuple(as_choice(it, price) for price, it in others))
