"""The scripts about kernels whose TBs wait for each other: Stream-K, persistent recurrent layers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
TINY = ("--tile", "64x64x32x32x32x32", "--depth", "96")


def run(folder, script, *args):
    command = [sys.executable, str(CONFIGS / script), *args, "--threads", "1"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=180, check=False)


def cells(text):
    """Return the rows of a table but its heads."""
    return [[word.strip() for word in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def test_stream_k_prints_a_row_a_size(tmp_path):
    done = run(tmp_path, "stream_k.py", "--tiles", "1,9", "--set", "gpu.sms=2", "--least", "1", *TINY)
    assert done.returncode == 0, done.stderr
    found = cells(done.stdout)
    assert [row[0] for row in found] == ["1", "9"]
    assert all(float(word) > 0 for row in found for word in row[1:-1])


def test_persistent_rnn_prints_a_row_an_order(tmp_path):
    size = ("--hidden", "128", "--timesteps", "3", "--set", "gpu.sms=4")
    done = run(tmp_path, "persistent_rnn.py", *size)
    assert done.returncode == 0, done.stderr
    found = cells(done.stdout)
    assert len(found) == 7
    assert found[0][4] == "1.00x"
    assert float(found[5][1]) < float(found[0][1])


@pytest.mark.parametrize(
    ("script", "args", "message"),
    [
        ("stream_k.py", ("--tile", "64x64"), "tile '64x64': must be six sizes"),
        ("stream_k.py", ("--tiles", "a"), "--tiles a: must be numbers"),
        ("stream_k.py", ("--least", "0", "--tiles", "1", *TINY), "0 at least: must be positive"),
        ("persistent_rnn.py", ("--hidden", "9000"), "hidden = 9000: an SM of titan_x_pascal would hold"),
        ("persistent_rnn.py", ("--timesteps", "0"), "timesteps = 0"),
    ],
)
def test_mistakes_are_one_line(tmp_path, script, args, message):
    done = run(tmp_path, script, *args)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
