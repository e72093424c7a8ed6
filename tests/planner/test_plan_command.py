"""``pysim plan``: what it finds, its text and JSON, and its errors."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from pysim.cli.commands import COMMANDS
from pysim.cli.tree import found, tree
from pysim.planner import runs
from tests.support.calls import pysim, refused

TINY = "gru:hidden=64,batch=4,timesteps=1,layers=1"


def plan(*words: str) -> None:
    """Run the command in this process."""
    every = ["plan", TINY, "--quiet", "--jobs", "1", *words]
    args = tree(COMMANDS, every)[0].parse_args(every)
    found(COMMANDS["plan"].target)(args)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what runs the command and returns what it prints."""

    def run(*words: str) -> str:
        plan(*words)
        return capsys.readouterr().out

    return run


def test_json_tells_what_was_tried_and_the_command_reproduces_the_time(printed: Any, tmp_path: Path) -> None:
    words = ("--schemes", "tb_auto,tb_static,fused", "--budget", "25", "--json")
    text = printed(*words)
    made = json.loads(text)
    assert len(made["tried"]) == made["simulated"] + made["refused"] == 25
    assert [row["scheme"] for row in made["tried"][:4]] == ["stream", "tb_auto", "tb_static", "fused"]
    lost = [row for row in made["tried"] if row["status"] == "refused"]
    assert {"fused", "fused:tile"} <= {row["plan"] for row in lost}
    assert all(row["reason"] and row["time_us"] is None for row in lost)
    best, stream = made["best"], made["tried"][0]["time_us"]
    assert best["time_us"] == min(row["time_us"] for row in made["tried"] if row["time_us"])
    assert best["speedup"] == stream / best["time_us"]
    auto = made["distance"]["tb_auto"]
    assert auto["slower"] == auto["time_us"] / best["time_us"] - 1 >= auto["chosen_slower"] >= 0
    program, *again = shlex.split(best["command"])
    assert program == "pysim"
    done = pysim(*again, "--json", "--tables", "none", "--quiet", folder=tmp_path)
    rows = json.loads(done.stdout)["runs"]
    assert [row["time_us"] for row in rows if row["scheme"] == best["scheme"]] == [best["time_us"]]
    assert text == printed(*words)


def test_a_small_space_is_searched_to_its_end(printed: Any) -> None:
    made = json.loads(printed("--schemes", "graph", "--json"))
    assert made["ended"] == "no neighbour of the best plans is better"
    # four ways of coherence and two of the carve-out
    mine = [row for row in made["tried"] if row["scheme"].startswith("graph")]
    assert len(mine) == 8
    assert made["best"]["time_us"] == min(row["time_us"] for row in mine)


def test_text_and_processes(printed: Any) -> None:
    words = ("--schemes", "pool,graph", "--budget", "8", "--rows", "1")
    text = printed(*words)
    assert printed(*words, "--jobs", "2") == text
    assert "8 plans simulated, 0 refused; budget 8, seed 0; the budget is spent" in text
    lines = text.splitlines()
    assert {"stream", "graph", "pool"} <= {line.split(" ")[0] for line in lines}
    assert [line for line in lines if line.startswith("again     pysim run gru:")]


def test_ctrl_c_prints_the_best_so_far(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, done = runs.outcome_of, []

    def few(*given: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(given)
        return real(*given)

    monkeypatch.setattr(runs, "outcome_of", few)
    with pytest.raises(KeyboardInterrupt):
        plan()
    text = capsys.readouterr().out
    assert "3 plans simulated, 0 refused; budget 150, seed 0; interrupted" in text
    assert "\nbest      graph: " in text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((TINY, "--budget", "0"), "--budget: must be a positive integer, not '0'"),
        (
            (TINY, "--schemes", "pool:newest"),
            "--schemes: pool:newest: give no options: the search chooses them",
        ),
        (("gru:hiden=3",), "workload gru has no key 'hiden': did you mean hidden?"),
    ],
)
def test_bad_input(words: tuple[str, ...], text: str) -> None:
    refused(pysim("plan", *words), text)
