"""What goes in comes out: work, time and requests add up, exactly."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pysim._ffi import ffi, lib
from pysim.engine.simulation import Sim
from pysim.isa import OPS
from pysim.params import PIPES
from pysim.program.job import tb_variants
from pysim.program.occupancy import allocated_smem
from tests.support.walker import walk

from .harness import SCHEMES, execute, lowered_of, tiny, total_of
from .workloads_small import JOBS

CASES = [(name, scheme) for name in JOBS for scheme in SCHEMES]
_KNOWN = {}


@pytest.fixture(params=CASES, ids=lambda p: "-".join(p))
def ran(request):
    if request.param not in _KNOWN:
        _KNOWN[request.param] = execute(JOBS[request.param[0]](), request.param[1])
    return _KNOWN[request.param]


def expected(job, values):
    """Instructions, pipe time and sectors of every kernel, from the independent walker."""
    made = []
    memo = {}
    for kernel in job.kernels:
        key = (id(kernel.program), kernel.grid, tuple(t.address % 128 for t in kernel.args))
        if key not in memo:
            memo[key] = _walked(kernel, values)
        made.append(memo[key])
    return made


def _walked(kernel, values):
    count = Counter()
    for tb in range(kernel.tbs):
        for warp in range(kernel.program.warps):
            for step in walk(kernel, tb, warp):
                if step.kind == "COMPUTE":
                    count["instructions"] += step.op.issue
                    count["smem"] += step.op.smem * values["gpu.sm.smem_interval"]
                    for (pipe, _), many in zip(PIPES, step.op.pipes, strict=True):
                        count[pipe] += many * values[f"gpu.sm.{pipe}_interval"]
                    if step.op.pipes[0] and values["gpu.sm.register_ports"]:
                        count["fp32"] += 64 * step.op.conflicts
                elif step.kind in ("BARRIER", "EXIT"):
                    count["instructions"] += 1
                elif step.kind in ("LOAD", "STORE", "REDUCE"):
                    count["instructions"] += 1
                    way = "load" if step.kind == "LOAD" else "store"
                    count[f"{way}_sectors"] += len(np.unique(step.addresses // 32))
                    count[f"{way}_lines"] += len(np.unique(step.addresses // 128))
    return count


def test_every_tb_runs_once(ran):
    pairs = list(zip(ran.tbs["kernel"].tolist(), ran.tbs["tb"].tolist(), strict=True))
    assert pairs == [(k, tb) for k, kernel in enumerate(ran.job.kernels) for tb in range(kernel.tbs)]
    assert int(ran.totals.tbs_done) == len(pairs) == int(ran.sms["tbs"].sum())
    assert ran.kernels["tbs"].tolist() == [k.tbs for k in ran.job.kernels]


def test_work_is_what_the_programs_say(ran):
    want = expected(ran.job, ran.values)
    for record, count in zip(ran.kernels, want, strict=True):
        assert record["warp_instructions"] == count["instructions"]
        assert record["store_sectors"] == count["store_sectors"]
        assert record["load_sectors"] <= count["load_sectors"]
    total = sum(want, Counter())
    work = {name: int(ran.sms["work"][name].sum()) for name in ran.sms["work"].dtype.names}
    for pipe, _ in (*PIPES, ("smem", "")):
        assert work[pipe] == total[pipe], pipe
    assert work["warp_instructions"] == total["instructions"]
    assert work["l1_lines"] == total["load_lines"]
    assert work["store_sectors"] == total["store_sectors"]
    # a line is found, joined or sent
    assert (
        work["l2_requests"] == total["store_lines"] + work["l1_lines"] - work["l1_hits"] - work["l1_merged"]
    )


def test_past_l1_every_sector_reaches_l2():
    for name in ("gemm_edges", "gru", "copy", "split_k", "random_dag"):
        job = JOBS[name]()
        made, _ = lowered_of(job, "stream", tiny())
        made.launches["bypass"] = 0xFF
        with Sim(made) as sim:
            sim.run(1, 0, 1 << 16, False, lambda _: None, lambda: False)
            kernels = sim.fetch("gs_kernels_get", "gs_kernel_record", len(job.kernels))
        want = expected(job, made.values)
        assert kernels["load_sectors"].tolist() == [c["load_sectors"] for c in want], name


def test_l2_sees_what_sms_send(ran):
    """And what the scheduler does, a request for one to four sectors."""
    work, l2 = ran.sms["work"], ran.slices
    loads, stores = (int(work[f"{way}_sectors"].sum()) for way in ("load", "store"))
    read, written = (int(l2[f"table_{way}"].sum()) for way in ("read", "written"))
    own = int(l2["requests"].sum()) - int(work["l2_requests"].sum())
    assert own <= read + written <= 4 * own
    assert l2["sectors_read"].sum() - read == loads == ran.kernels["load_sectors"].sum()
    assert l2["sectors_written"].sum() - written == stores == ran.kernels["store_sectors"].sum()
    assert (l2["pending_hits"] <= l2["hits"]).all()
    # whatever is not a hit reads DRAM once
    assert ((l2["requests"] - l2["hits"]) == l2["row_hits"] + l2["row_misses"]).all()
    assert (l2["dram_read_sectors"] <= l2["sectors_read"]).all()
    assert (l2["dram_write_sectors"] <= l2["sectors_written"]).all()
    assert (l2["busy"] <= ran.end).all()


def test_work_of_a_variant(ran):
    for number, kernel in enumerate(ran.job.kernels):
        work = ran.costs[ran.index[number]].work
        many = np.bincount(tb_variants(kernel), minlength=8)
        assert (work["warp_instructions"].astype(np.int64) * many).sum() == ran.kernels[number][
            "warp_instructions"
        ]
    for pipe in (*(name for name, _ in PIPES), "smem"):
        total = 0
        for number, kernel in enumerate(ran.job.kernels):
            work = ran.costs[ran.index[number]].work[pipe].astype(np.int64)
            total += int((work * np.bincount(tb_variants(kernel), minlength=8)).sum())
        assert total == ran.sms["work"][pipe].sum()


def test_sm_time_adds_up(ran):
    idle = total_of(ran.sms, "idles")
    assert (ran.sms["busy"].astype(np.int64) + idle == ran.end).all()
    assert idle.sum() == total_of(ran.kernels, "idles").sum()


def test_busy_is_the_union_of_residences(ran):
    for number, record in enumerate(ran.sms):
        mine = ran.tbs[ran.tbs["sm"] == number]
        # an SM is busy from dispatch to release, so at least from dispatch to end
        covered, until = 0, -1
        for row in np.sort(mine[["dispatch", "end"]]):
            lo, hi = int(row["dispatch"]), int(row["end"])
            covered += max(0, hi - max(lo, until))
            until = max(until, hi)
        assert covered <= record["busy"] <= ran.end


def test_stalls_add_up(ran):
    for name in ran.sms["stalls"].dtype.names:
        assert ran.sms["stalls"][name].sum() == ran.kernels["stalls"][name].sum(), name
    assert (ran.kernels["stalls"]["issued"] == ran.kernels["warp_instructions"]).all()


def residence(ran, number):
    """Whole cycles of each TB of a kernel: the first edge at or after the start, to the end."""
    period = ran.values["gpu.clock"]
    mine = ran.tbs[ran.tbs["kernel"] == number]
    assert (mine["end"] % period == 0).all()
    return mine["end"].astype(np.int64) // period + -mine["start"].astype(np.int64) // period


def test_warps_are_stalled_or_issue_as_long_as_they_are_there(ran):
    spent = total_of(ran.kernels, "stalls")
    for number, kernel in enumerate(ran.job.kernels):
        cycles = int(residence(ran, number).sum())
        # a TB lives as long as its last warp
        assert cycles <= spent[number] <= cycles * kernel.program.warps
        if kernel.program.warps == 1:
            assert cycles == spent[number]


def test_kernel_busy_is_its_tbs(ran):
    for number in range(len(ran.job.kernels)):
        mine = ran.tbs[ran.tbs["kernel"] == number]
        assert int((mine["end"] - mine["start"]).sum()) == ran.kernels[number]["busy"]
        assert int(mine["end"].max()) == ran.kernels[number]["last_end"]
        assert int(mine["dispatch"].min()) == ran.kernels[number]["first_dispatch"]


def test_pipes_are_not_overfull(ran):
    whole = 64 * (ran.end // ran.values["gpu.clock"] + 1)
    for pipe, _ in PIPES:
        assert (ran.sms["work"][pipe] <= 4 * whole).all(), pipe
    assert (ran.sms["work"]["smem"] <= whole).all()
    assert (ran.sms["work"]["warp_instructions"] * 64 <= 4 * whole).all()


def test_samples_add_up(ran):
    for name in ran.sms["work"].dtype.names:
        assert ran.samples["work"][name].sum() == ran.sms["work"][name].sum(), name
    assert ran.samples["warp_cycles"].sum() == total_of(ran.sms, "stalls").sum()


def test_times_are_in_order(ran):
    tbs = ran.tbs
    assert (tbs["ready"] <= tbs["dispatch"]).all()
    assert (tbs["dispatch"] + ran.values["gpu.cp.tb_start_latency"] == tbs["start"]).all()
    assert (tbs["start"] < tbs["end"]).all()
    assert int(tbs["end"].max()) < ran.end
    k = ran.kernels
    assert (k["enqueued"] <= k["admitted"]).all()
    assert (k["admitted"] <= k["ready"]).all()
    assert (k["ready"] <= k["first_dispatch"]).all()
    assert (k["first_dispatch"] < k["last_end"]).all()
    assert (k["last_end"] < k["released"]).all()


def test_slots_do_not_overlap_and_resources_suffice(ran):
    values, tbs = ran.values, ran.tbs
    for sm in range(values["gpu.sms"]):
        mine = np.sort(tbs[tbs["sm"] == sm], order="dispatch")
        for slot in np.unique(mine["slot"]):
            rows = mine[mine["slot"] == slot]
            assert slot < values["gpu.sm.tbs"]
            assert (rows["dispatch"][1:] > rows["end"][:-1]).all()
        steps = []
        for row in mine:
            kernel = ran.job.kernels[row["kernel"]]
            unit = values["gpu.sm.register_unit"]
            registers = -(-kernel.program.registers * 32 // unit) * unit * kernel.program.warps
            need = np.array([kernel.program.warps, registers, allocated_smem(kernel, values), 1])
            steps += [(int(row["dispatch"]), 1, need), (int(row["end"]), 0, -need)]
        held = np.zeros(4, np.int64)
        room = np.array([values[f"gpu.sm.{w}"] for w in ("warps", "registers", "smem", "tbs")])
        for _, _, need in sorted(steps, key=lambda s: s[:2]):
            held += need
            assert (held <= room).all()


@pytest.mark.parametrize("name", JOBS)
def test_touches_are_those_of_the_walker(name):
    job = JOBS[name]()
    made, _ = lowered_of(job, "stream", tiny())
    out = ffi.new("uint64_t[]", 1 << 17)
    with Sim(made) as sim:
        for number, kernel in enumerate(job.kernels[:24]):
            for tb in {0, 1, kernel.tbs // 2, kernel.tbs - 2, kernel.tbs - 1} & set(range(kernel.tbs)):
                count = lib.gs_touches(sim.sim, number, tb, out, len(out))
                got = [int(x) for x in out[0:count]]
                want = []
                for warp in range(kernel.program.warps):
                    for step in walk(kernel, tb, warp):
                        if step.kind not in ("LOAD", "STORE", "REDUCE"):
                            continue
                        write = 0 if step.kind == "LOAD" else 1 << 63
                        masks = Counter()
                        for sector in np.unique(step.addresses // 32).tolist():
                            masks[sector // 4] |= 1 << sector % 4
                        want.append({line << 4 | mask | write for line, mask in masks.items()})
                at = 0
                for group in want:
                    assert set(got[at : at + len(group)]) == group
                    at += len(group)
                assert at == count
    assert len(OPS) == lib.GS_OPS
