"""Scripts that a signal, a time limit or SIGKILL ends go on from their checkpoint to the same result."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pysim import stats
from pysim.engine.checkpoint_file import CheckpointFile
from tests.support.calls import CONFIGS, Done, caller, hear_ctrl_c, refused
from tests.support.once import once
from tests.support.thin import thin

GRU = CONFIGS / "titanv_gru.py"
run = caller("titanv_gru")
SIZE = ("--hidden", "1024", "--batch", "32", "--layers", "1", "--timesteps", "14", "--threads", "1")
JOB = (*SIZE, "--schemes", "stream,tb_static", "--out", "a.h5")
TINY = ("--hidden", "64", "--batch", "4", "--layers", "1", "--timesteps", "1", "--out", "a.h5")


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def hash_of(folder: Path) -> str:
    return str(stats.load(folder / "a.h5").attributes["hash"])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the hash of the result of an undisturbed run, which leaves no checkpoint."""

    def make(folder: Path) -> None:
        assert run(folder, *JOB).returncode == 0
        assert files(folder) == ["a.h5", "a.json"]

    return hash_of(once(tmp_path_factory, "undisturbed-run", make))


def started(folder: Path, *options: str, script: Path = GRU) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(script), *options],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c,
    )  # fmt: skip


def wait_for(text: str, child: subprocess.Popen[str]) -> None:
    """Read stderr up to a line with a text."""
    assert child.stderr is not None
    while text not in (line := child.stderr.readline()):
        assert line or child.poll() is None


