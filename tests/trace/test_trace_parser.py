"""The reader of SASS traces: every version and address mode, any cut, and every kind of bad input."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim._ffi import lib
from pysim.opcodes import OPCODES
from pysim.trace.kernels_list import read_list
from pysim.trace.reader import read_kernel, read_text

from .read import SAMPLE, error_of, inst_of, name_of, one_warp, outcome, read
from .text import EXIT, header, line_of, tb, text

DATA = Path(__file__).resolve().parents[1] / "data" / "traces"
RECORDED = (DATA / "vectoradd" / "kernel-1.traceg").read_bytes()
SPACE = {"none": 0, "global": 1, "shared": 2, "local": 3}


# --- what is read ---


def test_recorded_trace_is_read_whole():
    commands = read_list(DATA / "vectoradd")
    assert [command.size for command in commands[:-1]] == [400, 400, 400]
    head, one = read_kernel(commands[-1].path)
    assert head.name == "_Z6vecAddIfEvPT_S1_S1_i"
    assert (head.grid, head.block, head.registers, head.binary) == ((1, 1, 1), (1024, 1, 1), 8, 61)
    assert one.warps["count"].tolist() == [23] * 4 + [9] * 28
    assert len(one.insts) == 344
    assert name_of(one.insts[-1]) == "EXIT"
    loads = one.insts[(one.insts["width"] > 0) & (one.insts["pc"] == 0x98)]
    assert np.all(loads["width"] == 4)
    first = loads[0]
    assert one.addresses[first["first"] :][:32].tolist() == [0x7F2B2D500000 + 4 * lane for lane in range(32)]


def test_header_fields():
    head = read(
        one_warp(
            kernel_name="void f<int>(int*)",
            kernel_id="7",
            grid_dim="(1,1,1)",
            shmem="49152",
            cuda_stream_id="18446744073709551615",
        )
    )[0]
    assert head.name == "void f<int>(int*)"
    assert (head.id, head.stream, head.smem, head.version) == (7, (1 << 64) - 1, 49152, 4)
    assert (head.shared_base, head.local_base) == (0x7F0000000000, 0x7F0002000000)
    assert not head.lineinfo


def test_long_name_is_cut():
    assert len(read(one_warp(kernel_name="x" * 5000))[0].name) == 1023


@pytest.mark.parametrize("version", [None, "1", "2", "3", "4", "5", "6"])
def test_versions(version):
    rest = {"5": " 10", "6": " 10 0 NoVal"}.get(version, "")
    old = version in (None, "1", "2")
    line = ("0 0 0 0 " if old else "") + "0020 ffffffff 1 R0 SHF.L.U32 2 R0 R255 0" + rest
    inst, addresses = inst_of(line, accelsim_tracer_version=version)
    assert (name_of(inst), inst["pc"], inst["mask"]) == ("SHF", 0x20, 0xFFFFFFFF)
    assert (inst["dsts"], inst["srcs"]) == (1, 2)
    assert inst["dst"][0] == 0
    assert inst["src"][:2].tolist() == [0, 255]
    assert (inst["width"], inst["space"], addresses) == (0, 0, [])
    assert inst["imm"] == (10 if rest else 0)
    assert inst["line"] == line_of(one_warp(line, accelsim_tracer_version=version), line)


def test_line_numbers_of_the_source_are_skipped():
    inst, _ = inst_of("77 0010 0000000f 0 NOP 0 0", enable_lineinfo="1")
    assert (inst["pc"], inst["mask"]) == (0x10, 0xF)
    old = "0 0 0 0 77 0010 0000000f 0 NOP 0 0"
    inst, _ = inst_of(old, enable_lineinfo="1", accelsim_tracer_version="2")
    assert (inst["pc"], inst["mask"]) == (0x10, 0xF)


@pytest.mark.parametrize(
    ("mask", "list_text", "expect"),
    [
        (0xFFFFFFFF, "1 0x1000 16", [0x1000 + 16 * lane for lane in range(32)]),
        (0x00000FF0, "1 0x1000 -8", [0x1000 - 8 * lane for lane in range(8)]),
        (0x00000100, "1 0xffffffffffffffff 4", [(1 << 64) - 1]),
        (0x00000100, "2 0x1000", [0x1000]),
        (0x80000101, "2 0x1000 256 -512", [0x1000, 0x1100, 0xF00]),
        (0x00000003, "2 0 18446744073709551615", [0, (1 << 64) - 1]),
        (0x80000101, "0 0x1000 0x2000 0x3", [0x1000, 0x2000, 0x3]),
        (0x80000101, "0 1000 2000 abc", [0x1000, 0x2000, 0xABC]),
        (0x00000000, "1 0x0 0", []),
        (0x00000000, "0", []),
        (0x00000000, "2", []),
        (0x00000000, "2 0x0", []),
    ],
)
@pytest.mark.parametrize("version", ["3", "4", "4 imm", "5", "6"])
def test_address_modes(mask, list_text, expect, version):
    rest = {"4 imm": " 7", "5": " 7", "6": " 7 9 NoVal"}.get(version, "")
    line = f"0010 {mask:08x} 1 R4 LDG.E.128.SYS 1 R2 16 {list_text}{rest} "
    inst, addresses = inst_of(line, accelsim_tracer_version=version[0])
    assert addresses == expect
    assert (inst["width"], inst["space"]) == (16, SPACE["global"])
    assert inst["imm"] == (7 if rest else 0)


@pytest.mark.parametrize(
    ("mnemonic", "sm", "width", "space"),
    [
        ("LDG.E.SYS", 70, 4, "global"),
        ("LDG.E.U8", 80, 1, "global"),
        ("LDG.E.S16", 80, 2, "global"),
        ("LDG.E.64.CONSTANT", 80, 8, "global"),
        ("LDG.E.LTC128B.128", 90, 16, "global"),
        ("LDS.U.32", 61, 4, "shared"),
        ("LDS.U.128", 61, 16, "shared"),
        ("STS.U8", 75, 1, "shared"),
        ("LDSM.16.M88.4", 80, 16, "shared"),
        ("LDSM.16.MT88.2", 80, 8, "shared"),
        ("LDSM.16.M88", 75, 4, "shared"),
        ("STL.64", 70, 8, "local"),
        ("ATOMG.E.ADD.F16x2.RN.STRONG.GPU", 80, 4, "global"),
        ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU", 80, 4, "global"),
        ("ATOMS.CAS.64", 80, 8, "shared"),
        ("LDGSTS.E.BYPASS.128", 80, 16, "global"),
        ("SYNCS.ARRIVE.TRANS64.A1T0", 90, 8, "shared"),
    ],
)
def test_widths_come_from_the_mnemonic(mnemonic, sm, width, space):
    inst, addresses = inst_of(f"0010 1 0 {mnemonic} 0 4 2 0x100", binary_version=str(sm))
    assert (inst["width"], inst["space"], addresses) == (width, SPACE[space], [0x100])


@pytest.mark.parametrize(
    ("address", "space"),
    [
        (0x7F0000000000, "shared"),
        (0x7F0000FFFFFF, "shared"),
        (0x7F0001000000, "global"),
        (0x7F0002000000, "local"),
        (0x7F0003000000, "global"),
        (0x1000, "global"),
    ],
)
def test_generic_addresses_are_resolved_by_the_windows(address, space):
    inst, _ = inst_of(f"0010 1 1 R1 LD.E 1 R2 4 2 {address:#x}")
    assert inst["space"] == SPACE[space]
    inst, _ = inst_of(f"0010 1 1 R1 LD.E 1 R2 4 2 {address:#x}", shmem_base_addr="0x0")
    assert inst["space"] == SPACE["shared"]


def test_windows_may_come_in_either_order():
    bases = {"shmem_base_addr": "0x3000", "local_mem_base_addr": "0x1000"}
    assert inst_of("0010 1 1 R1 LD 1 R2 4 2 0x2fff", **bases)[0]["space"] == SPACE["local"]
    assert inst_of("0010 1 1 R1 LD 1 R2 4 2 0x3000", **bases)[0]["space"] == SPACE["shared"]


@pytest.mark.parametrize(
    ("mnemonic", "sm", "bits"),
    [
        ("LDG.E.STRONG.GPU", 70, lib.GS_VARIANT_STRONG),
        ("LDG.E.STRONG.SYS", 70, lib.GS_VARIANT_STRONG),
        ("LDG.E.STRONG.SM", 70, 0),
        ("LDG.E.SYS", 70, 0),
        ("LDG.E.CG", 61, lib.GS_VARIANT_STRONG),
        ("HFMA2.MMA", 80, lib.GS_VARIANT_HALF),
        ("CCTL.IVALL", 70, lib.GS_VARIANT_IVALL),
    ],
)
def test_variants(mnemonic, sm, bits):
    inst, _ = inst_of(f"0010 1 0 {mnemonic} 0 0", binary_version=str(sm))
    assert inst["variant"] == bits


def test_suffix_may_change_the_class():
    hopper = {"binary_version": "90"}
    kinds = {
        "UBLKCP.S.G": "BULK_LOAD",
        "UBLKCP.G.S": "BULK_STORE",
        "WARPGROUP.ARRIVE": "GMMA_ARRIVE",
        "WARPGROUP.DEPBAR.LE": "GMMA_WAIT",
        "SYNCS.PHASECHK.TRANS64.TRYWAIT": "MBARRIER_WAIT",
        "SYNCS.EXCH.64": "MBARRIER",
    }
    for mnemonic, kind in kinds.items():
        rest = "0x0 0 0 0 3 0" if mnemonic.startswith("UBLK") else ""
        inst, _ = inst_of(f"0010 1 0 {mnemonic} 0 0 {rest}", **hopper)
        assert OPCODES[inst["opcode"]].kind == kind, mnemonic


def test_several_tbs_and_warps_in_any_order():
    head = header(grid_dim="(2,1,2)", block_dim="(33,1,1)")
    places = [(0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 0, 1)]
    nop = "0010 1 0 NOP 0 0"
    found = read(text(head, *(tb(place, {1: [EXIT], 0: [nop, EXIT]}) for place in places)))
    assert [item[0][0] for item in found[1:]] == places
    assert found[1][1] == [(1, 2), (0, 1)]


def test_small_deviations_are_read():
    plain = one_warp("0010 1 0 NOP 0 0")
    expect = read(plain)[1]
    assert read(plain.rstrip(b"\n"))[1] == expect
    assert read(plain.replace(b"\n", b"\r\n"))[1] == expect
    assert read(plain + b"\n\n# done\n")[1] == expect
    tight = plain.replace(b"#traces format = [line_num] PC mask ...\n\n", b"")
    assert len(read(tight)) == 2


def test_views_are_read_only_and_match_c():
    _, one = list(read_text([one_warp()], "t"))
    assert one.pointer.n_insts == len(one.insts) == 1
    with pytest.raises(ValueError, match="read-only"):
        one.insts["pc"] = 1


# --- cuts and damage ---


@given(st.lists(st.integers(0, len(SAMPLE)), max_size=60))
@settings(max_examples=60, deadline=None)
def test_cuts_change_nothing(cuts):
    assert read(SAMPLE, cuts) == read(SAMPLE)


def test_one_byte_at_a_time():
    assert read(SAMPLE, range(len(SAMPLE))) == read(SAMPLE)


@pytest.mark.parametrize("data", [SAMPLE, RECORDED[:2600]], ids=["sample", "recorded"])
def test_flipped_bytes(data):
    generator = random.Random(7)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(generator.choice((1, 1, 2))):
            damaged[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        damaged = bytes(damaged)
        found = outcome(damaged)
        cuts = [generator.randrange(len(data)) for _ in range(3)]
        assert outcome(damaged, cuts) == found
        if isinstance(found, str):
            refused += 1
            assert found.startswith("t:")
            assert found.isprintable()
    assert refused > 1000


def test_every_truncation_is_refused():
    end = SAMPLE.rindex(b"#END_TB") + len(b"#END_TB")
    for size in range(0, end, 7):
        cut = SAMPLE[:size]
        assert error_of(cut).startswith(f"t:{len(cut.splitlines())}: ")


# --- bad input, each with its line ---
