"""pysim doctor: what a run needs, in a good state and in broken ones, which are lines and not tracebacks."""

from __future__ import annotations

import json
import shutil
import stat
import time
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pysim.cli import health
from pysim.cli.doctor import doctor
from pysim.cli.health import MISSING, OK, WRONG, Finding
from tests.cli.test_start_up import HEAVY, imported
from tests.support.calls import PATIENCE, ROOT, call, pysim, refused


def found(name: str) -> Finding:
    """Return the finding of a name."""
    (made,) = [each for each in health.examine() if each.name == name]
    return made


def command(folder: Path, name: str, text: str) -> None:
    """Make a command of a shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder for commands, which are found alone."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_what_is_there(tmp_path: Path) -> None:
    done = call(tmp_path, "-m", "pysim", "doctor")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[-2:] == ["", "ready"]
    states = {line.split()[1]: line.split()[0] for line in lines[:-2]}
    assert set(states.values()) <= {OK, MISSING, WRONG}
    needed = ("python", "pysim", *health.NEEDED, "core", "memory", "folder", "results")
    assert [name for name in needed if states[name] != OK] == []
    assert set(states) == {
        *needed, *health.OPTIONAL, "compiler", "processors", "slurm", "nvcc", "nvidia-smi",
    }  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(Namespace(json=True)) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["ready"] is True
    core = next(each for each in made["checks"] if each["name"] == "core")
    assert (core["state"], core["needed"], core["advice"]) == (OK, True, "")
    assert "_core.abi3.so, mode " in core["text"]


def test_options() -> None:
    refused(pysim("doctor", "--jsn"), "unknown option --jsn: did you mean --json?")
    refused(pysim("doctor", "core"), "unexpected argument 'core'")
    assert "exit code 0" in " ".join(pysim("help", "doctor").stdout.lower().split())


def test_it_imports_nothing_that_may_be_broken(tmp_path: Path) -> None:
    assert imported(tmp_path, "pysim", "doctor", heavy=HEAVY) == []


@pytest.mark.parametrize(
    ("text", "state", "said"),
    [
        ("raise ImportError('wrong\\nABI')", WRONG, "ImportError: wrong ABI"),
        ("raise SystemExit(3)", WRONG, "SystemExit: 3"),
        ("import os; os._exit(7)", WRONG, "the import ended Python (status 7)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", WRONG, "ended Python (status -9)"),
        ("__version__ = '1.24.4'", WRONG, "1.24.4: must be >=1.26,<3"),
        ("__version__ = '3.0.0rc1'", WRONG, "3.0.0rc1: must be >=1.26,<3"),
        ("import no_such_module", MISSING, "No module named 'no_such_module'"),
    ],
)
def test_a_broken_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, state: str, said: str
) -> None:
    (tmp_path / "numpy.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    made = found("numpy")
    assert (made.state, made.advice, made.bad) == (state, 'pip install "numpy>=1.26,<3"', True)
    assert said in made.text
    assert "\n" not in made.text


def test_a_library_that_prints_and_one_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "__version__ = '2.1'\nprint('[')\nprint('[1, 2]')\n"
    (tmp_path / "jinja2.py").write_text("__version__ = '3.1'\nprint('{')\n", encoding="utf-8")
    (tmp_path / "cffi.py").write_text("import time; time.sleep(600)\n", encoding="utf-8")
    (tmp_path / "numpy.py").write_text(text.replace("print('[1, 2]')\n", ""), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(health, "PROBE_S", 3.0)
    made = {each.name: each for each in health.examine()}
    assert (made["numpy"].state, made["numpy"].text) == (OK, "2.1")
    assert (made["cffi"].state, made["cffi"].text) == (WRONG, "no answer within 3 s")
    assert made["jinja2"].state == WRONG
    assert made["core"].bad


def test_ranges_of_versions() -> None:
    assert health.fits("2.0", ">=2.0")
    assert health.fits("2", ">=2.0.0,<3")
    assert health.fits("1.26.4", ">=1.26,<3")
    assert health.fits("2.4.6+local.9", ">=1.26,<3")
    assert not health.fits("1.9", ">=1.26")
    assert not health.fits("3.0", ">=1.26,<3")
    assert health.fits("1.0", "")
    assert health.fits("1.0", "~=1.0")


def test_ranges_are_those_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    assert health.requirements()["numpy"] == ">=1.26,<3"
    monkeypatch.setattr(health, "ROOT", Path("/nonexistent"))
    rows = ["numpy<3,>=1.26", 'pandas>=2.1; extra == "plot"', 'pysim-tb[build]; extra == "dev"']
    monkeypatch.setattr(health.metadata, "requires", lambda name: rows)
    assert health.requirements() == {"numpy": "<3,>=1.26", "pandas": ">=2.1"}


def test_an_old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "sys", SimpleNamespace(version_info=(3, 10, 4), executable="python3.10"))
    made = health.python()
    assert (made.state, made.bad, made.advice) == (WRONG, True, "pysim needs Python 3.11 or later")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with the core of this checkout and its sources."""
    (tmp_path / "pysim").mkdir()
    shutil.copy(next((ROOT / "pysim").glob("_core.*so")), tmp_path / "pysim" / "_core.abi3.so")
    shutil.copytree(ROOT / "core_c", tmp_path / "core_c")
    return tmp_path


