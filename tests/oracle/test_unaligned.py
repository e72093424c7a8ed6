"""TBs of one kernel may write neighbouring bytes of a sector; a missing edge is caught all the same."""

import numpy as np
import pytest

from pysim import Job, Memory
from pysim.workloads.kernels.pointwise import Field, elementwise, flat
from tests.core.harness import execute, oracle
from tests.support.thin import thin

from .unaligned_jobs import case, check, check_mutant, mutant

EACH = 100  # jobs of a test


@pytest.mark.parametrize("start", [0, 1, 4, 7])
def test_an_addition_in_place_from_inside_a_sector(start):
    memory = Memory()
    a, b = flat(memory.tensor("a", 1, 9000, 4)), flat(memory.tensor("b", 1, 9000, 4))
    out = Field(a, start)
    kernel = elementwise(
        "add", [Field(b, start), out], [out], cols=2000, per_element={"fp32": 1, "int": 2}, threads=32
    )
    execute(Job("in place", [kernel], []), "stream", oracle(gpu__sms=1, gpu__sm__tbs=1))


def test_jobs_are_drawn_that_share_sectors():
    shared = 0
    for one in map(case, range(100)):
        for kernel in one.job().kernels:
            rows = kernel.accesses[0].regions(np.arange(kernel.tbs))
            shared += (rows[1:, 2] % 32 != 0).any()
    assert shared > 200


@pytest.mark.parametrize("first", thin(range(0, 10_000, EACH), [0, 3_000, 7_000]))
def test_no_false_alarm(first):
    for number in range(first, first + EACH):
        check(case(number))


@pytest.mark.parametrize("first", thin(range(0, 1000, EACH), [0]))
def test_every_edge_too_few_is_caught(first):
    caught = sum(check_mutant(mutant(number)) for number in range(first, first + EACH))
    assert caught > EACH // 2
