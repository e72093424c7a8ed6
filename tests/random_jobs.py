"""Random jobs under random schemes and settings, one a number: what must hold of each of them.

The suite checks some hundreds, ``make oracle`` as many as are asked for (``tests/oracle.py``). A case follows
from its number alone, so that one that failed can be run again, and a long run can be cut into stretches.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from pysim.bounds import bounds, family_of
from pysim.dependences import dependences
from pysim.floors import loads_of
from pysim.schemes import parse_scheme

from .core.harness import FAMILY, SCHEMES, execute, oracle, tiny
from .core.workloads_small import random_dag

SETTINGS = {
    "scheme.priority": ("oldest", "newest", "critical", "round_robin", "consumer"),
    "scheme.placement": ("first_free", "balanced", "affinity"),
    "scheme.affinity": (1, 3, 100),
    "scheme.reserve": (0.0, 0.3, 1.0),
    "scheme.window": (1, 2, 7, 1000),
    "scheme.table.entries": (1, 8, 64, 100000),
    "scheme.table.group": (0, 1, 1),
    "scheme.table.fetch": (0, 1),
    "scheme.table.reduce": (0, 1),
    "scheme.table.share": (0.02, 0.25, 1.0),
    "scheme.table.shortest": (0.0, 30.0, 1e6),
    "scheme.coherence": ("auto", "bypass", "tb"),
    "scheme.bypass": (0, 1, 16),
    "scheme.acs.window": (2, 5, 256),
    "scheme.acs.list": (1, 3, 1000),
    "scheme.blockmaestro.kernels": (2, 3, 4),
    "scheme.blockmaestro.entries": (1, 7, 896),
    "scheme.blockmaestro.children": (1, 4),
    "scheme.blockmaestro.parents": (1, 3, 63),
    "scheme.wireframe.nodes": (1, 5, 192),
    "scheme.wireframe.pending": (0, 3),
    "scheme.queues.count": (1, 3, 10),
    "scheme.queues.hardware": (1, 2, 10),
    "scheme.queues.ring": (2, 5, 1024),
    "scheme.queues.quantum": (0.5, 20.0),
    "scheme.queues.packet": (0.0, 680.0),
    "host.submit": ("prefilled", "eager"),
}
# without what costs time beside the work itself, a bound has the least room
FREE = {
    "gpu.cp.launch": 0, "gpu.cp.stream_gap": 0, "gpu.cp.graph_gap": 0, "gpu.cp.admit": 0,
    "gpu.cp.tb_release": 0, "gpu.cp.tb_start": 0, "host.launch": 0, "host.roundtrip": 0,
}  # fmt: skip
EVERY = (*SCHEMES, *FAMILY)
QUANTA = ((7,), (1, 100))


@dataclass(frozen=True)
class Case:
    """A random job, by its seed, and how it runs."""

    seed: int
    kernels: int
    streams: int
    scheme: str
    chosen: dict[str, object]
    quanta: tuple[int, ...] = (7,)
    free: bool = False

    def job(self):
        return random_dag(self.seed, self.kernels, self.streams)


def case(number):
    random = Random(number)
    return Case(
        random.randrange(1 << 30),
        random.randint(2, 40),
        random.randint(1, 4),
        random.choice(EVERY),
        {path: random.choice(values) for path, values in SETTINGS.items()},
        random.choice(QUANTA),
        random.random() < 0.5,
    )


def bound_us(ran, deps, scheme):
    """The bound of what ran, in microseconds."""
    job, programs = ran.job, ran.programs
    family = family_of(parse_scheme(scheme), ran.values)
    made = bounds(job, deps, programs, ran.costs, ran.values, family, loads_of(job), guess=(0.0, ()))
    return made.bound_us


def check(case):
    """No dependence is broken, no TB is lost, no bound is beaten, and slices change nothing."""
    job = case.job()
    deps = dependences(job)
    chosen = case.chosen | (FREE if case.free else {})
    ran = execute(job, case.scheme, oracle().replaced(chosen), deps=deps)
    assert int(ran.totals.tbs_done) == len(ran.tbs) == sum(k.tbs for k in job.kernels)
    if case.scheme in ("pool", "tb_static", "tb_learned"):
        assert ran.totals.table_peak_entries <= chosen["scheme.table.entries"]
    assert bound_us(ran, deps, case.scheme) <= ran.us
    again = execute(job, case.scheme, tiny().replaced(chosen), quanta=case.quanta, deps=deps)
    assert again.fingerprint() == ran.fingerprint()
