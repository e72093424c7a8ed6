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
from pysim.opcodes import OPCODES
from pysim.trace.convert import convert
from pysim.trace.job import trace_job
from pysim.trace.store import Store
from tests.core.harness import config, execute, lowered_of, tiny

from .made_traces import SHARED, A, B, C, Warp, converted, odd, places, product, strided, touches, write
from .text import header, tb, text

NAMES = [name for name, _ in OPS]


def count_of(kernel):
    return sum(len(warp) for warps in kernel[2].values() for warp in warps)


# ---- nothing is lost ----


@pytest.mark.parametrize("plain", [0, 1, 2, 3])
@pytest.mark.parametrize("kernel", [product(), odd(1), odd(2, (5, 1, 1), 2)], ids=["product", "odd", "odd2"])
def test_every_instruction_and_every_sector_is_kept(tmp_path, kernel, plain):
    store = converted(write(tmp_path, kernel), plain=plain)
    assert store.kernels[0].instructions == count_of(kernel)
    classes = store.kernel(0, "classes")
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
    touched = trace_job(store).kernels[0].footprint.touched(len(kernel[2]))
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
    assert len(store.kernel(0, "classes")) == 1
    assert len(store.kernel(0, "places")) == 3
    assert len(store.kernel(0, "items")) == len(store.kernel(0, "rows")) + 1
    assert len(store.whole("accesses")) == 0


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
    assert (store.kernel(0, "items")["row"] == 0xFFFFFFFF).sum() == 1
    runs = [run(store)]
    for plain in (2, 3):
        store = converted(tmp_path, plain=plain)
        assert (store.kernel(0, "items")["row"] == 0xFFFFFFFF).sum() == 0
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
    items = store.kernel(0, "items")
    loops = items[items["row"] == 0xFFFFFFFF]
    assert loops["count"].tolist() == [5, 7]
    assert loops["level"].tolist() == [0, 1]
    found = {(int(p["step"]), int(p["level"]), int(p["step2"])) for p in store.kernel(0, "places")}
    assert found == {(8192, 1, 0), (1024, 0, 65536)}


def test_the_first_iteration_may_be_another(tmp_path):
    kernel = nested(1, 9, 64)
    for warps in kernel[2].values():
        # another mask in the first turn: it stays in front of the loop
        warps[0][2] = warps[0][2].replace("ffffffff", "00000001").split(" 4 0 ")[0] + f" 4 0 0x{B:x} 0"
    store = converted(write(tmp_path, kernel))
    items = store.kernel(0, "items")
    assert items["count"][items["row"] == 0xFFFFFFFF].tolist() == [8]
    assert store.kernels[0].instructions == count_of(kernel)


# ---- waits ----

REGISTERS = st.integers(0, 11)
INSTRUCTIONS = st.one_of(
    st.tuples(st.just("LDG.E"), REGISTERS, st.tuples(REGISTERS), st.sampled_from([4, 8, 16])),
    st.tuples(st.just("ATOMG.E.ADD"), REGISTERS, st.tuples(REGISTERS, REGISTERS), st.just(4)),
    st.tuples(st.just("STG.E"), st.none(), st.tuples(REGISTERS, REGISTERS), st.sampled_from([4, 16])),
    st.tuples(st.just("FFMA"), REGISTERS, st.tuples(REGISTERS, REGISTERS, REGISTERS), st.none()),
    st.tuples(st.just("LDS"), REGISTERS, st.tuples(REGISTERS), st.just(8)),
    st.tuples(st.just("BAR.SYNC"), st.none(), st.just(()), st.none()),
    st.tuples(st.just("MEMBAR.SC.GPU"), st.none(), st.just(()), st.none()),
)


def straight(warp, instructions, turn):
    for number, (name, dst, src, width) in enumerate(instructions):
        if width is None:
            warp.op(name, dst, src)
        else:
            suffix = {4: "", 8: ".64", 16: ".128"}[width]
            base = SHARED if name == "LDS" else A + (number * 64 + turn) * 512
            warp.op(name + suffix, dst, src, strided(base, width), width)


