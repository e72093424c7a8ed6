"""Kernel templates, layers and networks that the simulator runs."""

from __future__ import annotations

if __name__ == "workloads":  # the short name, in a checkout: the same module
    from pysim.checkout import become_long

    become_long(__name__)
else:
    from . import _moved
    from .registry import WORKLOADS, make

    _moved.install()

__all__ = ["WORKLOADS", "make"]
