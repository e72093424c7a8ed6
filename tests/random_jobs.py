"""Random jobs under random schemes and settings, one a number: what must hold of each of them.

The suite checks some hundreds, ``make oracle`` as many as are asked for (``tests/oracle.py``). A case follows
from its number alone, so that one that failed can be run again, and a long run can be cut into stretches.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from pysim.bounds import bounds, family_of
from pysim.clock import Clock
from pysim.dependences import dependences
from pysim.floors import loads_of
from pysim.schemes import parse_scheme
from pysim.session import Session

from .core.harness import FAMILY, SCHEMES, execute, oracle, tiny
from .core.workloads_small import F32, WIDE, product, random_dag

# TBs that wait inside the program: for a gate, for the ends of a kernel, for semaphores of tiles
PROLOGUES = ("tb_static:prologue", "tb_learned:prologue", "tb_bloom:prologue", "tb_ideal:prologue")
ENDS = ("pdl", "pdl:late", "pdl:graph")
TILED = ("cusync:tile", "cusync:row", "cusync:row+pdl+late", "cusync:tile+pdl+spread", "cusync:tile+graph")
TILED += ("cusync:row+tile_order+wait_early+poll_each", "fused:grid", "fused:tile", "stream:sync_code")
INSIDE = (*PROLOGUES, *ENDS, *TILED)

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
EVERY = (*SCHEMES, *FAMILY, *INSIDE)
QUANTA = ((7,), (1, 100))
TEAMS = ((1,), (2,), (3, 1))


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
    threads: tuple[int, ...] = (1,)

    def job(self):
        if self.scheme in TILED:
            random = Random(self.seed)
            sizes = (8 * random.randint(4, 20) for _ in range(3))
            chain = 2 + self.kernels % 4
            return product(*sizes, random.choice((F32, WIDE)), beta=random.choice((0.0, 1.0)), chain=chain)
        return random_dag(self.seed, self.kernels, 1 if self.scheme in ENDS else self.streams)

    def settings(self):
        """What differs from the defaults: ``chosen``, where the scheme takes it."""
        made = {"scheme.hypothetical": 1, "host.submit": self.chosen["host.submit"]}
        if self.scheme not in (*ENDS, *TILED):
            made |= self.chosen
        if self.scheme in PROLOGUES:
            made["scheme.coherence"] = "bypass"
        return made | (FREE if self.free else {})


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
        random.choice(TEAMS),
    )


def bound_us(ran, deps, scheme):
    """The bound of what ran, in microseconds."""
    job, programs = ran.job, ran.programs
    family = family_of(parse_scheme(scheme), ran.values)
    made = bounds(job, deps, programs, ran.costs, ran.values, family, loads_of(job), guess=(0.0, ()))
    return made.bound_us


def bound_inside_us(job, deps, conf, scheme):
    """The bound of a job whose programs another job has in its place, in microseconds."""
    choice = parse_scheme(scheme)
    return Session(conf, job, 1, Clock(), deps).bounds(conf.replaced(choice.pins), choice).bound_us


def check(case):
    """No dependence is broken, no TB is lost, no bound is beaten, and slices and threads change nothing."""
    job = case.job()
    deps = dependences(job)
    chosen = case.settings()
    ran = execute(job, case.scheme, oracle().replaced(chosen), deps=deps)
    assert int(ran.totals.tbs_done) == len(ran.tbs) == sum(k.tbs for k in ran.job.kernels)
    if case.scheme in ("pool", "tb_static", "tb_learned", *PROLOGUES[:2]):
        assert ran.totals.table_peak_entries <= chosen["scheme.table.entries"]
    if case.scheme in INSIDE:
        assert bound_inside_us(job, deps, tiny().replaced(chosen), case.scheme) <= ran.us
    else:
        assert bound_us(ran, deps, case.scheme) <= ran.us
    conf = tiny().replaced(chosen)
    again = execute(job, case.scheme, conf, threads=case.threads, quanta=case.quanta, deps=deps)
    assert again.fingerprint() == ran.fingerprint()
