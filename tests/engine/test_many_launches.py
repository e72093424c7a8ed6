"""Setting up many independent launches takes time in proportion to them, whatever they touch."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysim import Access, Code, Job, Kernel, Memory, Pattern, Program, Tensor, simulate
from pysim.analysis import estimate, traffic
from pysim.dependence.dependences import dependences
from pysim.program.access_regions import regions_of
from pysim.workloads import make


def program(args):
    """Return code that stores to its last argument, after a load from the first if it has two."""
    code = Code()
    if args > 1:
        code.load(0, Pattern(0, 4, s0=4))
        code.wait(0)
    code.store(1, Pattern(args - 1, 4, s0=4))
    code.exit()
    return Program(f"of {args}", (tuple(code.ops),), 1, 16, 0, args)


def row(number):
    return lambda tbs: np.stack([0 * tbs + number, 0 * tbs + number + 1, 0 * tbs, 0 * tbs + 32], axis=1)


def empty(count):
    return list(make(f"empty:tbs=1,kernels={count}").kernels)


def own_tensors(count):
    memory, code = Memory(), program(1)
    tensors = [memory.tensor(f"t{i}", 1, 32, 4) for i in range(count)]
    return [Kernel("k", code, (1, 1, 1), (t,), (Access(t, "write", row(0)),)) for t in tensors]


def shared_input(count):
    """All but the first read what the first wrote."""
    memory, code, first = Memory(), program(2), row(0)
    read = memory.tensor("read", 1, 32, 4)
    tensors = [memory.tensor(f"t{i}", 1, 32, 4) for i in range(count - 1)]
    maker = Kernel("make", program(1), (1, 1, 1), (read,), (Access(read, "write", first),))
    accesses = [(Access(read, "read", first), Access(t, "write", first)) for t in tensors]
    return [maker, *(Kernel("k", code, (1, 1, 1), (read, a[1].tensor), a) for a in accesses)]


def rows_of_one(count):
    tensor, code = Memory().tensor("t", count, 32, 4), program(1)
    return [Kernel("k", code, (1, 1, 1), (tensor,), (Access(tensor, "write", row(i)),)) for i in range(count)]


def streams(count):
    code = Code()
    code.exit()
    made = Program("empty", (tuple(code.ops),), 1, 16, 0, 0)
    return [Kernel("k", made, (1, 1, 1), (), (), stream=i) for i in range(count)]


def seconds(kernels, scheme):
    begin = time.process_time()
    result = simulate("titan_v", Job("many", kernels), scheme, threads=1, tables="none", baseline=False)
    assert result.tables()["runs"]["status"][0] == b"ok"
    return time.process_time() - begin


@pytest.mark.parametrize("scheme", ["stream", "graph", "tb_static"])
@pytest.mark.parametrize("make_kernels", [empty, own_tensors, shared_input, rows_of_one, streams])
def test_four_times_the_launches_take_less_than_seven_times_the_time(make_kernels, scheme):
    seconds(make_kernels(10), scheme)
    # a busy machine takes time from one of the two runs: a linear set-up needs one quiet pair of five
    pairs = ((seconds(make_kernels(1500), scheme), seconds(make_kernels(6000), scheme)) for _ in range(5))
    assert any(many < 7 * few + 0.2 for few, many in pairs)


def test_readers_and_rows_depend_on_what_they_should():
    deps = dependences(Job("shared", shared_input(50)))
    assert deps.preds == ((), *((0,) for _ in range(49)))
    assert dependences(Job("rows", rows_of_one(50))).preds == ((),) * 50


def test_joined_kinds_leave_the_estimate_as_it_is(monkeypatch):
    found = []
    for many in (0, 1 << 30):
        monkeypatch.setattr(estimate, "_MANY", many)
        result = simulate("titan_v", Job("many", shared_input(60)), "tb_static", tables="none")
        found.append(float(result.tables()["runs"]["estimate_us"][0]))
    assert found[0] == pytest.approx(found[1], rel=1e-9)


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 40), st.sampled_from((1, 2, 4, 16)), st.integers(0, 300)),
    st.data(),
    st.sampled_from((1, 32, 128)),
)
def test_the_region_of_one_tb_is_that_of_two_which_share_it(shape, data, granule):
    """A kernel of one TB takes a shorter way."""
    tensor = Tensor("t", *shape)
    row0, row1 = sorted(data.draw(st.tuples(*[st.integers(0, tensor.rows)] * 2)))
    col0, col1 = sorted(data.draw(st.tuples(*[st.integers(0, tensor.cols)] * 2)))
    access = Access(tensor, "read", lambda tbs: np.array([[row0, row1, col0, col1]] * len(tbs)))
    one, two = (regions_of(access, tbs, granule) for tbs in (1, 2))
    assert len(one) == len(two) == int(row0 < row1 and col0 < col1)
    for name in ("byte_rects", "rects", "lo", "hi"):
        mine, other = getattr(one, name), getattr(two, name)
        assert (mine is None) == (other is None)
        assert mine is None or mine.tolist() == other.tolist()
    assert one.tbs.tolist() == [0] * len(one)
    assert one.ptr.tolist() == list(range(len(one) + 1))
    # byte by byte
    touched = {
        (tensor.address + row * tensor.pitch + byte) // granule
        for row in range(row0, row1)
        for byte in range(col0 * tensor.item, col1 * tensor.item)
    }
    lo, hi, region = one.intervals()
    assert sorted(touched) == [at for a, b in zip(lo, hi, strict=True) for at in range(a, b)]
    assert not region.any()


def test_traffic_and_demands_are_computed_once(monkeypatch):
    calls = []
    for module, name in ((traffic, "_l2_misses"), (estimate, "demand_of")):
        real = getattr(module, name)

        def counted(*args, real=real, name=name):
            calls.append(name)
            return real(*args)

        monkeypatch.setattr(module, name, counted)
    kernels = empty(60) + own_tensors(1)
    simulate("titan_v", Job("many", kernels), "stream,graph,tb_static", tables="none")
    assert sorted(calls) == ["_l2_misses", "demand_of", "demand_of"]
