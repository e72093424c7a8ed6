"""Mechanisms of the machine model that can be switched off, one row each: what a name stands for.

``--without dram_rows,l2_partitions`` runs the same machine without them. The change of a result is the effect
of these mechanisms; a difference that no mechanism changes has another cause.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.errors import ConfigError
from pysim.units import parse, row_of, suggest

if TYPE_CHECKING:
    from pysim.units import Value


@dataclass(frozen=True, slots=True)
class Mechanism:
    """``part``: of the machine; ``off``: the parameters that switch it off, with the values that do."""

    part: str
    doc: str
    off: tuple[tuple[str, int | float | str], ...]


_AS_FAR = (("gpu.noc.tpc_distance", 0), ("gpu.noc.cluster_distance", 0))
_TOGETHER = (("gpu.cp.cluster_start", 0), ("gpu.cp.tpc_start", 0))

MECHANISMS: dict[str, Mechanism] = {
    "registers": Mechanism("issue", "issue slots lost to register banks", (("gpu.sm.register_ports", 0),)),
    "barrier_warps": Mechanism(
        "issue",
        "warps that arrive at a barrier, or leave it, one after another",
        (("gpu.sm.barrier_warp", 0), ("gpu.sm.barrier_leave", 0)),
    ),
    "tensor_clock": Mechanism(
        "issue", "a slower clock while tensor cores are busy", (("gpu.clock_tensor", 1),)
    ),
    "clusters": Mechanism(
        "NoC",
        "TBs dispatched to GPCs and TPCs in turn, and the links that their SMs share",
        (("gpu.gpcs", 1), ("gpu.tpc_sms", 1), ("gpu.noc.gpc_link", 0), *_TOGETHER, *_AS_FAR),
    ),
    "gpc_links": Mechanism(
        "NoC",
        "a GPC's link for L2 replies from each group of slices, shared by its clusters",
        (("gpu.noc.gpc_link", 0),),
    ),
    "distances": Mechanism("NoC", "SMs that are farther from L2 than others", _AS_FAR),
    "ports": Mechanism(
        "NoC",
        "ports to the network shared by SMs or held by each sector of a request",
        (("gpu.noc.port_sms", 1), ("gpu.noc.read_sector", 0)),
    ),
    "joined_loads": Mechanism(
        "NoC", "loads of up to four SMs of a GPC that share a request to L2", (("gpu.noc.join_loads", 0),)
    ),
    "joined_stores": Mechanism(
        "L1", "pairs of stores that merge on the way to L2", (("gpu.l1.join_stores", 0),)
    ),
    "dram_pairs": Mechanism("DRAM", "DRAM delivers pairs of sectors", (("gpu.l2.fill", 32),)),
    "partial_sectors": Mechanism(
        "L2", "reads of the rest of partially written sectors", (("gpu.l2.open_lines", 0),)
    ),
    "l2_partitions": Mechanism(
        "L2", "two L2 partitions with copies between them", (("gpu.l2.partitions", 1),)
    ),
    "l2_hash": Mechanism("L2", "strides spread over slices and sets by a hash", (("gpu.l2.hash", 0),)),
    "l2_requests": Mechanism(
        "L2",
        "loads that enter a slice and are looked up one by one",
        (("gpu.l2.enter", 0), ("gpu.l2.request", 0)),
    ),
    "l2_chunks": Mechanism("L2", "neighbouring lines that map to one slice", (("gpu.l2.chunked", 0),)),
    "l2_scans": Mechanism("L2", "scans that do not evict lines in use", (("gpu.l2.referenced", 32),)),
    "dram_rows": Mechanism(
        "DRAM",
        "rows of DRAM banks that are opened before an access",
        (("gpu.dram.row_open", 1), ("gpu.dram.row_cycle", 2), ("gpu.dram.row_gap", 0)),
    ),
    "dram_bank_hash": Mechanism("DRAM", "strides spread over banks by a hash", (("gpu.dram.bank_hash", 0),)),
    "dram_turnaround": Mechanism(
        "DRAM",
        "bus time lost between reads and writes",
        (("gpu.dram.turnaround", 0), ("gpu.dram.read_turnaround", 0)),
    ),
    "dram_refresh": Mechanism(
        "DRAM", "refreshes", (("gpu.dram.refresh_time", 0), ("gpu.dram.bank_refresh_time", 0))
    ),
    "dram_writes": Mechanism("DRAM", "writes that wait for DRAM", (("gpu.dram.write_queue", 0),)),
    "tb_release": Mechanism("launch", "one server for all TBs that end", (("gpu.cp.tb_release", 0),)),
    "tb_start": Mechanism("launch", "one server for all TBs that start", (("gpu.cp.tb_start", 0),)),
    "start_order": Mechanism(
        "launch", "TBs of a cluster, and first TBs of a TPC, that start one after another", _TOGETHER
    ),
    "leaving_stores": Mechanism(
        "launch", "slots freed before stores are acknowledged", (("gpu.sm.leave_stores", 0),)
    ),
    "store_flush": Mechanism(
        "launch", "stores that become visible to the whole GPU", (("gpu.cp.tb_flush", 0),)
    ),
    "launch": Mechanism(
        "launch",
        "launch latency and the gaps between kernels",
        (("gpu.cp.launch", 0), ("gpu.cp.stream_gap", 0), ("gpu.cp.graph_gap", 0), ("gpu.cp.admit", 0)),
    ),
}


def without(names: Iterable[str]) -> dict[str, Value]:
    """Return the parameter values that switch these mechanisms off.

    A name that is not in :data:`MECHANISMS` raises :class:`ConfigError`.
    """
    values: dict[str, Value] = {}
    for name in names:
        if name not in MECHANISMS:
            hint = suggest(name, MECHANISMS) or f": there are {', '.join(MECHANISMS)}"
            raise ConfigError(f"no mechanism {name}{hint}")
        values |= {path: parse(path, row_of(path), value) for path, value in MECHANISMS[name].off}
    return values
