"""Hardware queues with barrier packets: their order, their slots, their quantum, their rings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pysim.dependence.dependences import dependences, without_edges
from pysim.errors import DependenceError
from pysim.program.job import Job, Memory
from pysim.schemes.aql_queues import MAX_SIGNALS, queue_packets
from tests.core.harness import config, execute, tiny
from tests.core.workloads_small import ALL
from tests.oracle.test_ordering import LATE, kernel, two

from .test_kernel_schemes import chain, handed_over

QUANTUM = 100 * 1024 * 1000


def streams(*rows, events=()):
    """Kernels of one TB on streams of their own memory: (stream, delay in cycles)."""
    memory = Memory()
    made = [
        replace(kernel(f"k{i}", "store", memory.tensor(f"t{i}", 1, 32, 4), delay=delay), stream=stream)
        for i, (stream, delay) in enumerate(rows)
    ]
    return Job("streams", made, list(events))


def ready(ran):
    return ran.kernels["ready"].astype(np.int64)


def released(ran):
    return ran.kernels["released"].astype(np.int64)


# ---- where packets go ----
def test_a_graph_in_queues():
    """A fork and a join: one goes on in the queue, the other takes the next one; barriers name the others."""
    job = streams(*[(0, 10)] * 6)
    made = queue_packets(job, [(), (0,), (0,), (1, 2), (), (3,)], 4, by_stream=False)
    assert made.queue == [0, 0, 1, 1, 2, 1]
    assert made.barriers == [0, 0, 1, 1, 0, 0]
    # the barrier bit waits for all before it in its queue
    assert made.preds == [(), (0,), (0,), (1, 2), (), (3,)]


def test_a_barrier_bit_waits_for_the_whole_queue():
    job = streams(*[(0, 10)] * 4)
    made = queue_packets(job, [(), (), (), (0,)], 2, by_stream=False)
    assert made.queue == [0, 1, 0, 1]
    assert made.preds[3] == (0,)
    made = queue_packets(job, [(), (), (), (2,)], 2, by_stream=False)
    assert made.queue == [0, 1, 0, 0]
    # the packet before has no barrier bit, so the one before that may run, too
    assert made.preds[3] == (0, 2)


def test_a_barrier_packet_names_so_many_signals():
    job = streams(*[(0, 10)] * 12)
    made = queue_packets(job, [*[()] * 11, tuple(range(11))], 32, by_stream=False)
    assert made.barriers[11] == -(-10 // MAX_SIGNALS)


@pytest.mark.parametrize("name", ["gru", "random_dag", "split_k", "copied"])
@pytest.mark.parametrize("queues", [1, 2, 7])
def test_packets_imply_the_true_edges(name, queues):
    job = ALL[name]()
    deps = dependences(job)
    reached: list[set[int]] = []
    for sources in queue_packets(job, deps.preds, queues, by_stream=False).preds:
        reached.append(set(sources).union(*(reached[p] for p in sources)))
    assert all(set(true) <= reached[k] for k, true in enumerate(deps.preds))


# ---- time ----
@pytest.mark.parametrize("name", ["gru", "gemm_chain", "random_dag", "copied_in_time"])
@pytest.mark.parametrize("submit", ["prefilled", "eager"])
def test_a_queue_a_stream_is_stream_order(name, submit):
    """With slots enough and packets that take no time the two are one scheme."""
    conf = tiny(scheme__queues__packet=0.0, host__submit=submit)
    want, got = (execute(ALL[name](), scheme, conf) for scheme in ("stream", "queues:stream"))
    assert got.hash == want.hash
    assert got.end == want.end


def test_a_chain_pays_the_gap_and_packets_are_hidden():
    for packet in (0.0, 500.0):
        ran = execute(chain(4, 5000), "queues", tiny(scheme__queues__packet=packet))
        assert handed_over(ran) == {ran.values["gpu.cp.stream_gap"]}


def test_a_barrier_packet_is_paid_behind_what_it_waits_for():
    job = streams((0, LATE), (1, 10), events=[(0, 1)])
    ran = execute(job, "queues:stream", tiny(scheme__queues__packet=500.0))
    assert int(ready(ran)[1] - released(ran)[0]) == ran.values["gpu.cp.stream_gap"] + 500 * 1024


def test_packets_of_a_queue_are_taken_one_after_another():
    """Six kernels without edges in two queues: three packets of each, at the same times."""
    ran = execute(streams(*[(0, LATE)] * 6), "queues", tiny(scheme__queues__count=2))
    first, each = ran.values["gpu.cp.launch"], ran.values["scheme.queues.packet"]
    assert ready(ran).tolist() == [first + n * each for n in (0, 0, 1, 1, 2, 2)]


@pytest.mark.parametrize("delay", [10, 50_000, 200_000])
def test_a_queue_without_a_slot_waits_for_the_quantum(delay):
    """Two queues, one slot: the second's turn comes at the first quantum that finds the first idle."""
    job = streams((0, delay), (1, 10))
    conf = tiny(scheme__queues__hardware=1)
    ran = execute(job, "queues:stream", conf)
    turn = -(-int(released(ran)[0]) // QUANTUM) * QUANTUM
    assert int(ready(ran)[1]) == turn + ran.values["scheme.queues.packet"]
    # one that knows takes the slot when there is nothing left to do
    aware = execute(job, "queues:stream+aware", conf)
    assert int(ready(aware)[1]) == int(released(aware)[0]) + aware.values["scheme.queues.packet"]
    # and with a slot for each nothing is waited for
    assert int(ready(execute(job, "queues:stream", tiny()))[1]) == ran.values["gpu.cp.launch"]


def test_a_blocked_queue_keeps_its_slot_till_the_quantum():
    """The fourth kernel waits, in a slot, for the third, whose queue has none."""
    job = streams((0, 400_000), (1, 10), (2, 10), (1, 10), events=[(2, 3)])
    conf = tiny(scheme__queues__hardware=2, sim__oracle=1)
    ran = execute(job, "queues:stream", conf)
    packet = ran.values["scheme.queues.packet"]
    assert int(ready(ran)[2]) == QUANTUM + packet
    # its queue is mapped again at the next: a barrier packet and its own
    assert int(ready(ran)[3]) == 2 * QUANTUM + 2 * packet
    aware = execute(job, "queues:stream+aware", conf)
    assert int(ready(aware)[3]) < QUANTUM // 10


def test_a_full_ring_holds_the_host_up():
    job = streams(*[(0, 20_000)] * 6)
    ran = execute(job, "queues:stream", tiny(scheme__queues__ring=2))
    enqueued = ran.kernels["enqueued"].astype(np.int64)
    assert enqueued[:2].tolist() == [0, 0]
    # a place is free when the packet two before it has been taken
    assert (enqueued[2:] == ready(ran)[:4] + ran.values["host.launch"]).all()
    wide = execute(job, "queues:stream", tiny())
    assert (wide.kernels["enqueued"] == 0).all()


# ---- wrong orders ----
@pytest.mark.parametrize(("kind", "first", "second"), [("raw", "store", "load"), ("war", "load", "store")])
def test_a_dropped_barrier_is_caught(kind, first, second):
    job = two(first, second)
    execute(job, "queues", tiny(sim__oracle=1))
    with pytest.raises(DependenceError, match=kind.upper()):
        execute(job, "queues", tiny(sim__oracle=1), deps=without_edges(dependences(job), kind=kind))


def test_on_hopper_kernels_beside_another_streams_pay_for_it():
    job = streams((0, LATE), (1, 100), (1, 100))
    conf = config("h200", scheme__queues__packet=0.0)
    assert execute(job, "queues:stream", conf).hash == execute(job, "stream", conf).hash
