"""Size and speed of the dependence table: the script, its prices and its search."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pysim import Config, stats
from pysim.machine.devices import device
from pysim.workloads.studies import table_size
from pysim.workloads.studies.table_search import KEPT, smallest
from pysim.workloads.studies.table_size import (
    DIMENSIONS,
    ENTRIES,
    NETWORKS,
    WINDOW,
    Point,
    price,
    simulated,
    swept,
    thinned,
)
from pysim.workloads.validation.kept import Figures
from tests.support.calls import caller, refused

run = caller("table_size", "--threads", "1", "--quiet")
TEXT = NETWORKS["mlp"].quick


@pytest.fixture(scope="module")
def config():
    return Config.resolve(device("h200"))


@pytest.mark.deep
def test_quick_study(tmp_path):
    pytest.importorskip("matplotlib")
    done = run(tmp_path, "--subset", "quick", "--networks", "mlp", "--out", "t.h5", "--picture", "yes")
    assert done.returncode == 0, done.stderr
    results = stats.load(tmp_path / "t.h5")
    rows, small, fields = (results[name] for name in ("table_size", "smallest", "hardware"))
    base = rows[rows["dimension"] == "scheme"].set_index("scheme")
    assert base["gain"]["stream"] == 0
    assert base["gain"]["tb_ideal"] == 1
    assert base["bits"]["pool"] < base["bits"]["tb_static"] < base["bits"]["tb_static:balanced"]
    for dim in thinned(DIMENSIONS):
        mine = rows[rows["dimension"] == dim.name]
        assert mine["value"].tolist() == list(dim.values)
    # a counter that takes a thousand cycles cannot keep up with one that takes one
    update = rows[rows["dimension"] == "update"].set_index("value")["gain"]
    assert update[1] > update[1000]
    row = small.iloc[0]
    assert row["gain"] >= KEPT * row["best"]
    assert row["bits"] < row["default_bits"]
    own = fields[(fields["scheme"] == "tb_static") & (fields["on_chip"] == 1)]
    assert (own["count"] * own["bits"]).sum() == base["bits"]["tb_static"]
    assert "the smallest table that keeps 95 %" in done.stdout
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    # all is kept, so this simulates nothing
    again = run(tmp_path, "--subset", "quick", "--networks", "mlp", "--json", "--force", "--out", "t.h5")
    assert again.returncode == 0, again.stderr
    times = [each["time_us"] for each in json.loads(again.stdout)["table_size"]]
    assert times == rows["time_us"].tolist()


def test_entries_in_memory_are_traffic(config):
    point = Point("gru:hidden=512,batch=32,timesteps=2", "tb_static:fetch").with_(ENTRIES, 16)
    figures = simulated(config, point).values
    assert figures["table_spills"] > 0
    assert figures["table_l2_bytes"] >= 32


def test_jobs_are_made_for_the_machine(config):
    text = "transformer:layers=1,hidden=128,heads=2"
    names = {kernel.tensor for kernel in table_size.built(text, config)[0].kernels if kernel.tensor}
    volta = table_size.built(text, Config.resolve(device("titan_v")))[0]
    assert (names, {kernel.tensor for kernel in volta.kernels if kernel.tensor}) == (
        {"mma.m16n8k16"},
        {"HMMA.884"},
    )


def test_prices_grow_with_what_they_buy(config):
    for path in (ENTRIES, WINDOW, table_size.CONSUMERS):
        dimension = next(d for d in DIMENSIONS if d.path == path)
        bits = [price(point, config) for point in swept(TEXT, dimension, config).values()]
        assert bits == sorted(bits)
    # what is faster is not smaller
    for dimension in DIMENSIONS:
        if dimension.cycles:
            points = swept(TEXT, dimension, config)
            assert len({price(point, config) for point in points.values()}) == 1
            assert dict(points[1000].settings)[dimension.path] == pytest.approx(1e6 / 1980)


def test_search_finds_the_smallest_of_a_known_landscape(config):
    """A table keeps all from 128 entries and a window of 8 on, else half: the search must end there."""

    def figures(point):
        if point.scheme in ("stream", "tb_ideal"):
            return Figures(values={"time_us": 200.0 if point.scheme == "stream" else 100.0})
        own = point.config(config)
        good = own.integer(ENTRIES) >= 128 and own.integer(WINDOW) >= 8
        return Figures(values={"time_us": 110.0 if good else 155.0})

    def simulated(points):
        return {point: figures(point) for point in points}

    text = "mlp:layers=24,width=128,batch=32"
    first = [Point(text, scheme) for scheme in ("stream", "tb_ideal", "tb_static")]
    first += [point for d in DIMENSIONS for point in swept(text, d, config).values()]
    found = simulated(first)
    search = smallest([text], DIMENSIONS, config, found, simulated, 50)[text]
    own = search.at.config(config)
    assert (own.integer(ENTRIES), own.integer(WINDOW), own.integer(table_size.CONSUMERS)) == (128, 8, 1)
    assert search.best == pytest.approx(0.9)
    assert search.done
    assert all(price(point, config) >= 0 for point in found)


def test_a_network_without_gain_has_no_smallest_table(config):
    found = {
        point: Figures(values={"time_us": 100.0})
        for point in [Point(TEXT, s) for s in ("stream", "tb_ideal", "tb_static")]
    }
    assert np.isnan(table_size.gains(found, TEXT)(Point(TEXT, "tb_static")))
    assert smallest([TEXT], (), config, found, dict, 3) == {}


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--networks", "gro"), "did you mean gru?"),
        (("--subset", "quik"), "did you mean quick?"),
        (("--schemes", "graph"), "no --schemes"),
    ],
)
def test_bad_options_are_one_line(tmp_path, args, text):
    refused(run(tmp_path, *args), text)
    assert not list(tmp_path.iterdir())