def reads_and_writes(row):
    """Registers of an instruction: an address has two, a wide access width / 4."""
    wide = max(1, row["width"] // 4) if row["width"] and row["space"] else 1
    first = 2 if row["width"] and row["space"] else 1
    read, written = set(), set()
    for i in range(row["srcs"]):
        read |= {int(row["src"][i]) + j for j in range(first if i == 0 else wide)}
    for i in range(row["dsts"]):
        written |= {int(row["dst"][i]) + j for j in range(wide)}
    return read, written


def check_waits(store):
    """Run the ops of the first class with blocks of one instruction beside its items."""
    conf = config(gpu__sm__block_max=1)
    tables = trace_job(store).kernels[0].program.lowered(conf.encoded())
    rows, items = store.kernel(0, "rows"), store.kernel(0, "items")[: store.kernel(0, "classes")["items"][0]]
    ops = tables.ops
    pending = {}  # register -> slot
    outstanding = set()
    counter, turns = [0, 0, 0], [0, 0, 0]
    at = item = waits = 0
    while True:
        op = ops[at]
        kind = NAMES[op["kind"]]
        at += 1
        if kind == "WAIT":
            waits += 1
            pending = {r: s for r, s in pending.items() if s != op["slot"]}
            outstanding.discard(int(op["slot"]))
            continue
        if kind == "LOOP":
            assert items[item]["row"] == 0xFFFFFFFF
            level = op["level"]
            counter[level] += 1
            if counter[level] < items[item]["count"]:
                at, item = int(op["target"]), int(items[item]["a"])
                turns[level] += 1
            else:
                counter[level] = 0
                item += 1
            continue
        row = rows[items[item]["row"]]
        read, written = reads_and_writes(row)
        assert not (read | written) & pending.keys(), "used before it has come"
        if kind in ("LOAD", "REDUCE", "STORE"):
            outstanding.add(int(op["slot"]))
            for register in written:
                pending[register] = int(op["slot"])
        if kind == "EXIT":
            assert item == len(items) - 1
            return waits
        item += 1


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    before=st.lists(INSTRUCTIONS, max_size=8),
    body=st.lists(INSTRUCTIONS, min_size=1, max_size=14),
    after=st.lists(INSTRUCTIONS, max_size=6),
    turns=st.integers(1, 4),
)
def test_nothing_is_used_before_it_has_come(tmp_path_factory, before, body, after, turns):
    warp = Warp()
    straight(warp, before, 0)
    top = warp.pc
    for turn in range(turns):
        warp.pc = top
        straight(warp, body, turn)
        warp.op("BRA")
    straight(warp, after, 0)
    folder = write(tmp_path_factory.mktemp("waits"), ((1, 1, 1), 32, {(0, 0, 0): [warp.end()]}, {}))
    check_waits(converted(folder))


def test_loads_needed_together_share_a_slot_and_stores_have_their_own(tmp_path):
    warp = Warp()
    for i in range(4):
        warp.op("LDG.E", 4 + i, (2,), strided(A + 512 * i, 4))
    warp.op("LDG.E", 9, (2,), strided(B, 4))
    warp.op("STG.E", None, (2, 3), strided(C, 4))
    warp.op("FADD", 10, (4, 5)).op("FADD", 10, (6, 7))
    for _ in range(12):
        warp.op("IADD3", 11, (11, 11))
    warp.op("FADD", 10, (9, 9))
    store = converted(write(tmp_path, ((1, 1, 1), 32, {(0, 0, 0): [warp.end()]}, {})))
    ops = trace_job(store).kernels[0].program.lowered(config().encoded()).ops
    kinds = [NAMES[k] for k in ops["kind"]]
    slots = [int(s) for s, kind in zip(ops["slot"], kinds, strict=True) if kind in ("LOAD", "STORE")]
    assert len(set(slots[:4])) == 1
    assert len({slots[0], slots[4], slots[5]}) == 3
    assert kinds.count("WAIT") == 2
    assert slots[5] not in {int(s) for s, kind in zip(ops["slot"], kinds, strict=True) if kind == "WAIT"}


