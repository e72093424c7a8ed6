"""Convolutions that cuDNN launched on an H200, in SM cycles, with kernels as the sweep names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from pysim import Config, Job, Memory
from pysim.errors import ConfigError, WorkloadError
from pysim.workloads.library.convolutions.convolution import convolution
from pysim.workloads.library.convolutions.shape import Convolution, Direction
from pysim.workloads.library.convolutions.told_gemm import told_convolution
from pysim.workloads.library.gemms.told import Told, told_of

from .baselines import roofline_by
from .cases import Baseline, Case, Outcome, Suite, outcome_of, tables_of, thinned, unique
from .library import CHOICES, PREDICT
from .table import Row

CALLS = 2  # one after another: the second finds warm caches
QUICK_US, QUICK_ONE_IN = 30.0, 16
_SIZES = ("N", "C", "H", "W", "K", "P", "Q", "taps", "stride")
_TOLD = (*_SIZES, "pass", "dtype", "layout", "kernel", "others", "clock_mhz")


def conv_of(told: Sequence[str]) -> Convolution:
    """Return the convolution of a row: its sizes, then pass, type and layout."""
    n, c, h, w, k, p, q, taps, stride = map(int, told[:9])
    direction, dtype, layout = told[9:12]
    if direction not in get_args(Direction):
        raise ConfigError(f"pass {direction[:40]!r}: must be one of {', '.join(get_args(Direction))}")
    return Convolution(n, c, (h, w), k, (p, q), taps, stride, direction, dtype, layout == "nhwc")  # type: ignore[arg-type]


def _parts(told: Sequence[str]) -> tuple[Told, tuple[Told, ...], Convolution]:
    """Return the main launch of a row, those beside it, and the convolution."""
    others = tuple(told_of(text) for text in told[13].split(";") if text)
    return told_of(told[12]), others, conv_of(told)


def _cases(rows: Sequence[Row]) -> list[Case]:
    """Return the rows whose kernels have templates."""
    made = []
    for row in rows:
        told = tuple(row.text(name) for name in _TOLD)
        try:
            told_convolution(*_parts(told))
        except WorkloadError:
            continue
        conv, time = conv_of(told), row.number("time_us")
        key = f"{'x'.join(row.text(name) for name in 'NCHW')} {row.text('K')} of {row.text('taps')}"
        group, benchmark = f"{conv.dtype} {row.text('layout')}", row.text("benchmark")
        made.append(
            Case(
                case=f"{row.text('id')}.{benchmark}:{group} {conv.direction} {key} / {row.text('stride')}",
                group=group,
                mode=conv.direction,
                key=key,
                kind=told[12].split("_tilesize")[0].split("|")[0][:40],
                scheme="graph",
                task=(*told, CHOICES[0]),
                part="call",
                measured_us=time,
                measured_cycles=time * row.number("clock_mhz"),
                flops=conv.flops,
                nbytes=conv.nbytes,
                quick=time < QUICK_US and thinned(key, QUICK_ONE_IN),
            )
        )
    return unique(made)


def _conv(config: Config, *values: str) -> Outcome:
    """Simulate two calls, one after another, at the SM clock that the row was measured at."""
    *told, choice = values
    share = float(told[-1]) / config.number("gpu.clock")
    config = config.replaced({"gpu.clock_tensor": 1.0, "sim.clock_share": min(1.0, share)})
    main, others, conv = _parts(told)
    predicts = choice == PREDICT
    kernels = convolution(None if predicts else main, () if predicts else others, conv, Memory())
    tables = tables_of(config, Job("convolution", kernels * CALLS), "graph")
    ends = tables["kernels"]["complete_us"]
    return outcome_of(tables, {"call": float(ends.max() - ends[: len(kernels)].max())})


def _baselines(cases: Sequence[Case]) -> list[Baseline]:
    if not cases:
        raise ConfigError("no case")
    return [roofline_by(cases, "roofline", lambda case: case.group)]


CONV = Suite(
    name="h200-library-conv",
    doc="convolutions of cuDNN on an H200, kernels as the sweep named them",
    gpu="h200",
    file="h200_library_conv.csv",
    columns=("id", "benchmark", *_TOLD, "time_us"),
    cases=_cases,
    run=_conv,
    baselines=_baselines,
    choices=CHOICES,
    note="calls one after another; rows of rare kernels are left out, and direct kernels of more than 8,192"
    " TBs; errors are of SM cycles at the row's own clock",
)
