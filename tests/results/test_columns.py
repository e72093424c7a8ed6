"""Every column of every table has a unit that readers expect and a meaning, in memory and in files."""

import math

import numpy as np
import pytest

from pysim import Job, simulate, stats
from pysim.cli.table_reference import known_tables
from pysim.counters import IDLES, SLICE, STALLS, WORK
from pysim.results import schema
from pysim.results.columns import counter_values
from pysim.workloads import make

UNITS = {
    "us", "ns", "s", "cycles", "B", "bits", "J", "count", "kernels", "TBs", "warps", "tenths",
    "text", "id", "flag", "share", "ratio", "code", "as in `unit`", "as in `dimension`",
}  # fmt: skip
SUFFIX = {"us": "_us", "ns": "_ns", "B": "_bytes"}
SMALL = "gru:hidden=64,batch=4,timesteps=2,layers=1"


@pytest.mark.parametrize("name", known_tables())
def test_every_column_has_a_unit_and_a_sentence(name):
    for column in known_tables()[name]:
        where = f"{name}.{column.name}"
        assert column.unit in UNITS, where
        assert len(column.doc) > 5, where
        assert column.doc.endswith("."), where
        assert (column.unit == "text") == (np.dtype(column.dtype).kind == "S"), where
        if column.unit in SUFFIX:
            assert column.name.endswith(SUFFIX[column.unit]), where


def test_units_of_the_core_are_converted():
    names = [row.name for row in (*STALLS, *IDLES, *WORK, *SLICE)]
    records = np.zeros(1, [(name, "u8") for name in dict.fromkeys(names)])
    for name, value in (("issued", 7), ("dependence", 3 * 1024_000), ("fp32", 96), ("hits", 5)):
        records[name] = value
    values = {
        key: value[0]
        for group in (STALLS, IDLES, WORK, SLICE)
        for key, value in counter_values(group, records).items()
    }
    found = [values[key] for key in ("issued_cycles", "dependence_us", "fp32_cycles", "hits")]
    assert found == [7, 3.0, 1.5, 5]


def test_columns_add_up_in_their_units():
    """Stall cycles are those of resident warps, busy pipes those of their work, and SM times fill the run."""
    ran = simulate("titan_v", make("ffma:tbs=80,warps=8,count=64,iterations=16"), "stream", threads=1)
    sm, runs, tbs = (ran.frame(name) for name in ("sm", "runs", "tbs"))
    rate = 1e-3 * ran.config.number("gpu.clock")  # cycles a ns
    spent = sm[[f"{row.name}_cycles" for row in STALLS]].sum(axis=1)
    lived = (tbs["end_ns"] - tbs["start_ns"]).groupby(tbs["sm"]).sum()
    assert np.allclose(spent, 8 * lived * rate, rtol=0.05)
    # a warp instruction holds the fp32 pipe for two cycles
    assert np.allclose(sm["fp32_cycles"], 2 * 8 * 64 * 16, rtol=0.01)
    idle = sm[["dependence_us", "launch_us", "no_tb_us"]].sum(axis=1)
    assert np.allclose(sm["busy_us"] + idle, runs["time_us"][0], rtol=1e-12)


def test_the_file_has_them_all(tmp_path):
    made = simulate("titan_v", make(SMALL), "stream,tb_static", threads=1, overrides={"sim.sample": 1})
    path = tmp_path / "r.h5"
    stats.write(path, made.tables(), {}, {}, declared=schema.TABLES)
    results = stats.load(path)
    assert {"sm", "l2", "stalls", "edges", "sm_series"} <= set(results)
    for name in results:
        units, docs = results.attrs[name]["units"], results.attrs[name]["docs"]
        assert list(units) == list(docs) == list(results[name].columns)
        assert all(units.values())
        assert all(docs.values())
        assert results[name].attrs == results.attrs[name]
        assert made.frame(name).attrs == results.attrs[name]


def test_runs_have_the_arguments_of_the_workload():
    runs = simulate("titan_v", make(SMALL), "stream", threads=1, tables="none").frame("runs")
    given = dict(pair.split("=") for pair in runs["arguments"][0].split(","))
    assert given == {
        "hidden": "64", "batch": "4", "timesteps": "2", "layers": "1", "input": "per-step", "dtype": "fp32",
        "buffers": "1", "split": "0", "kernels": "own",
    }  # fmt: skip
    again = make("gru:" + runs["arguments"][0])
    assert again.arguments == runs["arguments"][0]
    job = make("empty")
    assert Job("mine", job.kernels).with_arguments({"a": 1, "b": None, "c": ""}).arguments == "a=1"


def test_only_schemes_with_a_window_have_one():
    schemes = "host,stream,graph,queues,wireframe,tb_ideal,pool,tb_static,acs_hw,blockmaestro"
    made = simulate("titan_v", make(SMALL), schemes, threads=1, tables="none", overrides={"scheme.window": 3})
    windows = dict(made.frame("runs")[["scheme", "window"]].itertuples(index=False))
    none = ("host", "stream", "graph", "queues", "wireframe", "tb_ideal")
    assert all(math.isnan(windows.pop(name)) for name in none)
    assert windows == {"pool": 3, "tb_static": 3, "acs_hw": 6, "blockmaestro": 2}
    assert '"window": null' in stats.to_json({"runs": made.tables()["runs"][:1]})
    refused = simulate("titan_v", make(SMALL), "pdl,stream", threads=1, tables="none").frame("runs")
    assert refused["status"][0] == "refused"
    assert math.isnan(refused["window"][0])
