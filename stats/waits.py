"""For how long TBs waited, and for what, from the tables of a result file."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from .errors import StoreError
from .schema import Table
from .store import Results

WAITS = ("launch", "dependence", "slot", "dispatch")
KERNEL_LEVEL = "kernel_level"  # attribute of a file: JSON list of its schemes that order whole kernels
Times = NDArray[np.float64]


def tb_waits(tbs: Table, kernels: Table, whole: bool) -> Times:
    """Return (n, 4): how long each TB of one run waited for each of ``WAITS``, in ns.

    ``tbs``, ``kernels``: rows of that run; ``kernels`` may be empty, then all time before a TB was ready is
    that of its launch. ``whole``: the scheme orders whole kernels; the time up to the end of the kernel that
    a TB waited for counts as dependence then, the gap after it as launch. Under other schemes the time up to
    the admission of the TB's own kernel counts as launch, the time after it as dependence.
    """
    ready, dispatch, start = (tbs[f"{name}_ns"] for name in ("ready", "dispatch", "start"))
    made = np.zeros((len(tbs), 4))
    made[:, 2] = np.maximum(dispatch - ready, 0)
    made[:, 3] = np.maximum(start - dispatch, 0)
    if len(kernels) and len(tbs):
        by_number = np.zeros((2, int(kernels["kernel"].max()) + 1))
        by_number[:, kernels["kernel"]] = kernels["admitted_us"] * 1e3, kernels["complete_us"] * 1e3
        if whole:
            last = tbs["last_kernel"]
            made[:, 1] = np.clip(np.where(last < 0, 0, by_number[1][last]), 0, ready)
        else:
            made[:, 1] = np.maximum(ready - by_number[0][tbs["kernel"]], 0)
    made[:, 0] = ready - made[:, 1]
    return made


def orders_kernels(results: Results, scheme: str) -> bool | None:
    """Return whether a scheme of a file orders whole kernels; None: the file, an older one, does not say."""
    text = results.attributes.get(KERNEL_LEVEL)
    if text is None:
        return None
    try:
        known = json.loads(str(text))
        if not isinstance(known, list):
            raise ValueError("no list")
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{results.path} is damaged: its attribute {KERNEL_LEVEL} is no list") from error
    return scheme in known


def ready_together(tbs: Table) -> bool:
    """Return whether the TBs of each kernel of a run were ready at once, as where whole kernels wait."""
    order = np.lexsort((tbs["ready_ns"], tbs["kernel"]))
    same = tbs["kernel"][order][1:] == tbs["kernel"][order][:-1]
    return bool(np.all(np.diff(tbs["ready_ns"][order])[same] == 0))
