"""What libraries and their kernels take for granted of an H200, and of an H100, which has the same SMs."""

from __future__ import annotations

SMS = 132  # by which libraries size grids
SHUFFLE = 23  # cycles from load to use of shared memory, which shuffles take as well (Jia et al. 2018)
