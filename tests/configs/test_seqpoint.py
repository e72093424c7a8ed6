"""SeqPoints of an epoch of a tiny network, as a user calls the script."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pysim import stats
from tests.support.calls import caller, refused

run = caller("seqpoint", "--quiet", "--threads", "1")
SPEECH = "deepspeech2:layers=1,hidden=64,batch=2"
LENGTHS = "length,count\n1,8\n2,24\n3,40\n"
SHORT = ("--histogram", "h.csv", "--few", "2", "--bins", "1", "--tolerance", "40")


@pytest.mark.deep
def test_an_epoch_is_projected(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text(LENGTHS)
    words = (SPEECH, *SHORT, "--schemes", "stream,graph", "--changes", "none")
    done = run(tmp_path, *words, "--out", "a.h5")
    assert done.returncode == 0, done.stderr
    assert "36 iterations of 3 lengths" in done.stdout
    assert "published" in done.stdout
    results = stats.load(tmp_path / "a.h5")
    rows, points, each = (results.array(name) for name in ("projections", "seqpoints", "iterations"))
    assert rows["scheme"].tolist() == [b"stream", b"graph"]
    assert points["weight"].sum() == 36
    assert len(points) == 1
    mine = each[each["scheme"] == b"graph"]
    assert mine["count"].tolist() == [4, 12, 20]
    assert np.all(np.diff(mine["time_us"]) > 0)
    assert rows["actual_us"][1] == pytest.approx(mine["count"] @ mine["time_us"])
    assert rows["projected_us"][1] == 36 * mine["time_us"][mine["length"] == points["length"][0]][0]
    assert rows["speedup"][1] == pytest.approx(rows["actual_us"][0] / rows["actual_us"][1])
    assert rows["speedup"][1] > 1
    # what is done is kept: one changed machine alone is simulated, of one length
    more = (SPEECH, *SHORT, "--schemes", "stream,graph", "--lengths", "1", "--changes", "clock")
    again = run(tmp_path, *more, "--json", "--out", "b.h5")
    assert again.returncode == 0, again.stderr
    made = json.loads(again.stdout)["projections"]
    assert [row["machine"] for row in made] == ["base", "base", "clock"]
    assert made[2]["speedup"] > 1
    assert all(row["error"] == 0 for row in made)
    assert len([*(tmp_path / "results" / "seqpoint").rglob("*.h5")]) == 4


def test_wrong_options_are_one_line(tmp_path: Path) -> None:
    refused(run(tmp_path, "gnmt", "--tolerance", "-1"), "--tolerance: -1: must be from 0")
    refused(run(tmp_path, "gnmt", "--changes", "ram"), "ram")
    refused(run(tmp_path, "gnmt", "gnmt"), "WORKLOAD: a network is listed twice")
    refused(run(tmp_path, "gnmt", "--longest", "0"), "--longest: ")
    refused(run(tmp_path, "gru", "--longest", "4"), "gru: no network that is trained on sequences", 1)
    refused(run(tmp_path, SPEECH, "--histogram", "none.csv"), "none.csv: cannot be read", 1)
