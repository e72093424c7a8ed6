"""CUTLASS's products for Ampere, parts of K in turn, and cuSync's policies and optimisations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pysim import simulate
from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.program.warp_program import OP, PIPE
from pysim.workloads.kernels.cutlass import cutlass_gemm, multistage
from pysim.workloads.kernels.implicit_gemm import conv_chain, registers_of
from pysim.workloads.kernels.tiling import step_work
from pysim.workloads.networks.mlp_pair import mlp_pair, tiling
from pysim.workloads.validation.cusync import MLP, MODES
from pysim.workloads.validation.suites import SUITES, cases_of
from tests.support.thin import thin

SMALL = "64x64x32x32x32x32"
LAUNCHES = ("streams+gate_first", "streams", "streams+no_gate", "pdl", "graph")
OPTIONS = ("", "wait_early", "tile_order", "fence_system+poll_each")


def totals(ops):
    """Sum (issued by pipe, wavefronts, ldmatrix and others, loads) of one warp, loops included."""
    times = [1] * len(ops)
    for at, op in enumerate(ops):
        if op.kind == OP["LOOP"]:
            times[op.target : at] = [t * op.count for t in times[op.target : at]]
    sums = {"tensor": 0, "smem": 0, "loads": 0, "stores": 0, "barriers": 0}
    for n, op in zip(times, ops, strict=True):
        sums["tensor"] += n * op.pipes[PIPE["tensor"]]
        sums["smem"] += n * op.smem if op.kind == OP["COMPUTE"] else 0
        sums["loads"] += n * (op.kind == OP["LOAD"])
        sums["stores"] += n * (op.kind == OP["STORE"])
        sums["barriers"] += n * (op.kind == OP["BARRIER"])
    return sums


@pytest.mark.parametrize(
    ("tile", "hmma", "lds"),
    [
        ("32x128x32x32x32x32", 128, 16),
        ("64x128x32x32x64x32", 256, 24),
        ("64x256x32x32x128x32", 256, 24),
        ("256x64x32x128x32x32", 256, 24),
        ("128x128x32x64x64x32", 512, 32),
        ("128x256x32x64x128x32", 512, 32),
        ("256x128x32x128x64x32", 512, 32),
        ("256x256x32x128x128x32", 512, 32),
        ("256x256x32x128x64x32", 512, 32),
    ],
)
def test_volta_multiplies_what_its_epilogue_stores(tile, hmma, lds):
    """A step's HMMA and LDS of a warp as in the SASS of these kernels, warps of 128 rows or columns too."""
    work = step_work(tiling(tile, 2, 1), 32, 2)
    assert (work.math, work.lds, work.wavefronts) == (hmma, lds, 4 * lds)


@pytest.mark.parametrize(
    ("tile", "registers", "resident"),
    [(SMALL, 118, 4), ("64x128x32x32x64x32", 168, 3), ("64x256x32x32x128x32", 190, 2)],
)
def test_registers_of_convolutions(tile, registers, resident):
    """What ptxas gives them is met within eight registers, and so many TBs fit an SM."""
    mine = registers_of(tiling(tile, 2, 1))
    assert abs(mine - registers) <= 8
    assert 65536 // (mine * 128) == 65536 // (-(-registers // 8) * 8 * 128) == resident


@pytest.mark.parametrize(
    ("tile", "stages", "steps"),
    [
        ("128x256x32x64x64x32", 3, 12),
        ("256x128x64x64x64x64", 3, 7),
        ("128x128x32x64x64x32", 5, 4),
        ("160x128x32x80x64x32", 4, 2),
        ("64x256x32x64x64x32", 4, 1),
    ],
)
def test_instructions_of_a_tile(tile, stages, steps):
    """Multiplications, fragments, copies and stores follow from the shape, however long the loop is."""
    kind = multistage(tile, stages, 1)
    memory = Memory()
    k = steps * kind.tk
    a, b = memory.tensor("a", kind.tm, k, 2), memory.tensor("b", k, kind.tn, 2)
    kernel = cutlass_gemm("p", a, b, memory.tensor("c", kind.tm, kind.tn, 2), kind)
    sums = totals(kernel.program.variants[7])
    assert sums["tensor"] * 16 * 8 * 16 == kind.wm * kind.wn * k
    rounds, each = kind.wm // 8, kind.wm * kind.wn // 32 // (kind.wm // 8)
    # ldmatrix: 512 bytes in four wavefronts; each sum is written and read once, 32 of 4 bytes a wavefront
    assert sums["smem"] == (kind.wm + kind.wn) // 16 * 4 * (k // 16) + 2 * rounds * each
    # 16 bytes a lane
    assert sums["loads"] * kind.warps * 512 == (kind.tm + kind.tn) * k * 2
    assert sums["stores"] * kind.warps * 512 == kind.tm * kind.tn * 2
    assert sums["barriers"] == steps + 2 * rounds
    assert kernel.program.smem == stages * (kind.tm + kind.tn) * kind.tk * 2


