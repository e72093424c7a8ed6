"""What a device is, and how the tables of the generations become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pysim.units import Value, parse, row_of

Rows = tuple[tuple[str, Value, str], ...]  # path, value, source
Energies = tuple[tuple[str, float, float, str], ...]  # event, W or pJ, share that it may be off by, source


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU. ``values`` and ``sources`` go by parameter path; ``values`` are in the parameters' units.

    ``carveouts`` are the shared-memory sizes that an SM can be set to, in bytes, ascending.
    ``mma_rate`` is the fp16 multiply-adds a cycle of one sub-core's tensor cores. ``energies`` are what
    the events of ``pysim/results/energy.py`` take, empty where nobody measured it.
    """

    name: str
    title: str
    compute_capability: tuple[int, int]
    carveouts: tuple[int, ...]
    mma_rate: int
    values: Mapping[str, Value]
    sources: Mapping[str, str]
    energies: Energies = ()


def card(
    name: str,
    title: str,
    capability: tuple[int, int],
    carveouts: Iterable[int],
    mma_rate: int,
    *tables: Rows,
    energies: Energies = (),
) -> Device:
    """Return a device of rows (path, value, source); later tables replace rows of earlier ones.

    ``carveouts`` are in KiB.
    """
    every = [row for table in tables for row in table]
    return Device(
        name=name,
        title=title,
        compute_capability=capability,
        carveouts=tuple(size * 1024 for size in carveouts),
        mma_rate=mma_rate,
        values={path: parse(path, row_of(path), value) for path, value, _ in every},
        sources={path: source for path, _, source in every},
        energies=energies,
    )
