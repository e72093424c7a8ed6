"""Stream-K: every step once, exact footprints, the work of a plain product and no more, nobody locks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim import Config, simulate
from pysim.dependence.dependences import dependences
from pysim.dependence.intra_kernel_sync import inherit_producers
from pysim.errors import SimError, WorkloadError
from pysim.machine.devices import device
from pysim.program.job import Job, Memory
from pysim.schemes import in_kernel_sync
from pysim.schemes.registry import parse_scheme
from pysim.workloads.kernels.copy import fill
from pysim.workloads.kernels.cutlass import cutlass_gemm, multistage
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.stream_k import KINDS, resident, schedule, stream_k, workspace
from pysim.workloads.kernels.tiling import Tiling
from pysim.workloads.registry import make
from tests.core.harness import FAMILY, SCHEMES, execute, tiny
from tests.support.walker import check_footprints, footprint, touched

F32 = Tiling("t32", 32, 32, 8, 4)
SLICED = Tiling("sliced", 32, 32, 32, 4, slices=4)
HALF = Tiling("half", 32, 64, 32, 4, "hmma", cutlass=True)
AMPERE = multistage("64x64x32x32x32x32", 3, 1)
INSIDE = ("pdl", "pdl:late", "cusync:tile+streams", "cusync:row+pdl", "cusync:tile+graph")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(KINDS), st.integers(1, 60), st.integers(1, 20), st.integers(1, 25))
def test_every_step_is_done_once_and_shared_evenly(kind, tiles, steps, slots):
    made = schedule(kind, tiles, steps, slots)
    done = Counter((part.tile, step) for tb in made for part in tb for step in range(part.first, part.end))
    assert done == Counter({(tile, step): 1 for tile in range(tiles) for step in range(steps)})
    assert len(made) == min(slots, tiles * steps)
    assert all(made)
    sizes = [sum(part.end - part.first for part in tb) for tb in made]
    # the shares of the steps that are shared differ by one at most, and whole tiles go round evenly
    assert max(sizes) - min(sizes) <= 1
    if kind == "two_tile" and tiles > slots and tiles % slots:
        shared = [[part for part in tb if part.end - part.first < steps or part.peers] for tb in made]
        assert all(len(part.peers) <= 2 for tb in shared for part in tb)
    for number, tb in enumerate(made):
        left = [at for at, part in enumerate(tb) if part.end < steps]
        # what a TB leaves comes before it waits for anybody, and once
        assert len(left) <= 1
        assert not any(part.peers for part in tb[: left[0] if left else 0])
        for part in tb:
            assert all(peer < number for peer in part.peers)
            if part.end == steps:
                mine = [(p.first, p.end) for peer in part.peers for p in made[peer] if p.tile == part.tile]
                assert mine == sorted(mine)
                assert sum(end - first for first, end in mine) == part.first


def test_shares_of_so_many_steps_at_the_least():
    assert len(schedule("basic", 1, 128, 108, 16)) == 8
    assert len(schedule("basic", 3, 8, 108, 16)) == 3
    few = schedule("one_tile", 109, 128, 108, 16)
    assert len(few) == 108
    assert sum(len(tb) == 2 for tb in few) == 8


def pair(tiling, m, n, k, kind, slots, a_t=False, b_t=False, beta=0.0):
    """A product as it is and as Stream-K."""
    memory, item = Memory(), 4 if getattr(tiling, "math", "") == "ffma" else 2
    a = memory.tensor("a", *((k, m) if a_t else (m, k)), item)
    b = memory.tensor("b", *((n, k) if b_t else (k, n)), item)
    c, sums = memory.tensor("c", m, n, item), workspace(memory, "sums", tiling, slots)
    how = {"a_t": a_t, "b_t": b_t, "beta": beta}
    plain = (
        gemm("g", a, b, c, tiling, **how)
        if isinstance(tiling, Tiling)
        else cutlass_gemm("g", a, b, c, tiling)
    )
    return plain, stream_k("g", a, b, c, tiling, sums, kind=kind, **how)


def pipes(kernel):
    return sum((touched(kernel, tb).pipes for tb in range(kernel.tbs)), Counter())


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from((F32, SLICED)), st.integers(1, 100), st.integers(1, 100), st.integers(1, 100),
    st.sampled_from(KINDS), st.integers(1, 9), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_footprints_and_work(tiling, m, n, k, kind, slots, a_t, b_t, beta):
    """TBs touch what they say; together they do the work of a plain product, and add what others left."""
    plain, shared = pair(tiling, m, n, k, kind, slots, a_t, b_t, float(beta))
    check_footprints(shared)
    c = shared.args[2]
    covered = [footprint(shared, tb, "write") for tb in range(shared.tbs)]
    mine = np.concatenate([one[(one >= c.address) & (one < c.address + c.nbytes)] for one in covered])
    assert np.array_equal(np.sort(mine), c.address + np.arange(c.nbytes))
    # of each stretch of others: its sums, in whole tiles; groups of warps have been added before that
    stretches = 0 if shared.tb_edges is None else len(shared.tb_edges)
    sums = stretches * tiling.tm * tiling.tn // 32
    slices = stretches * (tiling.slices - 1) * tiling.tm * tiling.tn // 32
    assert pipes(shared)["fp32"] == pipes(plain)["fp32"] + sums + slices


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("tiling", "m", "n", "k"), [(HALF, 70, 128, 224), (AMPERE, 190, 128, 256)])
def test_tensor_steps_are_those_of_a_plain_product(tiling, m, n, k, kind):
    plain, shared = pair(tiling, m, n, k, kind, 5)
    assert shared.tb_edges is not None
    check_footprints(shared)
    assert pipes(shared)["tensor"] == pipes(plain)["tensor"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tiling", [F32, SLICED, HALF, AMPERE])
def test_a_tile_for_each_tb_is_the_plain_product(tiling, kind):
    """With as many TBs as tiles nothing is shared, and nothing takes longer or less long."""
    plain, shared = pair(tiling, 190, 128, 256, kind, -(-190 // tiling.tm) * (128 // tiling.tn))
    assert shared.tbs == plain.tbs
    assert shared.tb_edges is None
    ran, other = (execute(Job("one", [kernel])) for kernel in (plain, shared))
    assert ran.end == other.end
    assert ran.sms["work"]["warp_instructions"].sum() == other.sms["work"]["warp_instructions"].sum()


def chain(kind, slots=11, tiling=HALF, count=3, own=False):
    """Products, each of the one before, with one workspace or each its own."""
    memory = Memory()
    a, kernels = memory.tensor("a", 160, 256, 2), []
    sums = workspace(memory, "sums", tiling, slots)
    for step in range(count):
        sums = workspace(memory, f"sums{step}", tiling, slots) if own else sums
        b, c = memory.tensor(f"b{step}", 256, 256, 2), memory.tensor(f"c{step}", 160, 256, 2)
        kernels.append(stream_k(f"gemm{step}", a, b, c, tiling, sums, kind=kind))
        a = c
    return Job("chain", [fill("zero", a), *kernels])


@pytest.mark.parametrize("scheme", [*SCHEMES, *FAMILY])
@pytest.mark.parametrize("kind", KINDS)
def test_under_schemes_that_wait_before_dispatch(scheme, kind):
    job = chain(kind)
    ran = execute(job, scheme, tiny(sim__oracle=1))
    assert int(ran.totals.tbs_done) == sum(k.tbs for k in job.kernels)
    assert ran.fingerprint() == execute(job, scheme, tiny(), threads=(2, 1), quanta=(3,)).fingerprint()


@pytest.mark.parametrize("scheme", INSIDE)
@pytest.mark.parametrize("tiling", [HALF, AMPERE])
def test_under_schemes_that_wait_inside(scheme, tiling):
    conf = tiny(sim__oracle=1, scheme__hypothetical=1)
    job = chain("two_tile", tiling=tiling, own=True)
    assert int(execute(job, scheme, conf).totals.tbs_done) >= sum(k.tbs for k in job.kernels)


def test_kernels_of_one_workspace_do_not_overlap_inside():
    with pytest.raises(WorkloadError, match="in one workspace: give each its own"):
        execute(chain("two_tile"), "cusync:tile+streams")


@pytest.mark.parametrize("priority", ["newest", "critical", "consumer", "round_robin"])
@pytest.mark.parametrize("slots", [5, 24, 40])
def test_nobody_locks_where_kernels_crowd_each_other(priority, slots):
    """A TB is launched when those that it waits for inside can be, with more TBs than there is room for."""
    job = chain("basic", slots, count=4)
    for scheme in ("tb_ideal", "tb_static"):
        execute(job, scheme, tiny(sim__oracle=1, scheme__priority=priority, gpu__sms=1))


def test_a_tb_waits_for_what_those_that_it_waits_for_need():
    job = chain("basic", 11, count=2)
    deps = dependences(job)
    held = inherit_producers(job, deps)
    kernel = job.kernels[2]
    for waiter, peer in kernel.tb_edges.tolist():
        assert set(deps.producers(2, peer)) <= set(held.producers(2, waiter))
    extra = sum(len(held.producers(2, tb)) - len(deps.producers(2, tb)) for tb in range(kernel.tbs))
    assert extra > 0


def test_owners_wait_for_flags(monkeypatch):
    """Without the posts the run ends with an error that names who waits."""
    monkeypatch.setattr(in_kernel_sync, "publish_ops", lambda ops, sem, level: [])
    with pytest.raises(SimError, match=r"deadlock .* TB \d+ of kernel 1 waits for semaphore"):
        execute(chain("basic", count=1), "stream")


def test_a_wave_that_is_nearly_empty_is_won_back():
    """One tile more than there is room for costs plain products a wave, and Stream-K its share."""
    ran = {}
    for tiles in (6, 7):
        for kind in ("", "basic", "two_tile"):
            how = f",stream_k={kind},slots=6" if kind else ""
            job = make(f"gemm:m={256 * tiles},n=128,k=1024,dtype=fp16,tile=fp16_s884gemm_256x128,beta=0{how}")
            assert job.kernels[0].tbs == (6 if kind else tiles)
            ran[tiles, kind] = execute(job).us
    assert ran[6, "basic"] == ran[6, "two_tile"] == ran[6, ""]
    assert ran[7, ""] > 1.6 * ran[6, ""]
    for kind in ("basic", "two_tile"):
        assert ran[7, kind] < 0.8 * ran[7, ""]
        # six of these SMs do the work of seven tiles in 7/6 of the time at best
        assert ran[7, kind] > 7 / 6 * 0.98 * ran[6, ""] - 10


def test_bounds_and_statuses():
    frame = simulate(tiny(), chain("one_tile"), "host,stream,graph,tb_static", threads=1).frame("runs")
    assert set(frame["status"]) == {"ok"}
    assert (frame["bound_us"] <= frame["time_us"]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gemm:stream_k=three_tile", "stream_k = three_tile: must be one of basic, one_tile, two_tile"),
        ("gemm:stream_k=basic,slots=-1", "must be positive"),
    ],
)
def test_wrong_options(text, message):
    with pytest.raises(WorkloadError, match=message):
        make(text)


def test_as_many_tbs_as_a_gpu_holds():
    a100 = Config.resolve(device("a100"))
    # 73,728 B of shared memory and 128 sums a thread: one an SM; small tiles: several
    assert resident(multistage("128x256x32x64x64x32", 3, 1), a100) == 108
    assert resident(AMPERE, a100) % 108 == 0
    assert resident(AMPERE, a100) > 2 * 108


def test_wrong_kernels():
    memory = Memory()
    a, b, c = (memory.tensor(name, 64, 64, 4) for name in "abc")
    split = Tiling("split", 32, 32, 8, 4, split_k=2)
    with pytest.raises(WorkloadError, match="splits K already"):
        stream_k("g", a, b, c, split, workspace(memory, "w", split, 4))
    with pytest.raises(WorkloadError, match="workspace 4 x 1024: must be 8 x 1024"):
        stream_k("g", a, b, c, F32, workspace(memory, "w", F32, 4), slots=8)
    job = chain("basic", count=2)
    with pytest.raises(WorkloadError, match="do not fuse"):
        parse_scheme("fused").launch_plan(job, dependences(job), tiny())
