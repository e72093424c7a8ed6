"""Floors: the least cycles of one TB, from its code and from where its loads must come."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.program.job import tb_variants
from pysim.program.recorded_program import RecordedProgram

from .program_cost import ProgramCost
from .writeback_bound import fill_slice_traffic

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job, Tensor
    from pysim.program.ops import LoweredPrograms

    from .program_cost import LoadFacts

    Floats = NDArray[np.float64]

EVERY = 0xFFFFFFFF  # bits: all arguments
L1 = (0, 0, 0)  # nothing is known of the loads: all of them may hit in L1
LINE = 128
_MOST = 64  # lines of a tensor whose DRAM rows are compared one by one


def load_facts(job: Job) -> list[LoadFacts]:
    """Return what is known of the loads of each kernel: (far, cold, own), each a bit mask of arguments.

    far: an earlier kernel writes the argument, so the first load of it after the kernel's first TB began
    comes from L2 or beyond, unless the scheme lets L1 keep it (:func:`kept_in_l1`). cold: no kernel writes it
    and no other kernel reads it, so it comes from DRAM. own: no other kernel reads it, and the kernel is a
    single TB. All are 0 for recorded programs and in jobs with recorded footprints.
    """
    none = [(0, 0, 0)] * len(job.kernels)
    if any(kernel.footprint is not None for kernel in job.kernels):
        return none
    spans = sorted(
        (a.tensor.address, a.tensor.address + a.tensor.nbytes, k, a.mode)
        for k, kernel in enumerate(job.kernels)
        for a in kernel.accesses
    )
    place: dict[int, int] = {}  # address of a tensor -> piece of memory that shares nothing with others
    readers: list[list[int]] = []
    writers: list[bool] = []
    reach = -1
    for begin, end, k, mode in spans:
        if begin >= reach:
            readers.append([])
            writers.append(False)
        reach = max(reach, end)
        place[begin] = len(readers) - 1
        readers[-1] += [k] if mode == "read" else []
        writers[-1] |= mode != "read"
    made: list[LoadFacts] = []
    written: set[int] = set()
    for k, kernel in enumerate(job.kernels):
        far = cold = own = 0
        for slot, tensor in enumerate(() if isinstance(kernel.program, RecordedProgram) else kernel.args):
            at = place.get(tensor.address)
            alone = at is not None and readers[at] == [k]
            far |= (tensor.address in written) << slot
            cold |= (at is not None and alone and not writers[at]) << slot
            own |= (alone and kernel.tbs == 1) << slot
        made.append((far, cold, own))
        written |= {access.tensor.address for access in kernel.accesses if access.mode != "read"}
    return made


def kept_in_l1(loads: Sequence[LoadFacts]) -> list[LoadFacts]:
    """Return what is known of the loads where L1 may serve what its own SM has written."""
    return [(0, cold, own) for _, cold, own in loads]


def lone_kernels(deps: Dependences) -> set[int]:
    """Return the kernels of one TB that run alone under every schedule.

    Every TB of an earlier kernel must have ended: each has a consumer in a kernel up to this one, and edges
    lead to later kernels only. No TB of a later kernel may have started: each has a producer in a kernel from
    this one on.
    """
    offsets, groups = deps.offsets, deps.groups
    tbs = np.diff(offsets)
    kernels = len(tbs)
    if not (tbs == 1).any():
        return set()
    owner = np.repeat(np.arange(kernels), tbs)
    consumed, produced = np.full(len(owner), kernels), np.full(len(owner), -1)
    # groups come by kernel: the last one that is assigned is the first consumer
    consumed[groups.producers[::-1]] = np.repeat(groups.kernel, np.diff(groups.producer_ptr))[::-1]
    latest = owner[groups.producers[groups.producer_ptr[1:] - 1]]
    waiters = groups.consumers + np.repeat(offsets[groups.kernel], np.diff(groups.consumer_ptr))
    np.maximum.at(produced, waiters, np.repeat(latest, np.diff(groups.consumer_ptr)))
    # of the TBs of earlier kernels the last first consumer, of those of later kernels the first last producer
    last, first = np.full(kernels, -1), np.full(kernels, kernels)
    np.maximum.at(last, owner, consumed)
    np.minimum.at(first, owner, produced)
    before = np.maximum.accumulate(np.concatenate([[-1], last[:-1]]))
    behind = np.minimum.accumulate(np.concatenate([first[1:], [kernels]])[::-1])[::-1]
    number = np.arange(kernels)
    return set(np.flatnonzero((tbs == 1) & (before <= number) & (behind >= number)).tolist())


class _Rows:
    """Whether a tensor shares DRAM rows with other tensors."""

    def __init__(self, sim: Any, job: Job, values: Mapping[str, int]) -> None:
        self.sim = sim
        first: dict[
            tuple[int, int], int
        ] = {}  # begin and end of a tensor -> the first kernel that touches it
        for index, kernel in enumerate(job.kernels):
            for a in kernel.accesses:
                first.setdefault((a.tensor.address, a.tensor.address + a.tensor.nbytes), index)
        self.first = first
        self.spans = sorted(first)
        self.begins = [begin for begin, _ in self.spans]
        self.reach = list(accumulate((end for _, end in self.spans), max))
        sets = values["gpu.l2.size"] // (values["gpu.l2.slices"] * 16 * LINE)
        lines = values["gpu.dram.row_bytes"] // LINE
        # a DRAM row is consecutive sets of one tag, unless it exceeds a slice or the slice hash splits tags
        self.lines = 0 if sets % lines or values["gpu.l2.hash_slices"] else lines

    def _others(self, line: int, mine: tuple[int, int], last: int) -> bool:
        """Whether a tensor other than ``mine`` that kernels up to ``last`` touch lies in a line."""
        begin, at = line * LINE, bisect_left(self.begins, (line + 1) * LINE)
        while at > 0 and self.reach[at - 1] > begin:
            at -= 1
            span = self.spans[at]
            if span[1] > begin and span != mine and self.first[span] <= last:
                return True
        return False

    def alone(self, tensor: Tensor, last: int) -> bool:
        """Whether no other tensor that kernels up to ``last`` touch shares a row; False if it is large."""
        from pysim._ffi import ffi, lib

        mine = (tensor.address, tensor.address + tensor.nbytes)
        lines = range(mine[0] // LINE, -(-mine[1] // LINE))
        if not self.lines or len(lines) > _MOST:
            return False
        home = ffi.new("uint32_t[3]")
        for line in lines:
            lib.gs_line_home(self.sim, line, home, home + 1, home + 2)
            slice_, set_, tag = home
            first = set_ // self.lines * self.lines
            row = (lib.gs_home_line(self.sim, slice_, first + n, tag) for n in range(self.lines))
            if any(self._others(other, mine, last) for other in row):
                return False
        return True


def _singles(
    sim: Any, job: Job, loads: Sequence[LoadFacts], values: Mapping[str, int], lone: Collection[int]
) -> dict[int, tuple[float, float]]:
    """Return the floors of the kernels of one TB, by kernel number.

    First in whichever L2 partition its SM is, then in the first partition, where the first SM of an empty GPU
    is. ``lone``: kernels (:func:`lone_kernels`) that no later kernel precedes, so none of those has opened a
    DRAM row before.
    """
    from pysim._ffi import ffi, lib

    made: dict[int, tuple[float, float]] = {}
    rows = _Rows(sim, job, values)
    asked: dict[tuple[int, ...], tuple[float, float]] = {}  # launches with the same addresses are asked once
    for index, kernel in enumerate(job.kernels):
        if kernel.tbs == 1 and kernel.copy is None and not isinstance(kernel.program, RecordedProgram):
            far, cold, own = loads[index]
            fresh = 0
            if own & cold:
                last = index if index in lone else len(job.kernels)
                fresh = sum(
                    rows.alone(arg, last) << a for a, arg in enumerate(kernel.args) if own & cold >> a & 1
                )
            addresses = [arg.address for arg in kernel.args]
            key = (id(kernel.program), far, cold, own, fresh, *addresses)
            if key not in asked:
                given = [ffi.new("gs_loads *", (far, cold, own, 0, side, fresh)) for side in (1, 2)]
                sides = [float(lib.gs_tb_floor_of(sim, index, 0, each)) for each in given]
                asked[key] = min(sides), sides[0]
            made[index] = asked[key]
    return made


def program_costs(
    sim: Any,
    programs: LoweredPrograms,
    loads: Sequence[LoadFacts] = (),
    latency: int = 0,
    job: Job | None = None,
    values: Mapping[str, int] = MappingProxyType({}),
    lone: Collection[int] = (),
    away: Sequence[tuple[int, float]] = (),
) -> list[ProgramCost]:
    """Return the costs of every program, one entry a program, as the core computes them.

    ``loads``: one entry a kernel (:func:`load_facts`). ``latency``: cycles of a load that hits in L2, for
    ``ProgramCost.slow`` (0: left out). ``away``: which arguments come from DRAM
    (``traffic.DramTraffic.args``). ``job``, ``values``, ``lone``: for the floors of kernels of one TB.
    """
    from pysim._ffi import dtype_of, ffi, lib

    made = []
    wanted: dict[int, set[LoadFacts]] = {}
    for kernel, known in enumerate(loads):
        wanted.setdefault(programs.index[kernel], set()).add(known)

    def floor_of(number: int, known: LoadFacts, latency: int) -> Floats:
        given = ffi.new("gs_loads *", (*known, latency))
        return np.fromiter((lib.gs_tb_floor(sim, number, variant, given) for variant in range(8)), float, 8)

    for number in range(len(programs.programs)):
        work = np.zeros(8, dtype_of("gs_work"))
        view = ffi.cast("gs_work *", work.ctypes.data)
        for variant in range(8):
            lib.gs_tb_work(sim, number, variant, view + variant)
        floors = {known: floor_of(number, known, 0) for known in (L1, *sorted(wanted.get(number, ())))}
        made.append(ProgramCost(floors[L1], work, floors))
    kernel_of = {number: kernel for kernel, number in enumerate(programs.index)}
    for at, (program, tables) in enumerate(programs.recorded):
        rows, kernel = len(tables.entries), kernel_of[len(programs.programs) + at]
        asked = [(*L1, 0), (*L1, latency), (0, EVERY, 0, latency)]
        work, each = np.zeros(rows, dtype_of("gs_work")), np.zeros((3, rows))
        view = ffi.cast("gs_work *", work.ctypes.data)
        # TBs of a row differ only in addresses, so one of them represents all
        used, tbs = ([0], [0]) if program.tb_rows is None else np.unique(program.tb_rows, return_index=True)
        for row, tb in zip(used, tbs, strict=True):
            for which, what in enumerate(asked):
                each[which, row] = lib.gs_tb_floor_of(sim, kernel, int(tb), ffi.new("gs_loads *", what))
            lib.gs_tb_work_of(sim, kernel, int(tb), view + int(row))
        made.append(ProgramCost(each[0], work, {L1: each[0]}, {kernel: (each[1], each[2], None)}))
    if latency and job is not None:
        known_of = loads or load_facts(job)
        timed: dict[tuple[int, int, int], Floats] = {}
        for kernel, (cold, share) in enumerate(away):
            number, fresh = programs.index[kernel], known_of[kernel][0]
            if number < len(programs.programs):
                for bits in (0, cold):
                    if (number, fresh, bits) not in timed:
                        timed[number, fresh, bits] = floor_of(number, (fresh, bits, 0), latency)
                made[number].lone_cycles[kernel] = timed[number, fresh, 0], timed[number, fresh, cold], share
    singles = _singles(sim, job, loads, values, lone) if job is not None and loads else {}
    for kernel, floor in singles.items():
        made[programs.index[kernel]].lone_tb_floor[kernel] = floor
    if job is not None and loads:
        fill_slice_traffic(sim, job, programs, made, values)
    return made


def shared_variants(job: Job) -> list[NDArray[np.int64]]:
    """Return the variants of each kernel's TBs; kernels of one grid share an array, recorded ones do not."""
    known: dict[tuple[int, int, int], NDArray[np.int64]] = {}
    made: list[NDArray[np.int64]] = []
    for kernel in job.kernels:
        if isinstance(kernel.program, RecordedProgram):
            made.append(tb_variants(kernel))
            continue
        if kernel.grid not in known:
            known[kernel.grid] = tb_variants(kernel)
        made.append(known[kernel.grid])
    return made
