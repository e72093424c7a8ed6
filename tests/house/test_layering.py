"""Imports run one way: which package may import which, in one table, lazy and type-only imports included."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("pysim", "workloads", "stats", "configs")
# Rooms from the ground up: a room may import those before it in its list, and what MORE says. A folder
# inside a room is part of it.
PYSIM = (
    "pysim",  # the files at the root: errors, units, tables of parameters and counters, the compiled core
    "pysim.machine",
    "pysim.program",
    "pysim.dependence",
    "pysim.schemes",
    "pysim.analysis",
    "pysim.results",
    "pysim.engine",
    "pysim.hazards",
    "pysim.trace",
    "pysim.profile",
    "pysim.cli",
    "pysim.planner",
    "pysim.sweep",
)
WORKLOADS = (
    "pysim.workloads.kernels",
    "pysim.workloads.library",
    "pysim.workloads.framework",
    "pysim.workloads.mirrored",
    "pysim.workloads.microbench",
    "pysim.workloads.networks",
    "pysim.workloads.imported",
    "pysim.workloads.applications",
    "pysim.workloads",
    "pysim.workloads.validation",
    "pysim.workloads.studies",
)
STATS = (
    "pysim.stats",  # the files at the root: columns, result files, folders of sweeps
    "pysim.stats.text",
    "pysim.stats.pictures",
    "pysim.stats.studies",
    "pysim.stats.export",
    "pysim.stats.page",
)
MORE = {"pysim.workloads": PYSIM, "pysim.configs": (*PYSIM, *WORKLOADS, *STATS)}
# the modules that need workloads and results
COMMANDS = (
    "cli/checkpointing",
    "cli/completion",
    "cli/dependence_graph",
    "cli/job_check",
    "cli/job_totals",
    "cli/library_choice",
    "cli/listings",
    "cli/results/report",
    "cli/results/compare",
    "cli/results/export",
    "cli/results/timeline",
    "cli/script",
    "cli/writing",
    "planner/command",
    "planner/runs",
    "sweep/commands",
    "sweep/engines/local",
    "sweep/folder",
    "sweep/point",
    "sweep/sweep",
    "sweep/worker",
)
# modules that import a higher room, and why
LAZY = {
    "pysim/__init__.py": (*PYSIM, "pysim.workloads.imported"),  # the public API, found at first use
    "pysim/__main__.py": ("pysim.cli",),
    "stats/__init__.py": (*STATS, "pysim.checkout"),  # the public API, and the short name
    "pysim/cli/table_reference.py": ("pysim.stats",),  # inside a function
    # inside functions: Result writes the files and draws the pictures of scripts, which are made by stats
    "pysim/results/result_file.py": ("pysim.stats",),
    # inside functions
    **{f"pysim/{name}.py": ("pysim.workloads", "pysim.stats") for name in COMMANDS},
}
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


def _room(module):
    """Return the room of a module: the longest known package that it lies in."""
    known = [
        room for room in (*PYSIM, *WORKLOADS, *STATS, "pysim.configs") if f"{module}.".startswith(f"{room}.")
    ]
    return max(known, key=len, default=None)


def _name(path):
    """Return the dotted name of a file: folders beside ``pysim`` are packages inside it."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "pysim" else ("pysim", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name(path): path for top in TOPS for path in sorted((ROOT / top).rglob("*.py"))}


def _imported(name):
    """Yield (line, module) of all imports of our own modules, wherever in the file they stand."""
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (base, node.module) if part)
            found = [whole if (whole := f"{base}.{alias.name}") in MODULES else base for alias in node.names]
        else:
            continue
        yield from ((node.lineno, module) for module in found if module.split(".")[0] in TOPS)


def _allowed(room):
    """Return the rooms that a room may import."""
    floors = next((floors for floors in (PYSIM, WORKLOADS, STATS) if room in floors), (room,))
    return {*floors[: floors.index(room) + 1], *MORE.get(".".join(room.split(".")[:2]), ())}


@pytest.mark.parametrize("room", [*PYSIM, *WORKLOADS, *STATS, "pysim.configs"])
def test_no_import_points_up(room):
    wrong = []
    for name in MODULES:
        if _room(name) != room:
            continue
        file = MODULES[name].relative_to(ROOT).as_posix()
        more = LAZY.get(file, ())
        wrong += [
            f"{file}:{line}: {module}"
            for line, module in _imported(name)
            if _room(module) not in _allowed(room)
            and not f"{module}.".startswith(tuple(f"{m}." for m in more))
        ]
    assert not wrong


@pytest.mark.parametrize("name", [*COMMANDS, "cli/table_reference", "results/result_file"])
def test_what_the_command_imports_from_above_it_imports_when_it_needs_it(name):
    tree = ast.parse((ROOT / "pysim" / f"{name}.py").read_text(encoding="utf-8"))
    top = [
        module
        for node in tree.body
        if not isinstance(node, ast.FunctionDef | ast.ClassDef)
        for _, module in _imports(node)
    ]
    assert not [module for module in top if f"{module}.".startswith(("pysim.workloads.", "pysim.stats."))]


def test_no_cycle():
    """Modules can be read one after another: lazy and type-only imports make no circle either."""
    left = {name: {module for _, module in _imported(name)} - {name} for name in MODULES}
    del left["pysim"]  # its imports are the public API, found at first use
    while left:
        free = {name for name, needs in left.items() if not needs & left.keys()}
        assert free, f"a cycle among {', '.join(sorted(left))}"
        left = {name: needs for name, needs in left.items() if name not in free}


def test_every_module_has_a_room():
    assert not [name for name in MODULES if _room(name) is None]
    rooms = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    assert {*PYSIM, *WORKLOADS, *STATS} <= rooms


def test_only_ffi_imports_the_core():
    wrong = []
    for package in TOPS:
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
    assert {module.split(".")[0] for _, module in _imports(tree)} <= {
        "__future__",
        "hashlib",
        "pathlib",
        "typing",
    }


def test_core_neither_prints_nor_exits():
    wrong = []
    for path in sorted((ROOT / "core_c").rglob("*.[ch]")):
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
    found = [_name(path) for top in TOPS for path in (ROOT / top).rglob("__init__.py")]
    assert sorted(listed) == sorted(found)


def test_nothing_that_is_installed_imports_docs_or_tests():
    """Builders of pages import everything and are imported by tests alone."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {module}"
        for path in MODULES.values()
        for node, module in _imports(ast.parse(path.read_text(encoding="utf-8")))
        if module.split(".")[0] in ("docs", "tests")
    ]
    assert not wrong
