"""The core's ordering tables, as a scheme fills them: who waits for whom, and at what cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences

    from .coarsening import Forms


def in_memory(size: float) -> int:
    """Return the bytes that a table entry of ``size`` bytes takes in memory: whole 4-byte words."""
    return 4 * math.ceil(size / 4)


@dataclass(slots=True)
class CoreTables:
    """What the core needs to know; lists hold one entry a kernel.

    ``preds``: kernels that it waits for; ``nodes``: group nodes for its TBs, None without; ``order``: fields
    of ``gs_order``; ``launches``: fields of ``gs_launch``; ``entry_bytes``: of the table, ``list_bytes``: of
    its second buffer; ``priority``: the scheme's own; ``merged``: TBs of all kernels take as much of an SM;
    ``sequence``: all TBs, as ``gs_job`` wants them; ``hints``: the core's tables of them; ``forms``: coarser
    ones of the nodes.
    """

    preds: Sequence[Sequence[int]]
    order: dict[str, int]
    nodes: Dependences | None = None
    launches: dict[str, Any] = field(default_factory=dict)
    entry_bytes: float = 0.0
    list_bytes: float = 0.0
    priority: str = ""
    merged: bool = False
    sequence: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    hints: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    forms: Forms | None = None

    def fill(self, launches: NDArray[np.void]) -> dict[str, NDArray[Any]]:
        """Fill the launches' own fields and return the tables of nodes."""
        from pysim._ffi import dtype_of

        for name, column in self.launches.items():
            launches[name] = column
        made: dict[str, NDArray[Any]] = {n: np.zeros(0, np.uint32) for n in ("outs", "tb_out_ptr", "tb_outs")}
        own = ("nodes", "ranges", "forms", "links")
        made |= {name: np.zeros(0, dtype_of(f"gs_{name[:-1]}")) for name in own}
        more = {"sequence": self.sequence, **self.hints}
        if self.nodes is None:
            return made | more
        for name in ("node", "out"):
            launches[f"first_{name}"] = getattr(self.nodes, f"{name}_first")
            launches[f"{name}s"] = getattr(self.nodes, f"{name}_count")
        launches["first_tb_out"] = self.nodes.tb_out_first
        made |= {name: getattr(self.nodes, name) for name in made if name not in ("forms", "links")}
        if self.forms is not None:
            for name, column in self.forms.launch.items():
                launches[name] = column
            for name in ("nodes", "ranges"):
                made[name] = np.concatenate((made[name], getattr(self.forms, name)))
            for name in ("forms", "links"):
                made[name] = np.array(getattr(self.forms, name), made[name].dtype)
        return made | more
