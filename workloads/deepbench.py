"""DeepBench rows that were measured on real cards, what the simulator says, and the simplest model of them.

DeepBench launches a GEMM 400 times back to back in one stream, with beta 1 (C is read), and divides: the
time of a row is the steady period of such launches. It truncates times to whole microseconds, so half of
one is added.
"""

from __future__ import annotations

import csv
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysim import Config, Job, simulate

from .choose import MachineHints, choose_gemm
from .gemm import column_major
from .registry import make, parse
from .sampling import plan

TRUNCATED_US = 0.5  # the mean of what DeepBench cuts off
LONG_FLOPS = 4e9  # of such a GEMM the gap to the one before is less than 1 %, so one launch is enough
QUICK_FLOPS = 1e10
GATES = {"vanilla": 1, "gru": 3, "lstm": 4}


@dataclass(frozen=True, slots=True)
class Row:
    """A measured row; ``workload`` is what :func:`workloads.registry.make` takes."""

    suite: str
    case: str
    group: str
    workload: str
    steps: int
    flops: float
    nbytes: float
    measured_us: float

    @property
    def quick(self) -> bool:
        """Whether the row takes well under a second to simulate."""
        return self.flops < QUICK_FLOPS


def _gemm(row: dict[str, str]) -> Row:
    m, n, k = (int(row[name]) for name in "mnk")
    left, right = row["a_t"], row["b_t"]
    text = f"gemm:m={m},n={n},k={k},a_t={int(left == 'T')},b_t={int(right == 'T')}"
    work, size = 2.0 * m * n * k, 4.0 * (m * k + k * n + m * n)
    case = f"{m}x{n}x{k} {left}{right}"
    return Row("gemm", case, left + right, text, 1, work, size, float(row["time_ms"]) * 1e3 + TRUNCATED_US)


def _rnn(row: dict[str, str]) -> Row:
    hidden, batch, steps = int(row["m"]), int(row["n"]), int(row["timesteps"])
    cell, wide = row["cell"], GATES[row["cell"]] * int(row["m"])
    text = f"{cell}:hidden={hidden},batch={batch},timesteps={steps},layers=1,input=skip"
    # work and bytes of one step, the recurrent product alone
    work, size = 2.0 * wide * hidden * batch, 4.0 * (wide * hidden + hidden * batch + wide * batch)
    case = f"{cell} {hidden} batch {batch} x {steps}"
    return Row("rnn", case, cell, text, steps, work, size, float(row["time_ms"]) * 1e3 + TRUNCATED_US)


def rows(suite: str) -> list[Row]:
    """Return the fp32 rows of a V100: ``gemm``, or ``rnn`` (forward, at most 200 steps)."""
    text = files("workloads").joinpath("measured/deepbench_v100.csv").read_text(encoding="utf-8")
    made = (_gemm(row) if row["suite"] == "gemm" else _rnn(row) for row in csv.DictReader(text.splitlines()))
    return [row for row in made if row.suite == suite]


def roofline(cases: Sequence[Row]) -> tuple[tuple[float, float, float], NDArray[np.float64]]:
    """Fit launch + max(flops / rate, bytes / bandwidth) to all rows; return constants and relative errors.

    The constants (us, TFLOP/s, TB/s) are the best of a grid, so this knows every answer beforehand.
    """
    work = np.array([row.flops for row in cases]) / 1e6
    size = np.array([row.nbytes for row in cases]) / 1e6
    times = np.array([row.measured_us / row.steps for row in cases])
    rates = (2, 4, 6, 8, 10, 11, 12, 13, 14, 15, 20, 30, 40, 50, 60, 70, 80, 100)
    best, constants, errors = np.inf, (0.0, 0.0, 0.0), np.zeros(len(cases))
    for launch in (1, 1.5, 2, 3, 4, 6, 8, 12, 20, 40):
        for rate in rates:
            for bandwidth in (0.3, 0.5, 0.7, 0.9, 1.5, 2, 3, 4, 6, 8):
                error = (launch + np.maximum(work / rate, size / bandwidth)) / times - 1
                if np.abs(error).mean() < best:
                    best, errors = float(np.abs(error).mean()), error
                    constants = (float(launch), float(rate), float(bandwidth))
    return constants, errors