def ended(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = child.communicate(timeout=120)
    assert "Traceback" not in err, err
    return child.returncode, out, err


def goes_on(folder: Path, undisturbed: str, *options: str) -> Done:
    """Check that ``--resume`` ends with the result of an undisturbed run and removes the checkpoint."""
    done = run(folder, *JOB, "--resume", *options)
    assert done.returncode == 0, done.stderr
    assert files(folder) == ["a.h5", "a.json"]
    assert hash_of(folder) == undisturbed
    return done


def test_sigusr1_writes_a_checkpoint_and_the_run_goes_on(tmp_path: Path, undisturbed: str) -> None:
    child = started(tmp_path, *JOB)
    wait_for("tb_static: simulating", child)
    time.sleep(0.2)
    child.send_signal(signal.SIGUSR1)
    wait_for(": tb_static at ", child)
    # the first scheme has ended, the second is on its way
    assert len(files(tmp_path)) == 2
    assert ended(child)[0] == 0
    assert files(tmp_path) == ["a.h5", "a.json"]
    assert hash_of(tmp_path) == undisturbed


@pytest.mark.parametrize(
    ("number", "status", "word"),
    [
        (signal.SIGTERM, 143, "terminated"),
        pytest.param(signal.SIGINT, 130, "interrupted", marks=pytest.mark.deep),
    ],
)
def test_a_signal_ends_the_run_with_a_checkpoint(
    tmp_path: Path, undisturbed: str, number: signal.Signals, status: int, word: str
) -> None:
    child = started(tmp_path, *JOB, "--checkpoint-every", "0.05")
    wait_for(": tb_static at ", child)  # it is on its way
    child.send_signal(number)
    code, _, err = ended(child)
    assert (code, err.splitlines()[-1]) == (status, word)
    assert sum(name.endswith(".ckpt") for name in files(tmp_path)) == 2
    # Ctrl-C writes what has finished to the result file, too, which the whole run replaces
    assert ("a.h5" in files(tmp_path)) == (number == signal.SIGINT)
    done = goes_on(tmp_path, undisturbed, "--threads", "2")
    assert "stream: has ended in a.ckpt/" in done.stderr
    assert "tb_static: goes on at " in done.stderr


def test_a_time_limit_ends_the_run_with_status_75(tmp_path: Path, undisturbed: str) -> None:
    done = run(tmp_path, *JOB, "--max-time", "0.5")
    for _ in range(30):
        assert done.returncode == 75
        assert done.stderr.splitlines()[-1] == "stopped at --max-time: --resume goes on from the checkpoint"
        done = run(tmp_path, *JOB, "--max-time", "3", "--resume")
        if done.returncode == 0:
            break
    assert hash_of(tmp_path) == undisturbed
    assert files(tmp_path) == ["a.h5", "a.json"]


@pytest.mark.parametrize("seed", thin(range(10), [0]))
def test_killed_at_random_moments(tmp_path: Path, undisturbed: str, seed: int) -> None:
    """A timer writes checkpoints; a file under its final name is always whole."""
    draw = random.Random(seed)
    for _ in range(4):
        child = started(tmp_path, *JOB, "--checkpoint-every", "0.3", "--resume")
        time.sleep(draw.uniform(1, 4))
        child.kill()
        child.communicate()
        for path in tmp_path.glob("a.ckpt/*.ckpt"):
            CheckpointFile.open(path)
        if (tmp_path / "a.h5").exists():
            assert hash_of(tmp_path) == undisturbed
    goes_on(tmp_path, undisturbed)


def test_a_script_that_makes_many_runs_goes_on(tmp_path: Path) -> None:
    options = ("lud:n=64", "gru:hidden=1024,timesteps=8,layers=1", "--schemes", "graph", "--threads", "1")
    table = caller("gap_table")
    assert table(tmp_path, *options, "--out", "a.h5").returncode == 0
    want = hash_of(tmp_path)
    child = started(tmp_path, *options, "--out", "b.h5", script=CONFIGS / "gap_table.py")
    wait_for("graph: done", child)
    wait_for("graph: simulating", child)
    child.send_signal(signal.SIGTERM)
    assert ended(child)[0] == 143
    assert any(name.startswith("b.ckpt/") for name in files(tmp_path))
    done = table(tmp_path, *options, "--out", "b.h5", "--resume")
    assert done.returncode == 0
    assert "graph: has ended in b.ckpt/" in done.stderr
    assert stats.load(tmp_path / "b.h5").attributes["hash"] == want
    assert not any(name.startswith("b.ckpt/") for name in files(tmp_path))


def test_resume_is_done_at_once_where_the_result_is_there(tmp_path: Path) -> None:
    options = (*TINY, "--schemes", "stream")
    assert run(tmp_path, *options, "--resume", "--json").returncode == 0  # nothing to go on from: afresh
    before = (tmp_path / "a.h5").stat().st_mtime_ns
    (tmp_path / "a.ckpt").mkdir()
    (tmp_path / "a.ckpt" / "old.ckpt").touch()
    done = run(tmp_path, *options, "--resume")
    text = "a.h5 is there and complete: nothing to do\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, text, "")
    assert (tmp_path / "a.h5").stat().st_mtime_ns == before
    assert not (tmp_path / "a.ckpt").exists()
    done = run(tmp_path, *options, "--resume", "--json")
    assert (done.returncode, done.stderr) == (0, text)
    assert [row["scheme"] for row in json.loads(done.stdout)["runs"]] == ["stream"]
    # another configuration is not done, and does not replace the file
    refused(run(tmp_path, *options, "--seed", "3", "--resume"), "a.h5", 1)


def test_a_checkpoint_that_is_refused_is_kept(tmp_path: Path, undisturbed: str) -> None:
    assert run(tmp_path, *JOB, "--max-time", "0.5").returncode == 75
    (path, *_) = (tmp_path / "a.ckpt").glob("*.ckpt")
    kept, good = files(tmp_path), path.read_bytes()
    refused(
        run(tmp_path, *JOB, "--resume", "--seed", "3"), f"a.ckpt/{path.name}: of another call: parameters"
    )
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    path.write_bytes(flipped)
    refused(run(tmp_path, *JOB, "--resume"), f"a.ckpt/{path.name}: damaged: its checksum is wrong")
    assert files(tmp_path) == kept
    assert path.read_bytes() == flipped
    path.write_bytes(good)
    goes_on(tmp_path, undisturbed)


def test_a_call_without_resume_says_that_there_is_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "a.ckpt").mkdir()
    (tmp_path / "a.ckpt" / "old.ckpt").touch()
    done = run(tmp_path, *TINY, "--tables", "none")
    assert done.returncode == 0
    assert "a.ckpt has a checkpoint of an earlier call: --resume goes on from it" in done.stderr


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_run(tmp_path: Path, undisturbed: str) -> None:
    (tmp_path / "a.ckpt").touch()  # no folder can have this name
    done = run(tmp_path, *JOB, "--checkpoint-every", "0.2")
    assert done.returncode == 0
    assert "no checkpoint: cannot write a.ckpt/" in done.stderr
    assert hash_of(tmp_path) == undisturbed
    done = run(tmp_path, *JOB, "--max-time", "0.2", "--force")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: cannot write a.ckpt/")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("validate --suite h200-kernels", "results/cache keeps what has finished"),
        ("error_budget", "results/cache keeps what has finished"),
        ("table_size", "results/cache keeps what has finished"),
        ("seqpoint", "the folder of the sweep keeps what has finished"),
        ("study_networks", "the folder keeps what has finished"),
        ("microbench", "each microbenchmark is a run of seconds"),
        ("accelsim_rows", "each row is timed as a whole"),
    ],
)
def test_scripts_without_checkpoints_say_why(tmp_path: Path, script: str, reason: str) -> None:
    name, *needed = script.split()
    call = caller(name, *needed)
    refused(call(tmp_path, "--resume"), f"no --resume here: {reason}")
    refused(call(tmp_path, "--max-time", "5"), f"no --max-time here: {reason}")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--max-time", "0"), "--max-time: must be a time such as 90, 30m or 2h, not '0'"),
        (("--max-time", "-3"), "--max-time"),
        (("--max-time", "1e3"), "not '1e3'"),
        (("--max-time", "off"), "not 'off'"),
        (("--checkpoint-every", "soon"), "--checkpoint-every: must be a time"),
        (("--resume", "--set", "sim.oracle=1"), "--resume: not with sim.oracle = 1"),
        (("--max-time", "2h", "--set", "sim.oracle=1"), "--max-time: not with sim.oracle = 1"),
    ],
)
def test_wrong_options(tmp_path: Path, options: tuple[str, ...], text: str) -> None:
    refused(run(tmp_path, *options), text)


def test_the_oracle_runs_without_checkpoints(tmp_path: Path) -> None:
    options = (*TINY, "--schemes", "stream", "--set", "sim.oracle=1", "--checkpoint-every", "0.0001")
    assert run(tmp_path, *options).returncode == 0
