"""Recorded footprints against brute force, and against the same jobs as rectangles of tensors."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim import simulate
from pysim._ffi import ffi, lib
from pysim.analysis.traffic import compulsory_bytes, dram_traffic
from pysim.dependence.dependences import dependences, reduce_preds, without_edges
from pysim.engine.coherence import _bypass
from pysim.engine.simulation import Sim
from pysim.errors import DependenceError, WorkloadError
from pysim.program.footprint import MODES, READ, UPDATE, WRITE, Footprint
from pysim.program.job import Job, Kernel, Tensor
from pysim.program.written_memory import written_by_job
from pysim.workloads.registry import make
from tests.core.harness import SCHEMES, execute, lowered_of, tiny
from tests.core.workloads_small import JOBS
from tests.dependence.test_dependences import PROGRAM, brute, check_tables, closure, edges_of, jobs, kernel
from tests.support.thin import DRAWS, thin

Row = tuple[int, int, int, int]


def recorded(tbs: int, rows: list[Row], stream: int = 0) -> Kernel:
    columns = zip(*rows, strict=True) if rows else [()] * 4
    return Kernel("k", PROGRAM, (tbs, 1, 1), (), (), stream, Footprint.of(*map(list, columns)))


def as_recorded(kernel: Kernel) -> Kernel:
    """The same kernel with its rectangles as byte ranges."""
    rows: list[Row] = []
    for access in kernel.accesses:
        t = access.tensor
        for tb, rect in enumerate(access.regions(np.arange(kernel.tbs)).tolist()):
            row0, row1 = max(rect[0], 0), min(rect[1], t.rows)
            col0, col1 = max(rect[2], 0), min(rect[3], t.cols)
            for row in range(row0, row1 if col0 < col1 else row0):
                at = t.address + row * t.pitch
                rows.append((tb, at + col0 * t.item, at + col1 * t.item, MODES.index(access.mode)))
    columns = zip(*rows, strict=True) if rows else [()] * 4
    made = Footprint.of(*map(list, columns))
    return Kernel(kernel.name, kernel.program, kernel.grid, kernel.args, (), kernel.stream, made)


def truth_of(job: Job) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """All conflicting pairs of TBs of different kernels, sector by sector."""
    return brute_rows([k.footprint.sector_runs(k.tbs) for k in job.kernels if k.footprint is not None])


def brute_rows(kernels):
    touched: dict[int, list[tuple[int, int, bool]]] = {}
    for index, part in enumerate(kernels):
        for tb, lo, hi, written in zip(*(column.tolist() for column in part), strict=True):
            for sector in range(lo, hi):
                touched.setdefault(sector, []).append((index, tb, written))
    return {
        ((ka, ta), (kb, tb))
        for rows in touched.values()
        for (ka, ta, wa), (kb, tb, wb) in itertools.product(rows, rows)
        if ka < kb and (wa or wb)
    }


# few sectors: much aliasing; bytes, so that ranges share sectors that they do not share bytes of
RANGES = st.tuples(st.integers(0, 3), st.integers(0, 700), st.integers(1, 260), st.integers(0, 2))


@st.composite
def traces(draw: st.DrawFn) -> Job:
    kernels = []
    for _ in range(draw(st.integers(2, 6))):
        tbs = draw(st.integers(1, 4))
        rows = [(tb % tbs, at, at + size, mode) for tb, at, size, mode in draw(st.lists(RANGES, max_size=8))]
        kernels.append(recorded(tbs, rows, draw(st.integers(0, 2))))
    count = len(kernels)
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    return Job("trace", kernels, draw(st.lists(st.sampled_from(pairs), max_size=3)))


def check(job: Job, truth: set) -> None:
    deps = dependences(job)
    found = edges_of(job, deps)
    assert found <= truth
    assert closure(found, job) == closure(truth, job)
    assert {(int(e["producer"]), int(e["consumer"])) for e in deps.edges} == {(b[0], a[0]) for b, a in found}
    assert list(deps.preds) == [
        tuple(sorted({b[0] for b, a in found if a[0] == k})) for k in range(len(job.kernels))
    ]
    ordered = closure(order_edges(job), job_of_kernels(job))
    assert set(deps.races) == {(b[0], a[0]) for b, a in found if (b[0], 0) not in ordered[a[0], 0]}
    check_tables(job, deps)


def job_of_kernels(job: Job) -> Job:
    return Job("kernels", [recorded(1, []) for _ in job.kernels])


def order_edges(job: Job) -> set:
    """Streams and events, as edges between TBs 0."""
    made = {((a, 0), (b, 0)) for a, b in job.events}
    streams = [k.stream for k in job.kernels]
    return made | {
        ((a, 0), (b, 0)) for b in range(len(streams)) for a in range(b) if streams[a] == streams[b]
    }


@pytest.mark.parametrize("_draw", DRAWS)
@settings(max_examples=200, deadline=None)
@given(traces())
def test_equals_brute_force(_draw: int, job: Job) -> None:
    check(job, truth_of(job))


@settings(max_examples=300, deadline=None)
@given(jobs(), st.lists(st.booleans(), min_size=5, max_size=5))
def test_kernels_of_both_kinds_mix(job: Job, which: list[bool]) -> None:
    kernels = [as_recorded(k) if chosen else k for k, chosen in zip(job.kernels, which, strict=False)]
    check(Job("mixed", kernels, job.events), brute(job))


@settings(max_examples=100, deadline=None)
@given(traces(), st.integers(1, 40))
def test_small_blocks_change_nothing(job: Job, chunk: int) -> None:
    whole = dependences(job)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pysim.dependence.interval_sweep._CHUNK", chunk)
        cut = dependences(job)
    for name in ("nodes", "ranges", "outs", "tb_outs", "edges"):
        assert (getattr(whole, name) == getattr(cut, name)).all()


@settings(max_examples=100, deadline=None)
@given(traces(), st.randoms(use_true_random=False))
def test_order_and_repeats_of_rows_change_nothing(job: Job, random) -> None:
    def shuffled(kernel: Kernel) -> Kernel:
        rows = list(zip(*(c.tolist() for c in kernel.footprint._rows()), strict=True))
        rows += rows[:2]
        random.shuffle(rows)
        return recorded(kernel.tbs, rows, kernel.stream)

    again = dependences(Job("again", [shuffled(k) for k in job.kernels], job.events))
    whole = dependences(job)
    for name in ("nodes", "ranges", "outs", "tb_outs", "edges"):
        assert (getattr(whole, name) == getattr(again, name)).all()


@settings(max_examples=200, deadline=None)
@given(traces(), st.integers(0, 3))
def test_colliding_signatures_change_nothing(job: Job, bits: int) -> None:
    """Where the first word of a signature tells nothing, the second does."""
    from pysim.dependence import interval_sweep, set_hash

    whole, mixed = dependences(job), set_hash.mix64

    def weak(numbers, salt):
        # odd salts are first words
        return mixed(numbers, salt) & np.uint64((1 << bits) - 1) if salt % 2 else mixed(numbers, salt)

    with pytest.MonkeyPatch.context() as patch:
        for module in (set_hash, interval_sweep):
            patch.setattr(module, "mix64", weak)
        other = dependences(job)
    for name in ("nodes", "ranges", "outs", "tb_outs", "edges"):
        assert (getattr(whole, name) == getattr(other, name)).all()


# ---- the same job as rectangles and as recorded addresses ----
def from_the_core(job: Job) -> Job:
    """The job with what its programs touch, as the core tells it, in place of its accesses."""
    made, _ = lowered_of(job, "stream", tiny())
    out = ffi.new("uint64_t[]", 1 << 18)
    kernels = []
    with Sim(made) as sim:
        for number, kernel in enumerate(job.kernels):
            parts = []
            for tb in range(kernel.tbs):
                count = lib.gs_touches(sim.sim, number, tb, out, len(out))
                assert count <= len(out)
                touches = np.frombuffer(ffi.buffer(out, count * 8), np.uint64).copy()
                written = touches >> np.uint64(63)
                line = (touches & np.uint64((1 << 63) - 1)) >> np.uint64(4)
                for bit in range(4):
                    has = (touches >> np.uint64(bit) & np.uint64(1)).astype(bool)
                    start = (line[has] * np.uint64(128)).astype(np.int64) + 32 * bit
                    parts.append((np.full(len(start), tb), start, start + 32, written[has].astype(np.uint8)))
            columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
            kernels.append(replace(kernel, accesses=(), footprint=Footprint.of(*columns)))
    return Job(job.name, kernels, job.events, job.steps)


NETWORKS = {
    name: JOBS[name]
    for name in ("gemm_edges", "gemm_beta", "gemm_chain", "split_k", "sliced", "gru", "gru_hoisted", "mixed",
                 "random_dag", "pointwise", "shared_read", "copy")
}  # fmt: skip
NETWORKS["lstm"] = lambda: make("lstm:hidden=48,batch=8,timesteps=3,layers=2")
NETWORKS |= {
    f"dag{seed}": lambda seed=seed: make(
        f"random_dag:kernels=16,seed={seed},elements=4096,largest=900,streams={1 + seed % 3}"
    )
    for seed in range(6)
}


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_recorded_networks_have_the_same_order(name: str) -> None:
    """Tensors lie 256 B apart, so that no sector belongs to two: the order is the same, TB by TB."""
    job = NETWORKS[name]()
    plain, other = dependences(job), dependences(from_the_core(job))
    one, two = edges_of(job, plain), edges_of(job, other)
    assert closure(one, job) == closure(two, job)
    # memory that is written again in parts is forgotten in parts
    assert two <= one
    assert other.races == plain.races
    assert reduce_preds(other.preds) == reduce_preds(plain.preds)
    check_tables(job, other)
    assert len(other.tb_outs) + len(other.ranges) <= 1.5 * (len(plain.tb_outs) + len(plain.ranges)) + 16


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_recorded_networks_keep_to_the_order(name: str) -> None:
    job = from_the_core(NETWORKS[name]())
    for scheme in SCHEMES:
        execute(job, scheme, tiny(sim__oracle=1))


def test_dropping_an_edge_of_a_recorded_network_is_caught() -> None:
    job = from_the_core(JOBS["gemm_chain"]())
    deps = dependences(job)
    caught = 0
    for node in range(len(deps.nodes)):
        try:
            execute(job, "tb_static", tiny(sim__oracle=1), deps=without_edges(deps, node=node))
        except DependenceError:
            caught += 1
    assert caught > len(deps.nodes) // 2


@pytest.mark.parametrize("name", thin(["gemm_chain", "gru", "split_k"], 2))
def test_kernels_behind_barriers_run_alike(name: str) -> None:
    """Loads that go past L1, and barriers, come from footprints too: the runs are the same."""
    job = NETWORKS[name]()
    other = from_the_core(job)
    for scheme in ("stream", "graph"):
        assert execute(other, scheme).hash == execute(job, scheme).hash
    runs = [simulate(tiny(), j, "stream,tb_ideal", tables="none").frame("runs") for j in (job, other)]
    # of a recorded program it is not known which loads must go to L2
    assert 0.8 * runs[0]["bound_us"][0] < runs[1]["bound_us"][0] <= runs[0]["bound_us"][0]
    # nor which argument they read, and so how far its lines are: less latency
    assert runs[1]["estimate_us"][0] == pytest.approx(runs[0]["estimate_us"][0], rel=0.2)
    assert runs[0]["time_us"][1] == pytest.approx(runs[1]["time_us"][1], rel=0.03)


# ---- what summaries of footprints say ----
def test_memory_that_must_come_from_dram() -> None:
    read = recorded(2, [(0, 0, 4096, READ), (1, 2048, 8192, READ)])
    write = recorded(1, [(0, 4000, 5000, WRITE), (0, 7000, 7010, UPDATE)])
    job = Job("j", [read, write])
    # sectors: 4000 to 5024, 6976 to 7040
    assert written_by_job(job).tolist() == [[4000, 5024], [6976, 7040]]
    assert compulsory_bytes(job) == 8192 - 1024 - 64
    assert compulsory_bytes(Job("j", [read, read])) == 8192
    assert dram_traffic(Job("j", [read, read]), 1 << 20).reads == [8192, 0]
    assert dram_traffic(Job("j", [read, read]), 4096).reads == [8192, 8192]


def test_loads_of_written_memory_go_past_l1() -> None:
    a, b = Tensor("a", 1, 64, 4, 0), Tensor("b", 1, 64, 4, 256)
    write = recorded(1, [(0, 0, 64, WRITE)])
    read = replace(recorded(1, [(0, 0, 512, READ)]), args=(a, b))
    beside = replace(recorded(1, [(0, 64, 512, READ)]), args=(a, b))
    assert _bypass(Job("j", [write, read, beside])) == [0, 0xFFFFFFFD, 0]


def test_bad_rows_are_named() -> None:
    for rows, text in (
        ([(0, 0, 32, 0), (2, 0, 32, 0)], "row 1 (TB 2, bytes 0 to 32, mode 0): TBs are 0 to 1"),
        ([(0, 64, 64, 1)], "row 0 (TB 0, bytes 64 to 64, mode 1): a range needs"),
        ([(0, -1, 64, 1)], "0 <= start"),
        ([(0, 0, (1 << 62) + 1, 1)], "2^62"),
        ([(0, 0, 64, 3)], "modes are 0 (read)"),
    ):
        with pytest.raises(WorkloadError, match=re.escape(text)) as error:
            dependences(Job("bad", [recorded(2, rows)]))
        assert str(error.value).startswith("kernel k: footprint: ")
        assert "\n" not in str(error.value)
    with pytest.raises(WorkloadError, match="shapes"):
        dependences(Job("bad", [replace(recorded(1, []), footprint=Footprint.of([0], [0], [1, 2], [0]))]))
    with pytest.raises(WorkloadError, match="only one of them"):
        replace(
            kernel(1, (Tensor("a", 1, 1, 4, 0), "read", [(0, 1, 0, 1)])), footprint=Footprint.of(*[[]] * 4)
        )
