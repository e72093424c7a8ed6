"""Pascal: a card with a GP102, from before Volta's new SM.

Shared memory has an array of its own there; here L1 and shared memory are one size with one carve-out. There
are no tensor cores: their rate is the least that a device may have. Documents are quoted from memory of their
tables: they were not opened while this file was written.
"""

from __future__ import annotations

from .card import Device, Rows, card
from .hopper_alone import HOPPER_ALONE
from .waits import WAITS

_ASSUMED = "assumed: nobody published it"
_SHEET = "NVIDIA Titan X (Pascal) data sheet (2016)"
_CC = "CUDA C Programming Guide, technical specifications of compute capability 6.1"
_RATES = "CUDA C Programming Guide, arithmetic throughput of compute capability 6.1"
_JIA = (
    "Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking (2018), Tesla P4 (GP104)"
)
_H200 = "measured on an H200 as a stand-in: nobody published it for Pascal"
_V100 = "as for Volta, a stand-in"
_NONE = "no tensor cores: the slowest that a device may have"

_GP102: Rows = (
    ("gpu.sms", 28, f"{_SHEET}: 28 SMs of 128 cores"),
    ("gpu.gpcs", 6, "NVIDIA GP102: six GPCs"),
    ("gpu.tpc_sms", 1, "NVIDIA GP102: TPCs of one SM"),
    ("gpu.clock", 1531, f"{_SHEET}: boost clock"),
    ("gpu.clock_tensor", 1, "no tensor cores"),
    ("gpu.sm.refetch", 0, "not measured there"),
    ("gpu.sm.parameters", 0, "not measured there"),
    ("gpu.sm.warps", 64, _CC),
    ("gpu.sm.tbs", 32, _CC),
    ("gpu.sm.registers", 65536, _CC),
    ("gpu.sm.register_unit", 256, "CUDA occupancy calculator, 6.1: 256 registers a warp"),
    ("gpu.sm.smem", 98304, f"{_CC}: 96 KiB"),
    ("gpu.sm.smem_unit", 256, "CUDA occupancy calculator, 6.1"),
    ("gpu.sm.own_carveout", 0, "not known; measured on an H200 alone"),
    ("gpu.sm.smem_reserved", 0, "CUDA occupancy calculator: nothing is reserved before 8.0"),
    ("gpu.sm.fp32_interval", 1, f"{_RATES}: 128 a cycle an SM"),
    ("gpu.sm.int_interval", 1, f"{_RATES}: 128 additions a cycle an SM; a product is several instructions"),
    ("gpu.sm.fp16_interval", 128, f"{_RATES}: 2 a cycle an SM, two in an HFMA2"),
    ("gpu.sm.fp64_interval", 32, f"{_RATES}: 4 a cycle an SM"),
    ("gpu.sm.sfu_interval", 4, f"{_RATES}: 32 a cycle an SM"),
    ("gpu.sm.tensor_interval", 1024, _NONE),
    ("gpu.sm.control_interval", 1, _ASSUMED),
    ("gpu.sm.fp32_latency", 6, f"{_JIA}: FFMA, FADD 6 cycles"),
    ("gpu.sm.int_latency", 6, f"{_JIA}: IADD, LOP, SHL 6 cycles"),
    ("gpu.sm.fp16_latency", 6, f"{_ASSUMED}; others take 6"),
    ("gpu.sm.fp64_latency", 8, f"{_ASSUMED}; GP100 takes 8"),
    ("gpu.sm.sfu_latency", 14, f"{_V100}; conversions and MUFU"),
    ("gpu.sm.tensor_latency", 1024, _NONE),
    ("gpu.sm.control_latency", 6, _ASSUMED),
    ("gpu.sm.smem_latency", 23, f"{_JIA}: shared memory 23 cycles without conflicts"),
    ("gpu.sm.smem_interval", 1, f"{_JIA}: 32 banks of 4 B, 128 B a cycle an SM"),
    ("gpu.sm.smem_conflicts", "words", f"{_V100}"),
    ("gpu.sm.barrier", 20, f"{_V100}"),
    ("gpu.sm.smem_return", 1, "not known: as fast as shared memory"),
    ("gpu.sm.barrier_warp", 0, f"{_V100}"),
    ("gpu.sm.register_ports", 0, f"{_JIA}: four banks, which compilers keep apart"),
    ("gpu.sm.warp_order", "greedy", f"{_ASSUMED}; greedy then oldest is what most studies find"),
    ("gpu.sm.block_max", 1024, "choice of the model: kernel times stay within 2 % of length 1"),
    ("gpu.sm.block_tensor", 1024, "choice of the model, as gpu.sm.block_max"),
    ("gpu.l1.size", 147456, f"{_CC}: 48 KiB of L1 beside 96 KiB of shared memory"),
    ("gpu.l1.reserved", 0, "not known; measured on an H200 alone"),
    ("gpu.l1.keep_stores", 0, "not known; measured on an H200 alone"),
    ("gpu.l1.latency", 82, f"{_JIA}: L1 hit 82 cycles"),
    ("gpu.l1.in_flight", 256, f"{_V100}"),
    ("gpu.noc.latency", 45, f"{_ASSUMED}: the share of the 216 cycles of an L2 hit that leaves L1 its 82"),
    ("gpu.noc.port_sms", 1, f"{_ASSUMED}: an SM is a TPC"),
    ("gpu.noc.read_sector", 0, f"{_ASSUMED}: a request of a line a cycle"),
    ("gpu.noc.reply_bytes", 64, f"{_V100}"),
    ("gpu.noc.write_bytes", 32, f"{_V100}"),
    ("gpu.l2.size", 3145728, f"{_SHEET}: 3 MB"),
    ("gpu.l2.slices", 24, f"{_ASSUMED}: two of 128 KiB for each of twelve 32-bit controllers"),
    ("gpu.l2.hash_slices", 0, f"{_ASSUMED}: an even hash"),
    ("gpu.l2.hash", 1, f"{_ASSUMED}: strides of powers of two spread over slices"),
    ("gpu.l2.latency", 216, f"{_JIA}: L2 hit 216 cycles"),
    ("gpu.l2.slice_bytes", 32, f"{_V100}"),
    ("gpu.noc.join_loads", 0, f"{_ASSUMED}; cards since the A100 are known to"),
    ("gpu.l1.join_stores", 0, _ASSUMED),
    ("gpu.l2.fill", 32, f"{_ASSUMED}: the sector that is missing"),
    ("gpu.l2.open_lines", 0, "not known; measured on an H200 alone"),
    ("gpu.l2.update", 0, f"{_ASSUMED}: as fast as stores"),
    ("gpu.l2.partitions", 1, f"{_ASSUMED}: no sign of two"),
    ("gpu.l2.fabric_latency", 100, "unused with one partition"),
    ("gpu.l2.twin_latency", 0, "unused with one partition"),
    ("gpu.l2.far_latency", 0, "unused with one partition"),
    ("gpu.cp.end_flush", 0, "not measured on this card"),
    *HOPPER_ALONE,
    ("gpu.l2.fabric_bandwidth", 0, "unused with one partition"),
    ("gpu.l2.referenced", 1, f"{_V100}"),
    ("gpu.l2.replacement", "random", f"not LRU: {_H200}"),
    ("gpu.dram.bandwidth", 480, f"{_SHEET}: 384 bit of GDDR5X at 10 Gbit/s"),
    ("gpu.dram.latency", 430, f"{_ASSUMED}: class of GDDR5X, about 280 ns"),
    ("gpu.dram.banks", 16, "JEDEC JESD232: 16 banks of a GDDR5X channel"),
    ("gpu.dram.bank_hash", 1, f"{_ASSUMED}: strides of powers of two spread over banks"),
    ("gpu.dram.row_bytes", 2048, "JEDEC JESD232: 2 KiB page of a GDDR5X channel"),
    ("gpu.dram.row_open", 28, f"{_ASSUMED}: class of GDDR5X tRP + tRCD"),
    ("gpu.dram.row_cycle", 45, f"{_ASSUMED}: class of GDDR5X tRC"),
    ("gpu.dram.row_gap", 0, "not seen to bound anything measured or published on these cards"),
    ("gpu.dram.refresh_period", 1900, f"{_ASSUMED}: class of GDDR5X tREFI"),
    ("gpu.dram.refresh_time", 110, f"{_ASSUMED}: class of GDDR5X tRFC"),
    ("gpu.dram.bank_refresh_time", 0, "not measured: banks are refreshed with their channel"),
    ("gpu.dram.turnaround", 1.3, _H200),
    ("gpu.dram.read_turnaround", 5.2, _H200),
    ("gpu.dram.write_queue", 128, f"as Hopper's: {_ASSUMED}"),
    ("gpu.dram.write_batch", 32, f"{_V100}"),
    ("gpu.cp.launch", 1500, f"{_V100}"),
    ("gpu.cp.stream_gap", 940, f"{_V100}"),
    ("gpu.cp.graph_gap", 500, f"{_V100}"),
    ("gpu.cp.admit", 680, f"{_V100}"),
    ("gpu.cp.tb_release", 0.603, _H200),
    ("gpu.cp.tb_start", 0.09, _H200),
    ("gpu.cp.together", 0, "not known"),
    ("gpu.cp.gpc_order", "number", "not known"),
    ("gpu.cp.place", "load", "not known; as documented here before an H200 was looked at"),
    ("gpu.cp.even_tbs", 0, "no such cap is known"),
    ("gpu.cp.tb_done_latency", 70, _H200),
    ("gpu.cp.tb_start_latency", 100, _H200),
)

CARVEOUTS = (96,)  # KiB; shared memory is never lent to L1


def cards() -> tuple[Device, ...]:
    """Return the cards of this generation."""
    title = "NVIDIA Titan X Pascal (GP102, 12 GB GDDR5X)"
    return (card("titan_x_pascal", title, (6, 1), CARVEOUTS, 2, WAITS, _GP102),)
