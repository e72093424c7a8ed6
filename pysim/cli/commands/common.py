"""Operands and options that several commands take, under one name and with one meaning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pysim.cli.checks import choice
from pysim.cli.option_types import name_list
from pysim.cli.options import SHARED, Option
from pysim.cli.tree import Operand

SWEEP = Operand("folder", "FOLDER", "folder of a sweep")
WORKLOAD = Operand(
    "workload", "WORKLOAD", "name of `pysim workloads`, or name:key=value,...", words="workloads"
)
RECORDS = Operand("results", "FILE.h5|FOLDER", "result file, or folder of a sweep")
TABLES = Option("tables", "LIST", name_list, (), "tables (default: all but host)", words="tables")

FORCE, JSON, QUIET, MEMORY = (SHARED[name] for name in ("force", "json", "quiet", "max-memory"))
MACHINE = SHARED["gpu"]._replace(
    default=None, doc="GPU that the kernels are made for (default: as for a V100)"
)
PARTIAL = Option("partial", "", None, False, "take the points of a sweep that are done")


def out(metavar: str, doc: str, required: bool = True, kind: Callable[[str], object] = Path) -> Option:
    """Return the option ``--out``."""
    return SHARED["out"]._replace(metavar=metavar, doc=doc, kind=kind, more={"required": required})


def one_of(name: str, words: tuple[str, ...], default: str | None, doc: str) -> Option:
    """Return an option that takes one of some words."""
    return Option(name, "WORD", choice(*words), default, doc, words=words)
