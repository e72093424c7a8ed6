"""The constants that are simulated: a row each, under the key of the measurement."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from pysim.program.job import Kernel, Memory
from pysim.workloads.kernels.micro import chase

from . import kernels as make
from .bench import Bench

Value = Callable[[Bench], float]


class Row(NamedTuple):
    """A constant: the measurement's key, its unit, and what a simulated GPU gives for it."""

    key: str
    unit: str
    group: str
    value: Value


PIPES = {
    "ffma": "fp32",
    "fadd": "fp32",
    "hfma2": "fp16",
    "imad": "int",
    "iadd3": "int",
    "lop3": "int",
    "mufu_ex2": "sfu",
    "mufu_rsq": "sfu",
    "mufu_lg2": "sfu",
    "mufu_tanh": "sfu",
    "dfma": "fp64",
    "shfl": "shfl",
}
SHAPES = ((1, 32), (132, 128), (132, 1024), (1056, 256))
# launch mode in the words of the keys, and its scheme
SCHEMES = {"stream": "stream", "graph": "graph", "pdl": "pdl", "graph_pdl": "pdl:graph"}
GRIDS = (132, 264, 1056, 4224, 16896, 67584, 270336, 1081344)
EVENTS = "event_to_event_us.nothing_between"

# keys without a simulated counterpart, and why
_SKIPPED = (
    (r"pdl_", "steps of 32 ns around atomics: see the periods"),
    (r"grid_sync|hand_grid_barrier|semaphore_|tile_handoff", "see the chains of configs/validate.py"),
    (r"_gap_ns|kernel_first_start_to|stream_ns_primary", "steps of 32 ns around atomics: see the periods"),
    (r"host_cost_us\.", "host calls that overlap the GPU's work"),
    (r"event_to_event_us\.nothing", "cost of the measurement itself"),
    (r"viaddmnmx", "an opcode of its own, no pipe"),
    (
        r"atomic_add_returning|store_plus_threadfence",
        "parts of gpu.sync: see the chains of configs/validate.py",
    ),
    (r"l2_hit_per_sm_line", "one distance from every SM to every slice"),
    (r"sm_clock|globaltimer", "the clock is a parameter"),
    (r"", "a property of the device"),
)


def skipped(key: str) -> str:
    """Return why a key has no row."""
    return next(why for pattern, why in _SKIPPED if re.search(pattern, key))


def _latency(pipe: str) -> Value:
    def value(b: Bench) -> float:
        cycles = b.config.integer("gpu.sm.smem_latency" if pipe == "shfl" else f"gpu.sm.{pipe}_latency")
        return (b.cycles(make.chained(pipe, 1024, cycles)) - b.cycles(make.chained(pipe, 512, cycles))) / 512

    return value


def _throughput(pipe: str) -> Value:
    def value(b: Bench) -> float:
        return 1024 * 64 * 64 / b.cycles(make.arithmetic(pipe, b.sms, 1024, 64, 64))

    return value


def _mma(b: Bench, warps: int) -> float:
    # 8 chains: an instruction's result is needed eight instructions later
    flop = 2 * b.config.device.mma_rate * b.config.number("gpu.sm.tensor_interval")
    return warps * 8 * 4 * 256 * flop / b.cycles(make.arithmetic("tensor", b.sms, warps * 32, 32, 256))


def _mma_sustained(b: Bench) -> float:
    # so long that the clock has settled
    flop = 2 * b.config.device.mma_rate * b.config.number("gpu.sm.tensor_interval")
    share = b.config["gpu.clock_tensor"]
    few, many = (
        b.us(make.arithmetic("tensor", b.sms, 512, 32, n), gpu__clock_tensor=share) for n in (512, 1536)
    )
    return 16 * 8 * 4 * 1024 * flop * b.sms / (many - few) / 1e6


def _mma_latency(b: Bench) -> float:
    cycles = b.config.integer("gpu.sm.tensor_latency")
    return (
        b.cycles(make.chained("tensor", 512, cycles)) - b.cycles(make.chained("tensor", 256, cycles))
    ) / 256


