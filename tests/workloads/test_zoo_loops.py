"""Loops over recurrent cells: kernels of a step, gradients, and which cells wait for which."""

import re
from collections import Counter
from itertools import product

import numpy as np
import pytest

from pysim.dependence.dependences import dependences
from pysim.dependence.groups import RAW
from pysim.errors import WorkloadError
from pysim.program.pattern_check import check_patterns
from pysim.workloads.registry import make

STEPS, LAYERS = 4, 3
NET = f"rnn-net:hidden=128,batch=16,steps={STEPS},layers={LAYERS}"
INPUTS = "hoisted", "per-step", "skip"
GATES = {"lstm": 4, "gru": 3, "vanilla": 1}
# kernels of a cell that is not fused, forward and backward, without what adds up gradients of states
UNFUSED = {"lstm": (10, 12), "gru": (10, 11), "vanilla": (2, 1)}
POINTWISE = (
    "add",
    "mul",
    "sub",
    "neg",
    "sigmoid",
    "tanh",
    "relu",
    "cat",
    "sigmoid_backward",
    "tanh_backward",
)


def order(job):
    """Return the kernels that each waits for by streams and events alone."""
    before = [[] for _ in job.kernels]
    last = {}
    for number, kernel in enumerate(job.kernels):
        if kernel.stream in last:
            before[number].append(last[kernel.stream])
        last[kernel.stream] = number
    for first, then in job.events:
        before[then].append(first)
    return before


def pairs(job):
    """Return (earlier, later) kernels of which one needs what the other wrote."""
    deps = dependences(job)
    made = set()
    for group in deps.groups:
        read = group.producers[(group.kinds & RAW) > 0]
        made |= {
            (int(at), group.kernel) for at in np.unique(np.searchsorted(deps.offsets, read, "right") - 1)
        }
    return sorted(made, key=lambda pair: pair[1])


def longest(job, name):
    """Return how many kernels of a name the longest chain of streams and events has."""
    found = []
    for number, before in enumerate(order(job)):
        found.append(max((found[at] for at in before), default=0) + (job.kernels[number].name == name))
    return max(found)


@pytest.mark.parametrize("way", ["forward", "training"])
@pytest.mark.parametrize("inputs", ["per-step", "skip"])
def test_a_wavefront_has_a_chain_of_layers_and_steps(inputs, way):
    base = f"{NET},pointwise=fused,input={inputs},pass={way}"
    plain, waves = make(base), make(f"{base},wavefront=1")
    names = ["lstm_cell"] + (["lstm_cell_back"] if way == "training" else [])
    for name in names:
        assert longest(plain, name) == LAYERS * STEPS
        assert longest(waves, name) == LAYERS + STEPS - 1
    assert {kernel.stream for kernel in waves.kernels} == set(range(LAYERS))
    assert Counter(k.name for k in plain.kernels) == Counter(k.name for k in waves.kernels)
    assert plain.totals == waves.totals


@pytest.mark.parametrize("pointwise", ["fused", "unfused"])
def test_streams_and_events_of_a_wavefront_leave_no_race(pointwise):
    job = make(f"{NET},pointwise={pointwise},input=per-step,pass=training,wavefront=1")
    assert not len(dependences(job).races)


def test_cells_of_a_wavefront_need_no_more_than_they_wait_for():
    """Data alone makes the longest chain of cells as long as streams and events do."""
    job = make(f"{NET},pointwise=fused,input=per-step,wavefront=1")
    needed = [set() for _ in job.kernels]
    for before, after in pairs(job):
        needed[after].add(before)
    found = []
    for number, kernel in enumerate(job.kernels):
        found.append(max((found[at] for at in needed[number]), default=0) + (kernel.name == "lstm_cell"))
    assert max(found) == LAYERS + STEPS - 1


