"""Barriers in traces: named ones count their warps, transaction barriers wait for what other warps copy."""

from __future__ import annotations

import pytest

from pysim.errors import SimError
from pysim.trace.job import trace_job
from tests.core.harness import config, execute

from .made_traces import A, converted
from .read import V6, bad, inst_of, one_warp
from .text import header, tb, text

FIELDS = V6 | {"shmem": "65536"}
PLACE = ("cluster id = 0,0,0", "cluster cta = 0,0,0", "cluster rank = 0")
END = "9000 ffffffff 0 EXIT 0 0 0 0 NoVal"


def work(n, pc=0x1000):
    return [f"{pc + 16 * i:04x} ffffffff 1 R4 FFMA 3 R4 R4 R4 0 0 0 NoVal" for i in range(n)]


def bar(name, number, threads, pc=0x20):
    return f"{pc:04x} ffffffff 0 BAR.{name} 0 0 {number} {threads} NoVal"


def bulk(base, barrier=0x400, pc=0, size=8192):
    lines = size // 128
    where = " ".join(f"0x{base + 128 * i:x}" for i in range(lines))
    return f"{pc:04x} 00000001 0 UBLKCP.S.G 2 UR4 UR8 0 0x{barrier:x} 0 {size} 0 3 {lines} {where} 0 0 NoVal"


def syncs(name, barrier=0x400, pc=0x800, mask="ffffffff"):
    return f"{pc:04x} {mask} 0 SYNCS.{name} 1 R2 8 1 0x{barrier:x} 0 0 0 NoVal"


def wait(barrier=0x400, pc=0x800):
    return syncs("PHASECHK.TRANS64.TRYWAIT", barrier, pc)


def arrive(barrier, pc=0x900):
    return syncs("ARRIVE.TRANS64", barrier, pc, "00000001")


def job_of(folder, warps, extra=PLACE, **fields):
    folder.mkdir(exist_ok=True)
    head = header(block_dim=f"({32 * len(warps)},1,1)", **(FIELDS | fields))
    end = END if extra else END.removesuffix(" 0 NoVal")
    (folder / "kernel-1.traceg").write_bytes(text(head, tb((0, 0, 0), [[*w, end] for w in warps], extra)))
    (folder / "kernelslist.g").write_text("kernel-1.traceg\n")
    return trace_job(converted(folder))


def cycles(folder, *warps, **overrides):
    """Time of the TB in cycles; the run does not depend on threads, slices and quanta."""
    job = job_of(folder, warps)
    runs = [
        execute(job, "stream", config("h200", **overrides, **more), threads=(threads,))
        for threads, more in ((1, {}), (2, {"sim__quantum": 31}), (1, {"sim__quantum": 7}))
    ]
    assert len({ran.hash for ran in runs}) == 1
    assert len({ran.end for ran in runs}) == 1
    lines = sum(len(w) + 1 for w in warps)
    assert runs[0].kernels["warp_instructions"].sum() == lines
    return (runs[0].kernels["last_end"][0] - runs[0].kernels["first_dispatch"][0]) / (1024 / 1.98)


# ---- named barriers ----


def test_a_barrier_of_some_warps_does_not_wait_for_others(tmp_path):
    two = [work(100), bar("SYNC.DEFER_BLOCKING", 1, 64)]
    lone = cycles(tmp_path / "lone", [*two[0], two[1], *work(400)], [*two[0], two[1], *work(400)])
    beside = cycles(
        tmp_path / "beside",
        [*two[0], two[1], *work(400)],
        [*two[0], two[1], *work(400)],
        work(2000),
        work(2000),
    )
    assert beside < 1.1 * cycles(tmp_path / "others", work(2000), work(2000))
    assert lone < beside


