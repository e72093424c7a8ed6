"""What a copy from the host writes, and the time that the link takes for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .regions import SECTOR, union

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_TICKS_US = 1024 * 1000


@dataclass(frozen=True, slots=True, eq=False)
class HostCopy:
    """A copy from the host: ``spans``, the int64 (n, 2) sorted disjoint byte ranges that it writes.

    ``timed``: it occupies the link.
    """

    spans: Ints
    timed: bool

    @property
    def nbytes(self) -> int:
        """Bytes that cross the link."""
        return int((self.spans[:, 1] - self.spans[:, 0]).sum())

    def link_ticks(self, values: Mapping[str, int]) -> tuple[int, int]:
        """Return the latency and the duration on the link, in ticks; ``values``: encoded parameters."""
        if not self.timed:
            return 0, 0
        # GB/s are given in MB/s: bytes / (MB/s) = us
        spent = -(-self.nbytes * _TICKS_US // values["host.copy_bandwidth"])
        return values["host.copy_latency"], max(1, spent)

    def sectors(self) -> Ints:
        """Return the sectors that it writes as sorted disjoint (n, 2) ranges."""
        made = self.spans.copy()
        made[:, 0] //= SECTOR
        made[:, 1] = -(-made[:, 1] // SECTOR)
        return union(made)