def _arithmetic() -> list[Row]:
    made = []
    for name, pipe in PIPES.items():
        made.append(Row(f"arith_latency_cycles.{name}", "cycles", "pipes", _latency(pipe)))
        key = f"arith_throughput_thread_ops_per_cycle_per_sm.{name}"
        made.append(Row(key, "thread-ops/cycle/SM", "pipes", _throughput(pipe)))
    made.append(Row("mma_m16n8k16_f32f16_latency_cycles", "cycles", "pipes", _mma_latency))
    for warps in (4, 8, 16, 32):
        key = f"mma_m16n8k16_flop_per_cycle_per_sm.warps{warps}"
        made.append(Row(key, "FLOP/cycle/SM", "pipes", partial(_mma, warps=warps)))
    made.append(Row("mma_m16n8k16_sustained_tflops", "TFLOP/s", "pipes", _mma_sustained))
    made.append(
        Row(
            "ffma_sustained_tflops",
            "TFLOP/s",
            "pipes",
            lambda b: 2 * _throughput("fp32")(b) * b.sms * b.ghz / 1000,
        )
    )
    return made


def _steady(b: Bench, job: Callable[[int], Kernel], nbytes: int, few: int, many: int) -> float:
    """Return GB/s of the iterations between two runs of different length."""
    times = [b.body_us(job(n)) for n in (few, many)]
    return (many - few) * nbytes / (times[1] - times[0]) / 1000


