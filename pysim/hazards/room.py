"""Whether TBs of two kernels fit an SM together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.program.occupancy import SUB_CORES, allocated_smem, occupancy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pysim.program.job import Kernel


def fits_beside(held: Kernel, count: int, more: Kernel, values: Mapping[str, int]) -> bool:
    """Whether a TB of kernel ``more`` fits an SM that holds ``count`` TBs of kernel ``held``.

    ``values``: encoded parameters.
    """
    unit = values["gpu.sm.register_unit"]

    def registers(kernel: Kernel) -> int:
        program = kernel.program
        return max(unit, -(-program.registers * 32 // unit) * unit) * -(-program.warps // SUB_CORES)

    return (
        count < values["gpu.sm.tbs"]
        and count * held.program.warps + more.program.warps <= values["gpu.sm.warps"]
        and count * registers(held) + registers(more) <= values["gpu.sm.registers"] // SUB_CORES
        and count * allocated_smem(held, values) + allocated_smem(more, values) <= values["gpu.sm.smem"]
    )


def has_free_slots(first: Kernel, second: Kernel, values: Mapping[str, int]) -> bool:
    """Whether a TB of the second kernel fits the GPU when all TBs of the first have started.

    It does where the first kernel's TBs do not fill the GPU, or leave enough of an SM.
    """
    held = occupancy(first, values)
    return first.tbs < held * values["gpu.sms"] or fits_beside(first, held, second, values)


def filling_tbs(waiting: Kernel, awaited: Kernel, values: Mapping[str, int]) -> int | None:
    """Return how many TBs of a kernel leave no SM room for a TB of another one; None: no number does."""
    for count in range(1, occupancy(waiting, values) + 1):
        if not fits_beside(waiting, count, awaited, values):
            return count * values["gpu.sms"]
    return None
