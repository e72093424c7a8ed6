"""The roofline of the report: kernels with one known bottleneck sit at its ceiling."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pysim import stats
from pysim.program.job import Job, Kernel, Memory
from pysim.stats.page.roofline import ceilings_of, roofline
from pysim.workloads import make
from pysim.workloads.kernels import micro
from tests.support.result_files import result_file

TITAN_V = {  # by hand: 80 SMs at 1.455 GHz, 4 sub-cores; 48 slices of 32 B a cycle; 64 B a cycle into an SM
    "issue": 80 * 4 * 1.455,
    "fp32": 80 * 4 * 1.455 / 2,
    "tensor": 80 * 4 * 1.455 / 2,
    "int": 80 * 4 * 1.455 / 2,
    "l2": 48 * 32 * 1.455,
    "ports": 80 * 64 * 1.455,
    "dram": 652.8,
}


def of_kernel(path: Path, kernel: Kernel, gpu: str = "titan_v", **overrides: Any) -> dict[str, Any]:
    results = result_file(path / "r.h5", gpu, Job("one", (kernel,)), **overrides)
    made = roofline(results, results.array("runs")[0])
    assert made is not None
    return made


def ceilings(made: dict[str, Any]) -> dict[str, float]:
    return {each["key"]: each["value"] for each in made["ceilings"]}


@pytest.mark.parametrize(("kernel", "pipe"), [(micro.ffma, "fp32"), (micro.tensor, "tensor")])
def test_a_pipe_kernel_is_at_the_ceiling_of_its_pipe(
    tmp_path: Path, kernel: Callable[..., Kernel], pipe: str
) -> None:
    made = of_kernel(tmp_path, kernel(160, 16, 64, 128))
    (dot,) = made["kernels"]
    assert dot["sectors"] == 0
    assert dot["instructions"] == pytest.approx(160 * 16 * 64 * 128, rel=1e-3)
    known = ceilings(made)
    assert known == pytest.approx({key: TITAN_V[key] for key in known})
    assert set(known) == {"issue", pipe, "l2", "ports", "dram"}
    assert 0.97 < dot["instructions"] / dot["time"] / known[pipe] <= 1
    assert made["limits"][0]["label"].lower() == f"{pipe} pipes"
    assert made["limits"][0]["share"] > 0.97


def test_a_tensor_pipe_that_slows_its_clock_has_a_lower_ceiling(tmp_path: Path) -> None:
    made = of_kernel(tmp_path, micro.tensor(132, 16, 64, 64), "h200")
    (dot,) = made["kernels"]
    assert 0.97 < dot["instructions"] / dot["time"] / ceilings(made)["tensor"] <= 1
    assert ceilings(made)["tensor"] < 0.9 * ceilings(made)["issue"]


def test_a_stream_from_dram_is_at_the_dram_ceiling(tmp_path: Path) -> None:
    made = of_kernel(tmp_path, micro.read(Memory(), 640, 8, 1 << 17))
    run, (dot,) = made["run"], made["kernels"]
    assert dot["sectors"] == run["l2_sectors"] == 640 * (1 << 17) / 32
    assert run["dram_sectors"] == dot["sectors"]  # each is read once
    used = run["dram_sectors"] * 32 / run["time"] / ceilings(made)["dram"]
    assert 0.88 < used < 1  # refreshes take 7 %
    assert made["limits"][0] == {"label": "DRAM bandwidth", "share": pytest.approx(used)}
    # the L2 ceiling is 3.4 times as high
    assert dot["sectors"] * 32 / dot["time"] < ceilings(made)["l2"] / 3


def test_reads_of_one_place_are_at_the_l2_ceiling_and_merged_ones_may_be_above_it(tmp_path: Path) -> None:
    kernel = micro.read(Memory(), 320, 8, 1 << 18, shared=True, bypass_l1=True)
    made = of_kernel(tmp_path, kernel)
    (dot,) = made["kernels"]
    assert 0.95 < dot["sectors"] * 32 / dot["time"] / ceilings(made)["l2"] <= 1
    assert made["limits"][0]["label"] == "L2 slices"
    assert not made["merging"]
    (tmp_path / "b").mkdir()
    made = of_kernel(tmp_path / "b", kernel, "h200")
    (dot,) = made["kernels"]
    assert made["merging"]
    rate, known = dot["sectors"] * 32 / dot["time"], ceilings(made)
    assert known["l2"] < rate < known["ports"]
    assert made["run"]["l2_sectors"] * 32 / made["run"]["time"] < known["l2"]


def test_empty_kernels_are_left_out(tmp_path: Path) -> None:
    made = of_kernel(tmp_path, micro.empty(320, 8))
    assert (made["kernels"], made["empty"], made["more"]) == ([], 1, 0)


def test_kernels_that_do_next_to_nothing_are_left_out(tmp_path: Path) -> None:
    """One TB that only waits would need a scale of many powers of ten."""
    memory = Memory()
    kernels = (
        micro.ffma(160, 8, 64, 64),
        micro.chase(memory, 4096, 128, 1),
        micro.read(memory, 80, 8, 1 << 16),
    )
    results = result_file(tmp_path / "r.h5", "titan_v", Job("three", kernels))
    made = roofline(results, results.array("runs")[0])
    assert made is not None
    names = [results.array("names")["text"][each["name"]] for each in made["kernels"]]
    assert sorted(names) == [b"ffma", b"read"]
    assert made["empty"] == 1


def test_ceilings_without_their_parameters_are_not_drawn() -> None:
    assert ceilings_of({}, {"fp32"}) == []
    some = ceilings_of({"gpu.sms": 80, "gpu.clock": 1455, "gpu.dram.bandwidth": 652.8}, {"fp32"})
    assert {each["key"]: each["value"] for each in some} == pytest.approx(
        {key: TITAN_V[key] for key in ("issue", "dram")}
    )
    slowed = ceilings_of({"gpu.sms": 80, "gpu.clock": 1455, "sim.clock_share": 0.5}, set())
    assert slowed[0]["value"] == pytest.approx(TITAN_V["issue"] / 2)


@pytest.fixture(scope="module")
def gru(tmp_path_factory: pytest.TempPathFactory) -> stats.Results:
    job = make("gru:hidden=256,batch=16,timesteps=3")
    return result_file(tmp_path_factory.mktemp("roofline") / "r.h5", "titan_v", job, "stream,graph")


def test_names_add_up_to_the_run_and_say_what_runs_beside_them(gru: stats.Results) -> None:
    serial, parallel = (roofline(gru, row) for row in gru.array("runs"))
    assert serial is not None
    assert parallel is not None
    for made, row in zip((serial, parallel), gru.array("runs"), strict=True):
        assert sum(each["instructions"] for each in made["kernels"]) == row["warp_instructions"]
        assert sum(each["sectors"] for each in made["kernels"]) * 32 == row["l2_bytes"]
        assert sum(each["launches"] for each in made["kernels"]) == 27
        assert all(0 <= each["share"] <= 1 for each in made["limits"])
        shares = [each["share"] for each in made["limits"]]
        assert shares == sorted(shares, reverse=True)
        top = {each["label"]: each["share"] for each in made["limits"]}
        assert top["FP32 pipes"] == pytest.approx(row["alu_utilization"])
    assert [each["beside"] for each in serial["kernels"]] == [0, 0, 0]
    # in a graph the two GEMMs of a cell run side by side, the cell after them
    beside = {gru.array("names")["text"][each["name"]]: each["beside"] for each in parallel["kernels"]}
    assert beside[b"gemm_ih"] > 0.9
    assert beside[b"gru_cell"] == 0


def test_time_of_a_name_is_the_union_of_its_launches(gru: stats.Results) -> None:
    made = roofline(gru, gru.array("runs")[1])
    assert made is not None
    rows = gru.array("kernels")[gru.array("kernels")["run"] == 1]
    for each in made["kernels"]:
        mine = rows[rows["name"] == each["name"]]
        units = np.zeros(int(rows["complete_us"].max() * 1e3) + 1, bool)
        for begin, end in zip(mine["first_dispatch_us"], mine["complete_us"], strict=True):
            units[round(begin * 1e3) : round(end * 1e3)] = True
        assert each["time"] == pytest.approx(units.sum(), abs=len(mine))


def test_a_file_without_kernels_has_no_roofline(tmp_path: Path) -> None:
    job = Job("f", (micro.ffma(8, 4, 64, 20),))
    results = result_file(tmp_path / "a.h5", "titan_v", job, "stream", ("kernels", "sm"))
    assert roofline(results, results.array("runs")[0]) is None
