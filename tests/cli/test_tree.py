"""The table of commands: groups, options of one name, and what a command does not take."""

from __future__ import annotations

import argparse

import pytest

from pysim.cli.commands import COMMANDS
from pysim.cli.options import SHARED
from pysim.cli.tree import Command, found, tree
from pysim.program.regions import GRANULES
from tests.support.calls import pysim, refused


def words_of(command: str, option: str) -> object:
    return next(row.words for row in COMMANDS[command].options if row.name == option)


def test_help_shows_each_command_once_in_its_group() -> None:
    lines = pysim().stdout.splitlines()
    at = {name: [i for i, line in enumerate(lines) if line.startswith(f"  {name} ")] for name in COMMANDS}
    assert {len(found) for found in at.values()} == {1}
    heads = {command.group: lines.index(f"{command.group}:") for command in COMMANDS.values()}
    assert list(heads) == ["run and batches", "results", "look things up", "check and write"]
    for name, command in COMMANDS.items():
        before = [group for group, line in heads.items() if line < at[name][0]]
        assert before[-1] == command.group
    assert max(len(lines[i]) for (i,) in at.values()) <= 80


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda command: command.name)
def test_every_function_is_there(command: Command) -> None:
    assert all(callable(found(target)) for target in (command.target, *command.more))


def test_an_option_of_one_name_is_one_option() -> None:
    for command in COMMANDS.values():
        for row in command.options:
            assert row.name != "output"
            if row.name in ("force", "json", "quiet", "max-memory"):
                assert row == SHARED[row.name]
            if row.name == "out":
                assert row.flags == ("-o", "--out")


def test_choices_are_those_of_the_code() -> None:
    assert words_of("dependences", "granularity") == tuple(GRANULES)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("devices", "--markdown"), "no --markdown here: it goes with parameters, tables\n"),
        (("status", "x", "--schemes", "y"), "no --schemes here: it goes with run, sweep, plan, timeline\n"),
        (("compare", "a", "b", "--tables", "runs"), "unknown option --tables: did you mean --table?\n"),
        (("dependences", "a", "--output", "b.h5"), "unknown option --output: did you mean --out?\n"),
        (("--verison",), "unknown option --verison: did you mean --version?\n"),
        (("",), "no command : there are run, "),
    ],
)
def test_what_is_not_taken(words: tuple[str, ...], text: str) -> None:
    refused(pysim(*words), text)


def test_only_the_chosen_parser_is_filled() -> None:
    root, chosen = tree(COMMANDS, ["status", "x"])
    (parsers,) = [each for each in root._actions if isinstance(each, argparse._SubParsersAction)]
    assert set(parsers.choices) == set(COMMANDS)
    assert [name for name, parser in parsers.choices.items() if len(parser._actions) > 1] == ["status"]
    assert parsers.choices["status"] is chosen
