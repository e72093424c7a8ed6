"""Writes the seed corpus of the fuzzer: ``python tests/fuzz/seeds.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.trace.text import header, tb, text

CORPUS = Path(__file__).resolve().parent / "corpus"


def ordinary(version):
    """Every address mode and kind of field that ``version`` has."""
    rest = {4: " 7", 5: " 7", 6: " 7 9 NoVal"}.get(version, "")
    values = " ".join("1 ff" for _ in range(2))
    lines = [
        "0000 ffffffff 1 R1 MOV 0 0",
        "0010 ffffffff 1 R4 LDG.E.128.SYS 1 R2 16 1 0x7f0010000000 16",
        "0020 00000101 1 R4 LD.E.U8 1 R2 1 2 0x7f0000000010 -16",
        "0030 00000103 0 STG.E.64 2 R2 R4 8 0 0x1000 0x2000 0x3000",
        "0040 00000000 0 BRA 0 0",
        "0050 ffffffff 0 BAR.SYNC 0 0",
    ]
    lines = [line + rest for line in lines]
    if version == 6:
        lines.append(f"0060 1 1 UR3 IMAD 1 P0 0 1 2 Val {values}")
        lines.append("0070 ffffffff 1 R24 HGMMA.64x128x16.F32 2 R24 UR4 1 0 0 0 NoVal")
        lines.append("0080 1 0 UTMALDG.2D 2 UR4 UR8 4 0x400 1 3 8192 64 4 0x1000 3 64 -32 0 0 NoVal")
        lines.append("0090 1 0 UBLKCP.G.S 2 UR4 UR8 4 0x0 0 512 0 3 2 0x1000 0x2000 0 0 NoVal")
    lines.append("0100 ffffffff 0 EXIT 0 0" + rest)
    binary = "90" if version == 6 else "70"
    head = header(grid_dim="(2,1,1)", block_dim="(40,1,1)", binary_version=binary)
    head = [line.replace("version = 4", f"version = {version}") for line in head]
    blocks = []
    for x in range(2):
        warps = []
        for warp in range(2):
            prefix = f"{x} 0 0 {warp} " if version < 3 else ""
            warps.append([prefix + line for line in lines])
        cluster = ["cluster id = 0,0,0", f"cluster cta = {x},0,0", f"cluster rank = {x}"]
        blocks.append(tb((x, 0, 0), warps, cluster if version == 6 else ()))
    return text(head, *blocks)


def main():
    CORPUS.mkdir(exist_ok=True)
    for version in range(1, 7):
        (CORPUS / f"version{version}.traceg").write_bytes(ordinary(version))
    pascal = [
        "0008 ffffffff 1 R3 XMAD.MRG 2 R0 R255 0",
        "0010 3 1 R0 LDS.U.64 1 R5 4 1 0x10 8",
        "0018 f 0 EXIT 0 0",
    ]
    (CORPUS / "pascal.traceg").write_bytes(text(header(binary_version="61"), tb((0, 0, 0), [pascal])))
    lined = ["7 0010 3 1 R0 LDSM.16.M88.4 1 R5 4 0 10 20 3", "8 0018 f 0 EXIT 0 0"]
    head = header(binary_version="80", enable_lineinfo="1")
    (CORPUS / "lineinfo.traceg").write_bytes(text(head, tb((0, 0, 0), [lined])))


if __name__ == "__main__":
    main()
