"""The commands that read result files: a module each.

They import ``stats``, as it reads result files, inside functions.
"""

from __future__ import annotations

from collections.abc import Mapping

from pysim.cli.subcommand import Subcommand

from .compare import COMPARE
from .export import EXPORT
from .report import REPORT
from .timeline import TIMELINE

_ALL: tuple[Subcommand, ...] = (REPORT, TIMELINE, COMPARE, EXPORT)
COMMANDS: Mapping[str, Subcommand] = {each.name: each for each in _ALL}
