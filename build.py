"""Renders the C headers and compiles pysim/_core: ``python build.py`` (``--headers``: only the headers).

setuptools runs this file too (``cffi_modules`` in setup.py). To make a wheel use ``python -P -m build``:
without ``-P`` Python takes this very file for the module ``build``.
"""

from __future__ import annotations

import os
import platform
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

try:
    import cffi
    import jinja2
    import setuptools  # noqa: F401 - cffi compiles with it
except ImportError as missing:
    sys.exit(f"error: build.py needs {missing.name}: pip install -e '.[build]'")

ROOT = Path(__file__).resolve().parent
CORE = ROOT / "core_c"
HEADERS = ("gs_params.h", "gs_counters.h", "gs_isa.h", "gs_opcodes.h", "gs_hash.h")
CDEF_FILES = (
    *("gen/gs_params.h", "gen/gs_counters.h", "gen/gs_isa.h"),
    *("gs_program.h", "gs_api.h", "gs_trace.h", "gs_convert.h"),
)
# what the core calls in Python (pysim/engine/user_rule.py)
CALLBACKS = """
extern "Python" int64_t pysim_next_tb(void *user, uint64_t time, uint32_t n);
extern "Python" int64_t pysim_place_tb(void *user, uint64_t time, uint32_t kernel, uint32_t tb, uint32_t n);
"""
# those that a table might use as a name
C_KEYWORDS = frozenset(("char", "double", "float", "int", "long", "register", "short", "static", "volatile"))
# what the core receives where that is not what a user writes (the table in pysim/params.py)
CORE_UNITS = {
    "ns": "tick",
    "us": "tick",
    "MHz": "ticks a cycle",
    "GB/s": "MB/s",
    "W": "mW",
    "share": "1/65536",
    "cycle/64": "1/64 cycle",
}
SANITIZE = ["-O1", "-g", "-UNDEBUG", "-DGS_DEBUG", "-fno-omit-frame-pointer"]
MODES = {
    "release": ["-O2"],
    "debug": ["-O0", "-g", "-UNDEBUG", "-DGS_DEBUG"],
    # many a Python asks for -fwrapv, under which no overflow would be found
    "asan": [*SANITIZE, "-fno-wrapv", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "tsan": [*SANITIZE, "-fsanitize=thread"],
}


def _member(name: str) -> str:
    """C name of a group or field: dots become underscores, a C keyword gets one at its end."""
    flat = name.replace(".", "_").replace("-", "_")
    return flat + "_" if flat in C_KEYWORDS else flat


def _constant(name: str) -> str:
    return name.replace(".", "_").replace("-", "_").upper()


def _struct(name: str, rows: Any) -> dict[str, Any]:
    fields = [
        {"member": _member(row.name), "unit": CORE_UNITS.get(row.unit, row.unit), "doc": row.doc}
        for row in rows
    ]
    return {"member": _member(name), "constant": _constant(name), "rows": fields}


def render() -> dict[str, str]:
    """Return the text of every generated header by file name."""
    params = runpy.run_path(str(ROOT / "pysim" / "params.py"))
    counters = runpy.run_path(str(ROOT / "pysim" / "counters.py"))["GROUPS"]
    isa = runpy.run_path(str(ROOT / "pysim" / "isa.py"))
    opcodes = runpy.run_path(str(ROOT / "pysim" / "opcodes.py"))
    tables_hash = runpy.run_path(str(ROOT / "pysim" / "_tables.py"))["tables_hash"]
    choices = [
        {
            "path": f"{group}.{row.name}",
            "constant": _constant(f"{group}.{row.name}"),
            "names": [_constant(choice) for choice in row.choices],
        }
        for group, rows in params["PARAMS"].items()
        for row in rows
        if row.choices
    ]
    values = {
        "groups": [_struct(name, rows) for name, rows in params["PARAMS"].items()],
        "counters": [_struct(name, rows) for name, rows in counters.items()],
        "ops": isa["OPS"],
        "unneeded": isa["UNNEEDED"],
        "pipes": [(_constant(name), doc) for name, doc in params["PIPES"]],
        "choices": choices,
        "opcodes": opcodes["OPCODES"],
        "opcode_kinds": opcodes["KINDS"],
        "opcode_spaces": opcodes["SPACES"],
        "opcode_peers": opcodes["PEERS"],
        "sm_versions": opcodes["SM_VERSIONS"],
        "tables_hash": f"0x{tables_hash(params['PARAMS'], params['PIPES'], counters, isa, opcodes):016x}",
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(CORE / "templates"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return {name: environment.get_template(f"{name}.j2").render(values) for name in HEADERS}


def write_headers() -> None:
    """Write the headers whose text changed, and only those, so that builds stay quiet."""
    (CORE / "gen").mkdir(exist_ok=True)
    for name, text in render().items():
        path = CORE / "gen" / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def cdef() -> str:
    """Return the text of the public headers as cffi reads it."""
    lines = [line for name in CDEF_FILES for line in (CORE / name).read_text(encoding="utf-8").splitlines()]
    return "\n".join([*(line for line in lines if not line.startswith(("#pragma", "#include"))), CALLBACKS])


def _builder() -> cffi.FFI:
    mode = os.environ.get("GS_BUILD", "release")
    if mode not in MODES:
        raise SystemExit(f"GS_BUILD={mode}: must be one of {', '.join(MODES)}")
    flags = ["-std=c17", "-ffp-contract=off", "-fvisibility=hidden", "-pthread", *MODES[mode]]
    if platform.machine() in ("x86_64", "AMD64"):
        # what x86-64-v2 has; spelt out because older compilers do not know that name
        flags += ["-msse4.2", "-mpopcnt"]
    tables = runpy.run_path(str(ROOT / "pysim" / "_tables.py"))
    made_of = f"{tables['SOURCES_MARK']}{tables['sources_digest'](CORE)}"
    builder = cffi.FFI()
    builder.cdef(cdef())
    builder.set_source(
        "pysim._core",
        '#include "gs_api.h"\n#include "gs_convert.h"\n#include "gs_trace.h"\n'
        f'__attribute__((used)) static const char pysim_sources[] = "{made_of}";\n',
        # relative to the root, where setup.py runs: setuptools refuses absolute paths
        sources=sorted(f"core_c/{path.relative_to(CORE).as_posix()}" for path in CORE.rglob("*.c")),
        depends=sorted(f"core_c/{path.relative_to(CORE).as_posix()}" for path in CORE.rglob("*.h")),
        include_dirs=["core_c"],
        define_macros=[("GS_BUILD_MODE", f'"{mode}"'), ("GS_BUILD_FLAGS", f'"{" ".join(flags)}"')],
        extra_compile_args=flags,
        extra_link_args=["-pthread", *(flag for flag in flags if flag.startswith("-fsanitize"))],
    )
    return builder


write_headers()
ffibuilder = _builder()

if __name__ == "__main__" and sys.argv[1:] != ["--headers"]:
    # the way pip builds it, so that there is one module file, not two; --force, because distutils
    # does not notice that flags or headers changed
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--force"]
    raise SystemExit(subprocess.run(command, cwd=ROOT, check=False).returncode)
