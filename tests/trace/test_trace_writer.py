"""Kernels written as traces: every instruction, address, dependence and file."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from pysim.__main__ import main
from pysim._ffi import ffi, lib
from pysim.engine.simulation import Sim
from pysim.errors import ConfigError, WorkloadError
from pysim.opcodes import OPCODES
from pysim.params import PIPES
from pysim.program.job import Job, Kernel, Memory
from pysim.program.warp_program import OP, Code, Pattern, Program, Recorded
from pysim.trace import writer
from pysim.trace.folder import read_list
from pysim.trace.reader import Header
from pysim.trace.reader import read_kernel as parsed
from pysim.trace.sass import BINARIES
from pysim.trace.writer import write_trace
from tests.core.harness import lowered_of, tiny
from tests.core.workloads_small import JOBS
from tests.support.walker import position, walk
from workloads.mirrored.hgemm import hgemm_64x64x32
from workloads.registry import make

from .reader import listed, read_kernel, text_of, wavefronts

ROOT = Path(__file__).resolve().parents[2]
NAMES = {
    "fp32": "FFMA", "int": "IADD3", "fp16": "HFMA2", "fp64": "DFMA", "sfu": "MUFU", "tensor": "HMMA",
    "control": "BRA",
}  # fmt: skip
MEMORY = {"LOAD": "LDG", "STORE": "STG", "REDUCE": "RED"}
# jobs of one kind are enough; these have edge tiles, grids in y and z, sliced tiles, streams, reductions
CHECKED = ("gemm_edges", "gemm_beta", "split_k", "sliced", "hgemm", "gru", "copy", "pointwise", "random_dag",
           "read", "chase", "mixed", "empty")  # fmt: skip
KERNELS = 8


@pytest.fixture(scope="module", params=CHECKED)
def written(request, tmp_path_factory):
    """A job and its trace: [(kernel, header, blocks)] of some of its kernels."""
    job = JOBS[request.param]()
    step = -(-len(job.kernels) // KERNELS)
    chosen = range(1, len(job.kernels) + 1, step)
    folder = tmp_path_factory.mktemp("trace") / request.param
    write_trace(job, folder, kernels=chosen)
    assert [p.name for p in listed(folder)] == [f"kernel-{number}.traceg" for number in chosen]
    return job, [(number - 1, *read_kernel(folder / f"kernel-{number}.traceg")) for number in chosen]


def kernel_of(code, warps=1, grid=(1, 1, 1), registers=32, args=0, smem=0, memory=None):
    tensors = tuple((memory or Memory()).tensor(f"t{i}", 1024, 1024, 4) for i in range(args))
    program = Program("hand", (tuple(code.ops),), warps, registers, smem, args)
    return Kernel("hand", program, grid, tensors, ())


def trace_of(tmp_path, kernel, **options):
    """Instructions of all warps of all TBs of one kernel."""
    write_trace(Job("hand", [kernel]), tmp_path / "hand", **options)
    header, blocks = read_kernel(tmp_path / "hand" / "kernel-1.traceg")
    return header, [warp for block in blocks for warp in block.warps]


def sample(kernel):
    return sorted({0, 1, kernel.tbs // 2, kernel.tbs - 2, kernel.tbs - 1} & set(range(kernel.tbs)))


def test_headers_and_order(written):
    job, traces = written
    for number, header, blocks in traces:
        kernel = job.kernels[number]
        assert header["kernel name"] == kernel.name
        assert int(header["kernel id"]) == number + 1
        assert header["grid dim"] == "({},{},{})".format(*kernel.grid)
        assert header["block dim"] == f"({kernel.program.warps * 32},1,1)"
        assert int(header["nregs"]) == kernel.program.registers
        assert int(header["shmem"]) == kernel.program.smem
        assert int(header["cuda stream id"]) == kernel.stream
        assert int(header["binary version"]) == 70
        assert [block.at for block in blocks] == [position(kernel, tb) for tb in range(kernel.tbs)]
        assert all(len(block.warps) == kernel.program.warps for block in blocks)


def test_a_wait_for_copies_is_not_written(tmp_path):
    """The product asks often whether its copies have left the queue; its other instructions are there."""
    launched = hgemm_64x64x32(64, 64, 128)
    assert any(op.kind == OP["TAKEN"] for op in launched.kernel.program.variants[0])
    _, warps = trace_of(tmp_path, launched.kernel)
    assert sum(map(len, warps)) == launched.counts["inst"]


def test_the_parser_reads_the_same(written, tmp_path):
    """The package's own reader, fed by the list, sees what the small reader of the tests sees."""
    job, traces = written
    write_trace(job, tmp_path / "xz", kernels=[number + 1 for number, _, _ in traces], compress=True)
    for file, (number, _, blocks) in zip(read_list(tmp_path / "xz"), traces, strict=True):
        kernel = job.kernels[number]
        header, *_ = stream = list(compared(parsed(file.path), blocks))
        assert (header.name, header.id, header.grid) == (kernel.name, number + 1, kernel.grid)
        assert (header.stream, header.block) == (kernel.stream, (kernel.program.warps * 32, 1, 1))
        assert (header.smem, header.registers) == (kernel.program.smem, kernel.program.registers)
        assert len(stream) == 1 + kernel.tbs


