"""Launch path and in-kernel synchronization of a GH100, as an H200 has them."""

from __future__ import annotations

from pysim.machine.devices.card import Rows

from .measured import MICRO

_TURN = (
    "share of the 370 cycles from a TB's end to its successor's start in the same slot, h200_gaps.csv: 393"
    " without a store at the TB's end, half an iteration of the measuring loop included"
)
_LEFT = (
    f"{MICRO} what the other latencies leave of semaphore_handoff_cycles.fence_atomic__acquire_poll 1194 and"
    " grid_sync_cycles 1887"
)

LAUNCH: Rows = (
    (
        "gpu.cp.launch",
        1243,
        f"{MICRO} event_to_event_us.one_empty_kernel less .nothing_between: 1440 less TB start and end",
    ),
    (
        "gpu.cp.stream_gap",
        1265,
        f"{MICRO} stream_kernel_period_us.empty: 1477, less TB start and end; 2063 with 1,056 TBs",
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
        f"{MICRO} graph_kernel_period_us.empty: 679 with one TB, 727 and 742 with 132; longer than the gap"
        " after kernels of 3 us",
    ),
    ("gpu.cp.admit", 680, f"{MICRO} graph_kernel_period_us.empty.grid1_block32: 679"),
    ("gpu.cp.tb_release", 0.603, f"{MICRO} tb_dispatch_ns_per_tb_large_grid.block32"),
    ("gpu.cp.tb_start", 0.09, f"{MICRO} one_wave_fill_ns.block32.tbs4224: 384"),
    (
        "gpu.cp.cluster_start",
        2,
        f"{MICRO} one_wave_fill_ns.block32.tbs4224: 384 in 24 clusters, 2.2 ns a TB; h200_starts.csv: 4 to"
        " 6 ns where a cluster gets six TBs",
    ),
    (
        "gpu.cp.tpc_start",
        7.1,
        "measured, h200_starts.csv: TBs of 1, 2, 4 and 8 warps start on a TPC's second SM 13, 23, 55 and 71"
        " cycles after those on its first",
    ),
    ("gpu.cp.tpc_warps", 5, "measured, as gpu.cp.tpc_start: 70 and 69 cycles for TBs of 16 and 32 warps"),
    ("gpu.cp.even_tbs", 0, "measured: no such cap, TBs that start early pile up, up to 5 on one SM"),
    (
        "gpu.cp.beside",
        1195,
        "measured, h200_beside.csv: from a gate kernel's end to the start of the kernel that waits for it"
        " 2,646 ns (mean of eight chains, 1.9 to 4.5 us) beside GEMMs, less some 1,450 of a stream's gap,"
        " start and end; 1.8 us one after another or beside kernels that spin; longer the busier memory is"
        " (h200_busy.csv); the card of h200_deps.csv took 2 us longer in chains of 8 kernels and more than"
        " another one (h200_deps_second.csv)",
    ),
    (
        "gpu.cp.place",
        "room",
        "measured, h200_carve.csv (test_overlap_replay.py); after a gate kernel: 64 TBs on 62 SMs, 3 on"
        " the one that was empty, where other SMs hold one or two TBs of the GEMM; 88 on 85, 4 on one;"
        " h200_first.csv (test_first_tbs.py): placement on an empty chip",
    ),
    ("gpu.cp.gpc_order", "h200", "measured, h200_first.csv"),
    (
        "gpu.cp.together",
        8,
        "measured, h200_coop.csv: TBs of a cooperative launch fill the first 8 SMs to their even share, the"
        " rest spreads as in other launches; h200_first.csv: the first TBs of any grid go to 8 SMs of one"
        " L2 partition",
    ),
    (
        "gpu.cp.early_gap",
        323,
        f"{MICRO} pdl_pair_ns_primary_first_start_to_secondary_first_start 512, less the ways to"
        " and from the scheduler",
    ),
    ("gpu.cp.early_graph_gap", 218, f"{MICRO} graph_pdl_kernel_period_us 0.400 for 0.505 outside a graph"),
    (
        "gpu.cp.early_depth",
        8,
        "measured, deps_tb_trace of an H200: eight kernels of a GRU start one after another",
    ),
    (
        "gpu.cp.early_graph_depth",
        128,
        "CUDA guide: resident grids on a device of compute capability 9.0; h200_deps.csv: GRUs of 96 and"
        " 132 TBs a kernel need at least 16",
    ),
    (
        "gpu.cp.early_reuse",
        1600,
        "measured, deps_tb_trace of an H200: the ninth kernel starts 2 us after the first has ended",
    ),
    (
        "gpu.cp.depend",
        120,
        f"{MICRO} pdl_pair_ns_primary_last_end_to_wait_return 416, less the store, the flush and the way",
    ),
    (
        "gpu.cp.tb_flush",
        150,
        "measured, h200_gaps.csv: a store at the end of kernels of 1 to 264 TBs adds 0.25 to 0.30 us to the"
        " gap of the next graph edge; the way to L2 and back takes two thirds of it",
    ),
    (
        "gpu.cp.end_flush",
        1,
        "measured on an H200 (turns.cu): the gap after a kernel that stored 3 us before its end is"
        " as long as after one that stores at its end",
    ),
    ("gpu.cp.tb_done_latency", 77, _TURN),
    ("gpu.cp.tb_start_latency", 110, _TURN),
    ("gpu.sync.fence", 304, f"{MICRO} store_plus_threadfence_cycles 585 less latency_cycles.l2_hit 281"),
    (
        "gpu.sync.fence_system",
        2870,
        "fence.sc.sys of a B300 as published, beside 320 cycles of fence.sc.gpu",
    ),
    (
        "gpu.sync.latency",
        313,
        f"{MICRO} atomic_add_returning_latency_cycles: 313 in the near L2 partition, 527 in the far one",
    ),
    ("gpu.sync.acquire", 180, _LEFT),
    (
        "gpu.sync.posted",
        415,
        "measured, h200_posts.csv: an atomic at the end of a TB adds 0.18 us to its kernel, 0.04 if the TB"
        " goes on for 300 cycles; the flush at a TB's end hides the first 500 cycles of the atomic",
    ),
    ("gpu.sync.atomic", 0.796, f"{MICRO} atomic_add_same_address_ns_per_op_one_thread_per_sm"),
)

# What other generations inherit: nobody published it for them.
RELEASE = ("gpu.cp.tb_release", "gpu.cp.tb_start")
IN_KERNEL = (
    *("gpu.cp.early_gap", "gpu.cp.early_graph_gap", "gpu.cp.early_depth", "gpu.cp.early_graph_depth"),
    *("gpu.cp.early_reuse", "gpu.cp.depend", "gpu.cp.tb_flush", "gpu.sm.leave_stores"),
    *("gpu.sync.fence", "gpu.sync.fence_system", "gpu.sync.latency", "gpu.sync.acquire", "gpu.sync.atomic"),
)
