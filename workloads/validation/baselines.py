"""Baseline models: models with almost no knowledge, fitted to every row that they predict.

That flatters them; a simulator that does not beat them clearly has shown nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .cases import Baseline, Case, Errors

LAUNCH_US = (1, 1.5, 2, 3, 4, 6, 8, 12, 20, 40)
TFLOPS = (
    2,
    4,
    6,
    8,
    10,
    11,
    12,
    13,
    14,
    15,
    20,
    30,
    40,
    50,
    60,
    70,
    80,
    100,
    150,
    200,
    250,
    300,
    400,
    500,
    600,
    700,
    800,
)
TBS = (0.3, 0.5, 0.7, 0.9, 1.5, 2, 3, 4, 6, 8)  # TB/s


def roofline(flops: Errors, nbytes: Errors, times_us: Errors) -> tuple[tuple[float, float, float], Errors]:
    """Fit launch + max(flops / rate, bytes / bandwidth) by mean absolute error over a grid of constants.

    Returns the constants (us, TFLOP/s, TB/s) and the times (us) of the best model.
    """
    best, constants, found = np.inf, (0.0, 0.0, 0.0), np.zeros(len(times_us))
    for launch in LAUNCH_US:
        for rate in TFLOPS:
            for bandwidth in TBS:
                model = launch + np.maximum(flops / (rate * 1e6), nbytes / (bandwidth * 1e6))
                error = float(np.abs(model / times_us - 1).mean())
                if error < best:
                    best, found = error, model
                    constants = (float(launch), float(rate), float(bandwidth))
    return constants, found


def roofline_by(cases: Sequence[Case], name: str, group: Callable[[Case], str]) -> Baseline:
    """Return a roofline for each group of cases; of one step where a case has many."""
    times = np.zeros(len(cases))
    groups = [group(case) for case in cases]
    texts = []
    for each in dict.fromkeys(groups):
        mine = [i for i, other in enumerate(groups) if other == each]
        steps = np.array([cases[i].steps for i in mine], np.float64)
        constants, model = roofline(
            np.array([cases[i].flops for i in mine]),
            np.array([cases[i].nbytes for i in mine]),
            np.array([cases[i].measured_us for i in mine]) / steps,
        )
        times[mine] = model * steps
        texts.append(f"{each} {constants[0]:g} us, {constants[1]:g} TFLOP/s, {constants[2]:g} TB/s".strip())
    return Baseline(f"{name} ({'; '.join(texts)})" if len(texts) < 4 else name, times)


def measured_base(cases: Sequence[Case], base: str) -> Baseline:
    """Return the measured time of mode ``base`` for every mode of its group: a scheme changes nothing."""
    known = {case.group: case.measured_us for case in cases if case.mode == base}
    times = np.array([known.get(case.group, np.nan) for case in cases])
    return Baseline(f"every mode takes the measured time of {base}", times)


def eager_profile(cases: Sequence[Case]) -> list[Baseline]:
    """Return what a profile of the eager run says: the time in which kernels ran."""
    return [
        Baseline("a profile of the same network run eagerly", np.array([case.eager_us for case in cases]))
    ]
