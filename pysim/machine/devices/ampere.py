"""Ampere: a card with a GA100 and one with a GA104.

Nothing here was measured by us. White papers, programming guide and papers are quoted from memory of their
tables: those documents were not opened while this file was written.
"""

from __future__ import annotations

from .card import Device, Rows, card
from .hopper_alone import HOPPER_ALONE
from .waits import WAITS

_ASSUMED = "assumed: nobody published it"
_H200 = "measured on an H200 as a stand-in: nobody published it for Ampere"
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
    ("gpu.sm.own_carveout", 0, "not known; measured on an H200 alone"),
    ("gpu.sm.smem_reserved", 1024, "CUDA occupancy calculator, 8.x: 1 KiB a TB"),
    ("gpu.sm.int_interval", 2, f"{_RATES}: 64 a cycle an SM"),
    ("gpu.sm.sfu_interval", 8, f"{_RATES}: 16 a cycle an SM"),
    ("gpu.sm.control_interval", 1, _ASSUMED),
    ("gpu.sm.fp32_latency", 4, f"{_ABDEL}: FFMA, FADD 4 cycles where they follow one another"),
    ("gpu.sm.int_latency", 4, f"{_ABDEL}: IADD3, LOP3, IMAD 4 cycles"),
    ("gpu.sm.fp16_latency", 6, f"{_ASSUMED}; Volta takes 6"),
    ("gpu.sm.fp64_latency", 8, f"{_ASSUMED}; Volta and Hopper take 8"),
    ("gpu.sm.sfu_latency", 17, f"MUFU: {_H200}"),
    ("gpu.sm.control_latency", 4, _ASSUMED),
    ("gpu.sm.smem_latency", 23, f"{_ABDEL}: 23 cycles"),
    ("gpu.sm.smem_interval", 1, f"{_A100}: 32 banks of 4 B"),
    ("gpu.sm.smem_conflicts", "words", f"as Hopper's: {_ASSUMED}"),
    ("gpu.sm.barrier", 13, f"{_H200}; one warp is said to take 23 cycles on an A100"),
    ("gpu.sm.smem_return", 1, "not known: as fast as shared memory"),
    ("gpu.sm.barrier_warp", 2, _H200),
    ("gpu.sm.register_ports", 1, f"two banks, as Volta has: {_ASSUMED}"),
    ("gpu.sm.warp_order", "greedy", f"{_ASSUMED}; greedy then oldest is what most studies find"),
    ("gpu.sm.block_max", 1024, "choice of the model: kernel times stay within 2 % of length 1"),
    ("gpu.sm.block_tensor", 1024, "choice of the model, as gpu.sm.block_max"),
    ("gpu.l1.in_flight", 256, _H200),
    (
        "gpu.noc.latency",
        70,
        f"{_ASSUMED}: the share of the L2 latency that leaves 80 cycles for L1 and slice",
    ),
    ("gpu.noc.port_sms", 1, f"{_ASSUMED}: no limit of a TPC below that of its SMs is known"),
    ("gpu.noc.read_sector", 0, f"{_ASSUMED}: a request of a line a cycle"),
    ("gpu.noc.reply_bytes", 64, f"{_A100}: 64 B a cycle and SM"),
    ("gpu.noc.write_bytes", 32, _H200),
    ("gpu.l2.hash_slices", 0, f"{_ASSUMED}: an even hash"),
    ("gpu.l2.hash", 1, f"{_ASSUMED}: strides of powers of two spread over slices"),
    ("gpu.l2.fabric_latency", 107, _H200),
    ("gpu.l2.twin_latency", 172, _H200),
    ("gpu.l2.far_latency", 0, "not measured on this card"),
    ("gpu.cp.end_flush", 0, "not measured on this card"),
    *HOPPER_ALONE,
    ("gpu.l2.open_lines", 0, "not known; measured on an H200 alone"),
    ("gpu.l2.update", 1.58, _H200),
    ("gpu.l2.referenced", 4, _H200),
    ("gpu.l2.replacement", "random", f"not LRU: {_H200}"),
    ("gpu.dram.refresh_period", 3900, "JEDEC: tREFI 3.9 us"),
    ("gpu.dram.turnaround", 1.3, _H200),
    ("gpu.dram.read_turnaround", 5.2, _H200),
    ("gpu.dram.write_queue", 128, f"as Hopper's: {_ASSUMED}"),
    ("gpu.dram.write_batch", 32, _ASSUMED),
    ("gpu.dram.row_gap", 0, "not seen to bound anything measured or published on these cards"),
    ("gpu.cp.launch", 1260, _H200),
    ("gpu.cp.tb_release", 0.603, _H200),
    ("gpu.cp.tb_start", 0.09, _H200),
    ("gpu.cp.together", 0, "not known"),
    ("gpu.cp.gpc_order", "number", "not known"),
    ("gpu.cp.place", "load", "not known; as documented here before an H200 was looked at"),
    ("gpu.cp.even_tbs", 0, "no such cap is known"),
    ("gpu.cp.tb_done_latency", 70, _H200),
    ("gpu.cp.tb_start_latency", 100, _H200),
)

