"""BlockMaestro and Wireframe: edges of neighbours, launches ahead, buffers, one merged kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pysim.dependence.dependences import dependences, without_edges
from pysim.errors import DependenceError
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Code, Pattern, Program
from pysim.schemes.blockmaestro import adjacent_edges
from pysim.schemes.wireframe import level_order, wavefront_levels
from pysim.workloads.registry import make
from tests.core.harness import execute, lowered_of, tiny
from tests.core.workloads_small import ALL
from tests.oracle.test_ordering import LATE, kernel, two
from tests.support.recorded import recorded

from .test_kernel_schemes import NS, apart, chain, handed_over


def ints(records, name):
    return records[name].astype(np.int64)


def uneven(*delays):
    """Kernels of one TB without anything in common, of these lengths in cycles."""
    memory = Memory()
    return Job(
        "uneven",
        [kernel(f"k{i}", "store", memory.tensor(f"t{i}", 1, 32, 4), delay=d) for i, d in enumerate(delays)],
    )


# ---- which edges are kept ----
def test_neighbours_keep_edges_and_wait_for_what_lies_further_back():
    memory = Memory()
    t, other = memory.tensor("t", 4, 32, 4), memory.tensor("other", 4, 32, 4)
    job = Job(
        "far",
        [
            kernel("a", "store", t, tbs=4),
            kernel("b", "store", other, tbs=4),
            kernel("c", "load", t, tbs=4),
            kernel("d", "store", t, tbs=4),
        ],
    )
    made = adjacent_edges(dependences(job))
    assert made.preds == [(), (), (0,), (0, 2)]
    assert made.whole == [0, 0, 1, 1]
    assert len(made.deps.nodes) == 4
    assert (made.deps.nodes["kernel"] == 3).all()


def test_dense_neighbours_are_a_barrier():
    all_to_all = adjacent_edges(dependences(two("store", "load", tbs=6, whole=True)))
    assert (all_to_all.preds, all_to_all.whole, len(all_to_all.deps.nodes)) == ([(), (0,)], [0, 1], 0)
    # fewer consumers than producers, so each has many parents and yet not all are alike
    memory = Memory()
    t = memory.tensor("t", 8, 32, 4)
    job = Job("many", [kernel("a", "store", t, tbs=8), halves(t)])
    assert adjacent_edges(dependences(job), 4).whole == [0, 0]
    assert adjacent_edges(dependences(job), 3).whole == [0, 1]


@pytest.mark.parametrize(
    ("unknown", "preds", "whole"),
    [
        ((), [(), (), (0,), (0, 2), (3,)], [0, 0, 1, 1, 0]),
        # the kernel behind it waits for it alone, and later ones for it as well
        ((0,), [(), (0,), (0,), (0, 2), (0, 3)], [0, 1, 1, 1, 1]),
        ((1,), [(), (0,), (1,), (1, 2), (1, 3)], [0, 1, 1, 1, 1]),
        ((2,), [(), (), (1,), (2,), (2, 3)], [0, 0, 1, 1, 1]),
        ((4,), [(), (), (0,), (0, 2), (3,)], [0, 0, 1, 1, 1]),
        # of two the newest counts
        ((0, 2), [(), (0,), (1,), (2,), (2, 3)], [0, 1, 1, 1, 1]),
        ((0, 1, 2, 3, 4), [(), (0,), (1,), (2,), (3,)], [0, 1, 1, 1, 1]),
    ],
)
def test_unknown_kernels_are_waited_for_as_a_whole(unknown, preds, whole):
    deps = dependences(five())
    made = adjacent_edges(deps, unknown=[k in unknown for k in range(5)])
    assert (made.preds, made.whole) == (preds, whole)
    # edges of TBs are left where a kernel waits for the one before, but not as a whole
    left = {k for k in range(1, 5) if preds[k][-1:] == (k - 1,) and whole[k] < len(preds[k])}
    assert set(made.deps.nodes["kernel"].tolist()) == left


def five():
    """Kernels a to e: c reads what a made, d and e change that in turn, b is apart."""
    memory = Memory()
    t, other = memory.tensor("t", 4, 32, 4), memory.tensor("other", 4, 32, 4)
    rows = (("a", "store", t), ("b", "store", other), ("c", "load", t), ("d", "store", t), ("e", "reduce", t))
    return Job("five", [kernel(*row, tbs=4, delay=LATE if row[0] == "a" else 0) for row in rows])


def halves(tensor):
    """Two TBs that read half of the rows each."""
    code = Code()
    for row in range(4):
        code.load(0, Pattern(0, 4, base=row * tensor.pitch, bx=4 * tensor.pitch, s0=4))
    code.wait(0)
    code.exit()

    def regions(tbs):
        zero = np.zeros_like(tbs)
        return np.stack([4 * tbs, 4 * tbs + 4, zero, zero + tensor.cols], axis=1)

    program = Program("halves", (tuple(code.ops),), 1, 16, 0, 1)
    return Kernel("halves", program, (2, 1, 1), (tensor,), (Access(tensor, "read", regions),))


# ---- BlockMaestro ----
def test_one_to_one_hands_over_tb_by_tb():
    """Each TB of the second kernel follows its own parent, an update and the latency behind its release."""
    conf = tiny(scheme__table__update=3.0, scheme__table__latency=50.0)
    assert handed_over(execute(chain(2, LATE), "blockmaestro", conf)) == {53 * NS}
    job = two("store", "load", tbs=300)  # more than fit at once
    ran = execute(job, "blockmaestro", conf)
    first, second = (ran.tbs[ran.tbs["kernel"] == k] for k in (0, 1))
    assert (second["last_kernel"] == 0).all()
    assert (second["last_tb"] == second["tb"]).all()
    assert (ints(second, "ready") >= ints(first, "end") + 53 * NS).all()
    # and not the last one's
    assert int(second["ready"].min()) < int(first["end"].max())


def test_launches_overlap():
    conf = tiny()
    gap = conf.encoded()["gpu.cp.stream_gap"]
    ran = execute(apart(2), "blockmaestro", conf)
    ready, admitted = ints(ran.kernels, "ready"), ints(ran.kernels, "admitted")
    assert (int(ready[0]), int(ready[1] - admitted[1])) == (conf.encoded()["gpu.cp.launch"], gap)
    # the launch of the next kernel of a chain is over before it may start: nothing of it is left to pay
    long = execute(chain(2, LATE), "blockmaestro", conf)
    short = execute(chain(2, LATE), "stream", conf)
    # cycles do not begin at the same places
    assert abs(short.end - long.end - (gap - 20.5 * NS)) < conf.encoded()["gpu.clock"]


@pytest.mark.parametrize("kernels", [2, 3, 4])
def test_kernels_end_in_order(kernels):
    """The first is long: those behind it have ended, but count as running until it has."""
    ran = execute(uneven(LATE, 10, 10, 10, 10), "blockmaestro", tiny(scheme__blockmaestro__kernels=kernels))
    admitted, released = ints(ran.kernels, "admitted"), ints(ran.kernels, "released")
    assert (released[1:kernels] < released[0]).all()
    assert admitted[kernels - 1] < released[0] <= admitted[kernels]


def test_what_lies_further_back_is_waited_for_in_order():
    """The third kernel needs the second's TB alone, the fourth too: one as a neighbour, the other not."""
    memory = Memory()
    x, t, y = (memory.tensor(n, 1, 32, 4) for n in "xty")
    job = Job(
        "back",
        [
            kernel("long", "store", x, delay=LATE),
            kernel("make", "store", t),
            kernel("use", "load", t),
            kernel("late", "load", t),
            kernel("none", "store", y),
        ],
    )
    ran = execute(job, "blockmaestro:kernels4", tiny(sim__oracle=1))
    ready, released = ints(ran.kernels, "ready"), ints(ran.kernels, "released")
    assert ready[2] < released[0] <= ready[3]


