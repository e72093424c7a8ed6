"""Random jobs with waits and triggers of programmatic dependent launch at random places."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from pysim.hazards.pdl import PdlCheck
from pysim.hazards.places import LOADS, STORES, Place, op_lists
from pysim.hazards.plan import Row
from pysim.hazards.simulated import Simulated
from pysim.workloads.registry import make
from tests.core.harness import tiny
from tests.core.workloads_small import F32, SPLIT, WIDE, product, random_dag
from tests.oracle.random_shapes import with_weights

WAITS = ("start", "latest", "latest", "ahead")
TRIGGERS = ("start", "start", "wait", "none")


@dataclass(frozen=True)
class Placement:
    """A job, by its seed, and where its kernels wait: ``orderly`` ones wait where it is safe."""

    seed: int
    shape: str
    orderly: bool

    def job(self):
        random = Random(self.seed)
        if self.shape == "product":
            sizes = (8 * random.randint(2, 12) for _ in range(3))
            tiling, beta = random.choice((F32, WIDE)), random.choice((0.0, 1.0))
            return product(*sizes, tiling, beta=beta, chain=random.randint(2, 4))
        if self.shape == "split":
            return product(64, 40, 96, SPLIT, chain=2)
        if self.shape == "gru":
            steps, layers = random.randint(1, 2), random.randint(1, 2)
            return make(f"gru:hidden=32,batch=4,timesteps={steps},layers={layers}")
        if self.shape == "weighted":
            return with_weights(random.randrange(1 << 30), random.randint(2, 7))
        return random_dag(random.randrange(1 << 30), random.randint(2, 9), 1)

    def rows(self, job):
        random = Random(self.seed + 1)
        return [
            Row(number, random.random() < 0.85, self.wait(random, kernel), Place(random.choice(TRIGGERS)))
            for number, kernel in enumerate(job.kernels)
        ]

    def wait(self, random, kernel):
        if self.orderly:
            return Place(random.choice(WAITS))
        known = [
            (word, kernel.args[op.patterns[0].arg].name)
            for ops in op_lists(kernel)
            for op in ops
            for word, kinds in (("load", LOADS), ("store", STORES))
            if op.kind in kinds and op.patterns
        ]
        drawn = random.random()
        if drawn < 0.35:
            return Place(random.choice(("latest", "ahead")))
        if drawn < 0.5 or not known:
            return Place(random.choice(("start", "end", "none")))
        return Place(random.choice(("before", "after")), *random.choice(known))


def case(number):
    random = Random(-7 - number)
    shape = random.choice(("dag", "dag", "dag", "product", "gru", "split", "weighted"))
    return Placement(random.randrange(1 << 30), shape, random.random() < 0.5)


def check(made):
    """What is said to be safe runs clean, and the oracle reports only what is foreseen; return what came."""
    job = made.job()
    static = PdlCheck(job)
    placed = static.placed(made.rows(job))
    hazards = static.hazards(placed)
    assert not (hazards and made.orderly)
    simulated = Simulated(job, tiny(scheme__hypothetical=1))
    random, many = Random(made.seed + 2), len(job.kernels)
    late = [None, *random.sample(range(many), min(2, many))]
    found = [said for kernel in late if (said := simulated.violation(placed, kernel))]
    if hazards:
        one = random.choice(hazards)
        alone = static.only(placed, one)
        assert (one.before, one.after) in {(each.before, each.after) for each in static.hazards(alone)}
        said = simulated.proof(alone, one.before)
        found += [said] if said else []
    for said in found:
        (after, tb), (before, other) = said.pairs
        assert any(
            (hazard.before, hazard.after, hazard.kind) == (before, after, said.text[:3])
            and tb in hazard.tbs
            and other in hazard.others
            for hazard in hazards
        ), said
    return "safe" if not hazards else "hit" if found else "not hit"
