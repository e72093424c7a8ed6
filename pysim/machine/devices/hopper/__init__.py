"""Hopper: cards with a GH100.

The microbenchmarks in ``tests/hw`` measured most numbers on an H200; their medians are in
``workloads/measured/h200_micro.json``, whose keys the sources name. An H100 is taken to have the same chip.
"""

from __future__ import annotations

from pysim.machine.devices.card import Device, Generation, Rows, card

from .energy import ENERGIES
from .launch import IN_KERNEL, LAUNCH, RELEASE
from .measured import ASSUMED, MICRO, SHEET
from .memory import MEMORY
from .sm import SM

__all__ = ["HOPPER", "IN_KERNEL", "RELEASE", "cards"]

HOPPER = Generation(
    "Hopper",
    compute_capability=(9, 0),
    carveouts=(0, 8, 16, 32, 64, 100, 132, 164, 196, 228),  # KiB; CUDA guide, 9.0
    mma_rate=340,  # multiply-adds of mma.sync a cycle and sub-core: 2048 of an HMMA.16816 in 6.03 cycles
    rows=(*SM, *MEMORY, *LAUNCH),
)

_H200: Rows = (
    ("gpu.sms", 132, f"{MICRO} sm_count"),
    ("gpu.clock", 1980, f"{MICRO} attr_sm_clock_khz; sm_clock_mhz.all_sms_spinning 1979.8"),
    ("gpu.power_limit", 700, "NVIDIA H200 data sheet; nvidia-smi: default power limit 700.00 W"),
    (
        "gpu.power_slope",
        0.9,
        "measured, h200_power.csv, h200_power_second.csv: six fp16 GEMMs at 0.82 to 0.93 of the clock take"
        " 0.81 to 0.99 of the energy that the table of events gives, in proportion to its power 0.9",
    ),
    ("gpu.l2.size", 63143936, f"{MICRO} l2_bytes, 60 MiB: 327 sets of 94 slices, in whole DRAM rows 328"),
    (
        "gpu.l2.slices",
        94,
        "measured, h200_slices.csv: 47 a partition, one for each 64 bits of the memory bus"
        f" ({MICRO} attr_mem_bus_bits 6016)",
    ),
    ("gpu.l2.single", 7, "measured, h200_slices.csv: 20 units of two slices and 7 of one in a partition"),
    ("gpu.dram.bandwidth", 4814.3, f"{MICRO} attr_mem_bus_bits 6016 at 2 x attr_mem_clock_khz 3201"),
)
_H100: Rows = (
    ("gpu.sms", 132, f"{SHEET}: H100 SXM5, 132 of 144 SMs"),
    ("gpu.clock", 1980, f"{SHEET}: H100 SXM5, highest boost clock"),
    ("gpu.l2.size", 52428800, f"{SHEET}: H100 SXM5, 50 MB"),
    ("gpu.l2.slices", 80, f"{ASSUMED}: slices as large as an H200's"),
    ("gpu.l2.single", 0, f"{ASSUMED}: two slices a unit"),
    ("gpu.dram.bandwidth", 3352.3, "NVIDIA H100 SXM5 data sheet (3.35 TB/s): 5120 bit at 2 x 2619 MHz"),
)


def cards() -> tuple[Device, ...]:
    """Return the cards of this generation."""
    return (
        card("h100", "NVIDIA H100 SXM5 (GH100, 80 GB HBM3)", HOPPER, _H100),
        card("h200", "NVIDIA H200 SXM (GH100, 141 GB HBM3e)", HOPPER, _H200, energies=ENERGIES),
    )
