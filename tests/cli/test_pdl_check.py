"""``pysim check --pdl``: advice, placements of a user's, and what is refused."""

import json

import pytest

from tests.support.calls import pysim, refused

SMALL = "gru:hidden=32,batch=4,timesteps=1,layers=1"
LATE = ("--at", "after load gates_hh0")


def test_advice():
    done = pysim("check", "--pdl", SMALL, "--pairs", 1, "--prove")
    assert done.returncode == 0, done.stderr
    for text in (
        "gru:hidden=32,batch=4 on h200: 3 kernels, 2 pairs",
        "0 gemm_ih -> 1 gemm_hh",
        "RAW: before its wait kernel 2 (gru_cell)",
        "all safe pairs together:",
        "latest waits, triggers at the start: the oracle finds nothing",
    ):
        assert text in done.stdout, done.stdout
    assert "WRONG" not in done.stdout


def test_advice_as_json():
    made = json.loads(pysim("check", "--pdl", SMALL, "--json").stdout)
    pair = made["pairs"][1]
    assert (pair["latest_wait"], pair["later_is_unsafe"]["kind"]) == ("before load gates_hh0", "RAW")
    assert pair["later_is_unsafe"]["tbs"][0] == 0
    assert {gain["wait"] for gain in pair["gains_us"]} > {"start", "before load gates_hh0"}
    assert made["together_us"]["waits at the start"] < made["plain_us"]


def test_an_unsafe_placement_ends_with_1():
    done = pysim("check", "--pdl", SMALL, *LATE, "--prove")
    assert done.returncode == 1
    assert "unsafe: RAW" in done.stdout
    assert "1 -> 2: the oracle: RAW dependence broken: TB 0 of kernel 2 reads sector" in done.stdout
    made = json.loads(pysim("check", "--pdl", SMALL, *LATE, "--pairs", 0, "--json").stdout)
    assert (made["safe"], "us" in made) == (False, False)
    assert [pair["verdict"] for pair in made["pairs"]] == ["safe", "unsafe"]


def test_a_plan(tmp_path):
    path = tmp_path / "plan.txt"
    path.write_text("*; start; start\ngru_cell; before load gates_hh0; none\n", encoding="utf-8")
    done = pysim("check", "--pdl", SMALL, "--plan", path, "--prove")
    assert done.returncode == 0, done.stdout
    assert "the oracle finds nothing" in done.stdout


@pytest.mark.parametrize(
    ("words", "said", "status"),
    [
        (("--pdl", "copy"), "job copy: one kernel: there is no pair", 2),
        (("--pdl", SMALL, "--gpu", "titan_v"), "needs compute capability 9.0, titan_v has 7.0", 2),
        ((SMALL, "--at", "start"), "--at: only with --pdl", 2),
        (("--pdl", "tests/data/traces"), "tests/data/traces: a trace, profile or result", 2),
    ],
)
def test_refused(words, said, status):
    refused(pysim("check", *words), said, status)
