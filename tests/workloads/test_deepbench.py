"""DeepBench rows: what is measured, how long GEMMs are sampled, what a late operand costs."""

from __future__ import annotations

import numpy as np
import pytest

from pysim import Config, simulate
from pysim.machine.devices import device
from pysim.program.job import Job, Kernel
from pysim.program.warp_program import Code, Program
from pysim.workloads.kernels.gemm_case import column_major
from pysim.workloads.kernels.gemm_choice import FP16, FP32, choose_tiling, occupancy
from pysim.workloads.kernels.gemm_sampling import EXACT_WAVES, plan
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.registry import make
from pysim.workloads.validation import deepbench
from pysim.workloads.validation.suites import cases_of


def test_rows_of_both_types():
    gemm, left_out, _ = cases_of(deepbench.GEMM)
    rnn, none, _ = cases_of(deepbench.RNN)
    assert (len(gemm), left_out, len(rnn), none) == (320, 0, 78, 0)
    for cases in (gemm, rnn):
        assert [sum(case.group == group for case in cases) for group in ("fp32", "fp16")] == [
            len(cases) / 2
        ] * 2
    # 10 us, cut to whole ones; the recurrent rows are not
    assert min(case.measured_us for case in gemm if case.group == "fp32") == 10.5
    assert rnn[0].measured_us == 4201.0
    # both types of a shape are in the same half
    halves = {case.key: case.split for case in gemm}
    assert all(case.split == halves[case.key] for case in gemm)
    assert len(halves) == 160


def test_only_many_waves_are_sampled():
    tile, hints = FP32[0], MachineHints()
    assert plan(128 * EXACT_WAVES, 128 * 160, 512, 4, tile, hints) is None
    found = plan(128 * 400 + 5, 128 * 16, 512, 4, tile, hints)
    assert found is not None
    # the partly filled last row of tiles stays, and whole waves of 160 TBs are left out
    assert (found.rows % 128, found.left_out % 160, found.wave) == (5, 0, 160)
    assert found.extrapolate(1.0, np.arange(1000.0)) == 1 + found.left_out


def test_a_wave_is_what_the_chip_holds():
    hints = MachineHints()
    for tile in FP16:
        found = plan(tile.tm * 4000, tile.tn * 16, 512, 2, tile, hints)
        assert found is not None
        assert found.wave == hints.sms * occupancy(tile, 2, hints)


@pytest.mark.parametrize("transposes", ["NN", "TN", "NT", "TT"])
def test_a_sample_runs_the_kernel_of_the_whole(transposes):
    sizes = (1024, 26000, 512, *(letter == "T" for letter in transposes))
    rows, cols, depth, a_t, b_t = column_major(*sizes)
    name = choose_tiling(rows, cols, depth, a_t=a_t, b_t=b_t, beta=1.0).name
    text = f"gemm:m=1024,n=26000,k=512,a_t={transposes[0] == 'T':d},b_t={transposes[1] == 'T':d}"
    whole, named = (make(text + more).kernels[0] for more in ("", f",tile={name}"))
    assert whole.program == named.program


@pytest.mark.deep
def test_sampled_is_close_to_full(monkeypatch):
    config = Config.resolve(device("v100"))
    task = ("fp32", "1024", "26000", "512", "NN")
    sampled = deepbench.GEMM.run(config, *task)
    monkeypatch.setattr(deepbench, "plan", lambda *_: None)
    full = deepbench.GEMM.run(config, *task)
    assert sampled.detail == f"{full.detail} (sampled)"
    # another seed moves either by up to 2 %
    assert sampled.times_us["period"] == pytest.approx(full.times_us["period"], rel=0.05)


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
