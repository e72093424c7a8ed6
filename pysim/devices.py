"""GPUs as data: every number with its source beside it.

A device gives values for ``gpu.*`` paths of the parameter table, plus what no parameter holds: the compute
capability, the shared-memory carve-outs and the tensor rate. A user's own device is a TOML file::

    name = "half_volta"
    base = "titan_v"                 # optional: start from a registered device
    compute_capability = "7.0"
    carveouts = ["0B", "32KiB", "96KiB"]
    mma_rate = 128

    [gpu]
    sms = { value = 40, source = "half of a Titan V" }
    [gpu.l2]
    size = "3MiB"
    slices = 32

Figures cited to Jia et al., JEDEC and the CUDA guides are quoted second-hand: those documents were not
opened while this file was written.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import ConfigError
from .params import Param
from .units import ROWS, Value, parse, row_of, suggest

GPU_PATHS: tuple[str, ...] = tuple(path for path in ROWS if path.startswith("gpu."))


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU. ``values`` and ``sources`` go by parameter path; ``values`` are in the parameters' units.

    ``carveouts`` are the shared-memory sizes that an SM can be set to, in bytes, ascending.
    ``mma_rate`` is the fp16 multiply-adds a cycle of one sub-core's tensor cores.
    """

    name: str
    title: str
    compute_capability: tuple[int, int]
    carveouts: tuple[int, ...]
    mma_rate: int
    values: Mapping[str, Value]
    sources: Mapping[str, str]


# Sources that many rows share.
_SHEET = "NVIDIA V100 white paper (2017), table 1"
_CC70 = "CUDA C Programming Guide, technical specifications of compute capability 7.0"
_RATES = "CUDA C Programming Guide, arithmetic throughput of compute capability 7.0"
_JIA = "Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking (2018)"
_ACCEL = "Accel-Sim SM7_TITANV and SM7_QV100"
_TURN = "share of the 390 cycles from a TB's end to its successor's start"
_H200 = "measured on an H200 as a stand-in: nobody published it for Volta"
_ASSUMED = "assumed: nobody published it"
_GAP = (
    "Zhang et al., IPDPS 2020, table I: 1081 ns for each extra null kernel in a V100 stream, and 1161 ns in "
    "their SC 2023 poster; the middle, 1120 ns, is this gap + tb_start_latency 100 + tb_done_latency 70 + "
    "about 10 ns of running. NVIDIA's graph blog (2019) agrees: 3.8 us a kernel of 2.9 us"
)
_GRAPH_GAP = (
    "NVIDIA's graph blog (2019), V100: 3.4 us for each kernel of 2.9 us; with the TB start and end latencies "
    "a chain of null kernels has a period of about 680 ns"
)

