"""A compiled core that is not of these Python files is refused in one line, before it is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.calls import call, refused

STALE = "error: the compiled core is stale: run python build.py\n"
# a process with another core: `lib` is what stands for its names
SCRIPT = """
import sys, types
from pysim import counters, isa, opcodes, params
from pysim._tables import tables_hash
right = tables_hash(params.PARAMS, params.PIPES, counters.GROUPS, vars(isa), vars(opcodes))
core = types.ModuleType("pysim._core")
core.ffi, core.lib = None, types.SimpleNamespace({names})
sys.modules["pysim._core"] = {module}
from pysim.cli.entry import run_script
def main():
    import pysim._ffi
run_script(main)
"""


@pytest.mark.parametrize(
    "names",
    [
        "gs_tables_hash=lambda: right + 1",  # of other tables, with or without the names that are asked for
        "gs_tables_hash=lambda: right + 1, GS_ERR_ARG=-1",
        "gs_tables_hash=lambda: right, GS_ERR_ARG=-1",  # of these tables, but of another interface
        "GS_ERR_ARG=-1",
    ],
)
def test_another_core(tmp_path: Path, names: str) -> None:
    done = call(tmp_path, "-c", SCRIPT.format(names=names, module="core"))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", STALE)


def test_no_core(tmp_path: Path) -> None:
    refused(call(tmp_path, "-c", SCRIPT.format(names="", module="None")), "core is missing: run python", 1)
