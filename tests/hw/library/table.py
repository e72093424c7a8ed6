"""Measures the rows of a family one by one and writes them as it goes."""

import csv
import dataclasses
import json
import random
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch
from kernels import KERNEL_COLUMNS, profiled
from names import NAME_COLUMNS, parse_name
from timing import DEV, GPU, TIME_COLUMNS, Clock, Timer, sync

BATCH = 16  # rows that one run of the profiler looks at
HELD_BYTES = 8 << 30  # of operands that rows of a batch keep
MOST_FLOP_ON_HOST = 5e7
SEED = 1
TOLERANCE = {"fp32": 1e-4, "tf32": 5e-3, "bf16": 2e-2, "fp16": 5e-3}
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
RESULT_COLUMNS = ["tflops", "min_bytes", "rel_err", "check"]
FATAL = 3  # exit status after an error that leaves the GPU's context unusable


class NoRowError(Exception):
    """The row does not exist, such as a candidate that a library does not offer."""


@dataclasses.dataclass
class Case:
    """One row's call.

    `error` returns the relative error of the call's result, which `columns` and a check go with. `held` is
    the number of bytes that the case alone keeps; pools do not count.
    """

    call: Callable[[], Any]
    error: Callable[[], Any]
    min_bytes: int
    tolerance: float
    columns: dict[str, Any] = dataclasses.field(default_factory=dict)
    held: int = 0


def relative(x, reference):
    """Return the norm of the difference over the norm of the reference, in double precision."""
    x, reference = x.double(), reference.double()
    return (x - reference).norm() / reference.norm().clamp_min(1e-300)


class Pool:
    """Buffers of random numbers that rows share; a slot grows to the largest row so far."""

    def __init__(self, make):
        self.make = make
        self.buffers = {}

    def get(self, slot, dtype, *shape):
        count = 1
        for size in shape:
            count *= size
        buffer = self.buffers.get((slot, dtype))
        if buffer is None or buffer.numel() < count:
            self.buffers.pop((slot, dtype), None)
            buffer = self.buffers[slot, dtype] = self.make(count, dtype=dtype)
        return buffer[:count].view(*shape)


def sample(n):
    """Return at most 16 indices below `n`, the first and the last among them."""
    return torch.linspace(0, n - 1, min(n, 16), device=DEV).long()


def with_precision(dtype, call):
    """Return a call that allows TF32 only for tf32 rows, whenever it runs."""
    allowed = dtype == "tf32"

    def run():
        torch.backends.cuda.matmul.allow_tf32 = allowed
        return call()

    return run


class Table:
    """A CSV file whose kernel columns are filled when a batch of rows has been profiled."""

    def __init__(self, path, columns, append, clock):
        columns = [*columns, *TIME_COLUMNS, *RESULT_COLUMNS, *NAME_COLUMNS, *KERNEL_COLUMNS, "error"]
        append = append and path.exists()
        # rows that wait for the profiler, for sweep.py after a crash
        self.pending = path.with_suffix(".pending").open("w", encoding="utf-8")
        self.file = path.open("a" if append else "w", newline="", encoding="utf-8")
        self.writer = csv.DictWriter(self.file, columns, lineterminator="\n", extrasaction="ignore")
        if not append:
            self.writer.writeheader()
            self.file.flush()
        self.clock = clock
        self.rows, self.items, self.held, self.written = [], [], 0, 0

    def add(self, row, case, us):
        self.items.append((str(len(self.rows)), case.call, 3 if us < 1000 else 1))
        self.rows.append(row)
        self.pending.write(json.dumps(row) + "\n")
        self.pending.flush()
        self.held += case.held
        if len(self.rows) >= BATCH or self.held >= HELD_BYTES:
            self.flush()

    def write(self, row):
        self.writer.writerow(row)
        self.file.flush()
        self.written += 1

    def flush(self, profiler=True):
        rows, items = self.rows, self.items
        self.rows, self.items, self.held = [], [], 0
        found = [{}] * len(rows)
        if rows and profiler:
            try:
                found = profiled(items, self.clock)
            except Exception as exc:
                traceback.print_exc()
                found = [{"error": f"profiler: {exc!r}"[:200]}] * len(rows)
        for row, kernel in zip(rows, found, strict=True):
            self.write({**row, **parse_name(kernel.get("kernel", "")), **kernel})
        self.pending.seek(0)
        self.pending.truncate()


def _measure(family, row, timer, table):
    case = family.case(row)
    case.call = with_precision(row.get("dtype"), case.call)
    case.call()
    sync()
    row.update(case.columns)
    error = float(case.error())
    # a NaN is no agreement
    row["rel_err"], row["check"] = f"{error:.2e}", "ok" if error < case.tolerance else "BAD"
    row.update(timer.columns(case.call))
    us = float(row["time_us_median"])
    row["tflops"] = f"{family.flop(row) * 1e-6 / us:.3f}"
    row["min_bytes"] = case.min_bytes
    table.add(row, case, us)


def _unusable():
    try:
        sync()
        if GPU:
            torch.zeros(1, device=DEV).item()
    except Exception:
        return True
    return False


def shuffled(units):
    """Return the units in a fixed random order, so that any first part is a fair sample."""
    units = list(units)
    random.Random(SEED).shuffle(units)
    return units


def run(family, out, deadline, start=0, crashed=False):
    """Measure a family's units from the one at `start` until `deadline` (time.time()); return an exit status.

    OUT/FAMILY.at holds the position of the unit under way, for a start after it. `crashed`: the unit before
    `start` ended the process, so its rows say so.
    """
    clock = Clock()
    timer = Timer(clock)
    table = Table(out / f"{family.NAME}.csv", family.COLUMNS, start > 0, clock)
    at = out / f"{family.NAME}.at"
    units = shuffled(family.units())
    if crashed:
        for row in units[start - 1]:
            table.write({**row, "check": "crash"})
    done = failed = 0
    for position, unit in enumerate(units):
        if position < start:
            continue
        if time.time() >= deadline:
            break
        at.write_text(f"{position}\n", encoding="utf-8")
        for row in unit:
            if not GPU and family.flop(row) > MOST_FLOP_ON_HOST:
                continue
            try:
                _measure(family, row, timer, table)
            except NoRowError:
                pass
            except Exception as exc:
                failed += 1
                table.write({**row, "check": type(exc).__name__, "error": " ".join(repr(exc).split())[:300]})
                if failed <= 5 or type(exc).__name__ == "AcceleratorError":
                    print(family.NAME, row, repr(exc)[:300], flush=True)
                if _unusable():
                    table.flush(profiler=False)
                    return FATAL
        done += 1
    table.flush()
    print(
        f"{family.NAME}: {start + done} of {len(units)} units, {table.written} rows, {failed} failed,"
        f" {timer.failed} captures failed",
        flush=True,
    )
    return 0
