"""The reader of SASS traces: every version and address mode, any cut, and every kind of bad input."""

import itertools
import lzma
import random
import resource
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim._ffi import lib
from pysim.errors import ConfigError, WorkloadError
from pysim.trace.folder import KernelFile, Memcpy, read_list
from pysim.trace.opcodes import OPCODES
from pysim.trace.reader import Header, read_kernel, read_text
from pysim.trace.unknown import resolve_unknown

from .trace_text import EXIT, HEADER, header, line_of, tb, text

DATA = Path(__file__).resolve().parent / "data" / "traces"
RECORDED = (DATA / "vectoradd" / "kernel-1.traceg").read_bytes()
SPACE = {"none": 0, "global": 1, "shared": 2, "local": 3}


def read(data, cuts=(), **options):
    """All of a trace as plain values, read in pieces that end at ``cuts``."""
    edges = [0, *sorted(cuts), len(data)]
    pieces = [data[low:high] for low, high in itertools.pairwise(edges)]
    found = []
    for item in read_text(pieces, "t", **options):
        if isinstance(item, Header):
            found.append(item)
        else:
            place = (item.place, item.cluster, item.cta, item.rank)
            found.append((place, item.warps.tolist(), item.insts.tobytes(), item.addresses.tolist()))
    return found


def outcome(data, cuts=(), **options):
    """What ``read`` gives, or the error's text."""
    try:
        return read(data, cuts, **options)
    except WorkloadError as error:
        return str(error)


def error_of(data, **options):
    found = outcome(data, **options)
    assert isinstance(found, str), "this was to be refused"
    assert "\n" not in found
    return found


def one_warp(*lines, extra=(), **changes):
    """A trace of one warp with these instructions before its EXIT."""
    version = int(changes.get("accelsim_tracer_version", 4) or 0)
    last = EXIT + {5: " 0", 6: " 0 NoVal"}.get(version, "")
    if changes.get("enable_lineinfo") == "1":
        last = "12 " + last
    if version < 3:
        last = "0 0 0 0 " + last
    return text(header(**changes), tb((0, 0, 0), [[*lines, last]], extra))


def inst_of(*lines, extra=(), **changes):
    """The first instruction (a numpy record) and its addresses."""
    _, one = list(read_text([one_warp(*lines, extra=extra, **changes)], "t"))
    inst = one.insts[0]
    others = [int(record["first"]) for record in one.insts[1:] if record["width"]]
    end = min([len(one.addresses), *others])
    return inst.copy(), one.addresses[inst["first"] : end].tolist()


def name_of(inst):
    return OPCODES[inst["opcode"]].name


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


V6 = {"accelsim_tracer_version": "6", "binary_version": "90"}


def test_version_6_registers_and_values():
    values = " ".join(f"{lane:x}" for lane in range(32))
    line = f"0010 ffffffff 2 R3 UP2 IMAD 4 UR4 R255 P0 UR63 0 5 6 Val 1 ff 32 {values} 1 0 1 0 1 0 1 0x7"
    inst, _ = inst_of(line, **V6)
    assert inst["dst"][:2].tolist() == [3, lib.GS_REG_UP << 12 | 2]
    expect = [lib.GS_REG_UR << 12 | 4, 255, lib.GS_REG_P << 12, lib.GS_REG_UR << 12 | 63]
    assert inst["src"][:4].tolist() == expect
    assert inst["imm"] == 5


def test_version_6_gmma():
    for commit, bits in ((0, 0), (1, lib.GS_VARIANT_COMMIT)):
        line = f"0010 ffffffff 1 R24 HGMMA.64x128x16.F32 2 R24 UR4 {commit} 0 0 0 NoVal"
        inst, _ = inst_of(line, **V6)
        assert (inst["variant"], inst["width"]) == (bits, 0)


