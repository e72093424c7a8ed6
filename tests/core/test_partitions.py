"""L2 in two partitions: copies on both sides, a fabric between them, stores that go to the home."""

from __future__ import annotations

import pytest

from pysim.errors import SimError
from pysim.program.job import Job, Memory
from pysim.workloads.kernels import micro
from pysim.workloads.kernels.copy import fill

from .harness import config, execute, tiny
from .workloads_small import JOBS

TWO = {"gpu.l2.slices": 16, "gpu.l2.size": 16 * 24 * 16 * 128, "gpu.l2.partitions": 2}


def two(**overrides):
    return tiny(**{k.replace(".", "__"): v for k, v in TWO.items()}, **overrides)


@pytest.mark.parametrize("name", list(JOBS))
@pytest.mark.parametrize(("scheme", "joins"), [("stream", 0), ("stream", 2), ("tb_static", 4)])
def test_same_bytes_whatever_the_quantum_the_slices_and_the_threads(name, scheme, joins):
    slow = {"gpu__l2__fabric_bandwidth": 60, "gpu__noc__join_loads": joins, "gpu__gpcs": 1}
    want = execute(JOBS[name](), scheme, two(**slow)).fingerprint()
    for quantum, threads, quanta in ((7, (1,), (100,)), (31, (2,), (100,)), (0, (3, 1, 4), (9, 200))):
        conf = two(sim__quantum=quantum, **slow)
        got = execute(JOBS[name](), scheme, conf, threads=threads, quanta=quanta).fingerprint()
        assert [part for part in want if got[part] != want[part]] == []


def requests(passes, **overrides):
    """Requests at slices and DRAM sectors when all SMs read 64 KiB, well within half of L2, some times."""
    kernel = micro.read(Memory(), 6, 8, 1 << 16, passes=passes, shared=True, bypass_l1=True)
    ran = execute(Job("read", (kernel,)), "stream", two(**overrides))
    return int(ran.slices["requests"].sum()), int(ran.slices["dram_read_sectors"].sum())


def test_lines_read_from_both_sides_lie_on_both():
    first, cold = requests(1)
    second, warm = requests(3)
    assert cold == warm == (1 << 16) // 32
    # two more passes of six SMs find every line on their own side
    assert second - first == 2 * 6 * (1 << 16) // 128
    # in the first, each line crosses once, to the side opposite its home
    assert first == 6 * (1 << 16) // 128 + (1 << 16) // 128


def chase_cycles(conf, passes):
    kernel = micro.chase(Memory(), 1 << 16, 128, passes, bypass_l1=True)
    return execute(Job("chase", (kernel,)), "stream", conf).kernel_cycles()


def test_copies_are_as_near_as_what_lies_on_this_side():
    conf = two()
    steps = (1 << 16) // 128
    assert (chase_cycles(conf, 3) - chase_cycles(conf, 2)) / steps == pytest.approx(193, rel=0.02)
    # the mean over lines of both sides is the configured latency
    kernel = micro.chase(Memory(), 1 << 26, 8192, 1, bypass_l1=True)
    got = execute(Job("chase", (kernel,)), "stream", config("h200")).kernel_cycles() / (1 << 13)
    assert got == pytest.approx(config("h200")["gpu.dram.latency"], rel=0.02)


def test_a_store_drops_the_copy():
    def job(stores):
        memory = Memory()
        reader = micro.read(memory, 6, 8, 1 << 16, shared=True, bypass_l1=True)

        write = [fill("fill", reader.args[0])] if stores else []
        return Job("again", (reader, *write, reader))

    base = execute(job(False), "stream", two()).slices["requests"].sum()
    more = execute(job(True), "stream", two()).slices["requests"].sum()
    # the store's own lines, and the copies that must be fetched again
    assert more == base + (1 << 16) // 128 + (1 << 16) // 256


def test_the_fabric_limits_stores():
    def rate(bandwidth):
        memory = Memory()

        job = Job("fill", (fill("fill", memory.tensor("t", 256, 1024, 4)),))
        return (1 << 20) / execute(job, "stream", two(gpu__l2__fabric_bandwidth=bandwidth)).us / 1000

    # half of the sectors cross, each as 40 B
    assert rate(0) > 1.5 * rate(20)
    assert rate(20) <= 20 * 2 * 32 / 40 * 1.05


@pytest.mark.parametrize(
    "wrong",
    [{"gpu__l2__slices": 11, "gpu__l2__size": 11 * 24 * 16 * 128}, {"gpu__l2__replacement": "lru"}],
)
def test_what_does_not_go_with_two_partitions(wrong):
    conf = tiny(**({k.replace(".", "__"): v for k, v in TWO.items()} | wrong))
    with pytest.raises(SimError, match=r"with gpu\.l2\.partitions = 2"):
        execute(JOBS["chase"](), "stream", conf)


def test_written_lines_leave_at_the_speed_of_dram():

    def rate(conf):
        memory = Memory()
        job = Job("fill", (fill("fill", memory.tensor("t", 8192, 1024, 4)),))
        return (1 << 25) / execute(job, "stream", conf).us / 1000

    assert rate(tiny(gpu__dram__write_queue=64)) < 163.2 * 1.1
    assert rate(tiny()) > 163.2 * 1.3
