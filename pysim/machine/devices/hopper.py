"""Hopper: cards with a GH100.

Most numbers of the H200 were measured by the microbenchmarks in ``tests/hw``; their medians are in
``workloads/measured/h200_micro.json``, whose keys the sources below name.
"""

from __future__ import annotations

from .card import Device, Energies, Rows, card
from .waits import WAITS

_MICRO = "measured, h200_micro.json"
_ASSUMED = "assumed: nobody published it"
_CC90 = "CUDA C Programming Guide, technical specifications of compute capability 9.0"
_SHEET = "NVIDIA H100 white paper (2022)"
_THR = f"{_MICRO} arith_throughput_thread_ops_per_cycle_per_sm"
_LAT = f"{_MICRO} arith_latency_cycles"

# What the SMs and the launch path of every GH100 card share.
_GH100: Rows = (
    ("gpu.gpcs", 8, f"{_SHEET}: eight GPCs; the H200's placement shows them, 18, 18 and six times 16 SMs"),
    ("gpu.tpc_sms", 2, f"{_SHEET}: TPCs of two SMs"),
    ("gpu.sm.warps", 64, f"{_CC90}; {_MICRO} max_threads_per_sm 2048"),
    ("gpu.sm.tbs", 32, f"{_MICRO} max_tbs_per_sm"),
    ("gpu.sm.registers", 65536, f"{_MICRO} regs_per_sm"),
    ("gpu.sm.register_unit", 256, "CUDA occupancy calculator, 9.0: 256 registers a warp"),
    ("gpu.sm.smem", 233472, f"{_MICRO} smem_per_sm_bytes: 228 KiB"),
    ("gpu.sm.smem_unit", 128, "CUDA occupancy calculator, 9.0"),
    (
        "gpu.sm.own_carveout",
        1,
        "measured, h200_carve.csv: beside TBs of 8 KiB of shared memory none of 16 KiB start before the SM is"
        " idle, nor any of 16, 29 or 100 KiB beside one of 57 KiB, whose kernel chose a smaller carve-out",
    ),
    ("gpu.sm.smem_reserved", 1024, f"{_MICRO} smem_reserved_per_block_bytes"),
    (
        "gpu.sm.refetch",
        720,
        "measured, h200_early.csv: TBs of a GRU's products and cells take 236 to 530 ns longer (mean 365)"
        " where a stream launches others beside them than where a graph or nobody does, and kernels that"
        " are launched so start 0.4 us further apart than those of a few instructions (pdl_pair_ns)",
    ),
    ("gpu.sm.parameters", 105, "measured on an H200 (tests/hw/fetch.cu): 97 to 122 cycles"),
    ("gpu.sm.fp32_interval", 1, f"{_THR}.ffma 121.5 of 128"),
    ("gpu.sm.int_interval", 2, f"{_THR}.iadd3, .imad, .lop3: 63 of 64"),
    ("gpu.sm.fp16_interval", 1, f"{_THR}.hfma2 118.5 of 128"),
    ("gpu.sm.fp64_interval", 2, f"{_THR}.dfma 63.6 of 64"),
    ("gpu.sm.sfu_interval", 8, f"{_THR}.mufu_*: 16"),
    (
        "gpu.sm.tensor_interval",
        6.03,
        f"{_MICRO} mma_m16n8k16_flop_per_cycle_per_sm: 2716, an HMMA.16816 of a warp is 4096",
    ),
    ("gpu.sm.control_interval", 1, _ASSUMED),
    ("gpu.sm.fp32_latency", 4, f"{_LAT}.ffma, .fadd: 3.99"),
    ("gpu.sm.int_latency", 4, f"{_LAT}.iadd3, .lop3, .imad: 4"),
    ("gpu.sm.fp16_latency", 8, f"{_LAT}.hfma2: 7.98 for a chain through one register"),
    ("gpu.sm.fp64_latency", 8, f"{_LAT}.dfma: 7.98"),
    ("gpu.sm.sfu_latency", 17, f"{_LAT}.mufu_*: 16.9"),
    ("gpu.sm.tensor_latency", 24, f"{_MICRO} mma_m16n8k16_f32f16_latency_cycles: 24.35"),
    ("gpu.sm.control_latency", 4, _ASSUMED),
    ("gpu.sm.smem_latency", 23, f"{_MICRO} latency_cycles.shared: 23.08"),
    (
        "gpu.sm.smem_return",
        2.5,
        "measured, h200_parts.csv: LDS.64 and LDS.128 of 2 and 4 wavefronts take 3 and 9 cycles longer than"
        " of one; h200_steps.csv: ldmatrix.x4 6",
    ),
    (
        "gpu.sm.smem_late",
        0.16,
        "measured, h200_parts.csv: beside 4 and 8 FFMA loads of 64 and 128 bits that fill shared memory take"
        " 0.07 to 0.36 cycles more for each slot that the arithmetic loses; the mean",
    ),
    (
        "gpu.sm.smem_queue",
        208,
        "measured, h200_queue.csv: where 16 warps load 16 B a lane as fast as they may, the last result is"
        " there 240 cycles after its load has issued, 33 of them latency: 13 loads a sub-core, of 4",
    ),
    ("gpu.sm.smem_interval", 1, f"{_MICRO} shared_bandwidth_B_per_cycle_per_sm.v4: 121.9 of 128"),
    ("gpu.sm.smem_conflicts", "words", f"{_ASSUMED}: a wide access takes a wavefront for each 8 lanes"),
    ("gpu.sm.barrier", 13, "measured, h200_steps.csv: a barrier of n warps takes 12.7 + 2 n cycles"),
    ("gpu.sm.barrier_warp", 2, "measured, h200_steps.csv: a barrier of n warps takes 12.7 + 2 n cycles"),
    (
        "gpu.sm.barrier_leave",
        1,
        "measured, h100_skew.csv, h200_leave.csv: loads of a TB's warps come one a cycle behind a barrier, a"
        " sub-core's as they came there; h200_vary.csv: so TBs keep rhythms (here an order drawn for each)",
    ),
    ("gpu.sm.register_ports", 1, f"two banks, as Volta has: {_ASSUMED} for Hopper"),
    (
        "gpu.sm.warp_order",
        "greedy_oldest",
        "measured, h200_order.csv: of 16 TBs on an SM that do the same, the oldest ends its special functions"
        " after a sixteenth of the time, the next after two; likewise stores and arithmetic. That a warp goes"
        " on until it must wait: h200_shared_parts.csv, a step of two fp32 products on an SM; not with tensor"
        " instructions: h200_shared_steps.csv",
    ),
    ("gpu.sm.block_max", 1024, "choice of the model: kernel times stay within 2 % of length 1"),
    ("gpu.sm.block_tensor", 8, "choice of the model: longer blocks of mma keep an older warp's for too long"),
    (
        "gpu.sm.copy_gap",
        4,
        "measured, h200_copies.csv: copies of a warp follow each other so where nothing else limits them",
    ),
    (
        "gpu.sm.queue",
        4,
        "h200_entry.csv: loads wait until copies of other warps have left; 3 to 5 by the steps of one"
        " and two tensor products on an SM (h100_lone.csv)",
    ),
    (
        "gpu.sm.queue_read",
        32,
        "measured, h200_taken.csv: 11 cycles more for each copy of a warp until its registers may be written",
    ),
    (
        "gpu.sm.copy_queue",
        5,
        "chosen by the steps of one and two tensor products on an SM (h100_lone.csv); of copies with nothing"
        " beside them 7 to 12 (h200_taken.csv, h200_entry.csv)",
    ),
    (
        "gpu.sm.copy_hold",
        0.078,
        "measured, h200_array.csv: what a step copies (768 sectors) keeps the array from loads for 63 to 118"
        " cycles, whatever its padding: 60",
    ),
    (
        "gpu.sm.lsu_queue",
        512,
        f"{_ASSUMED}: more than a TB's step of copies (408 lines), which never kept warps from issuing more",
    ),
    (
        "gpu.sm.lsu_shared",
        1,
        "measured, h100_lone.csv: three TBs of 64 x 64 take 236 cycles a step each, 204 lines of copies and"
        " 32 loads from shared memory",
    ),
    ("gpu.l1.size", 262144, f"{_SHEET}: 256 KB of L1 and shared memory an SM"),
    (
        "gpu.l1.reserved",
        7168,
        "measured, h200_l1_walks.csv: lines side by side fit in 249 KiB less the carve-out",
    ),
    (
        "gpu.l1.keep_stores",
        1,
        "measured, h200_l1_order.csv: a line stored is read at once, and takes the place of others",
    ),
    ("gpu.l1.latency", 36, f"{_MICRO} latency_cycles.l1_hit_16KB: 35.98"),
    (
        "gpu.l1.in_flight",
        256,
        "measured, h100_flight.csv: an SM's loads stall behind 256 lines, 32 or 8 of one warp's",
    ),
    (
        "gpu.l1.copies_in_flight",
        1690,
        "measured, h100_flight.csv: copies stall behind 1,580 to 1,690 lines of two or four sectors (fewer of"
        " one: left out)",
    ),
    ("gpu.l1.stores_in_flight", 720, "measured, h200_backlog.csv: some 720 lines of stores are under way"),
    (
        "gpu.l1.hold_late",
        1,
        "measured, h200_samples.csv: warps of an fp32 product wait 97 cycles of a step longer for shared"
        " memory some 300 cycles behind its loads, which bring 96 lines",
    ),
    (
        "gpu.noc.latency",
        80,
        f"{_ASSUMED}: the share of the L2 latency that leaves 80 cycles for L1 miss and slice",
    ),
    (
        "gpu.l2.request",
        1.08,
        "between two measurements: lines of one slice alone, one in 1.16, a cycle of L2's clock (1.705 GHz;"
        " h200_again.csv), and copies of rows of 64 B padded by 16 from all, 13.0 requests each, 26.4"
        " and 27.6 B a cycle of an SM, so one in 1.01 to 1.06 (h200_share.csv; means of SMs; the fast"
        " ones end early)",
    ),
    (
        "gpu.l2.enter",
        0.5,
        "measured, h200_hotline.csv: where all SMs read a sector or two of lines that lie in one slice of"
        " a half, each load of it takes 0.50 to 0.55 cycles",
    ),
    (
        "gpu.noc.join_loads",
        4,
        "measured, h200_window.csv: n SMs of a GPC that load the same lines ask L2 for them n / 4 times,"
        " rounded up, if they are at most 70 cycles apart (L2 has them) or 370 to 530 (DRAM answers); SMs of"
        " different GPCs each for themselves",
    ),
    (
        "gpu.noc.gpc_link",
        53,
        "measured, h200_flood.csv, h200_port.csv, h200_share.csv: SMs of a GPC of 18 get 612 to 661 B a cycle"
        " (once 702) of lines of their own together, whatever their own clock, so 51 to 55 of each of twelve"
        " groups of slices of a half, of which this is the middle (what one slice sends is 55), and 1,140 to"
        " 1,550 of lines that several of them copy at once",
    ),
    (
        "gpu.noc.tpc_distance",
        5,
        "measured, h200_distance.csv: hits take 299, 302, 306, 294, 297, 300, 289 and 292 cycles by the rank"
        " of the SM's TPC in its GPC, of which those equal modulo three make a cluster",
    ),
    ("gpu.noc.cluster_distance", 3.5, "measured, h200_distance.csv: as gpu.noc.tpc_distance"),
    ("gpu.noc.port_sms", 1, f"{_ASSUMED}: no limit of a TPC below that of its SMs is known"),
    ("gpu.noc.read_sector", 0, f"{_ASSUMED}: a request of a line a cycle"),
    ("gpu.noc.reply_bytes", 114, "measured on an H200: 225 GB/s an SM of L2 reads when few SMs read"),
    (
        "gpu.noc.write_bytes",
        32,
        "measured on an H200: 63.3 GB/s an SM of L2 writes when one to 66 SMs write",
    ),
    (
        "gpu.noc.write_partial",
        1,
        "measured, h200_stores.csv: 32 lanes that write 4 B of a sector each take 64, 48 and 40 cycles where"
        " one, two and four of the sectors share a line",
    ),
    (
        "gpu.l1.join_stores",
        1,
        "measured on an H200 (tests/hw/paths.cu): pairs of scalar stores to the same sectors reach"
        " L2 as one, 128 sectors of 256; of four or eight in a row 41 and 31 % join",
    ),
    (
        "gpu.l2.fill",
        64,
        "measured, h200_counters.csv: a copy of stride 128 B reads 64 B of DRAM for each sector of 32 B",
    ),
    (
        "gpu.l2.open_lines",
        1,
        "measured, h200_partial.csv: of 65,536 lines with a sector written in part L2 reads the rest of 8 %,"
        " of 262,144 that of 80 %; two for each of its 30,720 sets are 61,440",
    ),
    ("gpu.l2.hash_slices", 0, f"{_ASSUMED}: an even hash"),
    ("gpu.l2.hash", 1, f"{_ASSUMED}: strides of powers of two spread over slices"),
    (
        "gpu.l2.chunked",
        1,
        "measured on an H200, h200_slices.csv, h200_homes.csv: which lines wait for each other, if all SMs"
        " read two, and which come from the other half",
    ),
    ("gpu.l2.latency", 277, f"{_MICRO} latency_cycles.l2_hit_mean_per_sm: 276.7"),
    ("gpu.l2.update", 1.58, f"{_MICRO} atomic_add_same_address_ns_per_op_one_thread_per_sm: 0.796"),
    ("gpu.l2.partitions", 2, f"{_SHEET}: two partitions; a line read from both sides lies in both"),
    (
        "gpu.l2.fabric_latency",
        107,
        f"{_MICRO} atomic_add_returning_latency_cycles: 527 or 313, by which side an address lies on",
    ),
    (
        "gpu.l2.twin_latency",
        172,
        "measured on an H200 (tests/hw/fresh2.cu): 149 to 189 cycles, by line and SM, beyond a hit",
    ),
    (
        "gpu.cp.end_flush",
        1,
        "measured on an H200 (tests/hw/turns.cu): a stream waits as long behind a kernel that stored 3 us"
        " before its end as behind one that stores at its end",
    ),
    (
        "gpu.l2.far_latency",
        32,
        "measured on an H200, hits of 128 lines from each SM: 261 cycles (standard deviation 8) from the SMs"
        " of one half, 293 (11) from the others, whichever half the line is of",
    ),
    (
        "gpu.l2.fabric_bandwidth",
        2600,
        f"{_MICRO} l2_write_GBps: 3,905 and 4,204, half of which crosses (3 % more and less here); 2.49 TB/s"
        " cross in cyclic reads of 96 MB on an H200 (lts__t_sectors_srcunit_ltcfabric), and more at most",
    ),
    ("gpu.l2.referenced", 32, "a clock marks every new line"),
    (
        "gpu.l2.replacement",
        "clock",
        "measured, h200_warm.csv: repeated kernels whose lines and copies do not fit read them from DRAM"
        " (67 of 67 MB, 46 of 51); TBs of one long kernel drift apart and find each other's lines, which is"
        " why l2_read_GBps.set_64MB and .set_96MB lie above DRAM speed",
    ),
    ("gpu.dram.banks", 32, "HBM3: 64 banks a channel of two pseudo channels; the most that ours has"),
    ("gpu.dram.bank_hash", 1, f"{_ASSUMED}: strides of powers of two spread over banks"),
    ("gpu.dram.row_bytes", 1024, "JEDEC JESD238: 1 KiB page of an HBM3 pseudo channel"),
    ("gpu.dram.row_open", 28, f"{_ASSUMED}: class of HBM2 tRP + tRCD"),
    ("gpu.dram.row_cycle", 47, f"{_ASSUMED}: class of HBM2 tRC"),
    (
        "gpu.dram.row_gap",
        0,
        "h200_chunks.csv: 64 B at random places come at 2430 to 2640 GB/s, 2.3 to 2.5 ns an activate; but"
        " neighbouring lines share rows there, which they do not here: strided copies would pay for that",
    ),
    (
        "gpu.dram.refresh_period",
        1950,
        "measured, h200_cold_loads.csv: one load in seven waits for up to 273 ns more, all delays as likely;"
        " half of JEDEC JESD238's tREFI",
    ),
    ("gpu.dram.bank_refresh_time", 273, "measured, h200_cold_loads.csv: the longest of these waits"),
    ("gpu.dram.write_queue", 128, f"{_ASSUMED}: two batches and those under way"),
    ("gpu.dram.write_batch", 32, _ASSUMED),
    (
        "gpu.cp.launch",
        1243,
        f"{_MICRO} event_to_event_us.one_empty_kernel less .nothing_between: 1440 less TB start and end",
    ),
    (
        "gpu.cp.stream_gap",
        1265,
        f"{_MICRO} stream_kernel_period_us.empty: 1477, less TB start and end; 2063 with 1,056 TBs",
    ),
    (
        "gpu.cp.graph_gap",
        325,
        "measured, h200_gaps.csv: 517 ns between kernels of one TB that run for 3 us, 583 with 132 TBs and"
        " 1147 with 1,056, less TB start, end and release",
    ),
    (
        "gpu.cp.graph_prepare",
        705,
        f"{_MICRO} graph_kernel_period_us.empty: 679 with one TB, 727 and 742 with 132: longer than the gap"
        " behind kernels of 3 us",
    ),
    (
        "gpu.cp.beside",
        1195,
        "measured, h200_beside.csv: from a gate kernel's end to the start of what waits for it 2,646 ns (mean"
        " of eight chains, 1.9 to 4.5 us) beside products, less some 1,450 of a stream's gap, start and end;"
        " 1.8 us behind each other or beside kernels that spin; the busier memory is, the longer"
        " (h200_busy.csv); the card of h200_deps.csv took 2 us longer in chains of 8 kernels and more, not in"
        " shorter ones",
    ),
    (
        "gpu.sync.posted",
        415,
        "measured, h200_posts.csv: an atomic at the end of a TB adds 0.18 us to its kernel, 0.04 if the TB"
        " goes on for 300 cycles; the flush at a TB's end hides the first 500 cycles of the atomic's way",
    ),
    ("gpu.cp.admit", 680, f"{_MICRO} graph_kernel_period_us.empty.grid1_block32: 679"),
    ("gpu.cp.tb_release", 0.603, f"{_MICRO} tb_dispatch_ns_per_tb_large_grid.block32"),
    ("gpu.cp.tb_start", 0.09, f"{_MICRO} one_wave_fill_ns.block32.tbs4224: 384"),
    (
        "gpu.cp.cluster_start",
        2,
        "the same fill, in 24 clusters: 2.2 ns a TB; h200_starts.csv: 4 to 6 ns where six TBs come",
    ),
    (
        "gpu.cp.tpc_start",
        7.1,
        "measured, h200_starts.csv: TBs of 1, 2, 4 and 8 warps begin on a TPC's second SM 13, 23, 55 and 71"
        " cycles behind those on its first",
    ),
    ("gpu.cp.tpc_warps", 5, "measured, as gpu.cp.tpc_start: 70 and 69 cycles where TBs have 16 and 32 warps"),
    ("gpu.cp.gpc_order", "h200", "measured, h200_first.csv"),
    (
        "gpu.cp.together",
        8,
        "measured, h200_coop.csv: TBs of a cooperative launch fill the first 8 SMs to their even share, the"
        " rest spreads as without; h200_first.csv: the first TBs of any grid go to 8 SMs of one half of L2",
    ),
    (
        "gpu.cp.place",
        "room",
        "measured, h200_carve.csv (test_overlap_replay.py), and behind a gate kernel: 64 TBs on 62 SMs, 3 on"
        " the one that was empty, where others hold one or two TBs of the product; 88 on 85, 4 on one;"
        " h200_first.csv (test_first_tbs.py): where TBs go on an empty chip",
    ),
    ("gpu.cp.even_tbs", 0, "no such cap: consumers that start early pile up, up to 5 on one SM"),
    (
        "gpu.cp.tb_done_latency",
        77,
        "share of the 370 cycles from a TB's end to the next one's start in its place, h200_gaps.csv: 393"
        " without a store at its end, half a turn of the measuring loop among them",
    ),
    (
        "gpu.cp.tb_start_latency",
        110,
        "share of the 370 cycles from a TB's end to the next one's start in its place, h200_gaps.csv: 393"
        " without a store at its end, half a turn of the measuring loop among them",
    ),
)

