"""Converted traces: an instruction that is predicated off for the whole warp takes an issue slot, no more."""

from __future__ import annotations

import numpy as np
import pytest

from pysim.opcodes import OPCODES
from pysim.trace.job import trace_job
from tests.core.harness import config, execute

from .made_traces import SHARED, A, B, converted
from .text import EXIT, header, tb, text

BULK = ("BULK_LOAD", "BULK_STORE", "BULK_REDUCE", "BULK_PREFETCH")
NO_REGISTERS = ("EXIT", "BARRIER", "MEMBAR", "DEPBAR", "ASYNC_COMMIT", "BULK_COMMIT")
HOPPER = sorted({row for row in OPCODES if row.first <= 90 <= row.last})
LAST = f"{EXIT} 0 0 NoVal"


def masked_off(row):
    """A line of the opcode with mask 0; its operands are registers in flight."""
    if row.kind in BULK:
        return f"0200 00000000 0 {row.name} 2 UR4 R4 4 0x400 0 8192 0 3 2 0x{A:x} 0x{B:x} 0 0 NoVal"
    registers = ("0", "0") if row.kind in NO_REGISTERS else ("1 R4", "3 R5 R6 R7")
    commit = " 1" if "GMMA" in row.name else ""
    where = f"4 1 0x{SHARED if row.space == 'shared' else A:x} 0" if row.space else "0"
    return f"0200 00000000 {registers[0]} {row.name} {registers[1]}{commit} {where} 0 0 NoVal"


def ops_of(folder, line):
    """The ops of a warp with loads, a store and a copy in flight, then ``line``, then the users of all."""

    def at(number, what, where):
        return f"{16 * number:04x} ffffffff {what} {where} 0 0 NoVal"

    lines = [
        at(0, "1 R4 LDG.E 1 R2", f"4 1 0x{A:x} 4"),
        at(1, "1 R5 LDG.E 1 R2", f"4 1 0x{A + 4096:x} 4"),
        at(2, "0 STG.E 2 R2 R9", f"4 1 0x{B:x} 4"),
        at(3, "0 LDGSTS.E 2 R8 R2", f"4 1 0x{A + 8192:x} 4"),
        at(4, "0 LDGDEPBAR 0", "0"),
        at(5, "1 R10 FFMA 3 R11 R12 R13", "0"),
        line,
        at(64, "1 R14 FFMA 3 R15 R16 R17", "0"),
        at(65, "1 R6 FFMA 3 R4 R5 R10", "0"),
        at(66, "0 DEPBAR.LE 0", "0"),
        at(67, "0 MEMBAR.SC.GPU 0", "0"),
        at(68, "0 BAR.SYNC 0", "0"),
        LAST,
    ]
    head = header(binary_version="90", accelsim_tracer_version="6")
    folder.mkdir()
    (folder / "kernel-1.traceg").write_bytes(text(head, tb((0, 0, 0), [lines])))
    (folder / "kernelslist.g").write_text("kernel-1.traceg\n")
    tables = trace_job(converted(folder)).kernels[0].program.lower(config().encoded())
    return tables.ops


NOTHING = next(row for row in HOPPER if row.name == "NOP")


@pytest.mark.parametrize("row", HOPPER, ids=lambda row: row.name)
def test_what_is_predicated_off_only_issues(tmp_path, row):
    wanted = ops_of(tmp_path / "nothing", masked_off(NOTHING))
    found = ops_of(tmp_path / "masked", masked_off(row))
    assert found.tobytes() == wanted.tobytes()


def test_what_is_executed_does_more(tmp_path):
    """The comparison above can fail: the same lines with a mask change the ops."""
    wanted = ops_of(tmp_path / "nothing", masked_off(NOTHING))
    for name in ("FFMA", "BAR", "MEMBAR", "DEPBAR", "LDG", "SHFL"):
        row = next(row for row in HOPPER if row.name == name)
        executed = masked_off(row).replace("00000000", "ffffffff", 1)
        assert not np.array_equal(ops_of(tmp_path / name, executed), wanted)


def test_a_barrier_that_is_predicated_off_does_not_wait(tmp_path):
    def end(mask):
        work = [f"{0x1000 + 16 * i:04x} ffffffff 1 R4 FFMA 3 R4 R4 R4 0 0" for i in range(400)]
        warps = [[f"0010 {mask} 0 BAR.SYNC 0 0", *work, EXIT], [*work, EXIT]]
        folder = tmp_path / mask
        folder.mkdir()
        (folder / "kernel-1.traceg").write_bytes(text(header(block_dim="(64,1,1)"), tb((0, 0, 0), warps)))
        (folder / "kernelslist.g").write_text("kernel-1.traceg\n")
        return execute(trace_job(converted(folder))).end

    assert end("ffffffff") > 1.3 * end("00000000")
