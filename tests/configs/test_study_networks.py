"""The study of the zoo: which points it has, what it finds in their results, and what it writes."""

from __future__ import annotations

import json
import runpy

import numpy as np
import pytest

from pysim import stats
from pysim.machine.devices import DEVICES
from pysim.program.library_kernels import stands_in
from pysim.schemes.registry import parse_scheme
from pysim.stats.studies.networks import cases_of, left_out, plain, sections, summary, why_nothing, without
from pysim.sweep.point import arguments_of
from pysim.workloads.networks.passes import PASSES
from pysim.workloads.registry import ZOO, make
from pysim.workloads.studies.networks import (
    NETWORKS,
    cases,
    is_finer,
    launches_of,
    points,
    share_standing_in,
)
from tests.support.calls import CONFIGS, caller, refused

run = caller("study_networks", "--quiet", "--jobs", "1", "--threads", "1")
SCRIPT = runpy.run_path(str(CONFIGS / "study_networks.py"))
NAN = float("nan")
ALL = (*NETWORKS,)


def test_every_network_of_the_zoo_is_in_the_study():
    assert {*ZOO} - {"deepbench", "rnn-net"} <= NETWORKS.keys()


@pytest.mark.parametrize("quick", [False, True])
def test_every_point_has_keys_that_its_network_takes(quick):
    made = points(cases(ALL, PASSES, quick), SCRIPT["GPUS"], SCRIPT["SCHEMES"], {})
    assert len(made) > 30
    for point in made:
        arguments_of(point)
        assert point.gpu in DEVICES
    assert len({point.place for point in made}) == len(made)
    # the passes of the grid stand apart
    which = [point.place[1] for point in made]
    assert which == sorted(which, key=PASSES.index)


def test_a_network_runs_the_pass_that_its_place_names():
    for point in points(cases(ALL, PASSES, quick=False), ("v100",), ("stream",), {}):
        name, which, _ = point.place
        assert (f"pass={which}" in point.workload) or NETWORKS[name].library


def test_library_kernels_where_they_are_measured():
    texts = {
        p.gpu: p.workload for p in points(cases(["gru"], PASSES, True), ("v100", "h200"), ("stream",), {})
    }
    assert texts["h200"] == texts["v100"] + ",kernels=library"


@pytest.mark.parametrize(
    ("scheme", "finer"),
    [("stream", False), ("graph", False), ("pool", False), ("pdl", False), ("tb_static:reduced", True),
     ("cusync", True), ("fused", True), ("blockmaestro", True), ("tb_ideal", False)],
)  # fmt: skip
def test_which_schemes_let_tbs_wait(scheme, finer):
    assert is_finer(parse_scheme(scheme)) is finer


def test_share_that_stands_in():
    job = make("alexnet-torch:side=64", "titan_v")
    kernels = np.zeros(
        len(job.kernels), [("kernel", "<i4"), ("first_dispatch_us", "<f8"), ("last_end_us", "<f8")]
    )
    kernels["kernel"] = np.arange(len(kernels))
    kernels["last_end_us"] = 1.0
    marked = [kernel.library.startswith("stands in") for kernel in job.kernels]
    assert share_standing_in(job, kernels) == pytest.approx(np.mean(marked))
    short, kernels = make("gpt2:layers=5,seq=32,simulated=3", "titan_v"), np.repeat(kernels[:1], 200)
    launches = launches_of(short)
    assert len(launches) == len(make("gpt2:layers=5,seq=32", "titan_v").kernels) > len(short.kernels)
    kernels = kernels[: len(launches)]
    kernels["kernel"] = np.arange(len(launches))
    marked = [stands_in(kernel) for kernel in launches]
    assert share_standing_in(short, kernels) == pytest.approx(np.mean(marked))
    own = make("mlp:layers=2,width=64,batch=8")
    assert share_standing_in(own, kernels[:2]) == 0
    with pytest.raises(ValueError, match="2 rows"):
        share_standing_in(job, kernels[:2])


def test_gains_are_against_stream_order():
    names = ("scheme", "status", "reason", "time_us", "estimate_us", "bound_us", "sm_idle", "energy_j")
    kinds = ["S16"] * 3 + ["<f8"] * 5
    runs = np.array(
        [
            (b"stream", b"ok", b"", 100, 60, 50, 0.5, 4),
            (b"tb_static", b"ok", b"", 80, 60, 20, 0.4, 3),
            (b"pdl", b"refused", b"no", 0, 0, 0, 0, 0),
        ],
        [*zip(names, kinds, strict=True)],
    )
    stream, table, pdl = SCRIPT["gains"](runs)
    assert (stream["speedup"], stream["gap_won"], stream["energy_saved"]) == (1, 0, 0)
    assert (table["speedup"], table["gap_won"], table["bound_won"]) == (1.25, 0.5, 0.25)
    assert (table["energy_saved"], table["finer"]) == (0.25, True)
    assert np.isnan([pdl[name] for name in SCRIPT["FIGURES"]]).all()
    # without stream order nothing is known but times
    assert np.isnan(SCRIPT["gains"](runs[1:])[0]["speedup"])


def row(scheme, speedup, network="a", gpu="h200", status="ok", reason="", **more):
    given = {
        name: NAN if kind.kind == "f" else 0
        for name, (kind, _) in stats.schema.dtype("networks").fields.items()
    }
    given |= {"network": network, "run_pass": "forward", "gpu": gpu, "workload": network, "scheme": scheme}
    given |= {
        "status": status,
        "reason": reason,
        "speedup": speedup,
        "time_us": 100 / speedup if speedup else NAN,
    }
    return given | {"finer": scheme.startswith("tb_static"), "estimate_us": 50.0, "sm_idle": 0.25} | more


