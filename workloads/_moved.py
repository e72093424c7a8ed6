"""Names that modules of this package had before it was divided into rooms: importing one warns and works."""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_ROOMS = {
    "kernels": (
        "batched_gemm", "copy", "cutlass", "gemm", "implicit_gemm", "micro", "pointwise", "region",
        "row_reductions", "stream_k", "tiles", "tiling",
    ),
    "networks": ("mlp", "mlp_pair", "persistent_rnn", "rnn", "transformer"),
}  # fmt: skip
_HERE = "pysim.workloads"
_MOVED = {f"{_HERE}.{name}": f"{_HERE}.{room}.{name}" for room, names in _ROOMS.items() for name in names}


class _Old(Loader):
    """Fills a module of an old name with what the new one has."""

    def exec_module(self, module: ModuleType) -> None:
        """Warn and copy."""
        new = _MOVED[module.__name__]
        warnings.warn(f"{module.__name__} is {new}", DeprecationWarning, stacklevel=2)
        own = ("__name__", "__spec__", "__loader__", "__package__")
        names = vars(importlib.import_module(new))
        module.__dict__.update({key: value for key, value in names.items() if key not in own})


class _Finder(MetaPathFinder):
    """Finds old names, after everything else has been asked."""

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the specification of an old name."""
        return ModuleSpec(fullname, _Old()) if fullname in _MOVED else None


def install() -> None:
    """Make old names importable."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
