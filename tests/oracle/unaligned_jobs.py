"""Random jobs whose TBs write neighbouring bytes of a sector, on few SMs: none of them is wrong.

The TBs of a kernel take some elements each, from any element of a tensor on. They read and write them in
place, or read those of another tensor. Some read again what they have written, when an L1 may hold the sector
as it was before a neighbour wrote to it. ``make oracle`` checks many, test_unaligned.py some.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import numpy as np

from pysim.dependence.dependences import dependences, without_edges
from pysim.errors import DependenceError
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Code, Pattern, Program
from tests.core.harness import execute, oracle, tiny

from .random_mutations import broken, late, records

BYTES = 4096  # of a tensor
MUTATED = ("graph", "pool", "tb_static", "tb_ideal")
SCHEMES = (*MUTATED, "stream", "tb_learned", "acs_hw", "blockmaestro", "tb_bloom")
SETTINGS = {
    "gpu.sm.tbs": (1, 2, 4, 16),
    "scheme.coherence": ("auto", "bypass", "tb"),
    "scheme.priority": ("oldest", "newest", "round_robin"),
    "scheme.placement": ("first_free", "balanced", "affinity"),
    "scheme.window": (2, 5, 100),
}


@dataclass(frozen=True)
class Case:
    """A random job by its seed, and how it runs; ``draw``: which edge a mutant is without."""

    seed: int
    kernels: int
    scheme: str
    chosen: dict[str, object]

    def job(self):
        random, memory = Random(self.seed), Memory()
        tensors = [memory.tensor(f"t{n}", 1, BYTES, 1) for n in range(random.randint(1, 3))]
        return Job("unaligned", [unaligned(random, tensors, n) for n in range(self.kernels)], [])


def part(start, size):
    """Return the regions of TBs that take ``size`` bytes each, from ``start`` on."""
    return lambda tbs: np.stack([0 * tbs, 0 * tbs + 1, start + tbs * size, start + (tbs + 1) * size], axis=1)


def unaligned(random, tensors, number):
    """Return a kernel whose TBs work on neighbouring bytes, as warps of up to 32 lanes of one element."""
    width, lanes, tbs = random.choice((2, 4, 8)), random.randint(1, 32), random.randint(1, 12)
    size = width * lanes
    source, target = random.choice(tensors), random.choice(tensors)
    first, begin = (width * random.randint(0, (BYTES - size * tbs) // width) for _ in range(2))
    first = begin if source is target else first
    code, mask = Code(), (1 << lanes) - 1
    read = Pattern(0, width, base=first, bx=size, s0=width, lanes=mask)
    write = Pattern(1, width, base=begin, bx=size, s0=width, lanes=mask)
    loop = code.loop_begin()
    reads = random.random() < 0.8
    again = source is target and random.random() < 0.5
    if reads:
        code.load(0, read)
        code.wait(0)
    if random.random() < 0.3:
        code.delay(random.randint(1, 400))
    code.store(1, write)
    if again:
        code.wait(1)
        code.load(0, read)
        code.wait(0)
    if random.random() < 0.3:
        code.loop_end(loop, random.randint(2, 4))
    code.exit()
    program = Program(f"unaligned {number}", (tuple(code.ops),), 1, 16, 0, 2)
    accesses = [Access(target, "write", part(begin, size))]
    if reads or again:
        accesses.append(Access(source, "read", part(first, size)))
    return Kernel(f"k{number}", program, (tbs, 1, 1), (source, target), tuple(accesses))


def case(number, schemes=SCHEMES):
    random = Random(-number - 7)
    chosen = {path: random.choice(values) for path, values in SETTINGS.items()}
    chosen["gpu.sms"] = random.randint(1, 4)
    return Case(random.randrange(1 << 30), random.randint(1, 6), random.choice(schemes), chosen)


def mutant(number):
    return case(number, MUTATED)


def check(case):
    """Nothing stops the job."""
    done = execute(case.job(), case.scheme, oracle(scheme__hypothetical=1).replaced(case.chosen))
    assert len(done.tbs) == sum(kernel.tbs for kernel in case.job().kernels)


def check_mutant(case):
    """Drop each edge of the job between kernels in turn; return how many dependences broke and were caught.

    The producer is late, so that the edge decides unless others imply it: whatever the records say is broken
    must be caught, and nothing else is wrong with the job.
    """
    whole, caught = case.job(), 0
    deps = dependences(whole)
    for node, group in enumerate(deps.groups):
        first = deps.kernel_and_tb(int(group.producers[0]))[0]
        slow = late(whole.kernels[first])
        kernels = [slow if k == first else kernel for k, kernel in enumerate(whole.kernels)]
        job, less = replace(whole, kernels=kernels), without_edges(deps, node=node)
        ran = execute(job, case.scheme, tiny().replaced(case.chosen), deps=less)
        certain = broken(deps, records(ran, job)[0], ran.values["gpu.clock"], first, False)
        try:
            execute(job, case.scheme, oracle().replaced(case.chosen), deps=less)
        except DependenceError:
            caught += 1
        else:
            assert not certain, f"node {node}: a broken dependence was not seen"
    return caught