_H200: Rows = (
    ("gpu.sms", 132, f"{_MICRO} sm_count"),
    ("gpu.clock", 1980, f"{_MICRO} attr_sm_clock_khz; sm_clock_mhz.all_sms_spinning 1979.8"),
    (
        "gpu.clock_tensor",
        0.875,
        "measured, h100_fabric.csv: 1,716 to 1,781 of 1,978 MHz in large products (h200_clock.csv: 1,797 in"
        " mma alone, 1,632 to 1,781 in products)",
    ),
    ("gpu.power_limit", 700, "NVIDIA H200 data sheet; nvidia-smi: default power limit 700.00 W"),
    (
        "gpu.power_slope",
        0.9,
        "measured, h200_power.csv, h200_power_second.csv: six fp16 products at 0.82 to 0.93 of the clock take"
        " 0.81 to 0.99 of what the table of events says, in proportion to its power 0.9",
    ),
    ("gpu.l2.size", 63143936, f"{_MICRO} l2_bytes, 60 MiB: 327 sets of 94 slices, in whole DRAM rows 328"),
    (
        "gpu.l2.slices",
        94,
        "measured, h200_slices.csv: 47 of a half, one for each 64 bits of the memory bus"
        f" ({_MICRO} attr_mem_bus_bits 6016)",
    ),
    ("gpu.l2.single", 7, "measured, h200_slices.csv: 20 units of two slices and 7 of one in a half"),
    (
        "gpu.l2.slice_bytes",
        55,
        "measured, h200_again.csv: four sectors in 2.32 cycles, two in one of L2's clock (1.705 GHz)",
    ),
    ("gpu.dram.bandwidth", 4814.3, f"{_MICRO} attr_mem_bus_bits 6016 at 2 x attr_mem_clock_khz 3201"),
    ("gpu.dram.latency", 662, f"{_MICRO} latency_cycles.dram_64MB_cold 658, dram_1GB_cold 667"),
    ("gpu.dram.refresh_time", 3.56, f"{_MICRO} dram_read_GBps: 4533, 94 % of the peak"),
    ("gpu.dram.turnaround", 1.27, f"{_MICRO} dram_write_GBps: 4317, rows that writes open included"),
    ("gpu.dram.read_turnaround", 5.1, f"{_MICRO} dram_copy_GBps_read_plus_write: 3941"),
)

