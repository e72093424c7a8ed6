"""Checks group nodes from outside the package before tables are built of them."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pysim.errors import DependenceError
from pysim.program.regions import csr_offsets, empty_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    # the fields of Groups
    FlatGroups = tuple[Ints, Ints, Ints, NDArray[np.uint8], Ints, Ints]

KIND_BITS = 7  # RAW | WAR | WAW


def checked_groups(given: object, node_class: type, offsets: Ints) -> FlatGroups:
    """Return the flat arrays of ``Groups``, in its order of fields, of group nodes as a user gives them.

    ``given``: any iterable of objects of ``node_class`` (``Group``); ``offsets``: global number of each
    kernel's TB 0. Nodes are sorted by kernel, within a kernel in the order given. TBs are sorted and made
    unique; the kinds of a repeated producer are joined. A node without producers or without consumers is
    dropped: it is no edge. Raises DependenceError for all else that is no edge from an earlier kernel.
    """
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        raise DependenceError(f"groups: must be a list of Group, not {type(given).__name__}")
    rows = [_row(number, one, node_class, offsets) for number, one in enumerate(given)]
    rows = sorted((row for row in rows if len(row.producers) and len(row.consumers)), key=lambda r: r.kernel)
    numbers = np.array([row.number for row in rows], np.int64)
    kernel = np.array([row.kernel for row in rows], np.int64)
    producers = np.concatenate([empty_index(), *(row.producers for row in rows)])
    bits = np.concatenate([empty_index(), *(row.kinds for row in rows)])
    consumers = np.concatenate([empty_index(), *(row.consumers for row in rows)])
    made = np.array([len(row.producers) for row in rows], np.int64)
    used = np.array([len(row.consumers) for row in rows], np.int64)
    nodes, users = np.repeat(np.arange(len(rows)), made), np.repeat(np.arange(len(rows)), used)
    _check_producers(producers, kernel[nodes], numbers[nodes], offsets)
    _check_consumers(consumers, kernel[users], numbers[users], offsets)
    wrong = (bits < 0) | (bits > KIND_BITS)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DependenceError(
            f"group {numbers[nodes[at]]}: kinds: {bits[at]} is no sum of RAW = 1, WAR = 2, WAW = 4"
        )
    kinds = bits.astype(np.uint8)
    order, first = _sorted_unique(producers, nodes)
    if len(order):
        producers, nodes = producers[order][first], nodes[order][first]
        kinds = np.bitwise_or.reduceat(kinds[order], first)
    order, first = _sorted_unique(consumers, users)
    if len(order):
        consumers, users = consumers[order][first], users[order][first]
    made, used = (np.bincount(of, minlength=len(rows)) for of in (nodes, users))
    return kernel, csr_offsets(made), producers, kinds, csr_offsets(used), consumers


class _Row(NamedTuple):
    number: int  # of the group, as the user gave it
    kernel: int
    producers: Ints
    kinds: Ints
    consumers: Ints


def _row(number: int, group: Any, node_class: type, offsets: Ints) -> _Row:
    where = f"group {number}"
    given: object = group
    if not isinstance(given, node_class):
        raise DependenceError(f"{where}: {type(group).__name__} is no {node_class.__name__}")
    kernel = _kernel(where, group.kernel, len(offsets) - 1)
    producers, kinds, consumers = (
        _numbers(f"{where}: {name}", getattr(group, name)) for name in ("producers", "kinds", "consumers")
    )
    if len(kinds) != len(producers):
        raise DependenceError(f"{where}: {len(kinds)} kinds for {len(producers)} producers: one each")
    return _Row(number, kernel, producers, kinds, consumers)


def _kernel(where: str, given: Any, count: int) -> int:
    try:
        kernel = -1 if isinstance(given, bool) else index(given)
    except TypeError:
        kernel = -1
    if not 0 <= kernel < count:
        raise DependenceError(f"{where}: kernel = {given!r}: the job's kernels are 0 to {count - 1}")
    return kernel


def _numbers(where: str, given: object) -> Ints:
    """Return integers as an array; a mask, floats, a set or a matrix are refused."""
    made: NDArray[Any] | None = given if isinstance(given, np.ndarray) else None
    if isinstance(given, (list, tuple, range)):
        try:
            made = np.asarray(given) if len(given) else empty_index()
        except (ValueError, OverflowError):  # rows of different length
            made = None
    if made is None or made.ndim != 1 or made.dtype.kind not in "iu":
        shown = type(given).__name__ if made is None else f"{made.dtype} of shape {made.shape}"
        raise DependenceError(f"{where}: must be a one-dimensional array of integers, not {shown}")
    return made.astype(np.int64, copy=False)


def _check_producers(producers: Ints, kernel: Ints, number: Ints, offsets: Ints) -> None:
    wrong = (producers < 0) | (producers >= offsets[kernel])
    if wrong.any():
        at = int(np.argmax(wrong))
        before = int(offsets[kernel[at]])
        known = f"TBs of earlier kernels are 0 to {before - 1}" if before else "there is no earlier kernel"
        raise DependenceError(
            f"group {number[at]}: kernel {kernel[at]} cannot wait for TB {producers[at]} of the job: {known}"
        )


def _check_consumers(consumers: Ints, kernel: Ints, number: Ints, offsets: Ints) -> None:
    tbs = np.diff(offsets)[kernel]
    wrong = (consumers < 0) | (consumers >= tbs)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DependenceError(
            f"group {number[at]}: kernel {kernel[at]} has no TB {consumers[at]}: its TBs are 0 to"
            f" {tbs[at] - 1}"
        )


def _sorted_unique(values: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """Return the order that sorts each node's values, and where new values begin in it.

    Both are empty where the values rise within each node already. ``nodes`` rise.
    """
    if ((nodes[1:] != nodes[:-1]) | (values[1:] > values[:-1])).all():
        return empty_index(), empty_index()
    order = np.lexsort((values, nodes))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(nodes[order]) != 0) | (np.diff(values[order]) != 0)
    return order, np.flatnonzero(new)
