"""Communication in tensor-parallel layers: what a layer launches, what is projected from it, and shares."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from pysim import Config, WorkloadError, simulate
from pysim.machine.devices import device
from pysim.workloads.framework.tape import Origin
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.studies import communication as study
from pysim.workloads.studies.communication import KINDS, Layered, Part, Ring, Shape, part_of, project

BASE = Shape(256, 128, 1, 2)
H200 = Config.resolve(device("h200"))
TIMES = {
    Part(kind, shared, backward): float(3 + number)
    for number, (kind, shared, backward) in enumerate(
        (kind, shared, backward)
        for kind in KINDS
        for shared in (True, False)
        for backward in (False, True)
        if shared is (kind in ("gemm", "attention")) or kind == "pointwise"
    )
}


@pytest.fixture(scope="module")
def built():
    return study.layer_step(BASE, Ring(), MachineHints.of(H200))


def test_every_kernel_of_a_layer_has_a_kind_and_every_kind_has_kernels(built):
    job, origins = built
    assert len(job.kernels) == len(origins)
    found = {}
    for kernel, origin in zip(job.kernels, origins, strict=True):
        found.setdefault(part_of(origin).kind, []).append(kernel.name)
    assert found.keys() == {*KINDS}
    assert found["all_reduce"] == ["all_reduce"] * 4
    assert "hopper_gemm" not in {name for kind, names in found.items() if kind != "gemm" for name in names}
    assert [name for name in found["gemm"] if "gemm" in name] == ["hopper_gemm"] * 12  # four, backward eight


def test_an_unknown_operation_is_an_error():
    with pytest.raises(WorkloadError, match="operation 'tanh': belongs to none of gemm"):
        part_of(Origin((), "tanh"))


def test_times_go_from_end_to_end_and_all_reduces_take_their_delays(built):
    job, origins = built
    kernels = simulate(H200, job, ("stream",), tables=("kernels",), threads=1).listed()["kernels"]
    times = study.part_times(kernels[::-1], origins)
    ends = kernels["last_end_us"]
    assert sum(times.values()) == pytest.approx(ends[-1] - ends[0])  # all but the kernel before the layer
    delay, spent = Ring().layer_us(BASE), Layered(times).us("all_reduce")
    assert delay < spent < delay + 4 * 5  # and a launch each
    with pytest.raises(ValueError, match="rows of"):
        study.part_times(kernels[1:], origins)


def test_kernels_out_of_order_are_no_stream_order():
    rows = np.zeros(2, [("kernel", "<i4"), ("last_end_us", "<f8")])
    rows["kernel"], rows["last_end_us"] = (0, 1), (2.0, 1.0)
    with pytest.raises(ValueError, match="another order"):
        study.part_times(rows, [Origin(operation="add")] * 2)


def test_a_projection_of_the_baseline_is_the_baseline():
    assert project(TIMES, BASE, BASE) == TIMES
    rows = study.check_rows(TIMES, BASE, BASE, TIMES)
    assert [row["error"] for row in rows] == [0] * (len(KINDS) + 2)


# powers of two by which a kind grows when one size is doubled
@pytest.mark.parametrize(
    ("shape", "grows"),
    [
        (Shape(512, 128, 1, 2), {"gemm": 2, "attention": 1, "norm": 1, "all_reduce": 1}),
        (Shape(256, 256, 1, 2), {"gemm": 1, "attention": 2, "norm": 1, "all_reduce": 1}),
        (Shape(256, 128, 2, 2), {"gemm": 1, "attention": 1, "norm": 1, "all_reduce": 1}),
        (Shape(512, 128, 1, 4), {"gemm": 1, "attention": 0, "norm": 1, "all_reduce": log2(3)}),
    ],
)
def test_kinds_grow_with_their_work(shape, grows):
    was, made = Layered(TIMES), Layered(project(TIMES, BASE, shape))
    for kind, power in grows.items():
        assert made.us(kind) / was.us(kind) == pytest.approx(2**power), kind


def test_shards_share_only_features_between_gemms():
    made = project(TIMES, Shape(512, 128, 1, 2), Shape(512, 128, 1, 4))
    for part, time in made.items():
        if part.kind == "pointwise":
            assert time == TIMES[part] / (2 if part.shared else 1)
    assert part_of(Origin((), "gelu")).shared
    assert part_of(Origin(("f1",), "column_sums")).shared
    assert not part_of(Origin((), "column_sums")).shared
    assert not part_of(Origin((), "layer_norm")).shared


def test_the_share_grows_with_the_ratio():
    shares = [Layered(TIMES, ratio).share for ratio in (1, 2, 4)]
    assert shares == sorted(shares)
    odds = [share / (1 - share) for share in shares]
    assert odds == pytest.approx([odds[0], 2 * odds[0], 4 * odds[0]])
    assert Layered(TIMES, 2).compute_us == Layered(TIMES).compute_us / 2


def test_a_ring_sends_twice_what_others_have():
    links = Ring(gbs=100, latency_us=2).links(4, 1000)
    assert links.time_us(1_000_000) == pytest.approx(6 * 2 + 1.5 * 10)
    # 12 x 256 x 256 weights of 2 B, of which a shard has half
    assert Ring(gbs=100).gradients_us(BASE) == pytest.approx(2 * 12 * 256 * 256 / 1e5)


def test_the_sweep_has_all_sizes_and_the_rule_of_the_picture():
    rows = study.sweep_rows(TIMES, BASE, Ring())
    assert len(rows) == 3 * len([*study.shapes()])
    for key, values in (("hidden", study.HIDDEN), ("seq", study.SEQ), ("batch", study.BATCH)):
        assert {row[key] for row in rows} == {*values}
    assert {row["shards"] for row in rows} == {*study.SHARDS}
    sizes = {(shape.hidden, shape.shards) for shape in study.shapes()}
    assert {(hidden, hidden // study.FEATURES_A_SHARD) for hidden in study.HIDDEN} <= sizes
    assert all(0 < row["share"] < 1 and 0 < row["overlapped"] <= 1 for row in rows)


def test_checked_shapes_are_near_and_possible():
    assert len(study.checked_shapes(Shape(4096, 2048, 1, 8))) == 6
    # a quarter of the features has no head a shard, a quarter of the tokens no tile, half the shards is one
    assert study.checked_shapes(BASE) == [Shape(512, 128, 1, 2), Shape(256, 256, 1, 2)]


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((256, 128, 1, 1), "shards = 1: must be 2 or more"),
        ((384, 128, 1, 2), "hidden = 384: must be a multiple of 128"),
        ((256, 100, 1, 2), "seq = 100: must be a multiple of 128"),
    ],
)
def test_wrong_shapes(sizes, text):
    with pytest.raises(WorkloadError, match=text):
        Shape(*sizes)


def test_other_gpus_have_no_fused_attention():
    with pytest.raises(WorkloadError, match="fused attention on v100"):
        study.layer_step(BASE, Ring(), MachineHints.of(Config.resolve(device("v100"))))
