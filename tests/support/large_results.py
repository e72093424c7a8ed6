"""A result file with as many TBs as asked for, made up in a second instead of simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pysim import stats
from pysim.results.schema import DTYPES, TABLES

KINDS = ("gemm_128x128", "softmax", "layer_norm", "bias_gelu")
HAND_OVER = 400 * 1024  # ticks of 1/1024 ns from the end of a TB until its consumer is ready
REUSE = 90 * 1024  # until its slot is taken again
SAMPLES = 400


def large_results(path: Path, kernels: int, sms: int = 132, slots: int = 8, runs: int = 1) -> stats.Results:
    """Write a file with a TB an SM, slot and kernel; each needs one of the kernel before."""
    parts: dict[str, list[Any]] = {name: [] for name in TABLES if name != "sm"}
    for run in range(runs):
        for name, rows in _run(run, kernels, sms, slots).items():
            rows["run"] = run
            parts[name].append(rows)
    tables = {name: np.concatenate(rows) for name, rows in parts.items() if rows}
    about = {"script": "test", stats.KERNEL_LEVEL: "[]"}
    known = {"parameters": {"gpu.sms": sms, "gpu.dram.bandwidth": 4800.0, "gpu.sm.warps": 64}}
    stats.write(path, tables, about, known, declared=TABLES)
    return stats.load(path)


def _run(number: int, kernels: int, sms: int, slots: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(number)
    lanes = sms * slots
    shape = (kernels, lanes)
    ready, dispatch, end = (np.zeros(shape, np.int64) for _ in range(3))
    free = np.zeros(lanes, np.int64)
    producer = np.zeros(shape, np.int64)
    for kernel in range(kernels):
        usual = 2048 * 1024 if kernel % len(KINDS) == 0 else 512 * 1024
        producer[kernel] = random.permutation(lanes)
        ready[kernel] = end[kernel - 1][producer[kernel]] + HAND_OVER if kernel else HAND_OVER
        dispatch[kernel] = np.maximum(ready[kernel], free + REUSE)
        end[kernel] = dispatch[kernel] + random.integers(usual // 2, usual * 2, lanes)
        free = end[kernel]
    tbs = np.zeros(kernels * lanes, DTYPES["tbs"])
    tbs["kernel"], tbs["tb"] = np.repeat(np.arange(kernels), lanes), np.tile(np.arange(lanes), kernels)
    tbs["sm"], tbs["slot"] = tbs["tb"] % sms, tbs["tb"] // sms
    for name, ticks in (("ready", ready), ("dispatch", dispatch), ("end", end)):
        tbs[f"{name}_ns"] = ticks.ravel() / 1024
    tbs["start_ns"] = tbs["dispatch_ns"] + 100
    tbs["last_kernel"] = tbs["kernel"] - 1
    tbs["last_tb"] = np.where(tbs["kernel"] > 0, producer.ravel(), -1)
    tbs["reason"] = np.where(ready.ravel() < dispatch.ravel(), b"slot", b"dependence")
    time_us = float(end.max()) / 1024e3
    rows = np.zeros(kernels, DTYPES["kernels"])
    rows["kernel"], rows["name"], rows["tbs"] = np.arange(kernels), np.arange(kernels) % len(KINDS), lanes
    rows["ready_us"], rows["first_dispatch_us"] = ready.min(1) / 1024e3, dispatch.min(1) / 1024e3
    rows["last_end_us"] = end.max(1) / 1024e3
    rows["complete_us"] = rows["last_end_us"] + 0.3
    rows["warp_instructions"], rows["load_bytes"], rows["store_bytes"] = (
        lanes * 4096,
        lanes << 16,
        lanes << 12,
    )
    names = np.zeros(len(KINDS), DTYPES["names"])
    names["name"], names["text"] = np.arange(len(KINDS)), KINDS
    return {
        "runs": _row(number, time_us, kernels * lanes),
        "kernels": rows,
        "tbs": tbs,
        "names": names,
        "samples": _samples(time_us, random),
    }


def _row(number: int, time_us: float, tbs: int) -> np.ndarray:
    made = np.zeros(1, DTYPES["runs"])
    made["workload"], made["scheme"], made["gpu"], made["status"] = "made up", f"tb_{number}", "none", "ok"
    made["time_us"], made["tbs"], made["speedup"] = time_us, tbs, 1.0
    made["bound_us"] = made["estimate_us"] = time_us / 2
    made["energy_j"] = made["window"] = np.nan
    return made


def _samples(time_us: float, random: np.random.Generator) -> np.ndarray:
    made = np.zeros(SAMPLES, DTYPES["samples"])
    edges = np.linspace(0, time_us, SAMPLES + 1)
    made["sample"], made["start_us"], made["end_us"] = np.arange(SAMPLES), edges[:-1], edges[1:]
    made["resident_warps"] = random.uniform(4000, 8000, SAMPLES)
    made["alu_utilization"] = made["tensor"] = random.uniform(0.2, 0.8, SAMPLES)
    made["l2_requests"] = random.integers(1000, 9000, SAMPLES)
    return made
