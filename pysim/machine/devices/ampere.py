"""Ampere: a card with a GA100 and one with a GA104.

Nothing here was measured by us. White papers, programming guide and papers are quoted from memory of their
tables: those documents were not opened while this file was written.
"""

from __future__ import annotations

from .card import Device, Generation, Rows, card
from .hopper import HOPPER, IN_KERNEL, RELEASE
from .volta import VOLTA

_ASSUMED = "assumed: nobody published it"
_H200 = "a first measurement on an H200 as a stand-in: nobody published it for Ampere"
_A100 = "NVIDIA A100 white paper (2020)"
_GA102 = "NVIDIA GA102 white paper (2020)"
_CC = "CUDA C Programming Guide, technical specifications of compute capability 8.x"
_RATES = "CUDA C Programming Guide, arithmetic throughput of compute capability 8.x"
_LUO = "Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture (2024)"
_ABDEL = "Abdelkhalik et al., Demystifying the Nvidia Ampere Architecture (2022)"
_SUN = "Sun et al., Dissecting Tensor Cores via Microbenchmarks (2022)"
_ZHANG = "Zhang et al., SC 2023 poster"

# What both chips share.
_AMPERE: Rows = (
    ("gpu.tpc_sms", 2, f"{_A100}: TPCs of two SMs"),
    ("gpu.sm.registers", 65536, _CC),
    ("gpu.sm.register_unit", 256, "CUDA occupancy calculator, 8.x: 256 registers a warp"),
    ("gpu.sm.smem_unit", 128, "CUDA occupancy calculator, 8.x"),
    ("gpu.sm.smem_reserved", 1024, "CUDA occupancy calculator, 8.x: 1 KiB a TB"),
    ("gpu.sm.int_interval", 2, f"{_RATES}: 64 a cycle an SM"),
    ("gpu.sm.fp16_interval", 1, f"{_RATES}: 256 a cycle an SM, two in an HFMA2"),
    ("gpu.sm.sfu_interval", 8, f"{_RATES}: 16 a cycle an SM"),
    ("gpu.sm.fp32_latency", 4, f"{_ABDEL}: dependent FFMA, FADD 4 cycles"),
    ("gpu.sm.int_latency", 4, f"{_ABDEL}: IADD3, LOP3, IMAD 4 cycles"),
    ("gpu.sm.smem_latency", 23, f"{_ABDEL}: 23 cycles"),
    ("gpu.sm.smem_interval", 1, f"{_A100}: 32 banks of 4 B"),
    (
        "gpu.noc.latency",
        70,
        f"{_ASSUMED}: the share of the L2 latency that leaves 80 cycles for L1 and slice",
    ),
    ("gpu.noc.reply_bytes", 64, f"{_A100}: 64 B a cycle and SM"),
    ("gpu.l2.referenced", 4, _H200),
    ("gpu.dram.banks", 16, "JEDEC JESD235 and JESD250: 16 banks of an HBM2 pseudo channel, a GDDR6 channel"),
    ("gpu.dram.row_open", 28, f"{_ASSUMED}: class of HBM2 and GDDR6 tRP + tRCD"),
    ("gpu.dram.row_gap", 0, "bounds nothing that was measured or published on these cards"),
    ("gpu.dram.refresh_period", 3900, "JEDEC: tREFI 3.9 us"),
    ("gpu.dram.turnaround", 1.3, _H200),
    ("gpu.dram.read_turnaround", 5.2, _H200),
    ("gpu.cp.launch", 1260, _H200),
)

AMPERE = Generation(
    "Ampere",
    compute_capability=(8, 0),
    carveouts=(0, 8, 16, 32, 64, 100, 132, 164),  # KiB; CUDA guide, 8.0
    mma_rate=256,
    rows=_AMPERE,
    inherits=(
        HOPPER.only(
            *("gpu.sm.sfu_latency", "gpu.sm.barrier", "gpu.sm.barrier_warp", "gpu.l1.in_flight"),
            *("gpu.noc.write_bytes", "gpu.l2.fabric_latency", "gpu.l2.twin_latency", "gpu.l2.update"),
            *("gpu.dram.write_queue", *RELEASE, *IN_KERNEL),
        ),
        VOLTA,
    ),
)

