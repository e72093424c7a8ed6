"""Random jobs and settings, one a number, each under every scheme that takes it: what must hold of each run.

The suite checks some of them, ``make oracle`` as many as are asked for (``__main__.py``). A case follows
from its number alone, so that one that failed can be run again, and a long run can be cut into stretches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from pysim.clock import Clock
from pysim.dependence.dependences import dependences
from pysim.engine.session import Session
from pysim.engine.simulation import Sim
from pysim.errors import WorkloadError
from pysim.schemes.registry import parse_scheme
from tests.core.harness import FAMILY, SCHEMES, drive, outcome, tiny
from tests.core.workloads_small import random_dag

from .random_shapes import (
    attention,
    convolutions,
    gated,
    partly_recorded,
    products,
    some_rows,
    twice,
    with_weights,
)

# TBs wait before dispatch: any job can be run so
BEFORE = (*SCHEMES, "graph:built", *FAMILY)
# TBs that wait inside the program: for a gate, for the ends of a kernel, for semaphores of tiles
PROLOGUES = ("tb_static:prologue", "tb_learned:prologue", "tb_bloom:prologue", "tb_ideal:prologue")
ENDS = ("pdl", "pdl:late", "pdl:graph")
# cusync's policies run with a form of launch and with options, drawn anew for each job
POLICIES = ("cusync:tile", "cusync:row", "cusync:strided", "cusync:conv")
LAUNCHES = ("streams", "streams+gate_first", "streams+no_gate", "pdl", "pdl+late", "graph", "graph+late")
OPTIONS = ("tile_order", "wait_early", "poll_each", "fence_system", "spread")
FUSED = ("fused:grid", "fused:tile")
TILED = (*POLICIES, *FUSED, "stream:sync_code")

SETTINGS = {
    "scheme.priority": ("oldest", "newest", "critical", "round_robin", "consumer"),
    "scheme.placement": ("first_free", "balanced", "affinity", "ahead"),
    "scheme.affinity": (1, 3, 100),
    "scheme.carveout": ("auto", "kernel", "job"),
    "scheme.reserve": (0.0, 0.3, 1.0),
    "scheme.window": (1, 2, 7, 1000),
    "scheme.table.entries": (1, 8, 64, 100000),
    "scheme.table.consumers": (1, 4, 64),
    "scheme.table.update": (0.0, 0.5, 200.0),
    "scheme.table.latency": (0.0, 20.0, 3000.0),
    "scheme.table.group": (0, 1, 1),
    "scheme.table.fetch": (0, 1),
    "scheme.table.fetch_lists": (0, 1),
    "scheme.table.lists": (1, 5, 512),
    "scheme.table.references": (1, 4),
    "scheme.table.reduce": (0, 1),
    "scheme.table.share": (0.02, 0.25, 1.0),
    "scheme.table.shortest": (0.0, 30.0, 1e6),
    "scheme.coherence": ("auto", "bypass", "tb"),
    "scheme.bypass": (0, 1, 16),
    "scheme.bypass_age": (1, 5, 1024),
    "scheme.learned.ranges": (1, 2, 4, 100),
    "scheme.learned.strided": (0, 1),
    "scheme.learned.lookup": (0.0, 1.0, 300.0),
    "scheme.bloom.bits": (8, 100, 2048, 65536),
    "scheme.bloom.hashes": (1, 4, 16),
    "scheme.bloom.granule": (32, 100, 256, 1 << 20),
    "scheme.bloom.levels": (1, 3, 10, 10),
    "scheme.bloom.fill": (0.0, 0.5, 16.0),
    "scheme.bloom.per": ("kernel", "part", "tb", "group"),
    "scheme.bloom.parts": (2, 4, 1000),
    "scheme.bloom.group": (1, 3, 8, 1000),
    "scheme.bloom.signatures": (64, 200, 4096),
    "scheme.bloom.clear": ("kernel", "epoch"),
    "scheme.bloom.insert": (0.0, 0.25, 100.0),
    "scheme.bloom.lookup": (0.0, 0.25, 100.0),
    "scheme.bloom.latency": (0.0, 100.0, 5000.0),
    "scheme.bloom.constants": (0, 1),
    "scheme.bloom.widen": (100, 150, 1000),
    "scheme.bloom.missing": (0.0, 0.3, 1.0),
    "scheme.bloom.signature": ("bloom", "exact"),
    "scheme.auto.share": (0.0, 0.25, 1.0),
    "scheme.auto.waiting": (0.0, 0.5, 1.0),
    "scheme.auto.reduce": (0, 1),
    "scheme.auto.ahead": (0, 1, 4),
    "scheme.auto.hints": (1, 4, 128),
    "scheme.auto.store": (1, 20, 448),
    "scheme.auto.counters": (4, 64, 2560),
    "scheme.auto.rules": (1, 16, 256),
    "scheme.auto.tbs": (1, 64, 16384),
    "scheme.auto.compare": (0.0, 0.0625, 300.0),
    "scheme.auto.rule": (0.0, 1.0, 300.0),
    "scheme.auto.evaluate": (0.0, 0.125, 300.0),
    "scheme.auto.latency": (0.0, 100.0, 5000.0),
    "scheme.auto.widen": (100, 250, 3000),
    "scheme.auto.missing": (0.0, 0.3, 1.0),
    "scheme.acs.window": (2, 5, 256),
    "scheme.acs.list": (1, 3, 1000),
    "scheme.acs.threads": (1, 2, 8),
    "scheme.acs.insert": (0.0, 80.0, 5000.0),
    "scheme.acs.check": (0.0, 0.48, 100.0),
    "scheme.blockmaestro.kernels": (2, 3, 4),
    "scheme.blockmaestro.priority": ("producer", "consumer"),
    "scheme.blockmaestro.entries": (1, 7, 896),
    "scheme.blockmaestro.children": (1, 4),
    "scheme.blockmaestro.parents": (1, 3, 63),
    "scheme.blockmaestro.addresses": ("affine", "exact"),
    "scheme.wireframe.nodes": (1, 5, 192),
    "scheme.wireframe.pending": (0, 3),
    "scheme.queues.map": ("graph", "stream"),
    "scheme.queues.aware": (0, 1),
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
EVERY = (*BEFORE, *PROLOGUES, *ENDS, *TILED)
# of each second run, in turn: quanta of its slices, and threads (three yield where there are fewer cores)
QUANTA = ((15,), (1, 40, 7))
TEAMS = ((3, 1), (1, 3, 3))


def dag(case):
    """Random kernels; some come a second time, for what is learned of them to serve."""
    made = random_dag(case.seed, case.kernels, case.streams)
    return twice(made) if case.seed % 4 == 0 and case.kernels <= 8 else made


def some_recorded(case):
    return partly_recorded(dag(case), Random(case.seed), tiny().encoded()["gpu.sm.block_max"])


# shapes of jobs: how often they are drawn, how they are made, and the schemes that take all of them
PLAIN, TILES = (*BEFORE, *ENDS), ("cusync:tile", "cusync:row", "stream:sync_code")
SPLIT = (*PLAIN, *TILES, "cusync:strided")  # TBs that wait for each other: no prologues, no fusing
SHAPES = {
    "dag": (12, dag, (*PLAIN, *PROLOGUES)),
    # programs that do not say where they would wait
    "dag, recorded": (2, some_recorded, (*BEFORE, *PROLOGUES)),
    "weighted": (3, lambda case: with_weights(case.seed, case.kernels), (*PLAIN, *PROLOGUES)),
    "products": (3, lambda case: products(Random(case.seed)), (*PLAIN, *PROLOGUES, *TILES, *FUSED)),
    "gated": (1, lambda case: gated(Random(case.seed)), (*SPLIT, *PROLOGUES, *FUSED)),
    "gated, split": (1, lambda case: gated(Random(case.seed), 2), SPLIT),
    "rows": (2, lambda case: some_rows(Random(case.seed), case.kernels), (*PLAIN, *PROLOGUES, FUSED[0])),
    "attention": (1, lambda case: attention(Random(case.seed)), (*SPLIT, *PROLOGUES)),
    "convolutions": (1, lambda case: convolutions(Random(case.seed)), (*PLAIN, *PROLOGUES, *TILED)),
    "convolutions, split": (1, lambda case: convolutions(Random(case.seed), 2), (*SPLIT, "cusync:conv")),
}
OFTEN = tuple(shape for shape, (often, _, _) in SHAPES.items() for _ in range(often))


def composed(scheme, random):
    """Return the scheme, with options where it is one of cusync's policies."""
    if scheme not in POLICIES:
        return scheme
    some = [option for option in OPTIONS if random.random() < 0.3]
    return "+".join((scheme, random.choice(LAUNCHES), *some))


