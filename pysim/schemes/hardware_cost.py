"""Hardware cost of each scheme in bits of storage: every structure with its fields and their widths.

Widths follow from the window, the machine and the largest grid (at least ``MIN_GRID_TBS``); nothing is
rounded up to words. Logic, wires and ports are not counted. Structures in memory are marked as not on chip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.program.job import Job

MIN_GRID_TBS = 4096  # least TBs of a kernel that widths allow for (our choice: all networks here have fewer)
POINTER_BITS = 64
COUNTER_NAME_BITS = 16  # bits of a counter's name in lists, which exist before its table entry (our choice)
BLOCKMAESTRO_TAG_BITS, BLOCKMAESTRO_TB_BITS, BLOCKMAESTRO_COUNTER_BITS = 32, 32, 6  # Abdolrashidi et al. 2021
BLOCKMAESTRO_LAUNCHED_BITS = 2
ACS_ID_BITS = 8  # bits of a kernel's id in ACS's window (Durvasula et al. 2024)
ACS_STATE_BITS = 2


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an entry and its width in bits."""

    name: str
    bits: int
    doc: str


@dataclass(frozen=True, slots=True)
class Structure:
    """``count`` entries with the same fields, on the chip or in memory."""

    name: str
    count: int
    fields: tuple[Field, ...]
    on_chip: bool = True

    @property
    def entry_bits(self) -> int:
        """Bits of an entry."""
        return sum(field.bits for field in self.fields)

    @property
    def total_bits(self) -> int:
        """Bits of all entries."""
        return self.count * self.entry_bits


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes from which field widths follow.

    ``window``: kernels admitted at once; ``max_tbs``: TBs of the largest kernel; ``window_tbs``: most TBs of
    all kernels in the window; ``max_producers``: most TBs that one counter waits for; ``sms``: of the GPU;
    ``slots``: TB slots an SM.
    """

    window: int
    max_tbs: int
    window_tbs: int
    max_producers: int
    sms: int
    slots: int

    @classmethod
    def of(cls, job: Job, producers: int, values: Mapping[str, int], window: int | None = None) -> Sizes:
        """Return the sizes of a job on a machine.

        ``producers``: most TBs that one counter of the job waits for; ``values``: encoded parameters;
        ``window``: kernels, if not ``scheme.window``.
        """
        grids = [kernel.tbs for kernel in job.kernels]
        held = min(len(grids), values["scheme.window"] if window is None else window)
        most = now = sum(grids[:held])
        for before, after in zip(grids, grids[held:], strict=False):
            now += after - before
            most = max(most, now)
        tbs, ends = max(MIN_GRID_TBS, *grids), max(MIN_GRID_TBS, producers)
        return cls(held, tbs, most, ends, values["gpu.sms"], values["gpu.sm.tbs"])


def bits_for(things: int) -> int:
    """Return the bits of an index into ``things`` entries, at least 1."""
    return max(1, (things - 1).bit_length())


def table_entry_fields(sizes: Sizes, consumers: int) -> tuple[Field, ...]:
    """Return the fields of an entry of the dependence table: a counter and the TBs that it releases.

    ``consumers``: TB ranges an entry holds. A TB that waits for several counters has an entry of its own, of
    which only the counter is used.
    """
    tb = bits_for(sizes.max_tbs)
    return (
        Field("kind", 2, "counter of a group, a TB's own, a kernel's, or more ranges of the entry before"),
        Field("kernel", bits_for(sizes.window), "place in the window of the kernel that waits"),
        Field("name", COUNTER_NAME_BITS, "of the counter, by which lists find the entry"),
        Field("left", bits_for(sizes.max_producers + 1), "ends still waited for"),
        Field("used", bits_for(consumers + 1), "ranges in use"),
        Field("ranges", consumers * 3 * tb, f"{consumers} times first TB, count and stride"),
    )


def window_slot_fields(sizes: Sizes) -> tuple[Field, ...]:
    """Return the fields of a slot of the kernel window."""
    tb, kernel = bits_for(sizes.max_tbs), bits_for(sizes.window)
    return (
        Field("launch", POINTER_BITS, "address of the launch's description"),
        Field("state", 3, "admitted, ready, waits for whole kernels"),
        Field("rank", kernel, "place in the order of priority"),
        Field("TBs", 3 * bits_for(sizes.max_tbs + 1), "of the grid, dispatched, ended"),
        Field("next TB", tb, "where the search for a ready one begins"),
        Field("gate", bits_for(sizes.window + 1), "counters that hold the whole kernel back"),
        Field("waits", sizes.window, "a bit for each place whose kernel it waits for"),
    )


def _of_tbs(sizes: Sizes) -> Structure:
    fields = (Field("ready", 1, "may be dispatched"), Field("ended", 1, "for counters of kernels to come"))
    return Structure("TBs of the window", sizes.window_tbs, fields)


def pool_structures(sizes: Sizes) -> list[Structure]:
    """Return the structures of scheme ``pool``: the window of kernels."""
    return [Structure("window", sizes.window, window_slot_fields(sizes))]


def table_structures(
    sizes: Sizes, entries: int, consumers: int, held: int = 0, references: int = 1
) -> list[Structure]:
    """Return the structures of ``tb_static``.

    ``entries``: of the table; ``consumers``: TB ranges an entry; ``held``: entries of the buffer for the
    counter lists of resident TBs (0: no buffer); ``references``: counters a list names.
    """
    found = Structure("dependence table", entries, table_entry_fields(sizes, consumers))
    resident = (
        Field("TB", bits_for(sizes.sms * sizes.slots), "slot of the SM that it runs in"),
        Field("counters", references * COUNTER_NAME_BITS, f"{references} names"),
    )
    buffer = [Structure("lists of resident TBs", held, resident)] if held else []
    return [found, *buffer, *pool_structures(sizes), _of_tbs(sizes)]


def largest_table(bits: int, sizes: Sizes, consumers: int, held: int, references: int) -> int:
    """Return the most entries of a table that fits in ``bits`` on the chip; 0: none fits."""
    low, high = 0, max(1, bits)
    while high - low > 1:
        middle = (low + high) // 2
        fits = on_chip_bits(table_structures(sizes, middle, consumers, held, references)) <= bits
        low, high = (middle, high) if fits else (low, middle)
    return low


def counter_lists(references: int) -> Structure:
    """Return the lists in memory that name the counters which each TB's end counts down."""
    return Structure(
        "lists of counters", references, (Field("counter", COUNTER_NAME_BITS, "its name"),), False
    )


