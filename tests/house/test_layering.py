"""Imports run one way: configs -> workloads, stats -> pysim -> core_c."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FORBIDDEN = {
    "pysim": {"workloads", "stats", "configs"},
    "stats": {"pysim", "workloads", "configs"},
    "workloads": {"configs"},
}
LAZY = {"pysim/cli/command.py"}
# a library neither prints nor ends its process, and its results depend on nothing outside its inputs
BANNED_C = re.compile(r"\b(printf|fprintf|puts|exit|_exit|abort|getenv|setlocale|time|clock|rand|srand)\s*\(")
# a broken assertion of a debug build may stop the process: such a line says so
ALLOWED_C = "debug builds only"


def _python(package):
    return sorted((ROOT / package).rglob("*.py"))


def _imports(tree):
    """Yield (node, dotted name) of every import; relative ones start with a dot."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield node, base
            for alias in node.names:
                yield node, f"{base}.{alias.name}" if not base.endswith(".") else base + alias.name


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_arrows_run_one_way(package):
    wrong = []
    for path in _python(package):
        name = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef)
            for node in ast.walk(function)
        }
        for node, module in _imports(tree):
            lazy = name in LAZY and id(node) in inside
            if module.split(".")[0] in FORBIDDEN[package] and not lazy:
                wrong.append(f"{name}:{node.lineno}: {module}")
    assert not wrong


def test_only_ffi_imports_the_core():
    wrong = []
    for package in ("pysim", "workloads", "stats", "configs"):
        for path in _python(package):
            name = path.relative_to(ROOT).as_posix()
            for node, module in _imports(ast.parse(path.read_text(encoding="utf-8"))):
                if "_core" in module.split(".") and name != "pysim/_ffi.py":
                    wrong.append(f"{name}:{node.lineno}: {module}")
    assert not wrong


@pytest.mark.parametrize("name", ["params", "counters", "isa", "_tables", "opcodes"])
def test_tables_need_only_the_standard_library(name):
    # build.py runs them before anything of the package can be imported
    tree = ast.parse((ROOT / "pysim" / f"{name}.py").read_text(encoding="utf-8"))
    assert {module.split(".")[0] for _, module in _imports(tree)} <= {"__future__", "hashlib", "typing"}


def test_core_neither_prints_nor_exits():
    wrong = []
    for path in sorted((ROOT / "core_c").glob("*.[ch]")):
        text = re.sub(
            r"/\*.*?\*/",
            lambda hit: hit[0] if ALLOWED_C in hit[0] else "\n" * hit[0].count("\n"),
            path.read_text(encoding="utf-8"),
            flags=re.DOTALL,
        )
        for number, line in enumerate(text.splitlines(), 1):
            if BANNED_C.search(line) and ALLOWED_C not in line:
                wrong.append(f"{path.name}:{number}: {line.strip()}")
    assert not wrong


def test_every_package_is_installed():
    """An installation that is not editable copies what pyproject.toml lists, and nothing else."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
        "packages"
    ]
    found = [path.parent.relative_to(ROOT) for top in FORBIDDEN for path in (ROOT / top).rglob("__init__.py")]
    assert sorted(listed) == sorted(".".join(folder.parts) for folder in found)
