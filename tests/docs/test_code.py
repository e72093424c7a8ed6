"""All code of README.md and docs/ is run as a reader would run it: page by page, in an empty folder."""

import contextlib
import io
import os
import re
import subprocess
import sys
import traceback

import pytest

import pysim
from tests.support.calls import ROOT
from tests.support.page_blocks import OTHER, Block, blocks, commands, file_name, is_shell, matches

PATIENCE = 3600
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = ("python", "command")
WITH_CODE = [page for page in PAGES if any(block.kind in CODE for block in blocks(page))]
NIGHTLY = [page for page in WITH_CODE if any(block.nightly for block in blocks(page))]


def _name(page):
    return page.relative_to(ROOT).as_posix()


class Folder:
    """An empty folder but for the scripts of this checkout, with its programs ``pysim`` and ``python``."""

    def __init__(self, path, home):
        self.path = path
        programs = home / "bin"
        programs.mkdir()
        for name, words in (("pysim", "-m pysim "), ("python", "")):
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n', encoding="utf-8")
            program.chmod(0o755)
        for name in ("configs", "tests"):
            (path / name).symlink_to(ROOT / name)
        found = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": found, "PYTHONPATH": str(ROOT), "ROOT": str(ROOT)}
        self.names = {"__name__": "__main__"}

    def run(self, block):
        """Run a block; return what it prints on stdout, and why it failed, or nothing."""
        if block.kind == "file":
            (self.path / file_name(block)).write_text(block.text, encoding="utf-8")
            return "", ""
        if block.kind == "python":
            out, why = io.StringIO(), ""
            with contextlib.redirect_stdout(out):
                try:
                    exec(compile(block.text, f"line {block.line}", "exec"), self.names)
                except Exception:
                    why = traceback.format_exc()
            return out.getvalue(), why
        done = subprocess.run(
            ["bash", "-c", block.text], cwd=self.path, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        return done.stdout, f"exit code {done.returncode}: {done.stderr}" if done.returncode else ""


def run_page(page, folder, nightly):
    """Run the code of a page; return counts of what was run and left out, and all that is wrong."""
    counts, wrong, printed = {"run": 0, "left out": 0, "left to make nightly": 0}, [], None
    for block in blocks(page):
        where = f"{_name(page)}:{block.line}: {block.text.strip().splitlines()[0]}"
        if block.kind == "text":
            if printed is not None and not matches(block.text, printed):
                wrong.append(f"{where}: shown is not what is printed:\n{printed}")
            continue
        if block.skip or (block.nightly and not nightly):
            counts["left out" if block.skip else "left to make nightly"] += 1
            printed = None
            continue
        printed, why = folder.run(block)
        counts["run"] += block.kind in CODE
        if why:
            wrong.append(f"{where}: {why}")
    return counts, wrong


def _run(page, tmp_path, monkeypatch, record_property, nightly):
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.syspath_prepend(work)  # modules that the page wrote
    schemes, modules = dict(pysim.SCHEMES), set(sys.modules)
    try:
        counts, wrong = run_page(page, Folder(work, home), nightly)
    finally:
        for name in set(pysim.SCHEMES) - set(schemes):
            pysim.SCHEMES.pop(name)
        for name in set(sys.modules) - modules:
            if (work / f"{name}.py").exists():
                sys.modules.pop(name)
    for kind, number in counts.items():
        record_property(f"code of pages {kind}", number)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", WITH_CODE, ids=_name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, record_property):
    _run(page, tmp_path, monkeypatch, record_property, False)


@pytest.mark.deep
@pytest.mark.parametrize("page", NIGHTLY, ids=_name)
def test_the_slow_code_of_a_page_runs(page, tmp_path, monkeypatch, record_property):
    _run(page, tmp_path, monkeypatch, record_property, True)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_block_is_known(page):
    """A block is Python, commands, or output; a note says what is left out, and stands before a block."""
    text = page.read_text(encoding="utf-8")
    kinds = set(re.findall(r"^```(\w+)$", text, re.MULTILINE))
    assert kinds <= {"python", "sh", "text", *OTHER}
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(
        re.findall(r"^```\w*\n(?:.*\n)*?```$", text, re.MULTILINE)
    )
    after = re.findall(r"<!-- (?:not run|nightly|prepare): [^>]*? -->\n+(.*)", text)
    assert all(line.startswith(("```", "<!--")) for line in after)


def test_a_wrong_page_is_seen(tmp_path):
    """Code that fails, output that differs, and what is left out."""
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\npysim schemes streem\nmake gru  # x\nscancel 7\n```\n"
        "```python\nprint('a')\n```\n\n```text\nb\n```\n"
        "<!-- not run: why -->\n```python\n1 / 0\n```\n"
        "<!-- nightly: slow -->\n<!-- prepare: true -->\n```python\n1 / 0\n```\n"
        "<!-- prepare: mkdir made -->\n```\npython -c \\\n  'import os; os.rmdir(\"made\")'\n```\n",
        encoding="utf-8",
    )
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    folder = Folder(tmp_path / "work", tmp_path / "home")
    monkey = pytest.MonkeyPatch()
    monkey.setattr(sys.modules[__name__], "ROOT", tmp_path)
    with monkey.context():
        counts, wrong = run_page(page, folder, False)
    monkey.undo()
    assert counts == {"run": 3, "left out": 3, "left to make nightly": 1}
    assert [text.partition(": ")[0] for text in wrong] == ["page.md:2", "page.md:11"]
    assert "did you mean stream?" in wrong[0]


def test_commands_and_output_are_told_apart():
    assert commands("# a\npysim a \\\n   --b  # c\n\nX=1 python d#e\n") == ["pysim a  --b", "X=1 python d#e"]
    assert is_shell("", "X=1 python d\n")
    assert not is_shell("", "GPU  NVIDIA\n")
    assert Block("text", 1, "a").skip == ""
    assert matches("a ... c\n...\nd\n", "a b c\nx\ny\nd \n")
    assert matches("a\n...\n", "a\n")
    assert not matches("a\n", "a\nb\n")
