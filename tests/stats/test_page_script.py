"""The script of the report, run by Node.js: what it computes is what Python computes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pysim import stats
from pysim.dependence.dependences import dependences
from pysim.stats.page import Edges, Recording
from pysim.stats.page.report import Page, make_page
from pysim.stats.page.spans import Spans, time_in_bins
from pysim.stats.page.summary import format_bytes
from pysim.stats.pictures.occupancy import PALETTE
from pysim.workloads import make
from tests.support.result_files import result_file

SCRIPT = Path(stats.__file__).parent / "page" / "script"
PARTS = ("format", "blob", "colours", "model", "series_data", "series_zoom", "graph_layout", "kernel_graph")
NODE = shutil.which("node")
SMS = 10  # so few that several TBs share one
KINDS = (1, 2, 4)  # RAW, WAR, WAW, as the picture ranks them

pytestmark = pytest.mark.skipif(NODE is None, reason="the script needs Node.js to run outside of a browser")


@pytest.fixture(
    scope="module", params=["gru:hidden=256,batch=16,timesteps=3,layers=2", "random_dag:kernels=9"]
)
def job(request: pytest.FixtureRequest) -> Any:
    return make(request.param)


@pytest.fixture(scope="module")
def results(job: Any, tmp_path_factory: pytest.TempPathFactory) -> stats.Results:
    path = tmp_path_factory.mktemp("script") / "r.h5"
    return result_file(path, "titan_v", job, "stream,graph", gpu__sms=SMS, gpu__gpcs=1)


@pytest.fixture(scope="module")
def edges(job: Any) -> Edges:
    deps = dependences(job)
    names = ("kernel", "producer_ptr", "producers", "kinds", "consumer_ptr", "consumers")
    return Edges(deps.offsets, **{name: getattr(deps.groups, name) for name in names})


@pytest.fixture(scope="module")
def ask(
    results: stats.Results, edges: Edges, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Any]:
    """Return a function that runs statements of JavaScript on the page and gives what they return."""
    page = make_page([Recording(results, edges=edges)])
    folder = tmp_path_factory.mktemp("node")

    def run(statements: str) -> Any:
        file = folder / "ask.mjs"
        file.write_text(_program(page, statements), encoding="utf-8")
        done = subprocess.run([str(NODE), str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def _program(page: Page, statements: str) -> str:
    texts = {f"blob-{name}": {"textContent": made.text} for name, made in page.blobs.items()}
    parts = [(SCRIPT / f"{name}.js").read_text(encoding="utf-8") for name in PARTS]
    return "\n".join(
        (
            f"const PAGE = {json.dumps(page.data)};",
            f"const TEXTS = {json.dumps(texts)};",
            "const document = { getElementById: (id) => TEXTS[id] };",
            *parts,
            "const runs = PAGE.runs.map((about, number) => new Run(about, number));",
            "for (const run of runs) await run.load();",
            f"const answer = await (async () => {{ {statements} }})();",
            "console.log(JSON.stringify(answer));",
        )
    )


def test_tbs_are_read_as_they_were_written(ask: Callable[[str], Any], results: stats.Results) -> None:
    found = ask(
        "return runs.map((run) => Array.from({ length: run.count }, (_, i) => {"
        " const f = run.facts(i); return [f.kernel, f.tb, f.sm, f.slot, f.dispatch, f.start, f.end]; }));"
    )
    for run, rows in enumerate(found):
        tbs = results.of_run("tbs", run)
        names = ("kernel", "tb", "sm", "slot", "dispatch_ns", "start_ns", "end_ns")
        want = np.stack([tbs[name].astype(float) for name in names], axis=1)
        got = np.array(rows)
        order, other = np.lexsort(want[:, 1::-1].T), np.lexsort(got[:, 1::-1].T)
        assert np.abs(got[other] - want[order]).max() <= 1 / 1024


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.9), (0.3, 0.32), (0.5, 1.0)])
def test_what_tbs_hold_in_a_short_range_is_counted_exactly(
    ask: Callable[[str], Any], results: stats.Results, low: float, high: float
) -> None:
    bins = 70
    found = ask(
        "const out = []; for (const run of runs) { const series = await seriesOf(run); const { end } = run;"
        f" for (const key of ['busy_sms', 'resident_tbs']) {{ const range = [{low} * end, {high} * end];"
        f" const fine = zoomedSeries(run, series.get(key), ...range, {bins});"
        " out.push([...range, Array.from(fine.values), fine.mean(...range), series.get(key).mean(...range)]);"
        " } } return out;"
    )
    for run in (0, 1):
        tbs = results.of_run("tbs", run)
        spans = Spans(tbs["sm"], tbs["dispatch_ns"], tbs["end_ns"])
        for (begin, end, values, fine, stored), part in zip(
            found[2 * run :], (spans.merged(), spans), strict=False
        ):
            edges = np.linspace(begin, end, bins + 1)
            want = time_in_bins(part.begin, part.end, edges) / (np.diff(edges) * SMS)
            assert values == pytest.approx(want, abs=1e-3)
            assert fine == pytest.approx(want.mean(), abs=1e-4)
            # the stored series has 2,000 intervals of the run
            assert stored == pytest.approx(want.mean(), abs=0.02)


def every_edge(edges: Edges) -> set[tuple[int, int, int]]:
    """Return (producer, consumer, kind) of all edges, TBs numbered through the job."""
    made: set[tuple[int, int, int]] = set()
    for node, kernel in enumerate(edges.kernel):
        consumers = edges.consumers[edges.consumer_ptr[node] : edges.consumer_ptr[node + 1]]
        for at in range(edges.producer_ptr[node], edges.producer_ptr[node + 1]):
            kind = next(place for place, bit in enumerate(KINDS) if edges.kinds[at] & bit)
            made |= {(int(edges.producers[at]), int(edges.offsets[kernel] + tb), kind) for tb in consumers}
    return made


@pytest.mark.parametrize(("first", "count"), [(0, 4), (2, 5), (3, 6), (1, 8)])
def test_a_window_of_the_graph_has_its_edges_and_no_others(
    ask: Callable[[str], Any], edges: Edges, results: stats.Results, first: int, count: int
) -> None:
    found = ask(
        f"const w = new GraphWindow(await runs[0].graph(), runs[0], {first}, {count});"
        " return { needs: w.needs.map((each) => Array.from(each)),"
        " hubs: w.hubs.map((each) => [each.column, each.kind, each.producers, each.consumers]) };"
    )
    begin, end = edges.offsets[first], edges.offsets[first + count]
    every = every_edge(edges)
    inside = {each for each in every if begin <= each[0] < end and begin <= each[1] < end}
    got = {
        (producer, int(edges.offsets[first + column]) + tb, kind)
        for column, kind, producers, consumers in found["hubs"]
        for producer in producers
        for tb in consumers
    }
    assert got == inside
    assert inside
    stream = results.of_run("kernels", 0)["stream"]
    producers: dict[int, set[int]] = {}
    for producer, consumer, _ in every:
        producers.setdefault(consumer, set()).add(producer)
    for column, needs in enumerate(found["needs"]):
        kernel = first + column
        before = [k for k in range(kernel) if stream[k] == stream[kernel]]
        for tb, need in enumerate(needs):
            if not before:
                assert need == 3
                continue
            all_of = set(range(edges.offsets[before[-1]], edges.offsets[before[-1] + 1]))
            have = producers.get(int(edges.offsets[kernel]) + tb, set()) & all_of
            assert need == (2 if have == all_of else 1 if have else 0)


def test_texts_of_numbers(ask: Callable[[str], Any]) -> None:
    """A unit stays with its number, one thing is no plural, bytes have three digits as in the summary."""
    assert ask(
        "return [formatTime(113e3), formatMoment(118710), formatShare(0.5), formatCount(1, 'TB'),"
        " formatCount(2000, 'TB'), formatPart(1, 1), formatPart(4, 4), formatPart(1, 4),"
        " seriesText(1, 'TBs'), seriesText(0.5, 'TBs')];"
    ) == [
        text.replace("_", "\xa0")
        for text in (
            *("113_µs", "118.710_µs", "50.0_%", "1_TB", "2,000_TBs"),
            *("the TB", "all 4_TBs", "1 of 4_TBs", "1_TB", "0.5_TBs"),
        )
    ]
    counts = [0, 7, 1000, 1234567, 44.04e6, 99.96e6, 456e6, 2e15]
    assert ask(f"return {counts}.map(formatBytes);") == [
        format_bytes(count).replace(" ", "\xa0") for count in counts
    ]


def test_names_have_numbers_in_order_of_the_runs(ask: Callable[[str], Any], results: stats.Results) -> None:
    names, colours = ask(
        "const colours = (run) => Array.from(run.kernels.name, (_, k) => run.colourOf(k));"
        " return [runs[0].about.names, runs.map(colours)];"
    )
    for run, shown in enumerate(colours):
        rows = results.of_run("kernels", run)
        assert shown == [PALETTE[row["name"] % len(PALETTE)] for row in np.sort(rows, order="kernel")]
    assert len(set(colours[0])) == len(names)


def test_the_graph_of_kernels_has_the_longest_chain(
    ask: Callable[[str], Any], results: stats.Results
) -> None:
    found = ask(
        "const graph = new KernelGraph(await kernelGraphOf(runs[0]), runs[0].kernels.count);"
        " return [graph.facts().chain, graph.producers.map((each) => Array.from(each))];"
    )
    rows = results.of_run("edges", 0)
    depth: dict[int, int] = {}
    for kernel in range(len(results.of_run("kernels", 0))):
        before = set(rows["producer_kernel"][rows["kernel"] == kernel].tolist())
        assert set(found[1][kernel]) == before
        depth[kernel] = 1 + max((depth[k] for k in before), default=0)
    assert found[0] == max(depth.values())
