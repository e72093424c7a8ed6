"""Which kernels a call launches: name, grid, block, resources and time, from PyTorch's profiler."""

import bisect
import json
import statistics
import tempfile
from pathlib import Path

from names import is_reduce, is_side_kernel
from timing import GPU, sync
from torch.profiler import ProfilerActivity, profile, record_function

KERNEL_COLUMNS = [
    *(
        "kernels",
        "memory_operations",
        "kernel",
        "grid_x",
        "grid_y",
        "grid_z",
        "block_x",
        "block_y",
        "block_z",
    ),
    *("registers_per_thread", "shared_memory_B", "kernel_us", "all_kernels_us", "kernel_sm_clock_mhz"),
    *("reduce_kernel", "reduce_grid", "reduce_us", "other_kernels"),
]


def _trace(items, clock):
    """Run [(key, call, times)] under the profiler; return its events and the SM clock of each item in MHz."""
    sync()
    clock.clear(2 * len(items))
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for i, (key, call, times) in enumerate(items):
            clock.mark(2 * i)
            for r in range(times):
                with record_function(f"@{key}@{r}"):
                    call()
            clock.mark(2 * i + 1)
            sync()
    mhz = clock.mhz([(2 * i, 2 * i + 1) for i in range(len(items))])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return events, mhz


def by_label(events):
    """Return {key: [[device events of one call], ...]}: a kernel belongs to the label around its launch."""
    labels, launch, device = [], {}, []
    for e in events:
        kind = e.get("cat", "")
        if kind == "user_annotation" and e["name"].startswith("@"):
            labels.append((float(e["ts"]), float(e["ts"]) + float(e["dur"]), e["name"]))
        elif kind in ("cuda_runtime", "cuda_driver"):
            launch[e["args"].get("correlation")] = float(e["ts"])
        elif kind in ("kernel", "gpu_memcpy", "gpu_memset"):
            device.append(e)
    labels.sort()
    starts = [label[0] for label in labels]
    out = {}
    for _, _, name in labels:
        _, key, repeat = name.rsplit("@", 2)
        out.setdefault(key, {}).setdefault(int(repeat), [])
    lost = 0
    for e in sorted(device, key=lambda e: float(e["ts"])):
        if e["name"].startswith("stamp_clock"):
            continue
        at = launch.get(e["args"].get("correlation"))
        i = bisect.bisect_right(starts, at) - 1 if at is not None else -1
        if i < 0 or at > labels[i][1]:
            lost += 1
            continue
        _, key, repeat = labels[i][2].rsplit("@", 2)
        out[key][int(repeat)].append(e)
    if lost:
        print(f"profiler: {lost} of {len(device)} device events without a label", flush=True)
    return {key: [calls[r] for r in sorted(calls)] for key, calls in out.items()}


def profiled(items, clock):
    """Return a row of KERNEL_COLUMNS for each (key, call, times) of `items`."""
    if not GPU:
        for _, call, _ in items:
            call()
        return [dict.fromkeys(KERNEL_COLUMNS, "") for _ in items]
    events, mhz = _trace(items, clock)
    found = by_label(events)
    rows = [kernel_row(found.get(key, [])) for key, _, _ in items]
    for row, rate in zip(rows, mhz, strict=True):
        row["kernel_sm_clock_mhz"] = f"{rate:.0f}"
    return rows


def _dims(event, what):
    return "x".join(str(x) for x in event["args"].get(what, []))


def _describe(event):
    args = event["args"]
    name = event["name"].replace(";", ":").replace("|", "/")
    resources = (str(args.get("registers per thread", "")), str(args.get("shared memory", "")))
    parts = [name, _dims(event, "grid"), _dims(event, "block"), *resources, f"{float(event['dur']):.3f}"]
    return "|".join(parts)


def _median_us(calls, event):
    name, grid = event["name"], _dims(event, "grid")
    us = [float(e["dur"]) for c in calls for e in c if e["name"] == name and _dims(e, "grid") == grid]
    return min(us) if len(us) < 3 else statistics.median(us)


def kernel_row(calls):
    """Return the columns of the longest kernel of the last call, its split-K reduction, and the rest."""
    row = dict.fromkeys(KERNEL_COLUMNS, "")
    calls = [c for c in calls if c]
    if not calls:
        return row
    last = calls[-1]
    kernels = [e for e in last if e["cat"] == "kernel"]
    row["kernels"], row["memory_operations"] = len(kernels), len(last) - len(kernels)
    if not kernels:
        return row
    reduces = [e for e in kernels if is_reduce(e["name"])]
    rest = [e for e in kernels if e not in reduces]
    works = [e for e in rest if not is_side_kernel(e["name"])]
    main = max(works or rest or kernels, key=lambda e: float(e["dur"]))
    row["kernel"] = main["name"]
    for what in ("grid", "block"):
        for axis, value in zip("xyz", main["args"].get(what, []), strict=False):
            row[f"{what}_{axis}"] = value
    row["registers_per_thread"] = main["args"].get("registers per thread", "")
    row["shared_memory_B"] = main["args"].get("shared memory", "")
    row["kernel_us"] = f"{_median_us(calls, main):.3f}"
    row["all_kernels_us"] = f"{sum(float(e['dur']) for e in last):.3f}"
    if reduces:
        row["reduce_kernel"], row["reduce_grid"] = reduces[0]["name"], _dims(reduces[0], "grid")
        row["reduce_us"] = f"{_median_us(calls, reduces[0]):.3f}"
    others = [e for e in kernels if e is not main and all(e is not r for r in reduces[:1])]
    row["other_kernels"] = ";".join(_describe(e) for e in others)
    return row
