"""The core's ordering tables, as a scheme fills them: what waits for what, and at what cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences

    from .coarsening import CoarseForms


def word_bytes(size: float) -> int:
    """Return ``size`` bytes rounded up to whole 4-byte words, as a table entry takes in memory."""
    return 4 * math.ceil(size / 4)


@dataclass(slots=True)
class CoreTables:
    """How a scheme orders a job.

    ``preds``: the kernels that each kernel waits for; ``order``: fields of ``gs_order``; ``nodes``: TB edges
    as group nodes, None: whole kernels wait; ``launches``: fields of ``gs_launch``, one element a kernel;
    ``entry_bytes``, ``list_bytes``: size of an entry of the dependence table and of its list buffer;
    ``priority``: overrides ``scheme.priority``; ``one_kernel``: all TBs get the resources of the largest, as
    in one kernel; ``sequence``: order in which all TBs enter the buffer, ``kernel << 32 | TB``; ``hints``:
    tables of address hints, by field of ``gs_job``; ``forms``: coarser forms of the nodes.
    """

    preds: Sequence[Sequence[int]]
    order: dict[str, int]
    nodes: Dependences | None = None
    launches: dict[str, Any] = field(default_factory=dict)
    entry_bytes: float = 0.0
    list_bytes: float = 0.0
    priority: str = ""
    one_kernel: bool = False
    sequence: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    hints: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    forms: CoarseForms | None = None

    def fill(self, launches: NDArray[np.void]) -> dict[str, NDArray[Any]]:
        """Fill fields of ``gs_launch`` and return the ordering tables, by field of ``gs_job``."""
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
