"""Renders docs/energy.md: the event table of a GPU, and its check against measured board power."""

from __future__ import annotations

from pysim import Config
from pysim.machine.devices import device
from pysim.results.energy import EVENTS

from . import power
from .writing import DOCS, replace, table

NEAR = 0.15


def events(name: str) -> str:
    """Return the event table of a device."""
    known = {event.name: event for event in EVENTS}
    rows = []
    for event, each, off, source in device(name).energies:
        unit = "W" if known[event].unit == "s" else "pJ"
        rows.append([f"`{event}`", known[event].doc, f"{each:g} {unit}", f"{off:.0%}", source])
    return table(
        ["event", "what is counted", "takes", "±", "source"], [False, False, True, True, False], rows
    )


def check(name: str) -> tuple[str, str]:
    """Simulate the steady kernels; return the table of the check and what it comes to."""
    found = list(power.rows(Config.resolve(device(name))))
    rows = []
    for row in found:
        rate = f"{row.simulated_rate / row.rate - 1:+.0%}" if row.rate else ""
        rows.append(
            [
                f"{row.name}{' (power limit)' if row.limited else ''}",
                "fit" if row.fit else "check",
                f"{row.watt:.0f}",
                f"{row.at_rate:.0f}",
                f"{row.at_rate / row.watt - 1:+.1%}",
                rate,
                f"{row.simulated:.0f}",
                f"{row.simulated / row.watt - 1:+.1%}",
            ]
        )
    heads = ["kernel", "used for", "measured W", "by table W", "error", "rate", "simulated W", "error"]
    shown = table(heads, [False, False, *(True,) * 6], rows)
    errors = [abs(row.at_rate / row.watt - 1) for row in found if not row.fit]
    near = sum(error <= NEAR for error in errors)
    text = (
        f"Of the {len(errors)} kernels that the table was not made of, {near} are within {NEAR:.0%} at the"
        f" measured rate; mean {sum(errors) / len(errors):.1%}, worst {max(errors):.1%}."
    )
    return shown, text


def write() -> None:
    """Write docs/energy.md."""
    checked, summary = check("h200")
    blocks = {"events": events("h200"), "check": checked, "summary": summary}
    replace(DOCS / "energy.md", blocks)
