"""What waiting inside the program costs: measured on an H200, and taken for other cards too."""

from __future__ import annotations

from .card import Rows

_MICRO = "micro.json of an H200:"
_LEFT = (
    f"what {_MICRO} semaphore_handoff_cycles.fence_atomic__acquire_poll 1194 and grid_sync_cycles 1887 leave"
)

WAITS: Rows = (
    ("gpu.cp.beside", 0, "not measured"),
    ("gpu.cp.graph_prepare", 0, "not measured"),
    ("gpu.power_limit", 0, "not used: what events take was measured on an H200 alone"),
    ("gpu.power_slope", 0, "not used: what events take was measured on an H200 alone"),
    (
        "gpu.sm.leave_stores",
        1,
        "h200_gaps.csv: a place is free 111 to 134 cycles later for a store at the end of its TB, which takes"
        " 495 to be acknowledged",
    ),
    (
        "gpu.cp.early_gap",
        323,
        f"{_MICRO} pdl_pair_ns_primary_first_start_to_secondary_first_start 512, less the ways",
    ),
    (
        "gpu.cp.early_graph_gap",
        218,
        f"{_MICRO} graph_pdl_kernel_period_us 0.400 for 0.505 outside of a graph",
    ),
    ("gpu.cp.early_depth", 8, "deps_tb_trace of an H200: eight kernels of a GRU start one after another"),
    (
        "gpu.cp.early_graph_depth",
        128,
        "CUDA guide: grids that may be resident on a device of compute capability 9.0; h200_deps.csv: GRUs of"
        " 96 and 132 TBs a kernel want at least 16",
    ),
    ("gpu.cp.early_reuse", 1600, "deps_tb_trace of an H200: the ninth starts 2 us after the first has ended"),
    (
        "gpu.cp.depend",
        120,
        f"{_MICRO} pdl_pair_ns_primary_last_end_to_wait_return 416, less store, flush and way",
    ),
    (
        "gpu.cp.tb_flush",
        150,
        "h200_gaps.csv: a store at the end of kernels of 1 to 264 TBs adds 0.25 to 0.30 us to the gap of a"
        " graph edge behind them, of which the way to L2 and back takes two thirds",
    ),
    ("gpu.sync.fence", 304, f"{_MICRO} store_plus_threadfence_cycles 585 less latency_cycles.l2_hit 281"),
    ("gpu.sync.fence_system", 2870, "fence.sc.sys of a B300, as published beside 320 cycles of fence.sc.gpu"),
    ("gpu.sync.latency", 313, f"{_MICRO} atomic_add_returning_latency_cycles: 313 near, 527 over the fabric"),
    ("gpu.sync.acquire", 180, _LEFT),
    ("gpu.sync.posted", 0, "not measured"),
    ("gpu.sync.atomic", 0.796, f"{_MICRO} atomic_add_same_address_ns_per_op_one_thread_per_sm"),
)
