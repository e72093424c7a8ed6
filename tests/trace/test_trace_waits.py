"""Converted traces: nothing is used before it has come, and groups of copies are waited for one by one."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pysim.errors import WorkloadError
from pysim.opcodes import OPCODES
from pysim.trace.job import trace_job
from tests.core.harness import config, execute

from .made_traces import SHARED, A, B, C, Warp, converted, strided, write
from .test_trace_lower import NAMES, count_of
from .text import header, tb, text

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
    """Registers of an instruction: a global address has two, a wide access width / 4."""
    wide = max(1, row["width"] // 4) if row["width"] and row["space"] else 1
    first = 2 if row["width"] and OPCODES[row["opcode"]].space in ("global", "generic") else 1
    read, written = set(), set()
    for i in range(row["srcs"]):
        read |= {int(row["src"][i]) + j for j in range(first if i == 0 else wide)}
    for i in range(row["dsts"]):
        written |= {int(row["dst"][i]) + j for j in range(wide)}
    return read, written


def check_waits(store):
    """Run the ops of the first class with blocks of one instruction beside its items."""
    conf = config(gpu__sm__block_max=1)
    tables = trace_job(store).kernels[0].program.lower(conf.encoded())
    rows, items = (
        store.kernel_array(0, "rows"),
        store.kernel_array(0, "items")[: store.kernel_array(0, "classes")["items"][0]],
    )
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
    ops = trace_job(store).kernels[0].program.lower(config().encoded()).ops
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
    tables = trace_job(store).kernels[0].program.lower(config(gpu__sm__block_max=1).encoded())
    rows, items, ops = store.kernel_array(0, "rows"), store.kernel_array(0, "items"), tables.ops
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
    ran = execute(job, "stream", config("h200"))
    assert ran.kernels["warp_instructions"].sum() == 13
    each = bytes_ // len(addresses)
    touched = {
        b // 32
        for turn in range(3)
        for a in addresses
        for b in range(a + turn * 65536, a + turn * 65536 + each)
    }
    assert ran.kernels["load_sectors"].sum() >= len(touched)
    found = job.kernels[0].footprint.sector_runs(1)
    assert (found.hi - found.lo).sum() == len(touched)
    # 32,768 multiply-adds each; the device's instruction has 2,048 at 340 a cycle, warp groups have 512
    work = 32768 / 2048 * 340 / 512 * ran.values["gpu.sm.tensor_interval"]
    assert ran.sms["work"]["tensor"].sum() == pytest.approx(3 * work, rel=0.01)


def test_bulk_copies_have_a_limit(tmp_path):
    (tmp_path / "kernel-1.traceg").write_bytes(bulk(1 << 21, [A]))
    (tmp_path / "kernelslist.g").write_text("kernel-1.traceg\n")
    with pytest.raises(WorkloadError, match=r"\.traceg:\d+: a bulk copy of 2097152 bytes"):
        converted(tmp_path)


# ---- times ----