@pytest.mark.parametrize(
    ("tile", "stages", "split", "message"),
    [
        ("128x256x32", 3, 1, "must be six sizes"),
        ("128x256x32x64x64x16", 3, 1, "K of a warp"),
        ("128x256x32x48x64x32", 3, 1, "multiples of the warp's"),
        ("128x256x16x64x64x16", 3, 1, "K 32 or 64"),
        ("128x256x32x64x64x32", 2, 1, "stages = 2: must be from 3 to 5"),
        ("128x256x32x64x64x32", 6, 1, "stages = 6: must be from 3 to 5"),
        ("128x256x32x64x64x32", 3, 0, "split K = 0"),
        ("16x512x32x16x16x32", 3, 1, "share the copies evenly"),
    ],
)
def test_tiles_that_cannot_be(tile, stages, split, message):
    with pytest.raises(WorkloadError, match=message):
        multistage(tile, stages, split)


def test_products_that_cannot_be():
    memory, kind = Memory(), multistage(SMALL, 3, 1)
    a, b, c = memory.tensor("a", 64, 96, 2), memory.tensor("b", 96, 64, 2), memory.tensor("c", 64, 64, 2)
    with pytest.raises(WorkloadError, match="shapes must agree"):
        cutlass_gemm("p", a, memory.tensor("b", 64, 64, 2), c, kind)
    cutlass_gemm("p", a, b, c, multistage("64x64x64x32x32x64", 3, 1))  # K ends within a step
    odd = [memory.tensor(name, *size, 2) for name, size in {"a": (64, 95), "b": (95, 64)}.items()]
    cutlass_gemm("p", *odd, c, kind)  # elements of a pass through registers
    with pytest.raises(WorkloadError, match="2 bytes an element"):
        cutlass_gemm("p", a, b, memory.tensor("c", 64, 64, 4), kind)


def pair(device, *, split=1, gated=False, m=200):
    n1, k2 = (256, 128) if gated else (256, 256)
    make = multistage if device == "a100" else tiling
    stages = 3 if device == "a100" else 2
    both = make(SMALL, stages, split), make(SMALL, stages, 1)
    return mlp_pair((m, n1, 128, 192, k2), *both, gated=gated)


def statuses(device, job, schemes):
    made = simulate(
        device, job, schemes, threads=1, tables="runs",
        overrides={"sim.oracle": 1, "scheme.hypothetical": 1},
    )  # fmt: skip
    rows = made.frame("runs")
    return dict(zip(rows["scheme"], zip(rows["status"], rows["reason"], strict=True), strict=True))


@pytest.mark.parametrize(
    ("device", "split"),
    thin([("a100", 1), ("a100", 2), ("v100", 1), ("v100", 2)], [("a100", 1), ("v100", 2)]),
)
def test_every_policy_and_launch_obeys_the_dependences(device, split):
    """The oracle watches each access: row, tile and strided semaphores in every form of launch."""
    schemes = [
        "+".join(word for word in (f"cusync:{policy}", launch, extra) if word)
        for policy, launch, extra in itertools.product(("row", "tile"), LAUNCHES, OPTIONS)
    ]
    found = statuses(device, pair(device, split=split), schemes)
    assert {status for status, _ in found.values()} == {"ok"}
    if device == "a100":
        strided = [f"cusync:strided+{launch}+poll_each" for launch in LAUNCHES]
        found = statuses(device, pair(device, split=split, gated=True), strided)
        assert {status for status, _ in found.values()} == {"ok"}


@pytest.mark.parametrize("split", [1, 2])
def test_convolutions_wait_for_a_halo(split):
    job = conv_chain(2, 64, 14, 3, tiling(SMALL, 2, split))
    schemes = [
        f"cusync:{policy}+{launch}+{extra}"
        for policy, launch, extra in itertools.product(
            ("row", "conv"), LAUNCHES[:3], ("wait_early+fence_system", "tile_order")
        )
    ]
    found = statuses("v100", job, ["host", "tb_static", *schemes])
    assert {status for status, _ in found.values()} == {"ok"}


