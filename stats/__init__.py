"""Results of pysim, a GPU simulator: tables in HDF5 files, pictures and reports.

``pysim.stats.load(path)["runs"]`` is a pandas data frame; ``pysim.stats.load(path).columns("runs")`` says
what its columns mean.
"""

from __future__ import annotations

if __name__ == "stats":  # the short name, in a checkout: the same module
    from pysim.checkout import become_long

    become_long(__name__)
else:
    from . import schema
    from .export import to_chrome_trace, to_parquet
    from .page import report
    from .pictures.inline import Picture, picture
    from .store import (
        INTERRUPTED,
        Results,
        StoreError,
        check_writable,
        hash_tables,
        sidecar,
        write,
    )
    from .studies import validation
    from .studies.comparison import Comparison, compare
    from .studies.scatter import draw_scatter
    from .sweep import SweepResults, collect, load
    from .text.console import Log, format_stalls, to_json
    from .text.runs import format_coherence, format_edge_discovery, format_limits, format_runs, format_time
    from .waits import KERNEL_LEVEL, orders_kernels
    from .whole_file import write_bytes

__all__ = [
    "INTERRUPTED",
    "KERNEL_LEVEL",
    "Comparison",
    "Log",
    "Picture",
    "Results",
    "StoreError",
    "SweepResults",
    "check_writable",
    "collect",
    "compare",
    "draw_scatter",
    "format_coherence",
    "format_edge_discovery",
    "format_limits",
    "format_runs",
    "format_stalls",
    "format_time",
    "hash_tables",
    "load",
    "orders_kernels",
    "picture",
    "report",
    "schema",
    "sidecar",
    "to_chrome_trace",
    "to_json",
    "to_parquet",
    "validation",
    "write",
    "write_bytes",
]
