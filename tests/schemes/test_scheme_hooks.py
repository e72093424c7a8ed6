"""What hooks of a scheme return is checked, and what they are given is not theirs to change."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from pysim import ConfigError, Scheme, TableScheme, simulate
from pysim.dependence.transitive_reduction import reduce_transitively
from pysim.machine.config import Config
from pysim.machine.devices import device
from pysim.schemes import hooks
from pysim.schemes.known_edges import KnownEdges
from pysim.schemes.registry import parse_scheme


def refused(job, *, reason):
    """Check that the run of scheme ``wrong`` is refused, and that the reason is one line."""
    row = simulate("titan_v", job, "wrong", baseline=False, tables="none").tables()["runs"][0]
    assert row["status"] == b"refused"
    assert reason in row["reason"].decode()
    assert "\n" not in row["reason"].decode()


# Fields of gs_order


@dataclass(frozen=True)
class Order(TableScheme):
    more: object = None
    whole: bool = True  # the fields that are not in ``more`` are those of TableScheme

    def core_order(self, job, values):
        return {**super().core_order(job, values), **self.more} if self.whole else self.more


WRONG_ORDERS = {
    "tb_edges 7": ({"tb_edges": 7}, "tb_edges = 7: must be an integer from 0 to 1"),
    "tb_edges 0": ({"tb_edges": 0}, "tb_edges = 0: must be 1, as windowed = True"),
    "unknown": ({"foo": 1}, "gs_order has no field 'foo'"),
    "near": ({"windw": 1}, "gs_order has no field 'windw': did you mean window?"),
    "no name": ({5: 1}, "gs_order has no field 5"),
    "window -1": ({"window": -1}, "window = -1: must be an integer from 1 to 4294967295"),
    "window 0": ({"window": 0}, "window = 0: must be an integer from 1"),
    "window text": ({"window": "4"}, "window = '4': must be an integer"),
    "window 4.5": ({"window": 4.5}, "window = 4.5: must be an integer"),
    "window None": ({"window": None}, "window = None: must be an integer"),
    "window 2**32": ({"window": 2**32}, "window = 4294967296: must be an integer"),
    "placement": ({"placement": 9}, "placement = 9: must be an integer from 0 to 3"),
    "invalidate": ({"invalidate": 9}, "invalidate = 9: must be an integer from 0 to 3"),
    "rotate": ({"rotate": 7}, "rotate = 7: must be an integer from 0 to 1"),
    "share": ({"share": 65537}, "share = 65537: must be an integer from 0 to 65536"),
    "reserve": ({"reserve": 2**31}, "reserve = 2147483648: must be an integer from 0 to 65536"),
    "gap": ({"gap": 1 << 40}, "gap = 1099511627776: must be an integer from 0 to 1099511627775"),
    "entries": ({"entries": 0}, "entries = 0: a table without entries admits no kernel"),
    "too few gpcs": ({"gpcs": [0]}, "gpcs = [0]: must be the numbers 0 to 5, each once"),
    "too many gpcs": ({"gpcs": range(99)}, "gpcs = range(0, 99): must be the numbers 0 to 5, each once"),
    "a gpc twice": (
        {"gpcs": [0, 1, 2, 3, 4, 4]},
        "gpcs = [0, 1, 2, 3, 4, 4]: must be the numbers 0 to 5, each once",
    ),
    "gpcs None": ({"gpcs": None}, "gpcs = None: must be the numbers 0 to 5, each once"),
    "gpcs text": ({"gpcs": "012345"}, "gpcs = '012345': must be the numbers 0 to 5, each once"),
}


@pytest.mark.parametrize(("more", "says"), WRONG_ORDERS.values(), ids=WRONG_ORDERS)
def test_wrong_fields_of_the_order_are_refused(add, job, more, says):
    add(Order("wrong", "A wrong toy.", more=more))
    refused(job, reason=f"scheme wrong: core_order: {says}")


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (None, "must return a dict of fields of gs_order, not NoneType"),
        ([("window", 4)], "must return a dict of fields of gs_order, not list"),
        ({}, "window is missing"),
    ],
)
def test_what_is_no_order_is_refused(add, job, made, says):
    add(Order("wrong", "A wrong toy.", more=made, whole=False))
    refused(job, reason=f"scheme wrong: core_order: {says}")


def test_integers_of_numpy_and_truths_are_fields_of_the_order(add, job):
    more = {"window": np.int32(4), "rotate": True, "gpcs": np.arange(6)}
    add(Order("numpy", "A toy.", more=more))
    add(Order("plain", "A toy.", more={"window": 4, "rotate": 1, "gpcs": [0, 1, 2, 3, 4, 5]}))
    result = simulate("titan_v", job, "numpy,plain", baseline=False)
    assert result.time_us("numpy") == result.time_us("plain")


def test_an_order_with_a_table_needs_a_windowed_scheme(add, job):
    # without ``windowed`` the tables would name nothing that a kernel waits for
    kind = type("Kind", (Scheme,), {"core_order": lambda self, job, values: {**ORDER, "gpcs": range(6)}})
    add(kind("wrong", "A wrong toy."))
    refused(job, reason="scheme wrong: core_order: tb_edges = 1: must be 0, as windowed = False")


ORDER = {"tb_edges": 1, "window": 4, "entries": 64}


# Other hooks

HOOKS = {
    "coherence": ("wrong", "coherence: 'wrong': must be one of kernel, bypass, tb"),
    "carveout_mode": ("wrong", "carveout_mode: 'wrong': must be one of kernel, job"),
    "known_edges": (None, "known_edges: must return KnownEdges, not NoneType"),
    "launch_plan": ([], "launch_plan: must return LaunchPlan, not list"),
    "core_tables": (None, "core_tables: must return CoreTables, not NoneType"),
    "add_coarse_forms": (5, "add_coarse_forms: must return CoreTables, not int"),
}


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("base", [Scheme, TableScheme])
def test_hooks_that_return_something_else_are_refused(add, job, hook, base):
    made, says = HOOKS[hook]
    add(type("Kind", (base,), {hook: lambda self, *_: made})("wrong", "A wrong toy."))
    refused(job, reason=f"scheme wrong: {says}")


def test_a_word_that_is_no_word_is_refused(add, job):
    add(type("Kind", (Scheme,), {"coherence": lambda self, values: ["tb"]})("wrong", "A wrong toy."))
    refused(job, reason="scheme wrong: coherence: ['tb']: must be one of")


class ShortColumn(TableScheme):
    def known_edges(self, job, deps, values):
        return replace(KnownEdges.without_cost(deps), barrier=np.zeros(2, np.uint32))


@dataclass(frozen=True)
class Launches(Scheme):
    made: object = None

    def core_tables(self, job, known, values):
        made = super().core_tables(job, known, values)
        made.launches = self.made
        return made


COLUMNS = {
    "short": (ShortColumn("wrong", ""), "known_edges: barrier: must be 12 integers, one a launch"),
    "two": (Launches("wrong", "", made={"enqueued": [0, 1]}), "launches: enqueued: must be 12 integers"),
    "floats": (Launches("wrong", "", made={"enqueued": 0.5}), "launches: enqueued: must be 12 integers"),
    "ragged": (
        Launches("wrong", "", made={"enqueued": [[0], []]}),
        "launches: enqueued: must be 12 integers",
    ),
    "unknown": (Launches("wrong", "", made={"enqued": 0}), "launches: gs_launch has no field 'enqued'"),
    "no dict": (Launches("wrong", "", made=[]), "launches: must be a dict, not list"),
}


@pytest.mark.parametrize(("scheme", "says"), COLUMNS.values(), ids=COLUMNS)
def test_wrong_columns_are_refused(add, job, scheme, says):
    add(scheme)
    refused(job, reason=says)


@pytest.mark.parametrize("name", [None, "", 5])
def test_a_full_name_that_is_no_name_is_refused(add, job, name):
    add(type("Kind", (Scheme,), {"full_name": lambda self, options: name})("wrong", "A wrong toy."))
    with pytest.raises(ConfigError, match=f"scheme wrong: full_name: must return a name, not {name!r}"):
        simulate("titan_v", job, "wrong")


@pytest.mark.parametrize("made", [None, [1], "bits"])
def test_structures_that_are_none_are_refused(add, made):
    add(type("Kind", (Scheme,), {"structures": lambda self, *_: made})("wrong", "A wrong toy."))
    with pytest.raises(ConfigError, match="scheme wrong: structures: must return a list of Structure"):
        parse_scheme("wrong").structures(None, {}, {})


# What hooks are given

VALUES = Config.resolve(device("titan_v")).encoded()


def arrays_of(deps):
    """Return all arrays of dependences and of their groups, by name."""
    return {
        f"{type(one).__name__}.{name}": getattr(one, name)
        for one in (deps, deps.groups, deps.groups[0])
        for name in one.__slots__
        if isinstance(getattr(one, name), np.ndarray)
    }


def test_dependences_are_read_only(job, deps):
    for made in (deps, deps.with_groups(list(deps.groups)), reduce_transitively(deps)):
        arrays = arrays_of(made)
        assert {"Groups.producers", "Group.producers", "Dependences.offsets"} <= set(arrays)
        assert not [name for name, array in arrays.items() if array.flags.writeable]


def test_a_group_of_a_user_stays_writable(deps):
    tbs = np.array([0])
    deps.with_groups([replace(deps.groups[0], consumers=tbs)])
    tbs[0] = 1


class Meddler(TableScheme):
    """Tries to change what it is given, in each hook."""

    def _meddle(self, job, values=None, deps=None):
        tries = [lambda: job.kernels.__setitem__(0, job.kernels[1]), lambda: job.kernels.clear()]
        if values is not None:
            tries.append(lambda: values.__setitem__("scheme.window", 1))
            tries.append(lambda: values.update({"scheme.window": 1}))
        if deps is not None:
            tries.append(lambda: deps.groups[0].producers.__setitem__(slice(None), 0))
            tries.append(lambda: deps.groups[0].consumers.sort())
        for attempt in tries:
            with pytest.raises((TypeError, AttributeError, ValueError)):
                attempt()
        SEEN.append(len(tries))

    def preds(self, job, deps):
        self._meddle(job, deps=deps)
        return super().preds(job, deps)

    def tb_edges(self, job, deps, values):
        self._meddle(job, values, deps)
        return super().tb_edges(job, deps, values)

    def core_order(self, job, values):
        self._meddle(job, values)
        return super().core_order(job, values)

    def core_tables(self, job, known, values):
        self._meddle(job, values, known.deps)
        return super().core_tables(job, known, values)

    def add_coarse_forms(self, tables, job, known, values):
        self._meddle(job, values, known.deps)
        return super().add_coarse_forms(tables, job, known, values)

    def launch_plan(self, options, job, deps, config):
        self._meddle(job, config.values, deps)
        return super().launch_plan(options, job, deps, config)

    def coherence(self, values):
        with pytest.raises(TypeError):
            values["scheme.window"] = 1
        return super().coherence(values)

    def carveout_mode(self, values):
        with pytest.raises(TypeError):
            values["scheme.window"] = 1
        return super().carveout_mode(values)


SEEN = []


def test_a_hook_cannot_change_what_later_schemes_see(add, job):
    add(Meddler("meddler", "A toy."))
    alone = simulate("titan_v", job, "tb_static", baseline=False)
    SEEN.clear()
    after = simulate("titan_v", job, "meddler,tb_static", baseline=False)
    assert sorted(SEEN) == [4, 4, 6, 6, 6, 6]
    assert after.time_us("meddler") == after.time_us("tb_static") == alone.time_us("tb_static")


def test_the_users_job_keeps_its_list(job):
    kernels = list(job.kernels)
    mine = replace(job, kernels=kernels)
    simulate("titan_v", mine, "stream")
    assert mine.kernels is kernels


def test_values_are_wrapped_once():
    values = hooks._read_only(VALUES)
    assert hooks._read_only(values) is values