def acs_slot_fields(window: int) -> tuple[Field, ...]:
    """Return the fields of a slot of ACS's kernel window."""
    return (
        Field("waits", ACS_ID_BITS * window, "ids of the kernels that it waits for"),
        Field("state", ACS_STATE_BITS, "free, waiting, ready, running"),
    )


def blockmaestro_structures(
    entries: int, children: int, tag: int = BLOCKMAESTRO_TAG_BITS, tb: int = BLOCKMAESTRO_TB_BITS
) -> list[Structure]:
    """Return BlockMaestro's two buffers; its window of two to four kernels is not counted.

    ``entries``: of each buffer; ``children``: TBs a list holds; ``tag``, ``tb``: bits of a TB's name
    (default: as published).
    """
    return [
        Structure("counters", entries, blockmaestro_counter_fields(tag)),
        Structure("lists", entries, blockmaestro_list_fields(children, tag, tb)),
    ]


def blockmaestro_counter_fields(tag: int = BLOCKMAESTRO_TAG_BITS) -> tuple[Field, ...]:
    """Return the fields of BlockMaestro's buffer of counters."""
    return (
        Field("tag", tag + BLOCKMAESTRO_LAUNCHED_BITS, "TB and kernel"),
        Field("parents", BLOCKMAESTRO_COUNTER_BITS, "ends still waited for"),
    )


def blockmaestro_list_fields(
    children: int, tag: int = BLOCKMAESTRO_TAG_BITS, tb: int = BLOCKMAESTRO_TB_BITS
) -> tuple[Field, ...]:
    """Return the fields of BlockMaestro's buffer of children."""
    return (
        Field("tag", tag + BLOCKMAESTRO_LAUNCHED_BITS, "TB and kernel"),
        Field("children", tb * children, f"{children} TBs"),
    )


def signature_fields(bits: int, units: int, levels: int) -> tuple[Field, ...]:
    """Return the fields of one of ``units`` signature units of ``tb_bloom``.

    ``bits``: of a signature; ``levels``: sizes of granules.
    """
    return (
        Field("reads", bits, "signature of what it reads"),
        Field("writes", bits, "signature of what it writes"),
        Field("sizes", 4 * levels, "of its granules and marks, of reads and of writes"),
        Field("waits", units, "a bit for each unit that may wait for it"),
    )


def learned_structures(signatures: int, ranges: int, entry_bytes: int) -> list[Structure]:
    """Return what ``tb_learned`` keeps beside the table: tags on the chip, ranges in memory.

    ``ranges``: slots for ranges, of ``entry_bytes`` bytes each.
    """
    tag = (Field("tag", 2 * POINTER_BITS, "program, and a digest of grid and layout"),)
    kept = (Field("range", 8 * entry_bytes, "offset, length, distance and count"),)
    return [Structure("signatures", signatures, tag), Structure("learned ranges", ranges, kept, False)]


def placement_counters(sizes: Sizes) -> Structure:
    """Return the counters of ``scheme.placement = balanced``: TBs of each kernel that each SM took."""
    share = -(-sizes.max_tbs // sizes.sms)
    held = Field("taken", bits_for(share + 1), "TBs of the kernel that the SM took, up to its even share")
    return Structure("even shares", sizes.sms * sizes.window, (held,))


def producer_sms(sizes: Sizes) -> Structure:
    """Return the storage of ``scheme.placement = affinity``: the SM of each ready TB's last producer."""
    return Structure(
        "producers' SMs", sizes.window_tbs, (Field("SM", bits_for(sizes.sms), "of the last producer"),)
    )


def waiting_tbs(sizes: Sizes) -> Structure:
    """Return the storage of ``scheme.prologue``: which SM slots hold a TB that waits after its prologue.

    Only TBs of the oldest kernel with TBs left wait so: a TB number is enough, without a kernel.
    """
    fields = (
        Field("waiting", 1, "holds a TB that was dispatched ahead of its gate"),
        Field("TB", bits_for(sizes.max_tbs), "which one"),
    )
    return Structure("TBs that wait inside", sizes.sms * sizes.slots, fields)


def on_chip_bits(structures: Sequence[Structure]) -> int:
    """Return the total bits of the structures on the chip."""
    return sum(each.total_bits for each in structures if each.on_chip)


def entry_bytes(fields: Sequence[Field]) -> float:
    """Return the size of an entry in bytes."""
    return sum(field.bits for field in fields) / 8
