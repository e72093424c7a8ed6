"""What events take on an H200, in W and pJ."""

from __future__ import annotations

from pysim.machine.devices.card import Energies

# Measured on the steady kernels of h200_power.csv: power less that of TBs that sleep on all SMs (sleep_full),
# over the rate of the event, less the energy of the other instructions of the loop. docs/energy.md checks the
# table against other kernels.
_POWER = "measured, h200_power.csv"
ENERGIES: Energies = (
    ("board", 129.3, 0.02, f"{_POWER}: mean of idle and idle_after"),
    ("sm_busy", 0.033, 0.5, f"{_POWER}: (sleep_full - board) / 132"),
    (
        "instruction",
        158,
        0.15,
        f"{_POWER} ffma: 162 pJ, with the loop; its operands have converged",
    ),
    ("fp32", 312, 0.35, f"{_POWER} ffma_random: 474 pJ, less the instruction; fadd: 168"),
    ("int", 178, 0.35, f"{_POWER} iadd_xor: 338 pJ, less the instruction; imad: 222"),
    (
        "fp16",
        67,
        1.0,
        f"{_POWER} hfma2: 229 pJ, less the instruction; converged operands, others take more",
    ),
    ("fp64", 553, 0.35, f"{_POWER} dfma: 727 pJ, less the instruction"),
    ("sfu", 137, 0.35, f"{_POWER} mufu_tanh: 299 pJ, less the instruction"),
    ("tensor", 3504, 0.35, f"{_POWER} mma_random: 3669 pJ, less the instruction; operands 0 (mma_zero): 525"),
    ("control", 0, 0.0, "not measured: an instruction like any"),
    ("smem", 421, 0.2, f"{_POWER} shared_read: 3067 pJ a load of 4 wavefronts, less 4.4 instructions"),
    ("l1_line", 477, 0.2, f"{_POWER} l1_read: 3668 pJ a load of 4 lines, less 5.5 instructions"),
    ("l2_read", 1213, 0.15, f"{_POWER} l2_read: 23076 pJ a load of 16 sectors, less L1 and instructions"),
    ("l2_write", 1213, 0.3, "as l2_read: the same network and array"),
    (
        "dram_read",
        2167,
        0.15,
        f"{_POWER} dram_read: 57748 pJ a load of 16 sectors, less L2, L1 and instructions",
    ),
    (
        "dram_write",
        1673,
        0.3,
        f"{_POWER} dram_write: 49750 pJ a store of 16 sectors, less L2 and 11 instructions",
    ),
)
