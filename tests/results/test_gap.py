"""Why there is no gap won: a note of the result, and a line under the table of a script."""

import math

import pytest

from pysim import simulate
from pysim.results.gap import compared, gap_notes
from pysim.workloads import make
from tests.support.calls import caller

# loads that L2 serves from the second pass on; the estimate has all of them wait for DRAM
CHASE = "chase:footprint=65536,passes=4"


def test_a_note_says_why_there_is_no_gap():
    made = simulate("titan_v", make(CHASE), "tb_static", threads=1, tables="none")
    runs = made.frame("runs")
    assert (runs["estimate_us"] >= made.time_us("stream")).all()
    assert runs["gap_won"].isna().all()
    (note,) = [note for note in made.notes if note.startswith("no gap won")]
    assert note.startswith("no gap won for tb_static, stream: the estimate, ")
    assert f"{runs['estimate_us'][0]:,.2f} us, is not below the time of stream" in note
    assert f"stream, {made.time_us('stream'):,.2f} us, so there is no gap" in note


def test_no_note_where_there_is_a_gap():
    job = make("gru:hidden=64,batch=4,timesteps=2,layers=1")
    made = simulate("titan_v", job, "stream,tb_static,pdl", threads=1, tables="none")
    runs = made.frame("runs")
    assert math.isfinite(runs["gap_won"][1])
    assert runs["status"][2] == "refused"
    assert not [note for note in made.notes if "no gap won" in note]


def test_each_estimate_has_its_note():
    made = simulate("titan_v", make(CHASE), "stream,tb_static,pool", threads=1, tables="none")
    rows = made.tables()["runs"]
    time = float(rows["time_us"][0])
    rows["estimate_us"] = [time / 2, time, time + 1]
    rows = compared(rows)
    first, second = gap_notes(rows)
    assert rows["gap_won"][0] == pytest.approx(0.0)
    assert first.startswith(f"no gap won for tb_static: the estimate, {time:,.2f} us")
    assert second.startswith(f"no gap won for pool: the estimate, {time + 1:,.2f} us")


def test_a_script_prints_it_under_the_table(tmp_path):
    compare = caller("compare_schemes")
    options = ("--gpu", "titan_v", "--threads", 1, "--tables", "none", "--quiet", "--out", "r.h5")
    done = compare(tmp_path, CHASE, "--schemes", "stream,tb_static", *options)
    assert done.returncode == 0, done.stderr
    table, _, below = done.stdout.partition("\ntb_static ")
    assert "no gap won" not in table + done.stderr
    assert below.count("no gap won for stream, tb_static: the estimate, ") == 1
