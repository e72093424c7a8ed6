"""All suites by name, and their cases."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from pysim.errors import ConfigError

from . import (
    attention,
    cusync,
    deepbench,
    h200,
    library,
    library_conv,
    library_linear,
    library_rnn,
    networks,
    pointwise,
    torch_sequences,
)
from .cases import Case, Suite
from .table import packaged, rows_of, text_of

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        h200.KERNELS,
        h200.DEPS,
        cusync.MLP,
        cusync.MLP_V100,
        cusync.CONV,
        deepbench.GEMM,
        deepbench.RNN,
        library.GEMM,
        library_linear.LINEAR,
        pointwise.POINTWISE,
        torch_sequences.SEQUENCES,
        networks.NETWORK,
        library_rnn.RNN,
        library_conv.CONV,
        attention.ATTENTION,
    )
}


def cases_of(suite: Suite, measured: Path | None = None) -> tuple[list[Case], int, str]:
    """Return the cases of a suite, how many rows of the table were left out, and a digest of the table.

    ``measured``: a user's table instead of the packaged one; its rows and no others.
    """
    name = str(measured) if measured is not None else suite.file
    text = text_of(measured) if measured is not None else packaged(suite.file)
    rows = rows_of(name, text, suite.columns)
    cases = suite.cases(rows)
    if not cases:
        raise ConfigError(f"{name}: none of its {len(rows)} rows belongs to suite {suite.name}: {suite.note}")
    parts = len({case.part for case in cases})
    left_out = len(rows) - len(cases) // parts
    return cases, left_out, hashlib.sha256(text.encode()).hexdigest()[:16]


def tasks_of(cases: Sequence[Case]) -> list[tuple[str, ...]]:
    """Return the tasks of the cases, each once, those that were measured longest first.

    Processes then end at about the same time, as a long measured time means a long simulation.
    """
    longest: dict[tuple[str, ...], float] = {}
    for case in cases:
        longest[case.task] = max(case.measured_us, longest.get(case.task, 0.0))
    return sorted(longest, key=lambda task: -longest[task])