@pytest.mark.parametrize(
    ("device", "job", "scheme", "message"),
    [
        ("a100", lambda: pair("a100"), "cusync:strided", "read in parts that lie apart"),
        ("a100", lambda: pair("a100"), "cusync:conv", "read with a halo around it"),
        (
            "a100",
            lambda: pair("a100", split=2),
            "fused:tile",
            "its TBs wait for each other: they do not fuse",
        ),
    ],
)
def test_what_a_policy_does_not_fit_is_refused_in_one_line(device, job, scheme, message):
    status, reason = statuses(device, job(), scheme)[scheme]
    assert status == "refused"
    assert message in reason
    assert "\n" not in reason


def times(device, job, schemes):
    made = simulate(device, job, schemes, threads=1, tables="runs", baseline=False)
    rows = made.frame("runs")
    return dict(zip(rows["scheme"], rows["time_us"], strict=True))


def test_each_optimisation_saves_time():
    job = pair("a100", m=128)
    base = "cusync:tile+streams+gate_first+tile_order+wait_early"
    found = times(
        "a100", job,
        (base, base.replace("+tile_order", ""), base.replace("+wait_early", ""), base + "+fence_system"),
    )  # fmt: skip
    plain, order, late, fence = found.values()
    assert max(order, late) < plain < fence
    # two round trips to L2 and two barriers, for each of two TBs that follow each other
    assert 0.5 < plain - order < 2
    # 2,566 cycles of 1,410 MHz
    assert fence - plain == pytest.approx(2566 / 1410, rel=0.3)


def test_gates_are_launches_of_their_own():
    job = pair("a100", m=64)
    for scheme, launches in (("cusync:tile+gate_first", 3), ("cusync:tile", 3), ("cusync:tile+no_gate", 2)):
        made = simulate("a100", job, scheme, threads=1, baseline=False)
        assert len(made.frame("kernels")) == launches


def test_without_gates_launches_are_off_the_path():
    """A kernel behind a gate is launched when its gate has ended, however long that takes; W waits inside."""
    job = pair("a100", m=64)
    took, late = {}, {}
    for scheme, gap in itertools.product(("cusync:tile", "cusync:tile+no_gate"), (2, 8)):
        made = simulate(
            "a100", job, scheme, threads=1, baseline=False, overrides={"gpu.cp.stream_gap": f"{gap}us"}
        )
        kernels = made.frame("kernels")
        took[scheme, gap] = made.frame("runs")["time_us"][0]
        late[scheme, gap] = kernels["admitted_us"].iloc[-1] - kernels["last_end_us"][0]
    assert took["cusync:tile+no_gate", 2] == took["cusync:tile+no_gate", 8]
    # a TB that came before its producers had ended has what it does then to do as well, and polls more often
    saved = took["cusync:tile", 8] - took["cusync:tile+no_gate", 8]
    assert saved == pytest.approx(late["cusync:tile", 8], rel=0.1)
    assert late["cusync:tile", 8] > 4


def test_parts_of_k_take_turns():
    """Each part adds a poll, its stores and a hand-over to the time of the one before."""
    memory = Memory()
    x, w = memory.tensor("x", 64, 1024, 2), memory.tensor("w", 1024, 64, 2)
    kinds = {split: multistage(SMALL, 3, split) for split in (2, 4, 8)}
    ends = {}
    for split, kind in kinds.items():
        kernel = cutlass_gemm("p", x, w, memory.tensor("c", 64, 64, 2), kind)
        made = simulate("a100", Job("p", [kernel]), "stream", threads=1, overrides={"sim.oracle": 1})
        tbs = made.frame("tbs").sort_values("tb")
        assert (np.diff(tbs["end_ns"]) > 300).all()
        ends[split] = np.diff(tbs["end_ns"]).mean()
    assert max(ends.values()) < 3000


def test_tiles_and_optimisations_come_from_the_script():
    cases = {case.case: case for case in cases_of(MLP)[0]}
    late = cases["gpt3|2304|6144|12288|12288|6144|rowsync"]
    assert (late.kind, late.task[5]) == ("tiles not listed", "256x128x32x64x64x32")
    assert late.scheme.startswith("cusync:row+")
    assert "wait_early" in late.scheme
    tiles = cases["llama|512|5632|8192|8192|2816|tilesync"]
    assert tiles.scheme.startswith("cusync:strided+")
    assert "wait_early" not in tiles.scheme
    conv = {case.case: case for case in cases_of(SUITES["cusync-conv"])[0]}
    assert "no_gate" in conv["resnet38|4|128|28|2|rowsync"].scheme
    assert "gate_first+tile_order" in conv["resnet38|8|64|56|2|tilesync"].scheme
    assert {case.mode for case in conv.values()} == set(MODES)
