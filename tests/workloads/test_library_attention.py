"""Attention as PyTorch launches it: grids, work and bytes, refusals, a measured row of each kernel."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from pysim import Job, Memory, WorkloadError
from pysim.isa import OPS
from pysim.machine.system import resolve
from pysim.params import PIPES
from pysim.workloads.library.attentions.attention import attention
from pysim.workloads.library.attentions.attention_flash_backward import REDUCE_GAP
from pysim.workloads.library.attentions.attention_hopper import forward_turns
from pysim.workloads.library.attentions.attention_persistent import TILE_STEPS, deal
from pysim.workloads.library.attentions.attention_problem import Attention
from pysim.workloads.library.attentions.attention_sampling import sampled
from pysim.workloads.library.attentions.attention_split import grouped, split_count
from pysim.workloads.validation.attention import ATTENTION
from pysim.workloads.validation.cases import tables_of
from pysim.workloads.validation.suites import cases_of

SMALL = Attention(1, 16, 16, 256, 256, 64)
MMA = 4096  # FLOP of an mma.m16n8k16
TENSOR = [name for name, _ in PIPES].index("tensor")
KIND = {name: number for number, (name, _) in enumerate(OPS)}


def mmas(ops):
    """Tensor instructions of a warp, loops unrolled."""

    def run(begin, end):
        total, at = 0, begin
        while at < end:
            total += ops[at].pipes[TENSOR] if ops[at].kind == KIND["COMPUTE"] else 0
            at += 1
        return total

    total = run(0, len(ops))
    for at, op in enumerate(ops):
        if op.kind == KIND["LOOP"]:
            total += run(op.target, at) * (op.count - 1)
    return total


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("backward", [False, True])
def test_mma_of_flash_are_those_of_the_problem(d, backward):
    problem = replace(SMALL, batch=16, d=d)
    kernel = max(attention(problem, Memory(), backward=backward).kernels, key=lambda k: k.program.smem)
    row = kernel.program.op_lists(0)
    assert kernel.tbs * sum(map(mmas, row)) * MMA == problem.flops(backward=backward)


@pytest.mark.parametrize("causal", [False, True])
def test_every_tile_is_dealt_once(causal):
    problem = replace(SMALL, batch=8, q=1024, k=1024, causal=causal)
    turns = forward_turns(problem)
    dealt = deal(turns)
    assert len(dealt) == 132
    assert sorted(t for each in dealt for t in each) == sorted(turns)
    loads = [sum(t.steps + TILE_STEPS for t in each) for each in dealt]
    assert max(loads) - min(loads) < 8.5 + TILE_STEPS  # one tile, at most


def test_split_of_the_keys():
    # measured grids (y of flash_fwd_splitkv_kernel); 1: no split
    assert split_count(grouped(Attention(1, 32, 8, 1, 8192, 128)), 132) == 32
    assert split_count(Attention(1, 32, 32, 1, 8192, 128), 132) == 7
    assert split_count(Attention(8, 32, 32, 1, 4096, 128), 132) == 1
    assert split_count(Attention(1, 16, 16, 256, 256, 128), 132) == 2
    parts, combination = attention(Attention(1, 32, 32, 1, 8192, 128), Memory()).kernels
    assert parts.grid == (1, 7, 32)
    assert combination.grid == (8, 1, 1)


@pytest.mark.parametrize(
    ("backend", "backward", "names"),
    [
        ("flash", False, ["flash_fwd_kernel"]),
        ("cudnn", False, ["memset", "cudnn_fprop"]),
        ("cudnn", True, ["memset", "attention_dots", "cudnn_bprop", "attention_convert"]),
        (
            "flash",
            True,
            ["attention_copy", "attention_copy", "attention_dots", "flash_bwd_loop", "attention_convert"],
        ),
    ],
)
def test_kernels_run_in_order(backend, backward, names):
    kernels = attention(SMALL, Memory(), backend=backend, backward=backward).kernels
    assert [kernel.name for kernel in kernels] == names
    tables = tables_of(resolve("h200"), Job("attention", list(kernels)), "graph")["kernels"]
    assert (tables["first_dispatch_us"][1:] > tables["complete_us"][:-1]).all()


@pytest.mark.parametrize(
    ("change", "call", "message"),
    [
        ({"d": 96}, {}, "heads of 96: must be 64 or 128 wide"),
        ({"kv_heads": 3}, {}, "16 heads are no multiple of 3"),
        ({"q": 128, "causal": True}, {}, "causal with other numbers"),
        ({}, {"backend": "math"}, "backend = 'math'"),
        ({"q": 1}, {"backend": "cudnn"}, "known are multiples of 128"),
        ({"kv_heads": 4}, {"backward": True}, "16 heads on 4"),
        ({"kv_heads": 4}, {}, "16 heads on 4"),
    ],
)
def test_refusals(change, call, message):
    with pytest.raises(WorkloadError, match=message):
        attention(replace(SMALL, **change), Memory(), **call)


def test_reductions_of_a_warp():
    text = (Path(__file__).parents[1] / "hw/library/h200_reductions.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    alone = [float(row["cycles_per_line"]) for row in rows if (row["sms"], row["warps"]) == ("1", "1")]
    assert all(REDUCE_GAP + 1 <= cycles <= REDUCE_GAP + 3 for cycles in alone)  # and a slot to issue


def test_samples_have_fewer_planes_and_keys():
    large = Attention(8, 16, 16, 8192, 8192, 128)
    sample = sampled(large, "flash", backward=False)
    assert not sample.whole
    # what is linear in planes and keys is exact
    assert sample.time(lambda p: 3.0 + p.planes * (2.0 + p.k)) == pytest.approx(3.0 + 128 * (2.0 + 8192))
    assert sampled(SMALL, "flash", backward=False).whole


def test_measured_rows():
    """One short row of each group: within a quarter."""
    wanted, config = {"a0", "a1", "a202", "a203", "d0"}, resolve("h200")
    cases = [case for case in cases_of(ATTENTION)[0] if case.case.split(":")[0] in wanted]
    assert len(cases) >= 4
    for case in cases:
        cycles = ATTENTION.run(config, *case.task).cycles["warm"]
        assert cycles == pytest.approx(case.measured_cycles, rel=0.25), case.case
