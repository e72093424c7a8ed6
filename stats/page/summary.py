"""The static part of the report, which needs no script: runs side by side, configuration, provenance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pysim.stats.schema import SHARES
from pysim.stats.store import INTERRUPTED, Results
from pysim.stats.text.runs import format_time

from .run import rows_of

BYTES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3))
PARTS = {  # of a stall stack: what they are called on the page
    "issued": "issued",
    "scoreboard": "fixed-latency result",
    "pipe": "issue slot or pipe",
    "memory": "memory",
    "barrier": "TB barrier",
    "dependence": "other TBs",
    "launch": "launch",
    "no_tb": "no TB left",
}


PART_COLOURS = ("#009E73", "#56B4E9", "#332288", "#0072B2", "#CC79A7", "#D55E00", "#E69F00", "#BBBBBB")


def files_of_page(recordings: Sequence[tuple[str, Results]]) -> list[dict[str, Any]]:
    """Return what the page says of each file: label, provenance, and its parameters by path."""
    made = []
    for label, results in recordings:
        known = results.configuration
        parameters = known.get("parameters")
        parameters = parameters if isinstance(parameters, Mapping) else {}
        made.append(
            {
                "label": label or results.path.name,
                "facts": _facts(results),
                "parameters": {str(key): _value(value) for key, value in sorted(parameters.items())},
            }
        )
    return made


def summary(files: Sequence[Mapping[str, Any]], results: Sequence[Results]) -> dict[str, Any]:
    """Return title and rows of the table of runs; each row has its cells as text and shares for bars."""
    rows: list[dict[str, Any]] = []
    for number, (file, each) in enumerate(zip(files, results, strict=True)):
        bandwidth = file["parameters"].get("gpu.dram.bandwidth")
        for row in each.array("runs"):
            shown = _row(row, float(bandwidth) if isinstance(bandwidth, int | float) else math.nan)
            stack = rows_of(each, "stalls", int(row["run"]))
            stack = stack[stack["level"] == b"run"] if len(stack) else stack
            shown["stalls"] = [float(stack[name][0]) for name in SHARES] if len(stack) else []
            shown["file"] = number
            rows.append(shown)
    longest = max((row["time"] for row in rows if row["status"] == "ok"), default=1.0)
    for row in rows:
        row["width"] = 100 * row["time"] / longest if row["status"] == "ok" and longest > 0 else 0.0
    jobs = _job_names(rows)
    gpus = dict.fromkeys(row["gpu"] for row in rows)
    return {
        "title": f"{'; '.join(jobs) if 0 < len(jobs) < 4 else f'{len(jobs)} workloads'}"
        f" on {', '.join(gpus) or 'no GPU'}",
        "rows": rows,
        "parts": list(PARTS.values()),
        "colours": PART_COLOURS,
        "several": len(files) > 1,
        "many": len(jobs) > 1,
        "has_energy": any(row["energy"] for row in rows),
        "has_stalls": any(row["stalls"] for row in rows),
        "differences": _differences(files),
    }


def _row(row: np.void, bandwidth: float) -> dict[str, Any]:
    """Return a row of ``runs`` as texts. ``bandwidth``: of DRAM in GB/s."""
    texts = {
        name: row[name].decode("utf-8", "replace")
        for name in ("workload", "arguments", "scheme", "gpu", "status", "reason", "submit", "coherence")
    }
    time = float(row["time_us"])
    dram = float(row["dram_bytes"])
    used = dram / (time * 1e3 * bandwidth) if time > 0 and bandwidth > 0 else math.nan
    return {
        **texts,
        "run": int(row["run"]),
        "time": time,
        "time_text": _time(time),
        "speedup": _number(row["speedup"], 3, "x"),
        "gap_won": _share(row["gap_won"]),
        "sm_idle": _share(row["sm_idle"]),
        "alu": _share(row["alu_utilization"]),
        "dram": _share(used),
        "dram_bytes": format_bytes(dram),
        "l2_bytes": format_bytes(float(row["l2_bytes"])),
        "energy": _number(float(row["energy_j"]) * 1e3, 2, " mJ") if np.isfinite(row["energy_j"]) else "",
        "bound": _time(float(row["bound_us"])),
        "estimate": _time(float(row["estimate_us"])),
        "tbs": f"{int(row['tbs']):,}",
    }


def _time(us: float) -> str:
    return format_time(us).replace(" us", " µs")


def _job_names(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Set the name of each row's workload as the page shows it, ``job``; return all names.

    Arguments stand with a name only where it is that of several workloads.
    """
    known: dict[str, dict[str, None]] = {}
    for row in rows:
        known.setdefault(row["workload"], {})[row["arguments"]] = None
    for row in rows:
        several = len(known[row["workload"]]) > 1
        row["job"] = f"{row['workload']} {row['arguments']}".strip() if several else row["workload"]
    return list(dict.fromkeys(row["job"] for row in rows))


