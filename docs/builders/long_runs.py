"""Writes the table of docs/long_runs.md: what replay adds to the time of some networks."""

from __future__ import annotations

from pysim import simulate
from pysim.workloads import make

from .writing import DOCS, replace


def replayed() -> str:
    """Simulate networks as a whole and with replay; return what that adds to the time, and what it says."""
    lines = [
        "| workload | scheme | whole us | replay us | off by | said | kernels left out | DRAM bytes off by |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for text in ("gru", "gru:hidden=512,batch=16", "transformer", "transformer:layers=12,hidden=256,heads=4"):
        for scheme in ("stream", "graph", "tb_static", "tb_ideal"):
            whole, part, forced = (
                simulate(
                    "titan_v", make(text, "titan_v"), scheme, tables="none", baseline=False, overrides=over
                ).frame("runs")
                for over in (
                    {},
                    {"sim.replay": "period"},
                    {"sim.replay": "period", "sim.replay_error": 1},
                )
            )
            was, now, said = whole.iloc[0], part.iloc[0], float(forced["replay_error"][0])
            cells = [f"`{text}`", f"`{scheme}`", f"{was.time_us:,.1f}"]
            if now.replayed:
                apart = (now.time_us / was.time_us - 1, now.dram_bytes / was.dram_bytes - 1)
                share = now.replayed / len(make(text, "titan_v").kernels)
                cells += [
                    f"{now.time_us:,.1f}",
                    f"{apart[0]:.2%}",
                    f"{said:.2%}",
                    f"{share:.0%}",
                    f"{apart[1]:.1%}",
                ]
            else:
                cells += ["simulated as a whole", "0", f"{said:.2%}", "0", "0"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write() -> None:
    """Write the table."""
    replace(DOCS / "long_runs.md", {"replay": replayed()})