# What every GV100 card shares: path, value, source.
_GV100: tuple[tuple[str, Value, str], ...] = (
    ("gpu.sms", 80, f"{_SHEET}: 80 of 84 SMs"),
    ("gpu.sm.warps", 64, _CC70),
    ("gpu.sm.tbs", 32, _CC70),
    ("gpu.sm.registers", 65536, _CC70),
    ("gpu.sm.register_unit", 256, "CUDA occupancy calculator, 7.0: 256 registers a warp"),
    ("gpu.sm.smem", 98304, _CC70),
    ("gpu.sm.smem_unit", 256, "CUDA occupancy calculator, 7.0"),
    ("gpu.sm.smem_reserved", 0, "CUDA occupancy calculator: nothing is reserved before 8.0"),
    ("gpu.sm.fp32_interval", 2, f"{_RATES}: 64 a cycle an SM, 16 lanes a sub-core"),
    ("gpu.sm.int_interval", 2, f"{_RATES}: 64 a cycle an SM"),
    ("gpu.sm.fp16_interval", 2, f"{_RATES}: 128 a cycle an SM, two in an HFMA2"),
    ("gpu.sm.fp64_interval", 4, f"{_RATES}: 32 a cycle an SM, 8 lanes a sub-core"),
    ("gpu.sm.sfu_interval", 8, f"{_RATES}: 16 a cycle an SM, 4 lanes a sub-core"),
    (
        "gpu.sm.tensor_interval",
        2,
        f"{_SHEET}: 128 multiply-adds a cycle a sub-core; an HMMA.884 step of a warp is 256",
    ),
    ("gpu.sm.control_interval", 1, f"{_ASSUMED}; {_ACCEL} have 4"),
    ("gpu.sm.fp32_latency", 4, f"{_JIA}: FFMA, FADD, FMUL 4 cycles"),
    ("gpu.sm.int_latency", 4, f"{_JIA}: IADD3, LOP3, SHF, MOV 4 cycles; IMAD takes 5"),
    ("gpu.sm.fp16_latency", 6, f"{_JIA}: HFMA2, HADD2, HMUL2 6 cycles"),
    ("gpu.sm.fp64_latency", 8, f"{_JIA}: DFMA, DADD, DMUL 8 cycles"),
    ("gpu.sm.sfu_latency", 14, f"{_JIA}: conversions and bit counts 14 cycles; MUFU assumed to take as long"),
    (
        "gpu.sm.tensor_latency",
        10,
        f"{_ASSUMED}: a set of four HMMA.884 steps takes 18 cycles and issues in 8",
    ),
    ("gpu.sm.control_latency", 4, f"{_ASSUMED}; {_ACCEL} have 4"),
    ("gpu.sm.smem_latency", 19, f"{_JIA}: shared memory 19 cycles without conflicts"),
    ("gpu.sm.smem_interval", 1, f"{_JIA}: 32 banks of 4 B, 128 B a cycle an SM"),
    ("gpu.sm.barrier", 20, f"{_ASSUMED} for Volta; an A100 takes 23 cycles with one warp"),
    ("gpu.sm.register_ports", 1, f"{_JIA}: two 64-bit banks; three sources in one lose a slot"),
    ("gpu.sm.warp_order", "greedy", f"{_ASSUMED}; greedy then oldest is what most studies find"),
    ("gpu.sm.block_max", 1024, "choice of the model: kernel times stay within 2 % of length 1"),
    ("gpu.l1.size", 131072, f"{_SHEET}: 128 KiB of L1 and shared memory an SM"),
    ("gpu.l1.latency", 28, f"{_JIA}: L1 hit 28 cycles"),
    ("gpu.l1.in_flight", 256, f"{_ASSUMED}; {_ACCEL} have 512 miss entries"),
    (
        "gpu.noc.latency",
        60,
        f"{_ASSUMED}: the share of the 193 cycles of an L2 hit that leaves 73 for L1 miss and slice",
    ),
    ("gpu.noc.port_sms", 1, f"{_ASSUMED}: no limit of a TPC below that of its SMs is known"),
    ("gpu.noc.read_sector", 0, f"{_ASSUMED}: a request of a line a cycle"),
    ("gpu.noc.reply_bytes", 64, f"{_ASSUMED} for Volta: two sectors a cycle, half of an L1 line"),
    ("gpu.noc.write_bytes", 32, f"{_ASSUMED}: a sector a cycle; {_ACCEL} move 40 B flits, header included"),
    ("gpu.l2.hash_slices", 0, f"{_ASSUMED}: an even hash"),
    ("gpu.l2.latency", 193, f"{_JIA}: L2 hit 193 cycles"),
    (
        "gpu.l2.slice_bytes",
        32,
        "NVIDIA A100 white paper (2020): a V100 reads 2048 B a cycle, 64 slices of 32",
    ),
    ("gpu.l2.replacement", "random", f"not LRU: {_H200}"),
    ("gpu.dram.latency", 375, f"{_JIA}: L2 miss with a TLB hit 375 cycles"),
    ("gpu.dram.banks", 16, f"{_ACCEL}: 16 banks; HBM2 pseudo channel"),
    ("gpu.dram.row_bytes", 1024, "JEDEC JESD235: 1 KiB page of an HBM2 pseudo channel"),
    ("gpu.dram.row_open", 28.2, f"{_ACCEL}: RP 12 + RCD 12 clocks at 850 MHz"),
    ("gpu.dram.row_cycle", 47.1, f"{_ACCEL}: RC 40 clocks at 850 MHz"),
    ("gpu.dram.reorder", 200, f"{_ASSUMED}: about the time that the 64 requests of {_ACCEL} take"),
    ("gpu.dram.refresh_period", 3900, "JEDEC JESD235: tREFI 3.9 us"),
    ("gpu.dram.refresh_time", 260, "class of HBM2 tRFC; the timings of these cards are not published"),
    ("gpu.dram.turnaround", 8, f"{_ACCEL}: WL 2 + CDLR 3 + RTPL 3 clocks at 850 MHz, rounded down"),
    ("gpu.dram.write_batch", 32, "Accel-Sim SM7_TITANV: low mark of the write queue"),
    (
        "gpu.cp.launch",
        1500,
        f"{_ASSUMED} for Volta; 2.3 to 2.4 us from call to kernel on A100 and H100, less the host part",
    ),
    ("gpu.cp.stream_gap", 940, _GAP),
    ("gpu.cp.graph_gap", 500, _GRAPH_GAP),
    ("gpu.cp.admit", 680, f"graph period of one-TB kernels, {_H200}; graph_gap gives the same"),
    ("gpu.cp.tb_release", 0.603, f"empty kernels of many TBs, {_H200}"),
    ("gpu.cp.tb_start", 0.09, f"4,224 TBs fill an empty chip in 0.38 us, {_H200}"),
    ("gpu.cp.even_tbs", 0, "no such cap is known"),
    ("gpu.cp.tb_done_latency", 70, f"{_TURN}, {_H200}"),
    ("gpu.cp.tb_start_latency", 100, f"{_TURN}, {_H200}"),
)

