"""Stream-K: a fixed grid of TBs shares the steps of a GEMM's main loops (Osama et al., PPoPP 2023).

All tiles of C have ``steps`` steps of the main loop each. Every TB takes an even share of them, which may
begin and end within a tile. The TB that runs a tile's last step owns it; others leave their sums in a
workspace and post a flag, and the owner waits for the flags, adds the sums in the order of K, and stores C.
As CUTLASS 2.11 does, a TB takes the tiles of its share backwards, so that partial sums come first, and waits
only for lower TBs: these have started before it and post before they wait, so no deadlock is possible.

Kinds: ``basic`` shares all steps; ``one_tile`` runs whole tiles, as many as fill all TBs, and shares the
steps of the rest; ``two_tile`` shares the steps of the rest and of one round of tiles more first, so that
each TB has between one and two tiles and nearly all sums come from one TB, and runs whole tiles then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.occupancy import occupancy
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import OP, SLOTS, Affine, Code, Op, Pattern, Program
from pysim.program.warp_specialized import warp_specialized

from . import cutlass, volta_gemm
from .split_k_serial import FIRST_Z, LAST_X, LAST_Y, LAST_Z
from .tiles import WARP
from .tiling import Tiling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.machine.config import Config

    from .cutlass import Multistage

    Case = volta_gemm.Case | cutlass.Case
    Table = NDArray[np.int64]

Kind = Literal["basic", "one_tile", "two_tile"]
KINDS = get_args(Kind)
SUM = 4  # bytes of a sum
# loads of 16 B that an owner has in flight: as many registers as a warp has to spare. Assumed
UNDER_WAY = 8
INTS = 4  # a slot's address; the others are constants beside it
MOST = 1 << 20  # stretches of a GEMM
SLOT = 1  # of the sums' loads; stores go by the next


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps ``first`` to ``end`` of a tile, all of one TB; ``peers``: the TBs that did those before."""

    tile: int
    first: int
    end: int
    peers: range


Schedule = tuple[tuple[Stretch, ...], ...]


