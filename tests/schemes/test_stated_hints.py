"""Hints that software states: wider ones cost time alone, narrower ones are refused or caught."""

from dataclasses import replace
from pickle import dumps
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysim import simulate
from pysim.dependence.dependences import dependences
from pysim.errors import DependenceError, PickleError, WorkloadError
from pysim.program.footprint import WRITE, Footprint
from pysim.program.job import Access, Tensor
from pysim.program.periods.likeness import kernel_shapes
from pysim.program.rename import renamed
from pysim.schemes import stated_hints
from pysim.schemes.stated_hints import stated, widened
from pysim.workloads import make
from tests.core.harness import execute, oracle
from tests.oracle.test_ordering import pair, two

SCHEME = "tb_auto"
BOTH = pytest.mark.parametrize("scheme", [SCHEME, "tb_bloom"])


def whole(access):
    """An access of each TB to all of the operand."""
    shape = np.array([0, access.tensor.rows, 0, access.tensor.cols], np.int64)
    return Access(access.tensor, access.mode, lambda tbs: np.tile(shape, (len(tbs), 1)))


def narrow(access, tb):
    """The access without what one TB touches."""

    def regions(tbs):
        made = np.array(access.regions(tbs))
        made[tbs == tb] = 0
        return made

    return Access(access.tensor, access.mode, regions)


def with_hints(job, *hints):
    """The job with hints of its first launches."""
    kernels = list(job.kernels)
    for index, each in enumerate(hints):
        kernels[index] = replace(kernels[index], hints=each)
    return replace(job, kernels=kernels)


