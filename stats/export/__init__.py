"""Results in the formats of other tools: Chrome traces, Parquet."""

from __future__ import annotations

from .chrome_trace import Trace, to_chrome_trace, write_chrome_trace
from .parquet import to_parquet
from .trace_runs import TraceRun, open_runs

__all__ = ["Trace", "TraceRun", "open_runs", "to_chrome_trace", "to_parquet", "write_chrome_trace"]
