"""``pysim kernels choose``: the kernel that a vendor's library launches for a problem, and why."""

from __future__ import annotations

import inspect

from pysim.errors import ConfigError, InputError, WorkloadError
from pysim.units import suggest

_KINDS = ("gemm",)


def show_choice(problem: str | None) -> None:
    """Print the kernel that a library launches for ``gemm:KEY=VALUE,...``.

    Raises ConfigError without a problem or for an unknown kind, InputError for keys and values.
    """
    from pysim.workloads.library.choices.chooser import HOPPER, MEASURED, choose_gemm
    from pysim.workloads.library.choices.explained import explained
    from pysim.workloads.registry import read_arguments

    kind, _, rest = (problem or "").partition(":")
    rows = inspect.signature(choose_gemm).parameters.values()
    known = {row.name: 0 if row.default is row.empty else row.default for row in rows}
    keys = ", ".join(known)
    if not problem:
        raise ConfigError(f"choose needs a problem, gemm:KEY=VALUE,... with the keys {keys}")
    if kind not in _KINDS:
        there = suggest(kind, _KINDS) or ": there is " + ", ".join(_KINDS)
        raise ConfigError(f"choose: no problem {kind}{there}")
    try:
        given = read_arguments("choose", kind, rest, known)
        if missing := [name for name, default in known.items() if default == 0 and name not in given]:
            raise WorkloadError(f"choose {kind}: {', '.join(missing)} must be given; keys: {keys}")
        print(explained(choose_gemm(**given)))  # type: ignore[arg-type]
    except WorkloadError as error:
        raise InputError(str(error)) from error
    if given.get("device", MEASURED) in HOPPER:
        print("learned from choices measured on an H200: python -m pysim.workloads.library.choices.accuracy")
