"""Commands that list what there is."""

from __future__ import annotations

from pysim.cli.options import Option
from pysim.cli.tree import Command, Operand

from .common import JSON, MACHINE

_GROUP = "look things up"
_MARKDOWN = Option("markdown", "", None, False, "print a Markdown table")


def _listing(
    name: str,
    doc: str,
    examples: tuple[tuple[str, str], ...],
    *options: Option,
    operand: tuple[str, str] = ("NAME", "show this one alone"),
    more: tuple[Operand, ...] = (),
) -> Command:
    """Return a command that lists what its name says, or one of it."""
    chosen = Operand("name", *operand, "?", words=name)
    return Command(name, _GROUP, f"pysim.cli.listings:{name}", doc, examples, (chosen, *more), options)


LOOKUPS = (
    _listing(
        "devices",
        "List the GPUs. With a name or FILE.toml: each parameter with its source.",
        (
            ("all GPUs", "pysim devices"),
            ("each number of an H200, and where it comes from", "pysim devices h200"),
        ),
        operand=("NAME|FILE.toml", "show the parameters of this one"),
    ),
    _listing(
        "kernels",
        "List the kernel templates with their arguments. With a name: its docstring. With choose: the kernel"
        " that a vendor's library launches for a problem, and why.",
        (
            ("all templates, and which GPUs take which GEMM tiles", "pysim kernels"),
            ("arguments and docstring of one", "pysim kernels gemm"),
            (
                "what cuBLAS launches on an H200 for a linear layer of PyTorch",
                "pysim kernels choose gemm:m=3072,n=4096,k=768,trans_a=T,dtype=bf16",
            ),
        ),
        operand=("NAME|choose", "show this one alone, or what a library chooses"),
        more=(Operand("problem", "PROBLEM", "for choose: gemm:KEY=VALUE,... in BLAS terms", "?"),),
    ),
    _listing(
        "workloads",
        "List the workloads. With a name: its keys, defaults and totals: kernels, TBs, floating-point"
        " operations, bytes, parameters. With keys: the totals.",
        (
            ("all workloads", "pysim workloads"),
            ("the keys of a GRU with their defaults, and its totals", "pysim workloads gru"),
            (
                "the totals of a training step on a V100",
                "pysim workloads gpt2:pass=training,batch=4 --gpu v100",
            ),
        ),
        MACHINE,
        JSON,
        operand=("NAME[:KEY=VALUE,...]", "show this one alone"),
    ),
    _listing(
        "schemes",
        "List the scheduling schemes and their options.",
        (
            ("all schemes", "pysim schemes"),
            ("the options of one, as in cusync:row+pdl", "pysim schemes cusync"),
        ),
    ),
    _listing(
        "parameters",
        "List the parameters of --set, or those of a group.",
        (
            ("all parameters with defaults and ranges", "pysim parameters"),
            ("those of the L2, with the values of an H200", "pysim parameters gpu.l2 --gpu h200"),
        ),
        MACHINE._replace(doc="show the values of this GPU"),
        _MARKDOWN,
        operand=("GROUP", "a path, or what paths begin with, such as gpu.l2"),
    ),
    _listing(
        "mechanisms",
        "List the mechanisms of --without and what switches them off.",
        (("all mechanisms", "pysim mechanisms"), ("what dram_rows sets", "pysim mechanisms dram_rows")),
    ),
    _listing(
        "tables",
        "List the tables of result files. With a name: its columns.",
        (
            ("all tables with their columns", "pysim tables"),
            ("unit and meaning of each column of stalls", "pysim tables stalls --markdown"),
        ),
        _MARKDOWN,
    ),
    Command(
        "help",
        _GROUP,
        "pysim.cli.command:show_help",
        "Explain a command, or the exit codes of scripts and commands.",
        (("one command", "pysim help sweep"), ("the exit codes", "pysim help exit-codes")),
        (Operand("topic", "COMMAND|exit-codes", "what to explain", "?", words="commands"),),
    ),
)
