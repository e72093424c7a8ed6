"""A profile as users meet it: read it, and ask what other schemes would make of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pysim.errors import ConfigError, InputError, brief

from .events import KERNEL, Ran, Recording
from .losses import Losses
from .model.breakdown import breakdown
from .model.card import Card, known_device
from .model.dependence import Dependences, dependences
from .model.schemes import Run, outcomes
from .reading.kineto import read_kineto
from .reading.launches import join_launches, mark_programmatic
from .reading.table import read_table
from .reading.text import pieces
from .reading.times import settle_times
from .report import WhatIf

UNITS = ("us", "ns")


@dataclass(slots=True)
class Profile:
    """A recorded run. ``card``: the GPU whose gaps count; ``notes``: what its tables do not say."""

    source: str
    card: Card
    edges: Dependences
    losses: Losses
    notes: tuple[str, ...]

    @property
    def kernels(self) -> list[Ran]:
        """What ran on the GPU, in the order of launches: kernels, copies and memsets."""
        return self.edges.order

    def what_if(self) -> WhatIf:
        """Return what each scheme would make of this run."""
        run = Run.of(self.card, self.edges)
        where = breakdown(self.card, self.kernels, run.waves)
        made, refused = outcomes(run)
        recorded = {
            "span_us": where.span,
            "busy_us": where.busy,
            "kernels": sum(ran.kind == KERNEL for ran in self.kernels),
            "copies": sum(ran.kind != KERNEL for ran in self.kernels),
            "streams": self.edges.streams,
        }
        kinds = dict(self.edges.kinds)
        return WhatIf(
            self.source, self.card.name, recorded, tuple(made), refused, where, kinds,
            (*self.notes, *_shared(run)), tuple(self.losses.rows()),
        )  # fmt: skip


def _is_json(path: Path) -> bool:
    """Return whether a file begins like JSON; it may be packed with gzip."""
    for piece in pieces(path, Losses()):
        begin = piece[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
        if begin:
            return begin[:1] in (b"{", b"[")
    raise InputError(f"{path}: an empty file")


def _waits(made: Recording) -> int:
    """Return how often the host waits for the GPU after the first launch and before the last one."""
    launched = [ran.launched for ran in made.ran if ran.launched is not None]
    if not launched:
        return 0
    first, last = min(launched), max(launched)
    return sum(call.kind == "sync" and first < call.start < last for call in made.calls)


def _noted(made: Recording, early: int) -> list[str]:
    """Return what a reader of the tables must know of the recording."""
    notes = []
    if early:
        notes.append(
            f"kernels that start before their predecessor in the stream ends: {early}, kept as"
            " programmatic launches"
        )
    kernels = [ran for ran in made.ran if ran.kind == KERNEL]
    if replays := {ran.replay for ran in made.ran if ran.replay}:
        count = sum(bool(ran.replay) for ran in kernels)
        notes.append(f"graph launches: {len(replays)}, of {count} of {len(kernels)} kernels")
    if not any(ran.launched is not None for ran in made.ran):
        several = len({ran.stream for ran in made.ran}) > 1
        notes.append(
            "no launches: order between streams is taken from times, so waits for the host look like"
            " dependences"
            if several
            else "no launches: gaps longer than two of the stream's count as waits for the host"
        )
    if unknown := sum(not ran.tbs for ran in kernels):
        notes.append(
            f"kernels of no known grid: {unknown} of {len(kernels)}, which have no waves and no tails, and"
            " slow down none beside them"
        )
    if waits := _waits(made):
        notes.append(
            f"waits of the host for the GPU between launches: {waits}; schemes keep the order, not the time"
            " that they take, and a graph holds none"
        )
    return notes


def _shared(run: Run) -> list[str]:
    """Return how kernels that overlap are treated, where streams are several."""
    if run.edges.streams < 2:
        return []
    seen = sum(slower is not None for slower in run.rule.measured)
    return [
        "kernels that overlap slow each other down: a later one runs in the slots that earlier ones leave;"
        f" for {seen} of {len(run.work)}, which the profile has alone and beside others, as much as"
        " measured there"
    ]


def from_profile(
    path: str | os.PathLike[str],
    *,
    gpu: str | None = None,
    where: Mapping[str, str] | None = None,
    device: int | None = None,
    unit: str | None = None,
    execution_trace: str | os.PathLike[str] | None = None,
) -> Profile:
    """Read a profile: a Kineto file of the PyTorch profiler (JSON, also .gz), or a table of kernels (CSV).

    ``gpu``: a device of pysim or a FILE.toml, where the profile does not name one of its devices; ``where``:
    rows of a table, by column; ``device``: of several GPUs in one file, default the one with most kernels;
    ``unit``: of times, ``us`` or ``ns``, default as the file shows; ``execution_trace``: PyTorch's execution
    trace of the same run, whose tensors give the dependences of pool and table schemes.

    Raises InputError for a file that cannot be read, ConfigError for a GPU that is not known.
    """
    if unit is not None and unit not in UNITS:
        raise ConfigError(f"unit = {brief(unit, 20)}: must be one of {', '.join(UNITS)}")
    source, losses = Path(path), Losses()
    if _is_json(source):
        if where:
            raise InputError(f"{source}: --where chooses rows of a table: this is a Kineto file")
        made = read_kineto(source, losses, operators=execution_trace is not None, device=device)
    else:
        if device is not None:
            raise InputError(f"{source}: --device chooses a GPU of a Kineto file: this is a table of kernels")
        made = read_table(source, losses, where)
    name, remark = known_device(made.card, gpu, str(source))
    card = Card.of(name, made.card)
    settle_times(made, losses, unit)
    join_launches(made, losses)
    notes = [remark] if remark else []
    notes += _noted(made, mark_programmatic(made))
    edges = dependences(made)
    if execution_trace is not None:
        from .reading.execution import tensor_edges

        edges.data = tensor_edges(Path(execution_trace), edges.order, made.operators, losses)
        edges.kinds["tensors"] = sum(map(len, edges.data))
    return Profile(str(source), card, edges, losses, tuple(notes))
