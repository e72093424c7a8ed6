"""``pysim dependences``: from workloads, traces and result files to lines, JSON, HDF5 and pictures."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from pysim import stats
from pysim.cli import command
from pysim.cli.entry import run_script
from pysim.dependence.groups import KINDS
from pysim.program.job import Job, Tensor
from pysim.results.graph_tables import GraphTables, graph_hash
from pysim.results.schema import DTYPES
from pysim.stats.pictures.graph_layout import MOST_NODES, layout
from pysim.stats.pictures.graph_picture import FILLS, to_dot, to_png, to_svg
from pysim.stats.text.dependences import format_dependences
from pysim.workloads.registry import make
from tests.dependence.test_dependences import kernel, tiles
from tests.dependence.test_graph import edges_of
from tests.support.calls import caller, refused

SMALL = "gru:hidden=64,batch=8,timesteps=3,layers=1"
run, figure = caller("titanv_gru"), caller("figure_dependences")
TINY = ("--hidden", 64, "--batch", 8, "--timesteps", 3, "--layers", 1, "--quiet")


def pysim(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: object
) -> tuple[int, str, str]:
    """Run the command in this process; return its status, what it printed and what it said beside."""
    monkeypatch.setattr("sys.argv", ["pysim", *map(str, args)])
    with pytest.raises(SystemExit) as done:
        run_script(command.run)
    out, err = capsys.readouterr()
    return int(done.value.code or 0), out, err


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    return lambda *args: pysim(monkeypatch, capsys, "dependences", *args)


def racing() -> Job:
    tensor = Tensor("x", 8, 8, 4, 0)
    rows = [(r, r + 4, 0, 8) for r in (0, 4)]
    return Job("racing", [kernel(2, (tensor, "write", rows)), kernel(2, (tensor, "read", rows), stream=1),
                          kernel(2, (tensor, "write", rows), stream=1)], [(0, 2)])  # fmt: skip


def test_lines_of_a_workload(tool) -> None:
    status, out, err = tool(SMALL)
    assert (status, err) == (0, "")
    assert "job       gru:hidden=64,batch=8: 9 kernels in 1 stream" in out
    assert "gemm_hh   gemm_ih       1" in out
    assert "independent  100.0%" in out
    assert "races     none" in out


def test_kernels_are_those_of_the_gpu(tool) -> None:
    text = "mlp:layers=2,width=1024,batch=512"
    counts = set()
    for gpu in ("titan_v", "h200"):
        status, out, _ = tool(text, "--gpu", gpu, "--json")
        assert status == 0
        study = GraphTables(make(text, gpu))
        assert json.loads(out)["dependences"][0]["edges"] == study.graph.edges
        counts.add(study.graph.edges)
    assert len(counts) == 2


def test_json_holds_the_same_numbers(tool) -> None:
    status, out, _ = tool(SMALL, "--json", "--window", "2:5", "--granularity", "page")
    made = json.loads(out)
    study = GraphTables(make(SMALL), "page")
    assert status == 0
    assert {*made} == {
        "dependences",
        "dependence_kernels",
        "dependence_pairs",
        "names",
        "window_tbs",
        "window_edges",
    }
    assert made["dependences"][0]["edges"] == study.graph.edges
    assert made["dependences"][0]["granularity"] == "page"
    assert len(made["window_tbs"]) == sum(k.tbs for k in make(SMALL).kernels[2:6])


def test_csr_in_hdf5_is_the_graph(tool, tmp_path: Path) -> None:
    assert tool(SMALL, "-o", "a.h5", "--rename")[0] == 0
    results = stats.load("a.h5")
    results.verify()
    from pysim.program.rename import renamed

    study = GraphTables(renamed(make(SMALL)))
    first, edges = (results.array(name) for name in ("tb_ptr", "tb_edges"))
    offsets = results.array("dependence_kernels")["first_tb"]
    wanted = edges_of(study.graph)
    found = {}
    for tb in range(len(first) - 1):
        for row in edges[first["first"][tb] : first["first"][tb + 1]]:
            before, after = (
                int(np.searchsorted(offsets, n, side="right")) - 1 for n in (row["producer"], tb)
            )
            pair = (before, int(row["producer"] - offsets[before])), (after, int(tb - offsets[after]))
            found[pair] = int(row["kinds"])
    assert found == wanted
    whole = results.array("dependences")[0]
    assert (whole["edges"], whole["renamed"]) == (len(wanted), 1)
    assert results.attributes["graph"] == graph_hash(study.deps)
    assert results.configuration["name"] == SMALL
    # the same again is no other file
    assert tool(SMALL, "-o", "a.h5", "--rename")[0] == 0
    assert tool(SMALL, "-o", "a.h5")[0] == 1


def test_rules_are_counted_as_defined() -> None:
    x = Tensor("x", 64, 64, 4, 0)
    grid, whole = tiles(64, 64, 8, 8), (0, 64, 0, 64)
    reads = {
        "one-to-one": (grid, 1),
        "all-to-all": ([whole] * 5, 1),
        "row": ([(row, row + 8, 0, 64) for row, _, _, _ in grid], 8),
        "two in turn": ([grid[i % 2] for i in range(6)], 3),
        # 2 x 2 tiles are two even parts, and two TBs in a row share them
        "blocks": ([(0, 16, 16 * (i // 2), 16 * (i // 2) + 16) for i in range(4)], 4),
    }
    for name, (rects, rules) in reads.items():
        job = Job(name, [kernel(64, (x, "write", grid)), kernel(len(rects), (x, "read", rects))])
        pairs = GraphTables(job).tables()["dependence_pairs"]
        assert (name, pairs["rules"].tolist()) == (name, [rules])


def test_trace_and_workload_have_the_same_edges(tool) -> None:
    from pysim.trace.writer import write_trace

    write_trace(make(SMALL), Path("trace"), binary=70)
    _, one, _ = tool(SMALL, "--json")
    _, other, _ = tool("trace", "--json")
    for name in ("raw", "war", "waw", "edges", "free"):
        assert json.loads(one)["dependences"][0][name] == json.loads(other)["dependences"][0][name]
    assert json.loads(tool("trace", "--kernels", "4-6", "--json")[1])["dependences"][0]["kernels"] == 3
    assert "was recorded" in tool("trace", "--rename")[2]
    assert tool("trace", "--kernels", "9-10")[2] == "error: --kernels: no kernel 10: the trace has 1 to 9\n"


def test_the_job_of_a_result_file(tool, tmp_path: Path) -> None:
    for name, more in (("plain", ()), ("renamed", ("--rename",))):
        done = run(tmp_path, *TINY, "--schemes", "stream", "--tables", "none", "--out", f"{name}.h5", *more)
        assert done.returncode == 0, done.stderr
        _, out, err = tool(f"{name}.h5", "--json")
        assert err == ""
        assert json.loads(out) == json.loads(tool(SMALL, "--json", *more)[1])
        assert json.loads(out)["dependences"][0]["war"] == (0 if more else 48 * 4)


def test_a_result_file_of_another_job_is_refused(tool) -> None:
    import h5py

    configuration = {"script": "titanv_gru", "workload": {"hidden": 64, "batch": 8}, "version": "7"}
    tables = {"runs": np.zeros(0, DTYPES["runs"])}
    stats.write("other.h5", tables, {"graph": "0"}, configuration)
    assert "its job has other edges now than when version 7 wrote it: run it again" in tool("other.h5")[2]
    stats.write("script.h5", tables, {"graph": "0"}, configuration | {"script": "mine"})
    assert (
        tool("script.h5")[2]
        == "error: script.h5: the job of script mine cannot be built from its result file\n"
    )
    stats.write("old.h5", tables, {}, configuration)
    assert "not the result of a single job, or without the hash" in tool("old.h5")[2]
    with h5py.File("odd.h5", "w"):
        pass
    assert "not a complete result file" in tool("odd.h5")[2]
    known = {"source": "0", "kernels": None, "unknown": None, "memcpy": "fill", "name": "bert"}
    stats.write("gone.h5", tables, {"graph": "0"}, {"script": "replay_trace", "workload": known})
    assert "replays the trace bert" in tool("gone.h5")[2]


WRONG = {
    "gur:": "error: no workload 'gur': did you mean gru?",
    "gru:hiden=4": "error: workload gru has no key 'hiden': did you mean hidden?",
    "nowhere/at/all": "error: nowhere/at/all: no such file or folder",
    "nowhere.h5": "error: nowhere.h5 does not exist",
    f"{SMALL} --granularity lin": "error: --granularity: unknown value 'lin': did you mean line?",
    f"{SMALL} --window 3": "error: --window: must be FIRST:LAST, not '3'",
    f"{SMALL} --window 5:3": "error: --window: 5:3 is an empty range",
    f"{SMALL} --window 3:9": "error: window 3:9: kernels are 0 to 8, the first one first",
    f"{SMALL} --picture a.pdf": "error: --picture: a.pdf: the name must end in .svg, .dot or .png",
    "gru: --kernels 1-2": "error: --kernels: gru: is no trace; --window chooses the kernels of a picture",
    f"{SMALL} -o a.txt": "error: -o/--out: must end in .h5, not 'a.txt'",
    f"{SMALL} --picture none/a.svg": "error: --picture: none is no folder",
    "./none": "error: none: no such file or folder",
    "nowhere.h5 --gpu h200": "error: --gpu: nowhere.h5 is no workload",
    f"{SMALL} --windw 1:2": "error: unknown option --windw: did you mean --window?",
    f"{SMALL} b": "error: unexpected argument 'b'",
    "": "error: the following arguments are required: WORKLOAD|FOLDER|FILE.h5",
}


@pytest.mark.parametrize("words", WRONG)
def test_mistakes_are_one_line(tool, words: str) -> None:
    status, out, err = tool(*words.split())
    assert (status, out, err) == (2, "", WRONG[words] + "\n")


def test_options_of_other_commands(monkeypatch, capsys) -> None:
    assert (
        pysim(monkeypatch, capsys, "devices", "--rename")[2]
        == "error: no --rename here: it goes with run, sweep, dependences\n"
    )


def test_races_are_told(capsys) -> None:
    study = GraphTables(racing())
    text = format_dependences(study.tables())
    assert study.tables()["dependence_pairs"]["race"].sum() == 1
    assert "races     1: kernels that conflict, with no event between their streams" in text
    assert "kernel 0 (k, stream 0) and kernel 1 (k, stream 1): RAW 2" in text


def test_many_kinds_of_pairs_are_cut(tool) -> None:
    _, out, _ = tool("random_dag:kernels=40")
    assert "other kinds of pairs: all are in --json and -o FILE.h5" in out
    assert len(out.splitlines()) < 120


# ---- pictures ----
def drawn(text: str, first: int, last: int):
    study = GraphTables(make(text))
    return study, layout({**study.tables(), **study.window(first, last)}, "A <title> & more")


@pytest.mark.parametrize("text", [SMALL, "gru:layers=1,timesteps=3", "random_dag:", "empty:kernels=6,tbs=30"])
def test_nothing_overlaps_and_all_is_inside(text: str) -> None:
    _, picture = drawn(text, 2, 5)
    svg = ET.fromstring(to_svg(picture))
    wide, high = (float(svg.attrib[name]) for name in ("width", "height"))
    boxes = [(n.x - n.wide / 2, n.x + n.wide / 2, n.y - 9, n.y + 9) for n in picture.nodes]
    for number, (x0, x1, y0, y1) in enumerate(boxes):
        assert 0 < x0 < x1 < wide
        assert 70 < y0 < y1 < high - 44
        assert all(x1 <= a0 or a1 <= x0 or y1 <= b0 or b1 <= y0 for a0, a1, b0, b1 in boxes[number + 1 :])
    # diamonds stand between columns
    for x, y, _ in picture.hubs:
        assert not any(x0 - 5 < x < x1 + 5 and y0 - 5 < y < y1 + 5 for x0, x1, y0, y1 in boxes)
    for edge in picture.edges:
        assert all(a[0] < b[0] for a, b in zip(edge.points, edge.points[1:], strict=False))
    assert max(sum(n.kernel == k for n in picture.nodes) for k in range(2, 6)) <= MOST_NODES + 1


def test_colours_are_those_of_the_table() -> None:
    study, picture = drawn(SMALL, 2, 5)
    window = study.window(2, 5)["window_tbs"]
    assert [node.wait for node in picture.nodes] == window["wait"].tolist()
    text = to_svg(picture)
    for wait in set(window["wait"].tolist()):
        # one in the legend
        assert text.count(f'fill="{FILLS[wait]}"') == (window["wait"] == wait).sum() + 1
    assert "A &lt;title&gt; &amp; more" in text
    # the input product of a step waits for memory only, the hidden product for the step before, not for that
    kinds = {k: set(window["wait"][window["kernel"] == k].tolist()) for k in range(2, 6)}
    assert kinds == {2: {2}, 3: {1}, 4: {0}, 5: {2}}


def test_links_are_the_edges() -> None:
    study, picture = drawn(SMALL, 2, 5)
    edges = study.window(2, 5)["window_edges"]
    place = {(n.kernel, int(n.label)): i for i, n in enumerate(picture.nodes)}
    wanted = {
        (
            place[e["producer_kernel"], e["producer_tb"]],
            place[e["kernel"], e["tb"]],
            bool(e["kinds"] & KINDS["raw"]),
        )
        for e in edges
    }
    assert set(picture.links) == wanted
    dot = to_dot(picture)
    assert dot.count(" -> ") == len(wanted)
    assert dot.count("{") == dot.count("}")


def test_pictures_are_files(tool, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for ending, start in ((".svg", b"<svg"), (".dot", b"digraph"), (".png", b"\x89PNG")):
        status, out, err = tool(SMALL, "--picture", f"a{ending}", "--window", "0:2")
        assert (status, err) == (0, "")
        assert out.endswith(f"wrote a{ending}\n")
        assert Path(f"a{ending}").read_bytes().startswith(start)
    assert tool(SMALL, "--picture", "a.svg")[2] == "error: a.svg is there already: --force replaces it\n"
    first = Path("a.svg").read_bytes()
    assert tool(SMALL, "--picture", "a.svg", "--window", "0:2", "--force")[0] == 0
    assert Path("a.svg").read_bytes() == first


def test_pictures_are_the_same_bytes() -> None:
    pytest.importorskip("matplotlib")
    one, other = (drawn(SMALL, 1, 4)[1] for _ in range(2))
    assert to_svg(one) == to_svg(other)
    assert to_png([one, one]) == to_png([other, other])


def test_too_many_edges_for_a_window(monkeypatch: pytest.MonkeyPatch, tool) -> None:
    monkeypatch.setattr("pysim.results.graph_tables.MAX_WINDOW", 10)
    assert "at most 10 can be shown: choose fewer kernels" in tool(SMALL, "--window", "0:5")[2]


def test_figure_shows_both(tmp_path: Path) -> None:
    done = figure(tmp_path, *TINY, "--schemes", "stream,tb_static", "--tables", "none", "--out", "f.h5")
    assert done.returncode == 0, done.stderr
    results = stats.load(tmp_path / "f.h5")
    results.verify()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "f-renamed.svg", "f-reused.svg", "f.h5", "f.json", "f.png",
    ]  # fmt: skip
    whole = results.array("dependences")
    assert whole["run"].tolist() == [0, 2]
    assert whole["renamed"].tolist() == [0, 1]
    assert whole["raw"][0] == whole["raw"][1] > 0
    assert whole["war"][0] > whole["war"][1] == 0
    assert whole["free"][0] < whole["free"][1]
    assert list(results["runs"]["run"]) == [0, 1, 2, 3]
    refused(figure(tmp_path, *TINY, "--rename"), "no --rename here: this script compares")
