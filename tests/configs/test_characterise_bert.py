"""The breakdown of a training step of BERT, as a user calls the script, of a tiny network."""

from __future__ import annotations

import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pysim import stats
from pysim.workloads.studies import bert_step as study
from tests.support.calls import CONFIGS, caller, refused

run = caller("characterise_bert", "--quiet", "--threads", "1")


def called(monkeypatch: pytest.MonkeyPatch, layers: int, *words: object) -> None:
    """Call the script in this process, with a network of which a step takes a moment."""
    tiny = replace(study.NETWORK, layers=layers, d=128, heads=2, ffn=256, vocabulary=500)
    monkeypatch.setattr(study, "NETWORK", tiny)
    monkeypatch.setattr(sys, "argv", ["script", *map(str, words), "--quiet", "--threads", "1"])
    runpy.run_path(str(CONFIGS / "characterise_bert.py"))["main"]()


def test_cases_are_broken_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "a.h5"
    called(monkeypatch, 4, "batch=1,seq=32", "batch=1,seq=32,dtype=fp32", "--out", out, "--picture", "yes")
    shown = capsys.readouterr().out
    for text in ("3 of 4 layers simulated", "1 x 32 tokens, fp32:", "as measured", "no target", "recalled"):
        assert text in shown
    results = stats.load(out)
    table, runs = results.array("bert_breakdown"), results.array("runs")
    assert [kind.decode() for kind in table["kind"]] == [*study.CLASSES] * 2
    for number in (0, 1):
        rows = table[table["run"] == number]
        assert rows["share"].sum() == pytest.approx(1)
        assert 0 <= runs["time_us"][number] - rows["time_us"].sum() < 2  # from the last end to completion
        assert rows["dtype"][0] == (b"fp16", b"fp32")[number]
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_json_of_all_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called(monkeypatch, 1, "batch=1,seq=32", "--simulated", "0", "--json", "--out", tmp_path / "b.h5")
    tables = json.loads(capsys.readouterr().out)
    assert len(tables["bert_breakdown"]) == len(study.CLASSES)
    assert tables["runs"][0]["replay_error"] == 0


def test_wrong_options_are_one_line(tmp_path: Path) -> None:
    refused(run(tmp_path, "heads=2"), "no key 'heads'")
    refused(run(tmp_path, "seq=1024"), "bert-large: seq = 1024: at most 512")
    refused(run(tmp_path, "--simulated", "2"), "simulated = 2: must be 0 (all layers), or 3 or more")
    refused(run(tmp_path, "--schemes", "graph"), "--schemes")


def test_no_rows_draw_nothing() -> None:
    pytest.importorskip("matplotlib")
    from pysim.stats.studies.bert_picture import draw_bert

    with pytest.raises(stats.StoreError, match="no case to draw"):
        draw_bert(np.zeros(0, stats.schema.dtype("bert_breakdown")), "title")
