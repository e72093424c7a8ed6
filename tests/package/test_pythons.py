"""Which Pythons the wheel is tested with: those that run."""

import os
import sys

import pytest

from tests.support.pythons import LISTED, python_of


def program(folder, name, line):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def path(monkeypatch, tmp_path):
    """Return a function that sets the folders of PATH and what is listed."""

    def set_them(*folders, listed=()):
        monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / name) for name in folders))
        monkeypatch.setenv(LISTED, os.pathsep.join(map(str, listed)))

    return set_them


def test_a_shim_that_does_not_run_is_passed_over(path, tmp_path):
    program(tmp_path / "shims", "python3.12", "exit 127")
    program(tmp_path / "older", "python3.12", "echo 3.11")
    good = program(tmp_path / "good", "python3.12", "echo 3.12")
    path("shims", "missing", "older", "good")
    assert python_of("3.12") == good
    assert python_of("3.13") is None


def test_listed_ones_come_first_as_executables_or_folders(path, tmp_path):
    on_path = program(tmp_path / "good", "python3.12", "echo 3.12")
    other = program(tmp_path / "listed", "mine", "echo 3.12")
    later = program(tmp_path / "listed", "python3.13", "echo 3.13")
    path("good", listed=[tmp_path / "nowhere", other, tmp_path / "listed"])
    assert python_of("3.12") == other
    assert python_of("3.13") == later
    path("good")
    assert python_of("3.12") == on_path


def test_this_python_is_found_by_what_it_answers(path):
    path(listed=[sys.executable])
    assert str(python_of(f"{sys.version_info.major}.{sys.version_info.minor}")) == sys.executable
