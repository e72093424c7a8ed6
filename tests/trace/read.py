"""Reads traces that tests make as text: as plain values, or the error."""

from __future__ import annotations

import itertools

from pysim.errors import WorkloadError
from pysim.opcodes import OPCODES
from pysim.trace.reader import Header, read_kernel, read_text

from .text import EXIT, header, line_of, tb, text

V6 = {"accelsim_tracer_version": "6", "binary_version": "90"}


def read(data, cuts=(), **options):
    """All of a trace as plain values, read in pieces that end at ``cuts``."""
    edges = [0, *sorted(cuts), len(data)]
    pieces = [data[low:high] for low, high in itertools.pairwise(edges)]
    found = []
    for item in read_text(pieces, "t", **options):
        if isinstance(item, Header):
            found.append(item)
        else:
            place = (item.index, item.cluster, item.cta, item.rank)
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


def bad(data, needle, what):
    """The error must name the line of ``needle`` and say ``what``."""
    assert error_of(data).startswith(f"t:{line_of(data, needle)}: {what}")


def plain(path):
    found = []
    for item in read_kernel(path):
        found.append(item if isinstance(item, Header) else (item.insts.tobytes(), item.addresses.tolist()))
    return found


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
