"""GPT-3 175B at scale, as a user calls the script: a few tokens of one of many shards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.calls import caller, refused

run = caller("gpt3", "--quiet", "--tables", "none", "--threads", "2", "--json")
SMALL = ("--tokens", "16", "--shards", "96", "--replay", "off")


def told(folder: Path, *words: str) -> dict[str, float]:
    """Return the time of each scheme in us."""
    done = run(folder, *words)
    assert done.returncode == 0, done.stderr
    return {row["scheme"]: row["time_us"] for row in json.loads(done.stdout)["runs"]}


def test_a_layer_of_a_shard_runs_under_both_schemes(tmp_path: Path) -> None:
    done = run(tmp_path, *SMALL, "--layers", "1", "--out", "a.h5")
    assert done.returncode == 0, done.stderr
    stream, finer = json.loads(done.stdout)["runs"]
    assert (stream["scheme"], finer["scheme"]) == ("stream", "tb_static")
    assert stream["arguments"] == "layers=1,tokens=16,shards=96,simulated=3,replay=off"
    assert stream["tbs"] == finer["tbs"] > 1000
    # of embeddings, attention and feed-forward: all-reduces of 28.3 us and more are a part of any order
    assert 3 * 28.3 < finer["time_us"] < stream["time_us"]
    assert finer["speedup"] == pytest.approx(stream["time_us"] / finer["time_us"])


@pytest.mark.deep
def test_replay_stands_for_layers_one_by_one(tmp_path: Path) -> None:
    words = "--tokens", "128", "--shards", "96", "--layers", "6"
    replayed, each = (
        told(tmp_path, *words, "--replay", way, "--out", f"{way}.h5") for way in ("period", "off")
    )
    assert replayed.keys() == each.keys() == {"stream", "tb_static"}
    for scheme, time in each.items():
        assert replayed[scheme] == pytest.approx(time, rel=0.01)


def test_what_cannot_be_is_refused_in_a_line(tmp_path: Path) -> None:
    refused(run(tmp_path, "--simulated", "2"), "--simulated 2: must be at least 3")
    refused(run(tmp_path, *SMALL, "--shards", "7"), "shards = 7: must divide heads = 96")
