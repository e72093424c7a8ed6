"""Ops written as instructions: wavefronts, loops, address modes, waits and binary versions."""

from __future__ import annotations

from collections import Counter

import pytest

from pysim.opcodes import OPCODES
from pysim.params import PIPES
from pysim.program.job import Job, Memory
from pysim.program.warp_program import Code, Pattern
from pysim.trace.kernels_list import read_list
from pysim.trace.reader import read_kernel as parsed
from pysim.trace.sass import BINARIES
from pysim.trace.writer import write_trace

from .reader import read_kernel, text_of, wavefronts
from .test_trace_writer import compared, kernel_of, trace_of


def test_conflicts_are_three_sources_in_one_bank(tmp_path):
    code = Code()
    code.compute(fp32=70, int=5, conflicts=20, chain=4)
    code.exit()
    _, (insts,) = trace_of(tmp_path, kernel_of(code))
    same = [i for i in insts if len(i.sources) == 3 and len({r % 2 for r in i.sources}) == 1]
    assert len(same) == 20
    assert all(i.kind == "FFMA" and len(set(i.sources)) == 3 for i in same)


def test_wavefronts_of_shared_memory(tmp_path):
    code = Code()
    wanted = [(1, 1), (3, 1), (32, 1), (31, 1), (40, 7), (64, 5), (5, 9), (0, 3), (100, 3)]
    for waves, ops in wanted:
        code.compute(smem=waves, smem_ops=ops, chain=0)
    code.exit()
    _, (insts,) = trace_of(tmp_path, kernel_of(code, smem=4096))
    at = 0
    for waves, ops in wanted:
        mine = insts[at : at + ops]
        assert sum(wavefronts(i) for i in mine if i.kind == "STS") == min(waves, 32 * ops)
        assert Counter(i.kind for i in mine) == +Counter(STS=min(waves, ops), NOP=max(0, ops - waves))
        at += ops


def test_stages_counts_and_loops_are_followed(tmp_path):
    """Three loads ahead of their use, each slot waited for on its own, nothing loaded past the end."""
    code = Code()
    x = Pattern(0, 4, step=128, s0=4)
    for ahead in range(3):
        code.load(0, x, stages=3, ahead=ahead, limit=6)
    mark = code.loop_begin()
    code.wait(0, stages=3)
    code.compute(int=2, chain=0)
    code.load(0, x, stages=3, ahead=3, limit=6)
    code.loop_end(mark, 6)
    code.exit()
    _, (insts,) = trace_of(tmp_path, kernel_of(code, args=1))
    base = Memory().next_address
    assert "".join(i.kind[0] for i in insts) == "LLL" + "IIL" * 3 + "II" * 3 + "E"
    loads = [i for i in insts if i.kind == "LDG"]
    assert [i.addresses[0] - base for i in loads] == [128 * k for k in range(6)]
    firsts = [insts[at] for at in (3, 6, 9, 12, 14, 16)]
    assert [i.sources for i in firsts] == [(load.dst,) for load in loads]
    assert len({i.pc for i in firsts}) == 1
    assert len({load.dst for load in loads}) == 3


def test_counters_of_two_loops_move_an_address(tmp_path):
    code = Code()
    mark = code.loop_begin()
    code.load(0, Pattern(0, 4, base=64, step=4, step2=4096, level2=1, lanes=1))
    code.wait(0)
    code.loop_end(mark, 3)
    code.loop_end(mark, 2, level=1)
    code.exit()
    _, (insts,) = trace_of(tmp_path, kernel_of(code, args=1))
    base = Memory().next_address
    assert [i.addresses for i in insts[:-1]] == [
        (base + 64 + 4 * k + 4096 * j,) for j in range(2) for k in range(3)
    ]
    # each load reads the one before: a chain
    assert len({i.dst for i in insts[:-1]}) == 1
    assert all(insts[0].dst in i.sources for i in insts[1:])


