"""The main loop of the measured tensor GEMMs, a K step at a time and with parts left out, on one SM."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import pytest

from pysim.job import Job
from pysim.program import OP
from workloads import hw

from .core.harness import config, execute

ROWS = Path(__file__).parents[1] / "workloads" / "measured" / "h200_steps.csv"
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


def cycles(kernel, steps, without):
    """Return the time of the second of two launches of one TB; the first brings its data to L2."""
    side = TILES[kernel][1]
    launched = hw.job_of(kernel, f"M={side};N={side};K={32 * steps}").kernels[0]
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
    tbs = execute(Job("step", kernel_twice), "stream", config("h200", gpu__clock_tensor=1)).tbs
    last = tbs[tbs["kernel"] == 1]
    # measured in cycles, so the clock must not change
    return int(last["end"][0] - last["start"][0]) / 1024 * 1.98


@pytest.mark.parametrize("kernel", TILES)
@pytest.mark.parametrize("left_out", WITHOUT)
def test_a_step_takes_as_long_as_measured(kernel, left_out):
    step = (cycles(kernel, 96, WITHOUT[left_out]) - cycles(kernel, 32, WITHOUT[left_out])) / 64
    real = measured(f"{TILES[kernel][0]} {left_out}")
    # nothing here is fitted: the whole step comes within 20 % of 128x128 (paths.cu measured 937 and 892
    # cycles) and 30 % of 64x64 (314 to 367), steps with parts left out, which no kernel runs, within 60 %
    whole = 0.2 if kernel.startswith("hgemm_128") else 0.3
    assert step == pytest.approx(real, rel=whole if left_out == "all" else 0.6)
