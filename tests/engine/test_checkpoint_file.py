"""Files of checkpoints: what is damaged, or of something else, is refused with one line and kept."""

from __future__ import annotations

import errno
import os
import random
import struct

import pytest

from pysim import ConfigError, simulate
from pysim._ffi import check, lib
from pysim.engine import checkpoint_file, simulation
from pysim.engine.checkpoint_file import CheckpointFile, writing
from pysim.engine.checkpoints import Checkpoints
from pysim.engine.simulation import Sim
from pysim.errors import CheckpointError, OutputError
from pysim.workloads import make
from tests.core.harness import drive, lowered_of, oracle, outcome, tiny
from tests.core.workloads_small import ALL

JOB = make("gru:hidden=64,batch=4,timesteps=2,layers=1")
PAGE, ROOM = 4096, 16 + 4096


class Stop(BaseException):
    """What ends a run in these tests."""


def interrupted(folder, about=None):
    """Leave the checkpoint of a call of two schemes, the second on its way; return the files."""

    def progress(scheme, done, tbs):
        if scheme == "tb_static" and done:
            kept.stop(Stop())

    kept = Checkpoints(folder, None, about=about)
    with pytest.raises(Stop):
        simulate(tiny(), JOB, "stream,tb_static", threads=1, progress=progress, checkpoints=kept)
    return sorted(folder.glob("*.ckpt"))


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Two files: records of a run that has ended, and the state of one that has not."""
    monkeypatch.setattr(simulation, "SLICE_QUANTA", 20)
    found = interrupted(tmp_path / "x.ckpt", {"schemes": "stream,tb_static", "gpu": "tiny"})
    assert sorted(CheckpointFile.open(path).header["kind"] for path in found) == ["records", "state"]
    return found


def resumed(folder, **more):
    kept = Checkpoints(folder, None, resume=True, **more)
    return simulate(tiny(), JOB, "stream,tb_static", threads=1, checkpoints=kept)


def refusal(folder, **more):
    """Return the line of the error; it names a file, which is still there."""
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(CheckpointError) as error:
        resumed(folder, **more)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    text = str(error.value)
    assert "\n" not in text
    assert any(str(path) in text for path in before)
    return text


def test_whole_files_go_on(made):
    want = simulate(tiny(), JOB, "stream,tb_static", threads=1)
    assert resumed(made[0].parent).hash == want.hash


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_is_refused(made, seed):
    draw = random.Random(seed)
    path = made[seed % 2]
    data = bytearray(path.read_bytes())
    # every other time in the part that is not compressed
    at = draw.randrange(len(data) if seed % 4 < 2 else 200)
    data[at] ^= 1 << draw.randrange(8)
    path.write_bytes(data)
    refusal(path.parent)


@pytest.mark.parametrize("seed", range(20))
def test_a_file_cut_short_or_made_longer_is_refused(made, seed):
    draw = random.Random(seed)
    path = made[seed % 2]
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data))] if seed < 16 else data + draw.randbytes(seed - 15))
    refusal(path.parent)


def test_other_versions_builds_and_calls_are_refused(made, monkeypatch):
    folder = made[0].parent
    assert "of another call: gpu differs" in refusal(
        folder, about={"schemes": "stream,tb_static", "gpu": "x"}
    )
    assert "of another call: gpu, job differ" in refusal(
        folder, about={"schemes": "stream,tb_static", "gpu": "x", "job": 1}
    )
    monkeypatch.setattr("pysim._ffi.core_digest", lambda: "other")
    assert "another build of the compiled core" in refusal(folder)
    monkeypatch.setattr(checkpoint_file, "VERSION", 2)
    assert "a checkpoint of version 1: this is version 2" in refusal(folder)


def test_what_has_a_right_checksum_and_no_right_content_is_refused(made):
    """Of files that someone else has written, nothing outside the arena is touched."""
    state = next(path for path in made if CheckpointFile.open(path).header["kind"] == "state")
    header, blocks = CheckpointFile.open(state).header, list(CheckpointFile.open(state).blocks())
    pages = [data for name, data in blocks if name == b"page"]
    first = struct.unpack("<QQ", pages[0][:16])
    for change, text in (
        ([pages[0], pages[0]], "damaged"),  # pages out of order
        ([struct.pack("<QQ", first[0] + (1 << 52), first[1]) + pages[0][16:]], "damaged"),
        ([struct.pack("<QQ", first[0], first[1] + 1) + pages[0][16:]], "damaged"),
        ([struct.pack("<QQ", first[0], (1 << 64) - 1) + pages[0][16:]], "damaged"),
        ([pages[0][:-1]], "damaged"),
        ([b"x"], "damaged"),
    ):
        with writing(state, header) as out:
            for data in change:
                out.add(b"page", data)
        assert text in refusal(state.parent)
    with writing(state, header | {"arena_bytes": 4096}):
        pass
    assert "a state of another size" in refusal(state.parent)
    with writing(state, header) as out:
        out.add(b"tbs ", b"odd")
    assert "no whole rows" in refusal(state.parent)
    records = next(path for path in made if path != state)
    with writing(records, CheckpointFile.open(records).header) as out:
        out.add(b"sums", b"short")
    assert "gs_totals has another length" in refusal(state.parent)


def test_a_block_that_unpacks_to_more_than_it_says_is_refused(tmp_path):
    path = tmp_path / "a.ckpt"
    with writing(path, {}) as out:
        out.add(b"page", bytes(1000))
    good = path.read_bytes()
    at = good.index(b"page") + 8
    for size in (999, 1001, 1 << 31):
        body = good[:at] + struct.pack("<I", size) + good[at + 4 : -32]
        path.write_bytes(body + checkpoint_file.hashlib.sha256(body).digest())
        with pytest.raises(CheckpointError, match="a block has another length"):
            list(CheckpointFile.open(path).blocks())


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "a.ckpt"
    with writing(path, {"a": 1}):
        pass
    before = path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left on device"), writing(path, {"a": 2}):
        pass
    with pytest.raises(ZeroDivisionError), writing(path, {"a": 2}):
        1 / 0  # noqa: B018
    assert [p.name for p in tmp_path.iterdir()] == ["a.ckpt"]
    assert path.read_bytes() == before
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"), writing(tmp_path / "file" / "a.ckpt", {}):
        pass


# ---- the core ----
def pages_of(sim, room=1 << 20):
    """Return the blocks of a state."""
    page, out = sim.ffi.new("uint64_t *"), sim.ffi.new("char[]", room)
    made = []
    while count := check(lib.gs_checkpoint_write(sim.sim, page, out, room), sim.sim):
        made.append(bytes(sim.ffi.buffer(out, count)))
    return made


def restored(lowered, blocks):
    sim = Sim(lowered)
    page = sim.ffi.new("uint64_t *")
    for data in blocks:
        check(lib.gs_checkpoint_read(sim.sim, page, data, len(data)), sim.sim)
    check(lib.gs_checkpoint_end(sim.sim, page[0]), sim.sim)
    return sim


@pytest.mark.parametrize("name", list(ALL))
def test_the_core_goes_on_from_any_quantum(name):
    """A state replaces what a run has done since."""
    lowered, _ = lowered_of(ALL[name](), "tb_static", tiny())
    with Sim(lowered) as sim:
        tbs = drive(sim)
        want = outcome(sim, lowered.launched, lowered.values, tbs).fingerprint()
    with Sim(lowered) as sim:
        assert check(lib.gs_run(sim.sim, 2, 2), sim.sim) == lib.GS_MORE
        first = sim.take_tb_records(1 << 16)
        blocks = pages_of(sim)
        check(lib.gs_run(sim.sim, 1, 7), sim.sim)
        sim.take_tb_records(1 << 16)
        assert pages_of(sim) != blocks
        page = sim.ffi.new("uint64_t *")
        for data in blocks:
            check(lib.gs_checkpoint_read(sim.sim, page, data, len(data)), sim.sim)
        check(lib.gs_checkpoint_end(sim.sim, page[0]), sim.sim)
        assert pages_of(sim) == blocks
        second = drive(sim, (3,), (50,))
        tbs[: len(first)], tbs[len(first) :] = first, second
        assert outcome(sim, lowered.launched, lowered.values, tbs).fingerprint() == want


def test_a_fresh_simulation_takes_a_state_page_by_page():
    lowered, _ = lowered_of(JOB, "stream", tiny())
    with Sim(lowered) as sim:
        check(lib.gs_run(sim.sim, 1, 100), sim.sim)
        small, blocks = pages_of(sim, ROOM), pages_of(sim)
        with restored(lowered, small) as other:
            assert pages_of(other) == blocks
            assert lib.gs_checkpoint_write(other.sim, sim.ffi.new("uint64_t *"), sim.ffi.NULL, ROOM - 1) < 0


def test_no_state_with_the_oracle_or_after_an_error():
    lowered, _ = lowered_of(JOB, "stream", oracle())
    with Sim(lowered) as sim, pytest.raises(ConfigError):
        pages_of(sim)
    lowered, _ = lowered_of(JOB, "stream", tiny())
    with Sim(lowered) as sim:
        with pytest.raises(ConfigError, match="damaged"):
            check(lib.gs_checkpoint_read(sim.sim, sim.ffi.new("uint64_t *"), b"x", 1), sim.sim)
        with pytest.raises(ConfigError, match="damaged"):
            check(lib.gs_run(sim.sim, 1, 1), sim.sim)
        with pytest.raises(ConfigError, match="damaged"):
            pages_of(sim)