_STAND_IN = "an H200 has the same chip: measured there"
_H100: Rows = (
    ("gpu.sms", 132, f"{_SHEET}: H100 SXM5, 132 of 144 SMs"),
    ("gpu.clock", 1980, f"{_SHEET}: H100 SXM5, highest boost clock"),
    ("gpu.clock_tensor", 0.875, _STAND_IN),
    ("gpu.l2.size", 52428800, f"{_SHEET}: H100 SXM5, 50 MB"),
    ("gpu.l2.slices", 80, f"{_ASSUMED}: slices as large as an H200's"),
    ("gpu.l2.single", 0, f"{_ASSUMED}: two slices for each unit"),
    ("gpu.l2.slice_bytes", 55, _STAND_IN),
    ("gpu.dram.bandwidth", 3352.3, "NVIDIA H100 SXM5 data sheet (3.35 TB/s): 5120 bit at 2 x 2619 MHz"),
    ("gpu.dram.latency", 662, _STAND_IN),
    ("gpu.dram.refresh_time", 3.56, _STAND_IN),
    ("gpu.dram.turnaround", 1.27, _STAND_IN),
    ("gpu.dram.read_turnaround", 5.1, _STAND_IN),
)

CARVEOUTS = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)  # KiB; CUDA guide, 9.0

