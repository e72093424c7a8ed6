"""The guard against lost speed, without valgrind: comparisons of made-up counts, and a made-up profile."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
CASE = BENCH / "case.py"

# two functions, one with code inlined from a header and with a call; a recursive one; a piece split off
CALLGRIND = """\
# callgrind format
version: 1
positions: line
events: Ir
summary: 1175

ob=(1) core.so
fl=(1) core_c/sm.c
fn=(1) gs_sms_run
10 100
+2 50
fi=(2) core_c/base.h
* 25
fe=(1)
cfi=(3) core_c/lsu.c
cfn=(2) gs_lsu_access
calls=7 90
-1 900
15 5

fl=(3)
fn=(2)
90 600
fi=(2)
91 300

fn=(3) walk'2
91 20
fl=(3)
fn=(4) walk
92 30
fn=(5) walk.part.0
93 40
cfn=(2)
calls=1 90
93 900
fn=(6) gs_run
94 5
"""


@pytest.fixture(scope="module")
def bench():
    """The modules of tests/bench, which are scripts and import each other by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        return {name: importlib.import_module(name) for name in ("callgrind", "guard")}


@pytest.fixture
def guard(bench):
    return bench["guard"]


@pytest.fixture
def sample(guard):
    counts = {"ops": 10, "warp_instructions": 100, "requests": 0}
    own = Counter({("gs_sms_run", "sm.c"): 900, ("gs_sms_run", "l2.h"): 95, ("gs_run", "run.c"): 5})
    return guard.Sample(1000, "cafe", "gcc 12", "x86_64", counts, own)


@pytest.fixture
def stored(sample):
    return {"a": sample.stored()}


@pytest.mark.parametrize(
    ("instructions", "failed", "words"),
    [
        (1000, False, "+0.00 %"),
        (1030, False, "+3.00 %"),
        (1031, True, "limit"),
        (970, False, "-3.00 %"),
        (969, False, "renew the stored count"),
    ],
)
def test_limits(guard, sample, stored, instructions, failed, words):
    (verdict,) = guard.judge({"a": sample._replace(instructions=instructions)}, stored)
    assert verdict.failed is failed
    assert words in verdict.line
    assert verdict.line.startswith("a: ")
    assert "\n" not in verdict.line
    assert ("renew" in verdict.line) is (instructions < 970)


def test_an_input_without_a_stored_count_fails_and_a_count_without_an_input_too(guard, sample, stored):
    first, second = guard.judge({"b": sample}, stored)
    assert first.failed
    assert "b: no stored count" in first.line
    assert second.failed
    assert "a: stored, but no input" in second.line
    # a part of the inputs says nothing about the others
    assert len(guard.judge({"b": sample}, stored, whole=False)) == 1


@pytest.mark.parametrize("other", [{"compiler": "gcc 13"}, {"machine": "aarch64"}])
def test_another_compiler_or_machine_only_warns_unless_strict(guard, sample, stored, other):
    now = sample._replace(instructions=2000, **other)
    (verdict,) = guard.judge({"a": now}, stored)
    assert not verdict.failed
    assert verdict.line.startswith("warning: ")
    assert "gcc 12 on x86_64" in verdict.line
    (verdict,) = guard.judge({"a": now}, stored, strict=True)
    assert verdict.failed
    assert "limit" in verdict.line


def test_a_changed_result_fails_whatever_the_count_and_compiler(guard, sample, stored):
    for other in ({}, {"instructions": 500}, {"compiler": "clang 14"}):
        (verdict,) = guard.judge({"a": sample._replace(result="beef", **other)}, stored)
        assert verdict.failed
        assert "result changed" in verdict.line


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("core mode release, compiler 12.2.0, flags -O2", "gcc 12"),
        ("core mode release, compiler 13.3.0 20240101 (Red Hat, 1), flags -O2", "gcc 13"),
        ("core mode release, compiler Debian Clang 14.0.6, flags -O2", "clang 14"),
    ],
)
def test_compiler(guard, text, name):
    assert guard.compiler_of(text) == name


@pytest.mark.parametrize("text", ["core mode debug, compiler 12.2.0, flags -O0", "nothing"])
def test_a_core_that_cannot_be_compared_is_refused(bench, guard, text):
    with pytest.raises(bench["callgrind"].MeasureError):
        guard.compiler_of(text)


