"""``pysim kernels choose``: the kernel that a vendor's library launches for a problem, and why."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from pysim.errors import ConfigError, InputError, WorkloadError
from pysim.units import suggest

_KINDS = ("gemm", "conv")


def show_choice(problem: str | None) -> None:
    """Print the kernel that a library launches for ``gemm:KEY=VALUE,...``, or those of ``conv:...``.

    Raises ConfigError without a problem or for an unknown kind, InputError for keys and values.
    """
    from pysim.workloads.library.choices.chooser import HOPPER, MEASURED, choose_gemm
    from pysim.workloads.library.choices.explained import explained
    from pysim.workloads.library.convolutions.chooser import named_choice
    from pysim.workloads.registry import read_arguments

    kind, _, rest = (problem or "").partition(":")
    choose: Callable[..., object] = named_choice if kind == "conv" else choose_gemm
    rows = inspect.signature(choose).parameters.values()
    known = {row.name: 0 if row.default is row.empty else row.default for row in rows}
    keys = ", ".join(known)
    if not problem:
        raise ConfigError(f"choose needs a problem, gemm:KEY=VALUE,... with the keys {keys}")
    if kind not in _KINDS:
        there = suggest(kind, _KINDS) or ": there is " + ", ".join(_KINDS)
        raise ConfigError(f"choose: no problem {kind}{there}")
    try:
        given = read_arguments("choose", kind, rest, known)
        if missing := [row.name for row in rows if row.default is row.empty and row.name not in given]:
            raise WorkloadError(f"choose {kind}: {', '.join(missing)} must be given; keys: {keys}")
        if kind == "conv":
            told, others = named_choice(**given)  # type: ignore[arg-type]
            for launch in (told, *others):
                grid = " x ".join(map(str, launch.grid))
                print(
                    f"{launch.name}: grid {grid}, {launch.registers} registers, {launch.smem} B shared memory"
                )
            print("learned from choices measured on an H200: tests/hw/library/fit_conv_trees.py")
            return
        print(explained(choose_gemm(**given)))  # type: ignore[arg-type]
    except WorkloadError as error:
        raise InputError(str(error)) from error
    if given.get("device", MEASURED) in HOPPER:
        print("learned from choices measured on an H200: python -m pysim.workloads.library.choices.accuracy")
