"""Traces made for the tests of the converter, and what a simple reader of their text finds in them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from pysim.trace.convert import convert
from pysim.trace.converted_file import ConvertedTrace

from .text import FULL, header, tb, text

A, B, C = 0x700000000000, 0x700010000000, 0x700020000000
SHARED = 0x7F0000000000


class Warp:
    """Lines of one warp; ``pc`` goes on by 16 unless it is set."""

    def __init__(self, mask=FULL):
        self.lines, self.pc, self.mask = [], 0, mask

    def op(self, name, dst=None, src=(), lanes=None, width=4, mask=None, imm=0):
        """Add an instruction; ``lanes``: addresses of the active lanes."""
        mask = self.mask if mask is None else mask
        dsts = f"1 R{dst}" if dst is not None else "0"
        srcs = "".join(f" R{r}" for r in src)
        where = "0"
        if lanes is not None:
            assert len(lanes) == mask.bit_count()
            where = " ".join([str(width), "0", *(f"0x{a:x}" for a in lanes)])
        self.lines.append(f"{self.pc:04x} {mask:08x} {dsts} {name} {len(src)}{srcs} {where} {imm}")
        self.pc += 16
        return self

    def end(self):
        return self.op("EXIT").lines


def strided(base, stride, lanes=32):
    return [base + stride * i for i in range(lanes)]


def write(folder, *kernels):
    """Write kernels, each (grid, threads, {TB: lists of warps' lines}, header fields), and their list."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for number, (grid, threads, tbs, fields) in enumerate(kernels, 1):
        names.append(f"kernel-{number}.traceg")
        top = header(
            kernel_id=str(number),
            grid_dim="({},{},{})".format(*grid),
            block_dim=f"({threads},1,1)",
            **fields,
        )
        body = [tb(place, warps) for place, warps in tbs.items()]
        (folder / names[-1]).write_bytes(text(top, *body))
    (folder / "kernelslist.g").write_text("".join(f"{name}\n" for name in names))
    return folder


def places(grid):
    return [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]


def converted(folder, **options):
    target = Path(folder) / "made.pysim"
    convert(folder, target, **options)
    return ConvertedTrace(target)


def spread_out(store, addresses):
    """Where the trace's addresses lie in the store's memory."""
    pages = store.trace_array("pages")
    addresses = np.asarray(addresses, np.uint64)
    page = addresses >> np.uint64(21)
    at = np.searchsorted(pages, page)
    assert (pages[at] == page).all()
    return at.astype(np.int64) * (1 << 21) + (addresses & np.uint64((1 << 21) - 1)).astype(np.int64)


KINDS = {"LDG": 0, "STG": 1, "RED": 1, "ATOMG": 1}


def touches(store, lines):
    """Count (line, sectors, written) of all global accesses of a warp's lines."""
    found = Counter()
    for row in lines:
        words = row.split()
        at = 3 + int(words[2])
        name, at = words[at].partition(".")[0], at + 1
        at += 1 + int(words[at])
        if name not in KINDS or words[at] == "0":
            continue
        width = int(words[at])
        lanes = [int(word, 16) for word in words[at + 2 : -1]]
        every = (np.array(lanes, np.uint64)[:, None] + np.arange(width, dtype=np.uint64)).ravel()
        sectors = np.unique(spread_out(store, every) // 32)
        masks = Counter()
        for sector in sectors.tolist():
            masks[sector // 4] |= 1 << sector % 4
        found.update((line, mask, KINDS[name]) for line, mask in masks.items())
    return found


def product(k=6, grid=(3, 2, 1), warps=2):
    """A loop of loads, shared memory and arithmetic; addresses follow from x, y, warp and iteration."""
    tbs = {}
    for x, y, z in places(grid):
        every = []
        for w in range(warps):
            warp = Warp()
            warp.op("IMAD.WIDE", 12, (10, 1)).op("IMAD.WIDE", 14, (11, 2))
            loop = warp.pc
            for i in range(k):
                warp.pc = loop
                warp.op("LDG.E.128.SYS", 16, (12,), strided(A + (y * k + i) * 4096 + w * 512, 16), 16)
                warp.op("LDG.E.128.SYS", 20, (14,), strided(B + (x * k + i) * 4096 + w * 512, 16), 16)
                warp.op("BAR.SYNC")
                warp.op("STS.128", None, (8, 16), strided(SHARED + w * 512, 16), 16)
                warp.op("STS.128", None, (9, 20), strided(SHARED + 4096 + w * 512, 16), 16)
                warp.op("BAR.SYNC")
                warp.op("LDS.U.128", 24, (8,), strided(SHARED, 0), 16)
                warp.op("LDS.U.128", 28, (9,), strided(SHARED + 4096, 16), 16)
                for j in range(16):
                    warp.op("FFMA", 40 + j, (24 + j // 4, 28 + j % 4, 40 + j))
                warp.op("IADD3", 12, (12, 1, 255)).op("IADD3", 14, (14, 2, 255)).op("BRA")
            warp.op("STG.E.128.SYS", None, (12, 40), strided(C + (y * 4096 + x * 512 + w * 8192), 16), 16)
            every.append(warp.end())
        tbs[x, y, z] = every
    return grid, warps * 32, tbs, {"shmem": "8192", "nregs": "64"}


def odd(seed, grid=(3, 2, 2), warps=3):
    """Warps that differ, loops whose addresses follow no rule, masks, gathers, nested loops."""
    rng = np.random.default_rng(seed)
    tbs = {}
    for x, y, z in places(grid):
        every = []
        for w in range(warps):
            warp = Warp()
            warp.op("S2R", 2)
            inner, outer = int(rng.integers(1, 5)), int(rng.integers(1, 4))
            top = warp.pc
            for i in range(outer):
                warp.pc = top
                mask = 0xFFFF if (x + w) % 2 else FULL
                lanes = mask.bit_count()
                warp.op("LDG.E", 4, (2,), strided(A + x * 256 + y * 8192 + i * 65536, 4, lanes), 4, mask)
                mark = warp.pc
                for j in range(inner):
                    warp.pc = mark
                    at = A + (1 << 20) + 4 * rng.integers(0, 1 << 16, 32)
                    warp.op("LDG.E", 5, (4,), [int(a) for a in at])
                    warp.op("LDG.E.64", 6, (2,), strided(B + (z * 7 + j * 3 + i * 64 + w) * 256, 8), 8)
                    warp.op("FADD", 7, (5, 6)).op("BRA")
                warp.op("RED.E.ADD", None, (2, 7), [C + 4 * (w % 2)] * lanes, 4, mask).op("BRA")
            if (x, y) == (1, 1):
                warp.op("STG.E.U8", None, (2, 7), [C + 4097 + i * 3 for i in range(32)], 1)
                warp.op("STG.E", None, (2, 7), [], 4, 0)
            warp.op("STG.E", None, (2, 7), strided(C + (1 << 22) + rng.integers(0, 99) * 128 + x * 4, -4))
            every.append(warp.end())
        tbs[x, y, z] = every
    return grid, warps * 32, tbs, {"nregs": "24"}