@pytest.mark.parametrize(
    ("fields", "addresses", "ctas", "moved"),
    [
        ("0x400 0 8192 0 3 2 0x1000 0x2000 0 0 NoVal", [0x1000, 0x2000], 1, 8192),
        ("0x400 1 3 8192 192 4 0x1000 3 64 -32 0 0 NoVal", [0x1000, 0x1040, 0x1020], 2, 8000),
        ("0x400 0 0 0 4 0x0 0 0 NoVal", [], 1, 0),
    ],
)
def test_version_6_bulk_copies(fields, addresses, ctas, moved):
    inst, found = inst_of(f"0010 00000001 0 UTMALDG.2D 2 UR4 UR8 4 {fields}", **V6)
    assert found == addresses
    assert inst["imm"] == len(addresses)
    assert (inst["width"], inst["bytes"], inst["barrier"]) == (ctas, moved, 0x400)
    assert (inst["variant"] == lib.GS_VARIANT_MULTICAST) == (ctas > 1)


def test_clusters_bring_their_own_order():
    cells = [(0, 0), (0, 1), (1, 0), (1, 1)]
    blocks = [
        tb(
            (x, y, 0),
            [[EXIT + " 0 NoVal"]],
            (f"cluster id = {x},0,0", f"cluster cta = 0,{y},0", f"cluster rank = {y}"),
        )
        for x, y in cells
    ]
    head = header(grid_dim="(2,2,1)", **V6)
    found = read(text(head, *blocks))
    assert [item[0] for item in found[1:]] == [((x, y, 0), (x, 0, 0), (0, y, 0), y) for x, y in cells]
    twice = text(head, blocks[0], blocks[1], blocks[0])
    second = twice.rindex(b"thread block")
    assert error_of(twice) == f"t:{twice[:second].count(10) + 1}: TB 0,0,0 comes twice"


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


def sample():
    """A trace with every address mode, several warps and TBs."""
    lines = [
        "0000 ffffffff 1 R1 MOV 0 0 0",
        "0010 ffffffff 1 R4 LDG.E.128.SYS 1 R2 16 1 0x7f0010000000 16 0",
        "0020 00000101 1 R4 LDG.E.U8 1 R2 16 2 0x7f0010000000 -16 0",
        "0030 00000103 0 STG.E.64 2 R2 R4 16 0 0x1000 0x2000 0x3000 0",
        "0040 00000000 0 BRA 0 0 528",
        "0050 ffffffff 0 EXIT 0 0 0",
    ]
    head = header(grid_dim="(2,1,1)", block_dim="(40,1,1)", accelsim_tracer_version="5")
    return text(head, tb((0, 0, 0), [lines, lines[4:]]), tb((1, 0, 0), [lines[2:], lines]))


SAMPLE = sample()


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


def bad(data, needle, what):
    """The error must name the line of ``needle`` and say ``what``."""
    assert error_of(data).startswith(f"t:{line_of(data, needle)}: {what}")


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("nregs", "21955", "bad nregs: 21955"),
        ("nregs", "-1", "bad nregs"),
        ("grid dim", "(0,1,1)", "bad grid dim"),
        ("grid dim", "(2147483648,1,1)", "bad grid dim"),
        ("grid dim", "(1,1)", "bad grid dim"),
        ("grid dim", "(1,1,1", "bad grid dim"),
        ("block dim", "(1025,1,1)", "bad block dim"),
        ("block dim", "(99999999999999999999,1,1)", "bad block dim"),
        ("shmem", "262145", "bad shmem"),
        ("accelsim tracer version", "7", "bad accelsim tracer version"),
        ("enable lineinfo", "2", "bad enable lineinfo"),
        ("cuda stream id", "18446744073709551616", "bad cuda stream id"),
        ("shmem base_addr", "0x1ffffffffffffffff", "bad shmem base_addr"),
        ("kernel id", "1 2", "bad kernel id"),
        ("kernel id", "", "kernel id missing"),
    ],
)
def test_header_values(field, value, what):
    data = one_warp().replace(f"-{field} = {HEADER[field]}".encode(), f"-{field} = {value}".encode())
    bad(data, f"-{field} =", what)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"binary_version": "0"}, "binary version 0 is not known"),
        ({"binary_version": "35"}, "binary version 35 is not known"),
        ({"binary_version": "4294967295"}, "binary version 4294967295 is not known"),
        ({"block_dim": "(64,64,1)"}, "block dim of 4096 threads"),
        ({"block_dim": "(1024,1024,1024)"}, "block dim of 1073741824 threads"),
        ({"grid_dim": "(1,65536,1)"}, "grid dim 1,65536,1 is not possible"),
        ({"nregs": None}, "the header ends without nregs"),
        ({"grid_dim": None}, "the header ends without grid dim"),
    ],
)
def test_header_as_a_whole(changes, what):
    bad(one_warp(**changes), "#traces", what)