def test_update_then_compare(guard, sample, tmp_path, monkeypatch, capsys):
    path = tmp_path / "instructions.json"
    monkeypatch.setattr(guard, "INPUTS", (("a", "empty:"), ("b", "ffma:")))
    monkeypatch.setattr(guard, "measure", lambda _: sample)
    assert guard.main([], path) == 1
    assert "FAIL a: no stored count" in capsys.readouterr().err
    assert guard.main(["--update"], path) == 0
    assert set(json.loads(path.read_text(encoding="utf-8"))) == {"a", "b"}
    assert guard.main([], path) == 0
    assert "1,000" in capsys.readouterr().out
    monkeypatch.setattr(guard, "measure", lambda _: sample._replace(instructions=1040))
    assert guard.main([], path) == 1
    assert capsys.readouterr().err.count("FAIL ") == 2
    # one renewed, the other kept
    assert guard.main(["--update", "--only", "b"], path) == 0
    assert guard.main(["--only", "b"], path) == 0
    assert guard.main(["--only", "a"], path) == 1
    # an input that is gone is dropped
    monkeypatch.setattr(guard, "INPUTS", (("b", "ffma:"),))
    assert guard.main([], path) == 1
    assert guard.main(["--update"], path) == 0
    assert guard.main([], path) == 0


@pytest.mark.parametrize("text", ["", "[1]", '{"a": 1}', '{"a": {"instructions": 0, "result": ""}}'])
def test_a_broken_file_of_counts_is_one_line(guard, sample, tmp_path, monkeypatch, capsys, text):
    path = tmp_path / "instructions.json"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(guard, "measure", lambda _: sample)
    assert guard.main([], path) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "instructions.json" in err


def test_the_stored_counts_are_those_of_the_inputs(guard):
    stored = guard.read_stored(guard.STORED)
    assert set(stored) == {name for name, _ in guard.INPUTS}


def test_profile_is_a_table_that_adds_up(guard, sample):
    lines = guard.profile("a", "empty:", sample).splitlines()
    rows = {cells[1].strip(): cells[2:-1] for cells in (line.split("|") for line in lines[2:])}
    assert [cell.strip() for cell in rows["`gs_sms_run`"]] == ["99.5%", "99.5", "9.9", "-"]
    assert [cell.strip() for cell in rows["· of these, from `l2.h`"]] == ["9.5%", "9.5", "0.9", "-"]
    assert rows["smaller ones"][0].strip() == "0.5%"


def test_parses_own_instructions(bench):
    own = bench["callgrind"].parse(CALLGRIND.splitlines())
    assert own == {
        ("gs_sms_run", "sm.c"): 155,
        ("gs_sms_run", "base.h"): 25,
        ("gs_lsu_access", "lsu.c"): 600,
        ("gs_lsu_access", "base.h"): 300,
        ("walk", "base.h"): 20,
        ("walk", "lsu.c"): 70,
        ("gs_run", "lsu.c"): 5,
    }


@pytest.mark.parametrize(
    ("old", "new"), [("summary: 1175", "summary: 1176"), ("summary: 1175\n", ""), ("fn=(6) gs_run", "fn=(6)")]
)
def test_a_profile_that_does_not_add_up_is_refused(bench, old, new):
    with pytest.raises(bench["callgrind"].MeasureError):
        bench["callgrind"].parse(CALLGRIND.replace(old, new).splitlines())


def test_without_valgrind_a_hint_and_status_2(tmp_path):
    done = subprocess.run(
        [sys.executable, str(BENCH / "guard.py"), "--only", "tiny"],
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "apt install valgrind" in done.stderr


def case(*args: str) -> dict[str, object]:
    command = [sys.executable, str(CASE), *args]
    return dict(json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout))


def test_a_case_tells_results_apart():
    first, again = case("tiny:tbs=500"), case("tiny:tbs=500", "--threads", "2", "--runs", "2")
    assert first["result"] == again["result"]
    assert (first["tbs"], first["ops"]) == (500, 1500)
    assert case("tiny:tbs=500", "--set", "gpu.sms=79")["result"] != first["result"]
    # the same counts at another time
    assert case("tiny:tbs=500", "--set", "gpu.cp.launch=1501")["result"] != first["result"]
