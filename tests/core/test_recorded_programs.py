"""Recorded programs: a program for each warp and TB, and addresses that were written down."""

from __future__ import annotations

import numpy as np
import pytest

from pysim import simulate
from pysim.errors import ConfigError
from tests.support.recorded import recorded

from .harness import execute, tiny
from .workloads_small import JOBS

NAMES = ("gemm_edges", "gemm_beta", "split_k", "sliced", "gru", "copy", "shared_read", "random_dag", "mixed")


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_recorded_programs_run_as_the_others_do(name, explicit):
    longest = tiny().encoded()["gpu.sm.block_max"]
    for scheme in ("stream", "tb_static"):
        job = JOBS[name]()
        plain, other = execute(job, scheme), execute(recorded(job, longest, explicit), scheme)
        assert other.hash == plain.hash
        assert other.end == plain.end
        assert other.kernels.tobytes() == plain.kernels.tobytes()


def test_bounds_of_recorded_programs_are_those_of_the_others():
    job = JOBS["gemm_edges"]()
    longest = tiny().encoded()["gpu.sm.block_max"]
    runs = [
        simulate(tiny(), made, "stream", tables="none").frame("runs")
        for made in (job, recorded(job, longest, False), recorded(job, longest, True))
    ]
    for name in ("time_us", "warp_instructions"):
        assert runs[0][name][0] == runs[1][name][0] == runs[2][name][0]
    # of a recorded program it is not known which loads go to DRAM
    assert runs[1]["bound_us"][0] == runs[2]["bound_us"][0] <= runs[0]["bound_us"][0]
    assert runs[1]["bound_us"][0] > 0.8 * runs[0]["bound_us"][0]


def test_the_oracle_follows_recorded_addresses():
    job = JOBS["gemm_chain"]()
    conf = tiny(sim__oracle=1)
    made = recorded(job, conf.encoded()["gpu.sm.block_max"], True)
    assert execute(made, "tb_static", conf).hash == execute(job, "tb_static", conf).hash


def damaged(change):
    job = JOBS["gemm_edges"]()
    made = recorded(job, 64, True)
    program = made.kernels[0].program
    tables = program.lower({})
    change(program, tables, program.memory)
    with pytest.raises(ConfigError) as error:
        execute(made, "stream")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_damage_is_found_before_the_run():
    def access(low):
        return lambda _p, _t, memory: memory.accesses.__setitem__(5, np.uint64(low))

    assert "access 5" in damaged(access(0xFFFFFFFF))
    assert "access 5" in damaged(access(99999 << 32))
    assert "access" in damaged(lambda _p, _t, memory: memory.templates["first"].__setitem__(1, 1 << 30))
    assert "access" in damaged(lambda _p, _t, memory: memory.templates["sectors"].__setitem__(1, 77))
    assert "access" in damaged(lambda _p, _t, memory: memory.parts["mask"].__setitem__(2, 16))
    assert "access" in damaged(lambda _p, _t, memory: memory.parts["line"].__setitem__(2, -(1 << 30)))
    assert "past its accesses" in damaged(lambda p, _t, _m: p.access_starts.__setitem__(3, 1 << 31))
    assert "row 9" in damaged(lambda p, _t, _m: p.tb_rows.__setitem__(1, 9))
    assert "lies outside" in damaged(lambda _p, t, _m: t.entries.__setitem__((4, 0), 10**6))
    more = np.arange(4, dtype=np.uint32)
    assert "overlaps" in damaged(lambda _p, t, _m: np.add(t.entries, more, out=t.entries))
    assert "in front of" in damaged(lambda _p, t, _m: t.patterns["base"].__setitem__(slice(None), -(1 << 20)))
    assert "shape" in damaged(lambda _p, t, _m: t.patterns["shape"].__setitem__(0, 4))
    assert "distance" in damaged(lambda _p, t, _m: t.patterns["bx"].__setitem__(0, 4))