def lost(job, *unknown):
    """The job with these kernels recorded, each address written down."""
    other = recorded(job, tiny().encoded()["gpu.sm.block_max"], True)
    pairs = zip(job.kernels, other.kernels, strict=True)
    return replace(job, kernels=[pair[k in unknown] for k, pair in enumerate(pairs)])


@pytest.mark.parametrize(
    "scheme", ["blockmaestro", "blockmaestro:kernels4", "blockmaestro:consumer+kernels4"]
)
@pytest.mark.parametrize("unknown", [0, 1, 2, 3])
def test_an_unknown_kernel_runs_alone(unknown, scheme):
    """Four kernels have nothing in common: two or four run at once where that is known."""
    job = lost(uneven(LATE, LATE, LATE, LATE), unknown)
    conf = tiny(sim__oracle=1)
    ran = execute(job, scheme, conf)
    begun, ended = ints(ran.kernels, "first_dispatch"), ints(ran.kernels, "released")
    assert (begun[unknown + 1 :] >= ended[unknown]).all()
    assert (begun[unknown] >= ended[:unknown]).all()
    exact = execute(job, scheme, conf.replaced({"scheme.blockmaestro.addresses": "exact"}))
    plain = execute(uneven(LATE, LATE, LATE, LATE), scheme, conf)
    assert exact.kernels.tobytes() == plain.kernels.tobytes()
    assert exact.end < ran.end


