"""The reader of SASS traces: every version and address mode, any cut, and every kind of bad input."""

from pathlib import Path

import numpy as np
import pytest

from pysim.trace.folder import read_list
from pysim.trace.opcodes import OPCODES
from pysim.trace.reader import read_kernel

DATA = Path(__file__).resolve().parent / "data" / "traces"


def test_recorded_trace_is_read_whole():
    commands = read_list(DATA / "vectoradd")
    assert [command.size for command in commands[:-1]] == [400, 400, 400]
    header, tb = read_kernel(commands[-1].path)
    assert header.name == "_Z6vecAddIfEvPT_S1_S1_i"
    assert (header.grid, header.block, header.registers, header.binary) == ((1, 1, 1), (1024, 1, 1), 8, 61)
    assert tb.warps["count"].tolist() == [23] * 4 + [9] * 28
    assert len(tb.insts) == 344
    assert OPCODES[tb.insts["opcode"][-1]].name == "EXIT"
    loads = tb.insts[(tb.insts["width"] > 0) & (tb.insts["pc"] == 0x98)]
    assert np.all(loads["width"] == 4)
    first = loads[0]
    assert tb.addresses[first["first"] :][:32].tolist() == [0x7F2B2D500000 + 4 * lane for lane in range(32)]


def test_missing_file():
    with pytest.raises(Exception, match="no such file"):
        next(read_kernel(DATA / "kernel-9.traceg"))
