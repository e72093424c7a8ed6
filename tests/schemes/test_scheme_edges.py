"""Edges that a scheme from outside returns: checked before the run, and named where they are wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from pysim import DependenceError, Scheme, TableScheme, simulate
from pysim.dependence.dependences import dependences
from pysim.dependence.groups import Group
from pysim.workloads import make

# Edges given in another form that are the same edges


def same(a, b):
    for name in ("producers", "kinds", "consumers"):
        assert getattr(a.groups, name).tolist() == getattr(b.groups, name).tolist()
    assert a.nodes.tolist() == b.nodes.tolist()
    assert a.tb_outs.tolist() == b.tb_outs.tolist()
    assert a.edges.tolist() == b.edges.tolist()


FORMS = {
    "as they are": lambda groups: groups,
    "a generator": lambda groups: (g for g in groups),
    "lists": lambda groups: [
        Group(g.kernel, list(g.producers), list(g.kinds), tuple(g.consumers)) for g in groups
    ],
    "unsorted": lambda groups: [
        replace(g, producers=g.producers[::-1], kinds=g.kinds[::-1], consumers=g.consumers[::-1])
        for g in groups
    ],
    "twice": lambda groups: [
        replace(
            g,
            producers=np.tile(g.producers, 2),
            kinds=np.tile(g.kinds, 2),
            consumers=np.repeat(g.consumers, 2),
        )
        for g in groups
    ],
    "unsigned": lambda groups: [
        replace(g, producers=g.producers.astype(np.uint64), consumers=g.consumers.astype(np.int16))
        for g in groups
    ],
    "empty ones between": lambda groups: [
        one for g in groups for one in (replace(g, consumers=[]), g, replace(g, producers=[], kinds=[]))
    ],
    "kernels in turn": lambda groups: sorted(groups, key=lambda g: g.kernel % 2),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_groups_in_another_form_are_the_same_edges(deps, form):
    same(deps.with_groups(form(deps.groups)), deps)


def test_kinds_follow_their_producers(job):
    deps = dependences(job)
    group = next(g for g in deps.groups if len(g.producers) > 1)
    back = Group(group.kernel, group.producers[[1, 0, 1]], np.array([1, 2, 4], np.uint8), group.consumers)
    made = deps.with_groups([back]).groups[0]
    assert made.producers.tolist() == group.producers[:2].tolist()
    assert made.kinds.tolist() == [2, 5]


def test_no_groups_are_no_edges(deps):
    made = deps.with_groups([])
    assert len(made.groups) == 0
    assert not any(made.preds)


# Wrong edges

HUGE = np.array([1 << 20])
WRONG_GROUPS = {
    "None": (lambda d: None, "groups: must be a list of Group, not NoneType"),
    "one": (lambda d: d.groups[0], "groups: must be a list of Group, not Group"),
    "numbers": (lambda d: [1, 2], "group 0: int is no Group"),
    "second is None": (lambda d: [d.groups[0], None], "group 1: NoneType is no Group"),
    "consumer": (lambda d: changed(d, consumers=HUGE), "group 1: kernel .* has no TB 1048576: its TBs are 0"),
    "consumer below 0": (lambda d: changed(d, consumers=np.array([-1])), "group 1: kernel .* has no TB -1"),
    "producer": (lambda d: changed(d, producers=HUGE), "group 1: .* cannot wait for TB 1048576 of the job"),
    "producer below 0": (lambda d: changed(d, producers=np.array([-1])), "group 1: .* wait for TB -1 of"),
    "too large for int64": (
        lambda d: changed(d, producers=np.array([2**63 + 5], np.uint64)),
        "group 1: .* cannot wait for TB",
    ),
    "itself": (
        lambda d: changed(d, producers=d.offsets[[d.groups[1].kernel]]),
        "group 1: kernel .* cannot wait for TB .*: TBs of earlier kernels are 0 to",
    ),
    "of the first": (
        lambda d: changed(d, kernel=0, producers=np.array([0]), consumers=np.array([0])),
        "group 1: kernel 0 cannot wait for TB 0 of the job: there is no earlier kernel",
    ),
    "kernel": (lambda d: changed(d, kernel=1000), "group 1: kernel = 1000: the job's kernels are 0 to"),
    "kernel below 0": (lambda d: changed(d, kernel=-1), "group 1: kernel = -1"),
    "kernel None": (lambda d: changed(d, kernel=None), "group 1: kernel = None"),
    "kernel True": (lambda d: changed(d, kernel=True), "group 1: kernel = True"),
    "kinds": (
        lambda d: changed(d, kinds=np.ones(3, np.uint8), producers=np.array([0])),
        "group 1: 3 kinds for 1 producers",
    ),
    "kind 8": (
        lambda d: changed(d, kinds=np.array([8]), producers=np.array([0])),
        "group 1: kinds: 8 is no sum",
    ),
    "floats": (lambda d: changed(d, consumers=np.array([0.0])), "group 1: consumers: .* not float64"),
    "mask": (lambda d: changed(d, consumers=np.array([True])), "group 1: consumers: .* not bool"),
    "matrix": (lambda d: changed(d, consumers=np.array([[0]])), r"group 1: consumers: .* shape \(1, 1\)"),
    "ragged": (lambda d: changed(d, consumers=[[0], [0, 1]]), "group 1: consumers: .* not list"),
    "set": (lambda d: changed(d, consumers={0}), "group 1: consumers: .* not set"),
    "no consumers": (lambda d: changed(d, consumers=None), "group 1: consumers: .* not NoneType"),
}


def changed(deps, **fields):
    """Return the first two groups with the second one changed."""
    if "producers" in fields:
        fields = {"kinds": np.ones(len(fields["producers"]), np.uint8), **fields}
    return [deps.groups[0], replace(deps.groups[1], **fields)]


@dataclass(frozen=True)
class Edges(TableScheme):
    made: object = None

    def tb_edges(self, job, deps, values):
        return self.made(deps)


@pytest.mark.parametrize(("groups", "says"), WRONG_GROUPS.values(), ids=WRONG_GROUPS)
def test_wrong_groups_are_refused_with_their_number(add, job, groups, says):
    add(Edges("wrong", "A wrong toy.", made=lambda deps: deps.with_groups(groups(deps))))
    with pytest.raises(DependenceError, match=f"^scheme wrong: tb_edges: {says}") as caught:
        simulate("titan_v", job, "wrong", baseline=False)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("made", [None, [], 5])
def test_tb_edges_that_are_no_dependences_are_refused(add, job, made):
    add(Edges("wrong", "A wrong toy.", made=lambda deps: made))
    says = f"^scheme wrong: tb_edges: must return Dependences, not {type(made).__name__}"
    with pytest.raises(DependenceError, match=says):
        simulate("titan_v", job, "wrong", baseline=False)


def test_tb_edges_of_another_job_are_refused_before_their_reduction(add, job):
    other = dependences(make("gru:hidden=64,batch=4,timesteps=3,layers=2"))
    add(Edges("wrong", "A wrong toy.", made=lambda deps: other))
    with pytest.raises(DependenceError, match=r"^scheme wrong: tb_edges: they are of another job"):
        simulate("titan_v", job, "wrong", baseline=False, overrides={"scheme.table.reduce": 1})


@dataclass(frozen=True)
class Preds(Scheme):
    made: object = None

    def preds(self, job, deps):
        return self.made(super().preds(job, deps))


WRONG_PREDS = {
    "None": (lambda p: None, "must be a list of tuples, one a kernel, not NoneType"),
    "5": (lambda p: 5, "must be a list of tuples, one a kernel, not int"),
    "a dict": (lambda p: dict(enumerate(p)), "must be a list of tuples, one a kernel, not dict"),
    "a set": (lambda p: set(p), "must be a list of tuples, one a kernel, not set"),
    "Nones": (lambda p: [None for _ in p], "kernel 0: None is no tuple of kernels"),
    "numbers": (lambda p: [0 for _ in p], "kernel 0: 0 is no tuple of kernels"),
    "False": (
        lambda p: [(False,) if k else () for k, _ in enumerate(p)],
        "kernel 1 cannot wait for kernel F",
    ),
    "half": (lambda p: [(0.5,) if k else () for k, _ in enumerate(p)], "kernel 1 cannot wait for kernel 0.5"),
}


@pytest.mark.parametrize(("made", "says"), WRONG_PREDS.values(), ids=WRONG_PREDS)
@pytest.mark.parametrize("windowed", [False, True])
def test_wrong_preds_are_refused(add, job, made, says, windowed):
    kind = type("Kind", (Preds,), {"windowed": windowed})
    add(kind("wrong", "A wrong toy.", made=made))
    with pytest.raises(DependenceError, match=f"^scheme wrong: preds: {says}"):
        simulate("titan_v", job, "wrong", baseline=False)


SAME_PREDS = {
    "a generator": lambda p: (one for one in p),
    "generators": lambda p: [(k for k in one) for one in p],
    "sets": lambda p: [set(one) for one in p],
    "arrays": lambda p: [np.array(one, np.int64) for one in p],
    "twice": lambda p: [one * 2 for one in p],
}


@pytest.mark.parametrize("made", SAME_PREDS.values(), ids=SAME_PREDS)
@pytest.mark.parametrize("windowed", [False, True])
def test_preds_of_any_kind_of_list_are_taken(add, job, made, windowed):
    kind = type("Kind", (Preds,), {"windowed": windowed})
    add(kind("plain", "A toy.", made=lambda p: p))
    add(kind("other", "The same toy.", made=made))
    result = simulate("titan_v", job, "plain,other", baseline=False, overrides={"sim.oracle": 1})
    assert result.time_us("other") == result.time_us("plain")
