"""Requests that join others on their way, of SMs of a GPC and of a warp's stores; what DRAM delivers."""

import csv

import numpy as np
import pytest

from pysim._ffi import ffi, lib
from pysim.engine.simulation import Sim
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.micro import read
from pysim.workloads.registry import make
from tests.support.measured import measured_table

from .harness import config, execute, lowered_of, tiny

ROWS = measured_table("h200_window.csv")
SMS, CHUNK = 6, 1 << 14
ONE_GPC = {"gpu__noc__join_loads": 4, "gpu__gpcs": 1}


def shared_read(warps=8, tbs=SMS):
    """Every SM reads the same bytes at about the same time, past L1."""
    memory = Memory()
    return Job("shared", [read(memory, tbs, warps, CHUNK, unroll=2, shared=True, bypass_l1=True)])


def whole(tensor):
    """Every TB touches all of a tensor of one row."""
    return lambda tbs: np.tile(np.array([[0, 1, 0, tensor.cols]], np.int64), (len(tbs), 1))


def stores(strides, count=8, *, op="store", lane=16):
    """One warp stores 4 B a lane, ``lane`` bytes apart, ``count`` times; ``strides``: where, by number."""
    memory = Memory()
    target = memory.tensor("out", 1, 1 << 14, 4)
    code = Code()
    for i in range(count):
        getattr(code, op)(0, Pattern(0, 4, base=strides(i), s0=lane))
    code.exit()

    program = Program("stores", (tuple(code.ops),), 1, 16, 0, 1)
    return Job(
        "stores", [Kernel("stores", program, (1, 1, 1), (target,), (Access(target, "write", whole(target)),))]
    )


def cycles(job, gpu):
    return execute(job, "stream", gpu).cycles


def read_sectors(stride, gpu):
    """DRAM sectors read by a warp that loads one sector of each ``stride`` bytes."""
    memory = Memory()
    source = memory.tensor("in", 1, 1 << 14, 4)
    code = Code()
    code.load(0, Pattern(0, 4, s0=stride))
    code.wait(0)
    code.exit()

    program = Program("load", (tuple(code.ops),), 1, 16, 0, 1)
    kernel = Kernel("load", program, (1, 1, 1), (source,), (Access(source, "read", whole(source)),))
    return int(execute(Job("load", [kernel]), "stream", gpu).slices["dram_read_sectors"].sum())


@pytest.mark.parametrize(("gpcs", "least", "most"), [(1, 2, 2.8), (2, 2, 3.2), (3, 3, 4.2)])
def test_sms_of_a_gpc_ask_once(gpcs, least, most):
    alone = execute(shared_read(), "stream", tiny())
    ran = execute(shared_read(), "stream", tiny(**ONE_GPC | {"gpu__gpcs": gpcs}))
    count, wanted = ran.slices, int(ran.sms["work"]["load_sectors"].sum())
    assert wanted == int(alone.sms["work"]["load_sectors"].sum()) == SMS * CHUNK // 32
    assert int(count["sectors_read"].sum()) + int(count["joined"].sum()) == wanted
    # some requests come late and are asked again
    assert least <= int(count["sectors_read"].sum()) / (CHUNK // 32) < most
    assert int(alone.slices["joined"].sum()) == 0


def rows_of(caches):
    with ROWS.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["caches"] == caches]


def measured():
    """The share of a second SM's sectors that joined the first one's, by how much later it asked; misses."""
    found = {}
    for row in rows_of("empty"):
        if row["second"] == "16" and int(row["later"]):  # those of the first part are not told apart
            found.setdefault(int(row["later"]), []).append(2 - int(row["sectors"]) / 128)
    return {later: np.clip(np.mean(each), 0, 1) for later, each in found.items()}


