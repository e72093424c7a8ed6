"""The engines that need a library: what they say without it, and what they are given."""

import signal
import sys
from pathlib import Path

import pytest

from pysim.errors import ConfigError, MissingLibraryError, WorkloadError
from pysim.sweep import Sweep, SweepFolder
from pysim.sweep.engines import dask, launching, submitit
from pysim.sweep.engines.dask import Dask
from pysim.sweep.engines.slurm import Slurm
from pysim.sweep.engines.submitit import Submitit


@pytest.fixture
def sweep(tmp_path):
    """Return a folder in which five points are planned."""
    folder = SweepFolder(tmp_path / "gru")
    Sweep("gru:timesteps=1,layers=1,batch=4", {"hidden": [64, 96, 128, 160, 192]}).prepare(folder)
    return folder


@pytest.mark.parametrize(
    ("name", "engine", "extra"),
    [("submitit", Submitit(time="30"), "slurm"), ("distributed", Dask("tcp://127.0.0.1:1"), "dask")],
)
def test_a_library_that_is_not_installed_is_one_line(name, engine, extra, sweep, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingLibraryError) as error:
        engine.launch(sweep)
    kind = type(engine).__name__.lower()
    assert str(error.value) == f'the engine {kind} needs {name}: pip install -e ".[{extra}]"'


@pytest.mark.parametrize(
    ("time", "minutes"),
    [
        ("30", 30),
        ("30:01", 31),
        ("0:30", 1),
        ("2:00:00", 120),
        ("1-12", 2160),
        ("1-12:30", 2190),
        ("1-0:0:1", 1441),
    ],
)
def test_a_time_limit_in_whole_minutes(time, minutes):
    assert submitit.minutes(time) == minutes


def test_submitit_needs_a_time_limit(sweep):
    with pytest.raises(ConfigError, match="needs a time limit"):
        Submitit().launch(sweep)


@pytest.mark.parametrize("name", ["50%", "it's"])
def test_submitit_refuses_a_folder_that_it_would_change(name, tmp_path):
    with pytest.raises(ConfigError, match="submitit does not take"):
        Submitit(time="30").launch(SweepFolder(tmp_path / name))


def test_submitit_refuses_a_short_option(sweep):
    with pytest.raises(ConfigError, match="directive -q low: submitit takes long options only"):
        Submitit(time="30", directives=("-q low",)).launch(sweep)


def test_what_submitit_is_given():
    further = ("--qos=low", "--exclusive", "--mem 4G")
    options = Slurm(threads=2, time="1:30:00", throttle=4, partition="long", directives=further)
    given = submitit.parameters_of(options, "pysim-x")
    assert given["additional_parameters"] == {"requeue": True, "qos": "low", "exclusive": True, "mem": "4G"}
    assert (given["time"], given["array_parallelism"], given["cpus_per_task"]) == (90, 4, 2)
    assert given["partition"] == "long"
    assert "account" not in given


def test_dask_needs_a_scheduler(sweep):
    pytest.importorskip("distributed")
    with pytest.raises(ConfigError, match="needs the address of a scheduler"):
        Dask().launch(sweep)
    with pytest.raises(WorkloadError, match="no scheduler at nowhere://x"):
        Dask("nowhere://x").launch(sweep)


@pytest.mark.filterwarnings("default")  # those of Dask are its own
def test_dask_runs_each_share_once(sweep, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    seen = tmp_path / "seen"
    fake = ["sh", "-c", f'echo "$PYTHONPATH $2" >> "{seen}"', "sh"]
    monkeypatch.setattr(dask, "worker_command", lambda *_: fake)
    local = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**local) as cluster, distributed.Client(cluster) as client:
        made = Dask(client=client).launch(sweep)
        assert str(made) == f"dask {cluster.scheduler_address}: 5 tasks"
    assert sorted(seen.read_text().splitlines()) == [f"{launching.ROOT} {i}/5" for i in range(5)]


def test_a_worker_in_a_process_of_its_own_outlives_usr2(tmp_path):
    code = "import os, signal as s; os.kill(os.getpid(), s.SIGUSR2); os.kill(os.getpid(), s.SIGUSR1); exit(7)"
    assert launching.run_worker([sys.executable, "-c", code]) == 7


def test_a_worker_whose_caller_has_to_stop_is_stopped_with_sigterm(tmp_path):
    """As in submitit: its handler raises SystemExit while the worker runs."""

    def stop(_number, _frame):
        raise SystemExit(255)

    said = tmp_path / "said"
    code = f"""
import os, pathlib, signal, sys, time
def term(*_):
    pathlib.Path({str(said)!r}).write_text("terminated")
    sys.exit(143)
signal.signal(signal.SIGTERM, term)
os.kill(os.getppid(), signal.SIGALRM)
time.sleep(60)
"""
    before = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(SystemExit):
            launching.run_worker([sys.executable, "-c", code])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert Path(said).read_text() == "terminated"
