"""Writes docs/performance.md: speed, a thing of the machine, and the stored instruction counts."""

from __future__ import annotations

from .writing import DOCS, code, replace, run


def write(yardstick: str = "") -> None:
    """Measure speed, then write the page and the stored counts; ``yardstick``: see tests/bench/bench.py."""
    bench = "tests/bench/bench.py"
    blocks = {
        "instructions": run("tests/bench/guard.py", "--update", "--profile"),
        "threads": run(bench, "--threads-ratio"),
        "scaling": run(bench, "--scaling"),
        "bench": code(run(bench, "--yardstick", yardstick)),
    }
    replace(DOCS / "performance.md", blocks)
