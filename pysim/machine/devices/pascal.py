"""Pascal: a card with a GP102, from before Volta's new SM.

Shared memory is a separate array there; here L1 and shared memory are one size with one carve-out. There
are no tensor cores: their rate is the least that a device may have. Documents are quoted from memory of their
tables: they were not opened while this file was written.
"""

from __future__ import annotations

from .card import Device, Generation, Rows, card
from .hopper import HOPPER, IN_KERNEL, RELEASE
from .volta import VOLTA

_ASSUMED = "assumed: nobody published it"
_SHEET = "NVIDIA Titan X (Pascal) data sheet (2016)"
_CC = "CUDA C Programming Guide, technical specifications of compute capability 6.1"
_RATES = "CUDA C Programming Guide, arithmetic throughput of compute capability 6.1"
_JIA = (
    "Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking (2018), Tesla P4 (GP104)"
)
_H200 = "a first measurement on an H200 as a stand-in: nobody published it for Pascal"
_NONE = "no tensor cores: the slowest that a device may have"

_GP10X: Rows = (
    ("gpu.tpc_sms", 1, "NVIDIA GP102: TPCs of one SM"),
    ("gpu.sm.warps", 64, _CC),
    ("gpu.sm.tbs", 32, _CC),
    ("gpu.sm.registers", 65536, _CC),
    ("gpu.sm.register_unit", 256, "CUDA occupancy calculator, 6.1: 256 registers a warp"),
    ("gpu.sm.smem", 98304, f"{_CC}: 96 KiB"),
    ("gpu.sm.smem_unit", 256, "CUDA occupancy calculator, 6.1"),
    ("gpu.sm.smem_reserved", 0, "CUDA occupancy calculator: nothing is reserved before 8.0"),
    ("gpu.sm.fp32_interval", 1, f"{_RATES}: 128 a cycle an SM"),
    ("gpu.sm.int_interval", 1, f"{_RATES}: 128 additions a cycle an SM; a multiply is several instructions"),
    ("gpu.sm.fp16_interval", 128, f"{_RATES}: 2 a cycle an SM, two in an HFMA2"),
    ("gpu.sm.fp64_interval", 32, f"{_RATES}: 4 a cycle an SM"),
    ("gpu.sm.sfu_interval", 4, f"{_RATES}: 32 a cycle an SM"),
    ("gpu.sm.tensor_interval", 1024, _NONE),
    ("gpu.sm.fp32_latency", 6, f"{_JIA}: FFMA, FADD 6 cycles"),
    ("gpu.sm.int_latency", 6, f"{_JIA}: IADD, LOP, SHL 6 cycles"),
    ("gpu.sm.fp64_latency", 8, f"{_ASSUMED}; GP100 takes 8"),
    ("gpu.sm.tensor_latency", 1024, _NONE),
    ("gpu.sm.control_latency", 6, _ASSUMED),
    ("gpu.sm.smem_latency", 23, f"{_JIA}: shared memory 23 cycles without conflicts"),
    ("gpu.sm.smem_interval", 1, f"{_JIA}: 32 banks of 4 B, 128 B a cycle an SM"),
    ("gpu.sm.register_ports", 0, f"{_JIA}: four banks, which compilers keep apart"),
    ("gpu.l1.size", 147456, f"{_CC}: 48 KiB of L1 beside 96 KiB of shared memory"),
    ("gpu.l1.latency", 82, f"{_JIA}: L1 hit 82 cycles"),
    ("gpu.noc.latency", 45, f"{_ASSUMED}: the share of the 216 cycles of an L2 hit that leaves L1 its 82"),
    ("gpu.l2.latency", 216, f"{_JIA}: L2 hit 216 cycles"),
    ("gpu.dram.latency", 430, f"{_ASSUMED}: class of GDDR5X, about 280 ns"),
    ("gpu.dram.banks", 16, "JEDEC JESD232: 16 banks of a GDDR5X channel"),
    ("gpu.dram.row_bytes", 2048, "JEDEC JESD232: 2 KiB page of a GDDR5X channel"),
    ("gpu.dram.row_open", 28, f"{_ASSUMED}: class of GDDR5X tRP + tRCD"),
    ("gpu.dram.row_cycle", 45, f"{_ASSUMED}: class of GDDR5X tRC"),
    ("gpu.dram.row_gap", 0, "bounds nothing that was measured or published on these cards"),
    ("gpu.dram.refresh_period", 1900, f"{_ASSUMED}: class of GDDR5X tREFI"),
    ("gpu.dram.refresh_time", 110, f"{_ASSUMED}: class of GDDR5X tRFC"),
    ("gpu.dram.turnaround", 1.3, _H200),
    ("gpu.dram.read_turnaround", 5.2, _H200),
)

PASCAL = Generation(
    "Pascal",
    compute_capability=(6, 1),
    carveouts=(96,),  # KiB; L1 never gets shared memory
    mma_rate=2,
    rows=_GP10X,
    inherits=(HOPPER.only("gpu.dram.write_queue", *RELEASE, *IN_KERNEL), VOLTA),
)

_TITAN_X: Rows = (
    ("gpu.sms", 28, f"{_SHEET}: 28 SMs of 128 cores"),
    ("gpu.gpcs", 6, "NVIDIA GP102: six GPCs"),
    ("gpu.clock", 1531, f"{_SHEET}: boost clock"),
    ("gpu.l2.size", 3145728, f"{_SHEET}: 3 MB"),
    ("gpu.l2.slices", 24, f"{_ASSUMED}: two of 128 KiB for each of twelve 32-bit controllers"),
    ("gpu.dram.bandwidth", 480, f"{_SHEET}: 384 bit of GDDR5X at 10 Gbit/s"),
)


def cards() -> tuple[Device, ...]:
    """Return the cards of this generation."""
    return (card("titan_x_pascal", "NVIDIA Titan X Pascal (GP102, 12 GB GDDR5X)", PASCAL, _TITAN_X),)
