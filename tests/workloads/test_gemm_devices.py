"""GEMMs of libraries on Volta and Ampere, by the call that makes those of an H200."""

from __future__ import annotations

import pytest

from pysim import Job, Memory, simulate
from pysim.errors import WorkloadError
from pysim.workloads import library


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


def test_volta_and_ampere_refuse_what_they_lack():
    with pytest.raises(WorkloadError, match="tf32 on v100"):
        library.choose_gemm(64, 64, 64, dtype="tf32", device="v100")
    with pytest.raises(WorkloadError, match="not on v100"):
        library.gemm(64, 64, 64, memory=Memory(), epilogue="bias", device="v100")
    with pytest.raises(WorkloadError, match="there are choices for h200, h100, titan_v"):
        library.gemm(64, 64, 64, memory=Memory(), device="rtx3070")