def test_header_lines():
    data = one_warp()
    bad(data.replace(b"-nregs", b"nregs"), "nregs", "bad header line: nregs")
    twice = data.replace(b"-shmem = 0", b"-shmem = 0\n-shmem = 1")
    bad(twice, "-shmem = 1", "shmem is given twice")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("xyz ffffffff 0 NOP 0 0", "bad PC: xyz"),
        ("100000000 1 0 NOP 0 0", "bad PC"),
        ("0010 1ffffffff 0 NOP 0 0", "bad mask: 1ffffffff"),
        ("0010", "mask missing"),
        ("0010 1 5 R1 R2 R3 R4 R5 MOV 0 0", "bad number of destinations: 5"),
        ("0010 1 1 X1 MOV 0 0", "bad register: X1"),
        ("0010 1 1 R256 MOV 0 0", "bad register: R256"),
        ("0010 1 1 R MOV 0 0", "bad register: R"),
        ("0010 1 1 UP16 MOV 0 0", "bad register: UP16"),
        ("0010 1 0 FOO.BAR 0 0", "unknown opcode FOO.BAR"),
        ("0010 1 0 XMAD.MRG 0 0", "opcode XMAD.MRG is not one of sm_70"),
        ("0010 1 0 mov 0 0", "bad opcode: mov"),
        ("0010 1 0 MO\x7fV 0 0", "bad opcode: MO?V"),
        ("0010 1 0 MOV 9 0", "bad number of sources: 9"),
        ("0010 1 0 MOV 0", "width missing"),
        ("0010 1 0 MOV 0 99999999999", "bad width"),
        ("0010 1 0 MOV 0 0 zz", "bad immediate: zz"),
        ("0010 1 0 MOV 0 0 0 0", "fields are left over"),
        ("0010 1 0 LDG 0 4 3 0x0", "bad address mode: 3"),
        ("0010 3 0 LDG 0 4 0 0x0", "the address list does not match the mask"),
        ("0010 3 0 LDG 0 4 0 0x0 0", "the address list does not match the mask"),
        ("0010 3 0 LDG 0 4 0 0x0 0x1 0x2 0", "bad immediate: 0x2"),
        ("0010 3 0 LDG 0 4 2 0x0", "the address list does not match the mask: delta missing"),
        ("0010 3 0 LDG 0 4 2 0x0 1 2 3", "the address list does not match the mask: fields are left over"),
        ("0010 5 0 LDG 0 4 1 0x0 4", "the address list does not match the mask: base and stride"),
        ("0010 3 0 LDG 0 4 1 0x0", "the address list does not match the mask: stride missing"),
        ("0010 3 0 LDG 0 4 2 0x10000000000000000 0", "bad base address"),
        ("0010 3 0 LDG 0 4 2 0x10 -17", "an address does not fit 64 bits"),
        ("0010 3 0 LDG 0 4 2 0xffffffffffffffff 1", "an address does not fit 64 bits"),
        ("0010 7 0 LDG 0 4 1 0x1 -1", "an address does not fit 64 bits"),
        ("0010 3 0 LDG 0 4 2 0x10 -9223372036854775809", "bad delta"),
        ("0010 1 0 BAR.SYNC 0 0 --5", "bad immediate"),
        ("\0", "a NUL byte"),
        ("0010 1 0 NOP 0 0 \0", "a NUL byte"),
    ],
)
def test_instruction_lines(line, what):
    data = one_warp("0000 1 0 NOP 0 0", line)
    number = line_of(data, "0000 1 0 NOP") + 1
    assert error_of(data).startswith(f"t:{number}: {what}")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("0010 1 1 R1 MOV 0 0", "immediate missing"),
        ("0010 1 1 R1 MOV 0 0 0 0 Vap", "bad NoVal or Val: Vap"),
        ("0010 1 1 R1 MOV 0 0 0 0 Val", "number of register values missing"),
        ("0010 1 1 R1 MOV 0 0 0 0 Val 2 0 0", "2 register values"),
        ("0010 1 1 R1 MOV 0 0 0 0 Val 1", "register value missing"),
        ("0010 1 1 R1 MOV 0 0 0 0 NoVal 1", "fields are left over"),
        ("0010 1 0 HGMMA 0 2 0 0 NoVal", "bad commit field"),
        ("0010 1 0 UTMALDG 0 4 0x0 2 0 0 3 0 0 NoVal", "bad multicast field"),
        ("0010 1 0 UTMALDG 0 4 0x0 0 8 9 3 0 0 NoVal", "bad number of bytes out of bounds"),
        ("0010 1 0 UTMALDG 0 4 0x0 0 8 0 2 0x0 1 0 NoVal", "address mode 2 of a bulk copy"),
        ("0010 1 0 UTMALDG 0 4 0x0 0 8 0 3 4000000000 0x0 0 NoVal", "bad number of addresses"),
        ("0010 1 0 UTMALDG 0 4 0x0 0 8 0 3 3 0x0 0x1 0 NoVal", "the address list does not match"),
        ("0010 1 0 UTMALDG 0 4 0x0 0 8 0 4 0x0 2 -1 0 NoVal", "an address does not fit 64 bits"),
    ],
)
def test_instruction_lines_of_version_6(line, what):
    data = one_warp(line, **V6)
    bad(data, line, what)


