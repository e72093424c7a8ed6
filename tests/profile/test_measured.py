"""From a profile of an eager run, the time of the same network as a CUDA graph, as measured.

``eager_profiles.csv.gz``: what ran on the GPU in one profiled eager iteration of 18 networks, names as
numbers, with launches, records and waits where ``card`` is h100; rows of kind ``graph``: time of an iteration
as a replayed graph, between events, without the profiler. Measured by the authors of pysim in November 2026
(PyTorch 2.11, cuDNN 9.19; H200 and H100); licence: as pysim.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from pathlib import Path
from statistics import mean

import pytest

from pysim.profile import from_profile
from tests.profile.traces import H200, call, kernel, written

ROWS: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
with gzip.open(Path(__file__).with_name("eager_profiles.csv.gz"), "rt", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        ROWS[row["card"], row["workload"]].append(row)
CALLS = {"record": "cudaEventRecord", "wait": "cudaStreamWaitEvent", "sync": "cudaDeviceSynchronize"}
CATEGORIES = {"kernel": "kernel", "memset": "gpu_memset", "memcpy": "gpu_memcpy"}


def kineto(rows):
    """Return rows as events of a Kineto file."""
    made = []
    for i, row in enumerate(rows):
        if row["kind"] in CALLS:
            made.append(call(CALLS[row["kind"]], float(row["start_us"])))
            continue
        event = kernel(row["name"], float(row["start_us"]), float(row["dur_us"]), int(row["stream"]), i + 1)
        event["cat"] = CATEGORIES[row["kind"]]
        args = event["args"]
        args["grid"], args["block"] = ([int(n) for n in row[k].split("x") if n] for k in ("grid", "block"))
        args["registers per thread"], args["shared memory"] = (
            int(row["registers"] or 0),
            int(row["smem"] or 0),
        )
        if row["bytes"]:
            args["bytes"] = int(row["bytes"])
        made += [call("cudaLaunchKernel", float(row["launch_us"]), i + 1), event]
    return made


def predicted(folder, card, workload):
    """Return (streams, outcome under ``graph``, measured us)."""
    first, *rows = ROWS[card, workload]
    assert first["kind"] == "graph"
    if card == "h100":
        path = written(folder, kineto(rows), {**H200, "name": "NVIDIA H100"})
    else:
        path = folder / "k.csv"
        with path.open("w", encoding="utf-8", newline="") as out:
            table = csv.DictWriter(out, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
    found = from_profile(path, gpu=card).what_if()
    return found.recorded["streams"], found["graph"], float(first["dur_us"])


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profiles")
    return {workload: predicted(folder, card, workload) for card, workload in ROWS}


def test_networks_of_one_stream(outcomes):
    # a second stream of a single kernel does not make a network of several streams
    errors = [abs(row.time_us / us - 1) for streams, row, us in outcomes.values() if streams <= 2]
    assert len(errors) == 12
    assert mean(errors) <= 0.015


def test_networks_of_several_streams(outcomes):
    several = {name: found for name, found in outcomes.items() if found[0] > 2}
    assert len(several) == 6
    for name, (_, row, us) in several.items():
        assert row.time_us == pytest.approx(us, rel=0.12), name


def test_measured_times_are_in_the_range(outcomes):
    for name, (_, row, us) in outcomes.items():
        assert row.low_us <= us <= row.high_us, name
