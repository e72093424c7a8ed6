"""Microbenchmarks: the simulated GPU against the constants that were measured on the real one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pysim import stats
from pysim.errors import ConfigError
from pysim.machine.config import Config
from pysim.machine.devices import device
from pysim.workloads import microbench
from pysim.workloads.microbench.bench import Bench
from tests.support.calls import caller
from tests.support.thin import thin

ROOT = Path(__file__).resolve().parents[2]
script = caller("microbench")
ROWS = {row.key: row for row in microbench.rows()}
# what is quick to simulate and right; docs/microbench.md explains the others
RIGHT = re.compile(
    r"arith_|mma_.*(latency|per_sm)|ffma_|latency_cycles|^stream_kernel_period|^graph_kernel_period.*grid1(32)?_|pdl.*grid1_|event_to_event"
    r"|empty_kernel_us.*grid(132|264|1056)$|dram_(read|write)_GBps$|_bandwidth.*f32|atomic_add_same"
)


@pytest.fixture(scope="module")
def h200() -> Bench:
    return Bench(Config.resolve(device("h200")), microbench.read_measured(microbench.MEASURED["h200"]))


@pytest.mark.parametrize(
    "key",
    thin(
        [key for key in ROWS if RIGHT.search(key)], [key for key in ROWS if not re.search("_(24|48)MB", key)]
    ),
)
def test_h200_constant(h200: Bench, key: str) -> None:
    assert ROWS[key].value(h200) == pytest.approx(h200.constants[key], rel=0.055)


def test_every_measured_constant_has_a_row_or_a_reason(h200: Bench) -> None:
    assert set(ROWS) <= set(h200.constants)
    reasons = {key: microbench.skipped(key) for key in h200.constants if key not in ROWS}
    assert all(reasons.values())
    timed = [key for key, why in reasons.items() if why == microbench.skipped("")]
    assert not [key for key in timed if re.search("_us|_ns|cycle|GBps|tflops", key)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not valid JSON"),
        ("[1]", "must be a JSON object"),
        ('{"a": {"median": "fast"}}', "a = .*needs a finite median or value"),
        ('{"a": {"median": NaN}}', "finite"),
        ('{"a": {"median": true}}', "finite"),
        ('{"a": 3}', "a = 3"),
    ],
)
def test_measured_file_is_checked(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "micro.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=f"micro.json: .*{message}|micro.json: {message}"):
        microbench.read_measured(path)


def test_measured_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        microbench.read_measured(tmp_path / "none.json")


def test_script_prints_and_writes(tmp_path: Path) -> None:
    done = script(tmp_path, "--only", "shfl", "--out", "a.h5")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("arith_")]
    assert [line[0].rpartition(".")[2] for line in lines] == ["shfl", "shfl"]
    assert "2 of 2 constants within 5%" in done.stdout
    assert "not simulated" in done.stdout
    rows = stats.load(tmp_path / "a.h5")["validation"]
    assert list(rows["measured"].round(1)) == [23.9, 31.9]


def test_script_takes_a_file_and_a_gpu_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(
        json.dumps({"latency_cycles.shared": {"median": 19.0}}), encoding="utf-8"
    )
    done = script(tmp_path, "--gpu", "v100", "--measured", "m.json", "--only", "latency_cycles.shared")
    assert done.returncode == 0, done.stderr
    assert "1 of 1 constants within 5%" in done.stdout
    done = script(tmp_path, "--gpu", "v100", "--only", "latency_cycles.shared")
    assert "0 of" not in done.stdout
    for wrong, message in (
        ("--measured=none.json", "cannot be read"),
        ("--only=(", "not a regular expression"),
    ):
        done = script(tmp_path, wrong)
        assert done.returncode == 2
        assert message in done.stderr