def run_labels(
    rows: Sequence[Mapping[str, Any]], files: Sequence[Mapping[str, Any]], many: bool
) -> list[str]:
    """Return the name of each run: its scheme, after file and workload where there are several."""
    made = []
    for row in rows:
        parts = [files[row["file"]]["label"]] if len(files) > 1 else []
        parts += [row["job"]] if many and row["job"] not in parts else []
        made.append(f"{', '.join(parts)}: {row['scheme']}" if parts else row["scheme"])
    return made


def format_bytes(count: float) -> str:
    """Return a number of bytes with a unit that keeps it readable."""
    for unit, scale in BYTES:
        if count >= scale:
            value = count / scale
            return f"{value:,.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    return f"{count:.0f} B"


def _number(value: Any, digits: int, unit: str) -> str:
    return f"{float(value):,.{digits}f}{unit}" if np.isfinite(value) else "–"


def _share(value: Any) -> str:
    return f"{100 * float(value):.1f} %" if np.isfinite(value) else "–"


def _value(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int | float | str | bool) else str(value)


def _facts(results: Results) -> list[tuple[str, str]]:
    """Return where a file comes from: script, version, workload, hash, host."""
    known = results.configuration
    workload = known.get("workload")
    shown = dict(workload) if isinstance(workload, Mapping) else {}
    machine = shown.pop("made_for", None)
    facts = [
        ("file", results.path.name),
        ("made by", str(results.attributes.get("script", known.get("command", "")))),
        ("version", str(known.get("version", ""))),
        ("workload", str(shown["workload"]) if len(shown) == 1 and "workload" in shown else _pairs(shown)),
        ("kernels chosen for", _pairs(machine) if isinstance(machine, Mapping) else ""),
        ("hash of the tables", str(results.attributes.get("hash", ""))),
        ("interrupted", "yes: schemes are missing" if results.attributes.get(INTERRUPTED) else ""),
        *_host(results),
    ]
    return [(name, text) for name, text in facts if text]


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())


def _host(results: Results) -> list[tuple[str, str]]:
    """Return where and with what the file was made."""
    if "host" not in results or not len(results.array("host")):
        return []
    row = results.array("host")[0]
    names = row.dtype.names or ()
    texts = [
        (name, row[name].decode("utf-8", "replace")) for name in ("machine", "versions") if name in names
    ]
    if "simulate_seconds" in names:
        total = float(results.array("host")["simulate_seconds"].sum())
        threads = int(row["threads"])
        texts.append(("simulated in", f"{total:.3g} s on {threads} thread{'' if threads == 1 else 's'}"))
    return texts


def _differences(files: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return parameters that are not the same in all files, with the value of each file."""
    if len(files) < 2:
        return []
    every: dict[str, None] = {}
    for file in files:
        every |= dict.fromkeys(file["parameters"])
    made = []
    for path in sorted(every):
        values = [str(file["parameters"].get(path, "–")) for file in files]
        if len(set(values)) > 1:
            made.append((path, values))
    return made