_TITAN_V: tuple[tuple[str, Value, str], ...] = (
    ("gpu.clock", 1455, "NVIDIA Titan V data sheet: boost clock"),
    ("gpu.l2.size", 4718592, "NVIDIA Titan V data sheet: 4.5 MB"),
    ("gpu.l2.slices", 48, "Accel-Sim SM7_TITANV: 24 channels x 2; three HBM2 stacks of 16 pseudo channels"),
    ("gpu.dram.bandwidth", 652.8, "NVIDIA Titan V data sheet: 3072 bit at 2 x 850 MHz"),
)
_V100: tuple[tuple[str, Value, str], ...] = (
    ("gpu.clock", 1530, "NVIDIA V100 SXM2 data sheet: boost clock"),
    ("gpu.l2.size", 6291456, f"{_SHEET}: 6144 KB"),
    ("gpu.l2.slices", 64, "Accel-Sim SM7_QV100: 32 channels x 2; four HBM2 stacks of 16 pseudo channels"),
    ("gpu.dram.bandwidth", 898.0, "NVIDIA V100 SXM2 data sheet (900 GB/s): 4096 bit at 2 x 877 MHz"),
)

# Accel-Sim's models of the two cards: its parameters where ours mean the same, and otherwise what follows
# from how it works (docs/peer.md). Its configurations: framework 73f9fac, gpgpu-sim 667834cf (2024).
_CONFIG = "configuration file of the card"
_PIPELINE = "trace.config's value + 4 for collector, decode and write-back (2 to 4)"
_CROSSBAR = "crossbar of input queues with round robin among heads, see docs/peer.md"
_FLOOR = "0 there; the least that ours takes"
_FITTED = "set to the rows of docs/peer.md within what the stages there may take"
_PEER: tuple[tuple[str, Value, str], ...] = (
    ("gpu.sm.register_unit", 128, "registers are rounded to 4 a thread"),
    ("gpu.sm.smem_unit", 1, "no allocation unit"),
    ("gpu.sm.fp16_interval", 1, "half of SP's initiation interval"),
    ("gpu.sm.control_interval", 4, f"{_CONFIG}: specialised unit 1, 4,4"),
    ("gpu.sm.fp32_latency", 6, _PIPELINE),
    ("gpu.sm.int_latency", 6, _PIPELINE),
    ("gpu.sm.fp16_latency", 6, _PIPELINE),
    ("gpu.sm.fp64_latency", 12, _PIPELINE),
    ("gpu.sm.sfu_latency", 24, _PIPELINE),
    ("gpu.sm.control_latency", 8, _PIPELINE),
    (
        "gpu.sm.smem_latency",
        48,
        f"{_CONFIG}: 20, + 4, and what it waits behind loads in the one LDST unit, in order: {_FITTED}",
    ),
    ("gpu.sm.register_ports", 0, "operands are collected twice a cycle: a bank keeps up with FFMA"),
    ("gpu.sm.barrier", 14, _FITTED),
    ("gpu.sm.block_max", 64, "choice of the model; docs/peer.md has what other lengths give"),
    ("gpu.sm.warp_order", "round_robin", f"{_CONFIG}: scheduler lrr"),
    ("gpu.l1.latency", 28, f"{_CONFIG}: l1_latency 20, and 8 around it"),
    ("gpu.l1.in_flight", 448, f"{_CONFIG}: 512 miss entries; the most that ours holds"),
    ("gpu.noc.reply_bytes", 32, "a 40 B flit a cycle and port: a sector with its head"),
    ("gpu.l2.latency", 215, f"{_CONFIG}: 20 + 160 (rop) and the stages between, 30 to 60: {_FITTED}"),
    ("gpu.l2.slice_bytes", 18, f"0.5556 sectors a cycle: {_CROSSBAR}"),
    ("gpu.l2.replacement", "lru", _CONFIG),
    ("gpu.dram.latency", 365, f"L2 hit + 100 (dram_latency) + 24 DRAM clocks and queues: {_FITTED}"),
    ("gpu.dram.refresh_time", 0, "not modelled there"),
    ("gpu.cp.admit", 0, "not modelled there"),
    ("gpu.cp.tb_release", 0, "not modelled there"),
    ("gpu.cp.tb_start", 0, "a TB a cycle and cluster"),
    ("gpu.cp.tb_done_latency", 20, _FLOOR),
    ("gpu.cp.tb_start_latency", 20, _FLOOR),
    ("gpu.cp.even_tbs", 1, "TBs an SM capped at ceil(TBs / SMs)"),
)
_PEER_TITAN_V: tuple[tuple[str, Value, str], ...] = (
    *_PEER,
    ("gpu.clock", 1200, f"{_CONFIG}: core domain"),
    ("gpu.sm.tensor_interval", 4, f"{_CONFIG}: 8,4"),
    ("gpu.sm.tensor_latency", 12, _PIPELINE),
    ("gpu.noc.port_sms", 2, f"{_CONFIG}: 40 clusters of 2 SMs, a port each"),
    ("gpu.noc.read_sector", 2.03, f"0.494 packets a cycle and cluster: {_CROSSBAR}"),
    ("gpu.noc.write_bytes", 16, f"0.494 packets a cycle and cluster: {_CROSSBAR}"),
    ("gpu.l2.size", 4718592, f"{_CONFIG}: 48 slices of 32 x 24 x 128 B"),
    ("gpu.l2.slices", 48, f"{_CONFIG}: 24 x 2"),
    ("gpu.l2.hash_slices", 64, "hash to 64, then the remainder: 16 slices get twice as much"),
    ("gpu.dram.bandwidth", 652.8, f"{_CONFIG}: 24 channels of 16 B at 2 x 850 MHz"),
    ("gpu.cp.launch", 0, f"{_CONFIG}: kernel_launch_latency not set"),
    ("gpu.cp.stream_gap", 0, f"{_CONFIG}: kernel_launch_latency not set"),
    ("gpu.cp.graph_gap", 0, f"{_CONFIG}: kernel_launch_latency not set"),
)
_PEER_QV100: tuple[tuple[str, Value, str], ...] = (
    *_PEER,
    ("gpu.clock", 1132, f"{_CONFIG}: core domain"),
    ("gpu.sm.tensor_interval", 2, f"{_CONFIG}: 2,2"),
    ("gpu.sm.tensor_latency", 6, _PIPELINE),
    ("gpu.noc.read_sector", 2.25, f"0.444 packets a cycle and SM: {_CROSSBAR}"),
    ("gpu.noc.write_bytes", 14, f"0.444 packets a cycle and SM: {_CROSSBAR}"),
    ("gpu.l2.size", 6291456, f"{_CONFIG}: 64 slices of 32 x 24 x 128 B"),
    ("gpu.l2.slices", 64, f"{_CONFIG}: 32 x 2"),
    ("gpu.dram.bandwidth", 870.4, f"{_CONFIG}: 32 channels of 16 B at 2 x 850 MHz"),
    ("gpu.cp.launch", 4417, f"{_CONFIG}: kernel_launch_latency 5000 cycles"),
    ("gpu.cp.stream_gap", 4417, f"{_CONFIG}: kernel_launch_latency 5000 cycles"),
    ("gpu.cp.graph_gap", 4417, f"{_CONFIG}: kernel_launch_latency 5000 cycles"),
)

