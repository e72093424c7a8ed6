"""Writes docs/results.md: networks on an H200 with this project's kernels and with those of libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim import simulate
from pysim.workloads import make

from .writing import DOCS, replace, table

if TYPE_CHECKING:
    from pysim import Job

GPU = "h200"
SCHEMES = (
    "stream",
    "pdl",
    "graph",
    "pool",
    "tb_static",
    "tb_static:reduced",
    "tb_static:prologue",
    "tb_ideal",
)
NETWORKS = {
    "gru": "gru:hidden=512,batch=16,timesteps=4",
    "gru, large": "gru:hidden=1536,batch=32,timesteps=2",
    "lstm": "lstm:hidden=256,batch=8,timesteps=8,layers=3,input=per-step",
    "mlp": "mlp:layers=8,width=1024,batch=128",
    "transformer": "transformer:layers=2,hidden=512,heads=8,sequence=128,batch=2",
    "transformer, large": "transformer:layers=2,hidden=1024,heads=16,sequence=256,batch=4",
}
# what else PyTorch launches for a network
MORE = {"transformer": "fused=1", "transformer, large": "fused=1"}
HEADS = ("network", "kernels", "launches", "stream, us")


def jobs() -> list[tuple[str, str, Job]]:
    """Return network, kernels and job of each row."""
    made = []
    for network, text in NETWORKS.items():
        made += [(network, kernels, make(f"{text},kernels={kernels}", GPU)) for kernels in ("own", "library")]
        if more := MORE.get(network):
            made.append((network, "library, fused", make(f"{text},kernels=library,{more}", GPU)))
    return made


def speedups() -> str:
    """Return the table: time in stream order, and how many times as fast each scheme is."""
    rows = []
    for network, kernels, job in jobs():
        runs = simulate(GPU, job, ",".join(SCHEMES)).tables()["runs"]
        times = [float(run["time_us"]) if run["status"] == b"ok" else 0.0 for run in runs]
        shown = [f"{times[0] / time:.2f}" if time else "-" for time in times[1:]]
        rows.append([network, kernels, str(len(job.kernels)), f"{times[0]:,.1f}", *shown])
    heads = (*HEADS, *(f"`{scheme}`" for scheme in SCHEMES[1:]))
    return table(heads, (False, False, *[True] * (len(heads) - 2)), rows)


def write() -> None:
    """Write the table and the networks of docs/results.md."""
    texts = [f"- {network}: `{text}`" for network, text in NETWORKS.items()]
    replace(DOCS / "results.md", {"speedups": speedups(), "texts": "\n".join(texts)})