def test_a_core_of_other_sources(tree: Path) -> None:
    build = "mode release, compiler 12, flags -O2 -g"
    good = health.core(build, "", tree)
    assert (good.state, good.text) == (OK, "_core.abi3.so, mode release, compiler 12")
    file = tree / "core_c" / "sm" / "sm.c"
    text = file.read_text(encoding="utf-8")
    file.write_text(text + "\n", encoding="utf-8")
    stale = health.core(build, "", tree)
    assert (stale.state, stale.bad, stale.advice) == (WRONG, True, "run python build.py")
    assert stale.text == "_core.abi3.so is of other C sources"
    file.write_text(text, encoding="utf-8")
    assert health.core(build, "", tree) == good
    (tree / "core_c" / "sm" / "new.h").touch()
    assert health.core(build, "", tree) == stale
    shutil.rmtree(tree / "core_c")  # an installed package has no sources
    assert health.core(build, "", tree) == good


def test_a_core_that_another_one_hides(tree: Path) -> None:
    suffix = health.EXTENSION_SUFFIXES[0]
    (tree / "pysim" / f"_core{suffix}").touch()
    made = health.core("mode release", "", tree)
    assert (made.state, made.text) == (WRONG, f"_core{suffix} hides _core.abi3.so")
    assert made.advice.startswith("remove all of pysim/_core.*.so")


def test_no_core(tmp_path: Path) -> None:
    made = health.core(None, "CoreVersionError: ...", tmp_path)
    assert (made.state, made.bad, made.advice) == (MISSING, True, "run python build.py")


@pytest.mark.parametrize("core", ["none", "garbage", "stale"])
def test_a_package_with_a_broken_core(tmp_path: Path, core: str) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "_core*")
    shutil.copytree(ROOT / "pysim", tmp_path / "pysim", ignore=ignored)
    for name in ("stats", "workloads"):
        (tmp_path / name).symlink_to(ROOT / name)
    file = tmp_path / "pysim" / "_core.abi3.so"
    if core == "garbage":
        file.write_bytes(b"no library\n" * 100)
    if core == "stale":
        shutil.copy(next((ROOT / "pysim").glob("_core.*so")), file)
        table = tmp_path / "pysim" / "params.py"
        row = 'Param("slices", 48,'
        more = f'Param("toy", 0, "cycle", 0, 9, "Cycles of a toy."), {row}'
        table.write_text(table.read_text(encoding="utf-8").replace(row, more), encoding="utf-8")
    made = call(tmp_path, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
                "sys.argv = ['pysim', 'doctor']\nfrom pysim.__main__ import main\nmain()")  # fmt: skip
    assert (made.returncode, made.stderr) == (1, "")
    (line,) = [line for line in made.stdout.splitlines() if line.split()[1:2] == ["core"]]
    assert line.split()[0] == (MISSING if core == "none" else WRONG)
    assert line.endswith("run python build.py")
    assert {"none": "no ", "garbage": "ImportError", "stale": "the compiled core is stale"}[core] in line
    assert made.stdout.splitlines()[-1] == "not ready: core"


