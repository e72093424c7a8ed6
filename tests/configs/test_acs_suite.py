"""The script that runs ACS's kernel graphs, and its tables with means of groups."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pysim import stats
from pysim.results.schema import DTYPES
from pysim.stats.studies.groups import format_groups, group_rows
from tests.support.calls import caller, refused

run = caller("acs_suite", "--subset", "quick", "--threads", "1", "--quiet")


def test_three_machines_and_conditions(tmp_path):
    pytest.importorskip("matplotlib")
    args = "--graphs", "ant,squeezenet", "--schemes", "stream,graph:built,acs_hw", "--out", "a.h5"
    done = run(tmp_path, *args, "--picture", "yes")
    assert done.returncode == 0, done.stderr
    runs = stats.load(tmp_path / "a.h5")["runs"]
    assert list(dict.fromkeys(runs["gpu"])) == ["rtx3070, 3.6 us a launch", "rtx3070", "h200"]
    assert (runs["status"] == "ok").all()
    first = runs[runs["gpu"] == "rtx3070, 3.6 us a launch"].set_index(["workload", "scheme"])["speedup"]
    # longer launches: more to win; and a launch that begins when its kernel is ready wins less
    assert first["ant", "acs_hw"] > first["ant", "acs_hw, launched when ready"] > 1
    assert ("ant", "acs_hw, 4 x environments") in first.index
    assert ("squeezenet", "acs_hw, 4 x environments") not in first.index
    assert first["squeezenet", "graph:built"] < first["squeezenet", "acs_hw"]
    assert "mean of 1: rigid bodies" in done.stdout
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_json_alone_on_stdout(tmp_path):
    args = "--graphs", "randwire", "--gpu", "h200", "--schemes", "stream,pool", "--json", "--out", "a.h5"
    done = run(tmp_path, *args)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["runs"]
    assert [(row["gpu"], row["scheme"]) for row in rows] == [("h200", "stream"), ("h200", "pool")]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--graphs", "ants"), "--graphs: no graph 'ants'"),
        (("--tables", "none"), "no --tables"),
        (("--subset", "half"), "unknown value 'half'"),
    ],
)
def test_bad_options_are_one_line(tmp_path, args, text):
    refused(run(tmp_path, *args), text)


def test_means_are_geometric_and_of_groups():
    values = (("a", "stream", 1.0), ("a", "pool", 2.0), ("b", "stream", 1.0), ("b", "pool", 8.0),
              ("c", "stream", 1.0), ("c", "pool", 3.0))  # fmt: skip
    runs = np.zeros(len(values), DTYPES["runs"])
    for row, (workload, scheme, speedup) in zip(runs, values, strict=True):
        row["workload"], row["scheme"], row["status"] = workload.encode(), scheme.encode(), b"ok"
        row["speedup"], row["time_us"] = speedup, 12 / speedup
    counts = dict.fromkeys("abc", (1, 2))
    head, body = group_rows(runs, counts, {"a": "x", "b": "x", "c": "y"})
    assert head == ["graph", "kernels", "TBs", "stream us", "pool"]
    found = {row[0]: row[-1] for row in body}
    assert found["mean of 2: x"] == "4.00"
    assert found["mean of 1: y"] == "3.00"
    assert found["mean of 3: all"] == "3.63"
    assert format_groups(head, body).count("\n") == 7