def roofline_by_group(cases: Sequence[Row]) -> NDArray[np.float64]:
    """Return the relative errors of a :func:`roofline` for each group of rows (transposes, cell)."""
    errors = np.zeros(len(cases))
    for group in dict.fromkeys(row.group for row in cases):
        mine = [i for i, row in enumerate(cases) if row.group == group]
        errors[mine] = roofline([cases[i] for i in mine])[1]
    return errors


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the simulator says of a row; ``how`` is full or sampled, ``reason`` why there is no time."""

    time_us: float
    tile: str
    how: str
    reason: str = ""


def _run(config: Config, job: Job, wanted: str) -> tuple[dict[str, NDArray[np.void]], str]:
    """Return the tables of a run and why it failed."""
    result = simulate(config, job, "stream", threads=1, tables=wanted)
    if result.interrupted:
        raise KeyboardInterrupt
    tables = result.tables()
    run = tables["runs"][0]
    return tables, "" if run["status"] == b"ok" else run["reason"].decode()


def _gemm_outcome(row: Row, config: Config) -> Outcome:
    given: dict[str, Any] = parse(row.workload)[1]
    rows, cols, depth, *_ = column_major(given["m"], given["n"], given["k"], given["a_t"], given["b_t"])
    tiling = choose_gemm(rows, cols, depth, beta=1.0)
    launch = config.number("gpu.cp.launch") / 1e3
    sample = plan(rows, cols, depth, tiling, MachineHints(sms=config.integer("gpu.sms")))
    if sample is not None:
        # the shorter GEMM must run the same kernel, not the one that suits its own size
        tables, reason = _run(config, _with_tile(row, sample.rows, tiling.name), "kernels,tbs")
        ends = tables["kernels"]["last_end_us"]
        time = sample.extrapolate(float(ends[0]) - launch, tables["tbs"]["dispatch_ns"] / 1e3)
        return Outcome(time, tiling.name, "sampled", reason)
    repeat = 3 if row.flops < LONG_FLOPS else 1
    tables, reason = _run(config, make(f"{row.workload},repeat={repeat}"), "kernels")
    ends = tables["kernels"]["last_end_us"]
    time = float(ends[-1] - ends[-2]) if repeat > 1 else float(ends[0]) - launch
    return Outcome(time, tiling.name, "full", reason)


def _with_tile(row: Row, size: int, tile: str) -> Job:
    _, given = parse(row.workload)
    given |= {"n": size, "tile": tile}
    parts = ",".join(f"{key}={int(x) if isinstance(x, bool) else x}" for key, x in given.items())
    return make(f"gemm:{parts}")


def outcome(row: Row, config: Config) -> Outcome:
    """Simulate a row as DeepBench measured it, with one thread."""
    if row.suite == "gemm":
        return _gemm_outcome(row, config)
    tables, reason = _run(config, make(row.workload), "none")
    return Outcome(float(tables["runs"]["time_us"][0]), "", "full", reason)


def outcomes(cases: Sequence[Row], config: Config, processes: int = 1) -> Iterator[Outcome]:
    """Simulate rows in processes of one thread each; results come in order."""
    if processes == 1:
        yield from (outcome(row, config) for row in cases)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(partial(outcome, config=config), cases)


def summary(errors: NDArray[np.float64]) -> Mapping[str, float]:
    """Return mean, median, 90th percentile and worst of the absolute errors, and the mean with its sign."""
    size = np.abs(errors)
    return {
        "mean": float(size.mean()),
        "median": float(np.median(size)),
        "p90": float(np.quantile(size, 0.9)),
        "worst": float(size.max()),
        "bias": float(errors.mean()),
    }


def classes(cases: Sequence[Row]) -> dict[str, NDArray[np.bool_]]:
    """Return which rows belong to which class of shape."""
    if cases[0].suite == "rnn":
        groups = np.array([row.group for row in cases])
        return {name: groups == name for name in dict.fromkeys(groups.tolist())}
    given: list[dict[str, Any]] = [parse(row.workload)[1] for row in cases]
    n, k = (np.array([int(each[key]) for each in given]) for key in "nk")
    transposes = np.array([row.group for row in cases])
    long, narrow = k > 100_000, n <= 128
    found = {"K = 500000": long}
    for name in dict.fromkeys(transposes.tolist()):
        here = transposes == name
        found[f"{name}, N <= 128"] = here & narrow & ~long
        found[f"{name}, N > 128"] = here & ~narrow
    return found
