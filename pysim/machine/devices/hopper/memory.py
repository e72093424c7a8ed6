"""Network, L2 and DRAM of a GH100."""

from __future__ import annotations

from pysim.machine.devices.card import Rows

from .measured import ASSUMED, MICRO, SHEET

MEMORY: Rows = (
    (
        "gpu.noc.latency",
        80,
        f"{ASSUMED}: the share of the L2 latency that leaves 80 cycles for L1 miss and slice",
    ),
    (
        "gpu.noc.tpc_distance",
        5,
        "measured, h200_distance.csv: hits take 299, 302, 306, 294, 297, 300, 289 and 292 cycles by the rank"
        " of the SM's TPC in its GPC; TPCs of equal rank modulo three make a cluster",
    ),
    ("gpu.noc.cluster_distance", 3.5, "measured, h200_distance.csv: as gpu.noc.tpc_distance"),
    ("gpu.noc.reply_bytes", 114, "measured on an H200: 225 GB/s an SM of L2 reads when few SMs read"),
    (
        "gpu.noc.join_loads",
        4,
        "measured, h200_window.csv: n SMs of a GPC that load the same lines send n / 4 requests to L2,"
        " rounded up, if they are at most 70 cycles apart (L2 hit) or 370 to 530 (miss); SMs of different"
        " GPCs send their own; requests for other lines in between change nothing (tests/hw/memory/crowd.cu)",
    ),
    (
        "gpu.noc.gpc_link",
        53,
        "measured, h200_flood.csv, h200_port.csv, h200_share.csv: the SMs of a GPC of 18 together read 612 to"
        " 661 B a cycle (once 702) of distinct lines, whatever their clock: 51 to 55 B from each of the"
        " twelve groups of slices of a partition, and this is the middle (one slice sends 55 B); 1,140 to"
        " 1,550 B of lines that several SMs copy at once; a GPC is limited, a cluster of its SMs is not"
        " (tests/hw/memory/cluster.cu)",
    ),
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
    ("gpu.l2.latency", 277, f"{MICRO} latency_cycles.l2_hit_mean_per_sm: 276.7"),
    (
        "gpu.l2.fill",
        64,
        "measured, h200_counters.csv: a copy of stride 128 B reads 64 B of DRAM for each sector of 32 B",
    ),
    (
        "gpu.l2.slice_bytes",
        55,
        "measured, h200_again.csv: four sectors in 2.32 cycles, two in one cycle of L2's clock (1.705 GHz)",
    ),
    (
        "gpu.l2.enter",
        0.5,
        "measured, h200_hotline.csv: where all SMs read a sector or two of lines of one slice of a partition,"
        " each load takes 0.50 to 0.55 cycles",
    ),
    (
        "gpu.l2.request",
        1.08,
        "between two measurements: lines of one slice alone, one in 1.16 cycles, a cycle of L2's clock"
        " (1.705 GHz; h200_again.csv); async copies of rows of 64 B padded by 16 from all slices, 13.0"
        " requests each at 26.4 and 27.6 B a cycle and SM, one in 1.01 to 1.06 (h200_share.csv; means over"
        " SMs; the fast ones end early)",
    ),
    (
        "gpu.l2.open_lines",
        1,
        "measured, h200_partial.csv: of 65,536 lines with a partially written sector L2 reads the rest of"
        " 8 %, of 262,144 lines of 80 %; two lines for each of its 30,720 sets are 61,440",
    ),
    ("gpu.l2.update", 1.58, f"{MICRO} atomic_add_same_address_ns_per_op_one_thread_per_sm: 0.796"),
    ("gpu.l2.hash", 1, f"{ASSUMED}: strides of powers of two spread over slices"),
    (
        "gpu.l2.chunked",
        1,
        "measured on an H200, h200_slices.csv, h200_homes.csv: which lines delay each other if all SMs read"
        " two, and which come from the other partition",
    ),
    ("gpu.l2.partitions", 2, f"{SHEET}: two partitions; a line read from both sides is cached in both"),
    (
        "gpu.l2.fabric_latency",
        107,
        f"{MICRO} atomic_add_returning_latency_cycles: 527 or 313, by the partition of the address",
    ),
    (
        "gpu.l2.twin_latency",
        172,
        "measured on an H200 (tests/hw/memory/fresh2.cu): 149 to 189 cycles, by line and SM, beyond a hit;"
        " 55 on average where another kernel wrote the line and this SM has not read it since"
        " (tests/hw/memory/fresh.cu)",
    ),
    (
        "gpu.l2.far_latency",
        32,
        "measured on an H200, hits of 128 lines from each SM: 261 cycles (standard deviation 8) from the SMs"
        " of one partition, 293 (11) from the others, whichever partition the line maps to",
    ),
    (
        "gpu.l2.fabric_bandwidth",
        2600,
        f"{MICRO} l2_write_GBps: 3,905 and 4,204, half of which crosses (3 % more and less here);"
        " h200_l2.csv: 2.49 TB/s cross in cyclic reads of 96 MB on an H200"
        " (lts__t_sectors_srcunit_ltcfabric); the limit is above",
    ),
    (
        "gpu.l2.replacement",
        "clock",
        "measured, h200_warm.csv: repeated kernels whose lines and copies do not fit read them from DRAM"
        " (67 of 67 MB, 46 of 51); TBs of one long kernel drift apart and hit each other's lines, which is"
        " why l2_read_GBps.set_64MB and .set_96MB are above DRAM speed",
    ),
    ("gpu.l2.referenced", 32, "as gpu.l2.replacement: a clock marks every new line"),
    ("gpu.dram.latency", 662, f"{MICRO} latency_cycles.dram_64MB_cold 658, dram_1GB_cold 667"),
    (
        "gpu.dram.banks",
        32,
        "HBM3: 64 banks a channel of two pseudo channels; the model has at most 32",
    ),
    ("gpu.dram.bank_hash", 1, f"{ASSUMED}: strides of powers of two spread over banks"),
    ("gpu.dram.row_bytes", 1024, "JEDEC JESD238: 1 KiB page of an HBM3 pseudo channel"),
    ("gpu.dram.row_open", 28, f"{ASSUMED}: class of HBM2 tRP + tRCD"),
    ("gpu.dram.row_cycle", 47, f"{ASSUMED}: class of HBM2 tRC"),
    (
        "gpu.dram.row_gap",
        0,
        "h200_chunks.csv: random 64 B reads run at 2430 to 2640 GB/s, 2.3 to 2.5 ns an activate; but"
        " neighbouring lines share rows on the card and not in the model, where a gap would slow strided"
        " copies",
    ),
    (
        "gpu.dram.refresh_period",
        1950,
        "measured, h200_cold_loads.csv: one load in seven waits for up to 273 ns more, all delays equally"
        " likely; half of JEDEC JESD238's tREFI",
    ),
    ("gpu.dram.refresh_time", 3.56, f"{MICRO} dram_read_GBps: 4533, 94 % of the peak"),
    ("gpu.dram.bank_refresh_time", 273, "measured, h200_cold_loads.csv: the longest of these waits"),
    ("gpu.dram.turnaround", 1.27, f"{MICRO} dram_write_GBps: 4317, activates for writes included"),
    ("gpu.dram.read_turnaround", 5.1, f"{MICRO} dram_copy_GBps_read_plus_write: 3941"),
    ("gpu.dram.write_queue", 128, f"{ASSUMED}: two batches and those in flight"),
)
