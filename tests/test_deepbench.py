"""DeepBench rows: what is measured, how long GEMMs are sampled, what a late operand costs."""

from __future__ import annotations

import numpy as np
import pytest

from pysim import Config, simulate
from pysim.devices import device
from pysim.job import Job, Kernel
from pysim.program import Code, Program
from workloads import deepbench
from workloads.choose import FP32, MachineHints
from workloads.sampling import EXACT_WAVES, plan


def test_rows_and_null_model():
    rows = deepbench.rows("gemm")
    assert len(rows) == 160
    assert min(row.measured_us for row in rows) == 10.5
    covered = sum(part.astype(int) for part in deepbench.classes(rows).values())
    assert np.array_equal(covered, np.ones(160))
    _, errors = deepbench.roofline(rows)
    assert 0.09 < deepbench.summary(errors)["mean"] < 0.11


def test_only_many_waves_are_sampled():
    tile, hints = FP32[0], MachineHints()
    assert plan(128 * EXACT_WAVES, 128 * 160, 512, tile, hints) is None
    found = plan(128 * 400 + 5, 128 * 16, 512, tile, hints)
    assert found is not None
    # the partly filled last row of tiles stays, and whole waves of 160 TBs are left out
    assert (found.rows % 128, found.left_out % 160, found.wave) == (5, 0, 160)
    assert found.extrapolate(1.0, np.arange(1000.0)) == 1 + found.left_out


@pytest.mark.slow
def test_sampled_is_close_to_full(monkeypatch):
    config = Config.resolve(device("v100"))
    row = deepbench.Row("gemm", "x", "NN", "gemm:m=1024,n=26000,k=512,a_t=0,b_t=0", 1, 1e10, 1e8, 1.0)
    sampled = deepbench.outcome(row, config)
    monkeypatch.setattr(deepbench, "plan", lambda *_: None)
    full = deepbench.outcome(row, config)
    assert (sampled.how, full.how) == ("sampled", "full")
    assert sampled.time_us == pytest.approx(full.time_us, rel=0.03)


def test_late_operands_hold_the_fp32_pipe():
    def time(conflicts, ports):
        code = Code()
        code.compute(int=4)
        mark = code.loop_begin()
        code.compute(fp32=70, conflicts=conflicts)
        code.loop_end(mark, 200)
        code.exit()
        kernel = Kernel("k", Program("p", (tuple(code.ops),), 8, 32, 0, 0), (1, 1, 1), (), ())
        config = Config.resolve(device("v100"), {"gpu.sm.register_ports": ports})
        return simulate(config, Job("j", [kernel]), "stream", threads=1).tables()["runs"]["cycles"][0]

    plain, late = time(0, 1), time(20, 1)
    # two warps a sub-core, 70 instructions of two cycles, 20 cycles lost
    assert late - plain == pytest.approx(200 * 2 * 20, rel=0.05)
    assert time(20, 0) == plain
