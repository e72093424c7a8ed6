"""Renders the tables of docs/blockmaestro.md from a result of configs/blockmaestro_suite.py."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from pysim import stats
from pysim.stats.studies.suite import FLOOR, SAME, geometric, grid

from .writing import DOCS, replace, shown

APART = "wavefront"  # an example beside the applications
COLUMNS = {
    "graph": "graph",
    "pool": "pool",
    "tb_static": "tb_static",
    "tb_static:reduced": "reduced",
    "tb_static:fetch": "fetch",
    "tb_static, 16384 entries": "16,384 entries",
    "tb_static, free updates": "free updates",
    "tb_static, free lists": "free lists",
    "tb_static, no sharing": "no sharing",
    "blockmaestro": "bm",
    "blockmaestro:kernels3": "bm 3",
    "blockmaestro:kernels3+consumer": "bm 3 cons.",
    "blockmaestro:kernels4": "bm 4",
    "blockmaestro:kernels4+consumer": "bm 4 cons.",
    "blockmaestro:kernels4, narrow ids": "bm 4 narrow",
    "tb_ideal": "tb_ideal",
}
OURS, RIVAL = ("tb_static", "tb_static:reduced", "tb_static:fetch"), "blockmaestro"
MACHINES = {"titan": "titan_x_pascal", "h200": "h200"}


class Machine:
    """What the suite found on one GPU: speedups over stream and shares of the gap won."""

    def __init__(self, runs: Any, gpu: str) -> None:
        mine = runs[runs["gpu"] == gpu.encode()]
        self.names, self.schemes, self.speedup = grid(mine, "speedup")
        self.share = np.maximum(grid(mine, "gap_won")[2], FLOOR)
        self.bytes = grid(mine, "table_bytes")[2]
        self.shared = grid(mine, "table_shared")[2]
        self.meant = np.array([name != APART for name in self.names])

    def column(self, scheme: str) -> int:
        """Return the column of a scheme."""
        return self.schemes.index(scheme)

    def mean(self, scheme: str, values: Any, without: str = "") -> float:
        """Return the geometric mean over the applications."""
        kept = self.meant & np.array([name != without for name in self.names])
        return geometric(values[kept, self.column(scheme)])

    def rivals(self) -> list[str]:
        """Return the forms of the rival."""
        return [scheme for scheme in self.schemes if scheme.partition(":")[0] == RIVAL]

    def table(self) -> str:
        """Return speedups, means and shares of the gap as a table in Markdown."""
        columns = [self.column(scheme) for scheme in COLUMNS]
        lines = [f"| | {' | '.join(COLUMNS.values())} |", "|---|" + "--:|" * len(columns)]
        for i, name in enumerate(self.names):
            lines.append(f"| {name} | {' | '.join(f'{self.speedup[i, j]:.2f}' for j in columns)} |")
        means = [f"**{self.mean(scheme, self.speedup):.2f}**" for scheme in COLUMNS]
        won = [f"{self.mean(scheme, self.share):.0%}" for scheme in COLUMNS]
        lines.append(f"| **geometric mean of {self.meant.sum()}** | {' | '.join(means)} |")
        lines.append(f"| gap won, geometric mean | {' | '.join(won)} |")
        return "\n".join(lines)

    def goal(self, title: str, without: str = "") -> str:
        """Return a row: gap won and speedup of our forms, and of the rival's default and best form."""
        best = max(self.rivals(), key=lambda scheme: self.mean(scheme, self.share, without))
        cells = [
            f"{self.mean(scheme, self.share, without):.0%} ({self.mean(scheme, self.speedup, without):.2f})"
            for scheme in (*OURS, RIVAL, best)
        ]
        return f"| {title} | {' | '.join(cells)}, `{best}` |"

    def losses(self, title: str) -> list[str]:
        """Return a row for each workload where no form of ours beats the rival's best."""
        made = []
        rivals = [self.column(scheme) for scheme in self.rivals()]
        for i, name in enumerate(self.names):
            ours = [self.speedup[i, self.column(scheme)] for scheme in OURS]
            best = max(rivals, key=lambda j: float(self.speedup[i, j]))
            theirs = float(self.speedup[i, best])
            if min(ours) >= theirs * (1 + SAME):
                continue
            wins = [COLUMNS[s] for s, own in zip(OURS, ours, strict=True) if own >= theirs * (1 + SAME)]
            loses = [COLUMNS[s] for s, own in zip(OURS, ours, strict=True) if own <= theirs * (1 - SAME)]
            told = ((wins, "wins"), (loses, "loses"))
            equal = "; ".join(f"{what}: {', '.join(forms)}" for forms, what in told if forms) or "equal"
            relieved = ", ".join(
                f"{COLUMNS[scheme]} {self.speedup[i, j]:.2f}"
                for j, scheme in enumerate(self.schemes)
                if scheme.startswith("tb_static,") and abs(self.speedup[i, j] / ours[0] - 1) > SAME
            )
            numbers = " | ".join(f"{value:.2f}" for value in ours)
            what = self.schemes[best].partition(":")[2] or "default"
            shared = int(self.shared[i, self.column("tb_static")])
            best_form = f"{theirs:.2f} ({what})"
            made.append(
                f"| {name}, {title} | {numbers} | {best_form} | {equal} | {shared or ''} | {relieved} |"
            )
        return made


