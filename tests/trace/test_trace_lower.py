"""Converted traces: nothing is lost, loops and rules change nothing, waits stand where they must."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pysim import simulate
from pysim._ffi import dtype_of, ffi, lib
from pysim.engine.simulation import Sim
from pysim.errors import ConfigError, SimError, WorkloadError
from pysim.isa import OPS
from pysim.trace.convert import convert
from pysim.trace.converted_file import ConvertedTrace
from pysim.trace.job import trace_job
from tests.core.harness import config, execute, lowered_of, tiny

from .made_traces import A, B, C, Warp, converted, odd, places, product, strided, touches, write

NAMES = [name for name, _ in OPS]


def count_of(kernel):
    return sum(len(warp) for warps in kernel[2].values() for warp in warps)


# ---- nothing is lost ----


@pytest.mark.parametrize("plain", [0, 1, 2, 3])
@pytest.mark.parametrize("kernel", [product(), odd(1), odd(2, (5, 1, 1), 2)], ids=["product", "odd", "odd2"])
def test_every_instruction_and_every_sector_is_kept(tmp_path, kernel, plain):
    store = converted(write(tmp_path, kernel), plain=plain)
    assert store.kernels[0].instructions == count_of(kernel)
    classes = store.kernel_array(0, "classes")
    assert (classes["instructions"] * classes["warps"]).sum() == count_of(kernel)
    lowered, _ = lowered_of(trace_job(store), "stream", tiny())
    with Sim(lowered) as sim:
        for number, place in enumerate(places(kernel[0])):
            out = np.zeros(1 << 14, np.uint64)
            count = lib.gs_touches(sim.sim, 0, number, ffi.cast("uint64_t *", out.ctypes.data), len(out))
            found = Counter(
                (int(x & ~np.uint64(1 << 63)) >> 4, int(x) & 15, int(x) >> 63) for x in out[:count]
            )
            wanted = Counter()
            for warp in kernel[2][place]:
                wanted += touches(store, warp)
            assert found == wanted


@pytest.mark.parametrize("kernel", [product(), odd(3)], ids=["product", "odd"])
def test_footprints_are_the_sectors_of_the_text(tmp_path, kernel):
    store = converted(write(tmp_path, kernel))
    touched = trace_job(store).kernels[0].footprint.sector_runs(len(kernel[2]))
    for number, place in enumerate(places(kernel[0])):
        wanted = {0: set(), 1: set()}
        for warp in kernel[2][place]:
            for line, mask, written in touches(store, warp):
                wanted[written] |= {line * 4 + i for i in range(4) if mask >> i & 1}
        for written, sectors in wanted.items():
            mine = (touched.tb == number) & (touched.written == bool(written))
            found = {
                s for lo, hi in zip(touched.lo[mine], touched.hi[mine], strict=True) for s in range(lo, hi)
            }
            assert found == sectors


@pytest.mark.parametrize("kernel", [product(), odd(4)], ids=["product", "odd"])
def test_the_simulated_instructions_are_those_of_the_trace(tmp_path, kernel):
    store = converted(write(tmp_path, kernel, kernel))
    result = simulate(tiny(), trace_job(store), "stream,tb_static", tables="none")
    assert result.frame("runs")["warp_instructions"].tolist() == [2 * count_of(kernel)] * 2


def test_a_regular_kernel_is_small(tmp_path):
    store = converted(write(tmp_path, product(k=50, grid=(6, 4, 1))))
    assert len(store.kernel_array(0, "classes")) == 1
    assert len(store.kernel_array(0, "places")) == 3
    assert len(store.kernel_array(0, "items")) == len(store.kernel_array(0, "rows")) + 1
    assert len(store.trace_array("accesses")) == 0


# ---- loops and rules change nothing ----


def run(store, scheme="stream", **overrides):
    return execute(trace_job(store), scheme, tiny(**overrides))


@pytest.mark.parametrize("scheme", ["stream", "tb_static"])
def test_recorded_addresses_give_the_same_run_as_rules(tmp_path, scheme):
    folder = write(tmp_path, product(), product())
    runs = [run(converted(folder, plain=plain), scheme) for plain in (0, 1)]
    assert runs[0].hash == runs[1].hash
    assert runs[0].end == runs[1].end
    assert runs[0].kernels.tobytes() == runs[1].kernels.tobytes()


def test_unrolled_loops_give_the_same_run(tmp_path):
    store = converted(write(tmp_path, product()))
    assert (store.kernel_array(0, "items")["row"] == 0xFFFFFFFF).sum() == 1
    runs = [run(store)]
    for plain in (2, 3):
        store = converted(tmp_path, plain=plain)
        assert (store.kernel_array(0, "items")["row"] == 0xFFFFFFFF).sum() == 0
        runs.append(run(store))
    assert len({r.hash for r in runs}) == 1
    assert len({r.end for r in runs}) == 1


def nested(outer, inner, step, grid=(4, 1, 1)):
    tbs = {}
    for x, y, z in places(grid):
        warp = Warp().op("S2R", 2)
        top = warp.pc
        for i in range(outer):
            warp.pc = top
            warp.op("LDG.E", 3, (2,), strided(A + x * 128 + i * 8192, 4))
            mark = warp.pc
            for j in range(inner):
                warp.pc = mark
                warp.op("LDG.E", 4, (2,), strided(B + x * 128 + i * 65536 + j * step, 4)).op(
                    "FADD", 5, (4, 5)
                )
                warp.op("BRA")
            warp.op("FADD", 6, (3, 6)).op("BRA")
        tbs[x, y, z] = [warp.end()]
    return grid, 32, tbs, {}


def test_nested_loops_are_found(tmp_path):
    kernel = nested(7, 5, 1024)
    store = converted(write(tmp_path, kernel))
    items = store.kernel_array(0, "items")
    loops = items[items["row"] == 0xFFFFFFFF]
    assert loops["count"].tolist() == [5, 7]
    assert loops["level"].tolist() == [0, 1]
    found = {(int(p["step"]), int(p["level"]), int(p["step2"])) for p in store.kernel_array(0, "places")}
    assert found == {(8192, 1, 0), (1024, 0, 65536)}


def test_the_first_iteration_may_be_another(tmp_path):
    kernel = nested(1, 9, 64)
    for warps in kernel[2].values():
        # another mask in the first turn: it stays in front of the loop
        warps[0][2] = warps[0][2].replace("ffffffff", "00000001").split(" 4 0 ")[0] + f" 4 0 0x{B:x} 0"
    store = converted(write(tmp_path, kernel))
    items = store.kernel_array(0, "items")
    assert items["count"][items["row"] == 0xFFFFFFFF].tolist() == [8]
    assert store.kernels[0].instructions == count_of(kernel)


# ---- waits ----


def test_dependences_of_a_trace(tmp_path):
    """Each TB of the second kernel reads what one TB of the first wrote."""
    first, second = {}, {}
    for x in range(40):
        first[x, 0, 0] = [Warp().op("STG.E", None, (2, 3), strided(B + x * 128, 4)).end()]
        warp = Warp().op("LDG.E", 4, (2,), strided(B + (39 - x) * 128, 4)).op("FADD", 5, (4, 4))
        second[x, 0, 0] = [warp.op("STG.E", None, (2, 5), strided(C + x * 128, 4)).end()]
    folder = write(tmp_path, ((40, 1, 1), 32, first, {}), ((40, 1, 1), 32, second, {}))
    job = trace_job(converted(folder))
    result = simulate(tiny(sim__oracle=1), job, "stream,tb_static,tb_ideal")
    assert result.deps.producers(1, 5) == [(0, 34)]
    assert set(result.frame("runs")["status"]) == {"ok"}


def test_what_a_kernel_of_the_job_writes_is_read_past_l1(tmp_path):
    tbs = {(0, 0, 0): [Warp().op("STG.E", None, (2, 3), strided(B, 4)).end()]}
    warp = Warp().op("LDG.E", 4, (2,), strided(A, 4)).op("LDG.E", 5, (2,), strided(B, 4)).end()
    job = trace_job(
        converted(write(tmp_path, ((1, 1, 1), 32, tbs, {}), ((1, 1, 1), 32, {(0, 0, 0): [warp]}, {})))
    )
    tables = job.kernels[1].program.lower(config().encoded())
    assert tables.patterns["arg"].tolist() == [0, 1]
    lowered, _ = lowered_of(job, "tb_static:bypass", tiny())
    assert (lowered.launches["bypass"] & 3).tolist() == [0, 2]
    lowered, _ = lowered_of(job, "stream", tiny())
    assert lowered.launches["bypass"].tolist() == [0, 0]


def test_kernels_are_chosen_by_number(tmp_path):
    store = converted(write(tmp_path, product(), odd(5), product(3)))
    job = trace_job(store, [3, 2])
    assert [k.grid for k in job.kernels] == [(3, 2, 2), (3, 2, 1)]
    assert execute(job, "stream").totals.tbs_done == 18
    with pytest.raises(ConfigError, match="no kernel 4"):
        trace_job(store, [4])


def test_streams_and_copies_are_kept(tmp_path):
    one, two = product(), product()
    two[3]["cuda_stream_id"] = "94"
    folder = write(tmp_path, one, two)
    listed = folder / "kernelslist.g"
    listed.write_text("MemcpyHtoD,0x700000000000,4096\n" + listed.read_text())
    store = converted(folder)
    assert store.memcpys == ((0, 0x700000000000, 4096),)
    assert [k.stream for k in trace_job(store, memcpy="ignore").kernels] == [0, 1]


def test_local_memory_is_each_thread_s_own(tmp_path):
    tbs = {}
    for x in range(3):
        warp = Warp().op("STL", None, (1, 4), strided(64, 0)).op("LDL", 5, (1,), strided(64, 0))
        tbs[x, 0, 0] = [warp.end(), warp.lines]
    store = converted(write(tmp_path, ((3, 1, 1), 64, tbs, {})))
    job = trace_job(store)
    assert len(job.kernels[0].footprint.sector_runs(3).tb) == 0
    ran = execute(job, "stream")
    assert ran.kernels["store_sectors"].sum() == 3 * 2 * 4
    assert ran.slices["sectors_written"].sum() == 3 * 2 * 4


def test_the_same_trace_gives_the_same_file(tmp_path):
    folder = write(tmp_path / "trace", odd(6), product())
    files = []
    for name in ("a", "b"):
        convert(folder, tmp_path / name)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]


def test_what_is_held_does_not_change_the_file(tmp_path, monkeypatch):
    folder = write(tmp_path / "trace", odd(9), product())
    convert(folder, tmp_path / "a")
    monkeypatch.setattr("pysim.trace.convert.HELD", 7)
    convert(folder, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_other_kernels_recorded_is_not_read(tmp_path):
    folder = write(tmp_path, odd(10), odd(11))
    path = converted(folder).path
    data = bytearray(path.read_bytes())
    store = ConvertedTrace(path)
    at = store.directory["arrays"]["accesses"][0] + 8 * store.kernels[1].first_access
    data[at] ^= 1
    path.write_bytes(data)
    assert execute(trace_job(ConvertedTrace(path), [1]), "stream").totals.tbs_done == 12
    with pytest.raises(WorkloadError, match="kernel 2: accesses: damaged"):
        trace_job(ConvertedTrace(path))


# ---- bad input ----


def test_damaged_files_are_refused_or_run(tmp_path):
    store = converted(write(tmp_path, odd(7, (2, 2, 1), 2)))
    good = store.path.read_bytes()
    rng = np.random.default_rng(1)
    refused = []
    for _ in range(250):
        data = bytearray(good)
        for _ in range(int(rng.integers(1, 4))):
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        path = tmp_path / "bad"
        path.write_bytes(data)
        try:
            execute(trace_job(ConvertedTrace(path)), "stream")
        except WorkloadError as error:
            refused.append(str(error))
    assert len(refused) > 200  # the rest fell between arrays
    assert all(str(path) in reason and "\n" not in reason for reason in refused)


def test_cut_files_are_refused(tmp_path):
    store = converted(write(tmp_path, product()))
    good = store.path.read_bytes()
    path = tmp_path / "bad"
    for size in (0, 1, 63, 64, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:size])
        with pytest.raises(WorkloadError, match="convert the trace again"):
            ConvertedTrace(path)
    path.write_bytes(good[:8] + b"\x63" + good[9:])
    with pytest.raises(WorkloadError, match="another version"):
        ConvertedTrace(path)
    with pytest.raises(WorkloadError, match="none"):
        ConvertedTrace(tmp_path / "none")


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_wrong_numbers_with_right_checksums_are_refused_or_run(tmp_path_factory, data):
    """What passes the checksums is checked again: a file may have been written by anybody."""
    store = _wrong_store(tmp_path_factory)
    name = data.draw(
        st.sampled_from(["rows", "items", "classes", "places", "shapes", "entries", "tb_rows", "blocks"])
    )
    array = store.kernel_array(0, name).copy()
    if len(array) == 0:
        return
    row = data.draw(st.integers(0, len(array) - 1))
    raw = array.view(np.uint8).reshape(len(array), -1)
    raw[row, data.draw(st.integers(0, raw.shape[1] - 1))] = data.draw(st.integers(0, 255))
    real = store.kernel_array

    class Changed:
        def __getattr__(self, other):
            return getattr(store, other)

        def kernel_array(self, number, what):
            return array if what == name else real(number, what)

    reason = ""
    try:
        execute(trace_job(Changed()), "stream")
    except SimError as error:
        reason = str(error)
    assert "\n" not in reason


_MADE = []


def _wrong_store(factory):
    if not _MADE:
        _MADE.append(converted(write(factory.mktemp("wrong"), odd(8, (2, 2, 1), 2))))
    return _MADE[0]


def test_structs_have_no_holes():
    """Bytes between fields would make files of equal traces differ."""
    for name in ("gs_sass", "gs_item", "gs_class", "gs_place", "gs_shape_lanes", "gs_run_touched"):
        kind = dtype_of(name)
        assert sum(kind.fields[f][0].itemsize for f in kind.names) == kind.itemsize
