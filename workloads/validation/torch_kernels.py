"""Kernels of networks that PyTorch launched, where the library's own choice is not known."""

from __future__ import annotations

from functools import lru_cache

from pysim.errors import ConfigError
from pysim.workloads.framework.images import Kernels
from pysim.workloads.library.gemms.told import Told, told_of

from .table import Row, packaged, rows_of

TABLE = "torch_kernels.csv"


@lru_cache(maxsize=1)
def _rows() -> dict[str, dict[str, Row]]:
    found: dict[str, dict[str, Row]] = {}
    for row in rows_of(TABLE, packaged(TABLE), ("workload", "role", "kernel", "others")):
        found.setdefault(row.text("workload"), {})[row.text("role")] = row
    return found


def _of(network: str) -> dict[str, Row]:
    if network not in _rows():
        raise ConfigError(f"{TABLE}: no kernels of {network}")
    return _rows()[network]


def gemms_of(network: str) -> dict[str, Told]:
    """Return the kernels of a recurrent module's GEMMs by role."""
    return {role: told_of(row.text("kernel")) for role, row in _of(network).items()}


def convolutions_of(network: str) -> list[Kernels]:
    """Return the kernels of each convolution in the order of launches."""
    made = []
    for row in _of(network).values():
        others = tuple(told_of(text) for text in row.text("others").split(";") if text)
        made.append(Kernels(told_of(row.text("kernel")), others))
    return made
