"""A GPU simulator for dependent kernels: what barriers cost and what wins it back.

>>> import pysim
>>> "stream" in pysim.SCHEMES
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import ConfigError, DeadlockError, DependenceError, InternalError, SimError, WorkloadError

if TYPE_CHECKING:
    from .engine.limits import bound
    from .engine.run import simulate
    from .machine.config import Config
    from .machine.devices import device
    from .program.job import Access, Job, Kernel, Memory, Tensor
    from .program.warp_program import Code, Op, Pattern, Program
    from .results.result import Result
    from .schemes.registry import SCHEMES

# found at first use, so that importing the package needs neither numpy nor the compiled core
_LAZY = {
    "Access": "program.job",
    "Code": "program.warp_program",
    "Config": "machine.config",
    "Job": "program.job",
    "Kernel": "program.job",
    "Memory": "program.job",
    "Op": "program.warp_program",
    "Pattern": "program.warp_program",
    "Program": "program.warp_program",
    "Result": "results.result",
    "SCHEMES": "schemes.registry",
    "Tensor": "program.job",
    "bound": "engine.limits",
    "device": "machine.devices",
    "simulate": "engine.run",
}

__all__ = [
    "SCHEMES",
    "Access",
    "Code",
    "Config",
    "ConfigError",
    "DeadlockError",
    "DependenceError",
    "InternalError",
    "Job",
    "Kernel",
    "Memory",
    "Op",
    "Pattern",
    "Program",
    "Result",
    "SimError",
    "Tensor",
    "WorkloadError",
    "bound",
    "device",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
