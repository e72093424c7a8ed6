"""The main loop of the measured tensor GEMMs, a K step at a time and with parts left out, on one SM."""

from __future__ import annotations

import csv
import dataclasses

import numpy as np
import pytest

from pysim.program.job import Job
from pysim.program.warp_program import OP
from pysim.workloads import mirrored
from tests.core.harness import config, execute
from tests.support.measured import measured_table

ROWS = measured_table("h200_steps.csv")
TILES = {
    "hgemm_128x128x32_8warps": ("128x128x32 8 warps", 128),
    "hgemm_128x128x32_4warps": ("128x128x32 4 warps", 128),
    "hgemm_64x64x32": ("64x64x32 4 warps", 64),
}
# what is left out of the program
WITHOUT = {
    "all": (),
    "no copies": ("LOAD", "WAIT"),
    "no barrier": ("BARRIER",),
}


def measured(what):
    with ROWS.open(encoding="utf-8", newline="") as file:
        return next(
            float(row["cycles"]) for row in csv.DictReader(file) if row["what"] == what and row["tbs"] == "1"
        )


def run_without(launched, without, **overrides):
    """Return what each TB of the second of two launches takes; the first brings its data to L2."""
    gone = {OP[kind] for kind in without}
    variants = []
    for ops in launched.program.variants:
        kept = [i for i, op in enumerate(ops) if op.kind not in gone]
        moved = {i: sum(k < i for k in kept) for i in range(len(ops))}
        variants.append(
            tuple(
                dataclasses.replace(ops[i], target=moved[ops[i].target])
                if ops[i].kind == OP["LOOP"]
                else ops[i]
                for i in kept
            )
        )
    program = dataclasses.replace(launched.program, variants=tuple(variants))
    kernel_twice = [dataclasses.replace(launched, program=program)] * 2
    # measured in cycles, so the clock must not change
    conf = config("h200", gpu__clock_tensor=1, **overrides)
    tbs = execute(Job("step", kernel_twice), "stream", conf).tbs
    last = np.sort(tbs[tbs["kernel"] == 1], order="tb")
    return (last["end"] - last["start"]).astype(np.int64) / 1024 * 1.98


def cycles(kernel, steps, without):
    """Return the time of one TB."""
    side = TILES[kernel][1]
    launched = mirrored.job_of(kernel, f"M={side};N={side};K={32 * steps}").kernels[0]
    return run_without(launched, without)[0]


@pytest.mark.parametrize("kernel", TILES)
@pytest.mark.parametrize("left_out", WITHOUT)
def test_a_step_takes_as_long_as_measured(kernel, left_out):
    step = (cycles(kernel, 96, WITHOUT[left_out]) - cycles(kernel, 32, WITHOUT[left_out])) / 64
    real = measured(f"{TILES[kernel][0]} {left_out}")
    # nothing here is fitted: the whole step comes within 20 % of 128x128 (paths.cu measured 937 and 892
    # cycles) and 30 % of 64x64 (314 to 367), steps with parts left out, which no kernel runs, within 60 %
    whole = 0.2 if kernel.startswith("hgemm_128") else 0.3
    assert step == pytest.approx(real, rel=whole if left_out == "all" else 0.6)


SHARED = {  # kernel: side of a tile, depth of a step, TBs on an SM
    "128x128x8": (128, 8, (1, 2)),
    "64x64x16": (64, 16, (1, 2, 3, 4)),
    "32x32x32": (32, 32, (1, 2, 4, 6)),
}


def shared(kernel):
    """Return cycles a step, by TBs on an SM, from the oldest on: whole steps but for loads from L2."""
    made = {}
    with (measured_table("h200_shared_parts.csv")).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["kernel"] == kernel and row["what"] == "no global loads":
                made.setdefault(int(row["tbs_an_sm"]), []).append(float(row["whole"]))
    return made


@pytest.mark.parametrize("order", ["oldest", "greedy_oldest"])
@pytest.mark.parametrize("kernel", SHARED)
def test_tbs_that_share_an_sm_end_as_measured(kernel, order):
    """The last TB of an SM ends within 9 % of what was measured; nothing here is fitted.

    When the others end is not right: 128 x 128 measured 2,733 and 2,748 cycles a step, four of 64 x 64 1,968
    to 3,775.
    """
    side, depth, counts = SHARED[kernel]
    steps = 96
    for tbs in counts:
        launched = mirrored.job_of(f"sgemm_{kernel}", f"M={side};N={side * tbs};K={depth * steps}").kernels[0]
        took = run_without(launched, ("LOAD", "WAIT"), gpu__sms=1, gpu__gpcs=1, gpu__sm__warp_order=order)
        took /= steps
        assert took.max() == pytest.approx(shared(kernel)[tbs][-1], rel=0.09 if tbs > 1 else 0.12)
        assert (np.diff(took) > -30).all()


def test_the_older_of_two_leads_by_less_where_warps_issue_until_they_must_wait():
    """Measured: the older of two of 128 x 128 takes as long as the younger; oldest first 0.65 of that."""
    side, depth, _ = SHARED["128x128x8"]
    launched = mirrored.job_of("sgemm_128x128x8", f"M={side};N={side * 2};K={depth * 96}").kernels[0]
    shares = []
    for order in ("oldest", "greedy_oldest"):
        took = run_without(launched, ("LOAD", "WAIT"), gpu__sms=1, gpu__gpcs=1, gpu__sm__warp_order=order)
        shares.append(took.min() / took.max())
    assert shares[0] < 0.68 < 0.7 < shares[1]
