"""The script that runs BlockMaestro's applications, and what it says where the table does not win."""

from __future__ import annotations

import json
import re
import runpy

import numpy as np
import pytest

from pysim import Config, stats
from pysim.machine.devices import device
from pysim.results.schema import DTYPES
from pysim.stats.studies.suite import format_suite, geometric, losses
from pysim.workloads import make
from pysim.workloads.applications.blockmaestro import APPS
from tests.support.calls import CONFIGS, caller, refused

run = caller("blockmaestro_suite", "--small", "--threads", "1", "--quiet")
SCRIPT = runpy.run_path(str(CONFIGS / "blockmaestro_suite.py"))
LARGE = "tb_static, 16384 entries"
RELIEVED = (LARGE, "tb_static, free updates", "tb_static, free lists", "tb_static, no sharing")


def test_two_machines_and_launches_of_five_microseconds(tmp_path):
    pytest.importorskip("matplotlib")
    args = ("--apps", "bicg,nw", "--schemes", "stream,tb_static,blockmaestro", "--out", "b.h5")
    done = run(tmp_path, *args, "--picture", "yes")
    assert done.returncode == 0, done.stderr
    runs = stats.load(tmp_path / "b.h5")["runs"]
    assert runs["workload"].tolist() == (["bicg"] * 7 + ["nw"] * 7) * 2
    assert runs["gpu"].tolist() == ["titan_x_pascal"] * 14 + ["h200"] * 14
    assert set(runs["scheme"]) == {"stream", "tb_static", "blockmaestro", *RELIEVED}
    assert (runs["status"] == "ok").all()
    # a launch of 5 us in front of each of the 15 diagonals, in stream order
    nw = runs[(runs["workload"] == "nw") & (runs["scheme"] == "stream")].set_index("gpu")["time_us"]
    assert nw["titan_x_pascal"] > 15 * 5 > nw["h200"]
    assert "between kernels: stream 5," in done.stdout
    assert "BlockMaestro's buffers 22.1 KB" in done.stdout
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("gpu", ["titan_x_pascal", "h200"])
def test_no_more_bits_than_the_rival(gpu):
    """All that the table takes on the chip, in the application that needs most, against two buffers."""
    jobs = [make(name) for name in APPS]
    config = Config.resolve(device(gpu), SCRIPT["FORM"])
    bits, entries = SCRIPT["equal_bits"](jobs, config.encoded())
    assert bits == 896 * (40 + 162)
    assert entries > 1000
    most = [
        max(SCRIPT["table_bits"](jobs, config.replaced({"scheme.table.entries": entries + more}).encoded()))
        for more in (0, 1)
    ]
    assert most[0] <= bits < most[1]
    # the rival's, where it names TBs as we do
    assert SCRIPT["narrow_entries"](jobs, config.encoded()) == bits // (20 + 62)


def test_what_the_user_sets_is_what_runs(tmp_path):
    args = "--apps", "bicg", "--gpu", "h200", "--schemes", "stream,tb_static,blockmaestro", "--out", "b.h5"
    sets = "--set", "scheme.table.lists=4096", "--set", "scheme.table.update=3"
    done = run(tmp_path, *args, *sets)
    assert done.returncode == 0, done.stderr
    assert " entries and 4,096 lists for tb_static" in done.stdout
    # what is set is not relieved
    schemes = stats.load(tmp_path / "b.h5")["runs"]["scheme"].tolist()
    assert schemes == ["stream", "tb_static", "blockmaestro", LARGE, *RELIEVED[2:]]
    done = run(tmp_path, *args, *sets, "--set", "scheme.table.entries=50000", "--force")
    assert "50,000 entries and 4,096 lists" in done.stdout
    (size,) = re.findall(r"TBs [0-9.]+ to ([0-9.]+) KB; BlockMaestro's buffers 22.1 KB", done.stdout)
    assert float(size) > 22.1


def test_json_alone_on_stdout(tmp_path):
    args = "--apps", "mvt", "--gpu", "h200", "--schemes", "graph,pool", "--json", "--out", "b.h5"
    done = run(tmp_path, *args)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["runs"]
    assert [(row["gpu"], row["scheme"]) for row in rows] == [("h200", "graph"), ("h200", "pool")]
    assert all(row["speedup"] > 1 for row in rows)  # two kernels that need nothing of each other


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--apps", "nv"), "--apps: no application 'nv'"),
        (("--tables", "none"), "no --tables"),
        (("--gpu", "titan"), "titan"),
    ],
)
def test_bad_options_are_one_line(tmp_path, args, text):
    refused(run(tmp_path, *args), text)
    assert not list(tmp_path.iterdir())


def rows(*values):
    """Rows of `runs`: (workload, scheme, speedup, kernels that did not fit)."""
    made = np.zeros(len(values), DTYPES["runs"])
    for row, (workload, scheme, speedup, coarse) in zip(made, values, strict=True):
        row["workload"], row["scheme"], row["status"] = workload.encode(), scheme.encode(), b"ok"
        row["speedup"], row["table_coarse"], row["gap_won"] = speedup, coarse, speedup / 4
    return made


def test_what_is_lost_has_its_reason():
    table = rows(
        ("a", "tb_static", 2.0, 0), ("a", "blockmaestro", 1.5, 0), ("a", LARGE, 2.0, 0),
        ("b", "tb_static", 1.0, 7), ("b", "blockmaestro", 1.5, 0), ("b", LARGE, 3.0, 0),
        ("c", "tb_static", 1.0, 0), ("c", "blockmaestro", 1.5, 0), ("c", LARGE, 1.0, 0),
        ("d", "tb_static", 1.5, 0), ("d", "blockmaestro", 1.5, 0), ("d", LARGE, 1.5, 0),
    )  # fmt: skip
    found = losses(table)
    assert [line.split(":")[0].strip() for line in found[1:]] == ["b", "c", "d"]
    assert "7 kernels did not fit" in found[1]
    assert "with 16384 entries 3.00" in found[1]
    assert found[2].endswith("all kernels fit in the table")
    assert found[3].endswith("equal")
    table["table_shared"][3] = 5
    assert "of 5 kernels share counters" in losses(table)[1]
    assert losses(table[:3])[1:] == ["  nowhere"]


def test_means_are_geometric_and_leave_out_what_is_apart():
    assert geometric([2.0, 8.0, float("nan")]) == pytest.approx(4.0)
    assert np.isnan(geometric([]))
    table = rows(("a", "pool", 2.0, 0), ("b", "pool", 8.0, 0), ("c", "pool", 100.0, 0))
    text = format_suite(table, dict.fromkeys("abc", (1, 1)), ("c",))
    assert "geometric mean of 2" in text
    assert text.splitlines()[4].split()[-1] == "4.00"
