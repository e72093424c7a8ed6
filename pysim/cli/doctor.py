"""``pysim doctor``: says whether all is there that a run needs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from .exit_codes import EXIT_ERROR
from .health import Finding, examine


def _lines(findings: Sequence[Finding]) -> list[str]:
    """Return a line a finding, and one that sums up."""
    width = max(len(each.name) for each in findings)
    lines = []
    for each in findings:
        advice = f": {each.advice}" if each.advice else ""
        lines.append(f"{each.state:<7}  {each.name:<{width}}  {each.text}{advice}")
    bad = [each.name for each in findings if each.bad]
    return [*lines, "", f"not ready: {', '.join(bad)}" if bad else "ready"]


def doctor(args: argparse.Namespace) -> int:
    """Print what is there and what is not; the exit code is 1 if something needed does not work."""
    findings = examine()
    ready = not any(each.bad for each in findings)
    if args.json:
        print(json.dumps({"ready": ready, "checks": [asdict(each) for each in findings]}))
    else:
        print("\n".join(_lines(findings)))
    return 0 if ready else EXIT_ERROR
