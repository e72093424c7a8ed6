"""From the constants that were measured on a GPU to a device file for ``--gpu``.

Each rule computes one parameter from measured keys. A parameter without a rule, or whose keys were not
measured, keeps the value of the base device: take a card of the same generation. The rules reproduce the
numbers of the H200.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pysim.errors import ConfigError
from pysim.units import parse, row_of

from .config import bus_refresh
from .devices import Device, device
from .measured import gpu_name, read_measured

FILE = "micro.json"
WAYS, LINE = 16, 128  # of an L2 set


class Known:
    """Measured keys, the keys that a rule has read, and the values of the base and of earlier rules."""

    def __init__(self, measured: Mapping[str, float], base: Device) -> None:
        self.measured, self.base = measured, base
        self.values = dict(base.values)
        self.used: list[str] = []

    def __call__(self, key: str) -> float:
        """Return a measured constant: ConfigError if it is not positive, KeyError if it was not measured."""
        value = self.measured[key]
        if value <= 0:
            raise ConfigError(f"{key} = {value:g}: must be positive")
        self.used.append(key)
        return value

    def number(self, path: str) -> float:
        """Return a parameter: of an earlier rule, else of the base."""
        return float(self.values[path])

    def match(self, pattern: str) -> tuple[float, float]:
        """Return the value of the key that matches, and the number in its name."""
        for key in self.measured:
            found = re.fullmatch(pattern, key)
            if found:
                return self(key), float(found[1])
        raise KeyError(pattern)


Rule = Callable[[Known], float]


class _Row(NamedTuple):
    path: str
    rule: Rule
    why: str


def _interval(key: str) -> Rule:
    """Cycles between warp instructions of a sub-core: a power of two where the measured rate is near one."""

    def rule(at: Known) -> float:
        cycles = 128 / at(f"arith_throughput_thread_ops_per_cycle_per_sm.{key}")
        near = 2.0 ** round(math.log2(cycles))
        return near if abs(cycles / near - 1) <= 0.1 else round(cycles, 2)

    return rule


def _cycles(key: str) -> Rule:
    return lambda at: max(1, round(at(key)))


def _smem_interval(at: Known) -> float:
    cycles = 128 / at("shared_bandwidth_B_per_cycle_per_sm.v4")
    return 1.0 if abs(cycles - 1) <= 0.1 else round(cycles, 2)


def _flop(at: Known) -> float:
    keys = [key for key in at.measured if key.startswith("mma_m16n8k16_flop_per_cycle_per_sm.")]
    return max(at(key) for key in keys) if keys else at("mma_m16n8k16_flop_per_cycle_per_sm.warps8")


def _slices(at: Known) -> float:
    """Slices of the base's size, or the nearest number that gives whole sets.

    Where lines map to slices as on an H200, there is one for each 64 bits of the memory bus.
    """
    if at.number("gpu.l2.chunked"):
        return at("attr_mem_bus_bits") / 64
    size = int(at("l2_bytes"))
    wanted = at.number("gpu.l2.slices") * size / float(at.base.values["gpu.l2.size"])
    step = 2 if at.number("gpu.l2.partitions") == 2 else 1
    fits = [
        n
        for n in range(step, 257, step)
        if size % (n * WAYS * LINE) == 0 and size // (n * WAYS * LINE) <= 2048
    ]
    if not fits:
        raise ConfigError(f"l2_bytes = {size}: no number of slices gives whole sets of {WAYS} lines")
    return min(fits, key=lambda n: abs(n - wanted))


def _l2_size(at: Known) -> float:
    """Return the driver's size; where lines map as on an H200, the nearest of whole DRAM rows in slices."""
    size, row = int(at("l2_bytes")), int(at.number("gpu.dram.row_bytes")) * WAYS
    unit = int(at.number("gpu.l2.slices")) * row
    return round(size / unit) * unit if at.number("gpu.l2.chunked") else size


def _slot(at: Known) -> float:
    """Nanoseconds of a sector on a channel's bus."""
    return 32 * at.number("gpu.l2.slices") / at.number("gpu.dram.bandwidth")


