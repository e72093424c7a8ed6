"""Lines that L1 has in part: a load asks for the sectors that it lacks, as the card's does."""

from __future__ import annotations

import numpy as np
import pytest

from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Code, Pattern, Program

from .harness import execute, tiny

SECTOR = 32


def job(name, source, code, warps=1):
    """A job of one TB."""

    def regions(tbs):
        return np.tile(np.array([[0, 1, 0, source.cols]], np.int64), (len(tbs), 1))

    program = Program(name, (tuple(code.ops),), warps, 16, 0, 1)
    return Job(name, [Kernel(name, program, (1, 1, 1), (source,), (Access(source, "read", regions),))])


def job_of(loads, *, waits, warps=1, delay=0):
    """A TB whose warps load (first sector, sectors) of a line one after the other; ``waits``: for each."""
    source = Memory().tensor("in", 1, 1 << 10, 4)
    code = Code()
    for first, count in loads:
        code.load(0, Pattern(0, 4, base=SECTOR * first, s0=SECTOR, lanes=(1 << count) - 1))
        if waits:
            code.wait(0)
        if delay:
            code.delay(delay)
    code.wait(0)
    code.exit()
    return job("parts", source, code, warps)


def asked(of, **machine):
    """Sectors that the SM asks for, requests, hits and merged loads."""
    ran = execute(of, "stream", tiny(sim__oracle=1, **machine))
    work = ran.sms["work"]
    assert int(ran.slices["sectors_read"].sum()) == int(work["load_sectors"].sum())
    return tuple(int(work[name].sum()) for name in ("load_sectors", "l2_requests", "l1_hits", "l1_merged"))


@pytest.mark.parametrize("waits", [True, False])
def test_a_load_asks_for_what_l1_lacks(waits):
    assert asked(job_of([(0, 2), (1, 2)], waits=waits)) == (3, 2, 0, 0)
    assert asked(job_of([(0, 1), (0, 4)], waits=waits)) == (4, 2, 0, 0)


def test_what_came_later_is_there_for_later_loads():
    assert asked(job_of([(0, 2), (1, 2), (0, 3)], waits=True)) == (3, 2, 1, 0)
    # in flight, both parts: the third load asks for nothing, and waits
    assert asked(job_of([(0, 2), (1, 2), (0, 3)], waits=False)) == (3, 2, 0, 1)


def test_warps_that_share_a_line_ask_for_it_once():
    assert asked(job_of([(0, 1), (0, 3), (1, 3)], waits=False, warps=4)) == (4, 3, 0, 9)


@pytest.mark.parametrize("delay", [0, 296, 320, 339, 345, 350, 400])
def test_when_an_answer_is_known_does_not_matter(delay):
    """A part may be asked for before or after it is known when what is in flight comes."""
    late = job_of([(0, 2), (1, 2), (3, 1), (0, 4)], waits=False, warps=8, delay=delay)
    want = execute(late, "stream", tiny()).fingerprint()
    for quantum in (1, 7, 31):
        assert execute(late, "stream", tiny(sim__quantum=quantum)).fingerprint() == want
