"""The options that scripts and commands share, one row each, and the types of all options."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pysim.errors import InternalError
from pysim.machine.mechanisms import without
from pysim.units import Value, suggest

from .checks import choice
from .option_types import (
    counts,
    duration,
    hdf5,
    mechanisms,
    name_list,
    names_of,
    natural_int,
    number_ranges,
    positive_int,
    replay,
    sample,
    seed,
    setting,
    size_option,
    table_list,
    thread_block,
    timer,
)
from .parser import Parser

if TYPE_CHECKING:
    from pysim.machine.config import Config

# the types that scripts and commands use are known by this module's name, too
__all__ = [
    "CHECKPOINTS",
    "OPTIONS",
    "SHARED",
    "SINGLE_RUN",
    "Option",
    "Options",
    "add_option",
    "add_shared",
    "counts",
    "duration",
    "machine_threads",
    "make_parser",
    "name_list",
    "names_of",
    "natural_int",
    "number_ranges",
    "positive_int",
    "setting",
    "size_option",
]


class Option(NamedTuple):
    """One option. ``kind`` None: a flag without a value.

    ``repeats``: it may be given again; ``words``: the values that it takes, or the name of the ``pysim``
    command that lists them, which shell completion offers; ``more``: further arguments of ``add_argument``.
    """

    name: str
    metavar: str
    kind: Callable[[str], object] | None
    default: object
    doc: str
    repeats: bool = False
    words: tuple[str, ...] | str = ()
    more: Mapping[str, Any] = {}

    @property
    def flags(self) -> tuple[str, ...]:
        """How it is written on a command line."""
        return ("-o", "--out") if self.name == "out" else (f"--{self.name}",)


_PICTURES = ("auto", "yes", "no")

OPTIONS: tuple[Option, ...] = (
    Option(
        "gpu",
        "NAME",
        str,
        "titan_v",
        "GPU to simulate: a name of `pysim devices` or a FILE.toml",
        words="devices",
    ),
    Option(
        "schemes",
        "LIST",
        name_list,
        ("stream",),
        "schemes of `pysim schemes` to compare: name:option+option,name,...",
        words="schemes",
    ),
    Option(
        "threads", "N", positive_int, None, "threads of the simulator (default: all cores of this process)"
    ),
    Option("out", "FILE.h5", hdf5, None, "result file (default: results/<script>-<key>.h5)"),
    Option(
        "set",
        "PATH=VALUE",
        setting,
        (),
        "set a parameter of `pysim parameters`, such as gpu.l2.size=3MiB; repeatable",
        True,
        "parameters",
    ),
    Option(
        "without",
        "LIST",
        mechanisms,
        (),
        "switch modelled mechanisms off: names of `pysim mechanisms`",
        words="mechanisms",
    ),
    Option(
        "tables",
        "LIST",
        table_list,
        None,
        "tables to write: all, none or names of `pysim tables`",
        words="tables",
    ),
    Option(
        "sample-us",
        "US",
        sample,
        None,
        "record time series of SMs, L2 slices, DRAM channels and banks, a sample every US us (sim.sample)",
    ),
    Option("seed", "N", seed, None, "seed of the random number generator (sim.seed)"),
    Option("rename", "", None, False, "give every value its own memory, so that no buffer is reused"),
    Option(
        "replay",
        "WORD",
        replay,
        "off",
        "off, or period: of equal periods of kernels simulate some, extrapolate the others (sim.replay)",
        words=("off", "period"),
    ),
    Option("hypothetical", "", None, False, "also run schemes that need hardware which this GPU lacks"),
    Option("force", "", None, False, "replace what is there already"),
    Option(
        "picture",
        "WORD",
        choice(*_PICTURES),
        "auto",
        "draw a picture beside the result file: yes, no, or auto: only if stdout is a terminal",
        words=_PICTURES,
    ),
    Option("quiet", "", None, False, "print no progress and no log"),
    Option("json", "", None, False, "print one JSON object on stdout; all else goes to stderr"),
    Option(
        "max-memory", "SIZE", size_option, None, "memory that it may take (default: 80 %% of what is free)"
    ),
    Option(
        "max-time",
        "TIME",
        duration,
        None,
        "after this wall time (90, 30m, 2h) write a checkpoint and exit with code 75",
    ),
    Option(
        "checkpoint-every",
        "TIME",
        timer,
        "5m",
        "time between checkpoints, and before the first; off: only at signals and --max-time",
    ),
    Option(
        "resume",
        "",
        None,
        False,
        "go on from the checkpoint of an earlier call, if there is one; done at once if the result is there",
    ),
    Option("explain", "KERNEL:TB", thread_block, None, "report what this TB waited for under each scheme"),
)
SHARED: Mapping[str, Option] = {row.name: row for row in OPTIONS}


# options that look into a single run: scripts that make many runs refuse them
SINGLE_RUN = ("tables", "sample-us", "rename", "explain")
# options of checkpoints: scripts that do not simulate through Script.simulate or Script.run refuse them
CHECKPOINTS = ("max-time", "checkpoint-every", "resume")


def make_parser(
    doc: str | None,
    defaults: Mapping[str, object] | None = None,
    left_out: Iterable[str] = (),
    why: str = "",
    no_checkpoints: str = "",
) -> Parser:
    """Return a parser with the shared options.

    Parameters
    ----------
    doc
        Docstring of the script: its first paragraph, the question, opens ``--help``; the examples end it.
    defaults
        Defaults of this script by option name, in place of the shared ones.
    left_out
        Shared options that this script refuses; they keep their defaults.
    why
        The reason, which the error of a refused option gives.
    no_checkpoints
        The reason why the script refuses the options of ``CHECKPOINTS``, if it does.

    Raises
    ------
    InternalError
        ``defaults`` or ``left_out`` names no shared option.
    """
    question, _, rest = (doc or "").partition("\n\n")
    parser = Parser(description=" ".join(question.split()), epilog=rest.rstrip() or None)
    add_shared(parser, defaults, left_out, why, no_checkpoints)
    return parser


def add_shared(
    parser: Parser,
    defaults: Mapping[str, object] | None = None,
    left_out: Iterable[str] = (),
    why: str = "",
    no_checkpoints: str = "",
) -> None:
    """Add the shared options to a parser; the arguments are those of :func:`make_parser`."""
    chosen, refused = dict(defaults or {}), tuple(left_out)
    for name in (*chosen, *refused):
        if name not in SHARED:
            raise InternalError(f"no shared option {name}{suggest(name, SHARED)}")
    reasons = dict.fromkeys(refused, why)
    if no_checkpoints:
        reasons |= dict.fromkeys(CHECKPOINTS, no_checkpoints)
    parser.leave_out(reasons)
    group = parser.add_argument_group("shared options")
    for row in OPTIONS:
        made = row._replace(default=chosen.get(row.name, row.default))
        if row.name in reasons:
            kept = None if row.repeats else made.default
            parser.set_defaults(**{row.name.replace("-", "_"): kept})
        else:
            add_option(group, made)


def add_option(where: argparse._ActionsContainer, row: Option) -> None:
    """Add an option to a parser, or to a group of its arguments; its help ends with its default."""
    if row.kind is None:
        where.add_argument(*row.flags, action="store_true", default=row.default, help=row.doc, **row.more)
        return
    text = row.doc
    if row.default and not row.repeats:
        text += f" (default: {','.join(row.default) if isinstance(row.default, tuple) else row.default})"
    # argparse appends to the default itself, so a repeated option starts at None.
    where.add_argument(
        *row.flags,
        metavar=row.metavar,
        type=row.kind,
        default=None if row.repeats else row.default,
        help=text,
        **{"action": "append" if row.repeats else "store", **row.more},
    )


def machine_threads() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Options:
    """The shared options of one call, typed; times in seconds. ``tables`` None: the default tables."""

    gpu: str
    schemes: tuple[str, ...]
    threads: int
    out: Path | None
    settings: Mapping[str, Value]
    without: tuple[str, ...]
    tables: tuple[str, ...] | None
    sample_us: float | None
    seed: int | None
    rename: bool
    replay: str
    hypothetical: bool
    force: bool
    quiet: bool
    json: bool
    explain: tuple[str, int] | None
    max_time: float | None = None
    checkpoint_every: float | None = None
    resume: bool = False
    max_memory: int | None = None
    picture: str = "auto"

    @property
    def draws(self) -> bool:
        """Whether to draw a picture: importing matplotlib and drawing take half a second."""
        if self.picture == "auto":
            return not self.json and sys.stdout is not None and sys.stdout.isatty()
        return self.picture == "yes"

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> Options:
        """Read the shared options from the result of ``make_parser(...).parse_args()``."""
        return cls(
            gpu=args.gpu,
            schemes=tuple(args.schemes),
            threads=args.threads or machine_threads(),
            out=args.out,
            settings=dict(args.set or ()),
            without=tuple(args.without),
            tables=args.tables,
            sample_us=args.sample_us,
            seed=args.seed,
            rename=args.rename,
            replay=args.replay,
            hypothetical=args.hypothetical,
            force=args.force,
            quiet=args.quiet,
            json=args.json,
            explain=args.explain,
            max_time=args.max_time,
            checkpoint_every=args.checkpoint_every,
            resume=args.resume,
            max_memory=args.max_memory,
            picture=args.picture,
        )

    def overrides(self, defaults: Mapping[str, Value] | None = None) -> dict[str, Value]:
        """Return parameter values by path.

        Later ones win: ``defaults``, ``--without``, ``--set``, then options such as ``--seed``.
        """
        merged = {**(defaults or {}), **without(self.without), **self.settings}
        if self.seed is not None:
            merged["sim.seed"] = self.seed
        if self.sample_us is not None:
            merged["sim.sample"] = self.sample_us
        if self.replay != "off":
            merged["sim.replay"] = self.replay
        if self.hypothetical:
            merged["scheme.hypothetical"] = 1
        return merged

    def config(self, defaults: Mapping[str, Value] | None = None) -> Config:
        """Resolve the configuration that the options describe; raises ConfigError where values conflict."""
        from pysim.machine.config import Config
        from pysim.machine.devices import device

        return Config.resolve(device(self.gpu), self.overrides(defaults))
