"""Registers of operands: a trace names the first of each, the mnemonic says how many there are."""

from __future__ import annotations

import pytest

from pysim.trace.job import trace_job
from tests.core.harness import config, execute

from .made_traces import A, converted
from .read import V6, inst_of
from .text import EXIT, header, tb, text

# mnemonic, SM version, registers of the result and of the sources
SIZES = [
    ("FFMA", 70, 1, (1, 1, 1)),
    ("DFMA", 70, 2, (2, 2, 2)),
    ("DADD", 60, 2, (2, 2)),
    ("IMAD", 70, 1, (1, 1, 1)),
    ("IMAD.WIDE", 70, 2, (1, 1, 2)),
    ("IMAD.WIDE.U32", 80, 2, (1, 1, 2)),
    ("IMAD.HI.U32", 80, 1, (1, 1, 2)),
    ("F2F.F64.F32", 70, 2, (1,)),
    ("F2F.F32.F64", 70, 1, (2,)),
    ("F2F.BF16.F32", 80, 1, (1,)),
    ("F2I.F64.TRUNC", 70, 1, (2,)),
    ("F2I.S64.F64.TRUNC", 70, 2, (2,)),
    ("F2I.U64.TRUNC", 70, 2, (1,)),
    ("F2I.FTZ.U32.F32.TRUNC.NTZ", 70, 1, (1,)),
    ("I2F.F64", 70, 2, (1,)),
    ("I2F.S64", 70, 1, (2,)),
    ("I2F.F64.U64", 70, 2, (2,)),
    ("FRND.F64.TRUNC", 70, 2, (2,)),
    ("MUFU.RCP64H", 70, 1, (1,)),
    ("CS2R", 70, 2, ()),
    ("CS2R.32", 70, 1, ()),
    ("LDC.64", 80, 2, (1,)),
    ("HMMA.884.F32.F32.STEP2", 70, 2, (2, 2, 2)),
    ("HMMA.1688.F32", 75, 4, (2, 1, 4)),
    ("HMMA.1688.F16", 75, 2, (2, 1, 2)),
    ("HMMA.16816.F32", 80, 4, (4, 2, 4)),
    ("HMMA.16816.F16", 80, 2, (4, 2, 2)),
    ("HMMA.16816.F32.BF16", 80, 4, (4, 2, 4)),
    ("HMMA.1684.F32.TF32", 80, 4, (2, 1, 4)),
    ("HMMA.1688.F32.TF32", 80, 4, (4, 2, 4)),
    ("HMMA.SP.16832.F32", 80, 4, (4, 4, 4)),
    ("IMMA.8816.S8.S8", 75, 2, (1, 1, 2)),
    ("IMMA.16832.S8.U8.SAT", 80, 4, (4, 2, 4)),
    ("IMMA.16864.S4.S4", 80, 4, (4, 2, 4)),
    ("BMMA.168256.XOR.POPC", 80, 4, (4, 2, 4)),
    ("DMMA.884", 80, 4, (2, 2, 4)),
    ("QMMA.16832.F32.E4M3.E5M2", 89, 4, (4, 2, 4)),
]


@pytest.mark.parametrize(("name", "binary", "result", "sources"), SIZES, ids=[row[0] for row in SIZES])
def test_registers_of_a_mnemonic(name, binary, result, sources):
    read = "".join(f" R{8 * i + 16}" for i in range(len(sources)))
    line = f"0010 ffffffff 1 R8 {name} {len(sources)}{read} 0 0"
    inst, _ = inst_of(line, binary_version=str(binary))
    assert inst["dst_size"][0] == result
    assert tuple(inst["src_size"][: len(sources)]) == sources


@pytest.mark.parametrize(
    ("name", "sums", "a"),
    [
        ("HGMMA.64x128x16.F32", 64, 4),
        ("HGMMA.64x256x16.F32.BF16", 128, 4),
        ("HGMMA.64x64x16.F16", 16, 4),
        ("HGMMA.64x8x8.F32.TF32", 4, 4),
        ("QGMMA.64x128x32.F32.E4M3.E4M3", 64, 4),
        ("IGMMA.64x96x32.S8.S8", 48, 4),
    ],
)
def test_registers_of_a_warp_group_multiply(name, sums, a):
    shared = inst_of(f"0010 ffffffff 1 R24 {name} 2 UR4 R24 1 0 0 0 NoVal", **V6)[0]
    assert (shared["dst_size"][0], *shared["src_size"][:2]) == (sums, 4, sums)
    registers = inst_of(f"0010 ffffffff 1 R24 {name} 3 R8 UR4 R24 1 0 0 0 NoVal", **V6)[0]
    assert (registers["dst_size"][0], *registers["src_size"][:3]) == (sums, a, 4, sums)


