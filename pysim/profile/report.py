"""What schemes would make of a profile: for programs, as JSON, and as tables of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from pysim.errors import ConfigError, brief

from .losses import Loss
from .model.breakdown import Breakdown
from .model.schemes import Outcome


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What each scheme would make of a run. ``print`` it, or take :meth:`as_dict` for JSON."""

    source: str
    gpu: str
    recorded: Mapping[str, float]
    schemes: tuple[Outcome, ...]
    refused: Mapping[str, str]
    time: Breakdown
    edges: Mapping[str, int]
    notes: tuple[str, ...]
    losses: tuple[Loss, ...]

    def __getitem__(self, scheme: str) -> Outcome:
        """Return the outcome of a scheme; ConfigError for one that there is not."""
        for row in self.schemes:
            if row.scheme == scheme:
                return row
        names = ", ".join(row.scheme for row in self.schemes)
        raise ConfigError(f"{self.source}: no scheme {brief(scheme, 40)}: there are {names}")

    def as_dict(self) -> dict[str, object]:
        """Return all of it as plain numbers, texts, lists and dicts; times in us."""
        return {
            "profile": self.source,
            "gpu": self.gpu,
            "recorded": dict(self.recorded),
            "schemes": [asdict(row) for row in self.schemes],
            "refused": [{"scheme": name, "reason": why} for name, why in self.refused.items()],
            "time": {f"{name}_us" if name not in ("single", "several") else f"{name}_wave_kernels": value
                     for name, value in asdict(self.time).items()},
            "dependences": dict(self.edges),
            "notes": list(self.notes),
            "losses": [asdict(row) for row in self.losses],
        }  # fmt: skip

    def __str__(self) -> str:
        """Return the tables as text."""
        return report(self)


def _time(us: float) -> str:
    for limit, scale, unit in ((1e3, 1.0, "us"), (1e6, 1e3, "ms")):
        if us < limit:
            return f"{us / scale:.2f} {unit}"
    return f"{us / 1e6:.3f} s"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    """Return lines with aligned columns; those of ``left`` start at the left."""
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]


def report(found: WhatIf) -> str:
    """Return the tables: the run, the schemes, where the time goes, what was left out."""
    span = found.recorded["span_us"]
    where = found.time
    count = int(found.recorded["kernels"])
    more, streams = int(found.recorded["copies"]), int(found.recorded["streams"])
    lines = [
        f"profile   {found.source}: {count:,} kernels"
        + (f", {more:,} copies and memsets" if more else "")
        + f" in {streams} stream{'s' if streams > 1 else ''}, on {found.gpu}",
        "edges     " + (", ".join(f"{what} {number:,}" for what, number in found.edges.items()) or "none"),
        *(f"note      {note}" for note in found.notes),
        "",
    ]
    rows = [
        (row.scheme, _time(row.time_us), _time(row.low_us), _time(row.high_us),
         f"{span / row.time_us:.2f}x" if row.time_us else "-", row.decides)
        for row in found.schemes
    ]  # fmt: skip
    lines += _table(("scheme", "time", "low", "high", "speedup", "decided by"), rows, (0, 5))
    lines += [f"{name}: left out: {why}" for name, why in found.refused.items()]
    shares = (
        ("kernels run", where.busy, ""),
        ("  two or more", where.overlap, ""),
        ("wait for the host", where.host, "nothing runs, the next launch has not arrived"),
        ("other gaps", where.gaps, "nothing runs, the next launch has arrived"),
        ("empty slots, tails", where.tails, f"last waves of {where.several:,} kernels of more than a wave"),
        ("empty slots, small", where.part, f"{where.single:,} kernels of up to one wave"),
    )
    rows2 = [(what, _time(us), f"{us / span:.1%}" if span else "-", said) for what, us, said in shares]
    lines += ["", *_table(("where the time goes", "time", "of span", ""), rows2, (0, 3))]
    if found.losses:
        rows3 = [(row.what, f"{row.count:,}", row.detail) for row in found.losses]
        lines += ["", *_table(("left out or changed", "count", "first"), rows3, (0, 2))]
    return "\n".join(lines)
