"""Commands that check an installation or a job, and that write traces, devices and shell completion."""

from __future__ import annotations

from pathlib import Path

from pysim.cli.option_types import hdf5, index_range, natural_int, number_ranges, positive_int
from pysim.cli.options import SHARED, Option
from pysim.cli.tree import Command, Operand

from .common import FORCE, JSON, MACHINE, WORKLOAD, one_of, out

_GROUP = "check and write"

JOBS = (
    Command(
        "doctor",
        _GROUP,
        "pysim.cli.doctor:doctor",
        "Check that all is there that a run needs. Looks at Python, the compiled core, libraries, memory, "
        "disk and Slurm, and says what to do. Exit code 0: all that is needed works; what is marked optional "
        "may be missing.",
        (("a line a check", "pysim doctor"), ("the same for scripts", "pysim doctor --json")),
        options=(JSON,),
    ),
    Command(
        "check",
        _GROUP,
        "pysim.cli.job_check:check",
        "Check that a job touches only what it declares, and has no races. With --pdl: where kernels may "
        "wait and trigger under programmatic dependent launch, what is unsafe there, and what it gains. Exit "
        "code 1: a fault, or an unsafe placement.",
        (
            ("a workload", "pysim check gru:hidden=256,batch=8,timesteps=2"),
            ("the job of a file: its variable job, or what its make_job() returns", "pysim check job.py"),
            (
                "latest safe waits and gains of all pairs of kernels",
                "pysim check --pdl gru:hidden=256,batch=8,timesteps=2",
            ),
            (
                "a placement of your own: all kernels wait at their start",
                "pysim check --pdl gru:hidden=256,batch=8,timesteps=2 --at start --prove",
            ),
            (
                "lines KERNEL; WAIT; TRIGGER of a file, such as: layer*; start; start",
                "pysim check --pdl mlp --plan waits.txt --json",
            ),
            (
                "semaphores of rows of tiles: what they leave out, in simulation, too",
                "pysim check mlp --cusync row+pdl --prove",
            ),
        ),
        (
            WORKLOAD._replace(
                metavar="WORKLOAD|FILE.py",
                doc="name:key=value,... of a workload, or a Python file that defines job or make_job()",
            ),
        ),
        (
            MACHINE,
            Option("pdl", "", None, False, "check programmatic dependent launch (GPU: h200 by default)"),
            Option(
                "cusync",
                "OPTIONS",
                str,
                None,
                "check semaphores of tiles under cusync:OPTIONS, such as tile, row+pdl or default",
            ),
            Option(
                "at",
                "PLACE",
                str,
                None,
                "with --pdl: all kernels wait at start, latest, ahead (latest, with independent loads "
                "moved before it), end, none, or before|after load|store TENSOR",
            ),
            Option(
                "trigger",
                "PLACE",
                str,
                None,
                "with --pdl: all kernels trigger at start, wait (behind it), loop end, none, or "
                "before|after load|store TENSOR",
            ),
            Option(
                "plan",
                "FILE",
                Path,
                None,
                "with --pdl: where each kernel waits and triggers; lines KERNEL; WAIT; TRIGGER, or JSON rows",
            ),
            Option("prove", "", None, False, "run what is unsafe, and what is safe, under the oracle"),
            Option(
                "pairs", "N", natural_int, 8, "with --pdl: how many different pairs are timed; 0: no times"
            ),
            SHARED["threads"],
            SHARED["set"],
            JSON,
        ),
    ),
    Command(
        "dependences",
        _GROUP,
        "pysim.cli.dependence_graph:dependences",
        "Show which TBs of a workload, trace or result depend on which.",
        (
            ("edges by pair of kernels", "pysim dependences gru:hidden=256,batch=8,timesteps=2"),
            (
                "a picture of kernels 0 to 3, where no buffer is reused",
                "pysim dependences gru:hidden=64,batch=8,timesteps=2 --rename --window 0:3 --picture gru.svg",
            ),
            (
                "the graph of launches 1 to 3 of a trace as a file",
                "pysim dependences traces/gru --kernels 1-3 -o graph.h5",
            ),
        ),
        (
            WORKLOAD._replace(
                metavar="WORKLOAD|FOLDER|FILE.h5",
                doc="name:key=value,... of a workload, the folder of a trace, or a result file",
            ),
        ),
        (
            MACHINE,
            one_of("granularity", ("sector", "line", "page"), "sector", "conflicts by sector, line or page"),
            SHARED["rename"],
            Option(
                "window",
                "FIRST:LAST",
                index_range,
                None,
                "kernels of --picture and --json, from 0 on (default: 0:3)",
            ),
            Option(
                "picture", "FILE", Path, None, "draw the kernels of --window: .svg, .dot (Graphviz) or .png"
            ),
            out("FILE.h5", "write the TB graph to this file", False, hdf5),
            JSON,
            Option(
                "kernels", "LIST", number_ranges, None, "only these launches, counted from 1, such as 3-7,9"
            ),
            FORCE,
        ),
    ),
    Command(
        "write-trace",
        _GROUP,
        "pysim.cli.writing:write_trace",
        "Write a workload as a SASS trace to a folder.",
        (
            (
                "all kernels of a small GRU",
                "pysim write-trace gru:hidden=64,batch=4,timesteps=1 traces/small",
            ),
            (
                "the first launch alone, for an H200, compressed",
                "pysim write-trace gemm:m=256,n=256,k=64 traces/gemm --gpu h200 --kernels 1 --compress",
            ),
        ),
        (WORKLOAD, Operand("folder", "FOLDER", "folder to write to")),
        (
            MACHINE,
            Option("binary", "SM", positive_int, 70, "SM version of the instructions"),
            Option("compress", "", None, False, "compress the trace files with xz"),
            Option(
                "kernels", "LIST", number_ranges, None, "only these launches, counted from 1, such as 3-7,9"
            ),
            FORCE,
        ),
    ),
    Command(
        "calibrate",
        _GROUP,
        "pysim.cli.writing:calibrate",
        "Make a device file from measurements. tests/hw/suite/micro.cu writes them as micro.json.",
        (
            ("print the device file", "pysim calibrate measured"),
            (
                "a device for --gpu mine.toml; what was not measured is of an H100",
                "pysim calibrate measured --base h100 -o mine.toml",
            ),
        ),
        (Operand("folder", "FOLDER", "folder that holds micro.json"),),
        (
            SHARED["gpu"]._replace(name="base", default="h200", doc="GPU that gives what was not measured"),
            out("FILE.toml", "file to write (default: print it)", False),
            FORCE,
        ),
    ),
    Command(
        "completion",
        _GROUP,
        "pysim.cli.completion:completion",
        "Print a script for a shell that completes commands and options. It also completes names, such as "
        "those of GPUs, workloads and schemes.",
        (
            ("for this shell; in ~/.bashrc for all", "source <(pysim completion bash)"),
            ("for fish, in all its shells", "pysim completion fish > pysim.fish"),
        ),
        (Operand("shell", "bash|zsh|fish", "the shell", words=("bash", "zsh", "fish")),),
    ),
)
