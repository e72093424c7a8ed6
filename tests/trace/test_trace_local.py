"""Local memory of traces: sizes of accesses, stacks at the top of the window, pages of a kernel's own."""

from __future__ import annotations

import numpy as np
import pytest

from pysim.trace.job import trace_job
from tests.core.harness import execute, tiny

from .made_traces import A, Warp, converted, places, strided, write

WINDOW = 1 << 24
FULL_NAMES = {1: ".U8", 2: ".U16", 4: "", 8: ".64", 16: ".128"}


def frame(offsets, width=4, grid=(3, 1, 1), warps=2, lanes=32):
    """A kernel whose threads store to each offset, then load from it."""
    tbs = {}
    for place in places(grid):
        every = []
        for _ in range(warps):
            warp = Warp((1 << lanes) - 1)
            for at in offsets:
                warp.op(f"STL{FULL_NAMES[width]}", None, (1, 4), [at] * lanes, width)
            for i, at in enumerate(offsets):
                warp.op(f"LDL{FULL_NAMES[width]}", 8 + 4 * (i % 8), (1,), [at] * lanes, width)
            every.append(warp.op("FADD", 4, (8, 12)).end())
        tbs[place] = every
    return grid, warps * 32, tbs, {}


def run(folder, *kernels, **overrides):
    return execute(trace_job(converted(write(folder, *kernels))), "stream", tiny(**overrides))


@pytest.mark.parametrize(("width", "sectors"), [(1, 4), (2, 4), (4, 4), (8, 8), (16, 16)])
def test_an_access_moves_its_words(tmp_path, width, sectors):
    ran = run(tmp_path, frame([256], width, (1, 1, 1), 1))
    assert ran.kernels["store_sectors"].sum() == sectors
    assert ran.kernels["load_sectors"].sum() == sectors
    assert ran.slices["sectors_written"].sum() == sectors
    assert ran.kernels["warp_instructions"].sum() == 4


def test_lanes_that_are_off_move_nothing(tmp_path):
    ran = run(tmp_path, frame([256], 16, (1, 1, 1), 1, lanes=8))
    assert ran.kernels["store_sectors"].sum() == 4


def test_lanes_may_be_at_different_words(tmp_path):
    warp = Warp().op("STL.64", None, (1, 4), strided(0, 8), 8).end()
    ran = run(tmp_path, ((1, 1, 1), 32, {(0, 0, 0): [warp]}, {}))
    # word i of lane i and the next one: each in a sector of its own
    assert ran.kernels["store_sectors"].sum() == 64


@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize("size", [128, 512, 640, 1024, 8192])
def test_a_stack_at_the_top_of_the_window_is_as_one_at_its_bottom(tmp_path, width, size):
    low = range(0, size, max(width, size // 16))
    runs = [
        run(tmp_path / str(base), frame([base + at for at in low], width, (40, 1, 1), 4))
        for base in (0, WINDOW // 2, WINDOW - size)
    ]
    assert len({r.hash for r in runs}) == 1
    assert len({r.end for r in runs}) == 1
    assert runs[0].slices.tobytes() == runs[1].slices.tobytes() == runs[2].slices.tobytes()


def test_generic_addresses_are_those_of_the_window(tmp_path):
    base = 0x7F0002000000
    hashes = []
    for name, add in (("LDL", 0), ("LD", base)):
        warp = Warp().op("STL", None, (1, 4), [WINDOW - 64] * 32)
        warp.op(f"{name}.E" if add else name, 8, (2,), [add + WINDOW - 64] * 32).op("FADD", 9, (8, 8))
        hashes.append(run(tmp_path / name, ((1, 1, 1), 32, {(0, 0, 0): [warp.end()]}, {})).hash)
    assert hashes[0] == hashes[1]


def pages_of(store, number):
    found = store.kernel_array(number, "places")
    return {
        p
        for lo, hi in zip(found["lo"], found["hi"], strict=True)
        for p in range(lo >> 21, (hi - 1 >> 21) + 1)
    }


@pytest.mark.parametrize("plain", [0, 1])
def test_kernels_have_pages_of_their_own(tmp_path, plain):
    deep = [WINDOW - 65536 + at for at in range(0, 65536, 4096)]
    kernels = [
        frame(deep, grid=(600, 1, 1), warps=1),
        *(frame([WINDOW - 64], grid=(2, 1, 1)) for _ in range(4)),
    ]
    store = converted(write(tmp_path, *kernels, frame(deep, 16)), plain=plain)
    seen = set()
    for number in range(len(store.kernels)):
        mine = pages_of(store, number)
        assert mine
        assert not mine & seen
        seen |= mine
    assert execute(trace_job(store), "stream").totals.tbs_done == 600 + 4 * 2 + 3


def test_threads_have_memory_of_their_own(tmp_path):
    """Threads of 512 TBs store different bytes, also where TBs differ in the depth of the stack."""
    grid, warps = (512, 1, 1), 2
    tbs = {}
    for place in places(grid):
        depth = 1 + place[0] % 5
        every = []
        for _ in range(warps):
            warp = Warp()
            for level in range(depth):
                warp.op("STL", None, (1, 4), [WINDOW - 4 - 1024 * level] * 32)
            every.append(warp.end())
        tbs[place] = every
    store = converted(write(tmp_path, (grid, warps * 32, tbs, {})))
    ran = execute(trace_job(store), "stream", tiny(sim__oracle=1))
    stored = 4 * warps * sum(1 + x % 5 for x in range(512))
    assert ran.kernels["store_sectors"].sum() == stored
    accesses = store.trace_array("accesses")
    lines = set((np.asarray(accesses) & 0xFFFFFFFF).tolist())
    for p in store.kernel_array(0, "places"):
        if not p["recorded"]:
            assert p["hi"] - p["lo"] <= store.memory_bytes
    assert len(lines) == len(accesses)


def test_a_thread_with_a_word_at_each_end_of_the_window(tmp_path):
    ran = run(tmp_path, frame([0, WINDOW - 4], grid=(60, 1, 1), warps=8), frame([128], grid=(60, 1, 1)))
    assert ran.totals.tbs_done == 120
    assert ran.kernels["warp_instructions"].sum() == 60 * 8 * 6 + 60 * 2 * 4


def test_local_memory_beside_global(tmp_path):
    warp = Warp().op("LDG.E", 4, (2,), strided(A, 4)).op("STL", None, (1, 4), [WINDOW - 4] * 32).end()
    store = converted(write(tmp_path, ((1, 1, 1), 32, {(0, 0, 0): [warp]}, {})))
    assert store.memory_bytes == 2 << 21
    assert execute(trace_job(store), "tb_static").kernels["store_sectors"].sum() == 4