def test_arriving_goes_on_and_counts(tmp_path):
    """The producer arrives and works on; the consumer waits until it has."""
    free = cycles(
        tmp_path / "a", [*work(1000), bar("ARV", 1, 64), *work(1000)], [bar("SYNC", 1, 64), *work(900)]
    )
    alone = cycles(tmp_path / "b", work(2000))
    assert free == pytest.approx(alone, rel=0.02)
    # the consumer's work begins after the producer's first half
    late = cycles(tmp_path / "c", [*work(1000), bar("ARV", 1, 64)], [bar("SYNC", 1, 64), *work(2000)])
    assert late == pytest.approx(1.5 * alone, rel=0.1)


def test_an_arriving_warp_does_not_wait(tmp_path):
    t = cycles(tmp_path / "a", [bar("ARV", 2, 64), *work(1000)], [*work(1000), bar("SYNC", 2, 64)])
    assert t == pytest.approx(cycles(tmp_path / "b", work(1000), work(1000)), rel=0.05)


def test_barriers_of_different_numbers_are_apart(tmp_path):
    """Pairs of warps meet at a barrier each, time after time."""
    pair = lambda number, n: [x for i in range(6) for x in (*work(n), bar("SYNC", number, 64, 0x20 + 16 * i))]  # noqa: E731
    both = cycles(tmp_path / "both", pair(1, 50), pair(1, 50), pair(2, 200), pair(2, 200))
    slow = cycles(tmp_path / "slow", pair(2, 200), pair(2, 200), work(1), work(1))
    assert both == pytest.approx(slow, rel=0.05)


def test_an_unstated_count_is_that_of_the_warps_which_use_the_barrier(tmp_path):
    fields = {"accelsim_tracer_version": "5", "binary_version": "80"}

    def end(folder, *warps):
        job = job_of(folder, warps, (), **fields)
        return execute(job, "stream", config("a100")).end

    def line(name, number):
        return f"0020 ffffffff 0 BAR.{name} 0 0 {number}"

    plain = [row.removesuffix(" 0 NoVal") for row in work(1000)]
    apart = end(tmp_path / "a", [line("SYNC", 1)], [line("SYNC", 1)], plain, plain)
    joint = end(
        tmp_path / "b", [line("SYNC", 0), *plain], [line("SYNC", 0), *plain], [*plain, line("SYNC", 0)]
    )
    assert joint > apart
    assert end(tmp_path / "c", [*plain, line("ARV", 3)], [line("SYNC", 3)]) < joint


def test_numbers_and_counts_of_barriers():
    for line, number, threads in (
        ("BAR.SYNC 0 0 0 0 NoVal", 0, 0),
        ("BAR.SYNC 0 0 3 128 NoVal", 3, 128),
        ("BAR.SYNC 1 R4 0 96 0 Val 1 5", 5, 96),
        ("BAR.ARV 2 R4 R5 0 0 0 Val 1 6 1 40", 6, 64),
        ("BAR.SYNC 1 R4 0 96 0 NoVal", 0, 0),
    ):
        inst, _ = inst_of(f"0020 ffffffff 0 {line}", **V6)
        assert (inst["imm"], inst["bytes"]) == (number, threads)
    bad(one_warp("0020 ffffffff 0 BAR.SYNC 0 0 16 64 NoVal", **V6), "BAR", "barrier 16 of 64 threads")


def test_a_barrier_that_nobody_completes_is_named(tmp_path):
    job = job_of(tmp_path, [[bar("SYNC", 4, 96)], work(10), work(10), work(10)])
    with pytest.raises(SimError, match="waits at named barrier 4"):
        execute(job, "stream", config("h200"))


# ---- transaction barriers ----


@pytest.mark.parametrize("consumers", [1, 3])
@pytest.mark.parametrize("copies", [1, 4])
def test_consumers_wait_for_the_copies_of_another_warp(tmp_path, copies, consumers):
    copy = [bulk(A + 65536 * i, pc=16 * i) for i in range(copies)]
    one = cycles(tmp_path / "one", [*copy, wait(), *work(400)])
    many = cycles(tmp_path / "many", copy, *[[wait(), *work(400)]] * consumers)
    assert many == pytest.approx(one, rel=0.02)


