"""``pysim doctor``: says whether all is there that a run needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from .exit_codes import EXIT_ERROR
from .health import Finding, examine
from .parser import Parser
from .subcommand import Subcommand

DOC = "Check Python, the compiled core, libraries, memory, disk and Slurm, and say what to do."


def _lines(findings: Sequence[Finding]) -> list[str]:
    """Return a line a finding, and one that sums up."""
    width = max(len(each.name) for each in findings)
    lines = []
    for each in findings:
        advice = f": {each.advice}" if each.advice else ""
        lines.append(f"{each.state:<7}  {each.name:<{width}}  {each.text}{advice}")
    bad = [each.name for each in findings if each.bad]
    return [*lines, "", f"not ready: {', '.join(bad)}" if bad else "ready"]


def doctor(words: list[str]) -> int:
    """Print what is there and what is not; the exit status is 1 if something needed does not work."""
    parser = Parser(
        prog="pysim doctor",
        description=f"{DOC} Exit status 0: all that is needed works; what is marked optional may be missing.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(words)
    findings = examine()
    ready = not any(each.bad for each in findings)
    if args.json:
        print(json.dumps({"ready": ready, "checks": [asdict(each) for each in findings]}))
    else:
        print("\n".join(_lines(findings)))
    return 0 if ready else EXIT_ERROR


DOCTOR = Subcommand("doctor", doctor, DOC, ())