# Multiply-adds of mma.sync a cycle and sub-core: 2048 of an HMMA.16816 in 6.03 cycles.
_MMA_RATE = 340


# What events take: from the steady kernels of h200_power.csv, by their power less that of sleeping TBs on all
# SMs (sleep_full), over the rate, less what the other instructions of their loops take. These kernels are no
# check of the table: the check of docs/energy.md is of others.
_POWER = "measured, h200_power.csv"
_ENERGIES: Energies = (
    ("board", 129.3, 0.02, f"{_POWER}: mean of idle and idle_after"),
    ("sm_busy", 0.033, 0.5, f"{_POWER}: (sleep_full - board) / 132"),
    (
        "instruction",
        158,
        0.15,
        f"{_POWER} ffma: 162 pJ, with the loop; its values have converged",
    ),
    ("fp32", 312, 0.35, f"{_POWER} ffma_random: 474 pJ, less the instruction; fadd: 168"),
    ("int", 178, 0.35, f"{_POWER} iadd_xor: 338 pJ, less the instruction; imad: 222"),
    (
        "fp16",
        67,
        1.0,
        f"{_POWER} hfma2: 229 pJ, less the instruction; converged values, others take more",
    ),
    ("fp64", 553, 0.35, f"{_POWER} dfma: 727 pJ, less the instruction"),
    ("sfu", 137, 0.35, f"{_POWER} mufu_tanh: 299 pJ, less the instruction"),
    ("tensor", 3504, 0.35, f"{_POWER} mma_random: 3669 pJ, less the instruction; operands 0 (mma_zero): 525"),
    ("control", 0, 0.0, "not measured: an instruction like any"),
    ("smem", 421, 0.2, f"{_POWER} shared_read: 3067 pJ a load of 4 wavefronts, less 4.4 instructions"),
    ("l1_line", 477, 0.2, f"{_POWER} l1_read: 3668 pJ a load of 4 lines, less 5.5 instructions"),
    ("l2_read", 1213, 0.15, f"{_POWER} l2_read: 23076 pJ a load of 16 sectors, less L1 and instructions"),
    ("l2_write", 1213, 0.3, "as l2_read: the same way and array"),
    (
        "dram_read",
        2167,
        0.15,
        f"{_POWER} dram_read: 57748 pJ a load of 16 sectors, less L2, L1 and instructions",
    ),
    (
        "dram_write",
        1673,
        0.3,
        f"{_POWER} dram_write: 49750 pJ a store of 16 sectors, less L2 and 11 instructions",
    ),
)


def cards() -> tuple[Device, ...]:
    """Return the cards of this generation."""
    return (
        card(
            "h100", "NVIDIA H100 SXM5 (GH100, 80 GB HBM3)", (9, 0), CARVEOUTS, _MMA_RATE, WAITS, _GH100, _H100
        ),
        card(
            "h200",
            "NVIDIA H200 SXM (GH100, 141 GB HBM3e)",
            (9, 0),
            CARVEOUTS,
            _MMA_RATE,
            WAITS,
            _GH100,
            _H200,
            energies=_ENERGIES,
        ),
    )