def blocks(runs: Any) -> dict[str, str]:
    """Return the page's blocks by name."""
    titan, h200 = (Machine(runs, gpu) for gpu in MACHINES.values())
    head = f"| | {' | '.join(OURS)} | blockmaestro | its best form |\n|---|{'--:|' * len(OURS)}--:|--:|"
    goal = [head]
    for machine, title in ((titan, "Titan X, 5 us launches"), (h200, "H200, measured launches")):
        goal += [machine.goal(title), machine.goal("the same without HotSpot", "hotspot")]
    ours = " | ".join(COLUMNS[scheme] for scheme in OURS)
    lost = [f"| | {ours} | best blockmaestro | | kernels that share | tb_static with |"]
    lost += [f"|---|{'--:|' * len(OURS)}--:|---|--:|---|", *titan.losses("Titan X"), *h200.losses("H200")]
    two, three, four = (
        titan.speedup[titan.meant, titan.column(f"{RIVAL}{form}")]
        for form in ("", ":kernels3+consumer", ":kernels4+consumer")
    )
    ahead = f"{geometric(three):.2f} three in all, {geometric(four):.2f} three behind the one that runs"
    forms = ("", ":kernels3", ":kernels4")
    largest = [titan.speedup[titan.meant, titan.column(f"{RIVAL}{form}")].max() for form in forms]
    alexnet = titan.speedup[titan.names.index("alexnet"), titan.column(RIVAL)]
    fronts = [
        titan.speedup[titan.names.index(APART), titan.column(f"{RIVAL}:kernels3{c}")]
        for c in ("", "+consumer")
    ]
    average = f"{two.mean():.2f} (mean), {geometric(two):.2f} (geometric), two kernels at once"
    most = f"{largest[0]:.2f} with two kernels, {largest[1]:.2f} with three, {largest[2]:.2f} with four"
    published = [
        "| | published | here |",
        "|---|--:|--:|",
        f"| average speedup | 1.52 | {average} |",
        f"| largest | 2.92 | {most} |",
        f"| three kernels ahead, consumer priority | 1.80 (geometric) | {ahead} |",
        f"| AlexNet | 1.07 | {alexnet:.2f} |",
        f"| wavefront, consumer over producer priority | 1.9 | {fronts[1] / fronts[0]:.2f} |",
    ]
    return {
        "titan": titan.table(),
        "h200": h200.table(),
        "goal": "\n".join(goal),
        "losses": "\n".join(lost),
        "published": "\n".join(published),
    }


def write(saved: str = "") -> None:
    """Run BlockMaestro's applications, or read what such a run has saved, and write the page's tables."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(saved) if saved else Path(name) / "suite.h5"
        if not saved:
            shown("blockmaestro_suite", path, "--picture", "yes")
        shutil.copyfile(path.with_suffix(".png"), DOCS / "blockmaestro.png")
        made = blocks(stats.load(path).array("runs"))
    replace(DOCS / "blockmaestro.md", made)
