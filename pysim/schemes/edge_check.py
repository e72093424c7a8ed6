"""Checks the edges that a scheme returns, before the core sees them: each comes from an earlier kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import DependenceError

if TYPE_CHECKING:
    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job

    from .core_tables import CoreTables

# what has no order of kernels, or is no list of numbers
_NO_LIST = (Mapping, str, bytes)


def checked_preds(given: object, kernels: int) -> list[tuple[int, ...]]:
    """Return the kernels that each kernel waits for, one tuple a kernel, without repeated numbers.

    ``given``: an iterable of iterables of numbers; ``kernels``: of the job. Raises DependenceError where it
    is something else, or where a number is not that of an earlier kernel.
    """
    if not isinstance(given, Iterable) or isinstance(given, (*_NO_LIST, set, frozenset)):
        raise DependenceError(f"must be a list of tuples, one a kernel, not {type(given).__name__}")
    made = [_checked_kernel(kernel, one) for kernel, one in enumerate(given)]
    if len(made) != kernels:
        raise DependenceError(f"entries for {len(made)} kernels, the job has {kernels}")
    return made


def _checked_kernel(kernel: int, given: object) -> tuple[int, ...]:
    # most of a million kernels wait for none or for one
    if type(given) is tuple and (
        not given or (len(given) == 1 and type(given[0]) is int and 0 <= given[0] < kernel)
    ):
        return given
    if not isinstance(given, Iterable) or isinstance(given, _NO_LIST):
        raise DependenceError(f"kernel {kernel}: {given!r} is no tuple of kernels")
    numbers = tuple(given)
    known = {*numbers} if all(type(before) is int for before in numbers) else set()
    # the usual case, checked fast: a job may have millions of edges between kernels
    if len(known) == len(numbers) and (not numbers or (min(numbers) >= 0 and max(numbers) < kernel)):
        return numbers
    for before in numbers:
        if not _is_earlier(before, kernel):
            raise DependenceError(
                f"kernel {kernel} cannot wait for kernel {before!r}: only for an earlier one"
            )
    return tuple(dict.fromkeys(map(index, numbers)))


def check_edges(scheme: str, tables: CoreTables, job: Job) -> None:
    """Raise DependenceError where an edge does not run from an earlier kernel of the job to a later one.

    ``scheme``: the scheme's name. Such an edge is a cycle, or names what the job has not.
    """
    try:
        tables.preds = checked_preds(tables.preds, len(job.kernels))
    except DependenceError as error:
        raise DependenceError(f"scheme {scheme}: preds: {error}") from None
    if tables.nodes is not None:
        _check_nodes(scheme, tables.nodes, job)


def _is_earlier(before: object, kernel: int) -> bool:
    if isinstance(before, bool):
        return False
    try:
        return 0 <= index(before) < kernel  # type: ignore[arg-type]
    except TypeError:
        return False


def _check_nodes(scheme: str, nodes: Dependences, job: Job) -> None:
    tbs = np.array([kernel.tbs for kernel in job.kernels], np.int64)
    if not np.array_equal(np.diff(nodes.offsets), tbs):
        raise DependenceError(f"scheme {scheme}: tb_edges are of another job: its kernels have other TBs")
    groups = nodes.groups
    waiting = np.repeat(groups.kernel, np.diff(groups.producer_ptr))
    wrong = (groups.producers < 0) | (groups.producers >= nodes.offsets[waiting])
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DependenceError(
            f"scheme {scheme}: tb_edges: kernel {waiting[at]} cannot wait for TB {groups.producers[at]} of"
            f" the job: TBs of earlier kernels are 0 to {nodes.offsets[waiting[at]] - 1}"
        )
    waiting = np.repeat(groups.kernel, np.diff(groups.consumer_ptr))
    wrong = (groups.consumers < 0) | (groups.consumers >= tbs[waiting])
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DependenceError(
            f"scheme {scheme}: tb_edges: kernel {waiting[at]} has no TB {groups.consumers[at]}:"
            f" its TBs are 0 to {tbs[waiting[at]] - 1}"
        )