def schedule(kind: str, tiles: int, steps: int, slots: int, least: int = 1) -> Schedule:
    """Return the stretches of each TB, in the order in which it does them; no TB is without work.

    ``least``: steps of a share. An owner adds the sums of others one after another, so where few tiles are
    shared, fewer TBs than there are may do it sooner (the paper chooses by a model of the same two costs).
    """
    if kind not in KINDS:
        raise WorkloadError(f"stream_k = {kind}: must be one of {', '.join(KINDS)}")
    if min(tiles, steps, slots, least) < 1:
        raise WorkloadError(
            f"stream_k: {tiles} tiles of {steps} steps on {slots} TBs, {least} at least: must be positive"
        )
    if tiles + slots > MOST:
        raise WorkloadError(f"stream_k: {tiles} tiles on {slots} TBs: at most {MOST} in all")
    waves, rest = divmod(tiles, slots)
    whole = 0
    if kind != "basic" and waves:
        whole = (waves - (kind == "two_tile" and rest > 0)) * slots
    # tiles that are shared come last in one_tile, first in two_tile
    shared = tiles - whole
    begin = whole if kind == "one_tile" else 0
    mine = _shared(begin, shared, steps, min(slots, max(shared, shared * steps // least)))
    count = slots if whole else len(mine)
    mine += [()] * (count - len(mine))
    base = 0 if kind == "one_tile" else shared
    own = [
        tuple(Stretch(tile, 0, steps, range(tb, tb)) for tile in range(base + tb, base + whole, slots))
        for tb in range(count)
    ]
    pairs = zip(own, mine, strict=True)
    return tuple(first + last if kind == "one_tile" else last + first for first, last in pairs)


def _shared(begin: int, tiles: int, steps: int, tbs: int) -> list[tuple[Stretch, ...]]:
    """Share the steps of some tiles among so many TBs, to within one."""
    cuts = [tiles * steps * tb // tbs for tb in range(tbs + 1)] if tbs else [0]
    made = []
    starts = 0  # the TB that has the first step of a tile
    for tb in range(tbs):
        mine = []
        for tile in range(cuts[tb] // steps, -(-cuts[tb + 1] // steps)):
            first = max(cuts[tb] - tile * steps, 0)
            end = min(cuts[tb + 1] - tile * steps, steps)
            if first == 0:
                starts = tb
            mine.append(Stretch(begin + tile, first, end, range(starts if first else tb, tb)))
        made.append(tuple(reversed(mine)))
    return made


def resident(tiling: Tiling | Multistage, config: Config) -> int:
    """Return how many TBs of a tiling a GPU holds at once: the grid of its Stream-K."""
    registers, smem = _room(tiling)
    program = Program(tiling.name, ((),), tiling.warps, registers, smem, 0)
    each = occupancy(Kernel(tiling.name, program, (1, 1, 1), (), ()), config.encoded())
    return each * int(config["gpu.sms"])


def _room(tiling: Tiling | Multistage) -> tuple[int, int]:
    """Return registers of a thread and shared memory of a TB."""
    if isinstance(tiling, Tiling):
        item = 4 if tiling.math == "ffma" else 2
        return tiling.registers(item), tiling.smem(item)
    return tiling.registers, tiling.smem


def workspace(memory: Memory, name: str, tiling: Tiling | Multistage, slots: int) -> Tensor:
    """Allocate the sums that TBs leave: a row for each TB."""
    return memory.tensor(name, slots, tiling.tm * tiling.tn, SUM)


# ---- the program ----
def _place(place: Affine, x: int, y: int) -> Affine:
    return replace(place, base=place.base + place.bx * x + place.by * y, bx=0, by=0, bz=0)


def _placed(op: Op, x: int, y: int, at: int) -> Op:
    """Return an op of the tile at x = y = 0 as that of another tile, ``at`` ops on."""
    part = op.tile
    if part is not None:
        part = replace(part, row=_place(part.row, x, y), col=_place(part.col, x, y))
    patterns = tuple(replace(p, base=p.base + p.bx * x + p.by * y, bx=0, by=0, bz=0) for p in op.patterns)
    return replace(op, patterns=patterns, tile=part, target=op.target + (at if op.kind == OP["LOOP"] else 0))


@lru_cache(maxsize=4096)
def _stretch(case: Case, edges: int, first: int, end: int, begins: bool) -> tuple[tuple[Op, ...], ...]:
    """Return the ops of a stretch of the tile at x = y = 0: those of the main loop, and the epilogue's.

    ``begins``: it is the TB's first, and what is fetched once is fetched.
    """
    main, last, t = Code(), Code(), case.tiling
    valid = case.valid(edges)
    depth = (case.k if end == steps_of(case) else end * t.tk) - first * t.tk
    if isinstance(case, volta_gemm.Case):
        if not begins:
            case = replace(case, tiling=replace(case.tiling, fetch=0))
        t = case.tiling
        volta_gemm.main_loop(main, case, valid, first, depth)
        main.mark_main_loop_end()
        if t.fetch:
            main.compute(int=8, chain=t.fetch - t.fetch // 2)
        volta_gemm.add_slices(main, t)
        volta_gemm.epilogue(last, case, valid, edges | FIRST_Z | LAST_Z, added=True)
    else:
        cutlass.main_loop(main, case, valid, first, depth)
        main.mark_main_loop_end()
        cutlass.epilogue(last, case, valid, edges | FIRST_Z | LAST_Z)
        # the next tile's loads do not wait for these stores
        last.ops = [replace(op, slot=SLOTS - 1) if op.kind == OP["STORE"] else op for op in last.ops]
    return tuple(main.ops), tuple(last.ops)


def steps_of(case: Case) -> int:
    """Return the steps of a tile."""
    return -(-case.k // case.tiling.tk)


class _Writer:
    """Writes the code of one TB."""

    def __init__(self, case: Case, tb: int) -> None:
        self.case, self.tb, self.code = case, tb, Code()
        t = case.tiling
        sums = t.tm * t.tn // (WARP * t.warps)
        self.width = SUM * min(4, sums)
        self.vectors = sums * SUM // self.width
        self.each = self.width // SUM  # sums of a vector

    def _sums(self, tb: int, vector: int) -> Pattern:
        """Return where a vector of all threads lies in the row of a TB."""
        t = self.case.tiling
        across = WARP * self.width
        base = tb * t.tm * t.tn * SUM + vector * t.warps * across
        return Pattern(3, self.width, base=base, warp=across, s0=self.width)

    def _leave(self) -> None:
        self.code.compute(int=INTS)
        for vector in range(self.vectors):
            self.code.store(SLOT + 1, self._sums(self.tb, vector), level=2)
        self.code.mark_tb_signal(self.tb)

    def _collect(self, peers: range) -> None:
        for peer in peers:
            self.code.mark_tb_wait(peer)
            self.code.compute(int=INTS)
            for first in range(0, self.vectors, UNDER_WAY):
                group = range(first, min(first + UNDER_WAY, self.vectors))
                for vector in group:
                    self.code.load(SLOT, self._sums(peer, vector), bypass_l1=True, level=2)
                self.code.wait(SLOT)
                self.code.compute(fp32=len(group) * self.each)

    def add(self, part: Stretch, grid: tuple[int, int], begins: bool) -> None:
        """Add a stretch."""
        x, y = part.tile % grid[0], part.tile // grid[0]
        edges = LAST_X * (x == grid[0] - 1) + LAST_Y * (y == grid[1] - 1)
        main, last = _stretch(self.case, edges, part.first, part.end, begins)
        code = self.code
        if not begins:
            code.barrier()  # all have read their part of shared memory
        at = len(code.ops)
        code.ops += [_placed(op, x, y, at) for op in main]
        if part.end < steps_of(self.case):
            self._leave()
            return
        self._collect(part.peers)
        at = len(code.ops)
        code.ops += [_placed(op, x, y, at) for op in last]


@lru_cache(maxsize=64)
def _program(case: Case, kind: str, slots: int, least: int) -> tuple[RecordedProgram, Schedule]:
    t = case.tiling
    gx, gy, gz = t.grid(case.m, case.n, case.k)
    if gz > 1 or t.split_k > 1:
        raise WorkloadError(f"stream_k: tiling {t.name} splits K already")
    made = schedule(kind, gx * gy, steps_of(case), slots, least)
    code = []
    for tb, parts in enumerate(made):
        writer = _Writer(case, tb)
        for number, part in enumerate(parts):
            writer.add(part, (gx, gy), number == 0)
        writer.code.exit()
        code.append((tuple(writer.code.ops),) * t.warps)
    registers, smem = _room(t)
    which = np.arange(len(code), dtype=np.uint32)
    return warp_specialized(f"stream_k_{t.name}", code, which, registers=registers, smem=smem, args=4), made


# ---- the kernel ----
def _listed(table: Table) -> Callable[[Table], Table]:
    return lambda tbs: table[np.asarray(tbs, np.int64)]


def _accesses(case: Case, made: Schedule, a: Tensor, b: Tensor, c: Tensor, sums: Tensor) -> list[Access]:
    """Return what TBs touch: an access for each tensor and position in their schedules."""
    t, steps = case.tiling, steps_of(case)
    gx = t.grid(case.m, case.n, case.k)[0]
    a_t, b_t, beta = case.a_t, case.b_t, case.beta
    found: list[Access] = []
    for place in range(max(len(parts) for parts in made)):
        of_a, of_b, of_c, left, added = np.zeros((5, len(made), 4), np.int64)
        for tb, parts in enumerate(made):
            if place >= len(parts):
                continue
            part = parts[place]
            x, y = part.tile % gx, part.tile // gx
            down, across = (y * t.tm, min((y + 1) * t.tm, case.m)), (x * t.tn, min((x + 1) * t.tn, case.n))
            deep = part.first * t.tk, min(part.end * t.tk, case.k)
            of_a[tb] = (*deep, *down) if a_t else (*down, *deep)
            of_b[tb] = (*across, *deep) if b_t else (*deep, *across)
            if part.end == steps:
                of_c[tb] = *down, *across
                added[tb] = part.peers.start, part.peers.stop, 0, t.tm * t.tn
            else:
                left[tb] = tb, tb + 1, 0, t.tm * t.tn
        found += [Access(a, "read", _listed(of_a)), Access(b, "read", _listed(of_b))]
        found += [Access(c, "read", _listed(of_c))] if beta and of_c.any() else []
        found += [Access(c, "write", _listed(of_c))] if of_c.any() else []
        found += [Access(sums, "write", _listed(left))] if left.any() else []
        found += [Access(sums, "read", _listed(added))] if (added[:, 0] < added[:, 1]).any() else []
    return found


def stream_k(
    name: str,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    tiling: Tiling | Multistage,
    sums: Tensor,
    *,
    kind: str = "two_tile",
    slots: int = 0,
    least: int = 1,
    a_t: bool = False,
    b_t: bool = False,
    beta: float = 0.0,
    stream: int = 0,
) -> Kernel:
    """Make the kernel C = A B + beta C (``gemm.gemm``) of ``slots`` TBs.

    ``sums`` is the workspace (:func:`workspace`); slots: as many TBs as are resident at once (0: as it has
    rows); least: see :func:`schedule`.
    """
    slots = slots or sums.rows
    case: Case
    if isinstance(tiling, Tiling):
        case = volta_gemm.case_of(name, a, b, c, tiling, a_t=a_t, b_t=b_t, beta=beta)
    else:
        case = cutlass.case_of(name, a, b, c, tiling, a_t=a_t, b_t=b_t, beta=beta)
    if sums.rows < slots or sums.cols != tiling.tm * tiling.tn or sums.item != SUM:
        raise WorkloadError(
            f"{name}: workspace {sums.rows} x {sums.cols}: must be {slots} x {tiling.tm * tiling.tn} of fp32"
        )
    program, made = _program(case, kind, slots, least)
    waits = [(tb, peer) for tb, parts in enumerate(made) for part in parts for peer in part.peers
             if part.end == steps_of(case)]  # fmt: skip
    behind = np.array(waits, np.int64).reshape(-1, 2) if waits else None
    accesses = _accesses(case, made, a, b, c, sums)
    flags = np.ones(len(made), np.int64) if waits else None
    return Kernel(
        name,
        program,
        (len(made), 1, 1),
        (a, b, c, sums),
        tuple(accesses),
        stream,
        tb_semaphores=flags,
        tb_edges=behind,
        library=f"stream_k_{tiling.library}",
        tensor=tiling.tensor,
    )  # fmt: skip
