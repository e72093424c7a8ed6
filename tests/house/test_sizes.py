"""Files and functions that people can hold in their head: a Python file, a C file, a function.

``sizes.json`` lists what is longer, with its length. An entry may only shrink, and goes when it is no longer
needed: ``python -m tests.house.test_sizes`` writes the list anew, never with a longer entry.
"""

import ast
import json
import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STORED = Path(__file__).with_name("sizes.json")
MOST = {"python": 400, "c": 500, "function": 80}
FOLDERS = ("pysim", "workloads", "stats", "configs", "tests", "docs", "core_c")
GENERATED = ("core_c/gen/",)
# the head of a C function: a line that starts with a name, no semicolon, then `{` on a line of its own
HEAD = re.compile(r"^(?:[A-Za-z_][\w \t*]*[ \t*])?([A-Za-z_]\w*)\([^;{}]*\)\n\{\n", re.MULTILINE)


def _files(*endings):
    made = [ROOT / "build.py", ROOT / "compile_core.py"] if ".py" in endings else []
    for folder in FOLDERS:
        made += [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in endings]
    return [path for path in made if not path.relative_to(ROOT).as_posix().startswith(GENERATED)]


def _python_functions(text):
    """Yield (name, lines) of functions without docstrings; nested ones count in what holds them, too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            said = node.body[0] if ast.get_docstring(node) is not None else None
            yield node.name, node.end_lineno - first + 1 - (said.end_lineno - said.lineno + 1 if said else 0)


def _c_functions(text):
    """Yield (name, lines) of all functions: clang-format puts their braces at the beginning of lines."""
    # attributes may stand before or among the words of the head
    text = re.sub(r"__attribute__\(\([\w, ]+\)\)[ \n]?", "", text)
    for head in HEAD.finditer(text):
        end = text.index("\n}\n", head.start())
        yield head[1], text.count("\n", head.start(), end) + 2


@cache
def found():
    """Return what is longer than allowed: kind, then name, then lines."""
    longer = {kind: {} for kind in MOST}
    for kind, endings in (("python", (".py",)), ("c", (".c", ".h"))):
        for path in _files(*endings):
            name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
            lines = text.count("\n")
            if lines > MOST[kind]:
                longer[kind][name] = lines
            for function, length in (_python_functions if kind == "python" else _c_functions)(text):
                if length > MOST["function"]:
                    longer["function"][f"{name}:{function}"] = length
    return longer


def stored():
    return json.loads(STORED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", MOST)
def test_nothing_gets_longer(kind):
    now, kept = found()[kind], stored()[kind]
    grown = [f"{name}: {lines} lines" for name, lines in now.items() if lines > kept.get(name, MOST[kind])]
    assert not grown, f"at most {MOST[kind]} lines, or what sizes.json says: cut in two"


@pytest.mark.parametrize("kind", MOST)
def test_the_list_only_shrinks(kind):
    now, kept = found()[kind], stored()[kind]
    old = [name for name, lines in kept.items() if now.get(name, 0) < lines]
    assert not old, "python -m tests.house.test_sizes"


def test_functions_are_seen():
    """A file of each language whose functions are known."""
    text = "u64 gs_a(int x,\n         int y)\n{\n    return 1;\n}\n\nstatic void b(void)\n{\n}\n"
    assert list(_c_functions(text)) == [("gs_a", 5), ("b", 3)]
    assert list(_c_functions(f"__attribute__((noinline)) {text}")) == [("gs_a", 5), ("b", 3)]
    text = '@x\ndef f():\n    """Say.\n\n    More.\n    """\n    def g():\n        pass\n'
    assert list(_python_functions(text)) == [("f", 4), ("g", 2)]
    with (ROOT / "core_c" / "gs_api.h").open(encoding="utf-8") as file:
        assert not list(_c_functions(file.read()))
    seen = sum(len(list(_c_functions(path.read_text(encoding="utf-8")))) for path in _files(".c"))
    assert seen > 300


def main():
    """Write the list anew; refuse longer entries than it has."""
    now, kept = found(), stored() if STORED.exists() else None
    for kind, rows in now.items():
        for name, lines in rows.items() if kept else ():
            if lines > kept[kind].get(name, MOST[kind]):
                print(f"{name}: {lines} lines: longer than before", file=sys.stderr)
                return 1
    STORED.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
