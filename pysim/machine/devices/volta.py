"""Volta: cards with a GV100.

Figures cited to Jia et al., JEDEC and the CUDA guides are quoted second-hand: those documents were not
opened while this file was written.
"""

from __future__ import annotations

from .card import Device, Generation, Rows, card
from .hopper import HOPPER, IN_KERNEL, RELEASE

# Sources that many rows share.
_SHEET = "NVIDIA V100 white paper (2017), table 1"
_CC70 = "CUDA C Programming Guide, technical specifications of compute capability 7.0"
_RATES = "CUDA C Programming Guide, arithmetic throughput of compute capability 7.0"
_JIA = "Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking (2018)"
_ACCEL = "Accel-Sim SM7_TITANV and SM7_QV100"
_ASSUMED = "assumed: nobody published it"
_TURN = (
    "share of 390 cycles from a TB's end to its successor's start in the same slot, a first measurement on an"
    " H200: nobody published it for Volta"
)
_GAP = (
    "Zhang et al., IPDPS 2020, table I: 1081 ns for each extra null kernel in a V100 stream, and 1161 ns in"
    " their SC 2023 poster; the middle, 1120 ns, is this gap + tb_start_latency 100 + tb_done_latency 70 +"
    " about 10 ns of running. NVIDIA's graph blog (2019) agrees: 3.8 us a kernel of 2.9 us"
)
_GRAPH_GAP = (
    "NVIDIA's graph blog (2019), V100: 3.4 us for each kernel of 2.9 us; with the TB start and end latencies"
    " a chain of null kernels has a period of about 680 ns"
)

# What every GV100 card shares: path, value, source.
_GV100: Rows = (
    ("gpu.sms", 80, f"{_SHEET}: 80 of 84 SMs"),
    ("gpu.gpcs", 6, f"{_SHEET}: six GPCs"),
    ("gpu.tpc_sms", 2, f"{_SHEET}: TPCs of two SMs"),
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
    ("gpu.sm.smem_interval", 1, f"{_JIA}: 32 banks of 4 B, 128 B a cycle an SM"),
    ("gpu.sm.lsu_queue", 32, _ASSUMED),
    ("gpu.sm.copy_hold", 0.25, f"{_ASSUMED}: a line of four sectors a cycle, as for other loads"),
    ("gpu.sm.smem_latency", 19, f"{_JIA}: shared memory 19 cycles without conflicts"),
    ("gpu.sm.smem_conflicts", "words", f"{_ASSUMED}: a wide access takes a wavefront for each 8 lanes"),
    ("gpu.sm.barrier", 20, f"{_ASSUMED} for Volta; an A100 takes 23 cycles with one warp"),
    ("gpu.sm.register_ports", 1, f"{_JIA}: two 64-bit banks; three sources in one lose a slot"),
    ("gpu.sm.warp_order", "greedy", f"{_ASSUMED}; greedy then oldest is what most studies find"),
    ("gpu.l1.size", 131072, f"{_SHEET}: 128 KiB of L1 and shared memory an SM"),
    ("gpu.l1.latency", 28, f"{_JIA}: L1 hit 28 cycles"),
    ("gpu.l1.in_flight", 256, f"{_ASSUMED}; {_ACCEL} have 512 miss entries"),
    (
        "gpu.noc.latency",
        60,
        f"{_ASSUMED}: the share of the 193 cycles of an L2 hit that leaves 73 for L1 miss and slice",
    ),
    ("gpu.noc.reply_bytes", 64, f"{_ASSUMED} for Volta: two sectors a cycle, half of an L1 line"),
    ("gpu.noc.write_bytes", 32, f"{_ASSUMED}: a sector a cycle; {_ACCEL} move 40 B flits, header included"),
    ("gpu.l2.hash", 1, f"{_ASSUMED}: strides of powers of two spread over slices"),
    ("gpu.l2.latency", 193, f"{_JIA}: L2 hit 193 cycles"),
    (
        "gpu.l2.slice_bytes",
        32,
        "NVIDIA A100 white paper (2020): a V100 reads 2048 B a cycle, 64 slices of 32",
    ),
    (
        "gpu.l2.replacement",
        "random",
        "not LRU: a first measurement on an H200, where cyclic reads of 64 and 96 MB stay above DRAM speed;"
        " nobody published it for Volta",
    ),
    ("gpu.dram.latency", 375, f"{_JIA}: L2 miss with a TLB hit 375 cycles"),
    ("gpu.dram.banks", 16, f"{_ACCEL}: 16 banks; HBM2 pseudo channel"),
    ("gpu.dram.bank_hash", 1, f"{_ASSUMED}: strides of powers of two spread over banks"),
    ("gpu.dram.row_bytes", 1024, "JEDEC JESD235: 1 KiB page of an HBM2 pseudo channel"),
    ("gpu.dram.row_open", 28.2, f"{_ACCEL}: RP 12 + RCD 12 clocks at 850 MHz"),
    ("gpu.dram.row_cycle", 47.1, f"{_ACCEL}: RC 40 clocks at 850 MHz"),
    (
        "gpu.dram.row_gap",
        10,
        "fitted to half `fit` of DeepBench: fp16 GEMMs that read 64 B of each row of K at a time, 350 to 390"
        " GB/s, give 11; those that stream whole lines at 850 GB/s allow no more than 10",
    ),
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
    ("gpu.cp.tb_done_latency", 70, _TURN),
    ("gpu.cp.tb_start_latency", 100, _TURN),
)

