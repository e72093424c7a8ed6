"""What the structures of a scheme take in bits: each field declared once, as wide as what it tells apart.

A width follows from the window, the machine and the grids that are to be told apart (``GRID``, or more where
a job has larger ones); nothing is rounded up to words. Bits of logic, wires and ports are not counted. What
lies in memory is told apart from what lies on the chip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.program.job import Job

GRID = 4096  # TBs of a kernel that widths allow for at the least (our choice: all networks here have fewer)
POINTER = 64
NAME = 16  # bits by which lists name a counter, whose entry they are written ahead of (our choice)
TAG, TB_ID, COUNTER, LAUNCHED = 32, 32, 6, 2  # BlockMaestro's (Abdolrashidi et al. 2021)
ACS_ID = 8  # bits of a kernel's id in ACS's window (Durvasula et al. 2024)
ACS_STATE = 2


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an entry and its width in bits."""

    name: str
    bits: int
    doc: str


@dataclass(frozen=True, slots=True)
class Structure:
    """``count`` entries of some fields, on the chip or in memory."""

    name: str
    count: int
    fields: tuple[Field, ...]
    on_chip: bool = True

    @property
    def each(self) -> int:
        """Bits of an entry."""
        return sum(field.bits for field in self.fields)

    @property
    def bits(self) -> int:
        """Bits of all entries."""
        return self.count * self.each


@dataclass(frozen=True, slots=True)
class Sizes:
    """What widths follow from.

    ``window``: kernels admitted at once; ``tbs``: most TBs of a kernel; ``open``: most TBs of as many kernels
    in a row as the window holds; ``producers``: most TBs that a counter waits for; ``sms``, ``slots``: of the
    machine, TBs an SM at the most.
    """

    window: int
    tbs: int
    open: int
    producers: int
    sms: int
    slots: int

    @classmethod
    def of(cls, job: Job, producers: int, values: Mapping[str, int], window: int | None = None) -> Sizes:
        """Return the sizes of a job on a machine; ``values``: encoded parameters."""
        grids = [kernel.tbs for kernel in job.kernels]
        held = min(len(grids), values["scheme.window"] if window is None else window)
        most = now = sum(grids[:held])
        for before, after in zip(grids, grids[held:], strict=False):
            now += after - before
            most = max(most, now)
        tbs, ends = max(GRID, *grids), max(GRID, producers)
        return cls(held, tbs, most, ends, values["gpu.sms"], values["gpu.sm.tbs"])


def width(things: int) -> int:
    """Return the bits that tell so many things apart, one at the least."""
    return max(1, (things - 1).bit_length())


def table_entry(sizes: Sizes, consumers: int) -> tuple[Field, ...]:
    """Return the fields of an entry of the dependence table: a counter and the TBs that it frees.

    A TB that waits for several counters has an entry of its own, of which it uses the counter alone.
    """
    tb = width(sizes.tbs)
    return (
        Field("kind", 2, "counter of a group, a TB's own, a kernel's, or more ranges of the entry before"),
        Field("kernel", width(sizes.window), "place in the window of the kernel that waits"),
        Field("name", NAME, "of the counter, by which lists find the entry"),
        Field("left", width(sizes.producers + 1), "ends still waited for"),
        Field("used", width(consumers + 1), "ranges in use"),
        Field("ranges", consumers * 3 * tb, f"{consumers} times first TB, count and stride"),
    )


def window_slot(sizes: Sizes) -> tuple[Field, ...]:
    """Return the fields of a place in the window."""
    tb, kernel = width(sizes.tbs), width(sizes.window)
    return (
        Field("launch", POINTER, "address of the launch's description"),
        Field("state", 3, "admitted, ready, waits for whole kernels"),
        Field("rank", kernel, "place in the order of priority"),
        Field("TBs", 3 * width(sizes.tbs + 1), "of the grid, dispatched, ended"),
        Field("next TB", tb, "where the search for a ready one begins"),
        Field("gate", width(sizes.window + 1), "counters that hold the whole kernel back"),
        Field("waits", sizes.window, "a bit for each place whose kernel it waits for"),
    )


def _of_tbs(sizes: Sizes) -> Structure:
    fields = (Field("ready", 1, "may be dispatched"), Field("ended", 1, "for counters of kernels to come"))
    return Structure("TBs of the window", sizes.open, fields)


def pool(sizes: Sizes) -> list[Structure]:
    """Return the structures of `pool`: kernels wait for kernels."""
    return [Structure("window", sizes.window, window_slot(sizes))]


