"""Passes over lists of tensors: how launches share them, and what their TBs touch."""

import numpy as np
import pytest

from pysim import Job, Memory, simulate
from pysim.dependence.dependences import dependences
from pysim.errors import WorkloadError
from pysim.program.pattern_check import check_patterns
from pysim.program.rename import renamed
from pysim.workloads.framework.optimizers import optimizer
from pysim.workloads.framework.tape import Value
from pysim.workloads.library.memory import embedding_sorted, multi_tensor, row_passes
from pysim.workloads.library.memory.pointwise_flat import vectorised
from pysim.workloads.library.memory.pointwise_loops import CHUNK, CHUNKS
from pysim.workloads.library.memory.pointwise_parts import Work


def _weights(memory, sizes, item=2):
    made = []
    for size in sizes:
        weight = Value(memory.tensor("w", 1, size, item))
        weight.gradient = memory.tensor("g", 1, size, item)
        made.append(weight)
    return made


def test_launches_share_tensors_as_pytorch_packs_them():
    """36 tensors of four lists or 320 TBs; a tensor that does not fit goes on in the next launch."""
    small = multi_tensor.packed([100] * 50, 4)
    assert [len(pieces) for pieces in small] == [36, 14]
    large = multi_tensor.packed([CHUNK * 300, CHUNK * 100 + 1], 4)
    assert [[(p.tensor, p.chunk, p.first, p.tbs) for p in pieces] for pieces in large] == [
        [(0, 0, 0, 300), (1, 0, 300, 20)],
        [(1, 20, 0, 81)],
    ]


@pytest.mark.parametrize("name", ["adamw", "lamb"])
@pytest.mark.parametrize("item", [2, 4])
def test_a_step_touches_each_element_once(name, item):
    memory, sizes = Memory(), [3 * CHUNK + 40, 512, 30, CHUNK]
    weights = _weights(memory, sizes, item)
    kernels = optimizer(name, weights, memory)
    check_patterns(Job("step", kernels), every=True)
    for weight in weights:
        wrote = []
        for kernel in kernels:
            for access in kernel.accesses:
                if access.tensor.address == weight.tensor.address and access.mode == "write":
                    region = access.regions(np.arange(kernel.tbs))
                    region = region[region[:, 0] < region[:, 1]]
                    wrote += [(first, end) for first, end in region[:, 2:].tolist()]
        assert sorted(wrote)[0][0] == 0
        assert sum(end - first for first, end in wrote) == weight.tensor.cols


def test_passes_of_lamb_wait_for_norms():
    """Stage 1 waits for the norm of all gradients, stage 2 for those of its tensors: no TB starts before."""
    memory = Memory()
    kernels = optimizer("lamb", _weights(memory, [3 * CHUNK + 40, 512, 30]), memory)
    names = [kernel.name for kernel in kernels]
    norm = ["l2norm", "cleanup"]
    assert names == [*norm, *norm, "lamb_stage_1", *norm, "lamb_stage_2"]
    assert [kernel.tbs for kernel in kernels if kernel.name == "cleanup"] == [1, 3, 3]
    found = dependences(Job("step", kernels))
    assert {1} <= set(found.preds[4])
    assert {3, 6} <= set(found.preds[7])
    run = simulate("h200", Job("step", kernels), "tb_static", baseline=False).frame("kernels")
    assert run["first_dispatch_us"][4] >= run["last_end_us"][1]
    assert run["first_dispatch_us"][7] >= run["last_end_us"][[3, 6]].max()


def test_an_adamw_step_is_bound_by_memory():
    """Four tensors are read and three written."""
    memory, size = Memory(), CHUNK * CHUNKS
    job = Job("step", optimizer("adamw", _weights(memory, [size]), memory))
    runs = simulate("h200", job, "stream").tables()["runs"]
    floor = 7 * size * 2 / 4.8e12 * 1e6
    assert floor < float(runs["time_us"][0]) < 3 * floor


def test_optimizers_refuse_what_they_do_not_know():
    memory = Memory()
    with pytest.raises(WorkloadError, match="optimizer: name = 'adam': must be adamw, lamb, sgd, none"):
        optimizer("adam", _weights(memory, [64]), memory)
    with pytest.raises(WorkloadError, match="optimizer adamw: no parameter has a gradient"):
        optimizer("adamw", [Value(memory.tensor("w", 1, 64, 2))], memory)
    lists = [[memory.tensor("a", 1, size, 2)] for size in (64, 32)]
    with pytest.raises(WorkloadError, match="must be of the same sizes"):
        multi_tensor.multi_tensor(multi_tensor.Pass("x", (0,), (1,), None, 32), lists)


def test_a_sorted_gradient_adds_rows_of_equal_indices():
    """Of 25 rows with one index three parts are added, then these; every row is read once."""
    memory, taken = Memory(), np.array([7] * 25 + [1, 3, 1], np.int64)
    gradient, table = memory.tensor("g", len(taken), 320, 2), memory.tensor("t", 10, 320, 2)
    parts, sums = embedding_sorted.embedding_backward_sorted(gradient, table, taken, memory)
    check_patterns(Job("sorted", [parts, sums]), every=True)
    assert (parts.grid, sums.grid) == ((5, 2, 1), (3, 2, 1))
    rows = [a.regions(np.arange(5)) for a in parts.accesses if a.mode == "read"]
    read = sorted(row for each in rows for row, end in each[:, :2].tolist() if row < end)
    assert read == list(range(len(taken)))
    assert sums.accesses[-1].regions(np.arange(3))[:, 0].tolist() == [1, 3, 7]


@pytest.mark.parametrize(("cols", "item"), [(50257, 2), (30528, 2), (1000, 4), (2, 2)])
def test_passes_over_rows_touch_what_they_declare(cols, item):
    memory = Memory()
    x, y, z = (memory.tensor(name, 40, cols, item) for name in "xyz")
    targets, loss = memory.tensor("t", 1, 40, 8), memory.tensor("l", 1, 1, item)
    kernels = [
        row_passes.log_softmax_rows(x, y),
        row_passes.nll_rows(y, targets, loss),
        row_passes.nll_backward_rows(loss, targets, z),
        row_passes.log_softmax_backward_rows(z, y, x),
    ]
    check_patterns(Job("loss", kernels), every=True)
    # rows of a warp have a softmax that was measured
    shown = kernels[1:3] if 32 <= cols <= 1024 else kernels
    assert all(kernel.library.startswith("stands in") for kernel in shown)


def test_renaming_moves_what_an_optimiser_does_not_touch():
    """Its kernels have all memory as one argument, which is no buffer: others get memory of their own."""
    memory = Memory()
    weights = _weights(memory, [1024, 2048], 4)
    source, used_twice = memory.tensor("x", 1, 1024, 4), memory.tensor("y", 1, 1024, 4)
    before = [vectorised("relu", [source], [used_twice], Work(fp32=1)) for _ in range(2)]
    step = optimizer("adamw", weights, memory)
    first, second, *others = renamed(Job("step", [*before, *step])).kernels
    assert first.args[1].address == used_twice.address != second.args[1].address
    assert second.args[0].address == source.address
    assert [k.accesses for k in others] == [k.accesses for k in step]
    twice = renamed(Job("steps", [*step, *before, *step, *before])).kernels
    moved = {k.args[1].address for k in twice if k.name == "relu"}
    assert len(moved) == 4
    touched = [{a.tensor.address for a in k.accesses} for k in twice if k.name != "relu"]
    assert not any(moved & each for each in touched)
