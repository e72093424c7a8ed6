"""The core's rooms: which may include which, in one table; and a header of its own for each file."""

import re
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "core_c"
PUBLIC = ("gs_program.h", "gs_api.h", "gs_convert.h", "gs_trace.h")
# room: the rooms that its files may include, beside itself and the public headers
ROOMS = {
    "base": (),
    "memory": ("base",),
    "program": ("base", "memory"),
    "oracle": ("base", "memory", "program"),
    "sm": ("base", "memory", "program", "oracle"),
    "scheduler": ("base", "memory", "program", "oracle"),
    "engine": ("base", "memory", "program", "oracle", "sm", "scheduler"),
    # the front end for traces knows of the simulator only the fixed-width types
    "trace": ("base/types.h",),
}
# a function that other files see: it begins a line, and is not static
EXTERNAL = re.compile(r"^(?!static|typedef|#)[A-Za-z_][\w \t*]*?[ \t*](\w+)\([^;{}]*\)\n\{", re.MULTILINE)


def _files(*endings):
    return [path for room in ROOMS for path in sorted((CORE / room).glob("*")) if path.suffix in endings]


def _included(path):
    return re.findall(r'^#include "(.+)"', path.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_file_has_a_room():
    found = {path.parent.name for path in CORE.rglob("*.[ch]") if path.parent != CORE}
    assert found == {*ROOMS, "gen"}
    assert sorted(path.name for path in CORE.glob("*.[ch]")) == sorted(PUBLIC)


@pytest.mark.parametrize("room", ROOMS)
def test_no_include_points_up(room):
    wrong = []
    for path in _files(".c", ".h"):
        if path.parent.name != room:
            continue
        for name in _included(path):
            assert (CORE / name).is_file(), f"{path.name}: {name}: a path from core_c/ is meant"
            other = name.partition("/")[0]
            if name in PUBLIC or other in ("gen", room) or other in ROOMS[room] or name in ROOMS[room]:
                continue
            wrong.append(f"{room}/{path.name}: {name}")
    assert not wrong


def test_headers_make_no_circle():
    left = {path.relative_to(CORE).as_posix(): set(_included(path)) for path in CORE.rglob("*.h")}
    while left:
        free = {name for name, needs in left.items() if not needs & left.keys()}
        assert free, f"a circle among {', '.join(sorted(left))}"
        left = {name: needs for name, needs in left.items() if name not in free}


def test_each_file_declares_what_others_see_in_its_own_header():
    wrong = []
    public = "".join((CORE / name).read_text(encoding="utf-8") for name in PUBLIC)
    for path in _files(".c"):
        header = path.with_suffix(".h")
        own = header.read_text(encoding="utf-8") if header.exists() else ""
        for function in EXTERNAL.findall(path.read_text(encoding="utf-8")):
            if not re.search(rf"\b{function}\(", own + public):
                wrong.append(f"{path.parent.name}/{path.name}: {function}")
    assert not wrong


def test_a_file_includes_its_own_header_first():
    for path in _files(".c"):
        header = path.with_suffix(".h")
        if header.exists():
            assert _included(path)[0] == header.relative_to(CORE).as_posix(), path.name


def test_external_functions_are_seen():
    text = "int gs_a(void)\n{\n}\n\nstatic int b(void)\n{\n}\n\nconst char *gs_c(int x,\n   int y)\n{\n}\n"
    assert EXTERNAL.findall(text) == ["gs_a", "gs_c"]
    seen = [name for path in _files(".c") for name in EXTERNAL.findall(path.read_text(encoding="utf-8"))]
    assert len(seen) > 150