def test_old_lines_of_another_warp():
    old = {"accelsim_tracer_version": "2"}
    bad(one_warp("0 0 0 1 0010 1 0 NOP 0 0", **old), "0 0 0 1", "an instruction of another TB or warp")
    bad(one_warp("0 0 x 0 0010 1 0 NOP 0 0", **old), "0 0 x 0", "bad TB or warp before the PC: x")


def test_counts_and_ends():
    data = one_warp("0010 1 0 NOP 0 0", "0020 1 0 NOP 0 0")
    less = data.replace(b"insts = 3", b"insts = 4")
    bad(less, "#END_TB", "warp 0 has 3 of 4 instructions")
    more = data.replace(b"insts = 3", b"insts = 2")
    bad(more, "0020 1 0 NOP", "warp 0 does not end in EXIT")
    bad(data.replace(b"insts = 3", b"insts = 0"), "insts = 0", "warp 0 is empty")
    bad(data.replace(b"insts = 3", b"insts = 4294967296"), "insts =", "bad number of instructions")
    bad(data.replace(b"insts = 3", b"insts = 4294967295"), "#END_TB", "warp 0 has 3 of 4294967295")
    bad(data.replace(b"insts = 3\n", b""), "0010 1 0 NOP", "bad insts line: 0010")
    extra = data.replace(b"\n\n#END_TB", b"\n0110 1 0 NOP 0 0\n\n#END_TB")
    bad(extra, "0110 1", "warp 0 has more instructions than it says")
    off = data.replace(b"ffffffff 0 EXIT", b"00000000 0 EXIT")
    bad(off, "EXIT", "warp 0 does not end in EXIT")