def test_a_wait_is_for_its_own_barrier(tmp_path):
    """What is copied on another barrier does not hold the consumer back."""
    small, large = (
        bulk(A, 0x400, size=1024),
        [bulk(A + 65536 * (i + 1), 0x408, 16 + 16 * i, 65536) for i in range(4)],
    )
    other = cycles(tmp_path / "a", [small, *large], [wait(0x400), *work(100)])
    assert other == pytest.approx(cycles(tmp_path / "b", [small, *large], work(100)), rel=0.05)
    mine = cycles(tmp_path / "c", [small, *large], [wait(0x400), wait(0x408, 0x810), *work(2000)])
    early = cycles(tmp_path / "d", [small, *large], [wait(0x400), *work(2000)])
    assert mine > early + 300


@pytest.mark.parametrize("expects", [True, False])
def test_a_pipeline_of_stages(tmp_path, expects):
    """The consumer works on a stage while the producer copies the next ones, which waits for empty stages."""
    stages, turns, n = 3, 12, 600
    producer, consumer = [], []
    for i in range(turns):
        full, empty = 0x400 + 8 * (i % stages), 0x480 + 8 * (i % stages)
        producer.append(wait(empty, 0x700))
        producer += [arrive(full, 0x710)] if expects else []
        producer.append(bulk(A + 65536 * i, full, 0x720, 16384))
        consumer += [wait(full), *work(n), arrive(empty)]
    piped = cycles(tmp_path / "piped", producer, consumer)
    worked = cycles(tmp_path / "worked", work(n * turns))
    first = cycles(tmp_path / "first", [bulk(A, size=16384), wait()])
    assert worked < piped < worked + 1.5 * first
    # one stage after another, without overlap
    lone = [x for i in range(turns) for x in (bulk(A + 65536 * i, 0x400, 16 * i, 16384), wait(), *work(n))]
    assert piped < 0.9 * cycles(tmp_path / "lone", lone)


def test_a_consumer_that_is_slow_holds_the_producer_back(tmp_path):
    """With one stage the next copy begins when the buffer is empty."""
    turns, n = 6, 400
    producer = [x for i in range(turns) for x in (wait(0x480, 0x700), bulk(A + 65536 * i, 0x400, 0x720))]
    consumer = [x for _ in range(turns) for x in (wait(), *work(n), arrive(0x480))]
    held = cycles(tmp_path / "held", producer, consumer)
    free = cycles(tmp_path / "free", [row for row in producer if "SYNCS" not in row], consumer)
    assert held > free + 300


def test_a_spin_loop_is_one_wait(tmp_path):
    copies = [bulk(A + 65536 * i, pc=16 * i) for i in range(3)]
    once = cycles(tmp_path / "once", copies, [wait(), *work(400)])
    branch = "0810 ffffffff 0 BRA 0 0 0 0 NoVal"
    spun = cycles(tmp_path / "spun", copies, [*[wait(), branch] * 7, *work(400)])
    assert spun == pytest.approx(once, abs=30)


def test_more_barriers_than_are_counted(tmp_path):
    """Those beyond are as before: a wait is for the warp's own copies."""
    lines = []
    for i in range(40):
        lines += [bulk(A + 4096 * i, 0x400 + 8 * i, 32 * i, 1024), wait(0x400 + 8 * i, 32 * i + 16)]
    assert cycles(tmp_path, lines) > 40 * 400


def test_bulk_copies_go_past_l1(tmp_path):
    lines = [x for i in range(3) for x in (bulk(A, pc=32 * i, size=1024), wait(pc=32 * i + 16))]
    ran = execute(job_of(tmp_path, [lines]), "stream", config("h200"))
    assert ran.kernels["load_sectors"].sum() == 3 * 32
