"""Measured tables: each is used, listed in its README and named as it is called."""

import ast
import itertools
import re
from pathlib import Path

import pytest

from pysim.machine.devices import DEVICES

ROOT = Path(__file__).resolve().parents[2]
PRODUCT, HW = ROOT / "workloads" / "measured", ROOT / "tests" / "hw"
READ = sorted(path for path in PRODUCT.iterdir() if path.suffix in (".csv", ".json"))
PROOFS = sorted(HW.rglob("*.csv"))
PROGRAMS = sorted([*HW.rglob("*.cu"), *HW.rglob("*.cuh")])
NAMED = re.compile(r"(?<![\w./])[A-Za-z]\w*\.(?:csv|cuh?)\b")
# programs of others that prose names, and placeholders of files of a user
OTHERS = {"gemm_bench.cu", "LSTM.cu", "FILE.csv", "KERNELS.csv", "kernels.csv"}
HERE = Path(__file__).name


def _files(*folders, endings=(".py",)):
    for folder in folders:
        yield from (p for p in sorted((ROOT / folder).rglob("*")) if p.suffix in endings)


def _strings(path):
    """Return the string constants of a Python file that are no docstrings, with the parts of f-strings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node, clean=False) is not None
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    ]


def _names(folders, but=()):
    """Return the file names in strings of Python files."""
    found = set()
    for path in _files(*folders):
        if not path.as_posix().startswith(tuple(but)):
            for text in _strings(path):
                found |= set(re.findall(r"\w+\.(?:csv|json)", text))
    return found


@pytest.fixture(scope="module")
def sources():
    return "\n".join(
        text for made in DEVICES.values() for text in (*made.sources.values(), *(e[3] for e in made.energies))
    )


def test_the_product_reads_what_the_wheel_holds():
    """Sources of a device only cite."""
    product = ("pysim", "workloads", "configs", "stats", "docs/builders")
    names = _names(product, but=[(ROOT / "pysim" / "machine" / "devices").as_posix()])
    assert READ
    assert not [path.name for path in READ if path.name not in names]


def test_a_table_beside_its_program_proves_something(sources):
    """A test has its numbers from it, a value's source cites it, or code that follows from it does."""
    files = [p for p in _files("tests") if p.name != HERE and "support" not in p.parts]
    files += _files("pysim", "workloads", "core_c", endings=(".py", ".c", ".h"))
    texts = [p.read_text(encoding="utf-8") for p in files if "devices" not in p.parts]
    cited = re.findall(r"\w+\.csv", "\n".join([sources, *texts]))
    assert PROOFS
    assert not [path.name for path in PROOFS if path.name not in cited]


def test_a_name_is_used_once():
    names = [path.name for path in (*READ, *PROOFS, *PROGRAMS)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("folder", "listed"),
    [(HW, [*PROOFS, *PROGRAMS]), (PRODUCT, READ)],
    ids=["tests/hw", "workloads/measured"],
)
def test_the_readme_lists_every_file(folder, listed):
    text = (folder / "README.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    assert not [path.name for path in listed if f"`{path.name}`" not in rows]


def _rows():
    """Return [program, measures, table, columns, proves] of each table of tests/hw/README.md."""
    lines = (HW / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    rows = [row for row in rows if len(row) == 5 and row[0] != "program" and "---" not in row[0]]
    for before, row in itertools.pairwise(rows):
        row[0] = row[0] or before[0]  # a further table of the program above
    return rows


def test_each_program_and_table_says_what_it_proves():
    rows = _rows()
    assert len(rows) > len(PROOFS)
    assert not [row[:3] for row in rows if not row[4]]


def test_the_source_of_a_proved_parameter_cites_its_measurement():
    wrong = []
    for program, _, table, _, proves in _rows():
        names = re.findall(r"`(\w+\.\w+)`", f"{program} {table}")
        for path in re.findall(r"`(gpu\.[\w.]+)`", proves):
            cited = [made.sources[path] for made in DEVICES.values()]
            if not any(name in source for name in names for source in cited):
                wrong.append(f"{', '.join(names)}: {path}")
    assert not wrong


def test_named_tables_and_programs_exist():
    """In code, comments and pages; programs under tests/hw also name what they write."""
    known = {path.name for path in ROOT.rglob("*.cs*") if "build" not in path.parts}
    known |= {path.name for path in (*PROGRAMS, *READ)}
    wrong = []
    pages = [*ROOT.glob("*.md"), *_files("docs", "tests", "workloads", endings=(".md",))]
    code = _files("pysim", "workloads", "stats", "configs", "docs", "core_c", endings=(".py", ".c", ".h"))
    tests = [path for path in _files("tests", endings=(".py", ".cu", ".cuh")) if path.name != HERE]
    for path in (*pages, *code, *tests):
        # rooms.md and the changelog name what was
        if path.name in ("rooms.md", "CHANGELOG.md"):
            continue
        for name in NAMED.findall(path.read_text(encoding="utf-8")):
            ours = not name.endswith(".csv") or re.match(r"h[12]00_|cusync_|deepbench_|accelsim", name)
            # tests make tables of their own, programs and the README of tests/hw write others
            if name in known | OTHERS or (path.is_relative_to(ROOT / "tests") and not ours):
                continue
            wrong.append(f"{path.relative_to(ROOT)}: {name}")
    assert not wrong
