"""The batch script of an array, without Slurm."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pysim.errors import ConfigError, OutputError, WorkloadError
from pysim.sweep import Sweep, SweepFolder
from pysim.sweep.engines import launching, slurm
from pysim.sweep.engines.launching import Shares, Submission
from pysim.sweep.engines.slurm import Slurm

GOLDEN = """\
#!/bin/sh
#SBATCH --job-name=pysim-gru
#SBATCH --array=0-39%8
#SBATCH --output="/runs/gru/logs/slurm-%A_%a.log"
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@90
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --time=1-12:30
#SBATCH --partition=long
#SBATCH --account=phys
#SBATCH --qos=low
#SBATCH --mem 4G

# Slurm sends USR1 before the time limit. An ignored signal stays ignored after exec: it cannot end the worker
# before the worker handles it.
trap '' USR1

export PYTHONPATH={root}${{PYTHONPATH:+:$PYTHONPATH}}
exec {python} -P -m pysim work /runs/gru --threads 2 --max-memory 4096 --shard "$SLURM_ARRAY_TASK_ID/40"
"""


def _script(folder, tasks, **options):
    shares = Shares(tasks, tuple(range(tasks)), 1)
    return slurm.render(launching.checked_folder(SweepFolder(folder)), shares, Slurm(**options))


def test_the_script_of_an_array():
    text = _script(
        "/runs/gru", 40, threads=2, max_memory=4096, time="1-12:30", throttle=8, signal_s=90,
        partition="long", account="phys", directives=("--qos=low", "--mem 4G"),
    )  # fmt: skip
    root, python = shlex.quote(str(launching.ROOT)), shlex.quote(sys.executable)
    assert text == GOLDEN.format(root=root, python=python)


def _directives(text):
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH ")]


def test_what_is_not_given_is_left_to_slurm():
    lines = _directives(_script("/runs/x", 1))
    assert "--array=0" in lines
    assert not [line for line in lines if line.startswith(("--time", "--partition", "--account"))]


NAMES = [
    "a b", "it's", 'quote"d', "50%A", "$HOME", "`id`", "a;b", "*", "#x", "-x", "  lead", "é", "a=b", "&", "~",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_any_folder_reaches_the_worker_as_it_is(name, tmp_path, monkeypatch):
    """The script runs here under a shell, with a worker that writes down its arguments."""
    folder = tmp_path / name
    folder.mkdir()
    said = tmp_path / "said"
    fake = tmp_path / "py thon"
    fake.write_text(f'#!/bin/sh\nprintf "%s\\0" "$@" > {shlex.quote(str(said))}\n')
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    text = _script(folder, 3)
    subprocess.run(["sh", "-c", text], env={**os.environ, "SLURM_ARRAY_TASK_ID": "2"}, check=True)
    assert said.read_text().split("\0")[:-1] == [
        "-P", "-m", "pysim", "work", str(folder), "--threads", "1", "--shard", "2/3",
    ]  # fmt: skip
    (output,) = [line for line in _directives(text) if line.startswith("--output")]
    quoted = output.removeprefix('--output="').removesuffix('/logs/slurm-%A_%a.log"')
    assert quoted.replace('\\"', '"').replace("%%", "%") == str(folder)
    assert all("\n" not in line and line.isprintable() for line in text.splitlines())


def test_the_worker_ignores_usr1_from_its_first_moment(tmp_path, monkeypatch):
    """A worker that does not handle the signal lives on: the shell's trap holds after exec."""
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nkill -USR1 $$\necho alive\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    text = _script(tmp_path, 1)
    run = {"env": {**os.environ, "SLURM_ARRAY_TASK_ID": "0"}, "capture_output": True, "text": True}
    assert subprocess.run(["sh", "-c", text], **run).stdout == "alive\n"
    untrapped = text.replace("trap '' USR1", "")
    assert subprocess.run(["sh", "-c", untrapped], **run).stdout == ""


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "tab\t", "bell\a", "back\\slash", "byte\udcff"])
def test_a_folder_that_slurm_cannot_name_is_refused(name, tmp_path):
    with pytest.raises(ConfigError, match="folder = ") as error:
        _script(tmp_path / name, 1)
    assert "\n" not in str(error.value)


