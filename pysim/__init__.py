"""A GPU simulator for dependent kernels: what barriers between them cost, and what wins it back.

>>> import pysim
>>> "stream" in pysim.SCHEMES
True

``simulate`` runs a job under scheduling schemes on a machine; ``Simulation`` is one run, to a moment and on
from it; ``device`` and ``System`` compose the machine; ``Job``, ``Kernel``, ``Program``, ``Code``,
``Pattern``, ``Access``, ``Memory`` and ``Tensor`` make a job by hand (``pysim.workloads.make`` has ready
ones); ``from_torch`` takes a PyTorch model, ``from_profile`` a measured run; ``register_scheme`` adds a
scheme (``Scheme``, ``TableScheme``, ``SchemeOption``); ``bound`` says what no scheme beats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import checkout
from .errors import ConfigError, DeadlockError, DependenceError, InternalError, SimError, WorkloadError

if TYPE_CHECKING:
    from .engine.limits import bound
    from .engine.run import simulate
    from .engine.stepped import Simulation
    from .machine.config import Config
    from .machine.system import Gpu, System, device
    from .profile.profile import from_profile
    from .program.job import Access, Job, Kernel, Memory, Tensor
    from .program.warp_program import Code, Op, Pattern, Program
    from .results.result import Result
    from .schemes.dependence_table import TableScheme
    from .schemes.options import SchemeOption
    from .schemes.registry import SCHEMES, register_scheme
    from .schemes.scheme import Scheme
    from .workloads.imported.from_torch import from_torch

__version__ = "0.1.0"
checkout.install()

# found at first use, so that importing the package needs neither numpy nor the compiled core
_LAZY = {
    "Access": "program.job",
    "Code": "program.warp_program",
    "Config": "machine.config",
    "Gpu": "machine.system",
    "Job": "program.job",
    "Kernel": "program.job",
    "Memory": "program.job",
    "Op": "program.warp_program",
    "Pattern": "program.warp_program",
    "Program": "program.warp_program",
    "Result": "results.result",
    "SCHEMES": "schemes.registry",
    "Scheme": "schemes.scheme",
    "SchemeOption": "schemes.options",
    "Simulation": "engine.stepped",
    "System": "machine.system",
    "TableScheme": "schemes.dependence_table",
    "Tensor": "program.job",
    "bound": "engine.limits",
    "device": "machine.system",
    "from_profile": "profile.profile",
    "from_torch": "workloads.imported.from_torch",
    "register_scheme": "schemes.registry",
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
    "Gpu",
    "InternalError",
    "Job",
    "Kernel",
    "Memory",
    "Op",
    "Pattern",
    "Program",
    "Result",
    "Scheme",
    "SchemeOption",
    "SimError",
    "Simulation",
    "System",
    "TableScheme",
    "Tensor",
    "WorkloadError",
    "__version__",
    "bound",
    "device",
    "from_profile",
    "from_torch",
    "register_scheme",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public API."""
    return sorted(__all__)
