"""LDGSTS in traces: two lines of one PC are one copy; .BYPASS skips L1."""

from __future__ import annotations

import pytest

from pysim.trace.job import trace_job
from tests.core.harness import execute, tiny

from .made_traces import SHARED, A, Warp, converted, strided, write
from .read import bad, inst_of, one_warp, read

AMPERE = {"binary_version": "80", "shmem": "32768"}
WIDTHS = {4: "", 8: ".64", 16: ".128"}


def copies(lines, width=16, mask=0xFFFFFFFF, shared=0x400, turns=16, bypass=True):
    """A warp with ``turns`` copies; ``lines``: the operands that each writes, of "s" and "g"."""
    warp = Warp(mask)
    name = f"LDGSTS.E{'.BYPASS' if bypass else ''}{WIDTHS[width]}"
    for i in range(turns):
        pc, lanes = warp.pc, mask.bit_count()
        at = {
            "s": strided(shared + 32 * width * i, width, lanes),
            "g": strided(A + 32 * width * i, width, lanes),
        }
        for operand in lines:
            warp.pc = pc
            warp.op(name, None, (8, 2), at[operand], width)
    warp.mask = 0xFFFFFFFF
    warp.op("LDGDEPBAR").op("DEPBAR.LE").op("FFMA", 4, (5, 6, 7))
    return ((1, 1, 1), 32, {(0, 0, 0): [warp.end()]}, AMPERE)


@pytest.mark.parametrize("shared", [0x400, SHARED + 64])
@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0x00FF00F0, 0x1, 0])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("lines", ["sg", "gs"])
def test_two_lines_are_one_copy(tmp_path, width, mask, shared, lines):
    fields = {"shmem_base_addr": f"0x{SHARED:x}"}
    runs = []
    for name, operands in (("one", "g"), ("two", lines)):
        grid, threads, tbs, more = copies(operands, width, mask, shared)
        store = converted(write(tmp_path / name, (grid, threads, tbs, more | fields)))
        runs.append(execute(trace_job(store), "stream", tiny()))
        assert store.kernels[0].instructions == 20
    assert runs[0].hash == runs[1].hash
    assert [ran.kernels["warp_instructions"].sum() for ran in runs] == [20, 20]
    assert runs[0].kernels.tobytes() == runs[1].kernels.tobytes()


def test_what_is_read_of_two_lines():
    def line(address, mask="ffffffff", pc="0010", width=4):
        return f"{pc} {mask} 0 LDGSTS.E 2 R8 R2 {width} 1 0x{address:x} 4 0"

    inst, addresses = inst_of(line(0x400), line(A), **AMPERE)
    assert addresses == strided(A, 4)
    assert inst["pc"] == 0x10
    for other in (line(A, pc="0020"), line(A, mask="0000ffff")):
        _, found = read(one_warp(line(0x400), other, **AMPERE))
        assert found[1] == [(0, 3)]
    # three and four lines: the first two are one copy
    for count, left in ((3, 2), (4, 2), (5, 3)):
        _, found = read(one_warp(*(line((0x400, A)[i % 2]) for i in range(count)), **AMPERE))
        assert found[1] == [(0, left + 1)]
        assert len(found[3]) == 32 * left
    # the lines of other instructions stay apart
    load = "0010 ffffffff 1 R4 LDG.E 1 R2 4 1 0x1000 4 0"
    _, found = read(one_warp(load, load, **AMPERE))
    assert found[1] == [(0, 3)]


def test_a_warp_that_is_cut_off_after_two_lines():
    pair = [f"0010 ffffffff 0 LDGSTS.E 2 R8 R2 4 1 0x{at:x} 4 0" for at in (0x400, A)]
    data = one_warp(*pair, **AMPERE).replace(b"insts = 3", b"insts = 5")
    bad(data, "#END_TB", "warp 0 has 3 of 5 instructions")


@pytest.mark.parametrize(("bypass", "turns"), [(True, 4), (False, 1)])
def test_bypass_goes_past_l1(tmp_path, bypass, turns):
    name = "LDGSTS.E.BYPASS.128" if bypass else "LDGSTS.E.128"
    warp = Warp()
    for _ in range(4):
        warp.op(name, None, (8, 2), strided(A, 16), 16).op("LDGDEPBAR").op("DEPBAR.LE")
    store = converted(write(tmp_path, ((1, 1, 1), 32, {(0, 0, 0): [warp.end()]}, AMPERE)))
    ran = execute(trace_job(store), "stream", tiny())
    assert ran.slices["sectors_read"].sum() == turns * 16
