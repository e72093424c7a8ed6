"""Writes docs/results.md: small networks on an H200 with two kinds of kernels, and the study of the zoo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim import simulate, stats
from pysim.stats.studies.networks import NOTHING, cases_of, left_out, summary, text_of, why_nothing, without
from pysim.stats.studies.networks_picture import draw_networks
from pysim.workloads import make

from .writing import DOCS, replace, table, wrapped

if TYPE_CHECKING:
    from typing import Any

    from pysim import Job
    from pysim.stats.studies.hardware import Section

    Table = np.ndarray[Any, np.dtype[Any]]

PAGE, PICTURE = "results.md", "study_networks.png"

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


def _table(section: Section, texts: int) -> str:
    """Return a section in Markdown; ``texts``: how many columns are no numbers."""
    return table(section.heads, [i >= texts for i in range(len(section.heads))], section.rows)


def verdict(rows: Table) -> str:
    """Return how often TBs that wait give something, by GPU."""
    cases = cases_of(rows)
    said = []
    for gpu in dict.fromkeys(case.gpu for case in cases):
        mine = [case for case in cases if case.gpu == gpu]
        some = sum(case.gain >= 1 + NOTHING for case in mine)
        more = sum(not why_nothing(case) for case in mine)
        gains = [case.over_coarse for case in mine]
        said.append(
            f"{gpu}: TBs that wait give {NOTHING:.0%} or more over stream order in {some} of"
            f" {len(mine)} passes, and over the best of kernels that wait in {more}"
            f" (median {np.median(gains):.2f}, {min(gains):.2f} to {max(gains):.2f})."
        )
    return wrapped(" ".join(said))


def sizes(rows: Table) -> str:
    """Return the networks with their keys, as a list."""
    texts = dict.fromkeys(text_of(text) for text in rows["workload"].tolist())
    return "\n".join(f"- `{text}`" for text in texts)


def study(path: str) -> None:
    """Write what a result of ``configs/study_networks.py`` shows, and its picture."""
    rows = stats.Results(path).array("networks")
    apart = [*without(cases_of(rows)), *left_out(rows)]
    parts = [f"{each.title}\n\n{_table(each, len(each.heads))}" for each in apart if each.rows]
    replace(
        DOCS / PAGE,
        {
            "study": _table(summary(rows), 3),
            "verdict": verdict(rows),
            "nothing": "\n\n".join(f"{part[0].upper()}{part[1:]}" for part in parts),
            "sizes": sizes(rows),
        },
    )
    (DOCS / PICTURE).write_bytes(draw_networks(rows, "What synchronisation between TBs gives"))


def small() -> None:
    """Simulate the small networks and write their table."""
    texts = [f"- {network}: `{text}`" for network, text in NETWORKS.items()]
    replace(DOCS / PAGE, {"speedups": speedups(), "texts": "\n".join(texts)})


def write(path: str = "") -> None:
    """Write the small networks of docs/results.md; with a study's result file, the study instead."""
    if path:
        study(path)
    else:
        small()