def test_warps_of_a_tb():
    head = header(block_dim="(64,1,1)")
    missing = text(head, tb((0, 0, 0), {1: [EXIT]}))
    bad(missing, "#END_TB", "TB 0,0,0 has no warp 0")
    third = text(head, tb((0, 0, 0), {0: [EXIT], 2: [EXIT]}))
    bad(third, "warp = 2", "warp 2 of a TB of 2 warps")
    lines = tb((0, 0, 0), [[EXIT], [EXIT]])
    twice = text(head, [line.replace("warp = 1", "warp =  0") for line in lines])
    bad(twice, "warp =  0", "warp 0 comes twice")


def test_order_of_tbs():
    head = header(grid_dim="(2,2,1)")
    blocks = [tb((x, y, 0), [[EXIT]]) for y in range(2) for x in range(2)]
    swapped = text(head, blocks[0], blocks[2], blocks[1], blocks[3])
    bad(swapped, "thread block = 0,1,0", "TB 0,1,0 is out of order: 1,0,0 is next")
    outside = text(head, tb((2, 0, 0), [[EXIT]]))
    bad(outside, "thread block", "TB 2,0,0 is outside the grid")
    short = text(head, *blocks[:3])
    assert error_of(short) == f"t:{short.count(10)}: the file ends after 3 of 4 TBs"
    more = text(head, *blocks, ["#BEGIN_TB "])
    bad(more, "#BEGIN_TB ", "more TBs than the grid has (4)")


def test_lines_out_of_place():
    data = one_warp()
    bad(data.replace(b"#BEGIN_TB\n", b""), "thread block", "bad line outside a TB: thread")
    bad(data.replace(b"thread block = 0,0,0\n", b""), "warp = 0", "a warp before the thread block line")
    nothing = data[: data.index(b"thread")] + b"#END_TB\n"
    bad(nothing, "#END_TB", "a TB without its thread block line")
    again = data.replace(b"warp = 0", b"thread block = 0,0,0 \nwarp = 0")
    bad(again, "thread block = 0,0,0 \n", "thread block is given twice")
    nested = data.replace(b"#END_TB", b"#BEGIN_TB ")
    bad(nested, "#BEGIN_TB ", "bad line in a TB: #BEGIN_TB")
    assert error_of(b"") == "t:0: the file ends in the header"


def test_long_lines_and_big_tbs():
    data = one_warp("0010 1 0 NOP 0 0" + " " * 70000)
    bad(data, "0010 1 0 NOP", "longer than 65536 bytes")
    number = line_of(data, "0010 1 0 NOP")
    assert outcome(data, range(0, len(data), 1000)).startswith(f"t:{number}: longer than 65536 bytes")
    many = one_warp(*["0010 1 0 NOP 0 0"] * 2000)
    assert read(many, room=1 << 20)[1][1] == [(0, 2001)]
    assert "a TB needs more than 65536 bytes" in error_of(many, room=1 << 16)
    wide = header(grid_dim="(2147483647,65535,65535)", **V6)
    wide = text(wide, tb((0, 0, 0), [[EXIT + " 0 NoVal"]], ("cluster id = 0,0,0",)))
    assert "a grid of clusters needs more than" in error_of(wide)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory in use from /proc")
def test_memory_does_not_grow_with_the_file():
    lines = ["0010 ffffffff 1 R4 LDG.E.128.SYS 1 R2 16 1 0x7f0010000000 16"] * 400
    one = text(tb((0, 0, 0), [[*lines, EXIT]]))
    count = 1200

    def pieces():
        yield text(header(grid_dim=f"({count},1,1)"))
        for x in range(count):
            yield one.replace(b"block = 0,", b"block = %d," % x)

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    early = 0
    for number, _ in enumerate(read_text(pieces(), "t")):
        early = resident() if number == 100 else early
    assert number == count
    assert resident() - early < 8 << 20, f"{count * len(one)} bytes were read"


# --- unknown opcodes ---


