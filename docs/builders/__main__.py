"""Makes pages of README.md and docs/ anew: the usual ones (``make readme``), or those asked for.

The usual ones show the GRU, dependences, bank camping, long runs, parameters and tables (a few minutes). All
else takes longer, or is a thing of the machine (speed): an option each, and a make target of the same name.
Some options take saved output of their scripts instead.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pysim import stats

from . import (
    accuracy,
    blockmaestro,
    dynamic,
    energy,
    figures,
    hardware,
    library,
    long_runs,
    microbench,
    peer,
    performance,
    readme,
    results,
    suites,
    validation,
)

NOTHING = {"action": "store_const", "const": []}
FILES = {"nargs": "*", "metavar": "FILE"}
RESULT = {"nargs": "?", "const": "", "metavar": "RESULT.h5"}
YARDSTICK = {"nargs": "?", "const": "", "metavar": "PROGRAM"}


class Page(NamedTuple):
    """An option, what it makes anew, and who does; ``takes``: what may follow it, of one word or of many."""

    option: str
    doc: str
    write: Callable[..., None]
    takes: Mapping[str, Any] = NOTHING


PAGES = (
    Page(
        "accuracy",
        "docs/accuracy.md: DeepBench (ten minutes), or from validate.py's JSON",
        accuracy.write,
        FILES,
    ),
    Page(
        "blockmaestro",
        "docs/blockmaestro.md (minutes), or from a saved result",
        blockmaestro.write,
        RESULT,
    ),
    Page("budget", "the error budget of docs/accuracy.md", accuracy.budget),
    Page(
        "dynamic",
        "docs/dynamic.md: what tb_auto keeps, or its tables from a saved result",
        dynamic.write,
        RESULT,
    ),
    Page("energy", "docs/energy.md (a minute or two)", energy.write),
    Page("gaps", "docs/estimates.md (two minutes)", figures.gaps),
    Page("hardware", "docs/hardware-cost.md (five minutes)", hardware.write),
    Page("kernels", "tables of docs/schemes.md (minutes)", figures.kernels),
    Page("library", "docs/validation/library.md from result files of validate.py", library.write, FILES),
    Page("microbench", "docs/microbench.md (a minute)", microbench.write),
    Page("peer", "docs/peer.md: Accel-Sim (three minutes)", peer.write),
    Page("performance", "docs/performance.md and stored counts (ten minutes)", performance.write, YARDSTICK),
    Page(
        "results",
        "docs/results.md: networks with kernels of libraries (a minute), or its study from a saved result",
        results.write,
        RESULT,
    ),
    Page(
        "suites",
        "docs/acs.md, docs/cusync.md (ten minutes), or from saved acs.txt, cusync.txt",
        suites.write,
        FILES,
    ),
    Page("utilization", "docs/utilization.md (two minutes)", figures.utilization),
    Page(
        "validation",
        "docs/validation.md and its parts (hours), or from saved output of validate.py",
        validation.write,
        FILES,
    ),
)
# without an option
USUAL = (
    readme.write,
    figures.camping,
    long_runs.write,
    figures.dependences,
    figures.parameters,
    figures.tables,
)


def main() -> None:
    """Make the pages that are asked for, or the usual ones."""
    parser = argparse.ArgumentParser(
        prog="python -m docs.builders", description=(__doc__ or "").splitlines()[0]
    )
    for page in PAGES:
        parser.add_argument(f"--{page.option}", help=page.doc, **page.takes)
    asked = vars(parser.parse_args())
    chosen = [page for page in PAGES if asked[page.option] is not None]
    try:
        for page in chosen:
            words = asked[page.option]
            page.write(*([words] if isinstance(words, str) else words))
        for write in () if chosen else USUAL:
            write()
    except subprocess.CalledProcessError as error:  # the script has said why
        raise SystemExit(f"error: {' '.join(error.cmd[1:])} ended with {error.returncode}") from None
    except (OSError, stats.StoreError) as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