def slot_of(op, counter):
    if not op["stages"]:
        return int(op["slot"])
    return int(op["slot"]) + (counter[op["level"]] + int(op["count_plus"])) % int(op["stages"])


def check_groups(store):
    """Walk the ops: at a DEPBAR all groups but the newest that it allows have come, and those have not."""
    tables = trace_job(store).kernels[0].program.lowered(config(gpu__sm__block_max=1).encoded())
    rows, items, ops = store.kernel(0, "rows"), store.kernel(0, "items"), tables.ops
    on, group, kept = {}, 0, set()  # groups on a slot; the open group; what was outstanding at each DEPBAR
    counter, at, item = [0, 0, 0], 0, 0
    while True:
        op, at = ops[at], at + 1
        kind = NAMES[op["kind"]]
        if kind == "WAIT":
            on[slot_of(op, counter)] = set()
        elif kind == "LOOP":
            counter[op["level"]] += 1
            more = counter[op["level"]] < op["count"]
            counter[op["level"]] *= int(more)
            at, item = (int(op["target"]), int(items[item]["a"])) if more else (at, item + 1)
        else:
            row = rows[items[item]["row"]]
            name = OPCODES[row["opcode"]].kind
            item += 1
            if name == "ASYNC_COPY":
                on.setdefault(slot_of(op, counter), set()).add(group)
            if name == "ASYNC_COMMIT":
                group += 1
            if name == "DEPBAR":
                waiting = set().union(*on.values())
                assert not {g for g in waiting if g < group - row["imm"]}
                kept.add(len(waiting))
            if kind == "EXIT":
                return kept


def pipelined(ahead, turns, commits=1):
    """Copies ``ahead`` groups ahead of the turn that uses them, as multi-stage kernels do."""
    warp = Warp()

    def copy(turn):
        warp.op("LDGSTS.E.BYPASS.128", None, (2, 4), strided(A + turn * 4096, 16), 16)
        warp.op("LDGDEPBAR")

    for turn in range(ahead):
        copy(turn)
    top = warp.pc
    for turn in range(turns):
        warp.pc = top
        warp.op("DEPBAR.LE", imm=ahead - 1)
        warp.op("BAR.SYNC").op("LDS", 8, (9,), strided(SHARED, 4)).op("FFMA", 10, (8, 8, 10))
        for i in range(commits):
            copy(ahead + turn * commits + i)
        warp.op("BRA")
    warp.op("DEPBAR.LE", imm=0)
    return (1, 1, 1), 32, {(0, 0, 0): [warp.end()]}, {"binary_version": "80"}


@pytest.mark.parametrize("ahead", [1, 2, 3, 5])
@pytest.mark.parametrize("plain", [0, 1, 2, 3])
def test_groups_of_copies_are_waited_for_one_by_one(tmp_path, ahead, plain):
    kernel = pipelined(ahead, 7)
    store = converted(write(tmp_path, kernel), plain=plain)
    kept = check_groups(store)
    assert kept == ({0, ahead - 1} if ahead <= 3 else {0})
    ran = execute(trace_job(store), "stream")
    assert ran.kernels["warp_instructions"].sum() == count_of(kernel)
    assert ran.kernels["load_sectors"].sum() == 16 * (7 + ahead)


def test_groups_that_no_counter_tells_are_waited_for_together(tmp_path):
    assert check_groups(converted(write(tmp_path, pipelined(3, 6, commits=2)))) == {0}


def bulk(bytes_, addresses):
    """A kernel of tracer version 6: loads by bulk copies that a transaction barrier tells of, in a loop."""
    lines = []
    for turn in range(3):
        where = " ".join(f"0x{a + turn * 0x10000:x}" for a in addresses)
        rest = f"{bytes_} 0 3 {len(addresses)} {where} 0 0 NoVal"
        lines += [
            f"0010 00000001 0 UTMALDG.2D 2 UR4 UR8 4 0x7f0000000400 0 {rest}",
            "0020 ffffffff 1 R8 SYNCS.PHASECHK.TRANS64.TRYWAIT 1 R6 8 1 0x7f0000000400 0 0 0 NoVal",
            "0030 ffffffff 1 R24 HGMMA.64x128x16.F32 2 R24 UR4 1 0 0 0 NoVal",
            "0040 ffffffff 0 BRA 0 0 0 0 NoVal",
        ]
    lines.append("0050 ffffffff 0 EXIT 0 0 0 0 NoVal")
    where = ("cluster id = 0,0,0", "cluster cta = 0,0,0", "cluster rank = 0")
    return text(header(accelsim_tracer_version="6", binary_version="90"), tb((0, 0, 0), [lines], where))


