"""For how long TBs waited, and for what, from the tables of a result file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .schema import Table

WAITS = ("launch", "dependence", "slot", "dispatch")
Times = NDArray[np.float64]


def tb_waits(tbs: Table, kernels: Table) -> Times:
    """Return (n, 4): how long each TB of one run waited for each of ``WAITS``, in ns.

    ``tbs``, ``kernels``: rows of that run; ``kernels`` may be empty, then all time before a TB was ready is
    that of its launch. Schemes that order whole kernels count from the end of the kernel that a TB waited
    for, others from when its own kernel was admitted. The file does not say which its scheme is: the right
    one gives the column ``reason``, which is a TB's longest wait.
    """
    ready, dispatch, start = (tbs[f"{name}_ns"] for name in ("ready", "dispatch", "start"))
    made = np.zeros((len(tbs), 4))
    made[:, 0] = ready
    made[:, 2] = np.maximum(dispatch - ready, 0)
    made[:, 3] = np.maximum(start - dispatch, 0)
    if not len(kernels) or not len(tbs):
        return made
    by_number = np.zeros((2, int(kernels["kernel"].max()) + 1))
    by_number[:, kernels["kernel"]] = kernels["admitted_us"] * 1e3, kernels["complete_us"] * 1e3
    admitted = by_number[0][tbs["kernel"]]
    ended = np.where(tbs["last_kernel"] < 0, 0, by_number[1][tbs["last_kernel"]])
    for dependence in (np.maximum(ready - admitted, 0), np.clip(ended, 0, ready)):
        found = made.copy()
        found[:, 0], found[:, 1] = ready - dependence, dependence
        if _agrees(found, tbs["reason"]):
            return found
    return found


def _agrees(waits: Times, reasons: NDArray[Any]) -> bool:
    """Return whether the longest waits are the reasons given, but for waits that are equally long."""
    names = np.array([name.encode() for name in WAITS])
    given = (reasons[:, None] == names[None, :]).argmax(axis=1)
    chosen = waits[np.arange(len(waits)), given]
    return bool(np.all(chosen >= waits.max(axis=1) - 1e-3))
