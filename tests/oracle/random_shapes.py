"""Small random jobs whose kernels say which tiles they read and make, or have prologues."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pysim.program.job import Job, Memory
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.implicit_gemm import conv_chain
from pysim.workloads.kernels.pointwise import Field, elementwise
from pysim.workloads.networks.mlp_pair import mlp_pair, tiling
from tests.core.workloads_small import F32, WIDE, product
from tests.schemes.test_prologue import weighted
from tests.support.recorded import recorded

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
    """Products, each of the one before: mostly of few tiles."""
    most = random.choice((8, 8, 12, 20))
    sizes = (8 * random.randint(4, most) for _ in range(3))
    beta, chain = random.choice((0.0, 1.0)), random.randint(2, 4)
    return product(*sizes, random.choice((F32, WIDE)), beta=beta, chain=chain)


def rows_of(tensor, first, rows):
    """Some rows of a tensor, as a tensor."""
    at = tensor.address + first * tensor.pitch
    return replace(tensor, name=f"{tensor.name}+{first}", rows=rows, address=at)


def some_rows(random, kernels):
    """Sums of rows of tensors, whose tiles line up, into rows of another one, over what was there before."""
    memory, each, most = Memory(), random.choice((1, 4)), random.choice((6, 40))
    tensors = [memory.tensor(f"t{i}", most * each, 64, 4) for i in range(random.randint(3, 8))]
    made = []
    for index in range(kernels):
        tbs = random.randint(1, most)
        parts = [
            Field(rows_of(tensor, random.randint(0, most - tbs) * each, tbs * each))
            for tensor in random.sample(tensors, random.randint(2, 3))
        ]
        work = {"fp32": random.choice((1, 100, 3000))}
        made.append(
            elementwise(f"sum{index}", parts[1:], parts[:1], cols=64, rows_per_tb=each, per_element=work)
        )
    return Job("rows", made)


def partly_recorded(job, random, longest):
    """The job with some kernels' addresses written down, which then follow from nothing that is launched."""
    pairs = zip(job.kernels, recorded(job, longest, True).kernels, strict=True)
    return replace(job, kernels=[random.choice(pair) for pair in pairs])


def twice(job):
    """The job's kernels once more behind themselves: every signature comes back."""
    count = len(job.kernels)
    events = [(a + part, b + part) for part in (0, count) for a, b in job.events]
    # what comes back in another stream must not race with what was there
    events += [(before, count + k) for k in range(count) for before in range(count)]
    return Job(job.name, [*job.kernels, *job.kernels], events)


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