@given(
    st.lists(st.integers(0, 39), min_size=4, max_size=4), st.integers(100, 4000),
)  # fmt: skip
def test_a_wider_access_holds_the_first_and_is_as_long_as_asked(cuts, percent):
    row0, row1 = sorted(cuts[:2])
    col0, col1 = sorted(cuts[2:])
    tensor = Tensor("t", 40, 40, 4, 0)
    access = Access(tensor, "read", lambda tbs: np.tile([row0, row1, col0, col1], (len(tbs), 1)))
    first, end, left, right = widened(access, percent).regions(np.arange(1))[0].tolist()
    area = (row1 - row0) * (col1 - col0)
    if area == 0:
        assert (end - first) * (right - left) == 0
        return
    assert 0 <= first <= row0 < row1 <= end <= 40
    assert 0 <= left <= col0 < col1 <= right <= 40
    got = (end - first) * (right - left)
    assert got >= min(40 * 40, area * percent // 100)
    assert got < area * percent / 100 + (end - first) + (right - left)  # rounded up in both directions


def test_hints_that_say_what_is_touched_change_nothing():
    job = two("store", "load")
    told = with_hints(job, *(each.accesses for each in job.kernels))
    assert stated(job, 100) is job
    assert execute(told, SCHEME, oracle()).totals.end == execute(job, SCHEME, oracle()).totals.end


def test_wider_hints_cost_time_and_break_nothing():
    job = make("fdtd2d:n=128,steps=4")
    coarse = with_hints(job, *(tuple(map(whole, each.accesses)) for each in job.kernels))
    times = [execute(each, SCHEME, oracle()).totals.end for each in (job, coarse)]
    assert times[0] < times[1]
    wide = execute(job, SCHEME, oracle(scheme__auto__widen=800)).totals.end
    assert times[0] < wide <= 1.1 * times[1]


@BOTH
@pytest.mark.parametrize(("launch", "what"), [(0, "written"), (1, "read")])
def test_narrower_hints_are_refused_with_the_byte_that_they_leave_out(launch, what, scheme):
    job = two("store", "load")
    told = [each.accesses for each in job.kernels]
    told[launch] = tuple(narrow(each, 2) for each in told[launch])
    row = simulate("titan_v", with_hints(job, *told), scheme, baseline=False).tables()["runs"][-1]
    assert row["status"] == b"refused"
    reason = row["reason"].decode()
    assert f"kernel {launch}" in reason
    assert f"leave out what TB 2 has {what}: byte 256 of t" in reason


def test_a_hint_of_reads_does_not_cover_what_is_written():
    job = two("store", "load")
    tensor = job.kernels[0].accesses[0].tensor
    told = with_hints(job, tuple(replace(each, mode="read") for each in job.kernels[0].accesses))
    with pytest.raises(WorkloadError, match=f"TB 0 has written: byte 0 of {tensor.name}"):
        stated(told, 100)
    both = with_hints(
        job, job.kernels[0].accesses, tuple(replace(a, mode="update") for a in job.kernels[1].accesses)
    )
    stated(both, 100)  # and one of what is written covers what is read


def test_narrower_hints_that_slip_through_are_named_by_the_oracle(monkeypatch):
    job = two("store", "load", tbs=8)
    told = [each.accesses for each in job.kernels]
    told[1] = tuple(narrow(each, 2) for each in told[1])
    monkeypatch.setattr(stated_hints, "check_hints", lambda *_: None)
    with pytest.raises(DependenceError, match="RAW") as caught:
        execute(with_hints(job, *told), SCHEME, oracle(), deps=dependences(job))
    assert pair(caught.value) == [(1, 2), (0, 2)]


def halves(access):
    """Two accesses that together are one: the rows of each TB, cut in the middle."""

    def cut(place):
        def regions(tbs):
            made = np.array(access.regions(tbs))
            made[:, 1 - place] = made[:, :2].sum(axis=1) // 2
            return made

        return Access(access.tensor, access.mode, regions)

    return cut(0), cut(1)


def test_hints_of_many_tbs_are_checked_at_once_and_may_cover_an_access_together():
    kernel = make("gemm:m=8192,n=4096,k=16", "titan_v").kernels[0]
    everything = np.array([[0, 1 << 62]])
    begun = process_time()
    for made in (map(whole, kernel.accesses), (half for each in kernel.accesses for half in halves(each))):
        stated_hints.check_hints(0, replace(kernel, hints=tuple(made)), everything)
    assert process_time() - begun < 5  # a TB at a time takes far longer
    missing = tuple(part for each in kernel.accesses for part in halves(narrow(each, kernel.tbs - 1)))
    with pytest.raises(WorkloadError, match=f"leave out what TB {kernel.tbs - 1} has read: byte"):
        stated_hints.check_hints(0, replace(kernel, hints=missing), everything)


@pytest.mark.parametrize("given", [(each for each in ()), "text", 5, {}])
def test_hints_that_are_no_accesses_are_refused(given):
    kernel = two("store", "load").kernels[1]
    with pytest.raises(WorkloadError, match=r"kernel second: hints = \w+: must be a tuple"):
        replace(kernel, hints=given)


@BOTH
def test_memory_that_the_job_never_writes_needs_no_hint(scheme):
    job = make("gru:hidden=64,batch=4,timesteps=2,layers=1")
    written = {each.tensor for kernel in job.kernels for each in kernel.accesses if each.mode != "read"}
    told = with_hints(
        job, *(tuple(each for each in kernel.accesses if each.tensor in written) for kernel in job.kernels)
    )
    assert any(len(kernel.hints) < len(kernel.accesses) for kernel in told.kernels)
    execute(told, scheme, oracle())
    with pytest.raises(WorkloadError, match=r"leave out what TB 0 has \w+: byte"):
        stated(with_hints(job, ()), 100)


def test_a_wrong_hint_is_named():
    job = two("store", "load")
    access = job.kernels[1].accesses[0]
    for hint, said in (
        ("text", r"kernel 1 .second.: hints\[0\] is str: must be an Access"),
        (replace(access, mode="red"), r"kernel 1 .second.: hints\[0\]: mode = 'red'"),
    ):
        with pytest.raises(WorkloadError, match=said):
            simulate("titan_v", with_hints(job, None, [hint]), SCHEME, baseline=False)
    beyond = replace(access, regions=lambda tbs: np.tile([-1, 2, 0, 1], (len(tbs), 1)))
    with pytest.raises(WorkloadError, match=r"kernel 1 .second.: hints: TB 0 reads rows -1 to 2"):
        stated(with_hints(job, None, (beyond,)), 100)


def test_hints_are_renamed_pickled_and_no_part_of_periods():
    job = make("gru:hidden=64,batch=4,timesteps=4,layers=1")
    told = with_hints(job, *(tuple(map(whole, each.accesses)) for each in job.kernels))
    moved = renamed(told)
    pairs = zip(moved.kernels, told.kernels, strict=True)
    assert any(a.hints[-1].tensor != b.hints[-1].tensor for a, b in pairs)
    stated(moved, 100)
    assert len(set(kernel_shapes(told).tolist())) == len(told.kernels)
    kernel = two("store", "load").kernels[0]
    with pytest.raises(PickleError, match="cannot be pickled"):
        dumps(replace(kernel, accesses=(), hints=kernel.accesses))


def test_a_trace_has_no_hints_of_its_own():
    footprint = Footprint.of([0], [0], [128], [WRITE])
    traced = replace(two("store", "load").kernels[0], accesses=(), footprint=footprint, hints=())
    with pytest.raises(WorkloadError, match="hints of recorded addresses"):
        stated_hints.check_hints(0, traced, np.zeros((0, 2), np.int64))
