"""The command that works on measured profiles."""

from __future__ import annotations

from pathlib import Path

from pysim.cli.option_types import natural_int
from pysim.cli.options import SHARED, Option
from pysim.cli.tree import Command, Operand
from pysim.cli.what_if import conditions

from .common import JSON, one_of

_KERNELS = "pysim what-if kernels.csv.gz --gpu h200 --where workload=gru,mode=eager --json"

PROFILES = (
    Command(
        "what-if",
        "run and batches",
        "pysim.cli.what_if:what_if",
        "Say what a measured run would take under other schemes. Reads a PyTorch profile or a table"
        " of kernels; prints a time and a range for each scheme, where the time goes, and what was left out.",
        (
            ("a file of the PyTorch profiler", "pysim what-if trace.json.gz"),
            ("with the gaps of an H200, whatever GPU it names", "pysim what-if trace.json --gpu h200"),
            ("one recording of a table of kernels, as JSON", _KERNELS),
        ),
        (Operand("profile", "TRACE.json|KERNELS.csv", "file of the profiler or table of kernels, also .gz"),),
        (
            SHARED["gpu"]._replace(default=None, doc="GPU whose gaps count (default: as the profile says)"),
            Option("where", "COLUMN=VALUE,...", conditions, None, "rows of the table that count"),
            Option("device", "N", natural_int, None, "of several GPUs in the profile (default: the busiest)"),
            one_of("unit", ("us", "ns"), None, "unit of the profile's times (default: as the file shows)"),
            Option(
                "execution-trace",
                "FILE",
                Path,
                None,
                "PyTorch's execution trace of the same run: its tensors tell which kernels depend on others",
            ),
            JSON,
        ),
    ),
)
