"""What a call imports: help and option errors come at once, results without what they do not need."""

from __future__ import annotations

from pathlib import Path

import pytest

from pysim.cli.commands import COMMANDS
from tests.support.calls import CONFIGS, call

# libraries that take long to import, and what decides that the core is loaded
HEAVY = ("numpy", "h5py", "cffi", "matplotlib", "pandas", "pysim._core", "pysim.schemes.registry")
SCRIPT = """
import runpy, sys
sys.argv = sys.argv[1:]
try:
    if sys.argv[0] == "pysim":
        runpy.run_module("pysim", run_name="__main__", alter_sys=False)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print(*sorted(name for name in {heavy} if name in sys.modules), file=sys.stderr)
"""


def imported(folder: Path, *words: object, heavy: tuple[str, ...] = HEAVY) -> list[str]:
    """Return which of the heavy modules a call imports."""
    done = call(folder, "-c", SCRIPT.format(heavy=heavy), *words)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1].split()


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_imports_nothing_heavy(tmp_path: Path, name: str) -> None:
    assert imported(tmp_path, "pysim", "help", *([name] if name else [])) == []


# scripts whose help lists workloads, suites or schemes: these are defined beside what they make, with numpy
NAMING = (
    "accelsim_rows", "acs_suite", "blockmaestro_suite", "compare_schemes", "seqpoint", "study_dynamic",
    "study_networks", "table_size", "validate",
)  # fmt: skip


@pytest.mark.parametrize("script", sorted(CONFIGS.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_the_help_of_a_script_imports_nothing_heavy(tmp_path: Path, script: Path) -> None:
    assert bool(imported(tmp_path, script, "--help")) is (script.stem in NAMING)


def test_the_check_sees_what_is_imported(tmp_path: Path) -> None:
    assert "numpy" in imported(tmp_path, "pysim", "schemes")


SMALL = ("--hidden", "64", "--batch", "4", "--layers", "1", "--timesteps", "1", "--out", "a.h5")


def test_a_run_imports_neither_pandas_nor_what_draws(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    script, heavy = CONFIGS / "titanv_gru.py", ("matplotlib", "pandas", "tables")
    assert imported(tmp_path, script, *SMALL, heavy=heavy) == []
    assert not (tmp_path / "a.png").exists()
    assert imported(tmp_path, script, *SMALL, "--force", "--picture", "yes", heavy=heavy) == ["matplotlib"]
    assert (tmp_path / "a.png").exists()