def _dram(b: Bench, what: str, tbs: int) -> float:
    once = tbs * 512 * 16
    each = {"read": 4, "write": 1, "copy": 8}[what] * once
    many = max(8, (192 << 20) // each)
    calls: dict[str, Callable[[int, int], Kernel]] = {
        "read": make.read,
        "write": make.write,
        "copy": make.copy,
    }
    # what L2 keeps of written lines comes out of the difference only once L2 is full of them
    full = 0 if what == "read" else -(-2 * b.config.integer("gpu.l2.size") // each)
    few = full + max(2, many // 4)
    return _steady(b, lambda n: calls[what](tbs, n), each, few, few + many)


def _l2_read(b: Bench, mib: int) -> float:
    tbs, nbytes = 4 * b.sms, mib << 20
    steps = make.steps_of(tbs, nbytes)

    def rate(steps: int, fold: int) -> float:
        # a turn is four passes; the first one fills L2
        turn = 4 * tbs * 512 * 16 * steps
        few = max(1, (64 << 20) // turn)
        many = few + max(1, (192 << 20) // turn)
        return _steady(b, lambda n: make.l2_read(tbs, steps, n, fold), turn, few, many)

    if steps < 1:
        return rate(1, round(1 / steps))
    low = int(steps)
    first = rate(low, 1)
    if steps - low < 0.1:
        return first
    return first + (steps - low) * (rate(low + 1, 1) - first)


def _l2_write(b: Bench, mib: int) -> float:
    tbs = 4 * b.sms
    steps = round(make.steps_of(tbs, mib << 20))
    each = tbs * 512 * 16 * steps
    turns = max(2, (128 << 20) // each)
    return _steady(b, lambda n: make.write(tbs, steps, n), each, turns, 2 * turns)


def _l1(b: Bench, width: int) -> float:
    first, second = (b.cycles(make.l1_read(b.sms, width, rounds)) for rounds in (2, 3))
    return 1024 * 64 * 8 * width / (second - first)


def _shared(b: Bench, width: int) -> float:
    return 1024 * 64 * 8 * width / b.cycles(make.shared_read(b.sms, width))


def _bandwidth() -> list[Row]:
    made = [
        Row("dram_read_GBps", "GB/s", "memory", lambda b: _dram(b, "read", 4 * b.sms)),
        Row("dram_write_GBps", "GB/s", "memory", lambda b: _dram(b, "write", 4 * b.sms)),
        Row("dram_copy_GBps_read_plus_write", "GB/s", "memory", lambda b: _dram(b, "copy", 4 * b.sms)),
    ]
    for tbs in (32, 64, 132, 264, 528):
        key = f"dram_read_GBps.ctas512_{tbs}"
        made.append(Row(key, "GB/s", "memory", partial(_dram, what="read", tbs=tbs)))
    for mib in (2, 8, 16, 24, 32, 48, 64, 96):
        made.append(Row(f"l2_read_GBps.set_{mib}MB", "GB/s", "memory", partial(_l2_read, mib=mib)))
    for mib in (8, 24):
        made.append(Row(f"l2_write_GBps.set_{mib}MB", "GB/s", "memory", partial(_l2_write, mib=mib)))
    for name, width in (("v4", 16), ("f32", 4)):
        key = f"l1_hit_bandwidth_B_per_cycle_per_sm.{name}"
        made.append(Row(key, "B/cycle/SM", "memory", partial(_l1, width=width)))
        key = f"shared_bandwidth_B_per_cycle_per_sm.{name}"
        made.append(Row(key, "B/cycle/SM", "memory", partial(_shared, width=width)))
    return made


def _chase(b: Bench, footprint: int, stride: int, *, cold: bool = False, bypass: bool = True) -> float:
    def cycles(passes: int) -> float:
        return b.cycles(chase(Memory(), footprint, stride, passes, bypass_l1=bypass))

    steps = footprint // stride
    return cycles(1) / steps if cold else (cycles(3) - cycles(2)) / steps


def _latencies() -> list[Row]:
    made = []
    for kib in (16, 64):
        key = f"latency_cycles.l1_hit_{kib}KB"
        made.append(
            Row(key, "cycles", "latency", partial(_chase, footprint=kib << 10, stride=128, bypass=False))
        )
    for mib, stride in ((1, 128), (8, 128), (24, 384), (48, 768)):
        key = f"latency_cycles.l2_hit_{mib}MB_cg"
        made.append(Row(key, "cycles", "latency", partial(_chase, footprint=mib << 20, stride=stride)))
    key = "latency_cycles.l2_hit_mean_per_sm"
    made.append(Row(key, "cycles", "latency", lambda b: _chase(b, 528 << 10, 4224)))
    # far apart, so that each step opens a row, as the random steps of the measurement do
    for name, mib, stride in (("64MB", 64, 8192), ("1GB", 256, 65536), ("8GB", 1024, 262144)):
        key = f"latency_cycles.dram_{name}_cold"
        made.append(
            Row(key, "cycles", "latency", partial(_chase, footprint=mib << 20, stride=stride, cold=True))
        )
    made.append(Row("latency_cycles.shared", "cycles", "latency", _latency("shfl")))
    return made


def _period(b: Bench, scheme: str, tbs: int, threads: int, streams: int = 1) -> float:
    few, many = (b.us(make.chain(n, tbs, threads, streams), scheme) for n in (10, 40))
    return (many - few) / 30


def _together(b: Bench, tbs: int, threads: int) -> float:
    inner = 2 if tbs > 100_000 else 10
    time = b.us(make.chain(inner, tbs, threads))
    return (time + b.constants.get(EVENTS, 0.0)) / inner


def _replay(b: Bench, nodes: int) -> float:
    return b.us(make.chain(nodes, 1, 32), "graph") + b.constants.get(EVENTS, 0.0)


def _dispatch_rate(b: Bench, threads: int) -> float:
    return _together(b, GRIDS[-1], threads) * 1000 / GRIDS[-1]


def _launch() -> list[Row]:
    made = []
    for name, scheme in SCHEMES.items():
        for tbs, threads in SHAPES:
            key = f"{name}_kernel_period_us.empty.grid{tbs}_block{threads}"
            call = partial(_period, scheme=scheme, tbs=tbs, threads=threads)
            made.append(Row(key, "us/kernel", "launch", call))
    made.append(
        Row("cross_stream_event_hop_us.empty", "us/hop", "launch", lambda b: _period(b, "stream", 1, 32, 2))
    )
    made.append(
        Row(
            "graph_fork_join_us_per_diamond_3_kernels",
            "us",
            "launch",
            lambda b: (b.us(make.diamonds(40), "graph") - b.us(make.diamonds(10), "graph")) / 30,
        )
    )
    made.append(
        Row(
            "event_to_event_us.one_empty_kernel",
            "us",
            "launch",
            lambda b: b.us(make.empty(1, 32)) + b.constants.get(EVENTS, 0.0),
        )
    )
    made.append(
        Row(
            "host_cost_us.launch_empty",
            "us",
            "launch",
            lambda b: (
                (
                    b.us(make.chain(40, 1, 32), host__submit="eager")
                    - b.us(make.chain(10, 1, 32), host__submit="eager")
                )
                / 30
            ),
        )
    )
    made.append(
        Row(
            "host_cost_us.launch_plus_stream_sync_roundtrip",
            "us",
            "launch",
            lambda b: _period(b, "host", 1, 32),
        )
    )
    for nodes in (1, 10, 100):
        key = f"graph_launch_total_us.nodes{nodes}"
        made.append(
            Row(
                key,
                "us",
                "launch",
                partial(_replay, nodes=nodes),
            )
        )
    for threads in (32, 256, 1024):
        for tbs in GRIDS:
            key = f"empty_kernel_us.block{threads}.grid{tbs}"
            made.append(Row(key, "us", "launch", partial(_together, tbs=tbs, threads=threads)))
        key = f"tb_dispatch_ns_per_tb_large_grid.block{threads}"
        made.append(Row(key, "ns/TB", "launch", partial(_dispatch_rate, threads=threads)))
    return made


def _starts(b: Bench, tbs: int, threads: int, first: int) -> float:
    rows = b.tbs(make.spin(tbs, threads, 60000))
    return float(rows["start_ns"][:first].max() - rows["start_ns"].min())


def _turnaround(b: Bench, threads: int, resident: int) -> float:
    spin = 20000
    rows = b.tbs(make.spin(b.sms * resident * 12, threads, spin, (200 if resident == 1 else 100) * 1024))
    gaps = []
    for sm in range(b.sms):
        mine = rows[rows["sm"] == sm]
        starts = np.sort(mine["start_ns"]) * b.ghz
        # the record is stored some cycles before a TB's end: what was measured begins where the spinning ends
        gaps.append(starts[resident:] - (starts[:-resident] + spin))
    return float(np.median(np.concatenate(gaps)))


def _dispatch() -> list[Row]:
    made = []
    for threads in (32, 128, 256, 512, 1024):
        each = min(32, 2048 // threads)
        tbs = 132 * each
        key = f"one_wave_fill_ns.block{threads}.tbs{tbs}"
        made.append(Row(key, "ns", "dispatch", partial(_starts, tbs=tbs, threads=threads, first=tbs)))
        key = f"first_132_tbs_start_spread_ns.block{threads}"
        made.append(Row(key, "ns", "dispatch", partial(_starts, tbs=tbs, threads=threads, first=132)))
        for resident in (1, 2):
            key = f"tb_turnaround_cycles.block{threads}.tbs_per_sm{resident}"
            made.append(
                Row(key, "cycles", "dispatch", partial(_turnaround, threads=threads, resident=resident))
            )
    return made


def _atomic(b: Bench, stride: int) -> float:
    few, many = (b.body_us(make.reduces(b.sms, stride, n)) for n in (128, 512))
    return (many - few) * 1000 / (384 * b.sms)


def _atomics() -> list[Row]:
    names = (
        ("atomic_add_same_address_ns_per_warp_op_all_sms", 0),
        ("atomic_add_same_address_ns_per_op_one_thread_per_sm", 0),
        ("atomic_add_distinct_lines_ns_per_op_one_thread_per_sm", 256),
    )
    return [Row(key, "ns", "atomics", partial(_atomic, stride=stride)) for key, stride in names]


def rows() -> list[Row]:
    """Return all rows."""
    return [*_launch(), *_dispatch(), *_arithmetic(), *_latencies(), *_bandwidth(), *_atomics()]
