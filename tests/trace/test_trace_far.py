"""Accesses whose lanes lie far apart: what they do is what they would do with their pages side by side.

Each trace here is made twice: with its far addresses, and with those that the converter gives them, whose
pages lie side by side. Both must touch, depend and take time alike.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pysim import Code, Job, Kernel, Memory, Pattern, Program
from pysim.errors import WorkloadError
from pysim.trace.convert import convert
from pysim.trace.converted_file import ConvertedTrace
from pysim.trace.job import trace_job
from pysim.trace.writer import write_trace
from tests.core.harness import config, execute, tiny

from .made_traces import FULL, SHARED, converted, spread_out, strided, touches, write

MIB, GIB, TIB = 1 << 20, 1 << 30, 1 << 40
BASE = 0x10000000
NAMES = {"LDG.E": (4, 1), "STG.E.128": (16, 2), "RED.E.ADD": (4, 2), "ATOMG.E.ADD": (4, 2)}


def scattered(top):
    """Lanes in pairs over all of the space below `top`, in no order."""
    rng = np.random.default_rng(7)
    at = rng.integers(0, top >> 21, 16).tolist()
    return [int(at[lane // 2]) << 21 | (lane % 2) * 64 for lane in rng.permutation(32).tolist()]


LANES = {
    "4 GiB": strided(BASE, 4 * GIB),
    "4 GiB and a bit": strided(BASE + 100, 4 * GIB + 24),
    "1 TiB": strided(BASE, TIB),
    "-4 GiB": strided(BASE + 64 * 4 * GIB, -4 * GIB),
    "-1 TiB": strided(BASE + 32 * TIB, -TIB),
    "two ends of 48 bits": [BASE + 4 * i if i % 3 else (1 << 48) - 8192 + 4 * i for i in range(32)],
    "two ends of 49 bits": [(1 << 49) - 8192 + 4 * i if i < 16 else BASE + 4 * i for i in range(32)],
    "all over 49 bits": scattered((1 << 49) - 1),
    "two ends of 64 bits": [BASE + 4 * i if i % 2 else (1 << 64) - 4096 + 4 * i for i in range(32)],
}


def text_of(lanes, mode):
    """The addresses in an address mode."""
    if mode == 0:
        return " ".join(["0", *(f"0x{a:x}" for a in lanes)])
    deltas = [b - a for a, b in pairwise(lanes)]
    if mode == 1:
        assert len(set(deltas)) == 1
        deltas = deltas[:1]
    return f"{mode} 0x{lanes[0]:x} {' '.join(map(str, deltas))}"


END = f"0100 {FULL:08x} 0 EXIT 0 0"


def line(name, lanes, mode=0, pc=0):
    width, sources = NAMES[name]
    dst = "0" if sources == 2 and not name.startswith("ATOMG") else "1 R4"
    read = " ".join(["R2", "R6"][:sources])
    return f"{pc:04x} {FULL:08x} {dst} {name} {sources} {read} {width} {text_of(lanes, mode)} 0"


def listed(lanes, name="LDG.E", mode=0, tbs=3, place=list):
    """Two kernels: one stores what the other touches; TBs lie 512 B apart. ``place`` moves addresses."""
    near = strided(BASE + (1 << 21), 4)
    kernels = []
    for first in ("STG.E.128", name):
        made = {}
        for x in range(tbs):
            moved = [a + 512 * x for a in lanes]
            rows = [
                line(first, place(moved), mode),
                line("LDG.E", place([a + 1024 * x for a in near]), pc=16),
                line(first, place([a + 128 for a in moved]), mode, pc=32),
                END,
            ]
            made[x, 0, 0] = [rows]
        kernels.append(((tbs, 1, 1), 32, made, {"shmem": "0"}))
    return kernels


def both(folder, lanes, name="LDG.E", mode=0, tbs=3, **options):
    """The stores of a trace and of the same with every address where the first has it."""
    far = converted(write(folder / "far", *listed(lanes, name, mode, tbs)), **options)

    def place(moved):
        return spread_out(far, moved).tolist()

    return far, converted(write(folder / "near", *listed(lanes, name, 0, tbs, place)), **options)


def same(far, near, conf=None):
    """What two stores touch, and what comes of it."""
    assert far.memory_bytes == near.memory_bytes
    for number in range(len(far.kernels)):
        assert np.array_equal(far.kernel_array(number, "touched"), near.kernel_array(number, "touched"))
    jobs = trace_job(far), trace_job(near)
    for scheme in ("stream", "tb_static"):
        one, two = (execute(job, scheme, conf or tiny(sim__oracle="1")) for job in jobs)
        assert one.hash == two.hash
        assert one.slices.tobytes() == two.slices.tobytes()
        assert one.sms.tobytes() == two.sms.tobytes()


def modes(lanes):
    """The address modes that can say where these lanes are."""
    deltas = {b - a for a, b in pairwise(lanes)}
    return [0, *([1] if len(deltas) == 1 else []), *([2] if max(map(abs, deltas)) < 1 << 63 else [])]


@pytest.mark.parametrize(
    ("where", "mode"), [(where, m) for where, lanes in LANES.items() for m in modes(lanes)]
)
def test_far_lanes_are_as_near_ones(tmp_path, where, mode):
    same(*both(tmp_path, LANES[where], mode=mode))


@pytest.mark.parametrize("name", NAMES)
def test_stores_and_atomics(tmp_path, name):
    same(*both(tmp_path, LANES["1 TiB"], name))


@pytest.mark.parametrize("plain", [1, 3])
def test_templates_are_those_of_pages_side_by_side(tmp_path, plain):
    """Kept one by one, the accesses in the files are the same numbers."""
    far, near = both(tmp_path, LANES["all over 49 bits"], plain=plain)
    same(far, near)
    shapes = []
    for store in (far, near):
        packed, templates, parts = (store.trace_array(name) for name in ("accesses", "templates", "parts"))
        of = templates[packed >> np.uint64(32)]
        shapes.append(
            [
                (
                    int(line) & 0xFFFFFFFF,
                    parts[t["first"] : t["first"] + t["lines"]].tobytes(),
                    int(t["sectors"]),
                )
                for line, t in zip(packed, of, strict=True)
            ]
        )
    assert shapes[0] == shapes[1]
    assert len(near.trace_array("templates")) == len(far.trace_array("templates"))


@pytest.mark.parametrize("where", LANES)
def test_sectors_are_those_of_the_text(tmp_path, where):
    """All sectors of all lanes, counted by a reader of the text, are asked for once each."""
    kernels = listed(LANES[where], tbs=1)
    store = converted(write(tmp_path / "trace", *kernels))
    ran = execute(trace_job(store), "stream")
    found = touches(store, [row for _, _, tbs, _ in kernels for warps in tbs.values() for row in warps[0]])
    stored = sum(mask.bit_count() * n for (_, mask, written), n in found.items() if written)
    assert ran.kernels["store_sectors"].sum() == stored
    # all sectors of a loaded line that L1 does not have
    pages = len({a >> 21 for _, _, tbs, _ in kernels for a in LANES[where]} | {(BASE + (1 << 21)) >> 21})
    assert store.memory_bytes >> 21 == len(store.trace_array("pages")) == pages


@pytest.mark.parametrize("reach", [(1 << 32) - 1, 1 << 32, (1 << 32) + 1])
def test_at_the_limit(tmp_path, reach):
    """What reaches over less than 4 GiB has all pages between, what reaches further those of its lanes."""
    lanes = [BASE + MIB] * 31 + [BASE + MIB + reach - 16]
    far, near = both(tmp_path, lanes, "STG.E.128", tbs=1, plain=1)
    assert len(far.trace_array("pages")) == (2049 if reach < 1 << 32 else 3)
    same(far, near, config("titan_v", sim__oracle="1"))


def test_shared_memory_is_not_memory(tmp_path):
    """Lanes of shared memory may be anywhere: only their banks count, and no page is taken."""
    tbs = {(0, 0, 0): [[]]}
    for name, dst in (("LDS", "1 R4"), ("STS", "0")):
        lanes = [SHARED + 4 * i if i % 2 else SHARED + TIB + 4 * i for i in range(32)]
        tbs[0, 0, 0][0].append(f"0000 {FULL:08x} {dst} {name} 1 R2 4 {text_of(lanes, 0)} 0")
    tbs[0, 0, 0][0].append(END)
    store = converted(write(tmp_path / "trace", ((1, 1, 1), 32, tbs, {"shmem": "256"})))
    assert store.memory_bytes == 0
    assert execute(trace_job(store)).kernels["warp_instructions"].sum() == 3


def test_an_access_past_64_bits_is_refused(tmp_path):
    lanes = [BASE] * 31 + [(1 << 64) - 2]
    tbs = {(0, 0, 0): [[line("LDG.E", lanes), END]]}
    folder = write(tmp_path / "trace", ((1, 1, 1), 32, tbs, {"shmem": "0"}))
    with pytest.raises(WorkloadError, match="reaches from 0xfffffffffffffffe past the end of 64 bits"):
        convert(folder, tmp_path / "made.pysim")


@pytest.mark.parametrize("stride", [1 << 29, 1 << 31, -(1 << 31)])
def test_written_and_read_back(tmp_path, stride):
    """Our own kernels may have lanes 2 GiB apart: their traces touch the same sectors."""
    base = 0 if stride > 0 else -7 * stride
    code = Code()
    code.load(0, Pattern(0, 4, base=base, bx=4096, s0=4, s1=stride, minor=4))
    code.store(1, Pattern(0, 4, base=base + 128, bx=4096, s0=4, s1=stride, minor=4))
    code.exit()
    program = Program("far", (tuple(code.ops),), 1, 32, 0, 1)
    tensor = Memory().tensor("data", 1 << 20, 1 << 14, 1)
    job = Job("far", [Kernel("far", program, (3, 1, 1), (tensor,), ())])
    write_trace(job, tmp_path / "text")
    convert(tmp_path / "text", tmp_path / "made.pysim")
    store = ConvertedTrace(tmp_path / "made.pysim")
    one, two = (
        execute(job, "stream", config("titan_v")),
        execute(trace_job(store), "stream", config("titan_v")),
    )
    for name in ("load_sectors", "store_sectors"):
        assert one.kernels[name].sum() == two.kernels[name].sum() > 0
