"""The error of result files; ``stats`` never imports pysim, so ``pysim.errors`` has its own."""

from __future__ import annotations


class StoreError(Exception):
    """A result file cannot be written or read; the message is one clear line."""

    user_error = True  # scripts print the line and leave; no traceback
