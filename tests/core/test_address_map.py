"""The map from line to (slice, set, tag) is a bijection and spreads what programs do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim._ffi import ffi, lib
from pysim.engine.simulation import Sim
from pysim.errors import ConfigError
from pysim.workloads.registry import make
from tests.support.measured import measured_table

from .harness import config, execute, lowered_of

SHAPES = {
    "titan_v": (48, 48),
    "v100": (64, 48),
    "odd": (9, 5),
    "one": (1, 32),
    "prime": (31, 31),
    "narrow": (256, 1),
    "large": (80, 2048),
    "pow2": (16, 512),
    "h200": (94, 320),
    "chunked": (8, 32),
    "chunked_odd": (13, 9),
}
# gpu.l2.single of those whose quads lie in slices as on an H200
CHUNKED = {"h200": 7, "chunked": 0, "chunked_odd": 3}
# the lines that were measured begin this far behind a place where no higher bit of an address is set
BASE = 528 << 20 >> 7


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
        "single": CHUNKED.get(shape, 0),
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
    line = int(share * (65535 * slices * sets - 1024 - 16 * slices))
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


def test_whole_blocks_are_permutations(machine, request):
    sim, slices, sets = machine
    if slices * sets > 4096:
        pytest.skip("too many lines")
    for tag in (1, 8, 1001):
        places = [[slice_, set_, tag] for slice_ in range(slices) for set_ in range(sets)]
        lines = [lib.gs_home_line(sim, *place) for place in places]
        assert homes(sim, lines).tolist() == places
        # lines of one tag are what one way of the cache holds: they follow one another, but that the fold of
        # a chunked map takes 128 KiB apart at either end
        rest = 2 * 1024 if request.node.callspec.params["machine"][0] in CHUNKED else 0
        assert max(lines) - min(lines) < slices * sets + rest


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


@pytest.mark.parametrize("name", ["titan_v", "v100"])
def test_strides_spread_over_slices(name):
    made, _ = lowered_of(make("empty"), "stream", config(name))
    with Sim(made) as sim:
        slices = SHAPES[name][0]
        bad = {}
        for stride in STRIDES:
            found = homes(sim.sim, (1 << 28 >> 7) + stride * np.arange(slices * 64))
            worst = np.bincount(found[:, 0], minlength=slices).max() / 64
            # 64 random balls a bin: the fullest of 64 bins holds about 1.36 times the mean
            if worst > (1.02 if stride == 1 else 1.6):
                bad[stride] = worst
        assert not bad


def card(name):
    """Return lines and what was found of each on an H200."""
    rows = np.loadtxt(measured_table(f"h200_{name}.csv"), delimiter=",", skiprows=1, dtype=np.int64)
    return rows[:, 0], rows[:, 1]


def test_lines_lie_in_slices_as_on_an_h200():
    """All of 4,224 lines of 64 GiB, to the number of the slice."""
    lines, slices = card("slices")
    made, _ = lowered_of(make("empty"), "stream", config("h200"))
    with Sim(made) as sim:
        here = homes(sim.sim, BASE + lines)[:, 0] % 47
    pairs = set(zip(slices.tolist(), here.tolist(), strict=True))
    assert len(lines) > 4000
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) == 47


def test_lines_are_at_home_as_on_an_h200():
    """In one half or the other, all of them: 4 KiB each, and slices of both have as many."""
    lines, halves = card("homes")
    made, _ = lowered_of(make("empty"), "stream", config("h200"))
    with Sim(made) as sim:
        here = homes(sim.sim, BASE + lines)[:, 0] // 47
        all_of = homes(sim.sim, np.arange(1 << 17))[:, 0]
    assert here.tolist() == halves.tolist()
    assert (np.ptp((all_of // 47).reshape(-1, 32), axis=1) == 0).all()
    assert np.ptp(np.bincount(all_of, minlength=94)) < 0.03 * (1 << 17) / 94


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hash_slices": 112}, r"gpu\.l2\.hash_slices = 112: must be 0 with gpu\.l2\.chunked = 1"),
        ({"hash_slices": 112, "chunked": 0}, r"gpu\.l2\.hash_slices = 112: must be 0 with gpu\.l2\.part"),
        ({"slices": 93, "size": 93 * 320 * 2048}, r"gpu\.l2\.slices = 93: must be even with gpu\.l2\.part"),
        ({"slices": 1, "size": 320 * 2048}, r"gpu\.l2\.slices = 1: must be even with gpu\.l2\.part"),
    ],
)
def test_what_does_not_go_with_chunks_and_halves(changed, message):
    odd = config("h200", **{f"gpu__l2__{key}": value for key, value in changed.items()})
    with pytest.raises(ConfigError, match=message):
        execute(make("empty"), "stream", odd)


def test_chunks_without_the_hash():
    """Quads that follow one another lie in one slice after the other of a half, for 64 of them."""
    made, _ = lowered_of(make("empty"), "stream", config("h200", gpu__l2__hash=0))
    quads = np.arange(64)
    with Sim(made) as sim:
        found = homes(sim.sim, quads // 2 * 8 + quads % 2 * 2)[:, 0]
    assert len(set(found[:47])) == 47
    assert found.max() < 47
    assert found[47:].tolist() == found[:17].tolist()


@pytest.mark.parametrize("single", [0, 1, 256])
@pytest.mark.parametrize("slices", [94, 92, 90, 88, 80, 26, 14])
def test_slices_in_a_row_lie_in_groups_in_turn(slices, single):
    """The remainder of 64 numbers takes some slices in a row more often; groups get as much within a slice.

    A group of four has a link of its own to each GPC.
    """
    half, size = slices // 2, 32 * 16 * 128 * slices
    how = {"gpu__l2__slices": slices, "gpu__l2__size": size, "gpu__l2__single": single}
    made, _ = lowered_of(make("empty"), "stream", config("h200", gpu__l2__hash=0, **how))
    quads = np.arange(64)
    with Sim(made) as sim:
        found = homes(sim.sim, quads // 2 * 8 + quads % 2 * 2)[:, 0]
        there = [lib.gs_home_line(sim.sim, slice_, 5, 3) for slice_ in range(slices)]
        assert homes(sim.sim, np.array(there))[:, 0].tolist() == list(range(slices))
    assert sorted(set(found)) == list(range(half))
    each = np.bincount(found // 4, minlength=(half + 3) // 4)
    most = -(-64 // half)  # of a slice
    full = each[: half // 4]
    assert np.ptp(full) <= most
    if slices == 94:  # were slices in a row a group, four of eleven would get twice as much
        assert np.ptp(np.bincount(quads % half // 4)[:11]) == 4


@pytest.mark.parametrize("single", [0, 46, 47, 256])
def test_units_of_one_are_as_many_as_there_are(single):
    """With none in units of two, a slice is the remainder itself, whatever half is the home."""
    made, _ = lowered_of(make("empty"), "stream", config("h200", gpu__l2__single=single))
    with Sim(made) as sim:
        found = homes(sim.sim, np.arange(0, 1 << 16, 8))[:, 0]
        lines = [lib.gs_home_line(sim.sim, slice_, 5, 7) for slice_ in range(94)]
    assert len(set(lines)) == 94
    assert np.ptp(np.bincount(found % 47, minlength=47)) < 8
