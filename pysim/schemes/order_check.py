"""Checks fields of ``gs_order`` (core_c/gs_api.h) that a scheme returns, before the core sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from operator import index
from typing import Any

import numpy as np

from pysim.errors import ConfigError
from pysim.params import PARAMS
from pysim.units import suggest

_SHARE = 65536  # a share of 1
_TICKS = (1 << 40) - 1  # 1.07 s, where simulated time ends
_FLAGS = (
    "tb_edges", "infinite", "prologue", "bloom", "in_order", "strict", "each", "computed", "rotate",
    "aware", "fetch",
)  # fmt: skip
_TIMES = (
    "launch", "gap", "admit", "early", "prepare", "beside", "prelaunch", "packet", "quantum", "update",
    "latency", "check", "end", "seen", "submit",
)  # fmt: skip
_PLACEMENTS = next(p for p in PARAMS["scheme"] if p.name == "placement").choices


@cache
def order_limits() -> dict[str, tuple[int, int]]:
    """Return the least and the largest value of each field of ``gs_order`` that is one integer."""
    from pysim._ffi import dtype_of

    kind = dtype_of("gs_order")
    assert kind.names is not None
    limits = {name: (0, int(np.iinfo(kind[name]).max)) for name in kind.names if not kind[name].shape}
    narrow = dict.fromkeys(_FLAGS, (0, 1)) | dict.fromkeys(_TIMES, (0, _TICKS))
    narrow |= dict.fromkeys(("share", "reserve"), (0, _SHARE))
    narrow |= {
        "window": (1, limits["window"][1]),  # a window of 0 admits nothing
        "invalidate": (0, 3),
        "placement": (0, len(_PLACEMENTS) - 1),
        "refetch": (0, (1 << 31) - 1),
        "queues": (0, 65536),
        "slots": (0, 65536),
        "footprints": (0, (1 << 38) - 1),
    }
    return limits | narrow


def _integer(given: object) -> int | None:
    try:
        return index(given)  # type: ignore[arg-type]
    except TypeError:
        return None


def checked_fields(where: str, given: object) -> dict[str, Any]:
    """Return fields of ``gs_order`` with integers as ``int``; ``where`` begins the message of an error.

    Raises ConfigError for a field that does not exist or a value out of its range.
    """
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where}: must return a dict of fields of gs_order, not {type(given).__name__}")
    limits, made = order_limits(), dict[str, Any]()
    for name, value in given.items():
        if name == "gpcs":
            made[name] = value
            continue
        if name not in limits:
            raise ConfigError(f"{where}: gs_order has no field {name!r}{suggest(str(name), limits)}")
        least, most = limits[name]
        number = _integer(value)
        if number is None or not least <= number <= most:
            raise ConfigError(f"{where}: {name} = {value!r}: must be an integer from {least} to {most}")
        made[name] = number
    return made


def checked_order(where: str, given: object, windowed: bool, gpcs: int) -> dict[str, Any]:
    """Return all fields of ``gs_order`` that a scheme sets, as ``checked_fields`` does.

    ``windowed``: of the scheme; ``gpcs``: GPCs of the GPU.
    """
    made = checked_fields(where, given)
    if "window" not in made:
        raise ConfigError(f"{where}: window is missing: it must be at least 1")
    table = made.get("tb_edges", 0)
    if table != int(windowed):
        raise ConfigError(
            f"{where}: tb_edges = {table}: must be {int(windowed)}, as windowed = {windowed} of the scheme"
        )
    if table and not made.get("infinite") and not made.get("entries"):
        raise ConfigError(f"{where}: entries = 0: a table without entries admits no kernel")
    order = made.get("gpcs")
    numbers = [_integer(gpc) for gpc in order] if isinstance(order, (Sequence, np.ndarray)) else []
    if None in numbers or sorted(n for n in numbers if n is not None) != list(range(gpcs)):
        raise ConfigError(f"{where}: gpcs = {order!r}: must be the numbers 0 to {gpcs - 1}, each once")
    return made | {"gpcs": numbers}
