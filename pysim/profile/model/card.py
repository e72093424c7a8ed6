"""The GPU of a profile: which device of pysim it is, what an SM holds, and its measured gaps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from pysim.errors import ConfigError, brief
from pysim.machine.config import Config
from pysim.machine.devices import DEVICES, device
from pysim.profile.events import COPY, MEMSET, Ran
from pysim.units import Value

_WARP = 32
_SUB_CORES = 4
# what a name of deviceProperties must hold, and which device it is; the first that fits
_NAMES = (
    (r"\bH200\b", "h200"),
    (r"\bH100\b", "h100"),
    (r"\bA100\b", "a100"),
    (r"\bV100\b", "v100"),
    (r"\bTITAN V\b", "titan_v"),
)
# least compute capability, and whose gaps a card of it has that pysim does not know
_GENERATIONS = ((9, "h200"), (8, "a100"), (7, "v100"))
# parameter, and the property that says it of the card itself
_OWN = (
    ("sms", "gpu.sms", "numSms"),
    ("registers", "gpu.sm.registers", "regsPerMultiprocessor"),
    ("smem", "gpu.sm.smem", "sharedMemPerMultiprocessor"),
)
# us that a memset of so many bytes adds to a chain of kernels in a graph, its own gap included; measured on
# an H200, tests/hw/launch/h200_memset.csv (`with_ns` less `alone_ns`, medians over the kernels): small ones
# take another path than a kernel; larger ones are kernels
_MEMSET_US = ((256, 1.70), (4096, 2.25))


def known_device(properties: Mapping[str, object], gpu: str | None, source: str) -> tuple[str, str]:
    """Return the name of the device that a profile was recorded on, or that the user names, and a remark.

    A card of NVIDIA that pysim does not know keeps what its ``deviceProperties`` say of its SMs, and has the
    gaps of a card of its generation, which the remark says. Raises ConfigError for any other.
    """
    if gpu is not None:
        return gpu, ""
    name = str(properties.get("name") or "")
    for pattern, found in _NAMES:
        if re.search(pattern, name, re.IGNORECASE):
            return found, ""
    major, sms = properties.get("computeMajor"), properties.get("numSms")
    if "NVIDIA" in name and isinstance(major, int) and isinstance(sms, int):
        near = next((like for least, like in _GENERATIONS if major >= least), None)
        if near is not None:
            return near, (
                f"pysim has no {brief(name, 60)}: SMs as its deviceProperties say ({sms}), gaps of the"
                f" {near}; --gpu NAME takes another"
            )
    said = f"its GPU {brief(name, 60)} is none of pysim's devices" if name else "it does not name its GPU"
    raise ConfigError(f"{source}: {said}: --gpu NAME says which to take ({', '.join(DEVICES)})")


@dataclass(frozen=True, slots=True)
class Card:
    """Numbers of the GPU that decide when kernels start; times in us.

    ``stream_gap``, ``graph_gap``: from a kernel's end to the next one's start; ``launch``: before the first
    one; ``done``, ``begin``: from a TB's end to the scheduler, and from dispatch to its first instruction;
    ``depend``: from a kernel's end until a dependent one that was launched early goes on; ``admit``: of pool
    and table schemes, a kernel; ``update``: until a counter of the dependence table frees a TB.
    """

    name: str
    sms: int
    warps: int
    tbs: int
    registers: int
    register_unit: int
    smem: int
    smem_unit: int
    smem_reserved: int
    stream_gap: float
    graph_gap: float
    launch: float
    done: float
    begin: float
    depend: float
    admit: float
    update: float
    early: bool

    @staticmethod
    def of(name: str, properties: Mapping[str, object]) -> Card:
        """Return the card; what ``deviceProperties`` says of its SMs counts before the device's numbers."""
        config = Config.resolve(device(name))
        values: dict[str, Value] = dict(config.values)

        def number(path: str) -> float:
            return float(cast("float", values[path]))

        own = {field: int(number(path)) for field, path, _ in _OWN}
        for field, _, said in _OWN:
            given = properties.get(said)
            if isinstance(given, int | float) and 0 < given < 1 << 30:
                own[field] = int(given)
        return Card(
            name=name,
            **own,
            warps=int(number("gpu.sm.warps")),
            tbs=int(number("gpu.sm.tbs")),
            register_unit=int(number("gpu.sm.register_unit")),
            smem_unit=max(1, int(number("gpu.sm.smem_unit"))),
            smem_reserved=int(number("gpu.sm.smem_reserved")),
            stream_gap=number("gpu.cp.stream_gap") / 1e3,
            graph_gap=number("gpu.cp.graph_gap") / 1e3,
            launch=number("gpu.cp.launch") / 1e3,
            done=number("gpu.cp.tb_done_latency") / 1e3,
            begin=number("gpu.cp.tb_start_latency") / 1e3,
            depend=number("gpu.cp.depend") / 1e3,
            admit=number("gpu.cp.admit") / 1e3,
            update=number("scheme.table.latency") / 1e3,
            early=config.device.compute_capability >= (9, 0),
        )

    def slots(self, ran: Ran) -> int:
        """Return how many TBs of a kernel the GPU holds at once: at least one an SM."""
        warps = max(1, -(-ran.threads // _WARP)) if ran.threads else _SUB_CORES
        held = min(self.tbs, self.warps // warps)
        if ran.registers:
            granted = -(-ran.registers * _WARP // self.register_unit) * self.register_unit
            held = min(held, self.registers // _SUB_CORES // granted * _SUB_CORES // warps)
        used = -(-(ran.smem + self.smem_reserved) // self.smem_unit) * self.smem_unit
        if used:
            held = min(held, self.smem // used)
        return max(1, held) * self.sms

    def memset(self, ran: Ran) -> float | None:
        """Return what a memset adds to a chain in a graph beyond its gap, us; None: it is like a kernel."""
        if ran.kind != MEMSET:
            return None
        size = max(ran.size, 1)  # not known: the small ones are by far the most
        return next((us - self.graph_gap for most, us in _MEMSET_US if size <= most), None)


def waves(card: Card, ran: Ran) -> float:
    """Return the waves of a kernel; 0 for a copy or memset, and where the grid is unknown."""
    if ran.kind in (COPY, MEMSET) or not ran.tbs:
        return 0.0
    return ran.tbs / card.slots(ran)
