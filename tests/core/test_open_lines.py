"""Sectors that stores write in part: what L2 keeps of them, and when it reads their rest from DRAM."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from pysim.errors import SimError
from pysim.program.copies import copy_kernel
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Code, Pattern, Program
from pysim.trace.copies import with_copies
from pysim.workloads.mirrored import job_of
from tests.support.measured import measured_table
from tests.support.thin import thin

from .harness import config, execute, tiny

ROWS = measured_table("h200_partial.csv")
PLACES = 2 * 12 * 24  # lines written in part that the slices of `tiny` keep
WORD, SECTOR, LINE = 4, 32, 128


def kernel(patterns, *, tensor, tbs=1, warps=1, op="store"):
    """Every warp stores, or loads, with each of the patterns in turn."""
    code = Code()
    for pattern in patterns:
        getattr(code, op)(0, pattern)
    if op == "load":
        code.wait(0)
    code.exit()

    def regions(tbs):
        return np.tile(np.array([[0, 1, 0, tensor.cols]], np.int64), (len(tbs), 1))

    program = Program(op, (tuple(code.ops),), warps, 16, 0, 1)
    access = Access(tensor, "write" if op == "store" else "read", regions)
    return Kernel(op, program, (tbs, 1, 1), (tensor,), (access,))


def reads(kernels, gpu, **how):
    return int(execute(Job("parts", kernels), "stream", gpu, **how).slices["dram_read_sectors"].sum())


def words_of(lines, words, *, first=0):
    """Stores of the first words of the first sector of so many lines, 32 at a time, a word at a time."""
    return [
        Pattern(0, WORD, base=LINE * 32 * i + WORD * (first + word), s0=LINE)
        for i in range(lines // 32)
        for word in range(words)
    ]


def room(words=1 << 20):
    return Memory().tensor("out", 1, words, WORD)


def partly(**more):
    return tiny(gpu__l2__open_lines=1, **more)


def test_the_third_line_in_a_place_has_the_first_one_read():
    lines = 2048  # seven for each place
    stores = words_of(lines, 1)
    assert reads([kernel(stores, tensor=room())], partly()) == lines - PLACES
    assert reads([kernel(stores, tensor=room())], tiny()) == 0


def test_few_lines_are_kept():
    stores = words_of(288, 1)  # one block of the address map
    assert reads([kernel(stores, tensor=room())], partly()) == 0


@pytest.mark.parametrize("joined", [0, 1])
def test_sectors_that_are_written_whole_in_the_end_are_not_read(joined):
    """Eight stores of a word each make a sector whole; of pairs that join L2 gets one, of all eight words."""
    gpu = partly(gpu__l1__join_stores=joined)
    assert reads([kernel(words_of(2048, 8), tensor=room())], gpu) == 0
    # seven do not
    assert reads([kernel(words_of(2048, 7), tensor=room())], gpu) == 2048 - PLACES


def test_whole_sectors_are_not_read():
    stores = [Pattern(0, WORD, base=LINE * i, s0=WORD) for i in range(2048)]
    assert reads([kernel(stores, tensor=room())], partly()) == 0


def test_a_store_past_the_line_s_end_leaves_whole_sectors_whole():
    """Of two sectors the second is written in part: taken as whole, as nothing says which it is."""
    stores = [Pattern(0, 16, base=2 * LINE * i, s0=16, lanes=0b111) for i in range(2048)]
    assert reads([kernel(stores, tensor=room())], partly()) == 0


def test_a_load_waits_for_the_rest_of_a_sector():
    tensor = room()
    stored, loaded = kernel(words_of(32, 1), tensor=tensor), words_of(32, 1, first=3)
    both = [stored, kernel(loaded, tensor=tensor, op="load")]
    assert reads(both, partly()) == 32
    assert reads(both, tiny()) == 0
    # and finds it whole from then on
    assert reads([*both, both[1]], partly()) == 32


def test_a_line_that_is_pushed_out_is_read_first():
    """Whole lines push all others out of L2."""
    lines = 12 * 12 * 24 * 16
    tensor = room(1 << 22)
    some = kernel(words_of(64, 1), tensor=tensor)
    rest = kernel([Pattern(0, 16, base=LINE * (64 + 4 * i), s0=16) for i in range(lines // 4)], tensor=tensor)
    assert reads([some, rest], partly()) == 64


@pytest.mark.parametrize(("timed", "pushed"), [(0, 0), (1, 64)])
def test_copies_from_the_host(timed, pushed):
    """A copy makes lines whole that it lies over; what one pushes out is read first, if copies take time."""
    memory = Memory()
    tensor, far = memory.tensor("out", 1, 1 << 20, WORD), memory.tensor("far", 1, 1 << 23, WORD)
    stores = kernel(words_of(64, 1), tensor=tensor)
    for start, size, read in ((tensor.address, 64 * LINE, 0), (far.address, far.nbytes, pushed)):
        copy = copy_kernel(np.array([[start, start + size]], np.int64), timed, 1)
        job = Job("copied", *with_copies([stores, stores], [[], [copy]]))
        found = int(execute(job, "stream", partly()).slices["dram_read_sectors"].sum())
        assert found == read


def test_it_does_not_depend_on_quantum_or_threads():
    job = Job("parts", [kernel(words_of(512, 3), tensor=room(), tbs=6)])
    want = execute(job, "stream", partly(), threads=(1,)).fingerprint()
    for quantum in (0, 20):
        assert execute(job, "stream", partly(sim__quantum=quantum), threads=(2,)).fingerprint() == want


def test_lru_has_no_room_for_it():
    with pytest.raises(SimError, match=r"gpu\.l2\.open_lines"):
        reads([kernel(words_of(32, 1), tensor=room())], partly(gpu__l2__replacement="lru"))


def measured(what):
    with ROWS.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["what"] == what]


@pytest.mark.parametrize(
    ("sectors", "step", "parts"), [(65536, 1, 1), (65536, 4, 1), (65536, 4, 4), (1 << 20, 4, 1)]
)
def test_words_of_sectors(sectors, step, parts):
    """Measured: which share of the sectors L2 reads that stores leave words out of, for good."""
    row = next(
        r for r in measured("words")
        if (int(r["rows"]), int(r["cols"]), int(r["pitch"])) == (sectors, step, parts)
    )  # fmt: skip
    tensor = Memory().tensor("out", 1, sectors * step * 8, WORD)
    warp = SECTOR * step * 32 // parts
    store = Pattern(0, WORD, bx=8 * warp, warp=warp, s0=WORD, s1=SECTOR * step, minor=parts)
    found = reads([kernel([store], tensor=tensor, tbs=sectors * parts // 256, warps=8)], config("h200"))
    # where the blocks of our address map begin within what is written decides on some 6 % of two blocks
    assert found / sectors == pytest.approx(int(row["dram_read_bytes"]) / 32 / sectors, abs=0.07)


@pytest.mark.parametrize("cols", thin([512, 1024, 2048, 3000, 3072, 6000], [512, 1024, 3000]))
@pytest.mark.parametrize("rows", thin([1000, 1024], 2))
def test_straight_transposes(rows, cols):
    """Measured: 0 to 12 % more than the matrix is read, as some of what is written is read, too."""
    row = next(
        r
        for r in measured("transpose")
        if [r["rows"], r["cols"], r["pitch"]] == [*map(str, (rows, cols, rows))]
    )
    ran = execute(job_of("transpose_naive", f"rows={rows};cols={cols}"), "stream", config("h200"))
    found = 32 * int(ran.slices["dram_read_sectors"].sum())
    # nothing is fitted: within 4 % but for one, which has 2 % for 9
    assert found == pytest.approx(
        int(row["dram_read_bytes"]), rel=0.07 if (rows, cols) == (1024, 2048) else 0.04
    )