_VOLTA_CARVEOUTS = tuple(size * 1024 for size in (0, 8, 16, 32, 64, 96))  # CUDA guide, 7.x


def _volta(name: str, title: str, rows: tuple[tuple[str, Value, str], ...]) -> Device:
    every = (*_GV100, *rows)
    return Device(
        name=name,
        title=title,
        compute_capability=(7, 0),
        carveouts=_VOLTA_CARVEOUTS,
        mma_rate=128,
        values={path: parse(path, row_of(path), value) for path, value, _ in every},
        sources={path: source for path, _, source in every},
    )


DEVICES: dict[str, Device] = {
    made.name: made
    for made in (
        _volta("titan_v", "NVIDIA Titan V (GV100, 12 GB HBM2)", _TITAN_V),
        _volta("v100", "NVIDIA Tesla V100 SXM2 (GV100, 16 GB HBM2)", _V100),
        _volta("accelsim_titan_v", "Accel-Sim's SM7_TITANV, to compare models", _PEER_TITAN_V),
        _volta("accelsim_qv100", "Accel-Sim's SM7_QV100, to compare models", _PEER_QV100),
    )
}

_KEYS = ("name", "title", "base", "compute_capability", "carveouts", "mma_rate", "gpu")
_CARVEOUT = Param("carveouts", 0, "B", 0, 1 << 20, "One shared-memory carve-out.")
_MMA_RATE = Param("mma_rate", 128, "count", 1, 1 << 16, "Multiply-adds a cycle of a sub-core.")


