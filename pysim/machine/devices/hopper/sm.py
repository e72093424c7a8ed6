"""SMs and L1 of a GH100."""

from __future__ import annotations

from pysim.machine.devices.card import Rows

from .measured import ASSUMED, CC90, MICRO, SHEET

_RATE = f"{MICRO} arith_throughput_thread_ops_per_cycle_per_sm"
_CHAIN = f"{MICRO} arith_latency_cycles"
_BARRIER = "measured, h200_steps.csv: a barrier of n warps takes 12.7 + 2 n cycles"

SM: Rows = (
    ("gpu.gpcs", 8, f"{SHEET}: eight GPCs; the H200's placement shows them, 18, 18 and six times 16 SMs"),
    ("gpu.tpc_sms", 2, f"{SHEET}: TPCs of two SMs"),
    (
        "gpu.clock_tensor",
        0.875,
        "measured, h100_fabric.csv: 1,716 to 1,781 of 1,978 MHz in large GEMMs (h200_clock.csv: 1,797 with"
        " mma instructions alone, 1,632 to 1,781 in GEMMs)",
    ),
    ("gpu.sm.warps", 64, f"{CC90}; {MICRO} max_threads_per_sm 2048"),
    ("gpu.sm.tbs", 32, f"{MICRO} max_tbs_per_sm"),
    ("gpu.sm.registers", 65536, f"{MICRO} regs_per_sm"),
    ("gpu.sm.register_unit", 256, "CUDA occupancy calculator, 9.0: 256 registers a warp"),
    ("gpu.sm.smem", 233472, f"{MICRO} smem_per_sm_bytes: 228 KiB"),
    ("gpu.sm.smem_unit", 128, "CUDA occupancy calculator, 9.0"),
    ("gpu.sm.parameters", 105, "measured on an H200 (tests/hw/sm/fetch.cu): 97 to 122 cycles"),
    (
        "gpu.sm.refetch",
        720,
        "measured, h200_early.csv: TBs of a GRU's GEMMs and element-wise kernels take 236 to 530 ns longer"
        " (mean 365) if a stream launches a kernel beside them than in a graph or alone; kernels launched"
        " beside others start 0.4 us further apart than those of a few instructions (pdl_pair_ns)",
    ),
    (
        "gpu.sm.own_carveout",
        1,
        "measured, h200_carve.csv: beside TBs of 8 KiB of shared memory none of 16 KiB start before the SM is"
        " idle, nor any of 16, 29 or 100 KiB beside one of 57 KiB, whose kernel chose a smaller carve-out",
    ),
    ("gpu.sm.smem_reserved", 1024, f"{MICRO} smem_reserved_per_block_bytes"),
    ("gpu.sm.fp32_interval", 1, f"{_RATE}.ffma 121.5 of 128"),
    ("gpu.sm.int_interval", 2, f"{_RATE}.iadd3, .imad, .lop3: 63 of 64"),
    ("gpu.sm.fp16_interval", 1, f"{_RATE}.hfma2 118.5 of 128"),
    ("gpu.sm.fp64_interval", 2, f"{_RATE}.dfma 63.6 of 64"),
    ("gpu.sm.sfu_interval", 8, f"{_RATE}.mufu_*: 16"),
    (
        "gpu.sm.tensor_interval",
        6.03,
        f"{MICRO} mma_m16n8k16_flop_per_cycle_per_sm: 2716, an HMMA.16816 of a warp is 4096",
    ),
    ("gpu.sm.control_interval", 1, ASSUMED),
    ("gpu.sm.fp32_latency", 4, f"{_CHAIN}.ffma, .fadd: 3.99"),
    ("gpu.sm.int_latency", 4, f"{_CHAIN}.iadd3, .lop3, .imad: 4"),
    ("gpu.sm.fp16_latency", 8, f"{_CHAIN}.hfma2: 7.98 for a chain through one register"),
    ("gpu.sm.fp64_latency", 8, f"{_CHAIN}.dfma: 7.98"),
    ("gpu.sm.sfu_latency", 17, f"{_CHAIN}.mufu_*: 16.9"),
    ("gpu.sm.tensor_latency", 24, f"{MICRO} mma_m16n8k16_f32f16_latency_cycles: 24.35"),
    ("gpu.sm.control_latency", 4, ASSUMED),
    ("gpu.sm.smem_interval", 1, f"{MICRO} shared_bandwidth_B_per_cycle_per_sm.v4: 121.9 of 128"),
    (
        "gpu.sm.smem_return",
        2.5,
        "measured, h200_parts.csv: LDS.64 and LDS.128 of 2 and 4 wavefronts take 3 and 9 cycles longer than"
        " loads of one; h200_steps.csv: ldmatrix.x4 takes 6 cycles longer",
    ),
    (
        "gpu.sm.smem_late",
        0.16,
        "measured, h200_parts.csv: beside 4 and 8 FFMA, loads of 64 and 128 bits that fill shared memory take"
        " 0.07 to 0.36 cycles more for each issue slot that the arithmetic loses; the mean",
    ),
    (
        "gpu.sm.smem_queue",
        208,
        "measured, h200_queue.csv: if 16 warps load 16 B a lane back to back, the last result arrives 240"
        " cycles after its load has issued, 33 of them latency: 13 loads a sub-core, 4 wavefronts each",
    ),
    (
        "gpu.sm.copy_gap",
        4,
        "measured, h200_copies.csv: distance of a warp's async copies where nothing else limits them",
    ),
    (
        "gpu.sm.queue",
        4,
        "measured, h200_entry.csv: loads wait until async copies of other warps have left; 3 to 5 by the"
        " main-loop iterations of one and two tensor-core GEMM TBs on an SM (h100_lone.csv); there the first"
        " loads come after all async copies have issued (tests/hw/sm/inside.cu)",
    ),
    (
        "gpu.sm.queue_read",
        32,
        "measured, h200_taken.csv: 11 cycles more for each async copy of a warp until its registers may be"
        " written",
    ),
    (
        "gpu.sm.copy_queue",
        5,
        "fitted to the main-loop iterations of one and two tensor-core GEMM TBs on an SM (h100_lone.csv);"
        " async copies alone show 7 to 12 (h200_taken.csv, h200_entry.csv)",
    ),
    (
        "gpu.sm.copy_hold",
        0.078,
        "measured, h200_array.csv: the async copies of an iteration (768 sectors) keep loads from the array"
        " for 63 to 118 cycles, whatever its padding: 60",
    ),
    (
        "gpu.sm.lsu_queue",
        512,
        f"{ASSUMED}: more than the async copies of a TB's iteration (408 lines), which never kept warps from"
        " issuing more",
    ),
    (
        "gpu.sm.lsu_shared",
        1,
        "measured, h100_lone.csv: three TBs with 64 x 64 tiles take 236 cycles an iteration each, 204 lines"
        " of async copies and 32 loads from shared memory",
    ),
    ("gpu.sm.smem_latency", 23, f"{MICRO} latency_cycles.shared: 23.08"),
    ("gpu.sm.smem_conflicts", "words", f"{ASSUMED}: a wide access takes a wavefront for each 8 lanes"),
    ("gpu.sm.barrier", 13, _BARRIER),
    ("gpu.sm.barrier_warp", 2, _BARRIER),
    (
        "gpu.sm.barrier_leave",
        1,
        "measured, h100_skew.csv, h200_leave.csv: after a barrier the loads of a TB's warps issue one a"
        " cycle, in a sub-core in the order of arrival; h200_vary.csv: TBs therefore keep a rhythm each"
        " (modelled as an order drawn for each TB)",
    ),
    (
        "gpu.sm.leave_stores",
        1,
        "measured, h200_gaps.csv: a store at the end of its TB frees the slot 111 to 134 cycles later, but"
        " takes 495 to be acknowledged",
    ),
    ("gpu.sm.register_ports", 1, f"two banks, as Volta has: {ASSUMED} for Hopper"),
    (
        "gpu.sm.warp_order",
        "greedy_oldest",
        "measured, h200_order.csv: of 16 equal TBs on an SM the oldest ends its special functions after a"
        " sixteenth of the time, the next after two; likewise stores and arithmetic. A warp goes on until it"
        " must wait: h200_shared_parts.csv, iterations of two fp32 GEMM TBs on an SM; not with tensor"
        " instructions: h200_shared_steps.csv",
    ),
    ("gpu.sm.block_tensor", 8, "choice of the model: longer blocks of mma delay an older warp's too long"),
    (
        "gpu.bulk.test",
        41,
        "measured, h200_tma_unit.csv: tests of an mbarrier that has completed, one after another",
    ),
    (
        "gpu.bulk.arrive",
        99,
        "measured, h200_clusters_sync.csv: a hand-over by mbarrier takes 140 cycles, less gpu.bulk.test",
    ),
    (
        "gpu.bulk.latency",
        15,
        "measured, h200_tma_latency.csv: 297 cycles to a row that L2 holds, less gpu.bulk.test and the way",
    ),
    (
        "gpu.bulk.descriptor",
        105,
        "measured, h200_tma_latency.csv: 402 cycles where the descriptor is new to the SM, else 297",
    ),
    ("gpu.bulk.store_bytes", 32, "measured, h200_tma_store.csv: 4 cycles for each row of 128 B"),
    (
        "gpu.bulk.fill_delay",
        0.09375,
        "measured, h200_pipeline.csv: a k-step of tiles that keep the tensor cores busy takes 25 to 76 cycles"
        " more than its multiplies, for 320 to 384 lines: 0.08 to 0.2 cycles a line, and this is a low value",
    ),
    ("gpu.bulk.taken", 30, "measured, h200_tma_store.csv: 45 cycles beside those of the rows"),
    (
        "gpu.bulk.cluster_latency",
        90,
        "measured, h200_clusters_sync.csv: a hand-over to another TB of the cluster takes 230 cycles",
    ),
    (
        "gpu.bulk.cluster_rest",
        8,
        "measured, h200_place.csv: 15 units of eight SMs, two in each GPC but one, which clusters of four and"
        " eight share",
    ),
    ("gpu.l1.size", 262144, f"{SHEET}: 256 KB of L1 and shared memory an SM"),
    (
        "gpu.l1.reserved",
        7168,
        "measured, h200_l1_walks.csv: contiguous lines fit in 249 KiB less the carve-out",
    ),
    ("gpu.l1.latency", 36, f"{MICRO} latency_cycles.l1_hit_16KB: 35.98"),
    (
        "gpu.l1.in_flight",
        256,
        "measured, h100_flight.csv: an SM's loads stall once 256 lines are outstanding, 32 or 8 lines a warp",
    ),
    (
        "gpu.l1.copies_in_flight",
        1690,
        "measured, h100_flight.csv: async copies stall once 1,580 to 1,690 lines of two or four sectors are"
        " outstanding (fewer of one sector: not modelled)",
    ),
    ("gpu.l1.stores_in_flight", 720, "measured, h200_backlog.csv: about 720 lines of stores are in flight"),
    (
        "gpu.l1.hold_late",
        1,
        "measured, h200_samples.csv: warps of an fp32 GEMM wait 97 cycles of an iteration longer for shared"
        " memory about 300 cycles after its loads, which fetch 96 lines",
    ),
    (
        "gpu.l1.keep_stores",
        1,
        "measured, h200_l1_order.csv: a stored line hits at once, and evicts others",
    ),
    (
        "gpu.l1.join_stores",
        1,
        "measured on an H200 (tests/hw/memory/paths.cu): pairs of scalar stores to the same sectors reach"
        " L2 as one, 128 sectors of 256; of four or eight in a row 41 and 31 % join",
    ),
)
