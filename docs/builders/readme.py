"""Writes README.md and docs/gru.md: a GRU, its windows and its limit; and how true the simulator is.

The table of errors repeats what other pages say, so it is made from them, after them.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pysim import stats

from .writing import DOCS, README, block, code, replace, shown, table, wrapped

WINDOWS = (4, 16, 64, 180)
LAYERS = ("persistent", "persistent_gru", "persistent_h200")


def windows(folder: Path, default: Any, *more: str) -> str:
    """Simulate the table scheme under each window; the other rows do not depend on it."""
    rows = [row for row in default if row["scheme"] != b"tb_static"]
    for window in WINDOWS:
        path = folder / f"{window}.h5"
        narrow = ("--schemes", "stream,tb_static", "--set", f"scheme.window={window}")
        shown("titanv_gru", path, *narrow, "--tables", "none", "--force", *more)
        row = stats.load(path).array("runs")[1]
        row["scheme"] = f"tb_static, window {window}".encode()
        rows.append(row)
    order = {b"host": 0, b"stream": 1, b"graph": 2, b"tb_ideal": 9}
    rows.sort(key=lambda row: order.get(row["scheme"], 5))
    return code(stats.format_runs(np.array(rows, default.dtype), (), 20))


def reason(rows: dict[str, Any], bandwidth: float) -> str:
    """Say in numbers what the default run is limited by."""
    base, best = rows["stream"], min(rows.values(), key=lambda row: row["time_us"])
    least = base["dram_bytes"] / bandwidth / 1e3
    return (
        f"In stream order the run moves {base['dram_bytes'] / 1e9:.2f} GB from and to DRAM, which take"
        f" {least / 1e3:.2f} ms at the peak of {bandwidth:g} GB/s: {least / base['time_us']:.0%} of its"
        " time. Whatever the order, as long as these bytes move no scheme can reach more than"
        f" {base['time_us'] / least:.2f}x. The best row, `{best['scheme'].decode()}`, reaches"
        f" {best['speedup']:.3f}x: the share of SM time without a TB falls from {base['sm_idle']:.1%} to"
        f" {best['sm_idle']:.1%}, and DRAM traffic changes by"
        f" {best['dram_bytes'] / base['dram_bytes'] - 1:+.1%}."
    )


def _rows(page: str, name: str) -> list[list[str]]:
    """Return the cells of a table between marks, line by line."""
    lines = block(DOCS / page, name).splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _line(name: str, first: str) -> list[str]:
    """Return the cells of one line of a table of docs/validation.md, without the first."""
    for cells in _rows("validation.md", name):
        if cells[0] == first:
            return cells[1:]
    raise SystemExit(f"docs/validation.md: no line {first!r} in {name}")


def _of(text: str) -> tuple[int, int]:
    """Return both numbers of ``564 of 620 (91%)``."""
    right, cases = re.findall(r"\d+", text)[:2]
    return int(right), int(cases)


def truth() -> str:
    """Return the table of README.md: errors beside those of baseline models, as docs/ has them."""
    kernels, chains = _line("times", "`h200-kernels`"), _line("times", "`h200-deps`")
    gemm = [_line("times", f"`deepbench-gemm`, {dtype}") for dtype in ("fp32", "fp16")]
    _, _, sign, _, _, guess, *_ = _line("orders", "`h200-deps`: speedup")
    right, cases = _of(sign)
    guessed, _ = _of(guess)
    pairs = _line("orders", "`cusync-mlp`: saving")
    runs = _rows("peer.md", "rows")[2:]
    peer = re.findall(r"(?:error|scores) ([\d.]+%)", " ".join(block(DOCS / "peer.md", "summary").split()))
    speeds = [cells[-1].removesuffix("x") for cells in runs if cells[-1] != "-"]
    speeds.sort(key=lambda text: int(text.replace(",", "")))
    time = "time, mean absolute error"
    rows = [
        ["H200, single kernels", time, kernels[0], kernels[1], kernels[5], "a roofline"],
        ["H200, dependent kernels under 15 modes", time, chains[0], chains[1], chains[5], "stream time"],
        [
            "the same, where the speedup is off 1 by more than 3 %",
            "wrong sign of the speedup",
            f"{cases:,}",
            f"{1 - right / cases:.0%}",
            f"{1 - guessed / cases:.0%}",
            "one speedup per mode",
        ],
        [
            "V100, DeepBench GEMMs, fp32; fp16",
            time,
            *("; ".join(cells[at] for cells in gemm) for at in (0, 1, 5)),
            "a roofline per dtype and layout",
        ],
        [
            "A100, cuSync's pairs of GEMMs",
            "saving over stream order, off by",
            *(pairs[at] for at in (0, 1, 4)),
            "one saving for all",
        ],
        [
            f"Accel-Sim on the same traces, at {speeds[0]} to {speeds[-1]} times its speed",
            "cycles, mean absolute error",
            str(len(runs)),
            peer[0],
            peer[-1],
            "three fitted constants",
        ],
    ]
    heads = ("compared with", "what", "rows", "pysim", "baseline", "baseline model")
    return table(heads, (False, False, True, True, True, False), rows)


def write_truth() -> None:
    """Write the table of errors of README.md from the pages of docs/."""
    replace(README, {"truth": truth()})


def _span(texts: Iterable[str]) -> str:
    """Return the least and the largest number of some cells, with the unit of the first."""
    cells = [text for text in texts if text not in {"", "-"}]
    numbers = sorted(float(cell.split()[0].rstrip("x%")) for cell in cells)
    unit = re.sub(r"^[-\d.,]+", "", cells[0])
    return f"{numbers[0]:.3g} to {numbers[-1]:.3g}{unit}"


def found() -> str:
    """Return what the studies of docs/ found, for README.md."""
    (heads, _, *networks), (_, _, *small) = (
        _rows("hardware-cost.md", "networks"),
        _rows("hardware-cost.md", "smallest"),
    )
    ideal, graph, pool, by_tb = (
        _span(row[heads.index(name)] for row in networks)
        for name in ("speedup", "graph", "pool", "tb_static")
    )
    finer = [row[0] for row in small if row[-1] != "pool"]
    options = {row[0]: row[1:] for row in _rows("hardware-cost.md", "options")}
    size = options["pool"][0].replace("-", " to ")
    early = _span(options["tb_static:prologue"][1:])
    layers = [row for page in LAYERS for row in _rows("schemes.md", page)]
    over = layers[0].index("over stream")
    persistent = _span(row[over] for row in layers if row[0].startswith("persistent"))
    text = (
        f"In {len(networks)} small networks on a simulated H200, ideal order (`tb_ideal`) is {ideal} as"
        f" fast as stream order. Of the time between the two, CUDA graphs save {graph} on today's GPUs."
        f" Hardware that tracks edges between whole kernels (`pool`, {size} KB) saves {pool}, hardware"
        f" that tracks edges between TBs (`tb_static`) {by_tb}: `pool` is enough in all but"
        f" {', '.join(finer)}. TBs that start early and wait before their first dependent load"
        f" (`prologue`) save {early}. A persistent kernel with a recurrent layer's weights in registers"
        f" is {persistent} as fast as two kernels a step. Where a layer's weights exceed L2, DRAM is the"
        " limit and no order wins much: the large size below."
    )
    return wrapped(text)


def write_found() -> None:
    """Write the findings of README.md from the pages of docs/."""
    replace(README, {"found": found()})


def both_sizes(folder: Path) -> str:
    """Simulate a GRU whose time gaps decide, and one that DRAM decides; write their picture."""
    path = folder / "gru_sizes.h5"
    text = shown("gru_sizes", path, "--picture", "yes")
    shutil.copyfile(path.with_suffix(".png"), DOCS / "gru_sizes.png")
    return text


def write_output() -> None:
    """Write the table and the picture of README.md."""
    with tempfile.TemporaryDirectory() as name:
        replace(README, {"output": code(both_sizes(Path(name)))})


def write() -> None:
    """Simulate, then write README.md, its picture and docs/gru.md."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = both_sizes(folder)
        path = folder / "titanv_gru.h5"
        shown("titanv_gru", path)
        results = stats.load(path)
        runs = results.array("runs")
        bandwidth = float(results.configuration["parameters"]["gpu.dram.bandwidth"])
        every = windows(folder, runs)
        renamed = ("--buffers", "20")
        path = folder / "renamed.h5"
        shown("titanv_gru", path, *renamed, "--tables", "none")
        own = windows(folder, stats.load(path).array("runs"), *renamed)
    replace(README, {"output": code(text)})
    write_truth()
    write_found()
    limit = reason({row["scheme"].decode(): row for row in runs}, bandwidth)
    replace(DOCS / "gru.md", {"windows": every, "renamed": own, "reason": limit})
