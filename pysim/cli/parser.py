"""The parser of all command lines: errors are one line and name the nearest valid option."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
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

    def leave_out(self, reasons: Mapping[str, str]) -> None:
        """Refuse shared options that do not apply to this script; ``reasons``: of the errors, by option."""
        self._left_out = {f"--{name}": why for name, why in reasons.items()}

    def leaves_out(self, name: str) -> bool:
        """Return whether this script refuses a shared option."""
        return f"--{name}" in self._left_out

    def allow(self, name: str) -> None:
        """Take back that a shared option is refused: the script has one of its own of that name."""
        self._left_out.pop(f"--{name}")

    def parse_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        """Parse all arguments; an unknown option is an error that suggests the nearest known one."""
        parsed, rest = self.parse_known_args(None if args is None else list(args), namespace)
        for text in rest:
            if text.startswith("-") and text != "--":
                name = text.partition("=")[0]
                if name in self._left_out:
                    self.error(f"no {name} here: {self._left_out[name]}")
                self.error(f"unknown option {name}{suggest(name, _option_names(self))}")
        if rest:
            self.error(f"unexpected argument {rest[0]!r}")
        return parsed

    def error(self, message: str) -> NoReturn:
        """Print the message as one line on stderr and exit with status 2."""
        line = " ".join(message.split())
        self.exit(EXIT_USAGE, f"error: {line.removeprefix('argument ')}\n")


def _option_names(parser: argparse.ArgumentParser) -> list[str]:
    names: list[str] = []
    for action in parser._actions:
        names.extend(name for name in action.option_strings if name.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                names.extend(_option_names(child))
    return names