def compared(items, blocks):
    """Pass on what the parser gives; each TB must be the block of the same number."""
    left = iter(blocks)
    for item in items:
        yield item
        if isinstance(item, Header):
            continue
        block = next(left)
        assert item.place == block.at
        assert item.warps["count"].tolist() == [len(warp) for warp in block.warps]
        wanted = [i for warp in block.warps for i in warp]
        got = item.insts
        for name, values in (
            ("pc", [i.pc for i in wanted]),
            ("mask", [i.mask for i in wanted]),
            ("width", [i.width for i in wanted]),
            ("imm", [i.immediate for i in wanted]),
            ("dsts", [int(i.dst >= 0) for i in wanted]),
            ("srcs", [len(i.sources) for i in wanted]),
            ("variant", [int(".STRONG" in i.name) | 2 * (i.kind == "HFMA2") for i in wanted]),
        ):
            assert got[name].tolist() == values, name
        assert [OPCODES[row].name for row in got["opcode"]] == [i.kind for i in wanted]
        assert [r for inst, i in zip(got, wanted, strict=True) for r in inst["src"][: len(i.sources)]] == [
            r for i in wanted for r in i.sources
        ]
        assert [inst["dst"][0] for inst in got if inst["dsts"]] == [i.dst for i in wanted if i.dst >= 0]
        assert item.addresses.tolist() == [a for i in wanted for a in i.addresses]


def test_instructions_of_each_class_are_those_of_the_program(written):
    job, traces = written
    for number, _, blocks in traces:
        kernel = job.kernels[number]
        for tb in sample(kernel):
            for warp, insts in enumerate(blocks[tb].warps):
                want: Counter[str] = Counter()
                waves = 0
                for step in walk(kernel, tb, warp):
                    want.update({NAMES[p]: n for (p, _), n in zip(PIPES, step.op.pipes, strict=True) if n})
                    if step.kind == "COMPUTE":
                        shared = step.op.issue - sum(step.op.pipes)
                        want["shared"] += shared
                        waves += step.op.smem if shared else 0
                    if step.kind in MEMORY:
                        want[MEMORY[step.kind]] += 1
                    want["BAR"] += step.kind == "BARRIER"
                    want["EXIT"] += step.kind == "EXIT"
                got = Counter("shared" if i.kind in ("LDS", "STS", "NOP") else i.kind for i in insts)
                assert got == +want
                assert sum(wavefronts(i) for i in insts if i.kind in ("LDS", "STS")) == waves
                assert insts[-1].kind == "EXIT"


