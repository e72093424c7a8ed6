"""The committed headers are what the tables and templates render, and cffi can read them."""

import runpy
from pathlib import Path

import cffi
import pytest

pytest.importorskip("jinja2")

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ("gs_params.h", "gs_counters.h", "gs_isa.h", "gs_opcodes.h", "gs_hash.h")


@pytest.fixture(scope="module")
def committed():
    # read before build.py runs, which would bring the files up to date
    return {name: (ROOT / "core_c" / "gen" / name).read_text(encoding="utf-8") for name in HEADERS}


@pytest.fixture(scope="module")
def build(committed):
    return runpy.run_path(str(ROOT / "build.py"))


@pytest.mark.parametrize("name", HEADERS)
def test_generated_header_is_current(name, committed, build):
    assert build["render"]()[name] == committed[name], "run python build.py and commit core_c/gen"


def test_cffi_reads_the_public_headers(build):
    ffi = cffi.FFI()
    ffi.cdef(build["cdef"]())
    params = ffi.typeof("gs_params")
    members = [name for name, _ in params.fields]
    tables = runpy.run_path(str(ROOT / "pysim" / "params.py"))["PARAMS"]
    assert members == [group.replace(".", "_") for group in tables]
    for (_, field), rows in zip(params.fields, tables.values(), strict=True):
        assert [name for name, _ in field.type.fields] == [row.name for row in rows]


def test_tables_hash_sees_names_but_not_docs():
    tables_hash = runpy.run_path(str(ROOT / "pysim" / "_tables.py"))["tables_hash"]
    table = runpy.run_path(str(ROOT / "pysim" / "params.py"))
    params, pipes = table["PARAMS"], table["PIPES"]
    sim = params["sim"]
    reworded = {**params, "sim": (sim[0]._replace(doc="other", default=5), *sim[1:])}
    renamed = {**params, "sim": (sim[0]._replace(name="other"), *sim[1:])}
    isa = {"OPS": (), "UNNEEDED": 1}
    before = tables_hash(params, pipes, {}, isa, {})
    assert tables_hash(reworded, pipes, {}, isa, {}) == before
    assert tables_hash(renamed, pipes, {}, isa, {}) != before
    assert tables_hash(params, pipes, {}, isa | {"UNNEEDED": 2}, {}) != before
