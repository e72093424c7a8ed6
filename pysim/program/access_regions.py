"""The memory regions that the TBs of a kernel touch of one tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .regions import SECTOR, Regions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .job import Access, Tensor

    Ints = NDArray[np.int64]


def _distinct(table: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of a table, and the index of each row among them."""
    if len(table) and bool((table == table[0]).all()):
        return table[:1], np.zeros(len(table), np.int64)
    rows, inverse = np.unique(table, axis=0, return_inverse=True)
    return rows, inverse.reshape(-1).astype(np.int64)


def regions_of(access: Access, tbs: int, granule: int = SECTOR) -> Regions:
    """Return the distinct regions that the ``tbs`` TBs of a kernel touch of a tensor.

    Regions are clipped to the tensor; ``granule``: bytes, of which regions are whole multiples.
    """
    tensor: Tensor = access.tensor
    raw = np.asarray(access.regions(np.arange(tbs, dtype=np.int64)), np.int64).reshape(tbs, 4)
    table = np.empty_like(raw)
    table[:, 0] = np.maximum(raw[:, 0], 0)
    table[:, 1] = np.minimum(raw[:, 1], tensor.rows)
    table[:, 2] = np.maximum(raw[:, 2], 0) * tensor.item
    table[:, 3] = np.minimum(raw[:, 3], tensor.cols) * tensor.item
    touches = (table[:, 0] < table[:, 1]) & (table[:, 2] < table[:, 3])
    who = np.flatnonzero(touches)
    table = table[who]
    aligned = tensor.address % granule == 0 and tensor.pitch % granule == 0
    if aligned:
        table[:, 2] = table[:, 2] // granule * granule
        table[:, 3] = -(-table[:, 3] // granule) * granule
    rows, inverse = _distinct(table)
    order = np.argsort(inverse, kind="stable")
    ptr = np.concatenate(([0], np.cumsum(np.bincount(inverse, minlength=len(rows))))).astype(np.int64)
    lo = (tensor.address + rows[:, 0] * tensor.pitch + rows[:, 2]) // granule
    hi = -(-(tensor.address + (rows[:, 1] - 1) * tensor.pitch + rows[:, 3]) // granule)
    rects = rows // np.array([1, 1, granule, granule]) if aligned else None
    return Regions(tensor.address, tensor.pitch, rows, rects, lo, hi, who[order], ptr, granule)
