"""compile_core.py: it compiles in parallel, each file once, and anew when what decides it changes."""

from __future__ import annotations

import os
import runpy
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.calls import ROOT

FILES = ("core_c/a.c", "core_c/b.c", "core_c/c.c")


class Compiler:
    """Stands for a compiler of setuptools: an object holds the text of its source; it counts what it does."""

    compiler_so = ("true", "-O2")

    def __init__(self) -> None:
        self.done: list[str] = []
        self.meeting: threading.Barrier | None = None

    def compile(self, sources: list[str], output_dir: str, **_flags: Any) -> list[str]:
        """Compile as distutils does."""
        if self.meeting is not None:
            self.meeting.wait(60)
        made = [Path(output_dir, name.lstrip("/")).with_suffix(".o") for name in sources]
        for name, path in zip(sources, made, strict=True):
            text = Path(name).read_text(encoding="utf-8")
            if "#error" in text:
                raise RuntimeError(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            self.done.append(name)
        return list(map(str, made))


class Build:
    """A folder with three C files and a header, and calls that compile them."""

    def __init__(self, make: Any) -> None:
        self.make = make
        self.compiler = Compiler()

    def __call__(self, *sources: str, jobs: int = 2, **flags: Any) -> tuple[list[str], list[str]]:
        """Return the texts of the objects, and the sources that were compiled for them."""
        self.compiler.done.clear()
        run = self.make(self.compiler, Path("build/objects"), jobs)
        objects = run(list(sources or FILES), output_dir="build/temp", depends=["core_c/h.h"], **flags)
        return [Path(name).read_text(encoding="utf-8") for name in objects], sorted(self.compiler.done)


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Build]:
    pytest.importorskip("setuptools")
    monkeypatch.chdir(tmp_path)
    for name in (*FILES, "core_c/h.h"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(name, encoding="utf-8")
    return Build(runpy.run_path(str(ROOT / "compile_core.py"))["ParallelCompile"])


def test_each_file_is_compiled_once(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    assert build() == (list(FILES), list(FILES))
    assert capsys.readouterr().out == "compiling the core (3 files)\n"
    assert build() == (list(FILES), [])
    assert capsys.readouterr().out == ""


def test_the_order_of_objects_is_that_of_the_sources(build: Build) -> None:
    wanted = [FILES[2], FILES[0], FILES[1]]
    assert build(*wanted)[0] == wanted
    assert build(*reversed(wanted))[0] == wanted[::-1]


def test_files_are_compiled_at_once(build: Build) -> None:
    build.compiler.meeting = threading.Barrier(3)  # which one that comes alone would wait for
    assert build(jobs=3)[1] == list(FILES)


def test_a_changed_source_is_compiled_alone_whatever_its_time(
    build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build()
    file = Path(FILES[1])
    before = file.stat()
    file.write_text("core_c/B.c", encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    capsys.readouterr()
    assert build() == ([FILES[0], "core_c/B.c", FILES[2]], [FILES[1]])
    assert capsys.readouterr().out == "compiling the core (1 of 3 files)\n"


@pytest.mark.parametrize("what", ["header", "flag", "compiler"])
def test_what_all_files_depend_on_compiles_all(build: Build, what: str) -> None:
    build(extra_postargs=["-O2"])
    assert build(extra_postargs=["-O2"])[1] == []
    if what == "header":
        Path("core_c/h.h").write_text("another", encoding="utf-8")
    if what == "compiler":
        build.compiler.compiler_so = ("true", "-O3")
    assert build(extra_postargs=["-O1" if what == "flag" else "-O2"])[1] == list(FILES)


def test_only_objects_of_these_flags_and_sources_are_kept(build: Build) -> None:
    build(extra_postargs=["-O2"])
    build(extra_postargs=["-O0"])
    Path(FILES[0]).write_text("new", encoding="utf-8")
    build(extra_postargs=["-O2"])
    counts = sorted(len(list(folder.iterdir())) for folder in Path("build/objects").iterdir())
    assert counts == [3, 3]
    assert build(FILES[1], FILES[2], extra_postargs=["-O0"])[1] == []


def test_a_source_that_cffi_writes_elsewhere_is_the_same_source(build: Build, tmp_path: Path) -> None:
    for number, folder in enumerate((tmp_path / "one", tmp_path / "two", Path("build/temp"))):
        path = folder / "pysim._core.c"
        path.parent.mkdir(parents=True)
        path.write_text("made", encoding="utf-8")
        made, done = build(str(path))
        assert (made, len(done)) == (["made"], 0 if number else 1)


def test_a_file_that_does_not_compile_fails_and_leaves_no_object(build: Build) -> None:
    Path(FILES[0]).write_text("#error", encoding="utf-8")
    with pytest.raises(RuntimeError, match=FILES[0]):
        build()
    assert build(FILES[1], FILES[2])[1] in ([], [FILES[1]], [FILES[2]])  # what was compiled is kept
    shutil.copy(FILES[1], FILES[0])
    assert build()[0] == [FILES[1], FILES[1], FILES[2]]
