"""The reader of traces: version 6 of the tracer (Hopper), as text and packed."""

import random
import struct
import sys

import pytest

from pysim._ffi import dtype_of, lib
from pysim.errors import WorkloadError

from .read import V6, bad, error_of, inst_of, one_warp, plain, read
from .text import EXIT, header, tb, text


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
    assert [len(insts) // dtype_of("gs_trace_inst").itemsize for insts, _ in tbs] == [len(lines)] * 2


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