def test_a_package_that_pythonpath_cannot_name_is_refused(monkeypatch):
    monkeypatch.setattr(launching, "ROOT", Path("/opt/a:b"))
    with pytest.raises(ConfigError, match="PYTHONPATH cannot name"):
        _script("/runs/x", 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threads": 0}, "threads = 0"),
        ({"time": "soon"}, "time = soon"),
        ({"time": "1:2:3:4"}, "time = 1:2:3:4"),
        ({"time": "30\n#SBATCH -a 1"}, "time = 30 #SBATCH"),
        ({"throttle": -1}, "throttle = -1"),
        ({"signal_s": 0}, "signal_s = 0"),
        ({"signal_s": 70000}, "signal_s = 70000"),
        ({"partition": "a b"}, "partition = a b"),
        ({"account": "--wrap"}, "account = --wrap"),
        ({"name": "x\ny"}, "name = x y"),
        ({"directives": ("qos=low",)}, "directive qos=low: must be an option of sbatch"),
        ({"directives": ("--qos=low\nid",)}, "line break"),
        ({"directives": ("--array=0-9",)}, "pysim sets --array itself"),
        ({"directives": ("-a 0-9",)}, "pysim sets -a itself"),
        ({"directives": ("--output=x",)}, "pysim sets --output itself"),
    ],
)
def test_an_option_out_of_range_is_refused(given, message):
    with pytest.raises(ConfigError) as error:
        Slurm(**given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("time", ["30", "30:15", "2:00:00", "1-12", "1-12:30", "1-12:30:15"])
def test_each_form_of_a_time_limit(time):
    assert f"--time={time}" in _directives(_script("/runs/x", 1, time=time))


@pytest.fixture
def sweep(tmp_path):
    """Return a folder in which five points are planned."""
    folder = SweepFolder(tmp_path / "gru")
    Sweep("gru:timesteps=1,layers=1,batch=4", {"hidden": [64, 96, 128, 160, 192]}).prepare(folder)
    return folder


def _finish(folder, *numbers):
    for number in numbers:
        folder.result(folder.plan.files()[number]).touch()


def test_points_are_shared_out_as_workers_take_them(sweep):
    assert Shares.of_folder(sweep, None) == Shares(5, (0, 1, 2, 3, 4), 1)
    assert Shares.of_folder(sweep, 2) == Shares(2, (0, 1), 3)
    assert Shares.of_folder(sweep, 2).names() == ["0/2", "1/2"]
    assert Shares.of_folder(sweep, 2).note() == "up to 3 points each"
    _finish(sweep, 0, 2, 3, 4)
    assert Shares.of_folder(sweep, None).numbers == (1,)
    assert Shares.of_folder(sweep, 2).numbers == (1,)
    _finish(sweep, 1)
    assert Shares.of_folder(sweep, 2).numbers == ()


def test_an_array_has_at_most_as_many_tasks_as_slurm_takes(sweep):
    assert Shares.of_folder(sweep, None, 5).of == 5
    assert Shares.of_folder(sweep, None, 3) == Shares(3, (0, 1, 2), 2)
    with pytest.raises(ConfigError) as error:
        Shares.of_folder(sweep, 4, 3)
    assert str(error.value) == ("tasks = 4: MaxArraySize of Slurm is 3 here: use fewer, of more points")
    with pytest.raises(ConfigError, match="tasks = 0"):
        Shares.of_folder(sweep, 0)


def test_numbers_become_ranges():
    assert launching.ranges(range(10_000)) == "0-9999"
    assert launching.ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Return a function that puts a command of Slurm, as a shell script, on PATH; nothing else is on it."""
    folder = tmp_path / "commands"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def put(name, text):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    return put


def test_max_array_size_is_asked_of_slurm(commands):
    assert slurm.max_array_size() == slurm.DEFAULT_MAX_ARRAY
    commands("scontrol", "echo 'MaxArraySize            = 20000'")
    assert slurm.max_array_size() == 20_000
    commands("scontrol", "echo 'slurm_load_ctl_conf error: Unable to contact slurm controller' >&2; exit 1")
    assert slurm.max_array_size() == slurm.DEFAULT_MAX_ARRAY


def test_only_tasks_with_missing_points_are_submitted(commands, sweep, tmp_path):
    commands("sbatch", f"/bin/cat > {tmp_path}/script; echo '77;east'")
    commands("scontrol", "echo 'MaxArraySize = 3'")
    _finish(sweep, 1, 4)
    made = Slurm().launch(sweep)
    assert made == Submission("slurm", "77", 2, "up to 2 points each")
    assert str(made) == "slurm 77: 2 tasks, up to 2 points each"
    script = (tmp_path / "script").read_text()
    assert "#SBATCH --array=0,2\n" in script
    assert script.endswith('--shard "$SLURM_ARRAY_TASK_ID/3"\n')
    jobs = sweep.path / "jobs"
    kept = json.loads((jobs / "77.json").read_text())
    assert kept == {"engine": "slurm", "job": "77", "tasks": 2, "script": script}
    assert [path.name for path in jobs.iterdir()] == ["77.json"]


def test_nothing_is_submitted_where_no_point_is_missing(commands, sweep):
    commands("sbatch", "echo submitted > /dev/stderr; exit 1")
    _finish(sweep, 0, 1, 2, 3, 4)
    assert Slurm().launch(sweep) is None
    with pytest.raises(WorkloadError, match="no point is missing"):
        Slurm().script(sweep)


def test_a_submission_forgets_why_points_failed(commands, sweep):
    commands("sbatch", "echo 5")
    key = sweep.plan.files()[2]
    sweep.fail(key, "the disk was full")
    Slurm().launch(sweep)
    assert sweep.failure(key) is None


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "echo 'sbatch: error: no partition x' >&2; echo 'sbatch: error: submission failed' >&2; exit 1",
            "sbatch: error: no partition x; error: submission failed",
        ),
        ("exit 3", "sbatch: failed without a word"),
        ("echo 'please log in first'", "sbatch: failed without a word"),
    ],
)
def test_what_sbatch_says_is_one_line(commands, sweep, script, message):
    commands("sbatch", script)
    with pytest.raises(WorkloadError) as error:
        Slurm().launch(sweep)
    assert str(error.value) == message
    assert not (sweep.path / "jobs").exists()


def test_without_sbatch_the_error_says_where_it_is(commands, sweep):
    with pytest.raises(WorkloadError, match="there is no sbatch here: submit from a login node"):
        Slurm().launch(sweep)


def test_a_submission_that_cannot_be_kept_names_its_job(tmp_path):
    (tmp_path / "jobs").write_text("a file where a folder should be")
    with pytest.raises(OutputError, match="submitted as slurm 12, but"):
        launching.record(tmp_path, Submission("slurm", "12", 1))
