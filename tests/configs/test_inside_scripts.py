"""The scripts about kernels whose TBs wait for each other: Stream-K, persistent recurrent layers."""

from __future__ import annotations

import json

import pytest

from pysim import stats
from tests.support.calls import caller, refused

stream_k, persistent_rnn = caller("stream_k"), caller("persistent_rnn", "--threads", "1")
TINY = ("--tile", "64x64x32x32x32x32", "--depth", "96")


def cells(text):
    """Return the rows of a table but its heads."""
    return [[word.strip() for word in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def test_stream_k_prints_a_row_a_size(tmp_path):
    done = stream_k(tmp_path, "--tiles", "1,9", "--set", "gpu.sms=2", "--least", "1", *TINY)
    assert done.returncode == 0, done.stderr
    found = cells(done.stdout)
    assert [row[0] for row in found] == ["1", "9"]
    assert all(float(word) > 0 for row in found for word in row[1:-1])
    (path,) = (tmp_path / "results").glob("stream_k-*.h5")
    runs = stats.load(path).array("runs")
    assert runs["workload"].tolist()[:2] == [b"plain, 64x64x96", b"basic, 64x64x96"]
    assert runs["run"].tolist() == list(range(8))
    assert f"{runs['time_us'][0]:,.1f}" == found[0][2]


def test_persistent_rnn_prints_a_row_an_order(tmp_path):
    size = ("--hidden", "128", "--timesteps", "3", "--set", "gpu.sms=4")
    done = persistent_rnn(tmp_path, *size)
    assert done.returncode == 0, done.stderr
    found = cells(done.stdout)
    assert len(found) == 7
    assert found[0][4] == "1.00x"
    assert float(found[5][1]) < float(found[0][1])
    (path,) = (tmp_path / "results").glob("persistent_rnn-*.h5")
    assert len(stats.load(path).array("runs")) == 7


@pytest.mark.deep
def test_both_sizes_are_in_one_table(tmp_path):
    options = ("--schemes", "stream,tb_static", "--tables", "none", "--quiet", "--out", "a.h5")
    done = caller("gru_sizes")(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    names = ["hidden 256, batch 8", "hidden 1536, batch 32"]
    assert all(sum(name in line for line in lines) == 2 for name in names)
    row = next(line for line in lines if line.startswith("tb_static")).split()
    gaps, moved = (float(word.rstrip("x")) for word in row if word.endswith("x"))
    assert 1.9 < gaps < 2.3
    assert 1.05 < moved < 1.15
    runs = stats.load(tmp_path / "a.h5").array("runs")
    assert runs["run"].tolist() == [0, 1, 2, 3]
    assert [name.decode() for name in runs["workload"]] == [name for name in names for _ in range(2)]


@pytest.mark.parametrize("script", [stream_k, persistent_rnn])
def test_the_shared_options_are_taken(tmp_path, script):
    size = ("--tiles", "1", *TINY) if script is stream_k else ("--hidden", "128", "--timesteps", "2")
    done = script(tmp_path, *size, "--set", "gpu.sms=2", "--threads", 1, "--quiet", "--json", "--out", "a.h5")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)["runs"]) == (4 if script is stream_k else 7)
    done = script(tmp_path, *size, "--set", "gpu.sms=3", "--quiet", "--out", "a.h5")
    refused(done, "a.h5 exists with different results", 1)
    assert script(tmp_path, *size, "--set", "gpu.sms=3", "--force", "--out", "a.h5").returncode == 0


@pytest.mark.parametrize(
    ("run", "args", "message"),
    [
        (stream_k, ("--tile", "64x64"), "tile '64x64': must be six sizes"),
        (stream_k, ("--tiles", "a"), "--tiles: must be a positive integer, not 'a'"),
        (stream_k, ("--least", "0", "--tiles", "1", *TINY), "--least: must be a positive integer, not '0'"),
        (persistent_rnn, ("--hidden", "9000"), "hidden = 9000: an SM of titan_x_pascal would hold"),
        (persistent_rnn, ("--timesteps", "0"), "--timesteps: must be a positive integer, not '0'"),
    ],
)
def test_mistakes_are_one_line(tmp_path, run, args, message):
    refused(run(tmp_path, *args), message)