@pytest.mark.parametrize("name", ["gru", "random_dag", "mixed", "copied"])
def test_known_kernels_run_as_with_exact_footprints(name):
    one, other = (
        execute(ALL[name](), "blockmaestro:kernels4", tiny(scheme__blockmaestro__addresses=word))
        for word in ("affine", "exact")
    )
    assert one.fingerprint() == other.fingerprint()


@pytest.mark.parametrize("addresses", ["affine", "exact"])
@pytest.mark.parametrize("options", ["", ":kernels4", ":consumer+kernels4"])
@pytest.mark.parametrize("unknown", [(0,), (1, 4), (2,), (0, 1, 2, 3, 4)])
def test_recorded_addresses_break_no_order(unknown, options, addresses):
    conf = tiny(sim__oracle=1, scheme__blockmaestro__addresses=addresses)
    ran = execute(lost(five(), *unknown), f"blockmaestro{options}", conf)
    assert int(ran.totals.tbs_done) == 20


def test_producers_come_before_consumers():
    """More TBs than fit, then a kernel without need of them."""
    memory = Memory()
    job = Job(
        "wide",
        [
            kernel(n, "store", memory.tensor(n, tbs, 32, 4), tbs=tbs, delay=3000)
            for n, tbs in (("a", 2000), ("b", 12))
        ],
    )
    for options, later in (("", True), (":consumer", False)):
        ran = execute(job, f"blockmaestro{options}", tiny())
        first, second = (ran.tbs[ran.tbs["kernel"] == k] for k in (0, 1))
        assert (int(second["dispatch"].min()) >= int(first["dispatch"].max())) == later


def test_buffers_spill():
    job = two("store", "load", tbs=60)
    wide = execute(job, "blockmaestro", tiny(sim__oracle=1))
    assert int(wide.totals.table_spills) == 0
    assert int(wide.totals.table_peak_entries) == 60
    assert int(wide.totals.table_peak_lists) == 60
    tight = execute(job, "blockmaestro", tiny(sim__oracle=1, scheme__blockmaestro__entries=16))
    assert int(tight.totals.table_peak_entries) == int(tight.totals.table_peak_lists) == 16
    # 44 lists are not there, and as many counters
    assert int(tight.totals.table_spills) >= 44
    assert tight.end > wide.end


def test_long_lists_take_more_entries():
    job = Job(
        "fan", [kernel("a", "store", t := Memory().tensor("t", 2, 32, 4), tbs=2, delay=LATE), reader(t)]
    )
    for children, entries in ((4, 6), (10, 2), (1, 20)):
        ran = execute(job, "blockmaestro", tiny(scheme__blockmaestro__children=children))
        assert int(ran.totals.table_peak_lists) == entries


