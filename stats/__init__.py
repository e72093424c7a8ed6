"""Results of pysim, a GPU simulator: tables in HDF5 files, pictures and reports.

``stats.load(path)["runs"]`` is a pandas data frame; `stats.schema` says what its columns mean.
"""

from __future__ import annotations

from . import schema
from .report import format_runs
from .store import Results, StoreError, check_writable, hash_tables, load, write, write_bytes

__all__ = [
    "Results",
    "StoreError",
    "check_writable",
    "format_runs",
    "hash_tables",
    "load",
    "schema",
    "write",
    "write_bytes",
]