@pytest.mark.parametrize(("cell", "inputs"), list(product(GATES, INPUTS)))
def test_totals_and_kernels_of_a_loop(cell, inputs):
    d, gates = 128, GATES[cell]
    jobs = {}
    for pointwise, way in product(("fused", "unfused"), ("forward", "training")):
        job = make(f"{NET},cell={cell},pointwise={pointwise},input={inputs},pass={way}")
        check_patterns(job)
        jobs[pointwise, way] = job
    products = 1 if inputs == "skip" else 2
    weights = gates * d * (products * d + products)  # and a bias for each product
    one = 2 * gates * d * d * 16  # a product of a step
    for (_, way), job in jobs.items():
        assert job.totals.parameters == LAYERS * weights
        flops = LAYERS * STEPS * products * one
        if way == "training":
            # each weight's gradient, and of what is multiplied but for first states and the network's inputs
            states, inner = LAYERS * (STEPS - 1), (LAYERS - 1) * STEPS * (products - 1)
            flops += flops + (states + inner) * one
        assert job.totals.flops == flops
    forward = Counter(k.name for k in jobs["unfused", "forward"].kernels)
    assert sum(forward[name] for name in POINTWISE) == LAYERS * STEPS * UNFUSED[cell][0]
    fused = Counter(k.name for k in jobs["fused", "training"].kernels)
    assert fused[f"{cell}_cell"] == fused[f"{cell}_cell_back"] == LAYERS * STEPS


@pytest.mark.parametrize("cell", list(GATES))
def test_gradients_of_an_unfused_cell_are_those_of_its_operations(cell):
    """One layer, one step: no state's gradient is added to another."""
    text = f"rnn-net:hidden=128,batch=16,steps=1,cell={cell},pointwise=unfused"
    counts = [Counter(k.name for k in make(f"{text},pass={way}").kernels) for way in ("forward", "training")]
    more = counts[1] - counts[0]
    names = (*POINTWISE, "relu_backward")
    assert sum(more[name] for name in names) == UNFUSED[cell][1]


def test_directions_of_a_loop_run_beside_each_other():
    job = make(f"{NET},both=1,pointwise=unfused,input=per-step,pass=training")
    assert {kernel.stream for kernel in job.kernels} == {0, 1}
    assert not len(dependences(job).races)
    assert longest(job, "tanh_backward") <= LAYERS * STEPS * 2  # of one direction: two a cell


def test_gradients_reach_each_weight_from_each_step():
    """What is multiplied last for a weight of the first layer needs the outputs of the last one."""
    job = make(f"{NET},pointwise=fused,input=per-step,pass=training")
    names = [kernel.name for kernel in job.kernels]
    reached = np.zeros(len(names), bool)
    reached[names.index("lstm_cell_back")] = True
    for before, after in pairs(job):
        reached[after] |= reached[before]
    assert reached[-1]
    cells = [at for at, name in enumerate(names) if name == "lstm_cell_back"]
    assert all(reached[at] for at in cells)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("input=none", "rnn-net: input = none: must be hoisted, per-step, skip"),
        ("pointwise=eager", "rnn-net: pointwise = eager: must be cudnn, fused, unfused"),
        ("input=skip", "rnn-net: pointwise = cudnn: input = skip, wavefront = 0: must be hoisted and 0"),
        ("wavefront=1,pointwise=fused", "rnn-net: wavefront = 1: input = hoisted: must be per-step or skip"),
        ("wavefront=1,pointwise=fused,both=1,input=skip", "rnn-net: wavefront = 1: both = 1: must be 0"),
        (
            "wavefront=1,pointwise=fused,input=skip,layers=17",
            "rnn-net: wavefront = 1: layers = 17: at most 16, a stream each",
        ),
    ],
)
def test_what_a_loop_does_not_do_is_refused(keys, message):
    with pytest.raises(WorkloadError, match=re.escape(message)) as error:
        make(f"rnn-net:hidden=128,batch=16,steps=2,{keys}")
    assert "\n" not in str(error.value)