@pytest.mark.parametrize("text", [None, "exit 1", "exit 0"])
def test_no_compiler(commands: Path, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    if text is not None:
        command(commands, "mycc", text)
    monkeypatch.setenv("CC", "mycc")
    made = found("compiler")
    assert (made.state, made.bad) == (MISSING, False)
    assert "apt-get install gcc" in made.advice


def test_a_compiler_with_options(commands: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(commands, "mycc", 'echo "cc of mine $1 $2"')
    monkeypatch.setenv("CC", "mycc -m64")
    assert found("compiler") == Finding("compiler", OK, "cc of mine -m64 --version")


def test_optional_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "pyarrow":
            raise health.metadata.PackageNotFoundError(name)
        return "0.1" if name == "matplotlib" else "99.0"

    monkeypatch.setattr(health.metadata, "version", version)
    made = {each.name: each for each in health.optional()}
    assert made["pyarrow"].state == MISSING
    assert made["matplotlib"].text == "0.1: must be >=3.8; optional: pictures"
    assert made["matplotlib"].advice == 'pip install -e ".[plot]"'
    assert made["pandas"].state == OK
    assert not any(each.bad for each in made.values())


def test_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "free_memory", lambda: 5 << 30)
    assert health.memory().text == "5.0 GiB free, a job may take 4.0 GiB (--max-memory)"
    assert not health.memory().bad
    monkeypatch.setattr(health, "free_memory", lambda: 100 << 20)
    assert health.memory().bad


def test_disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert found("results").text.endswith(f"free in {tmp_path}, where results will be")
    Path("results").mkdir()
    assert found("results").text.endswith(f"free in {tmp_path / 'results'}")
    with monkeypatch.context() as few:
        few.setattr(health.shutil, "disk_usage", lambda where: SimpleNamespace(free=1 << 20))
        assert found("folder").bad
    with monkeypatch.context() as barred:
        barred.setattr(health.os, "access", lambda where, mode: False)
        assert found("results").text == f"{tmp_path / 'results'} cannot be written"
    Path("results").rmdir()
    Path("results").touch()
    assert (found("results").text, found("results").bad) == ("results is no folder", True)


def test_slurm(commands: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "ANSWER_S", 0.5)
    command(commands, "squeue", "exit 0")
    assert found("slurm").text.startswith("no sbatch; ")
    command(commands, "sbatch", "exit 0")
    assert found("slurm") == Finding("slurm", OK, "sbatch, squeue; a controller answers")
    command(commands, "squeue", "echo one >&2\necho 'cannot contact' >&2\nexit 1")
    assert (found("slurm").state, found("slurm").bad) == (WRONG, False)
    assert "no controller answers: cannot contact; optional" in found("slurm").text
    command(commands, "squeue", "/bin/sleep 600")  # a child, which outlives the shell that is killed
    start = time.monotonic()
    assert "no answer within 0.5 s" in found("slurm").text
    assert time.monotonic() - start < PATIENCE


def test_a_check_that_fails_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise ValueError("no\nmemory")

    monkeypatch.setattr(health, "free_memory", fail)
    assert doctor(Namespace(json=False)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["wrong", "memory", "cannot", "be", "checked:", "ValueError:", "no", "memory"]
               for line in lines)  # fmt: skip
    assert lines[-1] == "not ready: memory"


def test_where_nothing_is_found(commands: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    made = {each.name: each for each in health.examine()}
    for name in ("compiler", "slurm", "nvcc", "nvidia-smi"):
        assert (made[name].state, made[name].bad) == (MISSING, False)
    assert list(commands.iterdir()) == []