def _bandwidth(at: Known) -> float:
    return round(at("attr_mem_bus_bits") / 8 * 2 * at("attr_mem_clock_khz") / 1e6, 1)


def _share(at: Known, key: str) -> float:
    """Share of the peak that a measured bandwidth reaches."""
    share = at(key) / at.number("gpu.dram.bandwidth")
    if share > 1:
        raise ConfigError(
            f"{key} = {at(key):g} GB/s: more than the {at.number('gpu.dram.bandwidth'):g} of the bus"
        )
    return share


def _refresh(at: Known) -> float:
    return round((1 - _share(at, "dram_read_GBps")) * bus_refresh(at.number), 2)


def _lost(at: Known, key: str, sectors: float) -> float:
    """Whole bus slots that a batch loses if ``sectors`` are transferred at the measured bandwidth."""
    return max(0, math.ceil(sectors * (_share(at, "dram_read_GBps") / _share(at, key) - 1)))


def _turnaround(at: Known) -> float:
    # a hundredth more, so that whole slots stay whole
    slots = _lost(at, "dram_write_GBps", at.number("gpu.dram.write_batch"))
    return round(slots * _slot(at) * 1.01, 2)


def _read_turnaround(at: Known) -> float:
    every = _lost(at, "dram_copy_GBps_read_plus_write", 2 * at.number("gpu.dram.write_batch"))
    own = _lost(at, "dram_write_GBps", at.number("gpu.dram.write_batch"))
    return round(max(0, every - own) * _slot(at) * 1.01, 2)


# Share of the slices' bandwidth that all SMs reach when they read sets of 2 to 16 MB: their load is uneven. A
# slice of an H200 sends 55.2 B a cycle alone (h200_again.csv) and 50.3 then.
_EVEN = 0.911


def _slice_bytes(at: Known) -> float:
    keys = [f"l2_read_GBps.set_{size}MB" for size in (2, 8, 16)]
    fits = [at(key) for key in keys if int(key.split("_")[-1][:-2]) << 22 <= at.number("gpu.l2.size")]
    rate = sum(fits) / len(fits) if fits else at(keys[0])
    even = _EVEN if at.number("gpu.l2.chunked") else 1
    return round(rate * 1000 / at.number("gpu.l2.slices") / at.number("gpu.clock") / even)


def _ways(at: Known) -> float:
    return at.number("gpu.cp.tb_start_latency") + at.number("gpu.cp.tb_done_latency")


def _hand_over(at: Known, share: str) -> float:
    """Return a share of the time from a TB's end to its successor's start, less half a loop iteration."""
    total = (at("tb_turnaround_cycles.block128.tbs_per_sm1") - 20) * 1000 / at.number("gpu.clock")
    before = float(at.base.values["gpu.cp.tb_start_latency"]) + float(
        at.base.values["gpu.cp.tb_done_latency"]
    )
    return round(total * float(at.base.values[f"gpu.cp.{share}"]) / before)


def _gap(at: Known) -> float:
    """Mean over kernels of one TB and of 1,056 of the period, less starts and releases of TBs."""
    one = at("stream_kernel_period_us.empty.grid1_block32") * 1000
    many = at("stream_kernel_period_us.empty.grid1056_block256") * 1000
    return round((one + many - 1057 * at.number("gpu.cp.tb_release")) / 2 - _ways(at))


def _prepare(at: Known) -> float:
    one, few = (at(f"graph_kernel_period_us.empty.{grid}") for grid in ("grid1_block32", "grid132_block128"))
    return round((one + few) * 500)


def _launch(at: Known) -> float:
    empty = at("event_to_event_us.one_empty_kernel") - at("event_to_event_us.nothing_between")
    return round(empty * 1000 - _ways(at) - 10)


def _fill(at: Known) -> float:
    time, tbs = at.match(r"one_wave_fill_ns\.block32\.tbs(\d{1,6})")
    return round(time / max(1.0, tbs), 3)


def _mhz(at: Known) -> float:
    return round(at("sm_clock_mhz.all_sms_spinning"))


