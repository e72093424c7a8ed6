"""pysim what-if: its text, its JSON, its errors."""

from __future__ import annotations

import json

from tests.profile.traces import kernel, launched, written
from tests.support.calls import pysim, refused


def what_if(*words):
    return pysim("what-if", *words)


def test_json_and_text(tmp_path):
    path = written(tmp_path, [*launched(0, corr=1), *launched(30, corr=2)])
    done = what_if(path, "--json")
    found = json.loads(done.stdout)
    assert found["recorded"].items() >= {"span_us": 35.0, "busy_us": 10.0, "kernels": 2}.items()
    assert [row["scheme"] for row in found["schemes"]] == [
        "recorded",
        "stream",
        "graph",
        "pdl",
        "pool",
        "tb_static",
    ]
    for row in found["schemes"]:
        assert row["low_us"] <= row["time_us"] <= row["high_us"]
    text = what_if(path).stdout
    assert "wait for the host" in text
    assert "graph" in text


def test_errors_are_one_line(tmp_path):
    unknown = written(tmp_path, [kernel()], {"id": 0, "name": "AMD Radeon"})
    for words, said in (
        ((unknown,), "--gpu NAME"),
        ((tmp_path / "none.json",), "no such file"),
        ((unknown, "--gpu", "h2000"), "h2000"),
        ((unknown, "--gpu", "h200", "--where", "x"), "column=value"),
    ):
        refused(what_if(*words), said)
