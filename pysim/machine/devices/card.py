"""What a device is, and how generations and the numbers of one card become one.

A generation states the numbers that its cards share; a card states what differs from them. A number that
nobody measured on a generation is inherited from another one, which is named. What none of them states is the
default of the parameter table. ``Device.sources`` says of each value which of these it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pysim.errors import ConfigError
from pysim.machine.mechanisms import MECHANISMS
from pysim.units import ROWS, Value, parse, row_of

Rows = tuple[tuple[str, Value, str], ...]  # path, value, source
Energies = tuple[tuple[str, float, float, str], ...]  # event, W or pJ, share that it may be off by, source

INHERITED = "inherited from"  # how the source of a number of another generation or device begins
DEFAULT = "default:"  # how the source of a value begins that no device and no generation states
# Where times among the defaults come from. Devices state their own; a file without a base has these.
_MICRO = "measured on an H200, h200_micro.json"
_WAYS = "less the default ways from and to the scheduler (gpu.cp.tb_start_latency, gpu.cp.tb_done_latency)"
_DEFAULT_SOURCES = {
    "gpu.cp.stream_gap": "assumed: no card's, near the 940 ns of a V100",
    "gpu.cp.early_gap": f"{_MICRO} pdl_pair_ns_primary_first_start_to_secondary_first_start: 512, {_WAYS}",
    "gpu.cp.early_graph_gap": (
        f"as gpu.cp.early_gap, less 105: {_MICRO} graph_pdl_kernel_period_us 0.400 for 0.505 outside a graph"
    ),
    "gpu.cp.depend": (
        f"{_MICRO} pdl_pair_ns_primary_last_end_to_wait_return: 416, less the store and the way,"
        " without a flush (gpu.cp.tb_flush)"
    ),
}
_OFF = frozenset(row for mechanism in MECHANISMS.values() for row in mechanism.off)


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU. ``values`` and ``sources`` go by parameter path; ``values`` are in the parameters' units.

    Both have every ``gpu.*`` path of the parameter table. ``carveouts`` are the shared-memory sizes that an
    SM can be set to, in bytes, ascending. ``mma_rate`` is the fp16 multiply-adds a cycle of one sub-core's
    tensor cores. ``energies`` are what the events of ``pysim/results/energy.py`` take, empty where nobody
    measured it. Devices are equal where all fields are, and may be keys of a dict. Treat them as immutable.
    """

    name: str
    title: str
    compute_capability: tuple[int, int]
    carveouts: tuple[int, ...]
    mma_rate: int
    values: Mapping[str, Value]
    sources: Mapping[str, str]
    energies: Energies = ()

    @property
    def sm(self) -> int:
        """The SM version: compute capability 8.6 is 86."""
        major, minor = self.compute_capability
        return 10 * major + minor

    def __hash__(self) -> int:
        """Return a hash that equal devices share; it leaves out the values, which are no part of a key."""
        return hash((self.name, self.title, self.compute_capability, self.carveouts, self.mma_rate))


@dataclass(frozen=True, slots=True)
class Generation:
    """What the cards of a generation share.

    ``rows`` are (path, value, source). A path that they lack comes from the first of ``inherits`` that has
    it. Compute capability, carve-outs (KiB) and tensor rate are those of a :class:`Device`.
    """

    name: str
    compute_capability: tuple[int, int]
    carveouts: tuple[int, ...]
    mma_rate: int
    rows: Rows
    inherits: tuple[Generation, ...] = ()

    def only(self, *paths: str) -> Generation:
        """Return the generation with these paths alone, for another one to inherit.

        A path that the generation itself does not state is a ConfigError.
        """
        known = {row[0] for row in self.rows}
        if unknown := [path for path in paths if path not in known]:
            raise ConfigError(f"{self.name} does not state {', '.join(unknown)}")
        return replace(self, rows=tuple(row for row in self.rows if row[0] in paths), inherits=())

    def given(self) -> dict[str, tuple[Value, str]]:
        """Return value and source by path, inherited ones included."""
        made: dict[str, tuple[Value, str]] = {}
        for other in reversed(self.inherits):
            made |= inherited(other.name, other.given())
        return made | {path: (value, source) for path, value, source in self.rows}


def inherited(name: str, given: Mapping[str, tuple[Value, str]]) -> dict[str, tuple[Value, str]]:
    """Return values whose sources name who stated them: ``name``, unless a source already names another."""
    return {
        path: (value, source if source.startswith((INHERITED, DEFAULT)) else f"{INHERITED} {name}: {source}")
        for path, (value, source) in given.items()
    }


def completed(given: Mapping[str, tuple[Value, str]]) -> tuple[dict[str, Value], dict[str, str]]:
    """Return values and sources of every ``gpu.*`` path: what is given, and defaults of the parameter table.

    An unknown path, or a value out of its range, is a ConfigError.
    """
    for path in given:
        row_of(path)
    values: dict[str, Value] = {}
    sources: dict[str, str] = {}
    for path, row in ROWS.items():
        if path in given:
            values[path], sources[path] = parse(path, row, given[path][0]), given[path][1]
        elif path.startswith("gpu."):
            off = row.default == 0 or (path, row.default) in _OFF
            values[path] = row.default
            known = _DEFAULT_SOURCES.get(path, "value of the parameter table")
            sources[path] = f"{DEFAULT} {'mechanism off' if off else known}"
    return values, sources


def card(
    name: str,
    title: str,
    generation: Generation,
    *tables: Rows,
    compute_capability: tuple[int, int] | None = None,
    carveouts: Iterable[int] | None = None,
    mma_rate: int | None = None,
    energies: Energies = (),
) -> Device:
    """Return a device: a generation, and rows (path, value, source) that differ from it; later tables win.

    ``carveouts`` are in KiB. What is not given is the generation's. An unknown path, or a value out of its
    range, is a ConfigError.
    """
    rows = {path: (value, source) for table in tables for path, value, source in table}
    values, sources = completed(generation.given() | rows)
    return Device(
        name=name,
        title=title,
        compute_capability=compute_capability or generation.compute_capability,
        carveouts=tuple(size * 1024 for size in (generation.carveouts if carveouts is None else carveouts)),
        mma_rate=generation.mma_rate if mma_rate is None else mma_rate,
        values=values,
        sources=sources,
        energies=energies,
    )