def test_predicates_and_the_addend_of_two_sources():
    inst, _ = inst_of("0010 ffffffff 1 P0 DSETP 2 R4 R6 0 0 0 NoVal", **V6)
    assert (inst["dst_size"][0], *inst["src_size"][:2]) == (1, 2, 2)
    # of IMAD.WIDE R2, R4, 0x4, R6 the trace has two sources, as of IMAD.WIDE R2, R4, R6, c[0x0][0x160]
    for immediate, size in ((4, 2), (0, 1)):
        inst, _ = inst_of(f"0010 ffffffff 1 R2 IMAD.WIDE 2 R4 R6 0 {immediate}")
        assert inst["src_size"][1] == size


def chain(folder, producer, reader, binary=80):
    """Cycles of pairs in which ``reader`` needs register ``reader`` of what ``producer`` writes to R32."""
    lines = []
    for i in range(40):
        lines.append(f"{32 * i:04x} ffffffff 1 R32 {producer} 0 0")
        lines.append(f"{32 * i + 16:04x} ffffffff 1 R4 FADD 2 R{reader} R255 0 0")
    folder.mkdir()
    head = header(binary_version=str(binary), nregs="128")
    (folder / "kernel-1.traceg").write_bytes(text(head, tb((0, 0, 0), [[*lines, EXIT]])))
    (folder / "kernelslist.g").write_text("kernel-1.traceg\n")
    return execute(trace_job(converted(folder)), "stream", config("a100")).end


@pytest.mark.parametrize(
    ("producer", "count"),
    [
        ("HMMA.16816.F32 3 R4 R8 R255", 4),
        ("HMMA.16816.F16 3 R4 R8 R255", 2),
        ("DFMA 3 R4 R6 R8", 2),
        ("IMAD.WIDE 3 R4 R6 R8", 2),
        ("F2F.F64.F32 1 R4", 2),
        ("CS2R 0", 2),
    ],
)
def test_a_reader_of_any_register_waits(tmp_path, producer, count):
    times = [chain(tmp_path / str(i), producer, 32 + i) for i in range(count + 1)]
    assert len(set(times[:count])) == 1
    assert times[count] < times[0]


def test_a_wide_source_waits_for_all_of_it(tmp_path):
    def end(dst):
        lines = []
        for i in range(40):
            lines.append(f"{32 * i:04x} ffffffff 1 R{dst} MUFU.EX2 1 R20 0 0")
            lines.append(f"{32 * i + 16:04x} ffffffff 1 R24 DADD 2 R8 R12 0 0")
        folder = tmp_path / str(dst)
        folder.mkdir()
        (folder / "kernel-1.traceg").write_bytes(text(header(), tb((0, 0, 0), [[*lines, EXIT]])))
        (folder / "kernelslist.g").write_text("kernel-1.traceg\n")
        return execute(trace_job(converted(folder)), "stream", config("titan_v")).end

    assert end(8) == end(9) == end(13) > end(10)


def test_an_address_in_shared_memory_is_one_register(tmp_path):
    def waits(name, space):
        lines = [
            f"0000 ffffffff 1 R9 LDG.E 1 R2 4 1 0x{A:x} 4 0",
            f"0010 ffffffff 1 R12 {name} 1 R8 4 1 0x{space:x} 4 0",
            "0020 ffffffff 1 R4 FADD 2 R12 R255 0 0",
        ]
        folder = tmp_path / name
        folder.mkdir()
        (folder / "kernel-1.traceg").write_bytes(text(header(), tb((0, 0, 0), [[*lines, EXIT]])))
        (folder / "kernelslist.g").write_text("kernel-1.traceg\n")
        ops = trace_job(converted(folder)).kernels[0].program.lower(config().encoded()).ops
        return [int(op["kind"]) for op in ops].count(5)

    assert (waits("LDS", 0x100), waits("LDG.E", A + 4096)) == (0, 2)
