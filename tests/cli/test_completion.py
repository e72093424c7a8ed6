"""``pysim completion``: the script of a shell, in that shell."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from pysim.cli.commands import COMMANDS
from pysim.machine.devices import DEVICES
from pysim.schemes.registry import SCHEMES
from pysim.sweep.engines.choice import ENGINES, FLAGS
from pysim.units import ROWS
from pysim.workloads.registry import WORKLOADS
from tests.support.calls import pysim, refused

BASH = """
source "$1"; shift
complete -p pysim > /dev/null || exit 9
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_pysim
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    for shell in ("bash", "zsh", "fish"):
        done = pysim("completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        (folder / shell).write_text(done.stdout, encoding="utf-8")
    return folder


def said(*words: str | Path) -> list[str]:
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1]


def bash(scripts: Path, *words: str) -> list[str]:
    """Return what bash offers in place of the last word."""
    return said("bash", "--norc", "-c", BASH, "bash", scripts / "bash", *words)


CASES = {
    ("pysim", ""): list(COMMANDS),
    ("pysim", "--v"): ["--version"],
    ("pysim", "st"): ["status"],
    ("pysim", "run", ""): list(WORKLOADS),
    ("pysim", "run", "gru", "--se"): ["--set", "--seed"],
    ("pysim", "run", "--gpu", ""): list(DEVICES),
    ("pysim", "run", "--gpu", "=", ""): list(DEVICES),
    ("pysim", "run", "--gpu", "="): list(DEVICES),
    ("pysim", "run", "--gpu=h2"): ["--gpu=h200"],
    ("pysim", "run", "--schemes", ""): list(SCHEMES),
    ("pysim", "run", "--schemes", "stream,gr"): ["stream,graph"],
    ("pysim", "run", "--schemes=stream,gr"): ["--schemes=stream,graph"],
    ("pysim", "run", "--set", "gpu.l2.si"): [f"{path}=" for path in ROWS if path.startswith("gpu.l2.si")],
    ("pysim", "run", "--picture", ""): ["auto", "yes", "no"],
    ("pysim", "run", "--out", ""): [""],  # bash offers files
    ("pysim", "sweep", "--engine", ""): list(ENGINES),
    ("pysim", "compare", "--table", "k"): ["kernels"],
    ("pysim", "devices", "h2"): ["h200"],
    ("pysim", "help", "exit"): ["exit-codes"],
    ("pysim", "completion", ""): ["bash", "zsh", "fish"],
    ("pysim", "work", "--ch"): [""],  # an option between processes of a sweep
    ("pysim", "nothing", ""): [""],
}


@pytest.mark.parametrize("words", CASES, ids=" ".join)
def test_bash(scripts: Path, words: tuple[str, ...]) -> None:
    assert sorted(bash(scripts, *words)) == sorted(CASES[words])


def test_bash_knows_every_option(scripts: Path) -> None:
    assert set(FLAGS) < set(bash(scripts, "pysim", "sweep", "--"))
    for name, command in COMMANDS.items():
        flags = {flag for row in command.options for flag in row.flags} - {"--child"}
        assert {"-h", "--help", *flags} <= set(bash(scripts, "pysim", name, "-"))


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_zsh_runs_the_script_of_bash(scripts: Path, tmp_path: Path) -> None:
    """In a terminal, as bashcompinit calls it."""
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
        env={**os.environ, "TERM": "dumb", "HOME": str(tmp_path)},
    )  # fmt: skip
    os.close(follower)

    def until(text: str) -> None:
        shown, end = "", time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < end, shown
            if select.select([leader], [], [], 0.1)[0]:
                shown += os.read(leader, 65536).decode(errors="replace")

    try:
        start = f"autoload -U compinit; compinit -u -D; source {scripts / 'zsh'}; echo rea''dy\n"
        os.write(leader, start.encode())
        until("ready")
        for typed, completed in (("pysim stat", "pysim status"), ("pysim run --gpu h2", "--gpu h200")):
            os.write(leader, b"\x15" + typed.encode() + b"\t")
            until(completed)
    finally:
        shell.kill()
        shell.wait()
        os.close(leader)


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("pysim st", ["status"]),
        ("pysim run --se", ["--seed", "--set"]),
        ("pysim run --gpu h2", ["h200"]),
        ("pysim run --gpu=h2", ["--gpu=h200"]),
        ("pysim devices h2", ["h200"]),
        ("pysim compare --table k", ["kernels"]),
    ],
)
def test_fish(scripts: Path, tmp_path: Path, line: str, offered: list[str]) -> None:
    words = ("fish", "--no-config", "-c", f'source {scripts / "fish"}; cd {tmp_path}; complete -C "{line}"')
    assert sorted(text.partition("\t")[0] for text in said(*words)) == offered


def test_an_unknown_shell() -> None:
    refused(pysim("completion", "tcsh"), "unknown value 'tcsh': must be one of bash, zsh, fish")
