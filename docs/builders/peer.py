"""Renders docs/peer.md from the rows of configs/accelsim_rows.py."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pysim.workloads.validation import peer_traces

from .readme import write_truth
from .writing import DOCS, replace, run, table, wrapped

# What each setting decides: first what follows from how the peer works, then the length of our blocks, then
# the numbers that were set while looking at these rows.
VARIANTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("an even hash over the slices", ("gpu.l2.hash_slices=0",)),
    ("a port for each SM", ("gpu.noc.port_sms=1",)),
    ("slices send a sector a cycle", ("gpu.l2.slice_bytes=32",)),
    ("read requests at no cost", ("gpu.noc.read_sector=0",)),
    ("both", ("gpu.l2.slice_bytes=32", "gpu.noc.read_sector=0")),
    (
        "none of the crossbar and hash above",
        (
            "gpu.l2.slice_bytes=32",
            "gpu.noc.read_sector=0",
            "gpu.l2.hash_slices=0",
            "gpu.noc.port_sms=1",
            "gpu.noc.write_bytes=32",
        ),
    ),
    ("TBs an SM not capped", ("gpu.cp.even_tbs=0",)),
    ("greedy warps", ("gpu.sm.warp_order=greedy",)),
    ("L2 replaces at random", ("gpu.l2.replacement=random",)),
    ("slots lost to register banks", ("gpu.sm.register_ports=1",)),
    ("bank conflicts of whole accesses", ("gpu.sm.smem_conflicts=words",)),
    ("compute blocks of at most 1", ("gpu.sm.block_max=1",)),
    ("of at most 16", ("gpu.sm.block_max=16",)),
    ("of at most 1024", ("gpu.sm.block_max=1024",)),
    ("shared memory latency 24", ("gpu.sm.smem_latency=24",)),
    ("shared memory latency 36", ("gpu.sm.smem_latency=36",)),
    ("shared memory latency 60", ("gpu.sm.smem_latency=60",)),
    ("barrier 8", ("gpu.sm.barrier=8",)),
    ("barrier 20", ("gpu.sm.barrier=20",)),
    ("L2 latency 195", ("gpu.l2.latency=195",)),
    ("L2 latency 235", ("gpu.l2.latency=235",)),
    ("DRAM latency 335", ("gpu.dram.latency=335",)),
    ("DRAM latency 395", ("gpu.dram.latency=395",)),
)
Tables = Mapping[str, Sequence[Mapping[str, Any]]]


def _seconds(host: Mapping[str, Any]) -> float:
    return float(host["load_seconds"] + host["simulate_seconds"])


def checked(tables: Tables) -> list[peer_traces.Row]:
    """Return what was measured; refuse a part of the rows."""
    measured = peer_traces.rows()
    if [row["case"] for row in tables["validation"]] != [row.name for row in measured]:
        raise SystemExit("these are not all rows of the peer")
    return measured


def rows(tables: Tables) -> str:
    """Return the table of cycles and speed."""
    measured = checked(tables)
    baseline = [peer_traces.baseline_model(measured, constants)[1] for constants in (2, 3)]
    made = []
    for at, (row, found, host) in enumerate(zip(measured, tables["validation"], tables["host"], strict=True)):
        rate = row.instructions / _seconds(host)
        speed = [f"{row.rate / 1e3:.1f} k", f"{rate / 1e6:.1f} M", f"{rate / row.rate:,.0f}x"]
        if np.isnan(row.rate):
            speed[0] = speed[2] = "-"
        cycles = [f"{row.cycles:,}", f"{found['simulated']:,.0f}", f"{found['error']:+.1%}"]
        made.append([row.name, *cycles, *(f"{errors[at]:+.1%}" for errors in baseline), *speed])
    heads = ["input and configuration", "its cycles", "ours", "error", "baseline of 2", "baseline of 3"]
    heads += ["its warp instructions/s", "ours", "speed-up"]
    return table(heads, [False, *[True] * 8], made)


def summary(tables: Tables) -> str:
    """Say how large the errors are, beside those of the baseline models."""
    measured = checked(tables)
    errors = np.abs([row["error"] for row in tables["validation"]])
    said = []
    for constants in (2, 3):
        found, baseline = peer_traces.baseline_model(measured, constants)
        words = ("a sectors a port", "b instructions an SM", "c kernels")[:constants]
        values = ", ".join(f"{name} = {value:.3g}" for name, value in zip("abc", found, strict=False))
        said.append(
            f"launch latency + {' + '.join(words)} ({values}) scores {np.abs(baseline).mean():.1%},"
            f" worst {np.abs(baseline).max():.1%}"
        )
    return wrapped(
        f"Mean absolute error {errors.mean():.1%}, worst {errors.max():.1%}. Baseline models fitted to the"
        f" same rows: {said[0]}; {said[1]}."
    )


def counts(tables: Tables) -> str:
    """Return the table of what moved."""
    made = []
    for row, found in zip(checked(tables), tables["validation"], strict=True):
        if row.l2_sectors is not None:
            l2, dram = (int(word) for word in found["detail"].split()[1::2])
            made.append([row.name, *(f"{n:,}" for n in (row.l2_sectors, l2, row.dram_sectors, dram))])
    heads = ["input and configuration", "its L2 sectors", "ours", "its DRAM reads", "ours"]
    return table(heads, [False, *[True] * 4], made)


def variants(base: Tables, changed: Mapping[str, Tables]) -> str:
    """Return each row's error as it is, and with one thing changed."""
    made = []
    for name, tables in {"as it is": base, **changed}.items():
        checked(tables)
        errors = [float(row["error"]) for row in tables["validation"]]
        made.append([name, *(f"{error:+.1%}" for error in errors), f"{np.abs(errors).mean():.1%}"])
    heads = ["changed", *(row.name for row in peer_traces.rows()), "mean"]
    return table(heads, [False, *[True] * (len(heads) - 1)], made)


def write() -> None:
    """Write docs/peer.md, and the table of README.md that quotes it."""
    with tempfile.TemporaryDirectory() as name:

        def replay(*more: str) -> Any:
            out = str(Path(name) / "rows.h5")
            return json.loads(
                run("configs/accelsim_rows.py", "--json", "--quiet", "--force", "--out", out, *more)
            )

        base = replay("--repeats", "9")
        changed = {}
        for title, settings in VARIANTS:
            options = [word for setting in settings for word in ("--set", setting)]
            changed[title] = replay("--repeats", "1", *options)
    blocks = {
        "rows": rows(base),
        "summary": summary(base),
        "counts": counts(base),
        "variants": variants(base, changed),
    }
    replace(DOCS / "peer.md", blocks)
    write_truth()
