"""The parser of all command lines: errors are one line and name the nearest valid option."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pysim.units import suggest

from .exit_codes import EXIT_USAGE


class _HelpFormatter(argparse.HelpFormatter):
    """Wraps a text of one line, and keeps the lines of a text that has several: a command can be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return "\n".join(indent + line for line in text.splitlines())
        return super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and name the nearest valid option."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # An abbreviation that is unique today may be ambiguous once an option is added.
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", _HelpFormatter)
        super().__init__(*args, **kwargs)
        self._left_out: dict[str, str] = {}
        self.elsewhere: dict[str, str] = {}  # options that are not known here, and what takes them

    def leave_out(self, reasons: Mapping[str, str]) -> None:
        """Refuse options that do not apply here; ``reasons``: of the errors, by option."""
        self._left_out = {f"--{name}": why for name, why in reasons.items()}

    def leaves_out(self, name: str) -> bool:
        """Return whether an option is refused."""
        return f"--{name}" in self._left_out

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse all arguments; an unknown option is an error that suggests the nearest known one."""
        parsed, rest = super().parse_known_args(args, namespace)
        for text in rest:
            if text.startswith("-") and text != "--":
                name = text.partition("=")[0]
                if name in self._left_out:
                    self.error(f"no {name} here: {self._left_out[name]}")
                known = [
                    flag for action in self._actions for flag in action.option_strings if flag[:2] == "--"
                ]
                near = suggest(name, known)
                if name in self.elsewhere and not near:
                    self.error(f"no {name} here: it goes with {self.elsewhere[name]}")
                self.error(f"unknown option {name}{near}")
        if rest:
            self.error(f"unexpected argument {rest[0]!r}")
        return parsed, []

    def error(self, message: str) -> NoReturn:
        """Print the message as one line on stderr and exit with status 2."""
        line = " ".join(message.split())
        self.exit(EXIT_USAGE, f"error: {line.removeprefix('argument ')}\n")
