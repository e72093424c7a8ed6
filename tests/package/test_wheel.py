"""The wheel, in an environment of its own and an empty folder: what it holds, and that it works alone.

It is installed under each Python version that ``tests/support/pythons.py`` finds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.calls import ROOT
from tests.support.pythons import LISTED, VERSIONS, python_of

pytestmark = pytest.mark.deep  # installs numpy and h5py from the package index
PATIENCE = 900


def run(*words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, without the packages of this checkout."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        list(map(str, words)), cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE,
        check=False,
    )  # fmt: skip


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from what git knows, as a clone would be built."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, files.decode().split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    words = ("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ".")
    succeeded(run(sys.executable, *words, folder=source))
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module", params=VERSIONS)
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """Install the wheel, and what it requires, in a new environment of a Python version."""
    found = python_of(request.param)
    if found is None:
        pytest.skip(f"no python{request.param} that runs on PATH or in {LISTED}")
    folder = tmp_path_factory.mktemp("environment")
    succeeded(run(found, "-m", "venv", folder, folder=folder))
    python = folder / "bin" / "python"
    succeeded(run(python, "-m", "pip", "install", "-q", wheel, folder=folder))
    return python


def test_one_wheel_for_all_versions_and_one_name_in_it(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"pysim"}
    for wanted in (
        "_core.abi3.so", "py.typed", "stats/page/page.html.j2", "stats/page/script/main.js",
        "configs/titanv_gru.py", "sweep/engines/sbatch.sh.j2",
    ):  # fmt: skip
        assert f"pysim/{wanted}" in names
    measured = {path.name for path in (ROOT / "workloads" / "measured").iterdir() if path.is_file()}
    assert measured <= {name.rpartition("/")[2] for name in names if "/measured/" in name}


def test_the_environment_is_of_the_version(
    python: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    said = succeeded(run(python, "--version", folder=tmp_path))
    assert said.startswith(f"Python {request.node.callspec.params['python']}.")


def test_it_works_in_an_empty_folder(python: Path, tmp_path: Path) -> None:
    command = python.parent / "pysim"
    words = ("--hidden", 256, "--schemes", "stream,tb_static", "--quiet")
    assert "tb_static" in succeeded(run(command, "run", "gru", *words, "--out", "a.h5", folder=tmp_path))
    succeeded(run(command, "report", "a.h5", "-o", "a.html", folder=tmp_path))
    succeeded(run(command, "timeline", "a.h5", "-o", "t.json", folder=tmp_path))
    words = ("-m", "pysim.configs.titanv_gru", "--hidden", 64, "--timesteps", 2, "--quiet", "--out", "b.h5")
    succeeded(run(python, *words, folder=tmp_path))
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"a.h5", "a.json", "a.html", "t.json", "b.h5", "b.json"}


def test_short_names_are_those_of_a_checkout_only(python: Path, tmp_path: Path) -> None:
    for name in ("stats", "workloads", "configs"):
        done = run(python, "-c", f"import {name}", folder=tmp_path)
        assert f"No module named '{name}'" in done.stderr


def test_a_missing_extra_is_named(python: Path, tmp_path: Path) -> None:
    code = (
        "from pysim import simulate; from pysim.workloads import make\n"
        "simulate('titan_v', make('empty'), 'stream').frame('runs')"
    )
    done = run(python, "-c", code, folder=tmp_path)
    assert 'frame() needs pandas: pip install "pysim-tb[plot]"' in done.stderr


def test_its_types_pass_a_users_mypy(python: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "own.py").write_text(
        "from pysim import simulate, stats\nfrom pysim.workloads import make\n\n"
        'result = simulate("titan_v", make("gru:hidden=64"), "stream")\n'
        'time: float = result.time_us("stream")\nresult.to_file("a.h5")\n'
        'found = stats.compare("a.h5", "a.h5").equal\nwrong: str = result.time_us("stream")\n',
        encoding="utf-8",
    )
    done = run(
        sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "own.py", folder=tmp_path
    )
    lines = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line.split(":")[:2] for line in lines] == [["own.py", "8"]], done.stdout
