"""Every example of every --help is run as it is printed, in a folder that has the files that it names."""

from __future__ import annotations

import ast
import gzip
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pysim.cli.commands import COMMANDS
from pysim.workloads.microbench import MEASURED
from tests.profile.traces import launched, written
from tests.support.calls import CONFIGS, PATIENCE, ROOT, call, pysim
from tests.support.once import once
from tests.support.thin import thin

SCRIPTS = sorted(CONFIGS.glob("[!_]*.py"))
# programs whose examples take more than two seconds: make nightly runs them
SLOW = (
    "configs/acs_suite.py",
    "configs/characterise_bert.py",
    "configs/characterise_communication.py",
    "configs/cusync_models.py",
    "configs/error_budget.py",
    "configs/gap_table.py",
    "configs/gpt3.py",
    "configs/gru_sizes.py",
    "configs/microbench.py",
    "configs/seqpoint.py",
    "configs/stream_k.py",
    "configs/study_dynamic.py",
    "configs/study_networks.py",
    "configs/table_size.py",
    "configs/validate.py",
)
# examples of other programs: another example, or a page of docs/, runs the same on something smaller
AGAIN = (
    "pysim run gru --hidden 512",
    "pysim sweep gru --timesteps 4",
    "configs/blockmaestro_suite.py --apps 3mm,fft",
    "configs/compare_schemes.py mlp",
    "configs/figure_dependences.py --hidden 512",
    "configs/titanv_gru.py --hidden 512",
)
TINY = "gru:batch=4,timesteps=1,layers=1"
JOB = 'from pysim.workloads import make\n\njob = make("mlp")\n'
SWEEP = f'workload = "{TINY}"\nschemes = "stream,tb_static"\nout = "runs/file"\n\n[grid]\nhidden = [64, 96]\n'
RUN = ("run", f"{TINY},hidden=64", "--schemes", "stream,tb_static", "--tables", "all", "--out", "gru.h5")
GRID = ("--grid", "hidden=64,96", "--schemes", "stream,tb_static", "--tables", "all", "--out", "runs/gru")


def examples_of(text: str) -> list[str]:
    """Return the command lines below ``examples:``, which end a help; a comment stands above each."""
    lines = text.partition("\nexamples:\n")[2].splitlines()
    assert all(line.startswith("  # ") for line in lines[::2])
    assert all(line.startswith("  ") for line in lines)
    return [line.strip() for line in lines[1::2]]


def docstring(script: Path) -> str:
    return ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""


def cases():
    lines = [line for command in COMMANDS.values() for _, line in command.examples]
    lines += [line for script in SCRIPTS for line in examples_of(docstring(script))]
    for line in lines:
        yield pytest.param(
            line, marks=[pytest.mark.deep] if any(name in line for name in (*SLOW, *AGAIN)) else [], id=line
        )


def _profiles(folder: Path) -> None:
    """Write a file of the PyTorch profiler, plain and packed, and a table of kernels."""
    events = [event for n in range(4) for event in launched(30.0 * n, corr=n + 1)]
    path = written(folder, events)
    (folder / "trace.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    rows = ["workload,mode,name,stream,start_us,dur_us,grid,block"]
    rows += [f"gru,eager,gemm,7,{30 * n},12,600,128" for n in range(4)]
    (folder / "kernels.csv.gz").write_bytes(gzip.compress("\n".join(rows).encode()))


def _furnish(folder: Path) -> None:
    (folder / "bin").mkdir()
    for name, words in (("pysim", "-m pysim "), ("python", "")):
        program = folder / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n', encoding="utf-8")
        program.chmod(0o755)
    (folder / "configs").symlink_to(ROOT / "configs")
    (folder / "measured").mkdir()
    shutil.copy(MEASURED["h200"], folder / "measured" / "micro.json")
    (folder / "job.py").write_text(JOB, encoding="utf-8")
    (folder / "gru.toml").write_text(SWEEP, encoding="utf-8")
    (folder / "waits.txt").write_text("layer*; start; start\n", encoding="utf-8")
    trace = ("write-trace", f"{TINY},hidden=64", "traces/gru")
    for words in (RUN, ("sweep", TINY, *GRID, "--quiet"), trace):
        done = pysim(*words, folder=folder)
        assert done.returncode == 0, done.stderr
    _profiles(folder)
    for name in ("before.h5", "after.h5"):
        shutil.copy(folder / "gru.h5", folder / name)
    shutil.copytree(folder / "runs" / "gru", folder / "runs" / "again")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that examples name, and with the programs ``pysim`` and ``python``."""
    return once(tmp_path_factory, "home", _furnish)


@pytest.mark.parametrize("line", [*cases()])
def test_an_example_runs(line: str, home: Path, tmp_path: Path) -> None:
    if " export " in line and importlib.util.find_spec("pyarrow") is None:
        pytest.skip("no pyarrow")
    if "torch_model.py" in line and importlib.util.find_spec("torch") is None:
        pytest.skip("no torch")
    work = tmp_path / "work"
    shutil.copytree(home, work, symlinks=True)
    before = {path.relative_to(work) for path in work.rglob("*")}
    path = f"{work / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=work, env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if named := re.search(r"(?: -o| --out| >) (\S+)", line):
        made = Path(named[1])
        assert (work / made).exists()
        assert made not in before


@pytest.mark.parametrize("name", thin(COMMANDS, 3))
def test_the_help_of_a_command_ends_with_its_examples(name: str) -> None:
    done = pysim(name, "--help")
    assert done.returncode == 0
    lines = examples_of(done.stdout)
    assert lines == [line for _, line in COMMANDS[name].examples]
    assert 2 <= len(lines) <= 3
    assert all(f"pysim {name}" in line for line in lines)


@pytest.mark.parametrize("script", thin(SCRIPTS, 3), ids=lambda path: path.stem)
def test_the_help_of_a_script_ends_with_its_examples(script: Path, tmp_path: Path) -> None:
    done = call(tmp_path, script, "--help")
    assert done.returncode == 0
    lines = examples_of(done.stdout)
    assert lines == examples_of(docstring(script))
    assert len(lines) == 2
    assert all(line.startswith(f"python configs/{script.name} ") for line in lines)
