"""What docs/dynamic.md says of tb_auto follows from its code."""

import pytest

from docs.builders import dynamic
from docs.builders.writing import block
from pysim import simulate
from pysim.workloads import make


@pytest.mark.parametrize("name", ["cost", "hints", "reasons"])
def test_its_tables_are_those_of_the_code(name):
    assert block(dynamic.PAGE, name) == getattr(dynamic, name)(), "make dynamic"


@pytest.mark.parametrize("case", ["fdtd2d", "lud"])
def test_its_times_are_those_of_the_code(case):
    """One case of each kind: a table of an earlier scheme is seen."""
    heads, _, *rows = block(dynamic.PAGE, "group_mixed").splitlines()
    (row,) = (line for line in rows if line.startswith(f"| {case} | h200 "))
    said = dict(zip(heads.split(" | "), row.split(" | "), strict=True))
    found = simulate("h200", make(case, "h200"), "tb_auto", tables="none", baseline=False).time_us("tb_auto")
    assert said["tb_auto"] == f"{found:,.1f}", "make dynamic RESULTS=FILE.h5"
