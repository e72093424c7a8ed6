"""The search of plans: what there is to choose, and what a search tries, on times that are made up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from pysim.machine.config import Config
from pysim.machine.devices import device
from pysim.planner.choices import CHOICES, LIMITLESS, known_schemes
from pysim.planner.search import Outcome, Search
from pysim.planner.space import Plan, Space
from pysim.schemes.registry import SCHEMES, parse_scheme
from pysim.units import ROWS, parse, row_of

CONFIG = Config.resolve(device("h200"), {})
NAMES = known_schemes((), list(SCHEMES))


def every_neighbour(space: Space) -> Iterator[Plan]:
    for name in space.schemes:
        plain = space.plan(name, {})
        for path in space.paths(plain):
            yield from space.around(plain, path)


def test_plans_choose_no_sizes_and_times_of_hardware() -> None:
    assert {choice.path for choice in CHOICES} <= set(ROWS)
    # the only time is an assumption about TBs, by which edges get coarser
    units = {ROWS[choice.path].unit for choice in CHOICES if choice.path != "scheme.table.shortest"}
    assert units <= {"choice", "bool", "share", "count"}
    assert [c.path for c in CHOICES if ROWS[c.path].unit == "count"] == ["scheme.acs.threads"]
    assert not {*LIMITLESS} & {*NAMES}
    assert {"tb_auto", "fused", "pdl", "graph"} <= {*NAMES}


def test_what_a_plan_says_is_what_its_run_gets() -> None:
    """No value is tried in vain: neither what a scheme pins, nor what two options set."""
    plans = list(every_neighbour(Space(CONFIG, NAMES)))
    assert len(plans) > 100
    for plan in plans:
        choice = parse_scheme(plan.scheme)  # refuses options that set the same
        assert choice.scheme.name == plan.base
        assert not set(choice.pins) & set(plan.settings)
        had = CONFIG.replaced(plan.settings).replaced(choice.pins)
        assert all(had[path] == value for path, value in plan.values)
        words = plan.words()
        for path, _, value in (word.partition("=") for word in words[1::2]):
            assert parse(path, row_of(path), value) == plan.settings[path]


def test_a_plan_leaves_out_what_decides_nothing() -> None:
    space = Space(CONFIG, NAMES)
    assert space.plan("pool", {"scheme.coherence": "argument"}) == space.plan(
        "pool", {}
    )  # what auto comes to
    assert space.plan("tb_static", {"scheme.prologue": 1, "scheme.coherence": "bypass"}).scheme == (
        "tb_static:prologue"
    )
    grouped = {"scheme.table.group": 0, "scheme.table.shortest": 0.0}
    assert space.plan("tb_static", grouped).settings == {"scheme.table.group": 0}
    ahead = space.plan("tb_static", {"scheme.prologue": 1})
    assert space.plan("tb_static", {"scheme.prologue": 1, "scheme.coherence": "tb"}) == ahead  # is refused
    assert space.plan("tb_auto", {"scheme.coherence": "bypass"}).scheme == "tb_auto:bypass"
    fixed = Space(CONFIG, NAMES, ["scheme.priority"])
    assert "scheme.priority" not in fixed.paths(fixed.plan("pool", {}))


def made_up(plan: Plan) -> Outcome:
    """Return times whose optimum needs three settings at once, and a scheme that never runs."""
    given = dict(plan.values)
    if plan.base == "fused":
        return Outcome("refused", "does not fuse")
    time = 100.0 - 10 * (plan.base == "tb_static") - 11 * (plan.base == "pool")
    if plan.base == "tb_static":
        time -= 3 * (given.get("scheme.prologue") == 1) + 2 * (given.get("scheme.reserve") == 0.25)
        time += 1 * (given.get("scheme.priority", "oldest") != "oldest")
        time -= 4 * (given.get("scheme.priority") == "critical") * ("scheme.placement" in given)
    return Outcome("ok", "", time, 50.0, 40.0)


def searched(budget: int, seed: int = 0) -> tuple[Search, list[Plan]]:
    asked: list[Plan] = []

    def simulate(plans: Sequence[Plan]) -> Iterator[tuple[int, Outcome]]:
        asked.extend(plans)
        yield from reversed([(number, made_up(plan)) for number, plan in enumerate(plans)])

    search = Search(Space(CONFIG, NAMES), simulate, budget, seed)
    search.run()
    return search, asked


def test_the_search_finds_the_optimum_and_ends() -> None:
    search, asked = searched(2000)
    best = search.best()
    assert best is not None
    given = dict(best.values)
    assert given.pop("scheme.placement") in ("balanced", "affinity", "ahead")
    assert given == {"scheme.prologue": 1, "scheme.priority": "critical", "scheme.reserve": 0.25}
    assert search.ended == "no neighbour of the best plans is better"
    assert len(asked) == len(set(asked)) == len(search.tried) < 2000


def test_the_same_seed_tries_the_same_plans_within_the_budget() -> None:
    first, asked = searched(90, 1)
    assert searched(90, 1)[1] == asked == list(first.tried)
    assert searched(90, 2)[1] != asked
    assert (len(asked), first.ended) == (90, "the budget is spent")
    assert asked[:5] == [first.space.plan(n, {}) for n in ("stream", "tb_auto", "graph", "pool", "tb_static")]
    assert {"fused", "fused:tile", "tb_static:prologue"} <= {plan.scheme for plan in asked}


def test_what_has_finished_is_kept() -> None:
    def simulate(plans: Sequence[Plan]) -> Iterator[tuple[int, Outcome]]:
        for number in (3, 1):
            yield number, made_up(plans[number])
        raise KeyboardInterrupt

    search = Search(Space(CONFIG, NAMES), simulate, 100)
    with pytest.raises(KeyboardInterrupt):
        search.run()
    assert [plan.base for plan in search.tried] == ["tb_auto", "pool"]
