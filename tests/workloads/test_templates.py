"""The list of kernel templates has all of them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

from pysim.workloads import kernels, mirrored
from pysim.workloads.templates import KERNELS, arguments


def makers(package, kind):
    """Yield the public functions of a package's modules that return a ``kind``, as their annotations say."""
    for found in pkgutil.iter_modules(package.__path__):
        if found.name == "__main__":
            continue
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        for name, made in inspect.getmembers(module, inspect.isfunction):
            own = made.__module__ == module.__name__ and not name.startswith("_")
            if own and inspect.signature(made).return_annotation == kind:
                yield made


@pytest.mark.parametrize(
    ("package", "kind", "helpers"),
    [(kernels, "Kernel", set()), (mirrored, "Launch", {"launch", "launch_of", "resizable", "as_stage"})],
)
def test_every_template_is_listed(package, kind, helpers):
    found = {made for made in makers(package, kind) if made.__name__ not in helpers}
    assert len(found) > 15
    assert found == {made for made in KERNELS.values() if made.__module__.startswith(package.__name__)}


def test_arguments_are_those_of_a_call():
    assert arguments("fill") == "name, target, *, threads=256, unroll=1, stream=0"
    assert all(inspect.getdoc(made) for made in KERNELS.values())
