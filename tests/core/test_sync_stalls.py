"""Who waits inside its program for other TBs waits for a dependence, not for memory or its own barrier."""

from __future__ import annotations

import numpy as np
import pytest

from pysim import simulate
from pysim.program.warp_program import Code, Sem
from pysim.workloads.registry import make
from tests.schemes.test_prologue import chain

from .harness import execute, tiny, total_of
from .test_conservation import residence
from .test_waits import JOBS, PDL, delays, kernel, run

LONG = 20_000
INSIDE = [(name, scheme) for name in ("chain", "edges") for scheme in ("fused", "fused:tile")]
INSIDE += [(n, s) for n in ("edges", "gru") for s in ("pdl", "cusync", "cusync:row+pdl", "stream:sync_code")]


def stalls(made, number):
    return {name: int(made.kernels["stalls"][name][number]) for name in made.kernels["stalls"].dtype.names}


@pytest.mark.parametrize("warps", [1, 4, 32])
def test_a_semaphore(warps):
    """The poll of a TB that is there long before the post: all but the time of its own warps' arrival."""
    post, wait = Code(), Code()
    post.delay(LONG)
    post.post(Sem())
    post.exit()
    wait.poll(Sem())
    wait.exit()
    made = run([kernel(post), kernel(wait, warps=warps, stream=1)], [1])
    took = stalls(made, 1)
    assert 0.95 * warps * LONG < took["sync"] < warps * (LONG + 3000)
    assert took["memory"] == 0
    assert took["barrier"] < 100 * warps  # they are counted one after another
    assert stalls(made, 0)["sync"] == 0  # a fence waits for the TB's own stores


def test_late_warps_are_waited_for_at_a_barrier():
    """Its last warp comes long after the answer: nobody waits for another TB."""
    late = Code()
    late.delay(4000)
    late.poll(Sem())
    late.exit()
    open_one = run([kernel(late, warps=2)], [0])
    took = stalls(open_one, 0)
    # an answer takes its way to L2 and back, once a warp
    assert 0 < took["sync"] < 2 * 2500
    assert took["scoreboard"] == 2 * 4000


def test_the_end_of_a_kernel():
    """pdl: TBs of the second kernel start at once and wait inside for the end of the first."""
    made = execute(delays(LONG, 4, 2), "pdl", tiny(**PDL))
    first, second = stalls(made, 0), stalls(made, 1)
    waited = int(residence(made, 1).sum()) * 4 - 4 * 4 * LONG
    assert second["sync"] == pytest.approx(waited, rel=0.05)
    assert waited > 4 * 4 * LONG / 2
    assert (first["sync"], second["memory"], second["barrier"]) == (0, 0, 0)


def test_a_gate_behind_a_prologue():
    job = chain(2, body=LONG)
    made = execute(job, "tb_static:prologue", tiny())
    plain = execute(job, "tb_static", tiny())
    assert stalls(made, 1)["sync"] > 0.9 * 4 * LONG
    assert stalls(made, 1)["memory"] <= 1.2 * stalls(plain, 1)["memory"]
    assert stalls(plain, 1)["sync"] == 0


def test_the_table_says_dependence():
    rows = simulate(tiny(**PDL), delays(LONG, 6, 2), "stream,pdl", threads=1).tables()["stalls"]
    shares = [n for n in rows.dtype.names if n not in ("run", "level", "id")]
    assert np.sum([rows[n] for n in shares], axis=0) == pytest.approx(1.0)
    one = {(int(r["run"]), r["level"], int(r["id"])): r for r in rows}
    # the second kernel of two waits about half of its time
    assert one[1, b"kernel", 1]["dependence"] > 0.4
    assert one[1, b"kernel", 1]["memory"] < 0.01


@pytest.mark.parametrize(("name", "scheme"), INSIDE)
def test_conserved(name, scheme):
    made = execute(JOBS[name](), scheme, tiny(**PDL))
    spent = total_of(made.kernels, "stalls")
    for number, launch in enumerate(made.job.kernels):
        cycles = int(residence(made, number).sum())
        assert cycles <= spent[number] <= cycles * launch.program.warps
    for counter in made.sms["stalls"].dtype.names:
        assert made.sms["stalls"][counter].sum() == made.kernels["stalls"][counter].sum()
    assert made.sms["stalls"]["sync"].sum() > 0
    assert made.samples["warp_cycles"].sum() == spent.sum()


def test_schemes_that_wait_before_dispatch_have_none():
    for scheme in ("stream", "tb_static"):
        made = execute(make("gru:hidden=64,batch=8,timesteps=2"), scheme)
        assert made.sms["stalls"]["sync"].sum() == 0