def policy_of(scheme):
    """Return a scheme without what :func:`composed` adds."""
    first = scheme.partition("+")[0]
    return first if first in POLICIES else scheme


def in_one_stream(job):
    """Return the job with all kernels in one stream, for schemes that take no other."""
    return replace(job, kernels=[replace(kernel, stream=0) for kernel in job.kernels], events=[])


@dataclass(frozen=True)
class Case:
    """A random job, by its seed and its shape, and how it runs."""

    seed: int
    shape: str
    kernels: int
    streams: int
    chosen: dict[str, object]
    quanta: tuple[int, ...] = QUANTA[0]
    free: bool = False
    threads: tuple[int, ...] = TEAMS[0]

    def job(self):
        return SHAPES[self.shape][1](self)

    def schemes(self):
        """The schemes that the job is tried under, options of cusync drawn for it."""
        random = Random(self.seed)
        return [composed(scheme, random) for scheme in EVERY]

    def may_refuse(self, scheme):
        """Whether a scheme need not take such jobs."""
        return policy_of(scheme) not in SHAPES[self.shape][2]

    def settings(self, scheme):
        """What differs from the defaults: ``chosen``, where the scheme takes it."""
        made = {"scheme.hypothetical": 1, "host.submit": self.chosen["host.submit"]}
        if policy_of(scheme) not in (*ENDS, *TILED):
            made |= self.chosen
        if scheme in PROLOGUES:
            made["scheme.coherence"] = "bypass"
        return made | (FREE if self.free else {})


