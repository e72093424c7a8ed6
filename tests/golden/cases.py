"""Small jobs whose result tables are stored as hashes: one case a front end, a scheme family or an output.

A change that must not change results is checked against them; ``python -m tests.golden.store`` (``make
golden``) stores them anew after a change that is meant to.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pysim import Job, Result, simulate
from pysim.workloads.registry import make

GRU = "gru:hidden=256,batch=8,timesteps=4,layers=2"
TRACE = Path(__file__).resolve().parents[1] / "data" / "traces" / "vectoradd"
MLP = ("mlp", "fp16", "64x64x32_128thr", "widths=512-1024-512;layers=2;tokens=128")


class Case(NamedTuple):
    """One golden run: ``simulate(gpu, job(), schemes, overrides=overrides)``."""

    gpu: str
    job: Callable[[], Job]
    schemes: str
    overrides: Mapping[str, int | float | str] = {}

    def run(self, threads: int = 1) -> Result:
        """Simulate the case with every table."""
        return simulate(self.gpu, self.job(), self.schemes, threads=threads, overrides=dict(self.overrides))


def _workload(text: str) -> Callable[[], Job]:
    return lambda: make(text)


def _chain(*words: str) -> Callable[[], Job]:
    def job() -> Job:
        from pysim.workloads.mirrored.chains import chain_job

        return chain_job(*words)

    return job


def _measured(kernel: str, params: str) -> Callable[[], Job]:
    def job() -> Job:
        from pysim.workloads.mirrored import job_of

        return job_of(kernel, params)

    return job


def _library_gemm(m: int, n: int, k: int) -> Callable[[], Job]:
    def job() -> Job:
        from pysim import Memory
        from pysim.workloads.library.gemms.launches import gemm

        return Job("gemm", list(gemm(m, n, k, memory=Memory())[0]))

    return job


def _trace() -> Job:
    """Convert a trace in the Accel-Sim format."""
    from pysim.trace.convert import convert
    from pysim.trace.converted_file import ConvertedTrace
    from pysim.trace.job import trace_job

    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "vectoradd.pysim"
        convert(TRACE / "kernelslist.g", store)
        return trace_job(ConvertedTrace(store), memcpy="time")


def _written_trace() -> Job:
    """Write a GEMM as a trace, then convert it: the writer, the reader, loops and register chains."""
    from pysim.trace.convert import convert
    from pysim.trace.converted_file import ConvertedTrace
    from pysim.trace.job import trace_job
    from pysim.trace.writer import write_trace

    with tempfile.TemporaryDirectory() as folder:
        write_trace(make("gemm:m=128,n=128,k=64"), Path(folder) / "trace")
        store = Path(folder) / "gemm.pysim"
        convert(Path(folder) / "trace", store)
        return trace_job(ConvertedTrace(store))


CASES: dict[str, Case] = {
    # the question of the README, under the schemes that it lists
    "gru": Case("titan_v", _workload(GRU), "host,stream,graph,tb_static,tb_ideal"),
    "gru_pools": Case("titan_v", _workload(GRU), "pool,queues,acs_hw,acs_sw,blockmaestro,wireframe"),
    # options of table schemes: waits inside TBs, the memory behind the table, order and place of ready TBs
    "gru_table": Case(
        "titan_v",
        _workload("gru:hidden=256,batch=8,timesteps=4,layers=2,input=hoisted"),
        "tb_static:prologue,tb_static:fetch,tb_static:reduced,tb_static:critical,tb_static:balanced,"
        "tb_static:affinity,tb_static:bypass,tb_static:round_robin",
        {"scheme.table.entries": 256},
    ),
    "random_dag": Case(
        "titan_v", _workload("random_dag"), "tb_learned,tb_learned:fetch,tb_bloom,tb_bloom:exact"
    ),
    "chain": Case(
        "h200",
        _chain(*MLP),
        "stream,graph,cusync:row+pdl,cusync:tile+streams,pdl,pdl:late,pdl:graph,fused:grid,fused:tile",
    ),
    "attention": Case(
        "h200",
        _chain("attention", "fp16", "64x64x32_128thr", "heads=4;seq=128;d=64"),
        "stream,tb_static,cusync",
    ),
    "h200_kernel": Case("h200", _measured("layernorm", "rows=512;cols=1024"), "stream"),
    # bulk copies, clusters, rings of stages, asynchronous multiplies
    "library_gemm": Case("h200", _library_gemm(1024, 768, 320), "stream,graph"),
    "h100_conv": Case("h100", _measured("conv3x3_direct", "N=1;C=32;H=W=32;K=32"), "stream"),
    "trace": Case("titan_v", _trace, "stream,graph,tb_static"),
    "written_trace": Case("titan_v", _written_trace, "stream"),
    "peer": Case("accelsim_titan_v", _workload("mixed"), "stream,graph"),
    "energy": Case(
        "h200",
        _workload("gemm:m=1024,n=1024,k=256,dtype=fp16,repeat=2"),
        "stream,tb_static",
        {"sim.sustained": 1, "gpu.power_limit": 300},
    ),
    "series": Case("titan_v", _workload("columns:rows=1024,cols=256"), "stream", {"sim.sample": 1}),
    "replay": Case(
        "titan_v",
        _workload("gru:hidden=256,batch=8,timesteps=30"),
        "stream,tb_static",
        {"sim.replay": "period", "sim.replay_error": 0.05},
    ),
    "transformer": Case(
        "a100", _workload("transformer:layers=1,hidden=256,sequence=64,batch=2,ffn=512"), "stream,tb_static"
    ),
    "wavefront": Case("v100", _workload("wavefront:side=12"), "stream,wireframe:nodes1024,tb_static"),
    "irregular": Case("titan_v", _workload("rigid"), "stream,graph:built,acs_hw:window16,acs_sw:threads4"),
    "stream_k": Case(
        "v100",
        _workload("gemm:m=1024,n=512,k=512,dtype=fp16,tile=fp16_s884gemm_128x128,stream_k=two_tile"),
        "stream",
    ),
    "persistent_rnn": Case("titan_v", _workload("persistent_rnn"), "stream"),
    # the check of every access against the exact footprints
    "oracle": Case("titan_v", _workload("nw:n=256"), "stream,tb_static,blockmaestro", {"sim.oracle": 1}),
}
