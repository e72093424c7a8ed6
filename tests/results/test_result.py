"""A result as a user meets it in a notebook: it prints as the table of its runs."""

from pysim import simulate
from workloads import make


def test_a_result_prints_as_its_table():
    result = simulate("titan_v", make("gru:hidden=64,batch=4,timesteps=2,layers=1"), "tb_static,pdl")
    lines = repr(result).splitlines()
    assert lines[0] == "gru:hidden=64,batch=4 on titan_v"
    assert lines[1].split() == ["scheme", "time", "speedup"]
    time = result.time_us("tb_static")
    assert lines[2].split()[:3] == ["tb_static", f"{time:,.2f}", "us"]
    assert lines[2].endswith("x")
    assert lines[3].split()[:2] == ["pdl", "refused"]
    assert "needs compute capability 9.0" in lines[3]
    # stream ran for the speedup and is no row of the table, but a note
    assert not any(line.startswith("stream ") and "x" in line.split()[-1] for line in lines)
    assert any(line.startswith("stream was run too") for line in lines)
    assert lines[-1].startswith("tables (rows): runs (3)")
    assert len(repr(result)) < 1000
