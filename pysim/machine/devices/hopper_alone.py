"""What was measured on an H200 or H100 alone, as other cards have it: left out, or as was assumed before."""

from __future__ import annotations

from .card import Rows

HOPPER_ALONE: Rows = (
    ("gpu.sm.smem_late", 0, "not measured on this card"),
    ("gpu.sm.smem_queue", 64, "not measured on this card"),
    ("gpu.l1.hold_late", 0, "not measured on this card"),
    ("gpu.noc.write_partial", 0, "not measured on this card"),
    ("gpu.sm.barrier_leave", 0, "not known; measured on an H100 alone"),
    ("gpu.sm.copy_gap", 1, "not known; measured on an H200 alone"),
    ("gpu.sm.queue", 0, "not known; measured on an H200 alone"),
    ("gpu.sm.queue_read", 32, "not used; measured on an H200 alone"),
    ("gpu.sm.copy_queue", 4, "not used; measured on an H200 alone"),
    ("gpu.sm.copy_hold", 0.25, "assumed: a line of four sectors a cycle, as of other loads"),
    ("gpu.sm.lsu_queue", 32, "assumed: nobody published it"),
    ("gpu.sm.lsu_shared", 0, "not known; measured on an H100 alone"),
    ("gpu.l1.copies_in_flight", 0, "not known; measured on an H100 alone"),
    ("gpu.l1.stores_in_flight", 0, "not known; measured on an H200 alone"),
    ("gpu.noc.gpc_link", 0, "not known; measured on an H200 alone"),
    ("gpu.l2.chunked", 0, "not known; measured on an H200 alone"),
    ("gpu.l2.single", 0, "not used; measured on an H200 alone"),
    ("gpu.noc.tpc_distance", 0, "not known; measured on an H200 alone"),
    ("gpu.noc.cluster_distance", 0, "not known; measured on an H200 alone"),
    ("gpu.cp.cluster_start", 0, "not known; measured on an H200 alone"),
    ("gpu.cp.tpc_start", 0, "not known; measured on an H200 alone"),
    ("gpu.cp.tpc_warps", 5, "not used; measured on an H200 alone"),
    ("gpu.l2.enter", 0, "not known; measured on an H200 alone"),
    ("gpu.l2.request", 0, "not known; measured on an H200 alone"),
)