def test_unknown_opcodes_may_be_given_a_class():
    line = "0010 3 1 R1 FOO.U8 1 R2 4 1 0x0 4"
    row = resolve_unknown("as=INT")
    _, one = list(read_text([one_warp(line)], "t", unknown=row))
    assert OPCODES[row].pipe == "int"
    assert (one.insts["opcode"][0], one.insts["width"][0], len(one.addresses)) == (row, 0, 0)
    assert OPCODES[resolve_unknown("as=FFMA")].name == "FFMA"


@pytest.mark.parametrize("value", ["INT", "as:INT", "as=", "as=LDG"])
def test_unknown_opcode_option(value):
    with pytest.raises(ConfigError, match=r"unknown opcodes: .*as="):
        resolve_unknown(value)
    with pytest.raises(ConfigError, match="nearest: as=IMAD"):
        resolve_unknown("as=IMADD")


# --- folders, xz and tracez ---


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "kernel-1.traceg").write_bytes(SAMPLE)
    return tmp_path / "run"


def listed(folder, *lines):
    (folder / "kernelslist.g").write_text("\n".join(lines) + "\n")
    return read_list(folder)


def test_list_of_kernels(folder):
    found = listed(
        folder,
        "MemcpyHtoD,0x00007fb02d700000,4096",
        "",
        "MemcpyDtoH,0x1,2",
        "kernel-1.traceg",
        "kernel-1.traceg ",
    )
    path = folder / "kernel-1.traceg"
    assert found == (Memcpy(0x7FB02D700000, 4096, 1), KernelFile(path, 1, 4), KernelFile(path, 2, 5))
    assert len(list(read_kernel(path))) == 3
    assert read_list(folder / "kernelslist.g") == found
    (folder / "kernelslist.g").rename(folder / "kernelslist_ctx_0x55.g")
    assert read_list(folder) == found


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("kernel-2.traceg", "no such file"),
        ("kernel-1.trace", "does not end in"),
        ("kernel/../../kernel-1.traceg", "leaves the folder"),
        ("/etc/kernel-1.traceg", "absolute path"),
        ("kernel-link.traceg", "leaves the folder"),
        ("MemcpyHtoD,0x0", "not MemcpyHtoD,ADDRESS,BYTES"),
        ("MemcpyHtoD,0xfffffffffffffff0,17", "outside 64 bits"),
        ("MemcpyHtoD,0x10,-1", "outside 64 bits"),
    ],
)
def test_bad_lists(folder, line, what):
    (folder / "kernel").mkdir()
    (folder.parent / "kernel-1.traceg").write_bytes(SAMPLE)
    (folder / "kernel-link.traceg").symlink_to(folder.parent / "kernel-1.traceg")
    with pytest.raises(WorkloadError, match=what) as caught:
        listed(folder, "kernel-1.traceg", line)
    assert str(caught.value).startswith(f"{folder / 'kernelslist.g'}:2: ")
    assert "\n" not in str(caught.value)


def test_folders_without_a_list(folder):
    with pytest.raises(WorkloadError, match=r"no kernelslist\.g"):
        read_list(folder)
    with pytest.raises(WorkloadError, match="no such file or folder"):
        read_list(folder / "none")
    with pytest.raises(WorkloadError, match="names no kernel"):
        listed(folder, "MemcpyHtoD,0x0,0")
    with pytest.raises(WorkloadError, match="no such file"):
        next(read_kernel(folder / "kernel-9.traceg"))
    with pytest.raises(WorkloadError, match="must end in"):
        next(read_kernel(folder / "kernelslist.g"))


def plain(path):
    found = []
    for item in read_kernel(path):
        found.append(item if isinstance(item, Header) else (item.insts.tobytes(), item.addresses.tolist()))
    return found