_GA100: Rows = (
    ("gpu.sms", 108, f"{_A100}: 108 of 128 SMs"),
    ("gpu.gpcs", 7, f"{_A100}: 7 of 8 GPCs"),
    ("gpu.clock", 1410, f"{_A100}: boost clock"),
    (
        "gpu.clock_tensor",
        0.87,
        "fitted: median of stream order over the half `fit` of cuSync's GEMMs; Hopper's is 0.875, measured in"
        " large GEMMs, h100_fabric.csv",
    ),
    ("gpu.sm.warps", 64, _CC),
    ("gpu.sm.tbs", 32, _CC),
    ("gpu.sm.smem", 167936, f"{_CC}: 164 KiB"),
    ("gpu.sm.fp32_interval", 2, f"{_RATES}: 64 a cycle an SM"),
    ("gpu.sm.fp64_interval", 4, f"{_RATES}: 32 a cycle an SM"),
    ("gpu.sm.tensor_interval", 8, f"{_A100}: 256 multiply-adds a cycle a sub-core; an HMMA.16816 is 2048"),
    ("gpu.sm.tensor_latency", 25, f"{_SUN}: mma.m16n8k16 with fp32 sums 25 cycles"),
    ("gpu.l1.size", 196608, f"{_A100}: 192 KiB of L1 and shared memory an SM"),
    ("gpu.l1.latency", 38, f"{_LUO}: 37.9 cycles"),
    ("gpu.l2.size", 41943040, f"{_A100}: 40 MiB"),
    ("gpu.l2.slices", 80, f"{_A100}: 5120 B a cycle, 80 slices of 64"),
    ("gpu.l2.latency", 262, f"{_LUO}: 261.5 cycles"),
    (
        "gpu.l2.slice_bytes",
        50,
        f"{_A100}: 64 at most; 50 is what all SMs of an H200 together read from each of its slices",
    ),
    ("gpu.l2.partitions", 2, f"{_A100}: two partitions"),
    (
        "gpu.l2.fabric_bandwidth",
        1720,
        f"{_ASSUMED}: the share of the L2's bandwidth that crosses between an H200's partitions",
    ),
    ("gpu.dram.bandwidth", 2039, "NVIDIA A100 80GB data sheet: 5120 bit at 2 x 1593 MHz"),
    ("gpu.dram.latency", 466, f"{_LUO}: 466.3 cycles"),
    ("gpu.dram.row_bytes", 1024, "JEDEC JESD235: 1 KiB page of an HBM2 pseudo channel"),
    ("gpu.dram.row_cycle", 47, f"{_ASSUMED}: class of HBM2 tRC"),
    ("gpu.dram.refresh_time", 260, "class of HBM2 tRFC"),
    (
        "gpu.cp.stream_gap",
        1320,
        f"{_ZHANG}: 1503 ns for each extra null kernel (PCIe card), less TB start and end",
    ),
    ("gpu.cp.graph_gap", 570, f"{_A100}: grid to grid 2.0 times as fast in a graph as in a stream"),
    ("gpu.cp.admit", 750, "graph period of one-TB kernels that gpu.cp.graph_gap gives"),
)

_GA104: Rows = (
    ("gpu.sms", 46, f"{_GA102}: RTX 3070, 46 of 48 SMs"),
    ("gpu.gpcs", 6, f"{_GA102}: RTX 3070, 6 GPCs"),
    ("gpu.clock", 1725, f"{_GA102}: RTX 3070 boost clock"),
    ("gpu.sm.warps", 48, f"{_CC}: 8.6"),
    ("gpu.sm.tbs", 16, f"{_CC}: 8.6"),
    ("gpu.sm.smem", 102400, f"{_CC}: 8.6, 100 KiB"),
    ("gpu.sm.fp32_interval", 1, f"{_RATES}: 8.6, 128 a cycle an SM"),
    ("gpu.sm.fp64_interval", 64, f"{_RATES}: 8.6, 2 a cycle an SM"),
    (
        "gpu.sm.tensor_interval",
        32,
        f"{_GA102}: RTX 3070 40.6 TFLOPS fp16 with fp32 sums, 64 multiply-adds a cycle a sub-core",
    ),
    (
        "gpu.sm.tensor_latency",
        34,
        f"{_SUN}: mma.m16n8k16 with fp32 sums 33 cycles on GA10x; at least its interval",
    ),
    ("gpu.l1.size", 131072, f"{_GA102}: 128 KiB of L1 and shared memory an SM"),
    ("gpu.l1.latency", 33, f"{_ABDEL}: 33 cycles, on an A100"),
    ("gpu.l2.size", 4194304, f"{_GA102}: RTX 3070 4096 KB"),
    ("gpu.l2.slices", 32, f"{_ASSUMED}: four of 128 KiB for each 32-bit controller of 512 KB"),
    ("gpu.l2.latency", 240, f"{_ASSUMED}: class of GA10x"),
    ("gpu.l2.slice_bytes", 32, f"{_ASSUMED}: a sector a cycle"),
    ("gpu.dram.bandwidth", 448, f"{_GA102}: RTX 3070, 256 bit of GDDR6 at 14 Gbit/s"),
    ("gpu.dram.latency", 470, f"{_ASSUMED}: class of GDDR6 on GA10x, about 270 ns"),
    ("gpu.dram.row_bytes", 2048, "JEDEC JESD250: 2 KiB page of a GDDR6 channel"),
    ("gpu.dram.row_cycle", 45, f"{_ASSUMED}: class of GDDR6 tRC"),
    ("gpu.dram.refresh_time", 220, f"{_ASSUMED}: class of GDDR6 tRFC"),
    (
        "gpu.cp.stream_gap",
        845,
        f"{_ZHANG}: 1025 ns for each extra null kernel of an RTX 3090, less TB start and end",
    ),
    (
        "gpu.cp.graph_gap",
        350,
        f"{_ASSUMED}: grid to grid twice as fast as in a stream, as {_A100} says of its card",
    ),
    ("gpu.cp.admit", 530, "graph period of one-TB kernels that gpu.cp.graph_gap gives"),
)


def cards() -> tuple[Device, ...]:
    """Return the cards of this generation."""
    return (
        card("a100", "NVIDIA A100 SXM4 (GA100, 80 GB HBM2e)", AMPERE, _GA100),
        card(
            "rtx3070",
            "NVIDIA GeForce RTX 3070 (GA104, 8 GB GDDR6)",
            AMPERE,
            _GA104,
            compute_capability=(8, 6),
            carveouts=(0, 8, 16, 32, 64, 100),  # KiB; CUDA guide, 8.6
            mma_rate=64,
        ),
    )
