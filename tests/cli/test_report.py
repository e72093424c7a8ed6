"""``pysim report``: result files and sweeps as one HTML file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pysim import stats
from tests.cli.test_dependence_tool import TINY, pysim
from tests.support.calls import caller

run = caller("titanv_gru")


def data_of(path: Path) -> dict[str, Any]:
    """Return what the script of a page gets."""
    return json.loads(re.search(r"^const PAGE = (.*);$", path.read_text(encoding="utf-8"), re.MULTILINE)[1])


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    return lambda *args: pysim(monkeypatch, capsys, *args)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("made") / "gru.h5"
    run(path.parent, *TINY, "--schemes", "stream,pool,tb_static", "--out", path)
    return path.read_bytes()


@pytest.fixture
def file(made: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "gru.h5"
    path.write_bytes(made)
    return path


def test_a_file(tool, file: Path) -> None:
    status, out, err = tool("report", "gru.h5", "-o", "r.html")
    assert (status, err) == (0, "")
    assert re.fullmatch(r"wrote r\.html: \d+\.\d MB\n", out)
    data = data_of(Path("r.html"))
    assert data["files"][0]["graph_note"] is None
    drawn = {each["row"]["scheme"]: each for each in data["runs"]}
    assert [name for name, each in drawn.items() if each["graph"]] == ["stream", "pool", "tb_static"]
    assert not any(each["inferred"] for each in drawn.values())
    results = stats.load(file)
    assert stats.orders_kernels(results, "stream")
    assert stats.orders_kernels(results, "pool")
    assert not stats.orders_kernels(results, "tb_static")


def test_a_file_without_its_graph(tool, file: Path) -> None:
    assert tool("report", "gru.h5", "-o", "r.html", "--no-graph")[0] == 0
    assert data_of(Path("r.html"))["files"][0]["graph_note"] == "--no-graph was given"


def test_a_job_that_cannot_be_made_again_is_said(tool, file: Path) -> None:
    results = stats.load(file)
    tables = {name: results.array(name) for name in results}
    known = results.configuration | {"script": "own"}
    stats.write("own.h5", tables, {"graph": "00"}, known)
    assert tool("report", "own.h5", "-o", "r.html")[0] == 0
    note = data_of(Path("r.html"))["files"][0]["graph_note"]
    assert note == "the job of script own cannot be built from its result file"


def test_files_of_one_name_are_told_apart(tool, file: Path) -> None:
    Path("other").mkdir()
    Path("other/gru.h5").write_bytes(file.read_bytes())
    assert tool("report", "gru.h5", "other/gru.h5", "-o", "r.html", "--no-graph")[0] == 0
    data = data_of(Path("r.html"))
    assert [each["label"] for each in data["files"]] == ["gru.h5", "other/gru.h5"]
    assert [each["file"] for each in data["runs"]] == [0] * 3 + [1] * 3


def test_a_sweep_and_what_collect_made_of_it(tool) -> None:
    words = ("--timesteps", 2, "--layers", 1, "--schemes", "stream,tb_static", "--jobs", 1, "--quiet")
    assert tool("sweep", "gru", *words, "--grid", "hidden=64,128", "--out", "sw", "--tables", "all")[0] == 0
    assert tool("report", "sw", "-o", "r.html", "--point", 1)[0] == 0
    data = data_of(Path("r.html"))
    assert data["sweep"]["keys"] == ["hidden"]
    assert data["sweep"]["grid"] == [{"values": [64, 128], "index": [0, 0, 1, 1]}]
    assert data["sweep"]["scheme"] == {"values": ["stream", "tb_static"], "index": [0, 1, 0, 1]}
    assert data["files"][0]["label"] == "hidden=128"
    assert "<title>Sweep of gru on titan_v: 2 points</title>" in Path("r.html").read_text(encoding="utf-8")
    assert data["files"][0]["graph_note"] is None
    frame = stats.load("sw")
    assert data["sweep"]["values"]["time_us"] == pytest.approx(frame["time_us"].tolist(), rel=1e-6)
    assert tool("collect", "sw", "-o", "all.h5")[0] == 0
    assert tool("report", "all.h5", "-o", "all.html")[0] == 0
    collected = data_of(Path("all.html"))
    assert collected["sweep"]["values"] == data["sweep"]["values"]
    assert len(collected["runs"]) == 4
    assert not any(each["inferred"] for each in collected["runs"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gru.h5",), "the following arguments are required: -o/--out"),
        (("gru.h5", "-o", "r.txt"), "--out: r.txt: the name of a report ends in .html"),
        (("none.h5", "-o", "r.html"), "none.h5 does not exist"),
        (("gru.h5", ".", "-o", "r.html"), ". is a folder: a report shows it alone"),
        (("gru.h5", "-o", "r.html", "--point", "0"), "gru.h5 is no folder: a point is one of a sweep"),
        (("gru.h5", "-o", "r.html", "--most-tbs", "0"), "--most-tbs: must be a positive integer, not '0'"),
        (("gru.h5", "-o", "r.html", "--no-grap"), "unknown option --no-grap: did you mean --no-graph?"),
        (("gru.h5", "-o", "gru.h5/r.html"), "cannot write gru.h5/r.html: gru.h5 is no folder"),
    ],
)
def test_bad_input_is_one_line(tool, file: Path, words: tuple[str, ...], said: str) -> None:
    before = sorted(Path().iterdir())
    status, out, err = tool("report", *words)
    assert status in (1, 2)
    assert (out, err) == ("", f"error: {said}\n")
    assert sorted(Path().iterdir()) == before


def test_an_existing_file_stays(tool, file: Path) -> None:
    Path("r.html").write_text("mine")
    assert (
        tool("report", "gru.h5", "-o", "r.html")[2]
        == "error: r.html is there already: --force (force=True) replaces it\n"
    )
    assert Path("r.html").read_text() == "mine"
    assert tool("report", "gru.h5", "-o", "r.html", "--force")[0] == 0
