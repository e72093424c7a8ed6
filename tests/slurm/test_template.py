"""The batch script of an array, without Slurm."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pysim.errors import ConfigError, OutputError, WorkloadError
from pysim.sweep.engines import launching, slurm
from pysim.sweep.engines.launching import Submission, WorkerOptions
from pysim.sweep.engines.slurm import SlurmOptions

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
exec {python} -P -m pysim work /runs/gru --threads 2 --max-memory 3GiB --shard "$SLURM_ARRAY_TASK_ID/40"
"""


def test_the_script_of_an_array():
    options = SlurmOptions(
        threads=2, max_memory="3GiB", time="1-12:30", throttle=8, signal_s=90, partition="long",
        account="phys", directives=("--qos=low", "--mem 4G"),
    )  # fmt: skip
    root, python = shlex.quote(str(launching.ROOT)), shlex.quote(sys.executable)
    assert slurm.script(Path("/runs/gru"), 40, options) == GOLDEN.format(root=root, python=python)


def _directives(text):
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH ")]


def test_what_is_not_given_is_left_to_slurm():
    lines = _directives(slurm.script(Path("/runs/x"), 1, SlurmOptions()))
    assert "--array=0-0" in lines
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
    text = slurm.script(folder, 3, SlurmOptions())
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
    text = slurm.script(tmp_path, 1, SlurmOptions())
    run = {"env": {**os.environ, "SLURM_ARRAY_TASK_ID": "0"}, "capture_output": True, "text": True}
    assert subprocess.run(["sh", "-c", text], **run).stdout == "alive\n"
    untrapped = text.replace("trap '' USR1", "")
    assert subprocess.run(["sh", "-c", untrapped], **run).stdout == ""


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "tab\t", "bell\a", "back\\slash", "byte\udcff"])
def test_a_folder_that_slurm_cannot_name_is_refused(name, tmp_path):
    with pytest.raises(ConfigError, match="folder = ") as error:
        slurm.script(tmp_path / name, 1, SlurmOptions())
    assert "\n" not in str(error.value)


def test_a_package_that_pythonpath_cannot_name_is_refused(monkeypatch):
    monkeypatch.setattr(launching, "ROOT", Path("/opt/a:b"))
    with pytest.raises(ConfigError, match="PYTHONPATH cannot name"):
        slurm.script(Path("/runs/x"), 1, SlurmOptions())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threads": 0}, "threads = 0"),
        ({"max_memory": "4GiB\n#SBATCH --wrap=id"}, "max_memory"),
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
        SlurmOptions(**given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("time", ["30", "30:15", "2:00:00", "1-12", "1-12:30", "1-12:30:15"])
def test_each_form_of_a_time_limit(time):
    assert f"--time={time}" in _directives(slurm.script(Path("/runs/x"), 1, SlurmOptions(time=time)))


def test_no_tasks_are_refused():
    with pytest.raises(ConfigError, match="tasks = 0"):
        slurm.script(Path("/runs/x"), 0, SlurmOptions())


def test_an_array_has_at_most_as_many_tasks_as_slurm_takes():
    assert slurm.fitting(10_000, 20_000) == (10_000, "")
    assert slurm.fitting(1001, 1001) == (1001, "")
    tasks, note = slurm.fitting(10_000, 1001)
    assert tasks == 1001
    assert note == "not 10,000: MaxArraySize is 1,001, so a task takes more points"


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


def test_a_submission_is_kept_in_the_folder(commands, tmp_path):
    commands("sbatch", f"/bin/cat > {tmp_path}/script; echo '77;east'")
    commands("scontrol", "echo 'MaxArraySize = 3'")
    made = slurm.launch(tmp_path, 5, SlurmOptions())
    assert made == Submission("slurm", "77", 3, "not 5: MaxArraySize is 3, so a task takes more points")
    assert str(made).startswith("slurm 77: 3 tasks (not 5:")
    script = (tmp_path / "script").read_text()
    assert script == slurm.script(tmp_path, 3, SlurmOptions())
    kept = json.loads((tmp_path / "jobs" / "77.json").read_text())
    assert kept == {"engine": "slurm", "job": "77", "tasks": 3, "script": script}
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["77.json"]
    assert (tmp_path / "logs").is_dir()


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
def test_what_sbatch_says_is_one_line(commands, tmp_path, script, message):
    commands("sbatch", script)
    with pytest.raises(WorkloadError) as error:
        slurm.launch(tmp_path, 1, SlurmOptions())
    assert str(error.value) == message
    assert not (tmp_path / "jobs").exists()


def test_without_sbatch_the_error_says_where_it_is(commands, tmp_path):
    with pytest.raises(WorkloadError, match="there is no sbatch here: submit from a login node"):
        slurm.launch(tmp_path, 1, SlurmOptions())


def test_a_submission_that_cannot_be_kept_names_its_job(tmp_path):
    (tmp_path / "jobs").write_text("a file where a folder should be")
    with pytest.raises(OutputError, match="slurm: submitted 12, but"):
        launching.record(tmp_path, Submission("slurm", "12", 1))


def test_a_worker_is_told_its_threads_and_memory():
    command = launching.worker_command(Path("/runs/x"), WorkerOptions(threads=3, max_memory="1GiB"))
    assert command[1:] == ["-P", "-m", "pysim", "work", "/runs/x", "--threads", "3", "--max-memory", "1GiB"]