def reader(source, delay=0, stream=0, tbs=1, warps=1):
    """TBs whose warps read a line every 5,000 cycles, 4 of each of 16 blocks of 4 KiB."""
    code = Code()
    if delay:
        code.delay(delay)
    for line in range(64):
        code.load(0, Pattern(0, 4, base=line // 4 * 4096 + line % 4 * 128, s0=4), bypass_l1=True)
        code.delay(5000)  # it waits behind that, so that TBs stay as far apart as they are
        code.wait(0)
    code.exit()

    program = Program("read", (tuple(code.ops),), warps, 16, 0, 1)
    return Kernel("read", program, (tbs, 1, 1), (source,), (Access(source, "read", whole(source)),), stream)


def simulated(caches, later):
    """How much later a second SM asked, by how many times the sectors L2 was asked, and its requests."""
    source = Memory().tensor("in", 1, 1 << 16, 4)
    kernels = [reader(source)] * (caches == "kept")
    events = [(0, 2)] if kernels else []
    kernels += [reader(source, 100), reader(source, 100 + later, 1)]
    ran = execute(Job("pair", kernels, events), "stream", config("h200", gpu__gpcs=1))
    first, second = ran.tbs["start"][-2:] / ran.values["gpu.clock"]
    asked, requests = (int(ran.slices[name].sum()) for name in ("sectors_read", "requests"))
    return later + second - first, asked / 256, requests


@pytest.mark.parametrize("later", [100, 200, 300, 400, 500, 600, 700, 900])
def test_how_late_a_load_joins_one_that_misses(later):
    """Measured: 370 and 530 cycles (home here, across) behind one that DRAM answers."""
    shares = measured()
    at, asked, _ = simulated("empty", later)
    want = np.interp(at, sorted(shares), [shares[k] for k in sorted(shares)])
    assert 2 - asked == pytest.approx(want, abs=0.3)


def behind():
    """The share of loads that joined one so many cycles before them, by cycles (h200_behind.csv)."""
    found = {}
    with ROWS.with_name("h200_behind.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            loads, joined = found.get(int(row["cycles"]), (0, 0))
            found[int(row["cycles"])] = loads + int(row["loads"]), joined + int(row["joined"])
    return {cycles: joined / loads for cycles, (loads, joined) in found.items()}


def test_how_late_a_load_joins_one_that_hits():
    """Measured load by load: 56 to 76 cycles, though hits of the other half's lines take 32 more."""
    shares = behind()
    all_join = max(cycles for cycles, share in shares.items() if share > 0.95)
    none_joins = min(cycles for cycles, share in shares.items() if share < 0.05)
    assert (all_join, none_joins) == (48, 72)
    asked = [simulated("kept", later)[:2] for later in range(40, 100, 4)]
    assert all_join + 8 <= max(at for at, times in asked if times == 2) <= none_joins
    assert all_join + 8 <= min(at for at, times in asked if times == 3) <= none_joins + 8


@pytest.mark.parametrize("sms", [1, 2, 4, 5, 8, 9, 13, 16])
def test_how_many_sms_a_request_serves(sms):
    """Measured: up to four."""
    source = Memory().tensor("in", 1, 1 << 16, 4)
    ran = execute(Job("many", [reader(source, tbs=sms)]), "stream", config("h200", gpu__gpcs=1))
    asked = int(ran.slices["sectors_read"].sum()) / 256
    seen = [r for r in rows_of("empty") if r["second"] == str(-sms) and r["later"] == "0"]
    assert asked == -(-sms // 4) == round(int(seen[-1]["sectors"]) / 128)
    assert len(set(ran.tbs["sm"])) == sms


@pytest.mark.parametrize("warps", [1, 2, 4, 5, 8])
def test_those_of_one_sm_join_as_well(warps):
    """Measured (``pieces.cu``): two halves of a row that one SM asks for by turns are one request."""
    source = Memory().tensor("in", 1, 1 << 16, 4)
    ran = execute(Job("one", [reader(source, warps=warps)]), "stream", config("h200", gpu__gpcs=1))
    assert int(ran.slices["sectors_read"].sum()) / 256 == -(-warps // 4)
    assert int(ran.slices["joined"].sum()) == 256 * (warps - -(-warps // 4))


def test_one_that_joins_does_not_cross_the_fabric_again():
    """Lines of either half are on their way: whoever joins adds nothing to what slices of both are asked."""
    counts = [simulated("empty", later)[1:] for later in (20, 250, 5000 * 64)]
    assert counts[0] == counts[1]
    assert counts[0][0] == 1
    assert counts[2][0] == 2
    assert counts[2][1] > 1.5 * counts[0][1]


def test_lines_cross_the_fabric_once():
    """Where it is slow, four SMs have lines of the other half as soon as one (h100_fabric.csv).

    Those that do not join each other do not wait again for what the first one waits for.
    """
    source = Memory().tensor("in", 1, 1 << 16, 4)
    took = {}
    for sms, joins in ((1, 4), (4, 4), (4, 0)):
        slow = {"gpu__l2__fabric_bandwidth": 0.5, "gpu__noc__join_loads": joins, "gpu__gpcs": 1}
        slow["gpu__l2__chunked"] = 0  # so few lines would not lie in both halves alike
        job = Job("many", [reader(source, tbs=sms)])
        took[sms, joins] = execute(job, "stream", config("h200", **slow)).us
    assert took[4, 4] == pytest.approx(took[1, 4], rel=0.02)
    assert 0.8 * took[1, 4] < took[4, 0] < 1.02 * took[1, 4]


@pytest.mark.parametrize("gpcs", [3, 5])
def test_a_gpc_lies_at_one_half(gpcs):
    """Also the one in the middle: loads of its SMs meet there, whichever half the line is of."""
    source = Memory().tensor("in", 1, 1 << 16, 4)
    conf = config("h200", gpu__gpcs=gpcs, gpu__sms=4 * gpcs, gpu__tpc_sms=1)
    ran = execute(Job("many", [reader(source, tbs=4 * gpcs)]), "stream", conf)
    assert sorted(ran.tbs["sm"]) == list(range(4 * gpcs))
    assert int(ran.slices["sectors_read"].sum()) / 256 == gpcs


@pytest.mark.parametrize("later", [0, 100, 140, 180, 220, 260, 400])
def test_without_gpcs_each_half_has_half_of_the_sms(later):
    """As with --without clusters: SMs of both halves never join, not even what has come across."""
    source = Memory().tensor("in", 1, 1 << 16, 4)
    kernels = [reader(source, 100), reader(source, 100 + later, 1)]
    conf = config("h200", gpu__gpcs=1, gpu__sms=2, gpu__tpc_sms=1)
    ran = execute(Job("halves", kernels), "stream", conf)
    assert sorted(ran.tbs["sm"]) == [0, 1]
    assert int(ran.slices["joined"].sum()) == 0
    assert int(ran.slices["sectors_read"].sum()) / 256 == 2


@pytest.mark.parametrize("l2", ["hits", "misses"])
def test_a_gpc_takes_what_crosses_as_what_does_not(l2):
    """Half of the lines are fetched from the other half where they are new; what links carry is the same."""
    bound, sms, warps, chunk = 4, 8, 32, 1 << 18
    gpu = {"gpu__gpcs": 2, "gpu__sms": 2 * sms, "gpu__noc__gpc_link": bound, "gpu__noc__join_loads": 0}
    memory = Memory()
    kernel = read(memory, 2 * sms, warps, chunk, unroll=4, bypass_l1=True)
    ran = execute(Job("read", [kernel] * 2), "stream", config("h200", **gpu))
    tbs = ran.tbs[ran.tbs["kernel"] == (l2 == "hits")]
    took = int(tbs["end"].max()) - int(tbs["start"].min())
    rate = sms * chunk / (took / 1024 * 1.98)
    # a half of 47 slices has twelve groups, of which one has three slices only
    assert 0.85 * 47 / 4 * bound < rate < 1.02 * 47 / 4 * bound


def lines_of(groups, number, first):
    """Return which lines of 128 B from one on lie in those groups of slices, of either half."""
    made, _ = lowered_of(make("empty"), "stream", config("h200"))
    out, found = ffi.new("uint32_t[3]"), []
    with Sim(made) as sim:
        for line in range(1 << 13):
            lib.gs_line_home(sim.sim, first + line, out, out + 1, out + 2)
            if out[0] % 47 // 4 in groups:
                found.append(line)
    return found[:number]


def rate_of(groups, sms, warps, link, join):
    """Return the bytes a cycle that SMs of a GPC get of lines of some groups of slices that all load.

    There are two such GPCs, one at each half of L2.
    """
    turns = 16
    gpu = {"gpu__gpcs": 2, "gpu__sms": 2 * sms, "gpu__tpc_sms": 1}
    gpu |= {"gpu__noc__gpc_link": link, "gpu__noc__join_loads": join}
    source = Memory().tensor("in", 1, 1 << 20, 4)
    lines = lines_of(groups, 64, source.address // 128)
    code = Code()
    mark = code.loop_begin()
    for line in lines:
        code.load(0, Pattern(0, 4, base=128 * line, s0=4), bypass_l1=True)
    code.wait(0)
    code.loop_end(mark, turns)
    code.exit()
    program = Program("read", (tuple(code.ops),), warps, 16, 0, 1)
    reads = (Access(source, "read", whole(source)),)
    kernel = Kernel("read", program, (2 * sms, 1, 1), (source,), reads)
    ran = execute(Job("read", [kernel] * 2), "stream", config("h200", **gpu))
    return sms * warps * len(lines) * turns * 128 / ran.kernel_cycles(1)


@pytest.mark.parametrize("groups", [(0,), (11,), (0, 5)])
def test_each_group_of_slices_has_a_link_to_a_gpc(groups):
    """Lines of two groups come twice as fast as those of one."""
    rate = rate_of(groups, 8, 4, 4, 0)
    assert 0.95 * 4 * len(groups) < rate < 1.02 * 4 * len(groups)


@pytest.mark.parametrize(("sms", "warps", "passes"), [(2, 1, 1), (1, 2, 2), (4, 1, 1)])
def test_a_reply_passes_once_to_each_sm(sms, warps, passes):
    """SMs that join get one reply; what joins one of its own SM gets another."""
    rate = rate_of((0,), sms, warps, 2, 4)
    assert rate / 2 == pytest.approx(sms * warps / passes, rel=0.1)


@pytest.mark.parametrize("bound", [0, 2, 16])
@pytest.mark.parametrize(("quantum", "quanta"), [(7, None), (20, None), (50, None), (0, (3,)), (20, (3, 11))])
def test_links_to_gpcs_do_not_depend_on_the_quantum(quantum, quanta, bound):
    """Nor where nothing is asked of L2 for long, between bursts."""
    source = Memory().tensor("in", 1, 1 << 16, 4)
    code = Code()
    mark = code.loop_begin()
    for i in range(2):
        code.load(i, Pattern(0, 4, base=128 * i, bx=2048, warp=256, s0=4), bypass_l1=True)
    code.wait(0)
    code.wait(1)
    code.compute(fp64=1000)
    code.loop_end(mark, 6)
    code.exit()
    program = Program("bursts", (tuple(code.ops),), 8, 16, 0, 1)
    kernel = Kernel("bursts", program, (SMS, 1, 1), (source,), (Access(source, "read", whole(source)),))
    gpu = {"gpu__gpcs": 1, "gpu__sms": SMS, "gpu__noc__gpc_link": bound}
    want = execute(Job("bursts", [kernel]), "stream", config("h200", **gpu))
    how = {"quanta": quanta} if quanta else {}
    conf = config("h200", sim__quantum=quantum, **gpu)
    ran = execute(Job("bursts", [kernel]), "stream", conf, threads=(2,), **how)
    assert (ran.hash, ran.end) == (want.hash, want.end)
    if bound == 2:
        free = execute(Job("bursts", [kernel]), "stream", config("h200", **gpu | {"gpu__noc__gpc_link": 0}))
        assert free.end < want.end


def test_a_slice_looks_up_loads_while_it_sends_others():
    """Sectors alone take the look-up, lines what is sent of them, by turns the longer of the two sums."""
    gpu = {"gpu__l2__request": 10.0, "gpu__l2__slice_bytes": 8}
    took = {}
    for name, lanes in {"sectors": [8], "lines": [32], "both": [8, 32]}.items():
        source = Memory().tensor("in", 1, 1 << 16, 4)
        code = Code()
        mark = code.loop_begin()
        for i in range(16):
            mask = (1 << lanes[i % len(lanes)]) - 1
            code.load(0, Pattern(0, 4, warp=2048, base=128 * i, s0=4, lanes=mask), bypass_l1=True)
        code.wait(0)
        code.loop_end(mark, 32)
        code.exit()
        program = Program("read", (tuple(code.ops),), 8, 16, 0, 1)
        kernel = Kernel("read", program, (SMS, 1, 1), (source,), (Access(source, "read", whole(source)),))
        took[name] = execute(Job("read", [kernel] * 2), "stream", tiny(**gpu)).kernel_cycles(1)
    alone = (took["sectors"] + took["lines"]) / 2
    # look-up and data take 10 and 4 cycles, 10 and 16: by turns 20 for both, not 26
    assert took["lines"] / took["sectors"] == pytest.approx(16 / 10, rel=0.1)
    assert took["both"] / alone == pytest.approx(20 / 26, rel=0.1)


def test_one_sm_joins_nobody():
    ran = execute(shared_read(tbs=1), "stream", tiny(**ONE_GPC))
    assert int(ran.slices["joined"].sum()) == 0


@pytest.mark.parametrize("quantum", [0, 20])
def test_joins_do_not_depend_on_the_quantum(quantum):
    want = execute(shared_read(), "stream", tiny(**ONE_GPC), threads=(1,))
    ran = execute(shared_read(), "stream", tiny(sim__quantum=quantum, **ONE_GPC), threads=(2,))
    assert ran.hash == want.hash


def test_two_stores_to_the_same_sectors_are_one():
    sectors = {}
    for joined in (0, 1):
        gpu = tiny(gpu__l1__join_stores=joined)
        ran = execute(stores(lambda i: 4 * (i % 4)), "stream", gpu)
        sectors[joined] = int(ran.sms["work"]["store_sectors"].sum())
    # 8 stores of 16 sectors; a third one does not join
    assert sectors == {0: 128, 1: 64}


def test_stores_to_other_sectors_do_not_join():
    ran = execute(stores(lambda i: 512 * (i % 2)), "stream", tiny(gpu__l1__join_stores=1))
    assert int(ran.sms["work"]["store_sectors"].sum()) == 128


@pytest.mark.parametrize(
    ("op", "lane", "lines"), [("store", 16, 4), ("store", 32, 8), ("store", 4, 0), ("reduce", 16, 0)]
)
def test_a_line_written_in_part_holds_the_port(op, lane, lines):
    """As measured for stores (h200_stores.csv); nothing is known of reductions, and whole sectors do not."""
    count = 64
    job = stores(lambda i: 512 * (i % 64), count, op=op, lane=lane)
    without, held = (cycles(job, tiny(gpu__noc__write_partial=each)) for each in (0, 64))
    longer = count * lines * 64
    assert held - without == pytest.approx(longer, rel=0.1, abs=2)


def test_pairs_of_sectors_come_from_dram():
    assert read_sectors(128, tiny()) == 32
    assert read_sectors(128, tiny(gpu__l2__fill=64)) == 64
    assert read_sectors(32, tiny(gpu__l2__fill=64)) == 32


@pytest.mark.parametrize(("apart", "joined"), [(0, 4), (64, 0)])
def test_loads_join_only_if_they_ask_for_the_same_sectors(apart, joined):
    """Measured (``pieces.cu``): parts of a line that differ do not, nor one within the other."""
    source = Memory().tensor("in", 1, 1 << 12, 4)
    code = Code()
    # both TBs ask for one line, or the second one for its last half and the first half of the next
    code.load(0, Pattern(0, 4, bx=apart, s0=4), bypass_l1=True)
    code.wait(0)
    code.exit()

    program = Program("read", (tuple(code.ops),), 1, 16, 0, 1)
    kernel = Kernel("read", program, (2, 1, 1), (source,), (Access(source, "read", whole(source)),))
    ran = execute(Job("parts", [kernel]), "stream", tiny(**ONE_GPC))
    assert len(set(ran.tbs["sm"])) == 2
    assert int(ran.slices["joined"].sum()) == joined
    assert int(ran.slices["sectors_read"].sum()) == 8 - joined