def test_modes_of_addresses(tmp_path):
    code = Code()
    shapes = [
        Pattern(0, 16, s0=16),
        Pattern(0, 4, s0=4, lanes=0x00FFFF00),
        Pattern(0, 4, s0=-4, base=4096),
        Pattern(0, 4, s0=0),
        Pattern(0, 4, s0=4, s1=4096, minor=8),
        Pattern(0, 4, s0=4, lanes=0x5),
        Pattern(0, 2, s0=4, lanes=1 << 31),
        Pattern(0, 8, s0=1 << 50, minor=32, lanes=0x5),
        Pattern(0, 4, s0=-(10**14), s1=3 * 10**14, base=1 << 54, minor=2),
        Pattern(0, 4, lanes=0),
        Pattern(0, 4, s0=1 << 31, lanes=0x3),
    ]
    for shape in shapes:
        code.load(0, shape)
    code.exit()
    kernel = kernel_of(code, args=1)
    _, (insts,) = trace_of(tmp_path, kernel)
    lines = text_of(tmp_path / "hand" / "kernel-1.traceg").split("insts = 12\n")[1].splitlines()
    modes = [line.split(" ")[2 + 6] for line in lines[: len(shapes)]]
    assert modes == ["1", "1", "1", "1", "2", "2", "2", "2", "0", "0", "2"]
    start = kernel.args[0].address
    for inst, p in zip(insts, shapes, strict=False):
        lanes = [lane for lane in range(32) if p.lanes >> lane & 1]
        want = [start + p.base + lane // p.minor * p.s1 + lane % p.minor * p.s0 for lane in lanes]
        assert list(inst.addresses) == want
        assert (inst.mask, inst.width) == (p.lanes, p.width)
    names = ["LDG.E.128", *["LDG.E"] * 5, "LDG.E.U16", "LDG.E.64", *["LDG.E"] * 3]
    assert [i.name for i in insts[:-1]] == names


def test_ops_without_an_instruction_of_their_own(tmp_path):
    """A wait for stores is a MEMBAR, a delay a NANOSLEEP; loads past L1 are STRONG."""
    code = Code()
    at = Pattern(0, 4, s0=4)
    code.load(1, at, bypass_l1=True)
    code.store(0, at)
    code.wait(0)
    code.reduce(2, at)
    code.delay(700)
    code.wait(1)
    code.exit()
    kernel = kernel_of(code, args=1)
    _, (insts,) = trace_of(tmp_path, kernel)
    names = ["LDG.E.STRONG.GPU", "STG.E", "MEMBAR.SC.GPU", "RED.E.ADD.F32.FTZ.RN", "NANOSLEEP", "EXIT"]
    assert [i.name for i in insts] == names
    assert [i.immediate for i in insts] == [0, 0, 0, 0, 700, 0]
    assert insts[-1].sources == (insts[0].dst,)
    assert [i.pc for i in insts] == [16 * n for n in range(6)]
    assert trace_of(tmp_path / "old", kernel, binary=61)[1][0][4].name == "NOP"


def test_more_loads_than_registers(tmp_path):
    """Wide loads take four registers each; when none is left a load waits for an earlier one."""
    code = Code()
    for i in range(80):
        code.load(0, Pattern(0, 16, base=512 * i, s0=16))
    code.wait(0)
    code.compute(int=30, chain=0)
    code.exit()
    _, (insts,) = trace_of(tmp_path, kernel_of(code, args=1))
    taken = [i.dst for i in insts[:80]]
    assert len(set(taken)) == 59
    assert min(taken) >= 8
    assert max(taken) <= 251
    assert all(r % 4 == 0 for r in taken)


def test_waiting_goes_on_past_what_one_instruction_reads(tmp_path):
    code = Code()
    for i in range(10):
        code.load(0, Pattern(0, 4, base=128 * i, s0=4))
    code.wait(0)
    code.barrier()
    code.store(1, Pattern(0, 4, s0=4))
    code.compute(int=1, chain=0)
    code.exit()
    _, (insts,) = trace_of(tmp_path, kernel_of(code, args=1))
    (bar, store, add) = insts[10:13]
    assert (*bar.sources, *store.sources[1:], *add.sources) == tuple(i.dst for i in insts[:10])
    assert store.sources[0] == insts[0].sources[0]


@pytest.mark.parametrize(
    ("binary", "names"),
    [
        (70, ["HMMA.884.F32.F32.STEP0", "HMMA.884.F32.F32.STEP1"]),
        (75, ["HMMA.1688.F32"] * 2),
        (86, ["HMMA.16816.F32"] * 2),
    ],
)
def test_tensor_instructions_of_a_binary_version(tmp_path, binary, names):
    code = Code()
    code.compute(tensor=2)
    code.exit()
    header, (insts,) = trace_of(tmp_path, kernel_of(code), binary=binary)
    assert [i.name for i in insts[:2]] == names
    assert int(header["binary version"]) == binary


@pytest.mark.parametrize("binary", BINARIES)
def test_every_opcode_is_known_to_the_binary_version(tmp_path, binary):
    code = Code()
    pipes = {pipe: 5 for pipe, _ in PIPES if pipe != "tensor" or binary >= 70}
    code.compute(smem=9, smem_ops=3, chain=30, **pipes)
    code.compute(smem=9, smem_ops=12, chain=0)
    for width in (1, 2, 4, 8, 16):
        code.load(0, Pattern(0, width, s0=width), bypass_l1=width > 4)
        code.store(1, Pattern(0, width, s0=width))
        code.reduce(2, Pattern(0, width, s0=width))
    for slot in range(3):
        code.wait(slot)
    code.barrier()
    code.delay(5)
    code.exit()
    write_trace(Job("hand", [kernel_of(code, args=1)]), tmp_path / "x", binary=binary)
    (file,) = read_list(tmp_path / "x")
    header, tb = compared(parsed(file.path), read_kernel(file.path)[1])
    assert (header.binary, header.version) == (binary, 4)
    widths = [i["width"] for i in tb.insts if OPCODES[i["opcode"]].space == "global"]
    assert widths == [width for width in (1, 2, 4, 8, 16) for _ in range(3)]
