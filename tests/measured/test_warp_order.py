"""Warps of an H200 issue until they must wait, then the oldest follows: TBs that do the same end in turn."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

from pysim.program.job import Job
from pysim.program.warp_program import Code
from pysim.workloads.microbench.kernels import arithmetic, chained, write
from pysim.workloads.microbench.kernels import kernel as made
from pysim.workloads.mirrored.sgemm import sgemm_64x64x16
from tests.core.harness import config, execute
from tests.support.measured import measured_table

ROWS = measured_table("h200_order.csv")
TBS = 8


def measured(kind):
    """Return what the TBs of one SM took, oldest first, as shares of the last."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["kind"] == kind and int(r["tbs_an_sm"]) == TBS]
    cycles = np.array([float(row["cycles_median"]) for row in sorted(rows, key=lambda r: int(r["age"]))])
    return cycles / cycles.max()


def simulated(kernel, order, **more):
    conf = config("h200", gpu__sms=1, gpu__gpcs=1, gpu__sm__warp_order=order, **more)
    tbs = execute(Job("order", [kernel]), "stream", conf).tbs
    assert len(tbs) == TBS
    tbs = np.sort(tbs, order="tb")
    took = tbs["end"] - tbs["start"].min()
    return took / took.max()


@pytest.mark.parametrize("order", ["oldest", "greedy_oldest"])
@pytest.mark.parametrize(
    ("kind", "kernel"),
    [("mufu", arithmetic("sfu", TBS, 128, 64, 40)), ("stg", write(TBS, 16, threads=128))],
)
def test_the_oldest_first(kind, kernel, order):
    """Measured: the oldest of eight ends its special functions after an eighth, its stores after 0.58."""
    made, seen = simulated(kernel, order), measured(kind)
    assert (np.diff(made) > -0.01).all()
    if kind == "mufu":
        assert abs(made - seen).max() < 0.03
    assert made[0] < 0.7


def shared_loads(loads):
    """Return a kernel whose warps issue ``loads`` of 16 B a lane, wait for the last of them and go on."""
    code = Code()
    mark = code.loop_begin()
    for _ in range(loads - 1):
        code.compute(smem=4, smem_ops=1, chain=0)
    code.compute(smem=4, smem_ops=1, smem_back=0)
    code.loop_end(mark, 100)
    code.exit()
    return made("loads", code, TBS, 128)


def test_what_shared_memory_queues_keeps_its_order():
    """The oldest goes first behind the queue of shared memory: as many warps at a time as fill it, in turn.

    Eight loads of four wavefronts and their latency are 240 cycles, of which a warp holds 32: as many warps
    as two TBs have keep 208 wavefronts queued. Where all that is asked for fits, all end together.
    """
    assert simulated(shared_loads(8), "oldest") == pytest.approx(
        [0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1, 1], abs=0.04
    )
    assert simulated(shared_loads(8), "oldest", gpu__sm__smem_queue=8)[0] < 0.2
    assert simulated(shared_loads(8), "oldest", gpu__sm__smem_queue=4096)[0] > 0.95


def steps(wait, tensor=0):
    """Return a kernel of blocks of 32 FFMA, or ``tensor`` fewer and so many tensor instructions.

    Behind each fifth block the warp waits for ``wait`` cycles.
    """
    code = Code()
    mark = code.loop_begin()
    for chain in (0, 0, 0, 0, wait):
        code.compute(fp32=32 - tensor, tensor=tensor, chain=chain)
    code.loop_end(mark, 50)
    code.exit()
    return made("steps", code, TBS, 128)


def test_a_warp_goes_on_until_it_must_wait():
    """Greedy, then oldest: only a warp that waits hands its sub-core over, to the oldest that can go on.

    Without waits TBs run one after another. With waits of 40 cycles each 160 instructions two take turns: the
    older one is back before the younger one waits, but the latter goes on. Oldest first the older one is
    served then.
    """
    for order in ("oldest", "greedy_oldest"):
        assert simulated(steps(0), order) == pytest.approx(np.arange(1, TBS + 1) / TBS, abs=0.02)
    pairs = [0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1, 1]
    assert simulated(steps(40), "greedy_oldest") == pytest.approx(pairs, abs=0.03)
    assert simulated(steps(40), "oldest")[0] < 0.19


def test_tensor_cores_serve_the_oldest_first():
    """A block with tensor instructions lets no warp go on before older ones, whatever else is in it.

    Measured: of two TBs with mma and barriers alone the older takes 490 cycles a step, the younger 1,936.
    """
    whole = {"gpu__sm__block_tensor": 1024}  # else the block is cut, and most of its parts have none
    took = [simulated(steps(40, tensor=1), order, **whole) for order in ("oldest", "greedy_oldest")]
    assert (took[0] == took[1]).all()
    assert took[1][0] < 0.19


def test_all_at_once_where_order_is_of_arrival():
    """In round robin the same TBs end together, and the last of them no later or earlier."""
    kernel = arithmetic("sfu", TBS, 128, 64, 40)
    assert simulated(kernel, "round_robin")[0] > 0.95
    ends = [
        execute(
            Job("order", [kernel]), "stream", config("h200", gpu__sms=1, gpu__gpcs=1, gpu__sm__warp_order=o)
        )
        .tbs["end"]
        .max()
        for o in ("round_robin", "oldest")
    ]
    assert abs(ends[1] / ends[0] - 1) < 0.02


def test_a_warp_that_has_its_code_does_not_wait_with_those_that_lack_it():
    """A third kernel drops the code of the younger of two; the older, which reads no parameters, goes on.

    Where the younger one waits for a pipe and the older one comes to it, the former's turn wakes the latter.
    """
    old, young = (replace(arithmetic("sfu", 1, 128, 64, 40), stream=i) for i in (0, 1))
    short = replace(chained("fp32", 4, 4), stream=2)  # the one behind it comes when both run
    ends, young = [], replace(young, parameter_lines=2)
    for cycles in (0, 720):
        conf = config("h200", gpu__sms=1, gpu__gpcs=1, gpu__sm__refetch=cycles)
        tbs = execute(Job("beside", [old, young, short, short]), "stream", conf).tbs
        assert tbs["start"][3] < tbs["end"][0]
        ends.append(int(tbs["end"][0]))
    assert ends[1] == ends[0]


@pytest.mark.parametrize("order", ["oldest", "greedy_oldest"])
def test_any_number_of_threads(order):
    """Whole chains give the same TBs on one thread and on two, and in slices."""
    kernels = [write(132 * 4, 8, threads=256), sgemm_64x64x16(512, 1024, 64).kernel]
    conf = config("h200", gpu__sm__warp_order=order)
    outcomes = [
        execute(Job("order", kernels), "stream", conf, threads=threads, quanta=slices).tbs
        for threads, slices in (((1,), (1 << 40,)), ((2,), (100,)))
    ]
    assert (outcomes[0] == outcomes[1]).all()