@pytest.mark.parametrize(
    ("bytes_", "addresses"),
    [
        (4096, [A]),
        (16384, [A + 64]),
        (8192, [A + 512 * i for i in range(64)]),
        (100, [A + 3]),
        (32768, [A, B]),
    ],
)
@pytest.mark.parametrize("plain", [0, 2])
def test_bulk_copies_move_all_their_bytes(tmp_path, bytes_, addresses, plain):
    (tmp_path / "kernel-1.traceg").write_bytes(bulk(bytes_, addresses))
    (tmp_path / "kernelslist.g").write_text("kernel-1.traceg\n")
    job = trace_job(converted(tmp_path, plain=plain))
    ran = execute(job, "stream")
    assert ran.kernels["warp_instructions"].sum() == 13
    each = bytes_ // len(addresses)
    touched = {
        b // 32
        for turn in range(3)
        for a in addresses
        for b in range(a + turn * 65536, a + turn * 65536 + each)
    }
    assert ran.kernels["load_sectors"].sum() >= len(touched)
    found = job.kernels[0].footprint.touched(1)
    assert (found.hi - found.lo).sum() == len(touched)
    assert ran.sms["work"]["tensor"].sum() == 3 * ran.values["gpu.sm.tensor_interval"]


def test_bulk_copies_have_a_limit(tmp_path):
    (tmp_path / "kernel-1.traceg").write_bytes(bulk(1 << 21, [A]))
    (tmp_path / "kernelslist.g").write_text("kernel-1.traceg\n")
    with pytest.raises(WorkloadError, match=r"\.traceg:\d+: a bulk copy of 2097152 bytes"):
        converted(tmp_path)


# ---- times ----


def alone(tmp_path, build, **overrides):
    """Cycles that a warp alone takes, from its start to its end."""
    warp = Warp()
    build(warp)
    store = converted(write(tmp_path, ((1, 1, 1), 32, {(0, 0, 0): [warp.end()]}, {"shmem": "8192"})))
    ran = execute(trace_job(store), "stream", config(**overrides))
    return ran.kernel_cycles()


@pytest.mark.parametrize("block_max", [1, 64])
def test_dependent_instructions_take_their_latency(tmp_path, block_max):
    def chain(warp):
        for _ in range(256):
            warp.op("FFMA", 4, (4, 5, 6))

    latency = config()["gpu.sm.fp32_latency"]
    took = alone(tmp_path, chain, gpu__sm__block_max=block_max)
    assert abs(took - 256 * latency) <= 8


@pytest.mark.parametrize("block_max", [1, 64])
def test_independent_instructions_take_their_interval(tmp_path, block_max):
    def many(warp):
        for i in range(256):
            warp.op("FFMA", 4 + i % 16, (20, 21, 22))

    took = alone(tmp_path, many, gpu__sm__block_max=block_max)
    assert abs(took - 256 * config()["gpu.sm.fp32_interval"]) <= 8


def test_a_chain_that_goes_round_a_loop_counts_in_each_turn(tmp_path):
    def loop(warp):
        for _ in range(100):
            warp.pc = 0
            warp.op("DFMA", 4, (4, 6, 8)).op("IADD3", 12, (13, 13))

    took = alone(tmp_path, loop)
    assert abs(took - 100 * config()["gpu.sm.fp64_latency"]) <= 100


def test_shared_memory_results_take_their_latency(tmp_path):
    def loop(warp):
        for _ in range(50):
            warp.op("LDS", 4, (4,), strided(SHARED, 4))

    assert abs(alone(tmp_path, loop) - 50 * config()["gpu.sm.smem_latency"]) <= 55