def table(sizes: Sizes, entries: int, consumers: int, held: int = 0, references: int = 1) -> list[Structure]:
    """Return the structures of `tb_static`, with a buffer of ``held`` entries for lists of resident TBs."""
    found = Structure("dependence table", entries, table_entry(sizes, consumers))
    resident = (
        Field("TB", width(sizes.sms * sizes.slots), "slot of the SM that it runs in"),
        Field("counters", references * NAME, f"{references} names"),
    )
    buffer = [Structure("lists of resident TBs", held, resident)] if held else []
    return [found, *buffer, *pool(sizes), _of_tbs(sizes)]


def largest_table(bits: int, sizes: Sizes, consumers: int, held: int, references: int) -> int:
    """Return the most entries of a table that takes no more bits on the chip; 0: none does."""
    low, high = 0, max(1, bits)
    while high - low > 1:
        middle = (low + high) // 2
        fits = on_chip(table(sizes, middle, consumers, held, references)) <= bits
        low, high = (middle, high) if fits else (low, middle)
    return low


def lists(references: int) -> Structure:
    """Return the lists in memory of which counters each TB's end is for; each is read once."""
    return Structure("lists of counters", references, (Field("counter", NAME, "its name"),), False)


def acs_slot(window: int) -> tuple[Field, ...]:
    """Return the fields of a place in ACS's window."""
    return (
        Field("waits", ACS_ID * window, "ids of the kernels that it waits for"),
        Field("state", ACS_STATE, "free, waiting, ready, running"),
    )


def blockmaestro(entries: int, children: int, tag: int = TAG, tb: int = TB_ID) -> list[Structure]:
    """Return BlockMaestro's two buffers; its window of two to four kernels is not counted.

    ``tag``, ``tb``: bits that name a TB, as published if not given.
    """
    return [
        Structure("counters", entries, blockmaestro_counter(tag)),
        Structure("lists", entries, blockmaestro_list(children, tag, tb)),
    ]


def blockmaestro_counter(tag: int = TAG) -> tuple[Field, ...]:
    """Return the fields of BlockMaestro's buffer of counters."""
    return (
        Field("tag", tag + LAUNCHED, "TB and kernel"),
        Field("parents", COUNTER, "ends still waited for"),
    )


def blockmaestro_list(children: int, tag: int = TAG, tb: int = TB_ID) -> tuple[Field, ...]:
    """Return the fields of BlockMaestro's buffer of children."""
    return (
        Field("tag", tag + LAUNCHED, "TB and kernel"),
        Field("children", tb * children, f"{children} TBs"),
    )


def signature(bits: int, units: int) -> tuple[Field, ...]:
    """Return the fields of a unit of `tb_bloom`."""
    return (
        Field("reads", bits, "signature of what it reads"),
        Field("writes", bits, "signature of what it writes"),
        Field("waits", units, "a bit for each unit that may wait for it"),
    )


def learned(signatures: int, ranges: int, entry_bytes: int) -> list[Structure]:
    """Return what `tb_learned` keeps beside the table, in memory but for the tags.

    ``ranges``: those that there is room for, as many for each TB of a signature.
    """
    tag = (Field("tag", 2 * POINTER, "program, and a digest of grid and layout"),)
    kept = (Field("range", 8 * entry_bytes, "offset, length, distance and count"),)
    return [Structure("signatures", signatures, tag), Structure("learned ranges", ranges, kept, False)]


def balanced(sizes: Sizes) -> Structure:
    """Return what `scheme.placement = balanced` counts: TBs that each SM took of each open kernel."""
    share = -(-sizes.tbs // sizes.sms)
    held = Field("taken", width(share + 1), "TBs of the kernel that the SM took, up to its even share")
    return Structure("even shares", sizes.sms * sizes.window, (held,))


def affinity(sizes: Sizes) -> Structure:
    """Return what `scheme.placement = affinity` keeps: where the last producer of a ready TB ran."""
    return Structure("producers' SMs", sizes.open, (Field("SM", width(sizes.sms), "of the last producer"),))


def prologue(sizes: Sizes) -> Structure:
    """Return what `scheme.prologue` keeps: which slot of which SM holds a TB that waits inside.

    Only TBs of the oldest kernel with TBs left wait so, hence a TB's number tells it.
    """
    fields = (
        Field("waiting", 1, "holds a TB that was dispatched ahead of its gate"),
        Field("TB", width(sizes.tbs), "which one"),
    )
    return Structure("TBs that wait inside", sizes.sms * sizes.slots, fields)


def on_chip(structures: Sequence[Structure]) -> int:
    """Return the bits of those that lie on the chip."""
    return sum(each.bits for each in structures if each.on_chip)


def each_bytes(fields: Sequence[Field]) -> float:
    """Return the size of an entry in bytes."""
    return sum(field.bits for field in fields) / 8
