"""What a caller gives to simulate: another type is one clear line, and what is natural is taken."""

from __future__ import annotations

import numpy as np
import pytest

import pysim
from pysim import ConfigError, Job, Scheme, WorkloadError, simulate
from pysim.workloads import make

SMALL = "gru:hidden=64,batch=4,timesteps=2,layers=1"


@pytest.fixture(scope="module")
def job():
    return make(SMALL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schemes": None}, "schemes = None: must be names, such as 'stream,tb_static', or a list"),
        ({"schemes": 5}, "schemes = 5: must be names"),
        ({"schemes": b"stream"}, "schemes = b'stream': must be names"),
        ({"schemes": [5]}, "5 is no scheme: give a name, or an object that is registered"),
        ({"schemes": Scheme}, "schemes = <class 'pysim.schemes.scheme.Scheme'>: must be names"),
        ({"schemes": [Scheme]}, "class Scheme is no scheme"),
        ({"schemes": Scheme("mine", "Mine.")}, "scheme mine is not registered: call pysim.register_scheme"),
        ({"schemes": []}, "no scheme given"),
        ({"schemes": "strem\n" + "x" * 5000}, f"no scheme 'strem {'x' * 74}...': there are host, stream,"),
        ({"schemes": "tb_static:" + "x" * 5000}, f"scheme tb_static has no option '{'x' * 80}...': there"),
        ({"overrides": ["gpu.sms"]}, "overrides = ['gpu.sms']: must be a dict by path, such as"),
        ({"overrides": "gpu.sms=4"}, "overrides = gpu.sms=4: must be a dict by path"),
        ({"overrides": {3: 4}}, "unknown parameter 3: paths are texts, such as gpu.sms"),
        ({"overrides": {("gpu", "sms"): 4}}, "unknown parameter ('gpu', 'sms'): paths are texts"),
        ({"tables": None}, "tables = None: must be names of tables: all, none, runs"),
        ({"tables": 5}, "tables = 5: must be names of tables"),
        ({"tables": ["tbs", 5]}, "no table '5': there are all, none, runs"),
        ({"threads": "2"}, "threads = 2 (str): must be an integer, or None"),
        ({"threads": 1.5}, "threads = 1.5 (float): must be an integer, or None"),
        ({"threads": float("nan")}, "threads = nan (float): must be an integer, or None"),
        ({"threads": True}, "threads = True (bool): must be an integer, or None"),
        ({"threads": -1}, "threads = -1: must be at least 1"),
        ({"stop": 5}, "stop = 5: must be a function, or None"),
        ({"progress": 5}, "progress = 5: must be a function, or None"),
        ({"clock": 5}, "clock is int: must be a pysim.clock.Clock, or None"),
        ({"deps": 5}, "deps is int: must be Result.deps of an earlier call"),
    ],
)
def test_arguments_of_another_type_are_refused(job, arguments, message):
    with pytest.raises(ConfigError) as caught:
        simulate("titan_v", job, **arguments)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def kernels():
    return list(make(SMALL).kernels)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "NoneType is no job: give a pysim.Job, such as workloads.make returns"),
        ("gru", "gru is no job: give workloads.make('gru')"),
        (kernels(), "a list of kernels is no job: give pysim.Job(name, kernels)"),
        (kernels()[0], "Kernel is no job: give pysim.Job(name, [kernel])"),
        (Job("a", iter(kernels())), "job a: kernels is list_iterator: must be a list or a tuple"),
        (Job("a", np.array([1, 2])), "job a: kernels is ndarray: must be a list or a tuple"),
        (Job("a", [kernels()[0], 5]), "job a: kernels[1] is int: must be a pysim.Kernel"),
        (Job("a", kernels(), events=3), "job a: events is int: must be a list or a tuple"),
        (Job("a", kernels(), events=[3]), "job a: events[0] = 3: must be (earlier kernel, later kernel)"),
        (Job("a", kernels(), events=[(0, 1.5)]), "job a: events[0] = (0, 1.5): must be (earlier kernel,"),
        (Job("a", kernels(), events=["01"]), "job a: events[0] = 01: must be (earlier kernel,"),
        (Job(5, kernels()), "job 5: its name must be a text"),
        (Job("a", []), "job a has no kernels"),
    ],
)
@pytest.mark.parametrize("run", [simulate, pysim.bound])
def test_what_is_no_job_is_refused(run, wrong, message):
    with pytest.raises(WorkloadError) as caught:
        run("titan_v", wrong)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_dependences_of_another_job_are_refused(job):
    deps = simulate("titan_v", job, "stream", tables="none").deps
    with pytest.raises(WorkloadError, match="deps are of another job"):
        simulate("titan_v", make("gru:hidden=64,batch=4,timesteps=3,layers=1"), "stream", deps=deps)
    assert simulate("titan_v", job, "stream", deps=deps).hash == simulate("titan_v", job, "stream").hash


def test_schemes_may_be_objects(job):
    """Registered objects, alone, in lists, and beside names."""
    graph = pysim.SCHEMES["graph"]
    named = simulate("titan_v", job, "graph,tb_static").hash
    assert simulate("titan_v", job, [graph, "tb_static"]).hash == named
    assert simulate("titan_v", job, (each for each in ("graph", "tb_static", graph))).hash == named
    alone = simulate("titan_v", job, graph)
    assert alone.hash == simulate("titan_v", job, "graph").hash
    assert pysim.bound("titan_v", job, graph).bound_us == pysim.bound("titan_v", job, "graph").bound_us
    with pytest.raises(ConfigError, match="5 is no scheme"):
        pysim.bound("titan_v", job, 5)


def test_numbers_and_names_of_numpy_are_taken(job):
    plain = simulate("titan_v", job, "stream", overrides={"gpu.sms": 40}, tables="tbs")
    numpy = simulate(
        "titan_v",
        job,
        np.array(["stream"]),
        overrides={np.str_("gpu.sms"): np.int64(40)},
        threads=np.int64(1),
        tables=(name for name in ("tbs",)),
    )
    assert numpy.hash == plain.hash


def test_a_machine_may_be_a_path(job, tmp_path):
    path = pysim.device("titan_v").save(tmp_path / "mine.toml")
    assert pysim.device(path).device() == pysim.device(str(path)).device()
    assert simulate(path, job, "stream").hash == simulate(str(path), job, "stream").hash
