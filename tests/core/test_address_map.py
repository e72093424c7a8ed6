"""The map from line to (slice, set, tag) is a bijection and spreads what programs do."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim._ffi import ffi, lib
from pysim.errors import ConfigError
from pysim.simulation import Sim
from workloads.registry import make

from .harness import config, execute, lowered_of

MEASURED = Path(__file__).parents[2] / "workloads" / "measured"

SHAPES = {
    "titan_v": (48, 48),
    "v100": (64, 48),
    "odd": (9, 5),
    "one": (1, 32),
    "prime": (31, 31),
    "narrow": (256, 1),
    "large": (80, 2048),
    "pow2": (16, 512),
    "h200": (96, 320),
    "chunked": (8, 32),
}
CHUNKED = "h200", "chunked"


@pytest.fixture(scope="module", params=[(shape, hashed) for shape in SHAPES for hashed in (1, 0)])
def machine(request):
    shape, hashed = request.param
    slices, sets = SHAPES[shape]
    name = shape if shape in ("titan_v", "v100", "h200") else "titan_v"
    l2 = {
        "slices": slices,
        "size": slices * sets * 16 * 128,
        "hash": hashed,
        "chunked": int(shape in CHUNKED),
    }
    conf = config(name, **{f"gpu__l2__{key}": value for key, value in l2.items()})
    made, _ = lowered_of(make("empty"), "stream", conf)
    with Sim(made) as sim:
        yield sim.sim, slices, sets


def homes(sim, lines):
    out = ffi.new("uint32_t[3]")
    made = np.empty((len(lines), 3), np.int64)
    for i, line in enumerate(lines):
        lib.gs_line_home(sim, int(line), out, out + 1, out + 2)
        made[i] = out[0], out[1], out[2]
    return made


@settings(max_examples=300, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_inverse(machine, share):
    sim, slices, sets = machine
    line = int(share * 65535 * slices * sets)
    slice_, set_, tag = homes(sim, [line])[0].tolist()
    assert 0 <= slice_ < slices
    assert 0 <= set_ < sets
    assert 1 <= tag <= 65535
    assert lib.gs_home_line(sim, slice_, set_, tag) == line


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_forward_of_inverse(machine, data):
    sim, slices, sets = machine
    home = [
        data.draw(st.integers(0, slices - 1)),
        data.draw(st.integers(0, sets - 1)),
        data.draw(st.integers(1, 65535)),
    ]
    assert homes(sim, [lib.gs_home_line(sim, *home)])[0].tolist() == home


def test_whole_blocks_are_permutations(machine):
    sim, slices, sets = machine
    if slices * sets > 4096:
        pytest.skip("too many lines")
    for block in (0, 7, 1000):
        found = homes(sim, range(block * slices * sets, (block + 1) * slices * sets))
        assert len(np.unique(found, axis=0)) == slices * sets
        # lines of one tag: what one way of the cache holds
        assert len(np.unique(found[:, 2])) == 1


# worst slice over the mean; strides in lines
STRIDES = (
    1,
    2,
    3,
    4,
    5,
    6,
    8,
    12,
    16,
    24,
    32,
    48,
    64,
    96,
    128,
    192,
    256,
    384,
    512,
    768,
    1024,
    1536,
    2048,
    4096,
)


def test_without_the_hash_slice_and_set_are_the_lowest_digits():
    made, _ = lowered_of(make("empty"), "stream", config("v100", gpu__l2__hash=0))
    slices, sets = SHAPES["v100"]
    lines = np.array([0, 1, 63, 64, 65, 64 * 47, 64 * 48, 12345, 987654])
    with Sim(made) as sim:
        found = homes(sim.sim, lines)
    want = np.stack([lines % slices, lines // slices % sets, lines // (slices * sets) + 1], axis=1)
    assert found.tolist() == want.tolist()


@pytest.mark.parametrize("name", ["titan_v", "v100", "h200"])
def test_strides_spread_over_slices(name):
    made, _ = lowered_of(make("empty"), "stream", config(name))
    with Sim(made) as sim:
        slices = SHAPES[name][0]
        bad = {}
        for stride in STRIDES:
            found = homes(sim.sim, (1 << 28 >> 7) + stride * np.arange(slices * 64))
            worst = np.bincount(found[:, 0], minlength=slices).max() / 64
            # 64 random balls a bin: the fullest of 64 bins holds about 1.36 times the mean
            if worst > ((1.1 if name in CHUNKED else 1.02) if stride == 1 else 1.6):
                bad[stride] = worst
        assert not bad


@pytest.fixture(scope="module")
def slices_of_chunks():
    """Return in which slices of a half 1,024 lines lie: on the card, and here at three places."""
    with (MEASURED / "h200_slices.csv").open(encoding="utf-8", newline="") as file:
        card = {int(row["line"]): int(row["slice"]) for row in csv.DictReader(file)}
    made, _ = lowered_of(make("empty"), "stream", config("h200"))
    with Sim(made) as sim:
        here = [homes(sim.sim, first + np.arange(1024))[:, 0] % 48 for first in (1 << 21, 5 << 20, 77 << 13)]
    return np.array([card[i] for i in range(1024)]), here


def test_chunks_lie_in_two_slices_as_on_an_h200(slices_of_chunks):
    """Lines 0, 1, 4 and 5 in one, 2, 3, 6 and 7 in another: these wait for each other there."""
    card, here = slices_of_chunks
    for slices in (card, *here):
        for bit, same in ((0, True), (1, False), (2, True)):
            assert ((slices == slices[np.arange(1024) ^ 1 << bit]) == same).all(), bit


@pytest.mark.parametrize("stride", [1, 2, 4, 8, 16, 32])
def test_strides_of_chunks_spread_as_on_an_h200(slices_of_chunks, stride):
    """Over as many slices, give or take a third (at worst), with two more of them in the fullest at most."""
    card, here = (x[..., :: 8 * stride] for x in map(np.array, slices_of_chunks))
    for slices in here:
        assert 0.75 < len(set(slices.tolist())) / len(set(card.tolist())) < 1.4
        assert np.bincount(slices).max() <= np.bincount(card).max() + 2


@pytest.mark.parametrize(
    "changed", [{"slices": 92, "size": 92 * 320 * 2048}, {"hash_slices": 112}, {"size": 96 * 319 * 2048}]
)
def test_chunks_need_whole_quads(changed):
    values = {f"gpu__l2__{key}": value for key, value in changed.items()}
    with pytest.raises(ConfigError, match=r"gpu\.l2\.chunked = 1: gpu\.l2\.slices = "):
        execute(make("empty"), "stream", config("h200", **values))
