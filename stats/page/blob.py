"""Columns of numbers as text inside an HTML file, small enough for an attachment.

A blob is the columns one after another, deflated and in base64. Integers are stored as differences, and all
columns byte by byte (all lowest bytes, then all second ones), which deflate packs two to four times as well.
``script/blob.js`` reads them.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL = 6  # 9 takes three times as long for one per cent


@dataclass(frozen=True, slots=True)
class Blob:
    """``layout``: name, type (u1, u4, f4 or f8) and length of each column; ``text``: base64."""

    layout: tuple[tuple[str, str, int], ...]
    text: str


def blob(columns: Mapping[str, NDArray[Any]]) -> Blob:
    """Return one-dimensional columns as a blob; signed integers wrap, so -1 is 0xFFFFFFFF.

    Raises ValueError for integers that need more than 32 bits.
    """
    layout, parts = [], []
    for name, values in columns.items():
        kind = _kind(name, values)
        plain = values.astype(kind)
        if kind == "<u4":
            plain = np.diff(plain, prepend=plain.dtype.type(0))
        layout.append((name, kind.lstrip("<|"), len(plain)))
        parts.append(plain.view(np.uint8).reshape(len(plain), plain.itemsize).T.tobytes())
    packed = zlib.compress(b"".join(parts), LEVEL)
    return Blob(tuple(layout), base64.b64encode(packed).decode())


def _kind(name: str, values: NDArray[Any]) -> str:
    if values.dtype.kind == "f":
        return "<f4" if values.dtype.itemsize == 4 else "<f8"
    if values.dtype == np.uint8:
        return "|u1"
    if len(values) and (int(values.max()) > 0xFFFFFFFF or int(values.min()) < -1):
        raise ValueError(f"column {name} needs more than 32 bits")
    return "<u4"
