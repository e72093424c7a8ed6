"""Where a training step of BERT spends its time: classes of kernels, of whole and of shortened steps."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from pysim import Config, WorkloadError, simulate
from pysim.machine.devices import device
from pysim.stats.studies import bert as text
from pysim.workloads import make
from pysim.workloads.framework.tape import Origin
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.studies import bert_step as study
from pysim.workloads.studies.bert_step import Case, bert_step, class_of

H200 = Config.resolve(device("h200"))
HINTS = MachineHints.of(H200)
TINY = replace(study.NETWORK, layers=4, d=128, heads=2, ffn=256, vocabulary=500)


@cache
def step(dtype, simulated=0):
    return bert_step(Case(1, 32, dtype), HINTS, simulated, TINY)


@pytest.mark.parametrize("dtype", ["fp16", "fp32", "amp"])
def test_every_kernel_is_in_one_class_and_every_class_has_kernels(dtype):
    made = step(dtype)
    assert len(made.classes) == len(made.job.kernels)
    assert {*made.classes} == {*study.CLASSES}
    counts = Counter(made.classes)
    # two products, backward four, each of one kernel or more
    assert all(counts[kind] >= 6 * TINY.layers for kind in ("qkv_o", "fc", "attention"))
    pairs = {(k.name, kind) for k, kind in zip(made.job.kernels, made.classes, strict=True)}
    assert {kind for name, kind in pairs if "lamb" in name} == {"optimizer"}
    assert {kind for name, kind in pairs if "gemm" in name} <= {*study.PRODUCTS}
    assert {kind for name, kind in pairs if name == "gelu_backward"} == {"gelu"}
    assert sum(made.flops.values()) == made.job.totals.flops
    assert made.flops.keys() == {*study.PRODUCTS}


def test_autocast_adds_casts_alone():
    counts = {dtype: Counter(step(dtype).classes) for dtype in ("fp16", "amp")}
    apart = {kind for kind in study.CLASSES if counts["fp16"][kind] != counts["amp"][kind]}
    assert apart == {"pointwise", "loss", "optimizer"}  # the loss scale is in the last two
    assert counts["amp"]["pointwise"] > 2 * counts["fp16"]["pointwise"]


@pytest.mark.parametrize("dtype", ["fp16", "amp"])
def test_a_shortened_step_has_the_classes_and_flops_of_the_whole(dtype):
    whole, short = step(dtype), step(dtype, 3)
    assert short.job.shortened is not None
    assert short.classes == whole.classes
    assert short.flops == whole.flops


def test_the_step_is_that_of_the_zoo():
    mine = bert_step(Case(1, 128, "fp16"), HINTS, shape=replace(study.NETWORK, layers=1))
    zoo = make("bert-large:batch=1,seq=128,pass=training,layers=1", H200)
    assert [(k.name, k.grid, [*map(repr, k.args)]) for k in mine.job.kernels] == [
        (k.name, k.grid, [*map(repr, k.args)]) for k in zoo.kernels
    ]
    assert mine.job.totals == zoo.totals


def test_rows_add_up_to_the_run():
    made = step("fp16", 3)
    kernels = simulate(H200, made.job, ("stream",), tables=("kernels",), threads=1).listed()["kernels"]
    rows = study.breakdown_rows(made, kernels[::-1])
    assert [row["kind"] for row in rows] == [*study.CLASSES]
    assert sum(row["time_us"] for row in rows) == pytest.approx(kernels["last_end_us"].max())
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert sum(row["kernels"] for row in rows) == len(kernels) == len(made.classes)
    assert sum(row["l2_bytes"] for row in rows) == (kernels["load_bytes"] + kernels["store_bytes"]).sum()
    last = kernels[kernels["kernel"] >= made.classes.index("optimizer")]
    (lamb,) = (row for row in rows if row["kind"] == "optimizer")
    assert lamb["kernels"] == len(last)
    assert lamb["l2_bytes"] == (last["load_bytes"] + last["store_bytes"]).sum()
    for row in rows:
        assert row["flops_per_byte"] == pytest.approx(row["flops"] / row["l2_bytes"])
    with pytest.raises(ValueError, match="rows of"):
        study.breakdown_rows(made, kernels[1:])


@pytest.mark.parametrize(
    ("origin", "kind"),
    [
        (Origin(("layer 3", "qkv"), "linear"), "qkv_o"),
        (Origin(("layer 3", "f2"), "linear", True), "fc"),
        (Origin(("head",), "linear", True), "head"),
        (Origin(("layer 3", "f2"), "column_sums", True), "pointwise"),
        (Origin(("layer 3", "f2"), "cast"), "pointwise"),
        (Origin(("layer 3",), "fused_attention", True), "attention"),
        (Origin(("loss",), "add"), "loss"),
        (Origin((), "backward_from"), "loss"),
    ],
)
def test_classes_of_origins(origin, kind):
    assert class_of(origin) == kind


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (Origin(("layer 0",), "sigmoid"), "operation 'sigmoid' in layer 0: belongs to none of qkv_o, fc"),
        (Origin(("layer 0", "gate"), "linear"), "operation 'linear' in layer 0/gate: belongs to none"),
        (Origin(), "operation '': belongs to none of"),
    ],
)
def test_an_unknown_operation_is_an_error(origin, said):
    with pytest.raises(WorkloadError, match=said):
        class_of(origin)


def test_cases_take_what_is_left_out_from_the_default():
    assert Case.of("seq=512") == Case(4, 512, "fp16")
    assert Case.of("dtype=amp,batch=2") == Case(2, 128, "amp")
    for wrong, said in (("heads=2", "no key 'heads'"), ("seq=x", "seq"), ("seq=1,seq=2", "each key once")):
        with pytest.raises(WorkloadError, match=said):
            Case.of(wrong)


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (Case(1, 1024, "fp16"), "seq = 1024: at most 512"),
        (Case(1, 128, "int8"), "dtype = int8: must be"),
        (Case(0, 128, "fp16"), "batch = 0"),
    ],
)
def test_wrong_cases(case, said):
    with pytest.raises(WorkloadError, match=f"bert-large: .*{said}"):
        bert_step(case, HINTS, 3, TINY)


def test_published_figures_are_of_classes_of_their_precision():
    assert {*text.NAMES} == {*study.CLASSES}
    whole = {kind for figure in text.PUBLISHED for kind in figure.classes}
    assert whole <= {*study.CLASSES}
    assert {*text.PUBLISHED[2].classes} == {*study.CLASSES} - {*study.PRODUCTS}
    kinds = [kind.encode() for kind in study.CLASSES]
    table = np.zeros(
        len(kinds),
        [
            ("run", "<i4"),
            ("batch", "<i8"),
            ("seq", "<i8"),
            ("dtype", "S16"),
            ("kind", "S16"),
            ("share", "<f8"),
        ],
    )
    table["kind"], table["dtype"], table["share"] = kinds, b"fp32", 1 / len(kinds)
    rows = text.published(table, "title").rows
    said = {tuple(row[:2]): row[-1] for row in rows}
    assert said["linear and FC GEMMs", "fp32"] == f"{200 / len(kinds):.1f}"
    assert said["all but GEMMs", "fp32"] == f"{800 / len(kinds):.1f}"
    assert said["LAMB", "mixed"] == ""
