"""Exit codes: one table, which help prints, and which commands and scripts keep."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pysim.cli import exit_codes
from pysim.cli.exit_codes import EXIT_CODES
from tests.support.calls import pysim
from tests.support.once import once

SMALL = "gru:batch=4,timesteps=1,layers=1,hidden=64"
# no tile of a GEMM fits an SM with so few registers
GRID = ("--grid", "gpu.sm.registers=1024,65536", "--schemes", "stream", "--quiet")


def test_the_table_has_every_code() -> None:
    names = [name for name in dir(exit_codes) if name.startswith("EXIT_") and name != "EXIT_CODES"]
    assert set(EXIT_CODES) == {0, *(getattr(exit_codes, name) for name in names)}
    assert set(EXIT_CODES) == {0, 1, 2, 75, 130, 141, 143}
    done = pysim("help", "exit-codes")
    assert (done.returncode, done.stderr) == (0, "")
    assert " ".join(done.stdout.split()) == " ".join(f"{n} {text}" for n, text in EXIT_CODES.items())


def _made(made: Path) -> None:
    assert pysim("sweep", SMALL, *GRID, "--out", "half", folder=made).returncode == 1
    for name, more in (("a.h5", ()), ("b.h5", ("--set", "gpu.l2.latency=300"))):
        assert pysim("run", SMALL, "--quiet", "--out", name, *more, folder=made).returncode == 0
    (made / "none").mkdir()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a sweep of which one point fails, and with two results that differ."""
    return once(tmp_path_factory, "codes", _made)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        # a sweep of which a point fails
        (f"sweep {SMALL} --grid gpu.sm.registers=1024,65536 --schemes stream --quiet --out half", 1),
        (f"sweep {SMALL} --grid gpu.sm.registers=1024,65536 --schemes stream --dry-run --out half", 0),
        ("work half", 1),
        ("work half --shard 1/2", 0),
        ("status half", 0),
        ("collect half -o all.h5", 1),
        ("collect half -o part.h5 --partial", 0),
        # a folder without a sweep, and a file in place of one
        *(
            (f"{name} none", 2)
            for name in ("status", "work", "collect -o x.h5", "export -o x", "report -o x.html")
        ),
        *((f"{name} a.h5", 2) for name in ("status", "work", "collect -o x.h5")),
        ("collect half -o x.h5 --partial --tables no", 2),
        ("collect half -o x.txt --partial", 2),
        ("compare a.h5 a.h5", 0),
        ("compare a.h5 b.h5", 1),
        ("compare a.h5 none", 2),
        ("run nothing", 2),
        (f"run {SMALL} --schemes nothing", 2),
        (f"run {SMALL} --set gpu.sm.registers=1024", 2),
        (f"run {SMALL} --seed 2 --quiet --out a.h5", 1),
        ("check none.py", 2),
        ("calibrate none", 2),
    ],
)
def test_commands(folder: Path, tmp_path: Path, words: str, code: int) -> None:
    work = tmp_path / "work"
    shutil.copytree(folder, work)
    done = pysim(*words.split(), folder=work)
    assert done.returncode == code, done.stderr
    assert (done.stderr == "") is (code == 0) or code == 1