def test_sectors_of_each_tb_are_those_of_the_core(written):
    job, traces = written
    made, _ = lowered_of(job, "stream", tiny())
    out = ffi.new("uint64_t[]", 1 << 17)
    with Sim(made) as sim:
        for number, _, blocks in traces:
            for tb in range(job.kernels[number].tbs):
                count = lib.gs_touches(sim.sim, number, tb, out, len(out))
                got = np.frombuffer(ffi.buffer(out, 8 * count), np.uint64).tolist()
                at = 0
                for insts in blocks[tb].warps:
                    for inst in insts:
                        if inst.kind not in MEMORY.values():
                            continue
                        write = 0 if inst.kind == "LDG" else 1 << 63
                        lines: dict[int, int] = {}
                        for a in inst.addresses:
                            for sector in range(a // 32, (a + inst.width - 1) // 32 + 1):
                                lines[sector // 4] = lines.get(sector // 4, 0) | 1 << sector % 4
                        want = {line << 4 | mask | write for line, mask in lines.items()}
                        assert set(got[at : at + len(want)]) == want
                        at += len(want)
                assert at == count


def test_a_load_is_read_first_where_the_program_waits(written):
    job, traces = written
    for number, _, blocks in traces:
        kernel = job.kernels[number]
        for tb in sample(kernel)[:2]:
            for warp, insts in enumerate(blocks[tb].warps):
                check_waits(kernel, tb, warp, insts)


def readers(registers, insts):
    """How many instructions it takes to read so many registers: four each, addresses among them."""
    read = np.cumsum([4 - (inst.width > 0) for inst in insts])
    return int(np.searchsorted(read, registers)) + 1


def check_waits(kernel, tb, warp, insts):
    """Walk program and trace side by side; the programs of the workloads have no stages.

    What is read is what the program waits for and perhaps the result of a compute block.
    """
    at = 0
    loads: dict[int, list[int]] = {}
    for step in walk(kernel, tb, warp):
        assert not step.op.stages
        if step.kind == "WAIT":
            mine = loads.pop(step.op.slot, [])
            for load in mine:
                last = at + readers(len(mine) + 1, insts[at:])
                reads = [i for i in range(load + 1, last) if insts[load].dst in insts[i].sources]
                assert reads, (kernel.name, tb, warp, load, at)
                assert reads[0] >= at
                # and nobody takes the register before
                assert insts[load].dst not in [insts[i].dst for i in range(load + 1, reads[0])]
        elif step.kind == "LOAD":
            assert insts[at].kind == "LDG"
            loads.setdefault(step.op.slot, []).append(at)
        at += step.op.issue
    assert at == len(insts)


def test_a_pc_is_always_the_same_instruction(written):
    _, traces = written
    for _, _, blocks in traces:
        seen: dict[int, set[object]] = {}
        for block in blocks:
            for insts in block.warps:
                for i in insts:
                    assert i.pc % 16 == 0
                    seen.setdefault(i.pc, set()).add((i.name, i.width))
        assert all(len(names) == 1 for names in seen.values())


def test_instructions_of_a_block_are_independent_up_to_its_chain(tmp_path):
    code = Code()
    code.compute(fp32=40, int=9, sfu=7, smem=24, smem_ops=6, chain=27)
    code.compute(fp64=20, chain=16)
    code.compute(tensor=20, chain=3)
    code.barrier()
    code.exit()
    _, (insts,) = trace_of(tmp_path, kernel_of(code))
    first, second, third = insts[:62], insts[62:82], insts[82:102]
    # 27 cycles: a load from shared memory and what uses it, 19 + 3 + 3 + 3
    assert [i.kind for i in first[-4:]] == ["LDS", "FFMA", "FFMA", "IADD3"]
    assert [i.kind for i in second[-2:]] == ["DFMA", "DFMA"]
    for linked in (insts[59:63], insts[81:83]):
        assert [i.sources for i in linked] == [(insts[insts.index(i) - 1].dst,) for i in linked]
    # three cycles are less than any tensor step takes
    assert third[-1].dst not in insts[102].sources
    assert insts[102].kind == "BAR"
    for block, tail in ((first, 4), (second, 2), (third, 0)):
        last: dict[int, int] = {}
        count: Counter[str] = Counter()
        for inst in block[1 : len(block) - tail]:
            count[inst.kind] += 1
            for r in (*inst.sources, inst.dst):
                assert r not in last or count[inst.kind] - last[r] >= 8
            if inst.dst >= 0:
                last[inst.dst] = count[inst.kind]


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


def test_kernels_that_cannot_be_written(tmp_path):
    def refused(message, code, error=WorkloadError, **options):
        with pytest.raises(error, match=message):
            trace_of(tmp_path, kernel_of(code, args=1), **options)
        assert list(tmp_path.iterdir()) == []

    code = Code()
    code.compute(tensor=1)
    refused("no EXIT", code)
    code.exit()
    refused("SM 61 has no tensor", code, binary=61)
    refused("binary version 71: must be one of 60", code, ConfigError, binary=71)
    refused("no kernel 2: job hand has 1 to 1", code, ConfigError, kernels=[1, 2])
    refused("no kernels", code, ConfigError, kernels=[])
    recorded = Recorded("old", 1, 32, 0, 0, lowered=lambda values: None)
    with pytest.raises(WorkloadError, match="comes from a trace"):
        write_trace(Job("old", [Kernel("old", recorded, (1, 1, 1), (), ())]), tmp_path / "old")
    for pattern, message in (
        (Pattern(0, 3, s0=4), "3 B a lane"),
        (Pattern(0, 4, s0=4, base=-(1 << 40)), "negative"),
        (Pattern(1, 4, s0=4), "without its argument"),
    ):
        code = Code()
        code.load(0, pattern)
        code.exit()
        refused(message, code)
    code = Code()
    code.compute(int=1 << 23)
    code.exit()
    refused("more than 4194304 instructions", code)


def test_large_programs_are_not_kept(tmp_path, monkeypatch):
    """Lines that do not fit the room are made again for each TB; the bytes are the same."""
    job = JOBS["gemm_beta"]()
    write_trace(job, tmp_path / "kept")
    monkeypatch.setattr(writer, "KEEP", 20_000)
    write_trace(job, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "kept")


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_the_same_bytes_each_time(tmp_path):
    for name in ("first", "second"):
        write_trace(JOBS["gru"](), tmp_path / name, kernels=[1, 5, 7], compress=name == "first")
    write_trace(JOBS["gru"](), tmp_path / "third", kernels=[7, 5, 1], compress=True)
    assert contents(tmp_path / "first") == contents(tmp_path / "third")
    for number in (1, 5, 7):
        packed = tmp_path / "first" / f"kernel-{number}.traceg.xz"
        assert text_of(packed) == text_of(tmp_path / "second" / f"kernel-{number}.traceg")
    assert (tmp_path / "first" / "kernelslist.g").read_text().split() == [
        f"kernel-{number}.traceg.xz" for number in (1, 5, 7)
    ]


def test_a_folder_with_content_is_refused_or_its_trace_replaced(tmp_path):
    job = make("copy:nbytes=8192")
    folder = tmp_path / "a" / "b"
    write_trace(JOBS["empty"](), folder)
    (folder / "notes").write_text("mine")
    before = contents(folder)
    with pytest.raises(ConfigError, match="is not empty: --force"):
        write_trace(job, folder)
    assert contents(folder) == before
    (folder / "kernel-9.traceg.part").write_text("left by a crash")
    done = write_trace(job, folder, force=True, compress=True)
    assert sorted(contents(folder)) == ["kernel-1.traceg.xz", "kernelslist.g", "notes"]
    assert {p.name for p in done.files} == {"kernel-1.traceg.xz", "kernelslist.g"}
    with pytest.raises(ConfigError, match="is not a folder"):
        write_trace(job, folder / "notes")
    with pytest.raises(WorkloadError, match=r"cannot write .*Not a directory"):
        write_trace(job, folder / "notes" / "x")


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_nothing_is_left_when_writing_stops(tmp_path, monkeypatch, stop):
    real = writer._kernel_text

    def stopped(kernel, number, made):
        yield from real(kernel, number, made)
        if number == 2:
            raise stop

    monkeypatch.setattr(writer, "_kernel_text", stopped)
    expected = WorkloadError if isinstance(stop, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_trace(JOBS["empty"](), tmp_path / "new" / "er")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    folder = tmp_path / "old"
    write_trace(make("copy:nbytes=8192"), folder)
    before = contents(folder)
    monkeypatch.setattr(writer, "_kernel_text", stopped)
    with pytest.raises(expected):
        write_trace(JOBS["empty"](), folder, force=True)
    assert contents(folder) == before


def pysim(*args, **options):
    command = [sys.executable, "-m", "pysim", *map(str, args)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False, **options
    )


def test_the_command(tmp_path):
    folder = tmp_path / "out"
    done = pysim(
        "write-trace", "random_dag:kernels=9", folder, "--kernels", "2-4,9", "--binary", "80", "--compress"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 kernels" in done.stdout
    assert "events between streams" in done.stdout
    assert [p.name for p in listed(folder)] == [f"kernel-{n}.traceg.xz" for n in (2, 3, 4, 9)]
    assert read_kernel(listed(folder)[0])[0]["binary version"] == "80"


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (("copy",), 2, "write-trace needs WORKLOAD and FOLDER"),
        (("copy", "a", "b"), 2, "unexpected argument 'b'"),
        (("copi", "new"), 1, "no workload 'copi': did you mean copy?"),
        (("copy", "new", "--kernels", "0"), 2, "positive integer"),
        (("copy", "new", "--kernels", "4-2"), 2, "4-2 is an empty range"),
        (("copy", "new", "--kernels", "1-99999999999"), 2, "no kernel 99999999999: copy has 1 to 1"),
        (("copy", "new", "--markdown"), 2, "--markdown goes with the command parameters"),
        (("copy", "new", "--binary", "50"), 2, "binary version 50: must be one of"),
        (("copy", "full"), 2, "full is not empty: --force"),
    ],
)
def test_the_command_refuses_in_one_line(tmp_path, monkeypatch, capsys, args, status, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pysim", "write-trace", *args])
    with pytest.raises(SystemExit) as left:
        main()
    out, error = capsys.readouterr()
    assert (left.value.code, out) == (status, "")
    assert message in error
    assert error.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["full"]


def test_a_full_disk_is_one_line(tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = pysim("write-trace", "copy:nbytes=1048576", tmp_path / "out", preexec_fn=limit)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: cannot write ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing(tmp_path):
    command = [sys.executable, "-m", "pysim", "write-trace", "ffma:iterations=65535", str(tmp_path / "out")]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True) as child:
        until = time.monotonic() + 30
        while not list(tmp_path.glob("out/*")) and time.monotonic() < until:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=30)
    assert (child.returncode, error) == (130, "interrupted\n")
    assert list(tmp_path.iterdir()) == []
