"""The report page: what it holds, that it needs nothing else, and what it refuses."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pysim import simulate, stats
from pysim.results.schema import DTYPES, TABLES
from pysim.results.tables import tb_waits as engine_waits
from pysim.stats.page import Edges, Recording, open_sources, write_report
from pysim.stats.page.blob import blob
from pysim.stats.page.report import SCRIPTS, make_page
from pysim.stats.page.run import MOST_SMS, chosen_sms
from pysim.stats.waits import tb_waits
from pysim.workloads import make
from tests.support.result_files import result_file

WORKLOAD = "gru:hidden=128,batch=8,timesteps=3,layers=2"
SCHEMES = "host,stream,graph,pool,acs_sw,queues,blockmaestro,tb_static,tb_ideal"
KINDS = {"u1": "|u1", "u4": "<u4", "f4": "<f4", "f8": "<f8"}


def read(layout: Any, text: str) -> dict[str, np.ndarray]:
    """Read a blob as script/blob.js does."""
    data = zlib.decompress(base64.b64decode(text))
    made, at = {}, 0
    for name, kind, length in layout:
        size = np.dtype(KINDS[kind]).itemsize
        planes = np.frombuffer(data, np.uint8, size * length, at).reshape(size, length)
        values = np.ascontiguousarray(planes.T).view(KINDS[kind]).reshape(length)
        made[name] = np.cumsum(values, dtype=np.uint32) if kind == "u4" else values
        at += size * length
    assert at == len(data)
    return made


@pytest.fixture(scope="module")
def result():
    return simulate("titan_v", make(WORKLOAD), SCHEMES)


@pytest.fixture(scope="module")
def file(result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "gru.h5"
    known = {"parameters": {"gpu.dram.bandwidth": 652.8}}
    stats.write(path, result.tables(), {"script": "test"}, known, declared=TABLES)
    return path


@pytest.fixture(scope="module")
def edges(result) -> Edges:
    found = result.deps.groups
    names = ("kernel", "producer_ptr", "producers", "kinds", "consumer_ptr", "consumers")
    return Edges(result.deps.offsets, **{name: getattr(found, name) for name in names})


def content(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, np.ndarray]]]:
    """Return the data of a page, and its blobs."""
    text = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r"^const PAGE = (.*);$", text, re.MULTILINE)[1])
    found = re.findall(r'<script type="text/plain" id="blob-(\w+)">(.*?)</script>', text, re.DOTALL)
    return data, {name: read(data["blobs"][name], body) for name, body in found}


def test_blobs_keep_what_they_are_given() -> None:
    given = {
        "small": np.array([0, 255, 3], np.uint8),
        "whole": np.array([5, 0, 0xFFFFFFFF, 7, -1], np.int64),
        "real": np.array([0.1, -3e300, np.nan]),
        "short": np.array([0.5, 1e-8], np.float32),
        "none": np.zeros(0, np.int64),
    }
    made = blob(given)
    kept = read(made.layout, made.text)
    for name, values in given.items():
        wanted = values.astype(np.uint32) if values.dtype == np.int64 else values
        np.testing.assert_array_equal(kept[name], wanted)


@pytest.mark.parametrize("value", [1 << 32, -2])
def test_a_blob_refuses_what_it_cannot_hold(value: int) -> None:
    with pytest.raises(ValueError, match="column wide needs more than 32 bits"):
        blob({"wide": np.array([0, value])})


def test_the_page_holds_every_tb(result, file: Path, edges: Edges, tmp_path: Path) -> None:
    write_report([Recording(stats.load(file), edges=edges)], tmp_path / "r.html")
    data, blobs = content(tmp_path / "r.html")
    tables = result.tables()
    runs = tables["runs"]
    assert [run["row"]["scheme"] for run in data["runs"]] == [name.decode() for name in runs["scheme"]]
    for number, run in enumerate(data["runs"]):
        mine = tables["tbs"][tables["tbs"]["run"] == number]
        kept, tick = blobs[f"tbs{number}"], run["tick_ns"]
        assert run["shown"] == run["tbs"] == len(mine) == len(kept["start"])
        row = np.repeat(np.arange(len(kept["first"]) - 1), np.diff(kept["first"].astype(int)))
        columns = (kept[name] for name in ("kernel", "tb", "start", "length"))
        made = {
            (int(k), int(t)): (run["sms"][r // run["slots"]], r % run["slots"], s * tick, (s + n) * tick)
            for k, t, s, n, r in zip(*columns, row, strict=True)
        }
        for each in mine:
            wanted = tuple(each[name] for name in ("sm", "slot", "dispatch_ns", "end_ns"))
            assert made[int(each["kernel"]), int(each["tb"])] == wanted


def test_the_page_needs_nothing_else(file: Path, tmp_path: Path) -> None:
    write_report([Recording(stats.load(file))], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!#)", text)
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|importScripts|eval|innerHTML)\b", text)
    assert "default-src 'none'" in text


def test_names_are_no_html(file: Path, tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    results = stats.load(file)
    names = results.array("names")
    names["text"][0] = evil.encode()
    tables = {name: results.array(name) for name in results} | {"names": names}
    tables["runs"]["workload"][:] = evil.encode()
    stats.write(tmp_path / "evil.h5", tables, {}, {"workload": {evil: evil}}, declared=TABLES)
    write_report([Recording(stats.load(tmp_path / "evil.h5"), label=evil)], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert text.count("<script") == text.count("</script>")


def test_same_file_same_bytes(file: Path, edges: Edges, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_report([Recording(stats.load(file), edges=edges)], tmp_path / f"{name}.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_waits_are_those_of_the_engine(result) -> None:
    from pysim.schemes.registry import parse_scheme

    tables = result.tables()
    for number, row in enumerate(tables["runs"]):
        tbs, kernels = (tables[name][tables[name]["run"] == number] for name in ("tbs", "kernels"))
        ended = np.where(tbs["last_kernel"] < 0, -1, kernels["complete_us"][tbs["last_kernel"]] * 1e3)
        whole = parse_scheme(row["scheme"].decode()).scheme.kernels_wait
        wanted = engine_waits(
            kernels["admitted_us"][tbs["kernel"]] * 1e3,
            *(tbs[f"{name}_ns"] for name in ("ready", "dispatch", "start")),
            ended if whole else None,
        )
        np.testing.assert_allclose(
            tb_waits(tbs, kernels, whole), wanted, atol=1e-2, err_msg=row["scheme"].decode()
        )


def test_waits_without_kernels_are_of_the_launch() -> None:
    tbs = np.zeros(1, DTYPES["tbs"])
    tbs["ready_ns"], tbs["dispatch_ns"], tbs["start_ns"] = 5, 7, 8
    assert tb_waits(tbs, np.zeros(0, DTYPES["kernels"]), False).tolist() == [[5, 0, 2, 1]]


def test_of_too_many_tbs_whole_sms_are_left_out(file: Path, tmp_path: Path) -> None:
    sm = np.repeat(np.arange(10), 7)
    for most, sms in ((70, 10), (69, 9), (14, 2), (7, 1)):
        mask, kept = chosen_sms(sm, most)
        assert (int(mask.sum()), len(kept)) == (7 * sms, sms)
        assert set(sm[mask]) == set(kept)
    mask, kept = chosen_sms(sm, 3)
    assert (int(mask.sum()), len(kept)) == (3, 1)
    page = write_report([Recording(stats.load(file))], tmp_path / "r.html", most_tbs=100)
    data, blobs = content(tmp_path / "r.html")
    assert all(0 < len(blobs[f"tbs{n}"]["start"]) <= 100 for n in range(len(data["runs"])))
    shown = data["runs"][1]
    note = (
        f"stream: the timeline shows {shown['shown']} of {shown['tbs']} TBs: {len(shown['sms'])} of"
        f" {shown['all_sms']} SMs with a TB"
    )
    assert len(shown["sms"]) < shown["all_sms"] <= 80
    assert any(line.startswith(note) for line in page.notes)
    assert note in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_sms_without_a_tb_have_a_row(tmp_path: Path) -> None:
    results = result_file(tmp_path / "r.h5", "titan_v", make("nw:n=128"), "stream")
    used = np.unique(results.array("tbs")["sm"])
    assert len(used) < 80
    (run,) = make_page([Recording(results)]).data["runs"]
    assert (run["sms"], run["all_sms"]) == (list(range(80)), len(used))
    known = {"parameters": {"gpu.sms": MOST_SMS + 1}}
    tables = {name: results.array(name) for name in results}
    stats.write(tmp_path / "q.h5", tables, {}, known, declared=TABLES)
    (run,) = make_page([Recording(stats.load(tmp_path / "q.h5"))]).data["runs"]
    assert run["sms"] == used.tolist()


def test_provenance_names_the_machine_only_where_there_is_one(file: Path, tmp_path: Path) -> None:
    tables = {"runs": stats.load(file).array("runs")}
    for name, made_for in (("none", None), ("one", {"gpu.sms": 132})):
        path, known = tmp_path / f"{name}.h5", {"workload": WORKLOAD, "made_for": made_for}
        stats.write(path, tables, {}, {"workload": known}, declared=TABLES)
        (shown,) = make_page([Recording(stats.load(path))]).files
        facts = dict(shown["facts"])
        assert facts["workload"] == WORKLOAD
        assert facts.get("kernels chosen for") == (made_for and "gpu.sms=132")


def test_graphs_of_other_kernels_are_not_drawn(file: Path, edges: Edges) -> None:
    page = make_page([Recording(stats.load(file), edges=edges)])
    assert all(run["graph"] for run in page.data["runs"])
    other = replace(edges, offsets=edges.offsets + np.arange(len(edges.offsets)))
    page = make_page([Recording(stats.load(file), edges=other)])
    assert not any(run["graph"] for run in page.data["runs"])
    page = make_page([Recording(stats.load(file), no_edges="because")])
    assert page.data["files"][0]["graph_note"] == "because"
    assert not [name for name in page.blobs if name.startswith("edges")]


def test_all_scripts_are_in_the_page() -> None:
    folder = Path(stats.__file__).parent / "page" / "script"
    assert sorted(path.stem for path in folder.glob("*.js")) == sorted(SCRIPTS)


def test_what_is_refused(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "r.html"
    target.write_text("mine")
    for paths, words, said in (
        ([file], {}, "is there already: --force"),
        ([tmp_path / "none.h5"], {}, "does not exist"),
        ([target], {}, "cannot be read as an HDF5 file"),
        ([file, tmp_path], {}, "is a folder: a report shows it alone"),
        ([file], {"point": 1}, "is no folder"),
        ([tmp_path], {}, "holds neither a sweep nor result files"),
    ):
        with pytest.raises(stats.StoreError, match=re.escape(said)):
            stats.report(paths, target, **words)
    assert target.read_text() == "mine"
    with pytest.raises(stats.StoreError, match="is a folder"):
        stats.report(file, tmp_path)
    stats.write(tmp_path / "bare.h5", {}, {}, {})
    with pytest.raises(stats.StoreError, match="has no table runs"):
        stats.report(tmp_path / "bare.h5", tmp_path / "q.html")


def test_files_without_tbs_have_no_timeline(result, tmp_path: Path) -> None:
    tables = {"runs": result.tables()["runs"]}
    stats.write(tmp_path / "few.h5", tables, {}, {}, declared=TABLES)
    stats.report(tmp_path / "few.h5", tmp_path / "r.html")
    data, blobs = content(tmp_path / "r.html")
    assert not blobs
    assert [run["shown"] for run in data["runs"]] == [0] * len(tables["runs"])


def test_tbs_without_kernels_have_no_timeline(result, tmp_path: Path) -> None:
    """Nothing would divide their waits between launch and other TBs."""
    tables = {name: result.tables()[name] for name in ("runs", "tbs", "names")}
    stats.write(tmp_path / "few.h5", tables, {}, {}, declared=TABLES)
    stats.report(tmp_path / "few.h5", tmp_path / "r.html")
    data, blobs = content(tmp_path / "r.html")
    assert not [name for name in blobs if name.startswith("tbs")]
    assert not any(run["shown"] for run in data["runs"])
    with pytest.raises(stats.StoreError, match="has no table kernels: run again with --tables all"):
        stats.to_chrome_trace(tmp_path / "few.h5", tmp_path / "t.json")


def test_refused_runs_say_why(result, tmp_path: Path) -> None:
    runs = result.tables()["runs"][:2].copy()
    runs["status"][1], runs["reason"][1], runs["time_us"][1] = b"refused", b"no <room>", np.nan
    stats.write(tmp_path / "no.h5", {"runs": runs}, {}, {}, declared=TABLES)
    stats.report(tmp_path / "no.h5", tmp_path / "r.html")
    assert "refused: no &lt;room&gt;" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_folder_of_files_is_shown_as_points(file: Path, tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.h5").write_bytes(file.read_bytes())
    (tmp_path / "not.h5").write_bytes(b"no result")
    sources = open_sources([tmp_path], 1)
    assert [each.label for each in sources.recordings] == ["b"]
    page = make_page(sources.recordings, sweep=sources.sweep)
    shown = page.data["sweep"]
    assert shown["keys"] == ["file"]
    assert shown["grid"][0]["values"] == ["a", "b"]
    assert len(shown["scheme"]["index"]) == 2 * len(page.data["runs"])
    with pytest.raises(stats.StoreError, match="no point 2: there are 0 to 1"):
        open_sources([tmp_path], 2)
