"""That ``make oracle`` runs what it says, and names what failed. More jobs: test_scheme_family.py."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest

from pysim.clock import Clock
from pysim.dependence.dependences import dependences
from pysim.engine.session import Session
from pysim.errors import WorkloadError
from pysim.params import PARAMS
from pysim.schemes.learned import learn_footprints
from pysim.schemes.registry import SCHEMES, parse_scheme
from tests.core.harness import tiny
from tests.support.thin import thin

from . import __main__ as oracle
from . import random_jobs, random_mutations
from .random_jobs import (
    ENDS,
    EVERY,
    LAUNCHES,
    OPTIONS,
    POLICIES,
    PROLOGUES,
    SETTINGS,
    SHAPES,
    Case,
    case,
    check,
    hold,
    policy_of,
)
from .random_mutations import CUTS, mutant


def test_a_case_follows_from_its_number():
    made = [case(number) for number in range(300)]
    assert made == [case(number) for number in range(300)]
    assert len({one.seed for one in made}) == len(made)
    assert {one.shape for one in made} == set(SHAPES)
    for one in made:
        tried = [policy_of(scheme) for scheme in one.schemes()]
        assert tried == list(EVERY)


def refused(made, scheme):
    session = Session(tiny(), made.job(), 1, Clock())
    try:
        hold(made, scheme, session, session)
    except WorkloadError:
        return True
    return False


@pytest.mark.parametrize("shape", SHAPES)
def test_jobs_refuse_what_they_may(shape):
    """Each at least some of them: what takes all jobs of a shape must run there."""
    jobs = [made for made in map(case, range(1000)) if made.shape == shape][:20]
    for scheme in jobs[0].schemes():
        if jobs[0].may_refuse(scheme):
            assert any(refused(made, scheme) for made in jobs)


def test_what_is_learned_serves_in_random_jobs():
    made = [
        learn_footprints(one.job(), tiny().encoded()).report
        for one in map(case, range(100))
        if one.shape == "dag"
    ]
    assert sum(report.served > 0 for report in made) >= len(made) / 8


def test_wireframe_gives_all_tbs_the_shared_memory_of_the_largest():
    """Whatever carve-out the kernels would have alone: one of small TBs was refused."""
    one = next(made for made in map(case, range(1000)) if made.shape == "attention")
    check(replace(one, chosen=one.chosen | {"scheme.carveout": "kernel"}), ["wireframe"])


def test_schemes_that_want_one_stream_get_one():
    one = next(made for made in map(case, range(1000)) if made.shape == "dag" and made.streams > 2)
    assert len({kernel.stream for kernel in one.job().kernels}) > 1
    assert {*ENDS} < {*one.schemes()}
    check(one, ENDS)


def test_jobs_run_under_every_option_of_what_waits_by_semaphores():
    schemes = {scheme for number in range(500) for scheme in case(number).schemes()}
    drawn = {word for scheme in schemes for word in parse_scheme(scheme).options}
    assert set(SCHEMES["cusync"].options) <= drawn


def test_no_setting_of_schemes_is_forgotten():
    """Each is drawn, pinned by an option that is, or says only how large something is in bytes."""
    every = {f"{group}.{p.name}" for group in PARAMS if group.startswith("scheme") for p in PARAMS[group]}
    sizes = {path for path in every if path.endswith("_bytes")}
    drawn = {scheme for number in range(500) for scheme in case(number).schemes()}
    pinned = {path for scheme in drawn for path in parse_scheme(scheme).pins}
    assert every - sizes - set(SETTINGS) - pinned == {"scheme.hypothetical"}


@pytest.mark.parametrize("number", thin(range(8), 2))
def test_random_jobs_under_every_scheme(number):
    check(case(number))


def test_a_stretch_names_what_failed(monkeypatch):
    def some(case):
        check(case, case.schemes()[:3])

    def wrong(case, scheme, *sessions):
        hold(case, scheme, *sessions)
        if case.seed == bad.seed and scheme != "stream":
            raise ValueError("made up")

    bad = case(8)
    monkeypatch.setitem(oracle.CHECKS, "settings", (case, some))
    monkeypatch.setattr(random_jobs, "hold", wrong)
    said = []
    assert oracle.stretch("settings", 7, 3, said.append) == [8]
    assert said[:2] == [f"settings 8 under {scheme}: ValueError: made up" for scheme in ("host", "graph")]
    assert str(bad) in said[2]
    assert said[-1].startswith("settings: 3 of 3 from 7 on, 1 failed")
    assert oracle.stretch("settings", 9, 2, said.append) == []


def test_a_kernel_that_was_held_back_and_is_the_oldest_now():
    """Its ready TBs go before those that would wait inside: a core before this crashed."""
    kept = {"scheme.priority": "consumer", "scheme.placement": "balanced", "scheme.reserve": 1.0}
    kept |= {"scheme.coherence": "bypass", "host.submit": "prefilled", "scheme.window": 1}
    check(Case(511025150, "dag", 39, 2, kept, (7,), free=True), ["tb_ideal:prologue"])


def test_a_kernel_that_becomes_the_oldest_while_tbs_that_wait_inside_are_sent():
    """It was held back and has ready TBs: these go as such. A core before this crashed."""
    kept = {"host.submit": "prefilled", "scheme.table.entries": 64}
    kept |= {"scheme.priority": "newest", "scheme.reserve": 1.0, "scheme.window": 7}
    check(Case(487784879, "weighted", 32, 3, kept, (1, 100), free=True), ["tb_bloom:prologue"])


def test_an_edge_too_few_is_caught():
    """Of what schemes go by something is missing: what that breaks for certain, the oracle sees."""
    found, cuts = Counter(), Counter()
    for made in map(mutant, range(200)):
        came = random_mutations.check(made)
        found[came] += 1
        cuts[made.cut] += came in ("certain", "caught")
    assert found["certain"] >= 50
    assert all(cuts[cut] for cut in {cut for each in CUTS.values() for cut in each})


def certain(fits):
    """Whether one of the first mutants of a sort breaks a dependence for certain, and is caught."""
    made = (m for m in map(mutant, range(6000)) if fits(m))
    return "certain" in map(random_mutations.check, islice(made, 25))


@pytest.mark.parametrize("scheme", CUTS)
def test_an_edge_too_few_is_caught_in_each_scheme(scheme):
    assert certain(lambda m: policy_of(m.scheme) == scheme)


@pytest.mark.parametrize("option", sorted({*"+".join(LAUNCHES).split("+"), *OPTIONS}))
def test_a_post_too_few_is_caught_with_each_option(option):
    assert certain(lambda m: policy_of(m.scheme) in POLICIES and option in m.scheme.split("+"))


@pytest.mark.parametrize(
    ("path", "scheme"), [("fetch", "tb_static"), ("fetch", "tb_learned"), ("reduce", "tb_static")]
)
def test_an_edge_too_few_is_caught_in_each_form_of_the_table(path, scheme):
    assert certain(lambda m: m.scheme == scheme and m.chosen[f"scheme.table.{path}"])


@pytest.mark.parametrize("scheme", [name for name in PROLOGUES if name in CUTS])
def test_mutants_wait_behind_prologues(scheme):
    """Else nothing that is dropped would be waited for inside."""
    made = islice((m for m in map(mutant, range(4000)) if m.scheme == scheme), 20)
    for m in made:
        job = m.job()
        conf = tiny().replaced(m.chosen | {"scheme.prologue": 1})
        plan = parse_scheme(scheme).launch_plan(job, dependences(job), conf)
        assert any(plan.has_prologue) or len(job.kernels) < 4


@pytest.mark.parametrize("cut", ["range", "raw", "war", "waw"])
def test_a_kind_that_acs_does_not_compare_is_caught(cut):
    made = (m for m in map(mutant, range(4000)) if m.scheme.startswith("acs") and m.cut == cut)
    assert "certain" in map(random_mutations.check, islice(made, 12))


def test_an_oracle_that_sees_nothing_is_noticed(monkeypatch):
    monkeypatch.setattr(random_mutations, "oracle", random_mutations.tiny)
    assert oracle.stretch("mutants", 0, 8, lambda text: None)


def test_processes_check_the_same(capsys):
    stretches = [("settings", 20, 2), ("mutants", 3, 2)]
    assert not oracle.spread(stretches, 2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.rpartition(",")[0] for line in lines] == [
        "settings: 2 of 2 from 20 on, 0 failed",
        "mutants: 2 of 2 from 3 on, 0 failed",
    ]