def _tensor_clock(at: Known) -> float:
    share = at("sm_clock_mhz.during_mma_full_chip") / at("sm_clock_mhz.all_sms_spinning")
    return min(1.0, round(share, 3))


_ARITH = "a sub-core has a quarter of the SM's rate"
_CHAIN = "a chain of dependent instructions"
_CHASE = "a pointer chase"

# in this order: later rules use the values of earlier ones
RULES: tuple[_Row, ...] = (
    _Row("gpu.sms", lambda at: at("sm_count"), "as the driver says"),
    _Row("gpu.clock", _mhz, "all SMs spinning"),
    _Row("gpu.clock_tensor", _tensor_clock, "tensor cores of all SMs busy"),
    _Row("gpu.sm.warps", lambda at: at("max_threads_per_sm") // 32, "as the driver says"),
    _Row("gpu.sm.tbs", lambda at: at("max_tbs_per_sm"), "as the driver says"),
    _Row("gpu.sm.registers", lambda at: at("regs_per_sm"), "as the driver says"),
    _Row("gpu.sm.smem", lambda at: at("smem_per_sm_bytes"), "as the driver says"),
    _Row("gpu.sm.smem_reserved", lambda at: at("smem_reserved_per_block_bytes"), "as the driver says"),
    _Row("gpu.sm.fp32_interval", _interval("ffma"), _ARITH),
    _Row("gpu.sm.int_interval", _interval("iadd3"), _ARITH),
    _Row("gpu.sm.fp16_interval", _interval("hfma2"), _ARITH),
    _Row("gpu.sm.fp64_interval", _interval("dfma"), _ARITH),
    _Row("gpu.sm.sfu_interval", _interval("mufu_ex2"), _ARITH),
    _Row("gpu.sm.tensor_interval", lambda at: round(16384 / _flop(at), 2), "4096 FLOP an instruction"),
    _Row("gpu.sm.fp32_latency", _cycles("arith_latency_cycles.ffma"), _CHAIN),
    _Row("gpu.sm.int_latency", _cycles("arith_latency_cycles.iadd3"), _CHAIN),
    _Row("gpu.sm.fp16_latency", _cycles("arith_latency_cycles.hfma2"), _CHAIN),
    _Row("gpu.sm.fp64_latency", _cycles("arith_latency_cycles.dfma"), _CHAIN),
    _Row("gpu.sm.sfu_latency", _cycles("arith_latency_cycles.mufu_ex2"), _CHAIN),
    _Row("gpu.sm.tensor_latency", _cycles("mma_m16n8k16_f32f16_latency_cycles"), _CHAIN),
    _Row("gpu.sm.smem_latency", _cycles("latency_cycles.shared"), _CHASE),
    _Row("gpu.sm.smem_interval", _smem_interval, "128 B a wavefront"),
    _Row("gpu.l1.latency", _cycles("latency_cycles.l1_hit_16KB"), _CHASE),
    _Row("gpu.l2.slices", _slices, "as on an H200 one for 64 bits of the bus, else as large as the base's"),
    _Row("gpu.l2.size", _l2_size, "as the driver says, as on an H200 in whole DRAM rows of all slices"),
    _Row("gpu.l2.latency", _cycles("latency_cycles.l2_hit_mean_per_sm"), f"{_CHASE} from every SM"),
    _Row("gpu.l2.slice_bytes", _slice_bytes, "cyclic reads of sets that L2 holds"),
    _Row("gpu.dram.bandwidth", _bandwidth, "width of the bus times twice its clock"),
    _Row(
        "gpu.dram.latency",
        lambda at: round((at("latency_cycles.dram_64MB_cold") + at("latency_cycles.dram_1GB_cold")) / 2),
        _CHASE,
    ),
    _Row("gpu.dram.refresh_time", _refresh, "the share of the peak that reads miss"),
    _Row("gpu.dram.turnaround", _turnaround, "the further loss of writes"),
    _Row("gpu.dram.read_turnaround", _read_turnaround, "the further loss of copies"),
    _Row("gpu.cp.tb_done_latency", lambda at: _hand_over(at, "tb_done_latency"), "a share of the turnaround"),
    _Row(
        "gpu.cp.tb_start_latency", lambda at: _hand_over(at, "tb_start_latency"), "a share of the turnaround"
    ),
    _Row(
        "gpu.cp.tb_release",
        lambda at: round(at("tb_dispatch_ns_per_tb_large_grid.block32"), 3),
        "empty kernels of many TBs",
    ),
    _Row("gpu.cp.tb_start", _fill, "an empty chip is filled"),
    _Row("gpu.cp.launch", _launch, "less start and end of a TB"),
    _Row("gpu.cp.stream_gap", _gap, "less start, end and releases of TBs"),
    # empty kernels are too short to show the gap of a graph edge: it is the base's
    _Row("gpu.cp.graph_prepare", _prepare, "graph periods of kernels of few TBs"),
    _Row(
        "gpu.cp.admit",
        lambda at: round(at("graph_kernel_period_us.empty.grid1_block32") * 1000),
        "graph period of one-TB kernels",
    ),
    _Row(
        "gpu.sync.fence",
        lambda at: max(0, round(at("store_plus_threadfence_cycles") - at("latency_cycles.l2_hit_1MB_cg"))),
        "less an L2 hit",
    ),
    _Row(
        "gpu.sync.atomic",
        lambda at: round(at("atomic_add_same_address_ns_per_op_one_thread_per_sm"), 3),
        "all SMs add to one address",
    ),
)

# without these the rest would describe another GPU
NEEDED = ("sm_count", "sm_clock_mhz.all_sms_spinning", "l2_bytes", "attr_mem_bus_bits", "attr_mem_clock_khz")


def calibrate(folder: Path, base: str) -> tuple[str, list[str]]:
    """Return the text of a device file from ``micro.json`` of a folder, and the paths that the base gives.

    Raises ConfigError: the file cannot be read or lacks what is needed, or a number cannot be that of a GPU.
    """
    path, card = folder / FILE, device(base)
    measured = read_measured(path)
    missing = [key for key in NEEDED if key not in measured]
    if missing:
        raise ConfigError(f"{path}: no {', '.join(missing)}: not the output of tests/hw/suite/micro.cu?")
    at, sources = Known(measured, card), {}
    for path_, rule, why in RULES:
        at.used = []
        try:
            at.values[path_] = parse(path_, row_of(path_), rule(at))
        except KeyError:
            continue  # not measured: as in the base
        except ConfigError as error:
            keys = f" (from {', '.join(dict.fromkeys(at.used))})" if at.used else ""
            raise ConfigError(f"{path}: {error}{keys}") from None
        except (OverflowError, ValueError, ZeroDivisionError):
            keys = ", ".join(f"{key} = {measured[key]:g}" for key in dict.fromkeys(at.used))
            raise ConfigError(f"{path}: {keys}: cannot be that of a GPU") from None
        sources[path_] = f"{FILE}: {', '.join(dict.fromkeys(at.used))}: {why}"
    if float(at.values["gpu.sm.smem"]) >= float(at.values["gpu.l1.size"]):
        raise ConfigError(
            f"{path}: smem_per_sm_bytes = {at.values['gpu.sm.smem']}: {base} has an L1 of"
            f" {at.values['gpu.l1.size']} B with it: take a base of the same generation"
        )
    rate = (
        round(2048 / float(at.values["gpu.sm.tensor_interval"]))
        if "gpu.sm.tensor_interval" in sources
        else None
    )
    title = gpu_name(path) or folder.resolve().name
    lines = [f"title = {json.dumps(f'{title}, measured')}", f"base = {json.dumps(base)}"]
    if rate is not None:
        lines.append(f"mma_rate = {max(1, rate)}")
    width = max(map(len, sources))
    for path_, source in sources.items():
        key = f'"{path_}"'.ljust(width + 2)
        lines.append(f"{key} = {{ value = {json.dumps(at.values[path_])}, source = {json.dumps(source)} }}")
    kept = [name for name in at.values if name.startswith("gpu.") and name not in sources]
    return "\n".join(lines) + "\n", kept
