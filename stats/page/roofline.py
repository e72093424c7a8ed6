"""The instruction roofline of a run: warp instructions a second against warp instructions a sector.

After Ding and Williams, "An Instruction Roofline Model for GPUs" (PMBS 2019). Ceilings follow from the
parameters in the file; a ceiling whose parameters are missing is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysim.stats.schema import Table
from pysim.stats.store import Results

from .run import rows_of
from .spans import Spans

SECTOR = 32  # bytes
SUB_CORES = 4  # of an SM; each issues a warp instruction a cycle
MOST_NAMES = 60  # those that take the most time
MOST_EMPTY = 32  # warp instructions a TB without L2 traffic: warps that do little but end
PIPES = {
    "fp32": "FP32 pipes",
    "int": "integer pipes",
    "fp16": "FP16 pipes",
    "fp64": "FP64 pipes",
    "sfu": "special-function pipes",
    "tensor": "tensor pipes",
}
LITTLE = 5e-4  # share of instructions and of traffic below which a name is left out: kernels that only wait
BUSIEST = 0.25  # a pipe has a ceiling if it is busy for this share of the busiest pipe's time
RATE, L2, DRAM = "rate", "l2", "dram"  # what a ceiling limits: instructions, L2 sectors, DRAM sectors


def roofline(results: Results, row: Table) -> dict[str, Any] | None:
    """Return ceilings, kernels and limits of a run for the page; None where the file has no kernels.

    ``row``: its row of ``runs``. Rates of ceilings are in 1e9 warp instructions or bytes a second, times in
    ns. A kernel stands for all launches of a name; its time is that in which at least one of them is between
    its first dispatch and its completion, and ``beside`` the share of it in which other kernels are, too.
    """
    run = int(row["run"])
    kernels, sm = rows_of(results, "kernels", run), rows_of(results, "sm", run)
    if not len(kernels):
        return None
    parameters = results.configuration.get("parameters")
    values = _numbers(parameters if isinstance(parameters, Mapping) else {})
    busy = {name: float(sm[f"{name}_cycles"].sum()) if len(sm) else 0.0 for name in PIPES}
    most = max(busy.values())
    ceilings = ceilings_of(values, {name for name in PIPES if busy[name] > BUSIEST * most})
    time = float(row["time_us"]) * 1e3
    moved = {"l2": int(row["l2_bytes"]), "dram": int(row["dram_bytes"])}
    return {
        "ceilings": ceilings,
        "merging": values.get("gpu.noc.join_loads", 0) > 1,
        **_by_name(kernels),
        "run": {
            "instructions": int(row["warp_instructions"]),
            "time": time,
            **{f"{where}_sectors": count / SECTOR for where, count in moved.items()},
        },
        "limits": _limits(row, sm, busy, {each["key"]: each["value"] for each in ceilings}),
        "idle": float(row["sm_idle"]) if np.isfinite(row["sm_idle"]) else None,
    }


def ceilings_of(values: Mapping[str, float], pipes: set[str]) -> list[dict[str, Any]]:
    """Return the ceilings of a machine, by its parameters; ``pipes``: those that get one."""
    clock = _product(values, "gpu.clock") / 1e3  # cycles a ns: L2 has the SM clock of the parameters
    share = values.get("sim.clock_share", 1.0)  # a power limit slows SMs only
    issue = _product(values, "gpu.sms") * SUB_CORES * clock * share
    made = [("issue", "issue slots", RATE, issue)]
    for name, label in PIPES.items():
        interval = values.get(f"gpu.sm.{name}_interval", math.nan)
        slower = values.get("gpu.clock_tensor", 1.0) if name == "tensor" else 1.0
        if name in pipes and (slower < 1 or not interval <= 1):
            made.append((name, label, RATE, issue * slower / (interval or math.nan)))
    sharing = values.get("gpu.noc.port_sms") or math.nan
    ports = _product(values, "gpu.sms", "gpu.noc.reply_bytes") / sharing
    made += [
        ("l2", "L2 slices", L2, _product(values, "gpu.l2.slices", "gpu.l2.slice_bytes") * clock),
        ("ports", "SM ports, loads", L2, ports * clock * share),
        ("dram", "DRAM", DRAM, _product(values, "gpu.dram.bandwidth")),
    ]
    return [
        {"key": key, "label": label, "of": of, "value": value}
        for key, label, of, value in made
        if math.isfinite(value) and value > 0
    ]


def _numbers(parameters: Mapping[str, Any]) -> dict[str, float]:
    return {str(path): float(value) for path, value in parameters.items() if isinstance(value, int | float)}


def _product(values: Mapping[str, float], *paths: str) -> float:
    """Return the product of parameters, NaN where one is missing."""
    return math.prod(values.get(path, math.nan) for path in paths)


def _by_name(kernels: Table) -> dict[str, Any]:
    """Return the kernels by name, those with most time first, and how many names are left out and why."""
    names, which = np.unique(kernels["name"], return_inverse=True)
    begin, end = kernels["first_dispatch_us"] * 1e3, kernels["complete_us"] * 1e3
    there = end > begin
    spans = Spans(which[there], begin[there], end[there]).merged()
    time, alone = spans.total(len(names)), spans.alone(len(names))

    def total(values: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(which, values, len(names)).astype(np.float64)

    instructions, tbs = total(kernels["warp_instructions"]), total(kernels["tbs"])
    sectors = total(kernels["load_bytes"] + kernels["store_bytes"]) / SECTOR
    empty = (instructions <= 0) | (time <= 0) | ((sectors <= 0) & (instructions <= MOST_EMPTY * tbs))
    whole = max(1.0, float(instructions.sum())), max(1.0, float(sectors.sum()))
    empty |= (instructions < LITTLE * whole[0]) & (sectors < LITTLE * whole[1])
    order = np.argsort(-time, kind="stable")
    shown = order[~empty[order]]
    return {
        "kernels": [
            {
                "name": int(names[i]),
                "launches": int((which == i).sum()),
                "instructions": float(instructions[i]),
                "sectors": float(sectors[i]),
                "time": float(time[i]),
                "beside": max(0.0, 1 - float(alone[i]) / float(time[i])),
            }
            for i in shown[:MOST_NAMES].tolist()
        ],
        "empty": int(empty.sum()),
        "more": max(0, len(shown) - MOST_NAMES),
    }


def _limits(
    row: Table, sm: Table, busy: Mapping[str, float], peak: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Return what share of each limit of the machine the whole run uses, the largest first.

    ``busy``: cycles of each pipe; ``peak``: ceilings by key.
    """
    time, cycles = float(row["time_us"]) * 1e3, float(row["cycles"])
    made: dict[str, float] = {}
    if time > 0:
        made["L2 slices"] = int(row["l2_bytes"]) / (time * peak.get("l2", math.nan))
        made["DRAM bandwidth"] = int(row["dram_bytes"]) / (time * peak.get("dram", math.nan))
    if time > 0 and len(sm):
        made["SM ports for loads"] = (
            float(sm["load_sectors"].sum()) * SECTOR / (time * peak.get("ports", math.nan))
        )
    if cycles > 0 and len(sm):
        slots = len(sm) * SUB_CORES * cycles
        made["issue slots"] = int(row["warp_instructions"]) / slots
        made |= {PIPES[name]: cycles_busy / slots for name, cycles_busy in busy.items() if cycles_busy}
        made["shared memory"] = float(sm["smem_cycles"].sum()) / (len(sm) * cycles)
    known = [(label, share) for label, share in made.items() if math.isfinite(share)]
    return [
        {"label": label, "share": share}
        for label, share in sorted(known, key=lambda each: (-each[1], each[0]))
    ]