VOLTA = Generation(
    "Volta",
    compute_capability=(7, 0),
    carveouts=(0, 8, 16, 32, 64, 96),  # KiB; CUDA guide, 7.x
    mma_rate=128,
    rows=_GV100,
    inherits=(HOPPER.only("gpu.cp.admit", *RELEASE, *IN_KERNEL),),
)

_TITAN_V: Rows = (
    ("gpu.clock", 1455, "NVIDIA Titan V data sheet: boost clock"),
    ("gpu.l2.size", 4718592, "NVIDIA Titan V data sheet: 4.5 MB"),
    ("gpu.l2.slices", 48, "Accel-Sim SM7_TITANV: 24 channels x 2; three HBM2 stacks of 16 pseudo channels"),
    ("gpu.dram.bandwidth", 652.8, "NVIDIA Titan V data sheet: 3072 bit at 2 x 850 MHz"),
)
_V100: Rows = (
    ("gpu.clock", 1530, "NVIDIA V100 SXM2 data sheet: boost clock"),
    ("gpu.l2.size", 6291456, f"{_SHEET}: 6144 KB"),
    ("gpu.l2.slices", 64, "Accel-Sim SM7_QV100: 32 channels x 2; four HBM2 stacks of 16 pseudo channels"),
    ("gpu.dram.bandwidth", 898.0, "NVIDIA V100 SXM2 data sheet (900 GB/s): 4096 bit at 2 x 877 MHz"),
)
# The card as its driver sets it: whoever wants the boost clock asks for it.
_V100_32GB: Rows = (
    (
        "gpu.clock",
        1290,
        "default application clock of a V100-SXM2-32GB, 1530 at most (nvidia-smi -q in NVIDIA/nvidia-docker,"
        " issue 1076, where the SMs run at it; 1312 on the 16 GB card)",
    ),
    (
        "gpu.l1.in_flight",
        128,
        "fitted to cuSync's GEMMs and convolutions, which load 8 to 32 KB an iteration: of 96, 128 and 256;"
        " DeepBench's GEMMs fit as well with 128 as with 256 (so the other cards keep that), not with 96",
    ),
)


def cards() -> tuple[Device, ...]:
    """Return the cards of this generation."""
    return (
        card("titan_v", "NVIDIA Titan V (GV100, 12 GB HBM2)", VOLTA, _TITAN_V),
        card("v100", "NVIDIA Tesla V100 SXM2 (GV100, 16 GB HBM2)", VOLTA, _V100),
        card(
            "v100_32gb",
            "NVIDIA Tesla V100 SXM2 (GV100, 32 GB HBM2) at its default clock",
            VOLTA,
            *(_V100, _V100_32GB),
        ),
    )
