"""``run``, ``sweep`` and what works on the folder of a sweep."""

from __future__ import annotations

import argparse

from pysim.cli.option_types import hdf5, positive_int, shard
from pysim.cli.options import SHARED, Option
from pysim.cli.tree import Command, Operand

from .common import FORCE, JSON, MEMORY, PARTIAL, QUIET, SWEEP, TABLES, WORKLOAD, out

_GROUP = "run and batches"

BATCHES = (
    Command(
        "run",
        _GROUP,
        "pysim.sweep.commands:run",
        "How long does a workload take under scheduling schemes?",
        (
            (
                "a GRU of 512 hidden units under two schemes, on a Titan V",
                "pysim run gru --hidden 512 --batch 16 --timesteps 10 --schemes stream,tb_static",
            ),
            (
                "all tables of one GEMM on an H200, for pysim report and timeline",
                "pysim run gemm:m=1024,n=1024,k=1024 --gpu h200 --tables all --out gemm.h5",
            ),
            (
                "the tables as JSON, with a larger L2 and without DRAM rows",
                "pysim run mlp --set gpu.l2.size=6MiB --without dram_rows --json",
            ),
        ),
        (WORKLOAD,),
        shared={},
        more=("pysim.sweep.commands:add_keys",),
    ),
    Command(
        "sweep",
        _GROUP,
        "pysim.sweep.commands:sweep",
        "Simulate the points of a grid that are missing in a folder. --gpu a,b is a key of the grid.",
        (
            (
                "four points, on all cores; again, with a larger grid: only what is missing",
                "pysim sweep gru --timesteps 4 --grid hidden=256,512 batch=8,16 --out runs/sizes",
            ),
            ("the sweep that a file describes, planned and counted", "pysim sweep gru.toml --dry-run"),
            (
                "the script of a Slurm array; without --dry-run it is submitted",
                "pysim sweep gru --grid hidden=512,1024 --out runs/large --engine slurm --time 2:00:00 "
                "--dry-run",
            ),
        ),
        (
            Operand(
                "workload",
                "WORKLOAD|FILE.toml",
                "name of `pysim workloads` (name:key=value,... too), or a file that describes the sweep",
                words="workloads",
            ),
        ),
        (
            Option(
                "grid",
                "KEY=VALUES",
                str,
                (),
                "values of keys of the workload, or of parameters by path; the last key varies fastest",
                True,
                "parameters",
                more={"nargs": "+", "action": "extend"},
            ),
            out("FOLDER", "folder of the sweep", False),
            Option("jobs", "N", positive_int, None, "processes (default: one a core)"),
            Option(
                "dry-run",
                "",
                None,
                False,
                "plan the points and say how many are missing; slurm: print the script; run none",
            ),
        ),
        {
            "defaults": {
                "schemes": ("stream", "graph", "tb_static"),
                "tables": ("runs", "kernels", "stalls", "energy"),
            },
            "left_out": ("explain", "out", "force", "picture"),
            "why": "a sweep writes a file a point to the folder of --out, and replaces none",
            "no_checkpoints": "a sweep goes on by itself from what is in its folder",
        },
        ("pysim.sweep.commands:add_keys", "pysim.sweep.engines.choice:add_options"),
    ),
    Command(
        "work",
        _GROUP,
        "pysim.sweep.commands:work_command",
        "Simulate missing points of a sweep: for batch systems.",
        (
            (
                "the first of four shares of the points, two threads a point",
                "pysim work runs/gru --shard 0/4 --threads 2",
            ),
            ("all that is missing, for two hours at most", "pysim work runs/gru --max-time 2h"),
        ),
        (SWEEP,),
        (
            Option("shard", "I/N", shard, None, "only the points whose number modulo N is I, from 0 on"),
            SHARED["threads"]._replace(default=1, doc="threads of the simulator"),
            MEMORY,
            SHARED["max-time"],
            QUIET,
            Option("child", "", None, False, argparse.SUPPRESS),
        ),
    ),
    Command(
        "status",
        _GROUP,
        "pysim.sweep.commands:status",
        "Say which points of a sweep are done, failed and missing.",
        (
            ("counts, and the reasons of points that failed", "pysim status runs/gru"),
            ("the same for scripts", "pysim status runs/gru --json"),
        ),
        (SWEEP,),
        (JSON,),
    ),
    Command(
        "collect",
        _GROUP,
        "pysim.sweep.commands:collect",
        "Write the results of a sweep to one file.",
        (
            ("all tables of all points", "pysim collect runs/gru -o all.h5"),
            ("the runs of what is done so far", "pysim collect runs/gru -o runs.h5 --tables runs --partial"),
        ),
        (SWEEP,),
        (out("FILE.h5", "file to write", kind=hdf5), TABLES, PARTIAL, FORCE, MEMORY),
    ),
)
