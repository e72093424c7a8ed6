"""The only importer of the compiled core: errors, numpy dtypes and parameters across cffi."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from . import counters, isa, opcodes, params
from ._tables import tables_hash
from .errors import (
    ConfigError,
    CoreVersionError,
    DeadlockError,
    DependenceError,
    InternalError,
    SimError,
    TimeLimitError,
    WorkloadError,
)

STALE = "the compiled core is stale: run python build.py"

try:
    from . import _core
    from ._core import ffi, lib
except ModuleNotFoundError as error:
    if error.name != "pysim._core":
        raise
    raise CoreVersionError("the compiled core is missing: run python build.py") from None

__all__ = ["check", "core_digest", "dtype_of", "error_of", "ffi", "lib", "params_struct"]


def _errors_of(core: Any) -> dict[int, type[SimError]]:
    """Return the exception of each error code of the core; CoreVersionError if it is of other tables.

    An older core may also lack names, whatever its tables.
    """
    expected = tables_hash(params.PARAMS, params.PIPES, counters.GROUPS, vars(isa), vars(opcodes))
    try:
        if core.gs_tables_hash() != expected:
            raise CoreVersionError(STALE)
        return {
            core.GS_ERR_ARG: ConfigError,
            core.GS_ERR_FIT: WorkloadError,
            core.GS_ERR_MEM: WorkloadError,
            core.GS_ERR_DEADLOCK: DeadlockError,
            core.GS_ERR_ORACLE: DependenceError,
            core.GS_ERR_LIMIT: WorkloadError,
            core.GS_ERR_TIME: TimeLimitError,
        }
    except AttributeError:
        raise CoreVersionError(STALE) from None


_ERRORS = _errors_of(lib)


def error_of(code: int, message: Any) -> SimError:
    """Return the exception for an error code and the message (``char *``) that came with it."""
    text = ffi.string(message).decode("utf-8", "replace") if message else ""
    return _ERRORS.get(code, InternalError)(text or f"the core failed with code {code}")


def check(rc: int, sim: Any) -> int:
    """Return ``rc`` of a call on ``sim``, or raise the exception that it stands for."""
    if rc < 0:
        raise error_of(rc, lib.gs_error(sim))
    return rc


@cache
def dtype_of(ctype: str | Any) -> np.dtype[Any]:
    """Return the numpy dtype of a C type, from the compiler's layout.

    The underscore that keeps a field such as ``int_`` from being a C keyword is dropped again.
    """
    kind = ffi.typeof(ctype) if isinstance(ctype, str) else ctype
    if kind.kind == "array":
        return np.dtype((dtype_of(kind.item), (kind.length,)))
    if kind.kind == "struct":
        fields = kind.fields
        return np.dtype(
            {
                "names": [name.removesuffix("_") for name, _ in fields],
                "formats": [dtype_of(field.type) for _, field in fields],
                "offsets": [field.offset for _, field in fields],
                "itemsize": ffi.sizeof(kind),
            }
        )
    if kind.kind == "primitive" and kind.cname.endswith("_t"):
        return np.dtype(str(kind.cname).removesuffix("_t"))
    if kind.kind in ("pointer", "function"):
        return np.dtype(np.uintp)
    raise InternalError(f"no numpy type for the C type {kind.cname}")


def params_struct(values: Mapping[str, int]) -> Any:
    """Return a ``gs_params *`` filled from encoded values by path (``{"gpu.l2.size": 4718592, ...}``)."""
    struct = ffi.new("gs_params *")
    paths = {f"{group}.{row.name}": group for group, rows in params.PARAMS.items() for row in rows}
    if values.keys() != paths.keys():
        wrong = sorted(values.keys() ^ paths.keys())
        raise InternalError(f"parameters missing or unknown: {', '.join(wrong)}")
    for path, group in paths.items():
        setattr(getattr(struct, group.replace(".", "_")), path.removeprefix(f"{group}."), values[path])
    return struct


@cache
def core_digest() -> str:
    """Return the SHA-256 of the compiled core: its state can be read by the same build alone."""
    return hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
