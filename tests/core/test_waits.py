"""Waiting inside the program: what a hand-over costs, determinism, the oracle, deadlocks and refusals."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from pysim import simulate
from pysim.dependence.dependences import dependences
from pysim.engine.lower import lower
from pysim.engine.simulation import Sim
from pysim.errors import SimError
from pysim.program.copies import copy_kernel
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.occupancy import carveout
from pysim.program.ops import lower_programs
from pysim.program.warp_program import Affine as At
from pysim.program.warp_program import Code, Pattern, Program, Sem
from pysim.schemes.launch_plan import LaunchPlan
from pysim.schemes.registry import parse_scheme
from pysim.workloads.registry import make
from tests.support.measured import measured_table

from .harness import config, drive, execute, outcome, tiny
from .workloads_small import FAR, WIDE, product

JOBS = {
    "chain": lambda: product(96, 128, 128, WIDE, chain=4),
    "edges": lambda: product(150, 104, 96, WIDE, chain=3),
    "gru": lambda: make("gru:hidden=64,batch=8,timesteps=4,layers=1,buffers=4"),
    "hoisted": lambda: make("gru:hidden=64,batch=8,timesteps=3,layers=1,input=hoisted"),
}
SCHEMES = (
    "pdl", "pdl:late", "pdl:graph", "cusync", "cusync:row", "cusync:tile+pdl", "cusync:row+pdl+late",
    "cusync:tile+pdl+spread", "cusync:row+graph", "stream:sync_code",
)  # fmt: skip
PDL = {"scheme__hypothetical": 1}


def kernel(code, tbs=1, warps=1, stream=0):
    program = Program("made", (tuple(code.ops),), warps, 16, 0, 0)
    return Kernel("made", program, (tbs, 1, 1), (), (), stream)


def run(kernels, needs, bases=None, conf=None):
    """Run kernels that name semaphores themselves; ``bases``: four first semaphores a kernel."""
    conf = conf or config("h200")
    job, count = Job("made", kernels), len(kernels)
    values = conf.encoded()
    bases = bases or [(0, 0, 0, 0)] * count
    zeros = [0] * count
    # streams of their own: nothing waits but inside the programs
    plan = LaunchPlan(job, zeros, bases, np.array(needs, np.uint32), zeros, [()] * count, list(range(count)))
    programs = lower_programs(job, values["gpu.sm.block_max"], values)
    each = [carveout(k, values, conf.carveouts) for k in kernels]
    choice = parse_scheme("stream")
    made = lower(job, dependences(job), choice, values, programs, each, [1.0] * count, plan)
    with Sim(made) as sim:
        return outcome(sim, job, values, drive(sim))


def ping_pong(first, turns=100):
    """Cycles from one TB's post to the other's, both on SMs of their own."""
    codes = []
    for mine, other, begins in ((0, 1, True), (1, 0, False)):
        code = Code()
        mark = code.loop_begin()
        steps = [lambda c, i=mine: c.post(Sem(col=At(step=1), base=i))]
        steps.insert(0 if not begins else 1, lambda c, i=other: c.poll(Sem(col=At(step=1), base=i)))
        for step in steps:
            step(code)
        code.loop_end(mark, turns)
        code.exit()
        codes.append(code)
    bases = [(first, first + 128, 0, 0)] * 2
    made = run([kernel(c, stream=i) for i, c in enumerate(codes)], [1] * (first + 256), bases)
    return made.kernel_cycles(0) / 2 / turns


def test_hand_over():
    """Measured: semaphore_handoff_cycles.fence_atomic__acquire_poll, 1194 on average, 869 to 1313 (H200)."""
    ways = [ping_pong(32 * 8 * i) for i in range(12)]  # lines of slices all over L2
    assert np.mean(ways) == pytest.approx(1194, rel=0.1)
    assert min(ways) > 800
    assert max(ways) < 1400


@pytest.mark.parametrize(
    ("tbs", "warps", "measured"), [(132, 4, 1887), (132, 32, 1949), (264, 4, 1906), (528, 4, 2393)]
)
def test_grid_barrier(tbs, warps, measured):
    """Measured: grid_sync_cycles (H200); a barrier of the TB, a post, and a poll by every TB."""
    turns = 20
    code = Code()
    mark = code.loop_begin()
    code.barrier()
    code.post(Sem(col=At(step=32)))
    code.poll(Sem(col=At(step=32)))
    code.loop_end(mark, turns)
    code.exit()
    assert run([kernel(code, tbs, warps)], [tbs] * (32 * turns)).kernel_cycles() / turns == pytest.approx(
        measured, rel=0.1
    )


def delays(cycles, tbs, count):
    code = Code()
    code.mark_main_loop_end()  # it knows of triggers
    code.delay(cycles)
    code.exit()
    return Job("delays", [kernel(code, tbs, 4) for _ in range(count)])


@pytest.mark.parametrize(("tbs", "start"), [(1, 512), (132, 544)])
def test_early_launch(tbs, start):
    """Measured: pdl_pair_ns_primary_first_start_to_secondary_first_start (H200); eight kernels at most."""
    made = execute(delays(40000, tbs, 10), "pdl", config("h200"))
    starts = [made.tbs["start"][made.tbs["kernel"] == k].min() / 1024 for k in range(10)]
    ends = [made.tbs["end"][made.tbs["kernel"] == k].max() / 1024 for k in range(10)]
    gaps = [b - a for a, b in pairwise(starts[:8])]
    assert gaps == pytest.approx([start] * 7, rel=0.1)
    # the ninth starts when the first has been over for a while: about 2 us in deps_tb_trace (gru, 3_pdl)
    assert 1600 < starts[8] - ends[0] < 2300
    # and each runs its 40,000 cycles after the one before: 416 and 608 ns with the stores of the measurement
    waits_ns = [b - a - 40000 / 1.98 for a, b in pairwise(ends)]
    assert all(190 < w < 620 for w in waits_ns)


def test_more_early_kernels_in_a_graph():
    """Those of a graph are not held to eight in flight, as h200_deps.csv wants it: 128 are."""
    made = execute(delays(150_000, 1, 130), "pdl:graph", config("h200"))
    starts = [made.tbs["start"][made.tbs["kernel"] == k].min() / 1024 for k in range(130)]
    assert [b - a for a, b in pairwise(starts[:128])] == pytest.approx([400] * 127, rel=0.15)
    assert starts[128] - starts[127] > 2000


def posting(posts, later, latency, line=0):
    """Time of a kernel that stores, fences, posts in a line or does not, and goes on, us."""
    code, memory = Code(), Memory()
    out = memory.tensor("out", 1, 1024, 4)
    code.delay(6000)
    code.store(0, Pattern(0, 4, s0=4))
    code.wait(0)
    if posts:
        code.post(Sem(first=32 * line))
    else:
        code.delay(config("h200").values["gpu.sync.fence"])
    if later:
        code.delay(later)
    code.exit()

    def regions(tbs):
        return np.tile(np.array([[0, 1, 0, out.cols]], np.int64), (len(tbs), 1))

    program = Program("made", (tuple(code.ops),), 1, 16, 0, 1)
    made = Kernel("made", program, (1, 1, 1), (out,), (Access(out, "write", regions),))
    return run([made], [1] * 32 * (line + 1), conf=config("h200", gpu__sync__posted=latency)).us


def test_what_a_post_adds_to_the_end_of_its_kernel():
    """Measured, h200_posts.csv: 0.18 us, its instructions among them; hardly any if the TB goes on."""
    with (measured_table("h200_posts.csv")).open(encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file) if int(r["tbs"]) <= 132 and r["apart"] == "1"]
    own = config("h200").values["gpu.sync.posted"]
    for more in ((0,), (100, 200), (300, 400, 500, 600, 800)):
        # events tell 0.2 us apart: only means over many rows say anything
        adds = [
            float(with_it["events_us"]) - float(without["events_us"])
            for without, with_it in pairwise(rows)
            if (without["how"], with_it["how"]) == ("2", "3") and int(with_it["later"]) in more
        ]
        assert len(adds) >= 20
        # lines all over L2, in both halves
        here = [
            posting(True, later, own, line) - posting(False, later, own)
            for later in more
            for line in range(0, 768, 32)
        ]
        assert np.mean(here) == pytest.approx(np.mean(adds), abs=0.03)


@pytest.mark.parametrize(
    ("scheme", "tbs", "period"), [("pdl", 1, 0.505), ("pdl:graph", 1, 0.4), ("pdl", 132, 0.597)]
)
def test_period_of_empty_kernels(scheme, tbs, period):
    """Measured: pdl_kernel_period_us, graph_pdl_kernel_period_us (H200)."""
    assert execute(delays(1, tbs, 100), scheme, config("h200")).us / 100 == pytest.approx(period, rel=0.15)


def turning(tbs, turns, parameters):
    """Two kernels of TBs that do a little again and again, so that they would see code that is missing."""
    code = Code()
    code.mark_main_loop_end()
    mark = code.loop_begin()
    code.delay(50)
    code.loop_end(mark, turns)
    code.exit()
    return Job("turning", [replace(kernel(code, tbs, 4), parameter_lines=parameters) for _ in range(2)])


@pytest.mark.parametrize(
    ("scheme", "parameters", "longer"), [("pdl", 2, 720), ("pdl:graph", 2, 0), ("pdl", 0, 0)]
)
def test_a_launch_of_a_stream_drops_code(scheme, parameters, longer):
    """Measured: h200_early.csv, TBs beside which a stream launches another kernel; in a graph none do.

    Kernels of a few instructions do not either: pdl_pair_ns of the microbenchmarks.
    """
    took = []
    for cycles in (0, 720):
        made = execute(turning(132, 200, parameters), scheme, config("h200", gpu__sm__refetch=cycles))
        each = [made.tbs[made.tbs["kernel"] == k] for k in (0, 1)]
        took.append([int((tbs["end"] - tbs["start"]).max()) / 1024 * 1.98 for tbs in each])
    first, second = (b - a for a, b in zip(*took, strict=True))
    assert first == pytest.approx(longer, abs=60)
    # the second has its code long before the first has ended
    assert second == pytest.approx(first, abs=60)


def test_many_launches_of_one_instant_drop_code_once():
    """An SM is told once, however many kernels are launched together; of 500 its messages would overflow."""
    one = turning(132, 20, 3).kernels[0]
    job = Job("many", [replace(one, stream=i) for i in range(500)])
    assert execute(job, "stream", config("h200")).totals.tbs_done == 500 * 132


@pytest.mark.parametrize("other", ["copy", "kernel"])
def test_a_copy_is_no_kernel_beside_others(other):
    """A copy drops no code of those beside which it begins, and a launch beside one has no longer gap."""
    first, second = (replace(k, parameter_lines=2) for k in turning(132, 200, 2).kernels)
    beside = copy_kernel(np.array([[FAR, FAR + (1 << 20)]], np.int64), True, 1)
    if other == "kernel":
        beside = replace(turning(1, 2000, 2).kernels[0], stream=1)
    seen = []
    for kernels in ([first, second], [first, beside, second]):
        made = execute(Job("beside", kernels), "stream", config("h200"))
        tbs = [made.tbs[made.tbs["kernel"] == k] for k in (0, len(kernels) - 1)]
        took = int((tbs[0]["end"] - tbs[0]["start"]).max())
        seen.append((took, int(tbs[1]["start"].min()) - int(tbs[0]["end"].max())))
    if other == "copy":
        assert seen[1] == seen[0]
        copied = made.kernels[1]  # under way all the while
        assert copied["first_dispatch"] < tbs[0]["end"].min()
        assert copied["released"] > tbs[1]["start"].max()
    else:
        assert seen[1][0] > seen[0][0] + 300 * 1024 / 1.98
        assert seen[1][1] > seen[0][1] + 500 * 1024


def test_a_deadlock_is_named():
    code = Code()
    code.poll(Sem(first=5))
    code.exit()
    text = "TB 0 of kernel 0 waits for semaphore 5, posted 0 times of 3, and nothing can happen$"
    with pytest.raises(SimError, match=text):
        run([kernel(code)], [3] * 8)


@pytest.mark.parametrize(
    ("more", "posts", "room"),
    [
        (0, 4, "4 TBs of kernel 1 wait for room"),
        (0, 1, "1 TB of kernel 1 waits for room"),
        (5, 4, "5 TBs of kernel 0 and 4 of later ones wait for room"),
    ],
)
def test_waiters_that_fill_the_machine_are_a_deadlock(more, posts, room):
    """Consumers resident, producers with no room: what the gates of ``streams`` prevent."""
    wait, post = Code(), Code()
    wait.poll(Sem())
    wait.exit()
    post.post(Sem())
    post.exit()
    slots = 132 * 32 + more
    text = f"of kernel 0 waits for semaphore 0, posted 0 times of 4, and nothing can happen: {room}$"
    with pytest.raises(SimError, match=text):
        run([kernel(wait, slots), kernel(post, posts, stream=1)], [4])


def test_a_semaphore_out_of_range_is_an_error():
    code = Code()
    code.poll(Sem(first=9))
    code.exit()
    with pytest.raises(SimError, match="semaphore 9 of 8"):
        run([kernel(code)], [1] * 8)


@pytest.mark.parametrize("scheme", ["pdl", "cusync", "fused:tile"])
def test_behind_an_event_nothing_overlaps(scheme):
    job = JOBS["chain"]()
    made = execute(Job("split", job.kernels, [(1, 2)]), scheme, tiny(sim__oracle=1, **PDL))
    starts = [made.tbs["start"][made.tbs["kernel"] == k].min() for k in range(len(made.job.kernels))]
    ends = [made.tbs["end"][made.tbs["kernel"] == k].max() for k in range(len(made.job.kernels))]
    half = len(starts) // 2
    assert min(starts[half:]) > max(ends[:half])


def test_refused():
    runs = simulate("titan_v", JOBS["chain"](), "pdl,cusync,cusync:tile+pdl", threads=1).tables()["runs"]
    about = {row["scheme"].decode(): (row["status"].decode(), row["reason"].decode()) for row in runs}
    assert about["cusync"] == ("ok", "")
    for name in ("pdl", "cusync:tile+pdl"):
        assert about[name][0] == "refused"
        assert "needs compute capability 9.0, titan_v has 7.0" in about[name][1]
    runs = simulate(tiny(), make("random_dag:kernels=6,seed=3"), "cusync,fused", threads=1).tables()["runs"]
    assert list(runs["status"][:2]) == [b"refused"] * 2
    runs = simulate(tiny(), JOBS["gru"](), "fused", threads=1).tables()["runs"]
    assert b"2 warps a TB, others 4: they do not fuse" in runs["reason"][0]
