"""The reader of SASS traces: every kind of bad input, each with its line."""

import resource
from pathlib import Path

import pytest

from pysim.errors import ConfigError
from pysim.opcodes import OPCODES
from pysim.trace.reader import read_text
from pysim.trace.unknown_opcodes import resolve_unknown

from .read import V6, bad, error_of, one_warp, outcome, read
from .text import EXIT, HEADER, header, line_of, tb, text


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
