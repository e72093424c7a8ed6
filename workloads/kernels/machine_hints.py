"""What a library knows of the machine before it launches a kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pysim.machine.config import Config

L2_BYTES = 18.5  # a cycle an SM: Jia et al. 2018 measured 2155 GB/s on a V100 of 80 SMs at 1455 MHz
ROWS_A_BYTE = 6.4 / 900  # DRAM rows opened for each byte of bandwidth: a V100's, assumed of others


VOLTA = (7, 0)


@dataclass(frozen=True, slots=True)
class MachineHints:
    """Published figures of a device, a V100 by default (rates in GB/s, latencies in cycles).

    ``intervals``: cycles of a sub-core between two FFMA, HFMA2 and tensor instructions of a warp; the last is
    HMMA.884 before compute capability 8.0, and mma.m16n8k16 from there on.
    """

    name: str = "v100"
    compute_capability: tuple[int, int] = VOLTA
    sms: int = 80
    clock_mhz: float = 1455.0
    dram_gbs: float = 900.0
    l2_gbs: float = 2155.0
    dram_latency: int = 450
    l2_latency: int = 220
    l2_bytes: int = 6 << 20
    row_gbs: float = 6.4  # DRAM rows opened a nanosecond: what bounds streams of short pieces
    registers: int = 65536
    smem: int = 98304
    smem_reserved: int = 0  # of a TB
    warps: int = 64
    tbs: int = 32
    launch_us: float = 2.0
    sm_mhz: float = 1530.0  # as configured, by which delays are counted
    intervals: tuple[float, float, float] = (2.0, 2.0, 2.0)

    @classmethod
    def of(cls, config: Config) -> MachineHints:
        """Return the figures of a configured GPU.

        Of compute capability 7.0 rates, latencies and the size of L2 are a V100's, for which the library was
        tuned: its habits (``gemm_choice``) were read off times on a V100.
        """
        ffma, hfma2, tensor = (config.number(f"gpu.sm.{p}_interval") for p in ("fp32", "fp16", "tensor"))
        made = cls(
            name=config.device.name,
            compute_capability=config.device.compute_capability,
            sms=config.integer("gpu.sms"),
            registers=config.integer("gpu.sm.registers"),
            smem=config.integer("gpu.sm.smem"),
            smem_reserved=config.integer("gpu.sm.smem_reserved"),
            warps=config.integer("gpu.sm.warps"),
            tbs=config.integer("gpu.sm.tbs"),
            intervals=(ffma, hfma2, tensor),
            sm_mhz=config.number("gpu.clock"),
        )
        if made.compute_capability == VOLTA:
            return made
        mhz, dram_gbs = config.number("gpu.clock"), config.number("gpu.dram.bandwidth")
        return replace(
            made,
            clock_mhz=mhz,
            dram_gbs=dram_gbs,
            l2_gbs=L2_BYTES * made.sms * mhz / 1e3,
            dram_latency=config.integer("gpu.dram.latency"),
            l2_latency=config.integer("gpu.l2.latency"),
            l2_bytes=config.integer("gpu.l2.size"),
            row_gbs=ROWS_A_BYTE * dram_gbs,
        )

    @property
    def tensor_cores(self) -> bool:
        """Whether the GPU has tensor cores: from compute capability 7.0 on."""
        return self.compute_capability >= VOLTA
