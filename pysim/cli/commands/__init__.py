"""The commands of ``pysim``, one row each: group, operands, options and examples."""

from __future__ import annotations

from collections.abc import Mapping

from pysim.cli.tree import Command

from .batches import BATCHES
from .jobs import JOBS
from .lookups import LOOKUPS
from .plans import PLANS
from .profiles import PROFILES
from .results import RESULTS

COMMANDS: Mapping[str, Command] = {
    row.name: row for row in (*BATCHES, *PLANS, *PROFILES, *RESULTS, *LOOKUPS, *JOBS)
}
