"""Occupancy: the TBs of a kernel that an SM holds, by allocation granularity; carve-outs of shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .job import Kernel

SUB_CORES = 4


def allocated_smem(kernel: Kernel, values: Mapping[str, int]) -> int:
    """Return the bytes of shared memory that a TB occupies, with the part that CUDA reserves, rounded up."""
    unit = values["gpu.sm.smem_unit"]
    if kernel.program.smem == 0 and values["gpu.sm.smem_reserved"] == 0:
        return 0
    return -(-(kernel.program.smem + values["gpu.sm.smem_reserved"]) // unit) * unit


def _limits(kernel: Kernel, values: Mapping[str, int]) -> dict[str, int]:
    """Return the TBs that each resource allows, except shared memory."""
    program = kernel.program
    unit = values["gpu.sm.register_unit"]
    granted = max(unit, -(-program.registers * 32 // unit) * unit)
    by_registers = values["gpu.sm.registers"] // SUB_CORES // granted * SUB_CORES
    # warps are assigned to sub-cores whole: of a TB of 5 warps one sub-core holds 2
    return {
        "warps": values["gpu.sm.warps"] // program.warps,
        "registers": by_registers // program.warps,
        "TBs": values["gpu.sm.tbs"],
    }


def occupancy(kernel: Kernel, values: Mapping[str, int]) -> int:
    """Return the TBs of a kernel that an SM holds at the largest carve-out.

    Raises WorkloadError if not even one fits, with the resource that is too small, and for a cooperative
    kernel of more TBs than the GPU holds at once.
    """
    limits = _limits(kernel, values)
    used = allocated_smem(kernel, values)
    if used:
        limits["shared memory"] = values["gpu.sm.smem"] // used
    for resource, held in limits.items():
        if held == 0:
            wants = {
                "warps": f"{kernel.program.warps} warps of {values['gpu.sm.warps']}",
                "registers": f"{kernel.program.registers} registers a thread x {kernel.program.warps} warps"
                f" of {values['gpu.sm.registers']} registers",
                "TBs": "a TB slot of 0",
                "shared memory": f"{used} B of {values['gpu.sm.smem']} B",
            }[resource]
            raise WorkloadError(f"kernel {kernel.name}: a TB fits no SM: {resource}: it needs {wants}")
    held = min(limits.values())
    if kernel.cooperative and kernel.tbs > held * values["gpu.sms"]:
        most = held * values["gpu.sms"]
        raise WorkloadError(f"kernel {kernel.name}: cooperative, with {kernel.tbs} TBs: the GPU holds {most}")
    return held


def carveouts(kernels: Sequence[Kernel], values: Mapping[str, int], options: Sequence[int]) -> list[int]:
    """Return the carve-out of each kernel (:func:`carveout`); equal resources are looked at once."""
    known: dict[tuple[int, int, int], int] = {}
    made: list[int] = []
    for kernel in kernels:
        needs = tb_resources(kernel)
        found = known.get(needs)
        if found is None:
            found = known[needs] = carveout(kernel, values, options)
        made.append(found)
    return made


def tb_resources(kernel: Kernel) -> tuple[int, int, int]:
    """Return what occupancy depends on: warps a TB, registers a thread, bytes of shared memory."""
    program = kernel.program
    return program.warps, program.registers, program.smem


def carveout(kernel: Kernel, values: Mapping[str, int], options: Sequence[int]) -> int:
    """Return the smallest carve-out that holds as many TBs as the other resources allow.

    In bytes; ``options``: the carve-outs that the GPU has. With ``gpu.sm.own_carveout``, as measured
    (``h200_carve.csv``), it holds as many TBs as the SM can hold at all, and at least the reserved part of
    all TB slots, so that small kernels run beside each other.
    """
    held = occupancy(kernel, values)
    used = allocated_smem(kernel, values)
    wanted = min(_limits(kernel, values).values()) * used
    if values["gpu.sm.own_carveout"]:
        wanted = max(held * used, values["gpu.sm.tbs"] * values["gpu.sm.smem_reserved"])
    allowed = sorted(o for o in options if o <= values["gpu.sm.smem"]) or [values["gpu.sm.smem"]]
    return next((o for o in allowed if o >= wanted), allowed[-1])
