"""Device files from what the microbenchmarks measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pysim.errors import ConfigError
from pysim.machine.calibrate import FILE, NEEDED, RULES, calibrate
from pysim.machine.devices import DEVICES, device
from pysim.workloads.microbench import MEASURED
from tests.support.calls import pysim

# products of a whole chip run at a lower clock than mma alone, which is what the file has
NEAR = {"gpu.clock_tensor": 0.05}
H200 = json.loads(MEASURED["h200"].read_text(encoding="utf-8"))


def folder(where: Path, drop: tuple[str, ...] = (), **changed: object) -> Path:
    found = {key: value for key, value in H200.items() if key not in drop}
    found |= {key.replace("__", "."): {"value": value} for key, value in changed.items()}
    (where / FILE).write_text(json.dumps(found), encoding="utf-8")
    return where


@pytest.mark.parametrize("base", ["h200", "h100"])
def test_the_h200s_file_gives_the_built_in_device(tmp_path: Path, base: str) -> None:
    made = tmp_path / "mine.toml"
    done = pysim("calibrate", folder(tmp_path), "-o", made, "--base", base)
    assert done.returncode == 0, done.stderr
    assert f"{len(RULES)} numbers measured" in done.stdout
    mine, built = device(str(made)), DEVICES["h200"]
    assert mine.title == "NVIDIA H200, measured"
    assert (mine.mma_rate, mine.carveouts) == (built.mma_rate, built.carveouts)
    for row in RULES:
        got, want = mine.values[row.path], built.values[row.path]
        assert got == pytest.approx(want, rel=NEAR.get(row.path, 0.025)), row.path
        assert mine.sources[row.path].startswith(f"{FILE}: ")
    kept = set(built.values) - {row.path for row in RULES}
    assert {path: mine.values[path] for path in kept} == {path: DEVICES[base].values[path] for path in kept}


def test_what_was_not_measured_stays_as_in_the_base(tmp_path: Path) -> None:
    drop = tuple(key for key in H200 if key not in NEEDED)
    text, kept = calibrate(folder(tmp_path, drop), "a100")
    (tmp_path / "few.toml").write_text(text, encoding="utf-8")
    made = device(str(tmp_path / "few.toml"))
    assert made.values["gpu.sms"] == 132
    assert made.values["gpu.sm.tensor_interval"] == DEVICES["a100"].values["gpu.sm.tensor_interval"]
    assert made.mma_rate == 256
    assert {"gpu.sm.tensor_interval", "gpu.cp.stream_gap", "gpu.l1.latency"} <= set(kept)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sm_count": 0}, "sm_count = 0: must be positive"),
        ({"sm_count": 131.5}, "gpu.sms = 131.5: must be an integer .*from sm_count"),
        ({"sm_count": 4000}, "gpu.sms = 4000.*from sm_count"),
        ({"l2_bytes": 1 << 19}, r"gpu\.l2\.size.*from l2_bytes"),
        ({"attr_mem_bus_bits": 6000}, r"gpu\.l2\.slices = 93\.75.*from attr_mem_bus_bits"),
        ({"dram_read_GBps": 9000}, "dram_read_GBps = 9000 GB/s: more than the 4814.3"),
        ({"latency_cycles__shared": -3}, "latency_cycles.shared = -3: must be positive"),
        (
            {"stream_kernel_period_us__empty__grid1056_block256": -1.5},
            "grid1056_block256 = -1.5: must be positive",
        ),
        (
            {
                "stream_kernel_period_us__empty__grid1_block32": 0.01,
                "stream_kernel_period_us__empty__grid1056_block256": 0.01,
            },
            "gpu.cp.stream_gap = -.*from stream_kernel",
        ),
        ({"arith_latency_cycles__ffma": 1e300}, "gpu.sm.fp32_latency"),
        ({"event_to_event_us__one_empty_kernel": 1.7e308}, "cannot be that of a GPU"),
        ({"smem_per_sm_bytes": 300_000}, "smem_per_sm_bytes = 300000.*take a base of the same generation"),
    ],
)
def test_odd_values_are_named(tmp_path: Path, changed: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        calibrate(folder(tmp_path, **changed), "h200")


def test_an_l2_that_no_slices_make(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="l2_bytes = 62914561: no number of slices"):
        calibrate(folder(tmp_path, l2_bytes=62914561), "a100")


@pytest.mark.parametrize("key", NEEDED)
def test_a_file_without_what_is_needed(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=f"{FILE}: no {key}: not the output"):
        calibrate(folder(tmp_path, (key,)), "h200")


def test_messages_of_the_command(tmp_path: Path) -> None:
    made = tmp_path / "mine.toml"
    made.write_text("mine", encoding="utf-8")
    for args, message in (
        ((tmp_path / "none",), "cannot be read"),
        ((folder(tmp_path), "--base", "h20"), "unknown GPU h20: did you mean h200"),
        ((tmp_path, "-o", made), "is there already"),
        ((tmp_path, "-o", tmp_path / "mine.txt"), "ends in .toml"),
        ((tmp_path, "-o", tmp_path / "no" / "mine.toml"), "cannot be written"),
        ((), "the following arguments are required: FOLDER"),
    ):
        done = pysim("calibrate", *args)
        assert done.returncode == (1 if message in ("is there already", "cannot be written") else 2), args
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert made.read_text(encoding="utf-8") == "mine"
    assert pysim("calibrate", tmp_path, "-o", made, "--force").returncode == 0
    assert device(str(made)).values["gpu.sms"] == 132
    shown = pysim("calibrate", tmp_path)
    assert shown.stdout == made.read_text(encoding="utf-8")
