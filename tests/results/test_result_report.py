"""``Result.report``: the report of a result in memory is that of its file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pysim import simulate, stats
from pysim.errors import OutputError
from pysim.stats.page import Edges, Recording, write_report
from pysim.workloads import make


@pytest.fixture(scope="module")
def result():
    return simulate("titan_v", make("gru:hidden=64,batch=8,timesteps=2,layers=1"), "tb_static,pool")


def data_of(path: Path) -> dict[str, Any]:
    return json.loads(re.search(r"^const PAGE = (.*);$", path.read_text(encoding="utf-8"), re.MULTILINE)[1])


def test_it_shows_the_runs_that_were_asked_for(result, tmp_path: Path) -> None:
    page = result.report(tmp_path / "r.html")
    data = data_of(tmp_path / "r.html")
    assert [run["row"]["scheme"] for run in data["runs"]] == ["tb_static", "pool"]
    assert all(run["graph"] and not run["inferred"] for run in data["runs"])
    assert 'srcdoc="&lt;!doctype html&gt;' in page._repr_html_()
    assert repr(page) == f"<Page: {page.title} in {tmp_path / 'r.html'}: open it in a browser>"
    from pysim.units import ROWS

    assert ROWS["gpu.sms"].doc in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_its_numbers_are_those_of_the_file(result, tmp_path: Path) -> None:
    result.report(tmp_path / "r.html")
    result.to_file(tmp_path / "r.h5")
    found = result.deps.groups
    names = ("kernel", "producer_ptr", "producers", "kinds", "consumer_ptr", "consumers")
    edges = Edges(result.deps.offsets, *(getattr(found, name) for name in names))
    write_report([Recording(stats.load(tmp_path / "r.h5"), edges=edges)], tmp_path / "file.html")
    mine, other = data_of(tmp_path / "r.html"), data_of(tmp_path / "file.html")
    scheme = {run["row"]["scheme"]: run for run in other["runs"]}
    for run in mine["runs"]:
        same = scheme[run["row"]["scheme"]]
        assert run["row"] | {"run": 0} == same["row"] | {"run": 0}
        assert run["stalls"] == same["stalls"]
        assert run["tbs"] == same["tbs"]
    assert mine["blobs"]["edges0"] == other["blobs"]["edges0"]


def test_an_existing_file_stays(result, tmp_path: Path) -> None:
    (tmp_path / "r.html").write_text("mine")
    with pytest.raises(OutputError, match=r"is there already: .*force=True.* replaces it"):
        result.report(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == "mine"
    result.report(tmp_path / "r.html", force=True)