def case(number):
    random = Random(number)
    return Case(
        random.randrange(1 << 30),
        random.choice(OFTEN),
        random.randint(2, random.choice((4, 4, 6, 8, 24))),
        random.randint(1, 4),
        {path: random.choice(values) for path, values in SETTINGS.items()},
        random.choice(QUANTA),
        random.random() < 0.5,
        random.choice(TEAMS),
    )


def finished(lowered, oracle, threads=(1,), quanta=(1 << 40,)):
    """Run what was made for the core, with every access checked or not."""
    with Sim(replace(lowered, values=lowered.values | {"sim.oracle": oracle})) as sim:
        return outcome(sim, lowered.launched, lowered.values, drive(sim, threads, quanta))


def hold(case, scheme, session, bounded):
    """No dependence is broken, no TB is lost, no bound is beaten, and slices and threads change nothing.

    ``session``: of the job as the scheme takes it; ``bounded``: of the job, as streams do not move the bound.
    """
    choice, chosen = parse_scheme(scheme), case.settings(scheme)
    conf = session.config.replaced(chosen | choice.pins)
    lowered, _ = session.lowered(choice, conf, [float(kernel.tbs) for kernel in session.job.kernels])
    ran = finished(lowered, 1)
    done = int(ran.totals.tbs_done)
    assert done == len(ran.tbs) == sum(k.tbs for k in ran.job.kernels), "a TB is lost"
    if scheme in ("pool", "tb_static", "tb_learned", *PROLOGUES[:2]):
        assert ran.totals.table_peak_entries <= chosen["scheme.table.entries"], "more entries than there are"
    bound = bounded.bounds(conf, choice).bound_us
    assert bound <= ran.us, f"{ran.us} us, less than the bound of {bound} us"
    again = finished(lowered, 0, case.threads, case.quanta).fingerprint()
    assert again == ran.fingerprint(), "slices and threads change the result"


def check(case, only=()):
    """Check a job under every scheme that takes it, or under some; all that fail are told of."""
    job = case.job()
    deps, failed = dependences(job), []
    session = Session(tiny(), job, 1, Clock(), deps)
    single = Session(tiny(), in_one_stream(job), 1, Clock(), deps)  # edges know no streams
    for scheme in only or case.schemes():
        try:
            hold(case, scheme, single if policy_of(scheme) in (*ENDS, *TILED) else session, session)
        except Exception as error:  # whatever a wrong core or a wrong table may do
            if not (isinstance(error, WorkloadError) and case.may_refuse(scheme)):
                error.add_note(f"under {scheme}")
                failed.append(error)
    if failed:
        raise ExceptionGroup(f"under {len(failed)} schemes", failed)
