"""The study of schemes that decide for themselves: its points, what it makes of their results, its page."""

from __future__ import annotations

import json
import runpy

import numpy as np
import pytest

from docs.builders import dynamic as page
from pysim import stats
from pysim.machine.devices import DEVICES
from pysim.schemes.registry import parse_scheme
from pysim.stats.studies.dynamic import by_workload, losses, plain, sections, summary, variants
from pysim.stats.studies.dynamic_picture import draw_dynamic
from pysim.sweep.point import arguments_of
from pysim.workloads.registry import ZOO
from pysim.workloads.studies.dynamic import ABLATION, GROUPS, VARIANTS, half_of, points
from tests.support.calls import CONFIGS, caller, refused

run = caller("study_dynamic", "--quiet", "--jobs", "1", "--threads", "1")
SCRIPT = runpy.run_path(str(CONFIGS / "study_dynamic.py"))


@pytest.mark.parametrize("quick", [False, True])
def test_every_point_has_keys_that_its_workload_takes(quick):
    made = points((*GROUPS,), (*VARIANTS,), SCRIPT["GPUS"], SCRIPT["SCHEMES"], {}, quick)
    assert len({point.place for point in made}) == len(made)
    for point in made:
        arguments_of(point)
        assert point.gpu in DEVICES
        point.config()
        for scheme in point.schemes:
            parse_scheme(scheme)


def test_most_networks_of_the_zoo_are_in_it():
    names = {text.partition(":")[0] for text in GROUPS["zoo"].workloads.values()}
    assert {"bert-base", "gpt2", "resnet18", "gnmt", "deepspeech2", "moe-block", "lenet"} <= names <= {*ZOO}


def test_halves_are_by_hash_and_of_like_size():
    halves = [half_of(text, gpu) for g in GROUPS.values() for text in g.workloads.values() for gpu in DEVICES]
    assert set(halves) == {"tuning", "apart"}
    assert 0.4 < halves.count("apart") / len(halves) < 0.6


def rows(times, variant="-", case="x", half="tuning"):
    """Rows of one case; ``times``: of each scheme, with estimate 50."""
    made = []
    for scheme, time in times.items():
        best = min([t for name, t in times.items() if name in SCRIPT["RIVALS"]], default=80.0)
        made.append(
            {"run": len(made), "group": "mixed", "case": case, "gpu": "h200", "half": half}
            | {"variant": variant}
            | {"workload": case, "scheme": scheme, "status": "ok", "reason": "", "time_us": time}
            | {"stream_us": 100.0, "estimate_us": 50.0, "best_us": best, "share": (100 - time) / 50}
            | {"over_best": best / time, "hint_bytes": 32.0, "tb_pairs": 0.5}
        )  # fmt: skip
    return made


def test_what_the_tables_say():
    times = {"stream": 100.0, "graph": 80.0, "pool": 75.0, "tb_auto": 60.0}
    slow = {"stream": 100.0, "graph": 80.0, "pool": 75.0, "tb_auto": 90.0}
    label = next(iter(ABLATION))
    held = [*rows(times), *rows(slow, case="y", half="apart"), *rows({"tb_auto": 72.0}, label)]
    table = stats.schema.from_rows("dynamic", held)
    line = by_workload(table, "mixed").rows[0]
    assert line[:4] == ["x", "h200", "tuning", "50.0"]
    assert line[-4:] == ["80 %", "1.250", "32", "50 %"]
    found = {tuple(row[:2]): row for row in summary(table).rows}
    assert found["mixed", "tb_auto"][2:] == ["2", "0.400", "1.021", "1", "0.833 y, h200"]
    assert found["mixed, apart", "tb_auto"][3] == "0.200"
    assert [row[1] for row in losses(table).rows] == ["y"]
    changed = variants(table).rows
    assert [row[0] for row in changed] == ["as it is", label]
    assert changed[1][4:6] == ["1.200", "1.200"]  # 72 us for 60
    assert len(draw_dynamic(table)) > 10_000
    assert all(plain(section) for section in sections(table))
    with pytest.raises(stats.StoreError, match="tb_auto has not been simulated"):
        draw_dynamic(table[:1])


def test_a_run_of_the_script_and_its_page(tmp_path, monkeypatch):
    out = tmp_path / "out.h5"
    text = ("--quick", "--groups", "blockmaestro", "--variants", "none", "--gpu", "titan_v")
    text += ("--schemes", "graph,tb_auto", "--folder", str(tmp_path / "f"), "--out", str(out))
    done = run(tmp_path, *text, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    table = stats.Results(out).array("dynamic")
    assert {row["scheme"] for row in table} == {b"stream", b"graph", b"tb_auto"}
    auto = table[table["scheme"] == b"tb_auto"]
    assert (auto["hint_bytes"] > 0).all()
    assert np.isfinite(auto["share"]).all()
    copy = tmp_path / "dynamic.md"
    copy.write_text(page.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(page, "PAGE", copy)
    monkeypatch.setattr(page, "DOCS", tmp_path)
    page.write(str(out))
    assert "| 3mm | titan_v |" in copy.read_text(encoding="utf-8")
    assert (tmp_path / page.PICTURE).read_bytes().startswith(b"\x89PNG")


def test_bad_input(tmp_path):
    refused(run(tmp_path, "--groups", "acss"), "did you mean")
    refused(run(tmp_path, "--gpu", "no_such"), "--gpu")
    refused(run(tmp_path, "--variants", "some"), "--variants")


def test_the_page_shows_the_code():
    text = page.PAGE.read_text(encoding="utf-8")
    for made in (page.cost(), page.hints(), page.reasons()):
        assert made in text
