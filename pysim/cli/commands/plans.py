"""The command that searches plans."""

from __future__ import annotations

from pysim.cli.option_types import positive_int
from pysim.cli.options import SHARED, Option
from pysim.cli.tree import Command

from .common import JSON, QUIET, WORKLOAD

_TINY = "gru:hidden=64,batch=4,timesteps=1,layers=2"

PLANS = (
    Command(
        "plan",
        "run and batches",
        "pysim.planner.command:plan",
        "Search the fastest plan of a workload. It chooses scheme, options, granularity, prologue, priority,"
        " placement and caches. Sizes and times of hardware stay as the GPU and --set say; what --set sets is"
        " not searched. Prints what was tried, with estimate and bound, the command line of the best plan,"
        " and how far tb_auto, graph, pool and tb_static are from it.",
        (
            ("a GRU on an H200, 40 plans at most", f"pysim plan {_TINY} --budget 40 --jobs 1"),
            (
                "what today's GPUs can do, without a scheduler of TBs",
                f"pysim plan {_TINY} --schemes graph,pdl,cusync,fused --budget 20 --jobs 1 --json",
            ),
        ),
        (WORKLOAD,),
        (
            SHARED["gpu"]._replace(default="h200"),
            SHARED["schemes"]._replace(
                default=(), doc="schemes to search, without options (default: all but tb_ideal)"
            ),
            SHARED["set"],
            SHARED["without"],
            Option("budget", "N", positive_int, 150, "plans to try, at most, stream order among them"),
            Option(
                "seed", "N", SHARED["seed"].kind, 0, "seed of the search: the same one tries the same plans"
            ),
            Option(
                "jobs",
                "N",
                positive_int,
                None,
                "plans at a time, each in a process that makes the job (default: one a core)",
            ),
            Option(
                "rows", "N", positive_int, 10, "fastest plans in the table, beside plain schemes; --json: all"
            ),
            QUIET,
            JSON,
        ),
    ),
)
