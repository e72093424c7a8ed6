"""A small reader of grouped traces (format version 4) that shares no code with the package."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Inst(NamedTuple):
    pc: int
    mask: int
    dst: int  # -1: none
    name: str
    sources: tuple[int, ...]
    width: int
    addresses: tuple[int, ...]  # one for each lane of the mask
    immediate: int

    @property
    def kind(self):
        return self.name.partition(".")[0]


class Block(NamedTuple):
    at: tuple[int, int, int]
    warps: list[list[Inst]]


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode()


def listed(folder: Path) -> list[Path]:
    return [folder / line for line in (folder / "kernelslist.g").read_text().splitlines()]


def addresses_of(mask: int, mode: int, fields: list[str]) -> tuple[tuple[int, ...], list[str]]:
    """Addresses of the lanes and what is left of the line."""
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    if mode == 0:
        return tuple(int(f, 16) for f in fields[: len(lanes)]), fields[len(lanes) :]
    base = int(fields[0], 16)
    if mode == 1:
        assert len(lanes) > 1
        assert lanes == list(range(lanes[0], lanes[-1] + 1))
        return tuple(base + int(fields[1]) * i for i in range(len(lanes))), fields[2:]
    assert mode == 2
    deltas = [int(f) for f in fields[1 : len(lanes)]]
    return tuple(base + d for d in np.cumsum([0, *deltas]).tolist()), fields[len(lanes) :]


def parse_line(line: str) -> Inst:
    fields = line.split(" ")
    pc, mask = int(fields[0], 16), int(fields[1], 16)
    assert len(fields[1]) == 8
    at = 3 + int(fields[2])
    dst = int(fields[3].removeprefix("R")) if fields[2] == "1" else -1
    assert fields[2] in "01"
    name, count = fields[at], int(fields[at + 1])
    assert count <= 4
    sources = tuple(int(f.removeprefix("R")) for f in fields[at + 2 : at + 2 + count])
    width, rest = int(fields[at + 2 + count]), fields[at + 3 + count :]
    addresses: tuple[int, ...] = ()
    if width:
        addresses, rest = addresses_of(mask, int(rest[0]), rest[1:])
    (immediate,) = rest
    return Inst(pc, mask, dst, name, sources, width, addresses, int(immediate))


def read_kernel(path: Path) -> tuple[dict[str, str], list[Block]]:
    head, _, body = text_of(path).partition("#traces format")
    header = dict(line[1:].split(" = ", 1) for line in head.splitlines() if line)
    blocks: list[Block] = []
    left = 0
    known: dict[str, Inst] = {}
    assert body.endswith("#END_TB\n")
    for line in body.splitlines()[1:]:
        if left:
            left -= 1
            if line not in known:
                known[line] = parse_line(line)
            blocks[-1].warps[-1].append(known[line])
        elif line.startswith("thread block = "):
            x, y, z = (int(f) for f in line.removeprefix("thread block = ").split(","))
            blocks.append(Block((x, y, z), []))
        elif line.startswith("warp = "):
            assert int(line.removeprefix("warp = ")) == len(blocks[-1].warps)
            blocks[-1].warps.append([])
        elif line.startswith("insts = "):
            left = int(line.removeprefix("insts = "))
            assert left > 0
        else:
            assert line in ("", "#BEGIN_TB", "#END_TB"), line
    assert left == 0
    return header, blocks


def wavefronts(inst: Inst) -> int:
    """Most different words in one of 32 banks."""
    words = {a // 4 for a in inst.addresses}
    return max(np.bincount([w % 32 for w in words]))