def test_xz(folder):
    expect = plain(folder / "kernel-1.traceg")
    packed = folder / "kernel-1.traceg.xz"
    packed.write_bytes(lzma.compress(SAMPLE))
    assert plain(packed) == expect
    packed.write_bytes(lzma.compress(SAMPLE[:500]) + bytes(8) + lzma.compress(SAMPLE[500:]))
    assert plain(packed) == expect
    packed.write_bytes(lzma.compress(SAMPLE)[:-20])
    with pytest.raises(WorkloadError, match=r"xz:\d+: the xz data is cut short"):
        plain(packed)
    packed.write_bytes(b"not xz at all")
    with pytest.raises(WorkloadError, match=r"xz:1: xz: "):
        plain(packed)
    packed.write_bytes(lzma.compress(SAMPLE) + b"tail")
    with pytest.raises(WorkloadError, match=r"xz:\d+: "):
        plain(packed)


def test_xz_bomb(folder):
    # blank lines are good text, so that only the ratio stops this one
    packer = lzma.LZMACompressor(preset=1)
    block = b"\n" * (1 << 20)
    data = packer.compress(SAMPLE) + b"".join(packer.compress(block) for _ in range(72)) + packer.flush()
    path = folder / "kernel-1.traceg.xz"
    path.write_bytes(data)
    with pytest.raises(WorkloadError, match=r"xz:\d+: \d+ bytes unpack to more than \d+: this is no trace"):
        plain(path)


def tracez(head, tbs, insts_a_frame=2, dictionary=b""):
    """Bytes of a container; ``tbs``: (place, cluster, cta, rank, warps as lists of lines)."""
    zstandard = pytest.importorskip("zstandard")
    given_dictionary = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    packer = zstandard.ZstdCompressor(dict_data=given_dictionary)
    out = bytearray("\n".join(head).encode() + b"\0")
    out += struct.pack("<II", len(dictionary), insts_a_frame) + dictionary
    index = struct.pack("<I", len(tbs))
    for place, cluster, cta, rank, warps in tbs:
        index += struct.pack("<11I", *place, *cluster, *cta, rank, len(warps))
        for lines in warps:
            frames = [lines[i : i + insts_a_frame] for i in range(0, len(lines), insts_a_frame)]
            index += struct.pack("<IIQ", len(lines), len(frames), len(out))
            index += struct.pack(f"<{len(frames)}I", *map(len, frames))
            out += struct.pack("<II", len(lines), len(frames))
            for frame in frames:
                packed = packer.compress("\n".join(frame).encode())
                out += struct.pack("<I", len(packed)) + packed
    at = len(out)
    return bytes(out + index + struct.pack("<Q", at))


def container(dictionary=b""):
    lines = ["0000 ffffffff 1 R1 MOV 0 0 0 0 NoVal"] * 4 + [EXIT + " 0 NoVal"]
    head = header(grid_dim="(2,1,1)", **V6)
    tbs = [((x, 0, 0), (0, 0, 0), (x, 0, 0), x, [lines]) for x in range(2)]
    return tracez(head, tbs, dictionary=dictionary), lines


@pytest.mark.parametrize("dictionary", [b"", b"0000 ffffffff 1 R1 MOV 0 0 0 0 NoVal" * 20])
def test_tracez(tmp_path, dictionary):
    data, lines = container(dictionary)
    path = tmp_path / "kernel-1.tracez"
    path.write_bytes(data)
    head, *tbs = plain(path)
    assert head.version == 6
    assert [len(insts) // 64 for insts, _ in tbs] == [len(lines)] * 2


def test_damaged_tracez(tmp_path):
    data, _ = container()
    path = tmp_path / "kernel-1.tracez"
    generator = random.Random(3)
    for i in range(600):
        damaged = bytearray(data)
        at = generator.randrange(len(data)) if i % 2 else len(data) - 1 - generator.randrange(180)
        damaged[at] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged if i % 3 else damaged[: generator.randrange(len(data))])
        found = "read whole"
        try:
            plain(path)
        except WorkloadError as error:
            found = str(error).removeprefix(str(path))
        assert found == "read whole" or (found[0] == ":" and found.isprintable())


def test_tracez_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "kernel-1.tracez"
    path.write_bytes(b"")
    with pytest.raises(WorkloadError, match="pip install zstandard"):
        plain(path)
