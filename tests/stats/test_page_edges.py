"""Edges between kernels in the report: those of the table, once for all runs that launch the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pysim.stats.page import edges
from pysim.stats.page.edges import kernel_edges
from pysim.stats.page.report import Recording, make_page
from pysim.workloads import make
from tests.support.result_files import result_file


def test_edges_between_kernels_are_in_the_page_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = make("gru:hidden=128,batch=16,timesteps=3,layers=2")
    results = result_file(tmp_path / "r.h5", "titan_v", job, "stream,fused,graph")
    assert results.array("runs")["status"].tolist() == [b"ok"] * 3
    made: list[dict[str, np.ndarray]] = []
    keep = edges.blob
    monkeypatch.setattr(edges, "blob", lambda columns: made.append(columns) or keep(columns))
    page = make_page([Recording(results)])
    names = [run["kernel_graph"] for run in page.data["runs"]]
    assert names[0] == names[2] == "kernel_edges0"
    assert names[1] in (None, "kernel_edges1")  # one kernel, or as many as streams
    assert set(filter(None, names)) == {name for name in page.blobs if name.startswith("kernel_edges")}
    rows = results.array("edges")[results.array("edges")["run"] == 0]
    pairs = {(int(row["kernel"]), int(row["producer_kernel"])) for row in rows}
    assert len(pairs) > 18
    columns = made[0]
    assert list(zip(columns["kernel"].tolist(), columns["producer"].tolist(), strict=True)) == sorted(pairs)


def test_a_file_without_edges_has_no_graph_of_kernels(tmp_path: Path) -> None:
    results = result_file(tmp_path / "r.h5", "titan_v", make("empty"), "stream", ("edges",))
    assert kernel_edges(results, 0) is None
    assert make_page([Recording(results)]).data["runs"][0]["kernel_graph"] is None