_GA100: Rows = (
    ("gpu.sms", 108, f"{_A100}: 108 of 128 SMs"),
    ("gpu.gpcs", 7, f"{_A100}: 7 of 8 GPCs"),
    ("gpu.clock", 1410, f"{_A100}: boost clock"),
    (
        "gpu.clock_tensor",
        0.87,
        "fitted: median of stream order over the half fit of cuSync's products; an H200's is 0.909, measured",
    ),
    ("gpu.sm.refetch", 0, "not measured there"),
    ("gpu.sm.parameters", 0, "not measured there"),
    ("gpu.sm.warps", 64, _CC),
    ("gpu.sm.tbs", 32, _CC),
    ("gpu.sm.smem", 167936, f"{_CC}: 164 KiB"),
    ("gpu.sm.fp32_interval", 2, f"{_RATES}: 64 a cycle an SM"),
    ("gpu.sm.fp16_interval", 1, f"{_RATES}: 256 a cycle an SM, two in an HFMA2"),
    ("gpu.sm.fp64_interval", 4, f"{_RATES}: 32 a cycle an SM"),
    ("gpu.sm.tensor_interval", 8, f"{_A100}: 256 multiply-adds a cycle a sub-core; an HMMA.16816 is 2048"),
    ("gpu.sm.tensor_latency", 25, f"{_SUN}: mma.m16n8k16 with fp32 sums 25 cycles"),
    ("gpu.l1.size", 196608, f"{_A100}: 192 KiB of L1 and shared memory an SM"),
    ("gpu.l1.reserved", 0, "not known; measured on an H200 alone"),
    ("gpu.l1.keep_stores", 0, "not known; measured on an H200 alone"),
    ("gpu.l1.latency", 38, f"{_LUO}: 37.9 cycles"),
    ("gpu.l2.size", 41943040, f"{_A100}: 40 MiB"),
    ("gpu.l2.slices", 80, f"{_A100}: 5120 B a cycle, 80 slices of 64"),
    ("gpu.l2.latency", 262, f"{_LUO}: 261.5 cycles"),
    ("gpu.l2.slice_bytes", 50, f"64 at most ({_A100}); what all SMs of an H200 get of each of its slices"),
    ("gpu.noc.join_loads", 0, f"{_ASSUMED}; an H200's GPCs do"),
    ("gpu.l1.join_stores", 0, f"{_ASSUMED}; an H200's pairs do"),
    ("gpu.l2.fill", 32, f"{_ASSUMED}: the sector that is missing"),
    ("gpu.l2.partitions", 2, f"{_A100}: two partitions"),
    ("gpu.l2.fabric_bandwidth", 1720, "the share of the L2's bandwidth that an H200's has"),
    ("gpu.dram.bandwidth", 2039, "NVIDIA A100 80GB data sheet: 5120 bit at 2 x 1593 MHz"),
    ("gpu.dram.latency", 466, f"{_LUO}: 466.3 cycles"),
    ("gpu.dram.banks", 16, "JEDEC JESD235: 16 banks of an HBM2 pseudo channel"),
    ("gpu.dram.bank_hash", 1, f"{_ASSUMED}: strides of powers of two spread over banks"),
    ("gpu.dram.row_bytes", 1024, "JEDEC JESD235: 1 KiB page of an HBM2 pseudo channel"),
    ("gpu.dram.row_open", 28, f"{_ASSUMED}: class of HBM2 tRP + tRCD"),
    ("gpu.dram.row_cycle", 47, f"{_ASSUMED}: class of HBM2 tRC"),
    ("gpu.dram.refresh_time", 260, "class of HBM2 tRFC"),
    ("gpu.dram.bank_refresh_time", 0, "not measured: banks are refreshed with their channel"),
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
    ("gpu.clock_tensor", 1, f"{_ASSUMED}: no change of the clock below the power limit"),
    ("gpu.sm.refetch", 0, "not measured there"),
    ("gpu.sm.parameters", 0, "not measured there"),
    ("gpu.sm.warps", 48, f"{_CC}: 8.6"),
    ("gpu.sm.tbs", 16, f"{_CC}: 8.6"),
    ("gpu.sm.smem", 102400, f"{_CC}: 8.6, 100 KiB"),
    ("gpu.sm.fp32_interval", 1, f"{_RATES}: 8.6, 128 a cycle an SM"),
    ("gpu.sm.fp16_interval", 1, f"{_RATES}: 8.6, 256 a cycle an SM, two in an HFMA2"),
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
    ("gpu.l1.reserved", 0, "not known; measured on an H200 alone"),
    ("gpu.l1.keep_stores", 0, "not known; measured on an H200 alone"),
    ("gpu.l1.latency", 33, f"{_ABDEL}: 33 cycles, on an A100"),
    ("gpu.l2.size", 4194304, f"{_GA102}: RTX 3070 4096 KB"),
    ("gpu.l2.slices", 32, f"{_ASSUMED}: four of 128 KiB for each 32-bit controller of 512 KB"),
    ("gpu.l2.latency", 240, f"{_ASSUMED}: class of GA10x"),
    ("gpu.l2.slice_bytes", 32, f"{_ASSUMED}: a sector a cycle"),
    ("gpu.noc.join_loads", 0, f"{_ASSUMED}; an H200's GPCs do"),
    ("gpu.l1.join_stores", 0, f"{_ASSUMED}; an H200's pairs do"),
    ("gpu.l2.fill", 32, f"{_ASSUMED}: the sector that is missing"),
    ("gpu.l2.partitions", 1, f"{_ASSUMED}: no sign of two"),
    ("gpu.l2.fabric_bandwidth", 0, "unused with one partition"),
    ("gpu.dram.bandwidth", 448, f"{_GA102}: RTX 3070, 256 bit of GDDR6 at 14 Gbit/s"),
    ("gpu.dram.latency", 470, f"{_ASSUMED}: class of GDDR6 on GA10x, about 270 ns"),
    ("gpu.dram.banks", 16, "JEDEC JESD250: 16 banks of a GDDR6 channel"),
    ("gpu.dram.bank_hash", 1, f"{_ASSUMED}: strides of powers of two spread over banks"),
    ("gpu.dram.row_bytes", 2048, "JEDEC JESD250: 2 KiB page of a GDDR6 channel"),
    ("gpu.dram.row_open", 28, f"{_ASSUMED}: class of GDDR6 tRP + tRCD"),
    ("gpu.dram.row_cycle", 45, f"{_ASSUMED}: class of GDDR6 tRC"),
    ("gpu.dram.refresh_time", 220, f"{_ASSUMED}: class of GDDR6 tRFC"),
    ("gpu.dram.bank_refresh_time", 0, "not measured: banks are refreshed with their channel"),
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

CARVEOUTS_80 = (0, 8, 16, 32, 64, 100, 132, 164)  # KiB; CUDA guide, 8.0
CARVEOUTS_86 = (0, 8, 16, 32, 64, 100)  # KiB; CUDA guide, 8.6


def cards() -> tuple[Device, ...]:
    """Return the cards of this generation."""
    a100 = (CARVEOUTS_80, 256, WAITS, _AMPERE, _GA100)
    rtx3070 = (CARVEOUTS_86, 64, WAITS, _AMPERE, _GA104)
    return (
        card("a100", "NVIDIA A100 SXM4 (GA100, 80 GB HBM2e)", (8, 0), *a100),
        card("rtx3070", "NVIDIA GeForce RTX 3070 (GA104, 8 GB GDDR6)", (8, 6), *rtx3070),
    )
