"""Atomics need the old value: a reduction on a sector that L2 does not hold reads DRAM, on every device."""

from __future__ import annotations

import pytest

from pysim.program.job import Job, Kernel, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.trace.job import trace_job
from tests.core.harness import config, execute
from tests.trace.made_traces import A, Warp, converted, strided, write

DEVICES = ("titan_v", "v100", "a100", "h100", "h200", "rtx3070", "titan_x_pascal", "accelsim_titan_v")


def traced(folder, *names, lines=16, width=4):
    """A warp with these accesses to the same lines, one kind after another; each is waited for."""
    warp = Warp()
    for name in names:
        for i in range(lines):
            load = name.startswith(("LDG", "ATOM"))
            at = strided(A + 4096 * i, width)
            warp.op(name, 8 if load else None, (2,) if name.startswith("LDG") else (2, 4), at, width)
        warp.op("MEMBAR.SC.GPU").op("FADD", 9, (8, 8))
    return trace_job(converted(write(folder, ((1, 1, 1), 32, {(0, 0, 0): [warp.end()]}, {}))))


def moved(job, device, **overrides):
    ran = execute(job, "stream", config(device, sim__oracle=1, **overrides))
    return int(ran.slices["dram_read_sectors"].sum()), ran


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["RED.E.ADD.F32.FTZ.RN", "ATOMG.E.ADD", "ATOMG.E.CAS"])
def test_an_update_of_an_absent_sector_reads_it(tmp_path, device, name):
    reads, _ = moved(traced(tmp_path / "one", name), device)
    loads, _ = moved(traced(tmp_path / "load", "LDG.E"), device)
    assert reads == loads >= 16 * 4
    again, ran = moved(traced(tmp_path / "two", name, name), device)
    assert again == reads
    assert ran.slices["sectors_written"].sum() == 2 * 16 * 4


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("before", ["LDG.E", "STG.E"])
def test_an_update_of_a_present_sector_reads_nothing_more(tmp_path, device, before):
    first, _ = moved(traced(tmp_path / "one", before), device)
    both, _ = moved(traced(tmp_path / "two", before, "RED.E.ADD"), device)
    assert both == first


@pytest.mark.parametrize("device", DEVICES)
def test_a_store_reads_nothing(tmp_path, device):
    assert moved(traced(tmp_path, "STG.E"), device)[0] == 0


@pytest.mark.parametrize("device", ["titan_v", "h200"])
def test_an_atomic_takes_as_long_as_a_miss(tmp_path, device):
    times = {}
    for names in (("ATOMG.E.ADD",), ("LDG.E",), ("STG.E",)):
        times[names[0]] = moved(traced(tmp_path / names[0], *names, lines=1), device)[1].end
    hit = moved(traced(tmp_path / "hit", "LDG.E", "ATOMG.E.ADD", lines=1), device)[1].end - times["LDG.E"]
    assert times["ATOMG.E.ADD"] >= 0.95 * times["LDG.E"]
    assert times["ATOMG.E.ADD"] > times["STG.E"]
    base = moved(traced(tmp_path / "none", lines=1), device)[1].end
    assert hit < times["ATOMG.E.ADD"] - base


@pytest.mark.parametrize("device", ["titan_v", "h200"])
def test_reductions_of_programs_read_too(device):
    """A program's own reductions, not of a trace: each of 256 TBs updates 512 B."""
    code = Code()
    code.reduce(0, Pattern(0, 16, s0=16, bx=4096))
    code.exit()
    program = Program("updates", (tuple(code.ops),), 1, 16, 0, 1)
    kernel = Kernel("updates", program, (256, 1, 1), (Tensor("x", 1, 256 * 4096, 1, 0),), ())
    reads, ran = moved(Job("updates", [kernel]), device)
    assert reads >= 256 * 16
    assert ran.slices["sectors_written"].sum() == 256 * 16
