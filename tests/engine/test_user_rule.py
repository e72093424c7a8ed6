"""Rules that a user writes: copies of the built-in ones change nothing, others do, and errors are errors."""

from __future__ import annotations

import time

import numpy as np
import pytest

from pysim import ConfigError, DeadlockError, simulate
from pysim.workloads import make
from tests.support.thin import thin

JOB = "gru:hidden=256,batch=8,timesteps=2,layers=2"
# a newer kernel is passed by as often as it takes, which is how rules see it
FREE = {"scheme.bypass": 64, "scheme.bypass_age": 65535}


def oldest(time, ready):
    return 0


class LeastLoaded:
    """What a Titan V does: the SM with fewest resident warps, ties round robin."""

    def __init__(self, order):
        self.order, self.next = order, 0

    def __call__(self, time, kernel, tb, free):
        place = {int(sm): i for i, sm in enumerate(free["sm"])}
        turn = self.order[self.next :] + self.order[: self.next]
        found = [(int(free["warps"][place[sm]]), i, sm) for i, sm in enumerate(turn) if sm in place]
        _, i, sm = min(found)
        self.next = (self.next + i + 1) % len(turn)
        return place[sm]


def sms_in_turn():
    """All SMs, as a rule sees them on an empty GPU."""
    seen = []

    def first(time, kernel, tb, free):
        if not seen:
            seen.extend(int(sm) for sm in free["sm"])
        return 0

    simulate("titan_v", make("empty"), "stream", placement=first)
    assert sorted(seen) == list(range(80))
    return seen


@pytest.mark.parametrize("scheme", thin(["stream", "graph", "tb_static", "pool"], 2))
def test_copies_of_the_built_in_rules_change_nothing(scheme):
    job = make(JOB)
    built_in = simulate("titan_v", job, scheme, overrides=FREE, baseline=False)
    rule = simulate("titan_v", job, scheme, overrides=FREE, baseline=False, priority=oldest)
    assert rule.hash == built_in.hash
    both = simulate(
        "titan_v",
        job,
        scheme,
        overrides=FREE,
        baseline=False,
        priority=oldest,
        placement=LeastLoaded(sms_in_turn()),
    )
    assert both.hash == built_in.hash


def test_threads_do_not_matter():
    job = make(JOB)

    def newest(time, ready):
        return len(ready) - 1

    one, two = (simulate("titan_v", job, "tb_static", threads=n, priority=newest).hash for n in (1, 2))
    assert one == two


def test_another_rule_decides():
    job = make(JOB)
    plain = simulate("titan_v", job, "tb_static")
    # all TBs on the SMs of one GPC as long as there is room
    packed = simulate(
        "titan_v", job, "tb_static", placement=lambda time, kernel, tb, free: int(free["gpc"].argmin())
    )
    assert packed.time_us("tb_static") > plain.time_us("tb_static")
    # the baseline, which was not listed, is what it was
    assert packed.time_us("stream") == plain.time_us("stream")
    tbs = packed.tables()["tbs"]
    assert len(tbs) == len(plain.tables()["tbs"])


def test_what_a_rule_sees():
    seen = []

    def look(time, ready):
        assert not ready.flags.writeable
        assert (ready["ready"] <= time).all()
        seen.extend(zip(ready["kernel"].tolist(), ready["tb"].tolist(), strict=True))
        return 0

    job = make(JOB)
    simulate("titan_v", job, "tb_static", priority=look, baseline=False)
    assert set(seen) >= {(k, t) for k, kernel in enumerate(job.kernels) for t in range(kernel.tbs)}


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ({"priority": lambda time, ready: len(ready)}, ConfigError, "priority rule returned"),
        ({"priority": lambda time, ready: "a"}, ConfigError, "must be the number of a row"),
        ({"priority": lambda time, ready: True}, ConfigError, "must be the number of a row"),
        ({"placement": lambda time, kernel, tb, free: -1}, ConfigError, "placement rule returned -1"),
        ({"priority": lambda time, ready: 1 / 0}, ZeroDivisionError, "division"),
        (
            {"priority": lambda time, ready: None},
            DeadlockError,
            "deadlock at .*: the priority rule returned None, no TB for now",
        ),
        (
            {"placement": lambda time, kernel, tb, free: None},
            DeadlockError,
            "deadlock at .*: the placement rule returned None, no TB for now",
        ),
        ({"priority": lambda time, ready: next(iter(()))}, StopIteration, "^$"),
        ({"priority": lambda time, ready: "a\n" * 99}, ConfigError, r"returned [a ]{80}\.\.\.: must be the"),
        ({"priority": lambda time, ready: 10**5000}, ConfigError, "<integer of 16610 bits>: rows are"),
        ({"priority": lambda time, ready: np.array([0])}, ConfigError, r"returned array\(\[0\]\): must be"),
        ({"placement": 5}, ConfigError, "placement = int: must be a function"),
    ],
)
def test_errors_of_a_rule_are_raised(rules, error, message):
    with pytest.raises(error, match=message):
        simulate("titan_v", make(JOB), "tb_static", **rules)


def test_rows_are_the_rule_s_own():
    """What a rule keeps stays as it was, and what it does to its rows does not reach the core."""
    kept = []

    def spoil(time, ready):
        kept.append((ready, ready.tobytes()))
        mine = ready if ready.base is None else ready.base
        mine.flags.writeable = True
        if len(kept) % 2:
            kept[-1] = (ready.copy(), ready.tobytes())
            mine["kernel"], mine["tb"] = 0xFFFF, 0xFFFF
        return 0

    job = make(JOB)
    spoiled = simulate("titan_v", job, "tb_static", priority=spoil, baseline=False, overrides=FREE)
    assert spoiled.hash == simulate("titan_v", job, "tb_static", baseline=False, overrides=FREE).hash
    assert all(rows.tobytes() == then for rows, then in kept)


def test_a_slow_rule_is_stopped_and_shows_progress():
    """The first TBs are dispatched at one time, within one slice of the core."""
    asked, shown = [], []
    begin = time.monotonic()

    def slow(now, ready):
        asked.append(now)
        time.sleep(0.002)
        return 0

    result = simulate(
        "titan_v",
        make("empty:tbs=3000"),
        "tb_static",
        priority=slow,
        stop=lambda: time.monotonic() > begin + 0.5 and bool(asked),
        progress=lambda scheme, done, tbs: shown.append(done),
    )
    assert result.interrupted
    assert 1 <= len(asked) < 600
    assert len(shown) > 1
    rows = result.tables()
    assert rows["runs"]["status"][0] != b"ok"
    assert len(rows["tbs"]) <= len(asked)


@pytest.mark.parametrize("name", ["stop", "progress"])
def test_an_exception_of_stop_or_progress_is_raised_from_a_rule(name):
    def fail(*_):
        raise LookupError("mine")

    def slow(now, ready):
        time.sleep(0.1)
        return 0

    with pytest.raises(LookupError, match="mine"):
        simulate("titan_v", make(JOB), "tb_static", priority=slow, baseline=False, **{name: fail})


def test_interrupt_in_a_rule():
    def stop(time, ready):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate("titan_v", make(JOB), "tb_static", priority=stop, baseline=False)


@pytest.mark.parametrize("overrides", [{"scheme.prologue": 1}, {"sim.replay": "period"}])
def test_what_rules_are_not_for_is_refused(overrides):
    rows = simulate("titan_v", make(JOB), "tb_static", overrides=overrides, priority=oldest).tables()["runs"]
    assert rows["status"][0] == b"refused"
    assert b"rule of yours" in rows["reason"][0]