def table_of(rows):
    columns = {name: [each[name] for each in rows] for name in stats.schema.dtype("networks").names}
    return stats.schema.from_columns("networks", columns)


def case(**speedups):
    return cases_of(table_of([row("stream", 1.0), *(row(name, each) for name, each in speedups.items())]))[0]


def test_the_best_scheme_of_each_kind():
    one = case(graph=1.2, pool=1.3, tb_static=1.56, tb_ideal=1.6)
    assert (one.gain, one.over_coarse) == (1.56, pytest.approx(1.2))
    assert one.room == 2
    assert why_nothing(one) == ""
    assert case(graph=0.5, tb_static=0.9).over_coarse == 0.9  # stream order is the better choice


@pytest.mark.parametrize(
    ("speedups", "why"),
    [
        (
            {"tb_static": 1.01, "tb_ideal": 1.005},
            "a table without cost gives 0.5 %, SMs have no TB for 25% of",
        ),
        (
            {"tb_static": 0.9, "tb_ideal": 1.3},
            "the table costs what it gives: a table without cost gives 30.0 %",
        ),
        ({"pool": 1.3, "tb_static": 1.31}, "whole kernels that wait give as much: pool 1.30, TBs 1.31"),
        ({"graph": 1.3}, "no such scheme ran"),
    ],
)
def test_why_there_is_nothing(speedups, why):
    assert why_nothing(case(**speedups)).startswith(why)


def test_a_study_without_tb_schemes_says_nothing_of_them():
    rows = table_of([row("stream", 1.0), row("graph", 1.3)])
    assert [each.name for each in sections(rows)] == ["speedups"]


def test_what_did_not_run_is_listed_with_its_reason():
    rows = [row("stream", 1.0), row("pdl", 0.0, status="refused", reason="needs 9.0"), row("tb_static", 1.0)]
    rows += [row("pdl", 0.0, network="b", status="refused", reason="needs 9.0")]
    rows += [row("", 0.0, network="c", gpu="v100", status="failed", reason="no kernels there")]
    rows += [row("", 0.0, network="d", status="missing")]
    section = left_out(table_of(rows))[0]
    assert section.rows == [
        ["2 networks", "forward", "h200", "pdl", "needs 9.0"],
        ["c", "forward", "v100", "all", "no kernels there"],
        ["d", "forward", "h200", "all", "missing"],
    ]
    assert [each.name for each in sections(table_of(rows))] == ["speedups", "nothing", "left_out"]
    assert "no kernels there" in plain(section)


def test_means_of_a_gpu_and_a_pass():
    rows = [row("stream", 1.0, name) for name in "ab"] + [
        row("tb_static", g, n) for g, n in ((1.0, "a"), (4.0, "b"))
    ]
    *_, last = summary(table_of(rows)).rows
    assert last[:7] == ["h200", "forward", "mean of 2", "", "-", "2.00", "-"]
    assert [len(each.rows) for each in without(cases_of(table_of(rows)))] == [1, 0]


def test_a_study_goes_on_and_says_what_a_gpu_cannot_run(tmp_path):
    pytest.importorskip("matplotlib")
    args = ("--quick", "--networks", "lenet", "--passes", "forward", "--gpu", "h200,titan_x_pascal")
    args = (*args, "--schemes", "tb_static,acs_sw", "--out", "s.h5", "--picture", "yes")
    dry = run(tmp_path, *args, "--dry-run")
    assert (dry.returncode, "0 of 2 points done" in dry.stdout) == (0, True), dry.stderr
    assert not (tmp_path / "s.h5").exists()
    done = run(tmp_path, *args)
    assert done.returncode == 0, done.stderr
    table = stats.Results(tmp_path / "s.h5").array("networks")
    assert [*zip(table["gpu"], table["scheme"], table["status"], strict=True)] == [
        (b"h200", b"stream", b"ok"),
        (b"h200", b"tb_static", b"ok"),
        (b"h200", b"acs_sw", b"ok"),
        (b"titan_x_pascal", b"", b"failed"),
    ]
    assert table["speedup"][1] > 1
    assert 0 < table["energy_saved"][1] < 1
    assert 0 < table["stands_in"][0] < 1
    assert table["kernels"][0] == 16
    assert b"GPU titan_x_pascal" in table["reason"][3]
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    # the folder has what was simulated: it is not simulated again
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("*.h5")}
    again = run(tmp_path, *args, "--json")
    assert again.returncode == 0, again.stderr
    assert files == {path: path.stat().st_mtime_ns for path in files}
    assert [each["status"] for each in json.loads(again.stdout)["networks"]] == ["ok"] * 3 + ["failed"]


def test_a_gpu_that_there_is_not(tmp_path):
    refused(run(tmp_path, "--gpu", "v100,v101"), "--gpu: ")
    refused(run(tmp_path, "--gpu", "v100,v100"), "--gpu: v100 is listed twice")
    refused(run(tmp_path, "--networks", "lenett"), "did you mean")


def test_an_empty_table_draws_nothing():
    pytest.importorskip("matplotlib")
    from pysim.stats.studies.networks_picture import draw_networks

    with pytest.raises(stats.StoreError, match="no network to draw"):
        draw_networks(stats.schema.empty("networks"), "title")
