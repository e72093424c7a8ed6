"""Devices with another simulator's parameters: its cycles on its traces, and what the page says of them."""

from __future__ import annotations

import json
import re

import h5py
import numpy as np
import pytest

from pysim import simulate
from pysim.trace.convert import convert
from pysim.trace.converted_file import ConvertedTrace
from pysim.trace.job import trace_job
from pysim.workloads.validation import peer_traces
from tests.support.calls import CONFIGS, ROOT, call, caller, refused
from tests.support.pages import block, writer

run = caller("accelsim_rows")
LARGE = ("sgemm", "sgemm_kk8")
ROWS = peer_traces.rows()
TARGET = 0.10


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Converted traces by input, each made once."""
    folder, made = tmp_path_factory.mktemp("peer"), {}

    def store(case):
        if case not in made:
            convert(peer_traces.write(peer_traces.INPUTS[case], folder / case), folder / f"{case}.pysim")
            made[case] = ConvertedTrace(folder / f"{case}.pysim")
        return made[case]

    return store


def replayed(row, stores):
    tables = simulate(row.device, trace_job(stores(row.case)), "stream", threads=1, tables="sm,l2").tables()
    sm, l2 = tables["sm"], tables["l2"]
    assert int(sm["warp_instructions"].sum()) == row.instructions
    moved = int(sm["load_sectors"].sum() + sm["store_sectors"].sum()), int(l2["dram_read_sectors"].sum())
    return float(tables["runs"]["cycles"][0]), moved


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=row.name, marks=[pytest.mark.deep] * (row.case in LARGE)) for row in ROWS],
)
def test_cycles_are_near_those_of_the_peer(row, stores):
    cycles, (l2, dram) = replayed(row, stores)
    assert cycles == pytest.approx(row.cycles, rel=TARGET)
    if row.l2_sectors is not None:
        # lines that meet in our sets of four are read again; there, 64 share a set
        assert row.l2_sectors <= l2 < 1.0001 * row.l2_sectors
        assert dram == pytest.approx(row.dram_sectors, rel=0.002)


def test_inputs_are_those_that_were_measured():
    stored = {}
    for line in (ROOT / "workloads/measured/accelsim.csv").read_text(encoding="utf-8").splitlines()[1:]:
        words = line.split(",")
        stored.setdefault(words[0], int(words[4]))
    counted = {name: sum(launch.instructions for launch in of) for name, of in peer_traces.INPUTS.items()}
    assert counted == stored
    # the peer's own count of sectors that its warps ask of L1
    assert sum(launch.sectors for launch in peer_traces.INPUTS["vecadd"]) == 24_576
    assert sum(launch.sectors for launch in peer_traces.INPUTS["sgemm"]) == 2_703_360


def test_instructions_and_sectors_follow_from_the_text(stores):
    for case in ("vecadd", "pair_2streams"):
        launches = peer_traces.INPUTS[case]
        for launch, kernel in zip(launches, stores(case).kernels, strict=True):
            text = "".join(peer_traces._kernel(launch, 1))
            lines = [line.split() for line in text.splitlines() if re.match("[0-9a-f]{4} ffffffff", line)]
            assert len(lines) == launch.instructions
            touched = [int(line[-5]) for line in lines if any(word[:3] in ("LDG", "STG") for word in line)]
            assert sum(touched) == launch.sectors  # 32 lanes of so many bytes, in sectors of 32
            assert kernel.grid == (launch.x, launch.y, 1)
    assert [job.stream for job in trace_job(stores("pair_2streams")).kernels] == [0, 1]


def test_baseline_models_have_seen_the_answers():
    for constants, worst in ((2, 0.4), (3, 0.4)):
        found, errors = peer_traces.baseline_model(ROWS, constants)
        assert len(found) == constants
        assert 0.1 < np.abs(errors).max() < worst
        # least squares: no other constants do better
        known = np.array([peer_traces._known(row, constants) for row in ROWS])
        for i in range(constants):
            for factor in (0.98, 1.02):
                other = found.copy()
                other[i] *= factor
                cycles = known @ other + [row.launch for row in ROWS]
                assert np.sum((cycles / [row.cycles for row in ROWS] - 1) ** 2) > np.sum(errors**2)


def test_script_prints_and_writes_the_rows(tmp_path):
    done = run(tmp_path, "--inputs", "vecadd,pair_2streams", "--repeats", "2", "--out", "r.h5", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["validation"]
    names = ["vecadd TITANV", "vecadd QV100", "pair_2streams TITANV"]
    assert [row["case"] for row in rows] == names
    assert [row["group"] for row in rows] == ["accelsim_titan_v", "accelsim_qv100", "accelsim_titan_v"]
    for row in rows:
        assert row["error"] == pytest.approx(row["simulated"] / row["measured"] - 1)
        assert abs(row["error"]) < TARGET
    with h5py.File(tmp_path / "r.h5") as file:
        assert list(file["validation"]["measured"]) == [2187, 6437, 26533]
        assert list(file["runs"]["run"]) == [0, 1, 2]
        assert (file["host"]["simulate_seconds"][:] > 0).all()
    for name in names:
        assert name in done.stderr


def test_script_runs_all_rows_on_another_gpu_and_with_other_parameters(tmp_path):
    options = ("--inputs", "vecadd", "--repeats", "1", "--json", "--quiet")
    plain = json.loads(run(tmp_path, *options, "--gpu", "accelsim_qv100").stdout)["validation"]
    assert {row["group"] for row in plain} == {"accelsim_qv100"}
    assert plain[0]["simulated"] == plain[1]["simulated"]
    slow = json.loads(run(tmp_path, *options, "--set", "gpu.dram.latency=600").stdout)["validation"]
    assert slow[1]["simulated"] > plain[1]["simulated"] + 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--inputs", "vecad"), "--inputs: no input 'vecad': did you mean vecadd?"),
        (("--gpu", "accelsim_titan"), "unknown GPU accelsim_titan: did you mean accelsim_titan_v"),
        (("--schemes", "graph"), "Accel-Sim runs in stream order only"),
        (("--repeats", "0"), "positive"),
    ],
)
def test_script_refuses_in_one_line(tmp_path, options, message):
    refused(run(tmp_path, *options), message)


def test_recorded_trace_runs_on_cards_and_their_models(tmp_path):
    trace = ROOT / "tests" / "data" / "traces" / "vectoradd"
    times = {}
    for name in ("titan_v", "accelsim_titan_v"):
        options = ("--gpu", name, "--json", "--quiet", "--force", "--out", "r.h5")
        done = call(tmp_path, CONFIGS / "replay_trace.py", trace, *options)
        assert done.returncode == 0, done.stderr
        (found,) = json.loads(done.stdout)["runs"]
        assert found["status"] == "ok"
        assert found["warp_instructions"] == 344
        times[name] = found["time_us"]
    # the card has a launch latency, SM7_TITANV has none
    assert times["titan_v"] > times["accelsim_titan_v"] + 1


@pytest.fixture(scope="module")
def rendering():
    return writer("peer")


def shown():
    """The rows of the page, as the script would give them but for rounding."""
    tables = {"validation": [], "host": []}
    for row, line in zip(ROWS, block(ROOT / "docs/peer.md", "rows").splitlines()[2:], strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        cycles = float(cells[2].replace(",", ""))
        tables["validation"].append(
            {"case": cells[0], "simulated": cycles, "error": cycles / row.cycles - 1, "detail": "l2 0 dram 0"}
        )
        seconds = row.instructions / (float(cells[7].removesuffix(" M")) * 1e6)
        tables["host"].append({"load_seconds": 0.0, "simulate_seconds": seconds})
    return tables


def test_the_page_agrees_with_its_rows(rendering):
    tables = shown()

    def same(made, text):
        made, text = (re.sub(r"\s+", " ", words) for words in (made, text))
        speed = re.compile(r"[\d,]+( to [\d,]+ times|x)")  # of rounded speeds
        # cycles of the page are whole ones: a share may round the other way
        share = re.compile(r"-?\d+\.\d%")
        pairs = zip(share.findall(made), share.findall(text), strict=True)
        assert all(abs(float(a[:-1]) - float(b[:-1])) < 0.101 for a, b in pairs)
        made, text = (share.sub("%", speed.sub("#", words)) for words in (made, text))
        assert made.replace("+%", "%") == text.replace("+%", "%")

    same(rendering.rows(tables), block(ROOT / "docs/peer.md", "rows"))
    same(rendering.summary(tables), block(ROOT / "docs/peer.md", "summary"))
    lines = block(ROOT / "docs/peer.md", "variants").splitlines()[2:]
    assert [line.split(" | ")[0].strip("| ") for line in lines] == [
        "as it is",
        *(name for name, _ in rendering.VARIANTS),
    ]
    same(rendering.variants(tables, {}).splitlines()[2], lines[0])


def test_the_page_is_that_of_the_model(stores):
    tables = shown()["validation"]
    for row, on_page in zip(ROWS, tables, strict=True):
        if row.case not in LARGE:
            assert replayed(row, stores)[0] == pytest.approx(on_page["simulated"], rel=0.02)


def test_a_part_of_the_rows_is_refused(rendering):
    tables = shown()
    with pytest.raises(SystemExit, match="not all rows"):
        rendering.summary({name: rows[1:] for name, rows in tables.items()})