def test_the_length_of_blocks_decides_little(tmp_path):
    store = converted(write(tmp_path, product(k=12, grid=(12, 2, 1), warps=8)))
    took = [run(store, gpu__sm__block_max=length).end for length in (1, 16, 64, 1024)]
    assert max(took) <= 1.06 * min(took)


def test_sources_in_one_register_bank_cost_a_slot(tmp_path):
    def build(first):
        def many(warp):
            for i in range(200):
                # no source is where the instruction before had it
                a, b = (4, 8) if i % 2 else (6, 10)
                warp.op("FFMA", 20 + 2 * (i % 8), (a, b, first + 2 * (i % 8)))

        return many

    same = alone(tmp_path / "same", build(20))
    other = alone(tmp_path / "other", build(21))
    assert abs(same - other - 200) <= 8
    assert alone(tmp_path / "off", build(20), gpu__sm__register_ports=0) == other


@pytest.mark.parametrize(
    ("lanes", "width", "waves", "first"),
    [
        (strided(SHARED, 4), 4, 1, 1),
        (strided(SHARED, 0), 4, 1, 1),
        (strided(SHARED, 8), 4, 2, 2),
        (strided(SHARED, 128), 4, 32, 32),
        (strided(SHARED, 132), 4, 1, 1),
        (strided(SHARED, 16), 16, 4, 4),
        (strided(SHARED, 0), 16, 2, 1),
        (strided(SHARED, 4), 16, 2, 1),
        (strided(SHARED, 8), 8, 2, 2),
        (strided(SHARED, 4), 8, 2, 1),
    ],
)
def test_bank_conflicts_are_counted_from_the_addresses(tmp_path, lanes, width, waves, first):
    name = {4: "LDS", 8: "LDS.64", 16: "LDS.128"}[width]
    warp = Warp().op(name, 4, (2,), lanes, width)
    store = converted(write(tmp_path, ((1, 1, 1), 32, {(0, 0, 0): [warp.end()]}, {})))
    assert store.kernel(0, "rows")["wavefronts"].max() == waves
    for word, want in (("words", waves), ("first_word", first)):
        ops = trace_job(store).kernels[0].program.lowered(config(gpu__sm__smem_conflicts=word).encoded()).ops
        assert ops["smem"].sum() == want


# ---- jobs ----


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
    tables = job.kernels[1].program.lowered(config().encoded())
    assert tables.patterns["arg"].tolist() == [0, 1]
    lowered, _ = lowered_of(job, "tb_static", tiny())
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
    assert len(job.kernels[0].footprint.touched(3).tb) == 0
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
    store = Store(path)
    at = store.directory["arrays"]["accesses"][0] + 8 * store.kernels[1].first_access
    data[at] ^= 1
    path.write_bytes(data)
    assert execute(trace_job(Store(path), [1]), "stream").totals.tbs_done == 12
    with pytest.raises(WorkloadError, match="kernel 2: accesses: damaged"):
        trace_job(Store(path))


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
            execute(trace_job(Store(path)), "stream")
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
            Store(path)
    path.write_bytes(good[:8] + b"\x63" + good[9:])
    with pytest.raises(WorkloadError, match="another version"):
        Store(path)
    with pytest.raises(WorkloadError, match="none"):
        Store(tmp_path / "none")


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_wrong_numbers_with_right_checksums_are_refused_or_run(tmp_path_factory, data):
    """What passes the checksums is checked again: a file may have been written by anybody."""
    store = _wrong_store(tmp_path_factory)
    name = data.draw(
        st.sampled_from(["rows", "items", "classes", "places", "shapes", "entries", "tb_rows", "blocks"])
    )
    array = store.kernel(0, name).copy()
    if len(array) == 0:
        return
    row = data.draw(st.integers(0, len(array) - 1))
    raw = array.view(np.uint8).reshape(len(array), -1)
    raw[row, data.draw(st.integers(0, raw.shape[1] - 1))] = data.draw(st.integers(0, 255))
    real = store.kernel

    class Changed:
        def __getattr__(self, other):
            return getattr(store, other)

        def kernel(self, number, what):
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