def device(name: str) -> Device:
    """Return a registered device, or the one that a TOML file describes."""
    if name in DEVICES:
        return DEVICES[name]
    if name.endswith(".toml"):
        return _read(Path(name))
    hint = suggest(name, DEVICES)
    raise ConfigError(f"unknown GPU {name}{hint} (known: {', '.join(DEVICES)}; or a FILE.toml)")


def _read(path: Path) -> Device:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    try:
        return _build(table, path)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _build(table: dict[str, object], path: Path) -> Device:
    for key in table:
        # Dotted keys may be quoted, as on a command line: "gpu.l2.size" = "3MiB".
        if key not in _KEYS and not key.startswith("gpu."):
            raise ConfigError(f"unknown key {key}{suggest(key, _KEYS)}")
    base = None
    if "base" in table:
        base = DEVICES.get(str(table["base"]))
        if base is None:
            hint = suggest(str(table["base"]), DEVICES)
            raise ConfigError(f"unknown base {table['base']}{hint} (known: {', '.join(DEVICES)})")
    values: dict[str, Value] = dict(base.values) if base else {}
    sources: dict[str, str] = dict(base.sources) if base else {}
    given = _leaves({key: table[key] for key in table if key.partition(".")[0] == "gpu"})
    for key, (value, source) in given.items():
        values[key] = parse(key, row_of(key), value)
        sources[key] = source or path.name
    name = str(table.get("name", path.stem))
    capability = base.compute_capability if base else (7, 0)
    if "compute_capability" in table:
        match = re.fullmatch(r"(\d{1,2})\.(\d)", str(table["compute_capability"]))
        if match is None:
            raise ConfigError(f"compute_capability = {table['compute_capability']}: must look like 7.0")
        capability = (int(match[1]), int(match[2]))
    return Device(
        name=name,
        title=str(table.get("title", name)),
        compute_capability=capability,
        carveouts=_carveouts(table["carveouts"]) if "carveouts" in table else _inherited(base),
        mma_rate=int(parse("mma_rate", _MMA_RATE, table.get("mma_rate", base.mma_rate if base else 128))),
        values=values,
        sources=sources,
    )


def _inherited(base: Device | None) -> tuple[int, ...]:
    return base.carveouts if base else _VOLTA_CARVEOUTS


def _carveouts(given: object) -> tuple[int, ...]:
    if not isinstance(given, list) or not given:
        raise ConfigError(f'carveouts = {given}: must be a list of sizes, such as ["0B", "32KiB"]')
    return tuple(sorted({int(parse("carveouts", _CARVEOUT, size)) for size in given}))


def _leaves(table: Mapping[str, object], prefix: str = "") -> dict[str, tuple[object, str]]:
    """Flatten nested tables into path -> (value, source)."""
    found: dict[str, tuple[object, str]] = {}
    for key, value in table.items():
        path = f"{prefix}{key}"
        if not isinstance(value, dict):
            found[path] = (value, "")
        elif "value" in value and set(value) <= {"value", "source"}:
            found[path] = (value["value"], str(value.get("source", "")))
        else:
            found.update(_leaves(value, f"{path}."))
    return found
