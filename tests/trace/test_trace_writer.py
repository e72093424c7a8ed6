"""Kernels written as traces: every instruction, address, dependence and file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from pysim._ffi import ffi, lib
from pysim.engine.simulation import Sim
from pysim.opcodes import OPCODES
from pysim.params import PIPES
from pysim.program.job import Job, Kernel, Memory
from pysim.program.warp_program import OP, Code, Program
from pysim.trace.kernels_list import read_list
from pysim.trace.reader import Header
from pysim.trace.reader import read_kernel as parsed
from pysim.trace.writer import write_trace
from pysim.workloads.mirrored.hgemm import hgemm_64x64x32
from tests.core.harness import lowered_of, tiny
from tests.core.workloads_small import JOBS
from tests.support.walker import position, walk

from .reader import listed, read_kernel, wavefronts

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
        assert item.index == block.at
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
