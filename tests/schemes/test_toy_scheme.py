"""Schemes from outside the package, without C: they run under the oracle; wrong ones are caught."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import pysim
from pysim import ConfigError, DependenceError, Scheme, SchemeOption, TableScheme, simulate
from pysim.dependence.dependences import dependences
from pysim.dependence.groups import without_edges
from pysim.workloads import make

JOB = "gru:hidden=128,batch=8,timesteps=3,layers=2"
ORACLE = {"sim.oracle": 1}


class EverySecond(Scheme):
    """A kernel of even number also waits for the one before it: edges are added, none is lost."""

    def preds(self, job, deps):
        made = super().preds(job, deps)
        return [tuple(sorted({*p, k - 1})) if k and k % 2 == 0 else p for k, p in enumerate(made)]


class OneKernel(Scheme):
    """A kernel enters the window when the one before it has ended."""

    windowed = True

    def core_order(self, job, values):
        return super().core_order(job, values) | {"window": 1}


@dataclass(frozen=True)
class Neighbours(TableScheme):
    """TBs that are neighbours wait for what any of them needs: ``size`` TBs share their edges."""

    size: int = 2

    def tb_edges(self, job, deps, values):
        made = []
        for group in deps.groups:
            tbs = np.arange(job.kernels[group.kernel].tbs)
            wait = np.isin(tbs // self.size, group.consumers // self.size)
            made.append(replace(group, consumers=tbs[wait]))
        return deps.with_groups(made)


class NoKernelWaits(Scheme):
    """No kernel waits for any."""

    def preds(self, job, deps):
        return [() for _ in job.kernels]


class OneNodeShort(TableScheme):
    """The edges of the first node are dropped."""

    def tb_edges(self, job, deps, values):
        return without_edges(deps, node=0)


@pytest.mark.parametrize(
    "toy",
    [
        EverySecond("every_second", "A toy.", "gpu.cp.graph_gap"),
        OneKernel("one_kernel", "A toy."),
        Neighbours("neighbours", "A toy."),
    ],
    ids=lambda toy: toy.name,
)
def test_a_toy_scheme_runs_under_the_oracle(add, toy):
    add(toy)
    result = simulate("titan_v", make(JOB), f"{toy.name},stream", overrides=ORACLE)
    rows = result.tables()["runs"]
    assert rows["scheme"].tolist() == [toy.name.encode(), b"stream"]
    assert set(rows["status"].tolist()) == {b"ok"}
    assert result.time_us(toy.name) <= result.time_us("stream")


def test_edges_of_a_scheme_count(add):
    add(Neighbours("one", "Every TB on its own: as tb_static.", size=1))
    add(Neighbours("all", "All TBs of a kernel wait for what any of them needs.", size=1 << 20))
    result = simulate(
        "titan_v", make("mlp:layers=3,width=512,batch=128"), "one,all,tb_static", overrides=ORACLE
    )
    assert result.time_us("all") > result.time_us("one") == result.time_us("tb_static")


def test_a_window_counts(add):
    add(OneKernel("one_kernel", "A toy."))
    result = simulate("titan_v", make(JOB), "one_kernel,pool")
    assert result.time_us("one_kernel") > result.time_us("pool")


def test_options_fix_parameters(add):
    option = SchemeOption("One counter update takes 1 us.", (("scheme.table.update", "1us"),))
    add(TableScheme("slow", "A toy.", options={"late": option}))
    result = simulate("titan_v", make(JOB), "slow,slow:late", overrides=ORACLE)
    assert result.time_us("slow:late") > result.time_us("slow")


@pytest.mark.parametrize(
    "wrong", [NoKernelWaits("careless", "A wrong toy."), OneNodeShort("careless", "A wrong toy.")]
)
def test_a_scheme_that_drops_edges_is_caught(add, wrong):
    add(wrong)
    with pytest.raises(DependenceError):
        simulate("titan_v", make("mlp"), "careless", overrides=ORACLE, baseline=False)


def test_errors_know_the_toy(add):
    add(EverySecond("every_second", "A toy."))
    with pytest.raises(ConfigError, match="every_second"):
        simulate("titan_v", make(JOB), "every_secnd")


class TbsWithoutTable(Scheme):
    granularity = "tb"


class Warps(Scheme):
    granularity = "warp"


class Nameless(Scheme):
    def __init__(self):
        pass


class NoOptions(Scheme):
    def __init__(self):
        object.__setattr__(self, "name", "toy")
        object.__setattr__(self, "doc", "A toy.")


class WordForWindow(Scheme):
    windowed = "no"


class WordForWait(Scheme):
    waits_inside = "no"


class NumberForHost(Scheme):
    host_launches = 1


class NoFusion(Scheme):
    fuses = None


GATE = (("scheme.window", 4),)
REFUSED = {
    "a class": (EverySecond, "class EverySecond is no object"),
    "a name": ("stream", "str is no object"),
    "taken": (Scheme("stream", ""), "stream: the name is taken"),
    "colon": (Scheme("a:b", ""), "'a:b': a name is"),
    "plus": (Scheme("a+b", ""), "'a[+]b': a name is"),
    "empty": (Scheme("", ""), "'': a name is"),
    "long": (Scheme("a" * 65, ""), "64 characters"),
    "not ASCII": (Scheme("schéma", ""), "a name is"),
    "number": (Scheme(7, ""), "7: a name is"),
    "no name": (Nameless(), "Nameless sets no name: its __init__ must call that of pysim.Scheme"),
    "no options": (NoOptions(), "NoOptions sets no options: its __init__ must"),
    "options None": (Scheme("toy", "", options=None), "toy: options = None: must be a dict"),
    "options list": (Scheme("toy", "", options=["a"]), r"toy: options = \['a'\]: must be a dict"),
    "gap 5": (Scheme("toy", "", 5), "toy: gap = 5: must be text"),
    "doc None": (Scheme("toy", None), "toy: doc = None: must be text"),
    "doc 5": (Scheme("toy", 5), "toy: doc = 5: must be text"),
    "windowed": (WordForWindow("toy", ""), "toy: windowed = 'no': must be True or False"),
    "waits_inside": (WordForWait("toy", ""), "toy: waits_inside = 'no': must be True or False"),
    "host_launches": (NumberForHost("toy", ""), "toy: host_launches = 1: must be True or False"),
    "fuses": (NoFusion("toy", ""), "toy: fuses = None: must be True or False"),
    "pins None": (Scheme("toy", "", pins=None), "toy: pins are .* pairs, not None"),
    "option doc": (
        Scheme("toy", "", options={"a": SchemeOption(None, GATE)}),
        "toy: option a: doc = None: must be text",
    ),
    "option waits": (
        Scheme("toy", "", options={"a": SchemeOption("", GATE, waits_inside="no")}),
        "toy: option a: waits_inside = 'no': must be True or False",
    ),
    "option structure": (
        Scheme("toy", "", options={"a": SchemeOption("", GATE, structure=5)}),
        "toy: option a: structure = 5: must be a function",
    ),
    "granularity": (Warps("toy", ""), "granularity = 'warp'"),
    "no table": (TbsWithoutTable("toy", ""), "windowed must be True"),
    "gap": (Scheme("toy", "", "gpu.cp.graph_gasp"), "toy: gap: .*gpu.cp.graph_gap"),
    "gap of SMs": (Scheme("toy", "", "gpu.sms"), "toy: gap: gpu.sms is no time"),
    "pin": (Scheme("toy", "", pins=(("scheme.windw", 4),)), "toy: .*scheme.window"),
    "value": (Scheme("toy", "", pins=(("scheme.window", -4),)), "toy: .*scheme.window"),
    "flat pins": (Scheme("toy", "", pins=("scheme.window", 4)), "pairs, not 'scheme.window'"),
    "one pin": (Scheme("toy", "", pins="scheme.window"), "pairs, not 'scheme.window'"),
    "option": (Scheme("toy", "", options={"a-b": SchemeOption("", GATE)}), "toy: option 'a-b': a name is"),
    "option pins": (Scheme("toy", "", options={"a": GATE}), "toy: option a: tuple is no pysim.SchemeOption"),
    "option value": (
        Scheme("toy", "", options={"a": SchemeOption("", (("scheme.priority", "best"),))}),
        "toy: option a: .*scheme.priority",
    ),
}


@pytest.mark.parametrize(("scheme", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_scheme_is_refused(scheme, says):
    before = dict(pysim.SCHEMES)
    with pytest.raises(ConfigError, match=says) as caught:
        pysim.register_scheme(scheme)
    assert "\n" not in str(caught.value)
    assert before == pysim.SCHEMES


@dataclass(frozen=True)
class Preds(Scheme):
    made: object = None

    def preds(self, job, deps):
        return self.made(job)


@dataclass(frozen=True)
class Edges(TableScheme):
    made: object = None

    def tb_edges(self, job, deps, values):
        return self.made(job, deps)


def one_group(**changes):
    return lambda job, deps: deps.with_groups([replace(deps.groups[0], **changes)])


WRONG = {
    "too few": (Preds, lambda job: [()], "preds: entries for 1 kernels, the job has"),
    "itself": (
        Preds,
        lambda job: [(k,) for k, _ in enumerate(job.kernels)],
        "kernel 0 cannot wait for kernel 0",
    ),
    "before": (Preds, lambda job: [(-1,) for _ in job.kernels], "kernel 0 cannot wait for kernel -1"),
    "name": (Preds, lambda job: [("a",) for _ in job.kernels], "kernel 0 cannot wait for kernel 'a'"),
    "another job": (
        Edges,
        lambda job, deps: dependences(make("gru:hidden=64,batch=4,timesteps=3,layers=2")),
        "tb_edges: they are of another job",
    ),
    "consumer": (Edges, one_group(consumers=np.array([1 << 20])), "has no TB 1048576"),
}


@pytest.mark.parametrize(("kind", "made", "says"), WRONG.values(), ids=WRONG)
def test_wrong_edges_are_refused(add, kind, made, says):
    add(kind("wrong", "A wrong toy.", made=made))
    with pytest.raises(DependenceError, match=f"scheme wrong: .*{says}"):
        simulate("titan_v", make(JOB), "wrong", baseline=False)
