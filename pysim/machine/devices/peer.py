"""Accel-Sim's models of two cards, to compare simulators.

Its parameters where ours mean the same, else numbers that follow from how it works (docs/peer.md). Its
configurations: framework 73f9fac, gpgpu-sim 667834cf (2024). The rest is inherited from Volta.
"""

from __future__ import annotations

from .card import Device, Generation, Rows, card
from .volta import VOLTA

_CONFIG = "configuration file of the card"
_PIPELINE = "trace.config's value + 4 for collector, decode and write-back (2 to 4)"
_CROSSBAR = "crossbar of input queues with round robin among heads, see docs/peer.md"
_FLOOR = "0 there; the least that ours takes"
_FITTED = "set to the rows of docs/peer.md within what the stages there may take"
_PEER: Rows = (
    ("gpu.gpcs", 1, "TBs are handed out cluster after cluster"),
    ("gpu.tpc_sms", 1, f"{_CONFIG}: clusters of 1 SM"),
    ("gpu.sm.register_unit", 128, "registers are rounded to 4 a thread"),
    ("gpu.sm.smem_unit", 1, "no allocation unit"),
    ("gpu.sm.fp16_interval", 1, "half of SP's initiation interval"),
    ("gpu.sm.control_interval", 4, f"{_CONFIG}: specialised unit 1, 4,4"),
    ("gpu.sm.fp32_latency", 6, _PIPELINE),
    ("gpu.sm.int_latency", 6, _PIPELINE),
    ("gpu.sm.fp16_latency", 6, _PIPELINE),
    ("gpu.sm.fp64_latency", 12, _PIPELINE),
    ("gpu.sm.sfu_latency", 24, _PIPELINE),
    ("gpu.sm.control_latency", 8, _PIPELINE),
    (
        "gpu.sm.smem_latency",
        48,
        f"{_CONFIG}: 20, + 4, and what it waits behind loads in the one LDST unit, in order: {_FITTED}",
    ),
    ("gpu.sm.smem_conflicts", "first_word", "its rule looks at one word a lane, whatever the width"),
    ("gpu.sm.register_ports", 0, "operands are collected twice a cycle: a bank keeps up with FFMA"),
    ("gpu.sm.barrier", 14, _FITTED),
    ("gpu.sm.leave_stores", 0, "shd_warp_t::hardware_done asks for stores_done"),
    ("gpu.sm.block_max", 64, "choice of the model; docs/peer.md has what other lengths give"),
    ("gpu.sm.block_tensor", 1024, "choice of the model, as gpu.sm.block_max"),
    ("gpu.sm.warp_order", "round_robin", f"{_CONFIG}: scheduler lrr"),
    ("gpu.l1.latency", 28, f"{_CONFIG}: l1_latency 20, and 8 around it"),
    ("gpu.l1.in_flight", 448, f"{_CONFIG}: 512 miss entries, of which stores hold some: 448 assumed"),
    ("gpu.noc.reply_bytes", 32, "a 40 B flit a cycle and port: a sector with its head"),
    ("gpu.l2.latency", 215, f"{_CONFIG}: 20 + 160 (rop) and the stages between, 30 to 60: {_FITTED}"),
    ("gpu.l2.slice_bytes", 18, f"0.5556 sectors a cycle: {_CROSSBAR}"),
    ("gpu.l2.replacement", "lru", _CONFIG),
    ("gpu.dram.latency", 365, f"L2 hit + 100 (dram_latency) + 24 DRAM clocks and queues: {_FITTED}"),
    ("gpu.dram.refresh_time", 0, "not modelled there"),
    ("gpu.cp.admit", 0, "not modelled there"),
    ("gpu.cp.tb_release", 0, "not modelled there"),
    ("gpu.cp.tb_start", 0, "a TB a cycle and cluster"),
    ("gpu.cp.tb_flush", 0, "not modelled there"),
    ("gpu.cp.tb_done_latency", 20, _FLOOR),
    ("gpu.cp.tb_start_latency", 20, _FLOOR),
    ("gpu.cp.place", "load", "in turn"),
    ("gpu.cp.even_tbs", 1, "TBs an SM capped at ceil(TBs / SMs)"),
)
PEER = Generation("Accel-Sim", VOLTA.compute_capability, VOLTA.carveouts, VOLTA.mma_rate, _PEER, (VOLTA,))

_PEER_TITAN_V: Rows = (
    ("gpu.clock", 1200, f"{_CONFIG}: core domain"),
    ("gpu.sm.tensor_interval", 4, f"{_CONFIG}: 8,4"),
    ("gpu.sm.tensor_latency", 12, _PIPELINE),
    ("gpu.tpc_sms", 2, f"{_CONFIG}: clusters of 2 SMs"),
    ("gpu.noc.port_sms", 2, f"{_CONFIG}: 40 clusters of 2 SMs, a port each"),
    ("gpu.noc.read_sector", 2.03, f"0.494 packets a cycle and cluster: {_CROSSBAR}"),
    ("gpu.noc.write_bytes", 16, f"0.494 packets a cycle and cluster: {_CROSSBAR}"),
    ("gpu.l2.size", 4718592, f"{_CONFIG}: 48 slices of 32 x 24 x 128 B"),
    ("gpu.l2.slices", 48, f"{_CONFIG}: 24 x 2"),
    ("gpu.l2.hash_slices", 64, "hash to 64, then the remainder: 16 slices get twice as much"),
    ("gpu.dram.bandwidth", 652.8, f"{_CONFIG}: 24 channels of 16 B at 2 x 850 MHz"),
    ("gpu.cp.launch", 0, f"{_CONFIG}: kernel_launch_latency not set"),
    ("gpu.cp.stream_gap", 0, f"{_CONFIG}: kernel_launch_latency not set"),
    ("gpu.cp.graph_gap", 0, f"{_CONFIG}: kernel_launch_latency not set"),
)
_PEER_QV100: Rows = (
    ("gpu.clock", 1132, f"{_CONFIG}: core domain"),
    ("gpu.sm.tensor_interval", 2, f"{_CONFIG}: 2,2"),
    ("gpu.sm.tensor_latency", 6, _PIPELINE),
    ("gpu.noc.read_sector", 2.25, f"0.444 packets a cycle and SM: {_CROSSBAR}"),
    ("gpu.noc.write_bytes", 14, f"0.444 packets a cycle and SM: {_CROSSBAR}"),
    ("gpu.l2.size", 6291456, f"{_CONFIG}: 64 slices of 32 x 24 x 128 B"),
    ("gpu.l2.slices", 64, f"{_CONFIG}: 32 x 2"),
    ("gpu.dram.bandwidth", 870.4, f"{_CONFIG}: 32 channels of 16 B at 2 x 850 MHz"),
    ("gpu.cp.launch", 4417, f"{_CONFIG}: kernel_launch_latency 5000 cycles"),
    ("gpu.cp.stream_gap", 4417, f"{_CONFIG}: kernel_launch_latency 5000 cycles"),
    ("gpu.cp.graph_gap", 4417, f"{_CONFIG}: kernel_launch_latency 5000 cycles"),
)


def cards() -> tuple[Device, ...]:
    """Return the models."""
    return (
        card("accelsim_titan_v", "Accel-Sim's SM7_TITANV, to compare models", PEER, _PEER_TITAN_V),
        card("accelsim_qv100", "Accel-Sim's SM7_QV100, to compare models", PEER, _PEER_QV100),
    )
