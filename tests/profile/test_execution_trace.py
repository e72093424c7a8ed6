"""Dependences from the tensors of a PyTorch execution trace beside a profile."""

from __future__ import annotations

import json

import pytest

from pysim.errors import InputError
from pysim.profile import from_profile
from tests.profile.traces import BASE, launched, written


def node(name, number, reads, writes, old=False):
    """Return an operator of an execution trace; tensors by their storage."""
    inputs, outputs = ([[s * 10, s, 0, 4, 4, "cuda:0"] for s in ids] for ids in (reads, writes))
    if old:
        return {"id": number + 100, "name": name, "inputs": inputs, "outputs": outputs, "rf_id": number}
    return {
        "id": number + 100, "name": name, "inputs": {"values": inputs}, "outputs": {"values": outputs},
        "attrs": [{"name": "rf_id", "type": "uint64", "value": number}],
    }  # fmt: skip


def operator(number):
    """Return the event of an operator of the host."""
    return {"ph": "X", "cat": "cpu_op", "name": "op", "ts": BASE - 50, "dur": 1.0,
            "args": {"External id": 50 + number, "Record function id": number}}  # fmt: skip


def profile(folder, nodes, count, **more):
    events = [operator(i + 1) for i in range(count)]
    for i in range(count):
        events += launched(10.0 * i, 5.0, corr=i + 1, name=f"k{i}", **{"External id": 51 + i})
    beside = folder / "et.json"
    beside.write_text(json.dumps({"schema": "1.1.1", "nodes": nodes}), encoding="utf-8")
    return from_profile(written(folder, events), execution_trace=beside, **more)


@pytest.mark.parametrize("old", [False, True])
def test_tensors_tell_who_waits(tmp_path, old):
    nodes = [
        node("aten::mm", 1, [1], [2], old),
        node("aten::relu", 2, [2], [3], old),  # reads 2: RAW on the first
        node("aten::mm", 3, [1], [4], old),  # shares only what both read
        node("aten::add_", 4, [2, 4], [2], old),  # in place: RAW on the third, WAR on the second
    ]
    found = profile(tmp_path, nodes, 4)
    assert found.edges.data == [set(), {0}, set(), {0, 1, 2}]
    shorter = found.what_if()
    assert shorter["pool"].time_us < shorter["graph"].time_us - 3
    assert shorter["pool"].decides == "overlap of kernels that share no tensor"


def test_a_kernel_of_no_known_operator_waits_for_all(tmp_path):
    nodes = [node("aten::mm", 1, [1], [2]), node("aten::mm", 3, [3], [4])]
    found = profile(tmp_path, nodes, 3)
    assert found.edges.data == [set(), {0}, {1}]
    assert any(row.what.startswith("kernels of no operator") for row in found.losses.rows())


def test_another_run_or_no_execution_trace(tmp_path):
    with pytest.raises(InputError, match="it is of another run"):
        profile(tmp_path, [node("aten::mm", 99, [1], [2])], 1)
    with pytest.raises(InputError, match="no execution trace of PyTorch"):
        profile(tmp_path, [], 1)
