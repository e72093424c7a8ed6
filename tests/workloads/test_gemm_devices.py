"""GEMMs of libraries on Volta and Ampere, by the call that makes those of an H200."""

from __future__ import annotations

import pytest

from pysim import Job, Memory, simulate
from pysim.errors import WorkloadError
from pysim.workloads import library
from tests.support.walker import check_footprints


@pytest.mark.parametrize("device", ["titan_v", "a100"])
@pytest.mark.parametrize(("trans_a", "trans_b", "batch"), [("N", "N", 1), ("T", "T", 1), ("T", "N", 3)])
def test_volta_and_ampere_multiply_the_same_matrices(device, trans_a, trans_b, batch):
    """The kernel that is named is the one that runs; its flops and C are those of the problem."""
    m, n, k = 256, 128, 512
    keys = {"trans_a": trans_a, "trans_b": trans_b, "batch": batch, "device": device}
    named = library.choose_gemm(m, n, k, **keys)
    kernels, c = library.gemm(m, n, k, memory=Memory(), **keys)
    assert kernels[-1].library == named.name
    assert kernels[-1].grid == named.grid
    assert (c.rows, c.cols, c.item) == (batch * n, m, 2)
    runs = simulate(device, Job("gemm", list(kernels)), "stream", overrides={"sim.oracle": 1}).frame("runs")
    assert (runs["status"] == "ok").all()


ODD = (65, 33, 77)  # no tile ends with the matrices, and rows of fp16 begin at odd addresses


@pytest.mark.parametrize(("device", "dtype"), [("v100", "fp16"), ("v100", "fp32"), ("a100", "bf16")])
@pytest.mark.parametrize("trans", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("batch", [1, 3])
def test_programs_touch_what_they_say_at_odd_sizes(device, dtype, trans, batch):
    """Of matrices that fill their tensors, and of those side by side in wider ones, with a bias."""
    m, n, k = ODD
    cols = (k if trans[0] == "T" else m) * batch, (n if trans[1] == "T" else k) * batch
    keys = {"trans_a": trans[0], "trans_b": trans[1], "batch": batch, "dtype": dtype, "device": device}
    for within, epilogue in ((((0, 0), (0, 0)), "none"), (((cols[0] + 5, 3), (cols[1] + 8, 8)), "bias")):
        made, c = library.gemm(m, n, k, memory=Memory(), epilogue=epilogue, within=within, **keys)
        assert (c.rows, c.cols) == (batch * n, m)
        assert len(made[-1].args) == (4 if epilogue == "bias" else 3)
        check_footprints(made[-1])


@pytest.mark.parametrize("device", ["titan_v", "a100"])
def test_a_bias_is_added_by_the_epilogue_or_copied_before(device):
    """One row of C and parts of K that add to C in any order find the bias there (PyTorch's addmm)."""
    for sizes, copied in (((40, 24, 64), False), ((1, 24, 64), True), ((40, 24, 9000), device == "titan_v")):
        kernels, _ = library.gemm(*sizes, memory=Memory(), trans_a="T", epilogue="bias", device=device)
        assert [kernel.name for kernel in kernels] == ["copy_bias"] * copied + ["gemm"]
        if copied:
            check_footprints(kernels[0])
        runs = simulate(device, Job("gemm", list(kernels)), "tb_static", overrides={"sim.oracle": 1})
        assert (runs.frame("runs")["status"] == "ok").all()


def test_volta_and_ampere_refuse_what_they_lack():
    with pytest.raises(WorkloadError, match="tf32 on v100"):
        library.choose_gemm(64, 64, 64, dtype="tf32", device="v100")
    with pytest.raises(WorkloadError, match="bf16 on v100"):
        library.choose_gemm(64, 64, 64, dtype="bf16", device="v100")
    with pytest.raises(WorkloadError, match="not on v100"):
        library.gemm(64, 64, 64, memory=Memory(), epilogue="bias_gelu", device="v100")
    with pytest.raises(WorkloadError, match="3 x 64 columns of B from 8 on in 192: must be inside"):
        library.gemm(64, 9, 64, memory=Memory(), batch=3, within=((0, 0), (192, 8)), device="a100")
    with pytest.raises(WorkloadError, match="there are choices for h200, h100, titan_v"):
        library.gemm(64, 64, 64, memory=Memory(), device="rtx3070")
