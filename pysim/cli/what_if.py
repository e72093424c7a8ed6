"""The command ``pysim what-if``: what other schemes would make of a run that was measured."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def conditions(text: str) -> dict[str, str]:
    """Option type: ``column=value,column=value``."""
    made = {}
    for part in text.split(","):
        column, equals, value = part.partition("=")
        if not equals or not column.strip():
            raise ArgumentTypeError(f"must be column=value,..., not {text!r}")
        made[column.strip()] = value.strip()
    return made


def what_if(args: argparse.Namespace) -> None:
    """Read a profile and print what each scheme would make of it."""
    from pysim.profile import from_profile

    found = from_profile(
        args.profile,
        gpu=args.gpu,
        where=args.where,
        device=args.device,
        unit=args.unit,
        execution_trace=args.execution_trace,
    ).what_if()
    print(json.dumps(found.as_dict(), allow_nan=False) if args.json else found)
