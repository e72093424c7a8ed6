"""Random jobs under random schemes and settings, one a number: what must hold of each of them.

The suite checks some hundreds, ``make oracle`` as many as are asked for (``tests/oracle.py``). Each job runs
under one scheme, drawn at random like all else: of 10,000 jobs each scheme gets some hundreds. A case follows
from its number alone, so that one that failed can be run again, and a long run can be cut into stretches.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from pysim.bounds import bounds, family_of
from pysim.clock import Clock
from pysim.dependences import dependences
from pysim.floors import loads_of
from pysim.job import Job, Memory
from pysim.schemes import parse_scheme
from pysim.session import Session
from workloads.conv_chain import conv_chain
from workloads.gemm import gemm
from workloads.mlp_pair import mlp_pair, tiling
from workloads.pointwise import Field, elementwise

from .core.harness import FAMILY, SCHEMES, execute, oracle, tiny
from .core.workloads_small import F32, WIDE, product, random_dag
from .test_prologue import weighted

# TBs that wait inside the program: for a gate, for the ends of a kernel, for semaphores of tiles
PROLOGUES = ("tb_static:prologue", "tb_learned:prologue", "tb_bloom:prologue", "tb_ideal:prologue")
ENDS = ("pdl", "pdl:late", "pdl:graph")
# cusync's policies run with a form of launch and with options, drawn anew for each job
POLICIES = ("cusync:tile", "cusync:row", "cusync:strided", "cusync:conv")
LAUNCHES = ("streams", "streams+gate_first", "streams+no_gate", "pdl", "pdl+late", "graph", "graph+late")
OPTIONS = ("tile_order", "wait_early", "poll_each", "fence_system", "spread")
TILED = (*POLICIES, "fused:grid", "fused:tile", "stream:sync_code")
INSIDE = (*PROLOGUES, *ENDS, *TILED)

SETTINGS = {
    "scheme.priority": ("oldest", "newest", "critical", "round_robin", "consumer"),
    "scheme.placement": ("first_free", "balanced", "affinity"),
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
    "scheme.bloom.per": ("tb", "group", "kernel"),
    "scheme.bloom.group": (1, 3, 8, 1000),
    "scheme.bloom.signatures": (128, 200, 4096),
    "scheme.bloom.clear": ("kernel", "epoch"),
    "scheme.bloom.insert": (0.0, 0.25, 100.0),
    "scheme.bloom.lookup": (0.0, 0.25, 100.0),
    "scheme.bloom.latency": (0.0, 100.0, 5000.0),
    "scheme.bloom.constants": (0, 1),
    "scheme.bloom.widen": (100, 150, 1000),
    "scheme.bloom.missing": (0.0, 0.3, 1.0),
    "scheme.bloom.signature": ("bloom", "exact"),
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
EVERY = (*SCHEMES, "graph:built", *FAMILY, *INSIDE)
QUANTA = ((7,), (1, 100))
TEAMS = ((1,), (2,), (3, 1))


# tiles of cuSync's products in fp16, small
SMALL = "64x64x32x32x32x32"


def gated(random, split=1):
    """Two products, the second of the first's columns of a gated unit, which stand 128 apart."""
    m, k1, n2 = (8 * random.randint(1, 20) for _ in range(3))
    return mlp_pair((m, 256, k1, n2, 128), tiling(SMALL, 2, split), tiling(SMALL, 2, 1), gated=True)


def attention(random):
    """Q, K and V in one product, a kernel that reads parts of all three, a product behind it."""
    memory, kind = Memory(), tiling(SMALL, 2, 1)
    m, part = 8 * random.randint(2, 20), 64 * random.randint(1, 2)
    sizes = {"x": (m, 64), "w": (64, 3 * part), "qkv": (m, 3 * part), "mixed": (m, part), "w2": (part, 64)}
    at = {name: memory.tensor(name, *size, 2) for name, size in (sizes | {"out": (m, 64)}).items()}
    softmax = elementwise(
        "softmax", [Field(at["qkv"], i * part) for i in range(3)], [Field(at["mixed"])], cols=part,
        per_element={"fp32": 4}, threads=32, rows_per_tb=min(16, m),
    )  # fmt: skip
    qkv, out = (
        gemm("qkv", at["x"], at["w"], at["qkv"], kind),
        gemm("out", at["mixed"], at["w2"], at["out"], kind),
    )
    return Job("attention", [qkv, softmax, out])


def convolutions(random, split=1):
    """Convolutions that wait for the halo around what they make."""
    return conv_chain(1, 64, random.randint(4, 14), random.randint(2, 3), tiling(SMALL, 2, split))


def products(random):
    sizes = (8 * random.randint(4, 20) for _ in range(3))
    beta, chain = random.choice((0.0, 1.0)), random.randint(2, 5)
    return product(*sizes, random.choice((F32, WIDE)), beta=beta, chain=chain)


# those that a policy fits; the other schemes of TILED run products
SHAPES = {
    "cusync:tile": (products, gated, attention),
    "cusync:row": (products, gated, attention, convolutions),
    "cusync:strided": (gated, attention),
    "cusync:conv": (convolutions,),
}


def with_weights(seed, kernels):
    """Kernels that load weights of their own, then rows that others make: each has a prologue."""
    random, memory = Random(seed), Memory()
    shared = [memory.tensor(f"t{n}", 12, 32, 4) for n in range(3)]
    return Job(
        "weighted",
        [
            weighted(
                f"k{n}", memory.tensor(f"w{n}", 12, 32, 4), *random.sample(shared, 2),
                tbs=random.randint(1, 12), prologue=random.choice((0, 500)), body=random.choice((0, 500)),
            )
            for n in range(kernels)
        ],
    )  # fmt: skip


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
        scheme, random = policy_of(self.scheme), Random(self.seed)
        if scheme in TILED:
            made = random.choice(SHAPES.get(scheme, (products,)))
            return made(random, random.choice((1, 1, 2))) if made in (gated, convolutions) else made(random)
        if scheme in PROLOGUES and random.random() < 0.5:
            return with_weights(self.seed, self.kernels)
        return random_dag(self.seed, self.kernels, 1 if scheme in ENDS else self.streams)

    def settings(self):
        """What differs from the defaults: ``chosen``, where the scheme takes it."""
        made = {"scheme.hypothetical": 1, "host.submit": self.chosen["host.submit"]}
        if policy_of(self.scheme) not in (*ENDS, *TILED):
            made |= self.chosen
        if self.scheme in PROLOGUES:
            made["scheme.coherence"] = "bypass"
        return made | (FREE if self.free else {})


def case(number):
    random = Random(number)
    return Case(
        random.randrange(1 << 30),
        random.randint(2, 24),
        random.randint(1, 4),
        composed(random.choice(EVERY), random),
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
    if policy_of(case.scheme) in INSIDE:
        assert bound_inside_us(job, deps, tiny().replaced(chosen), case.scheme) <= ran.us
    else:
        assert bound_us(ran, deps, case.scheme) <= ran.us
    conf = tiny().replaced(chosen)
    again = execute(job, case.scheme, conf, threads=case.threads, quanta=case.quanta, deps=deps)
    assert again.fingerprint() == ran.fingerprint()
