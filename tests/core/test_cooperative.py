"""Kernels whose TBs wait for each other: two that become ready one by one do not block each other."""

import numpy as np
import pytest

from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Code, Program
from tests.core.harness import execute, oracle

SLOTS = 12  # TBs of 32 warps that the small device holds


def rows(tbs):
    return np.stack([tbs, tbs + 1, 0 * tbs, 0 * tbs + 1], axis=1)


def whole(tensor):
    return Access(tensor, "read", lambda tbs: np.tile([0, tensor.rows, 0, 1], (len(tbs), 1)))


def kernel(name, tbs, reads, writes, *, cycles=100, cooperative=False):
    code = Code()
    code.delay(cycles)
    if cooperative:  # a grid barrier
        code.mark_tb_signal(0)
        code.mark_tb_wait(0)
    code.exit()
    program = Program(name, (tuple(code.ops),), 32, 16, 0, 0)
    more = {"tb_semaphores": np.array([tbs]), "cooperative": True} if cooperative else {}
    return Kernel(name, program, (tbs, 1, 1), (), (*reads, Access(writes, "write", rows)), **more)


def two_gangs(causes, each=SLOTS - 1):
    """All slots are busy, until one end after the other; each gang waits for the end of one of ``causes``."""
    memory = Memory()
    busy = [memory.tensor(f"b{n}", 1, 1, 4) for n in range(SLOTS)]
    made = [kernel(f"busy{n}", 1, (), busy[n], cycles=2000 + 3000 * n) for n in range(SLOTS)]
    for n, cause in enumerate(causes):
        out = memory.tensor(f"out{n}", each, 1, 4)
        made.append(kernel(f"gang{n}", each, (whole(busy[cause]),), out, cooperative=True))
    return Job("gangs", made)


@pytest.mark.parametrize("causes", [(0, 2), (2, 0)])
@pytest.mark.parametrize(
    "scheme",
    ["pool", "tb_static", "tb_static:newest", "tb_static:round_robin", "tb_auto:newest", "tb_bloom:newest"],
)
def test_two_that_become_ready_one_after_the_other_end(scheme, causes):
    execute(two_gangs(causes), scheme, oracle())


def test_one_begins_when_all_its_tbs_are_ready():
    """The first TBs of a kernel must not wait, in slots, for TBs that wait for another cooperative kernel."""
    memory = Memory()
    a, b, c, d = (memory.tensor(name, 8, 1, 4) for name in "abcd")
    made = [
        kernel("busy", 8, (), a, cycles=4000),
        kernel("first", 8, (whole(a),), b, cooperative=True),
        kernel("second", 8, (Access(b, "read", rows),), c, cooperative=True),
        kernel("third", 8, (Access(c, "read", rows),), d, cooperative=True),
    ]
    for scheme in ("tb_static", "tb_static:newest", "tb_auto"):
        execute(Job("chain", made), scheme, oracle())
