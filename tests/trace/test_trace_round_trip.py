"""Kernels written as traces, converted and simulated: the same work as the kernels themselves do.

Times on a Titan V, the kernel itself and its converted trace (microseconds):

===================================  ======  ======  ===============
workload                             kernel   trace  trace to kernel
===================================  ======  ======  ===============
gemm:m=512,n=512,k=256                17.33   18.02  +4.0 %
gemm:m=1024,n=1024,k=512             104.37  106.01  +1.6 %
gemm:m=1024,n=1024,k=512,dtype=fp16   21.84   21.15  -3.2 %
gemm:m=300,n=200,k=128,dtype=fp16      4.29    4.07  -5.1 %
gru:hidden=512,batch=32,timesteps=2  150.24  148.64  -1.1 %
pointwise:elements=4194304            81.66   81.50  -0.2 %
copy:nbytes=16777216                  50.08   51.46  +2.8 %
random_dag:kernels=24,streams=1       39.51   39.09  -1.0 %
ffma:iterations=64                    12.99   12.98  -0.0 %
tensor:iterations=64                  12.99   12.98  -0.1 %
read:tbs=160                          70.39   70.39  +0.0 %
chase:footprint=262144               747.93  748.50  +0.1 %
===================================  ======  ======  ===============

Warp instructions are equal in all rows, L2 bytes within 0.4 %. What differs: the converter counts a bank
conflict by its own rule where the program has cycles lost to late operands; a block that ends in stores to
shared memory leaves no result to wait for, so the warp does not wait for its wavefronts; and the converter
lays the trace's pages out from address 0, so lines fall to other slices and DRAM banks.
"""

from __future__ import annotations

import numpy as np
import pytest

from pysim import simulate
from pysim._ffi import ffi, lib
from pysim.engine.simulation import Sim
from pysim.trace.convert import convert
from pysim.trace.converted_file import ConvertedTrace
from pysim.trace.job import trace_job
from pysim.trace.writer import write_trace
from pysim.workloads.kernels.gemm_choice import FP16, FP32
from tests.core.harness import execute, lowered_of, tiny
from tests.core.workloads_small import JOBS

PAGE = 21 - 7  # bits of a line
# a list of kernels on several streams with events is another program without the events
NAMES = ("gemm_edges", "gemm_beta", "gemm_chain", "split_k", "sliced", "hgemm", "gru", "copy", "pointwise",
         "read", "chase", "empty")  # fmt: skip


@pytest.fixture(scope="module", params=NAMES)
def both(request, tmp_path_factory):
    """A job, the job of its trace, and the pages of the trace."""
    job = JOBS[request.param]()
    folder = tmp_path_factory.mktemp("round")
    write_trace(job, folder / "text")
    convert(folder / "text", folder / "kernels.trace")
    store = ConvertedTrace(folder / "kernels.trace")
    return job, trace_job(store), np.asarray(store.trace_array("pages"), np.uint64)


def touches(job, kernels, tbs):
    """What the core says that TBs touch, as arrays."""
    made, _ = lowered_of(job, "stream", tiny())
    out = np.zeros(1 << 17, np.uint64)
    with Sim(made) as sim:
        for kernel in kernels:
            for tb in tbs(kernel):
                count = lib.gs_touches(sim.sim, kernel, tb, ffi.cast("uint64_t *", out.ctypes.data), len(out))
                assert count <= len(out)
                yield out[:count].copy()


def test_each_tb_touches_the_same_sectors(both):
    job, trace, pages = both
    assert [k.grid for k in trace.kernels] == [k.grid for k in job.kernels]
    kernels = range(0, len(job.kernels), max(1, len(job.kernels) // 6))

    def tbs(kernel):
        return sorted(
            {0, 1, job.kernels[kernel].tbs // 2, job.kernels[kernel].tbs - 1}
            & set(range(job.kernels[kernel].tbs))
        )

    write, low = np.uint64(1 << 63), np.uint64((1 << PAGE) - 1)
    for mine, recorded in zip(touches(job, kernels, tbs), touches(trace, kernels, tbs), strict=True):
        line = (recorded & ~write) >> np.uint64(4)
        back = pages[line >> np.uint64(PAGE)] << np.uint64(PAGE) | line & low if len(line) else line
        moved = back << np.uint64(4) | recorded & np.uint64(15) | recorded & write
        assert np.array_equal(np.sort(moved), np.sort(mine))


def test_the_work_is_the_same(both):
    job, trace, _ = both
    mine, recorded = execute(job), execute(trace)
    for name in ("warp_instructions", "store_sectors", "tbs"):
        assert recorded.kernels[name].tolist() == mine.kernels[name].tolist(), name
    # what misses L1 depends on which warp comes first
    assert recorded.kernels["load_sectors"] == pytest.approx(mine.kernels["load_sectors"], rel=0.01)


def test_times_are_close(both):
    """Without the cycles lost to register banks, which the converter does not look at.

    A trace does not say that a library's kernels wait for their code (``Tiling.fetch``) either: in stream
    order each launch of one is that much longer than its trace.
    """
    job, trace, _ = both
    each = [
        simulate("titan_v", made, "stream", threads=1, overrides={"gpu.sm.register_ports": 0})
        for made in (job, trace)
    ]
    mine, recorded = (result.frame("runs").iloc[0].time_us for result in each)
    known = {f"gemm_{t.name}": t.fetch for t in FP32 + FP16}
    waits = sum(known.get(kernel.program.name, 0) for kernel in job.kernels)
    mine -= waits / 1455  # MHz
    assert recorded == pytest.approx(mine, rel=0.06)