def reader(tensor):
    """Twenty TBs; ten read each of two rows."""
    code = Code()
    code.load(0, Pattern(0, 4, by=tensor.pitch, s0=4))
    code.wait(0)
    code.exit()

    def regions(tbs):
        zero = np.zeros_like(tbs)
        return np.stack([tbs // 10, tbs // 10 + 1, zero, zero + tensor.cols], axis=1)

    program = Program("reader", (tuple(code.ops),), 1, 16, 0, 1)
    return Kernel("reader", program, (10, 2, 1), (tensor,), (Access(tensor, "read", regions),))


# ---- Wireframe ----
@pytest.mark.parametrize("name", ["gru", "random_dag", "gemm_chain"])
def test_levels_go_up_along_edges(name):
    deps = dependences(ALL[name]())
    level = wavefront_levels(deps)
    for group in deps.groups:
        assert level[group.producers].max() < level[group.consumers + deps.offsets[group.kernel]].min()


def test_sequence_is_every_tb_of_a_kernel_once():
    job = ALL["copied"]()
    made = level_order(job, dependences(job))
    assert len(set(made.tolist())) == len(made) == sum(k.tbs for k in job.kernels if k.copy is None)


def test_one_launch_for_all():
    ran = execute(ALL["gru"](), "wireframe", tiny(host__submit="eager"))
    assert set(ran.kernels["admitted"].tolist()) == {ran.values["gpu.cp.launch"]}


@pytest.mark.parametrize("nodes", [1, 2, 9])
def test_the_buffer_bounds_what_runs(nodes):
    job = two("store", "load", tbs=12)
    ran = execute(job, "wireframe", tiny(sim__oracle=1, scheme__wireframe__nodes=nodes))
    assert int(ran.totals.table_peak_entries) == nodes
    begun, ended = np.sort(ints(ran.tbs, "dispatch")), np.sort(ints(ran.tbs, "end"))
    assert max(int((begun <= t).sum() - (ended < t).sum()) for t in begun) <= nodes
    if nodes == 1:
        order = ran.tbs[np.argsort(ran.tbs["dispatch"], kind="stable")]
        pairs = order["kernel"].astype(np.uint64) << np.uint64(32) | order["tb"].astype(np.uint64)
        assert pairs.tolist() == level_order(job, dependences(job)).tolist()


def test_counts_of_tbs_that_are_not_there():
    """Twelve producers end while no consumer is in the buffer yet."""
    job = two("store", "load", tbs=12)
    for pending, spills in ((12, 0), (5, 7), (0, 12)):
        conf = tiny(sim__oracle=1, scheme__wireframe__nodes=12, scheme__wireframe__pending=pending)
        conf = conf.replaced({"scheme.table.latency": 0.0})
        ran = execute(job, "wireframe", conf)
        assert int(ran.totals.table_spills) == spills


def test_a_merged_kernel_takes_what_its_largest_part_takes():
    memory = Memory()
    small = kernel("small", "store", memory.tensor("a", 4, 32, 4), tbs=4)
    large = kernel("large", "store", memory.tensor("b", 4, 32, 4), tbs=4)
    program = Program("large", large.program.variants, 1, 96, 4096, 1)
    job = Job("merged", [small, Kernel("large", program, large.grid, large.args, large.accesses)])
    rows = lowered_of(job, "wireframe", tiny())[0].tables
    tables = [t for t in rows if isinstance(t, np.ndarray) and t.dtype.names and "registers" in t.dtype.names]
    assert [t["registers"].tolist() for t in tables] == [[96, 96]]
    assert [t["smem"].tolist() for t in tables] == [[4096, 4096]]


# ---- wrong orders ----
@pytest.mark.parametrize("scheme", ["blockmaestro", "blockmaestro:consumer", "wireframe"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_dropped_node_is_caught(scheme, whole):
    job = two("store", "load", tbs=6, whole=whole)
    deps = dependences(job)
    execute(job, scheme, tiny(sim__oracle=1))
    for node in range(len(deps.nodes)):
        with pytest.raises(DependenceError, match="RAW"):
            execute(job, scheme, tiny(sim__oracle=1), deps=without_edges(deps, node=node))


def test_a_dropped_wait_for_the_past_is_caught():
    memory = Memory()
    t, other = memory.tensor("t", 1, 32, 4), memory.tensor("o", 1, 32, 4)
    job = Job(
        "past",
        [kernel("a", "store", t, delay=LATE), kernel("b", "store", other), kernel("c", "load", t)],
    )
    scheme = "blockmaestro:kernels3"
    execute(job, scheme, tiny(sim__oracle=1))
    with pytest.raises(DependenceError, match="RAW"):
        execute(job, scheme, tiny(sim__oracle=1), deps=without_edges(dependences(job), kind="raw"))


@pytest.mark.parametrize("priority", ["round_robin", "newest", "critical", "consumer"])
@pytest.mark.parametrize("scheme", ["blockmaestro:kernels3", "blockmaestro:consumer+kernels3"])
def test_its_own_priority_is_what_counts(scheme, priority):
    """Found by ``make oracle``: in turn, a newer kernel was asked first and the older one never again."""
    job = make("random_dag:kernels=3,streams=1,seed=2,elements=2048,largest=700,tensors=3")
    more = {"scheme__blockmaestro__entries": 1, "scheme__blockmaestro__children": 1, "sim__oracle": 1}
    more |= {"scheme__blockmaestro__parents": 3, "scheme__bypass": 0}
    want = execute(job, scheme, tiny(**more)).fingerprint()
    assert execute(job, scheme, tiny(scheme__priority=priority, **more)).fingerprint() == want
