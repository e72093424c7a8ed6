"""Warp programs: a builder that front ends use, and the arrays that the core reads.

A program has up to eight variants (sum of 1: last TB in x, 2: last in y, 4: last in z), each with its own
ops. Compute blocks longer than ``block_max`` instructions are cut when a job is handed to the core, not here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pysim.errors import WorkloadError
from pysim.isa import OPS, UNNEEDED
from pysim.params import PIPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

OP = {name: index for index, (name, _) in enumerate(OPS)}
PIPE = {name: index for index, (name, _) in enumerate(PIPES)}
SLOTS = 5
LEVELS = 3


@dataclass(frozen=True, slots=True)
class Pattern:
    """Addresses that the lanes of a warp access in one memory op, affine in TB, warp and loop counters.

    Lane l of a warp accesses ``width`` bytes at ::

        args[arg] + base + bx*x + by*y + bz*z + warp*w + step*i + step2*j + (l // minor)*s1 + (l % minor)*s0

    All distances are in bytes. x, y, z: TB in the grid; w: warp in the TB; i: counter of the op's loop level
    (plus the op's ``ahead``); j: counter of loop level ``level2``.

    Parameters
    ----------
    arg
        Which of the kernel's ``args`` is addressed.
    width
        Bytes a lane: 1, 2, 4, 8 or 16.
    base, bx, by, bz, warp, step, step2, level2, s0, s1, minor
        The terms above.
    lanes
        Bit mask of active lanes, 32 bits.
    offsets
        32 distances of the lanes in bytes, where ``s0``, ``s1`` and ``minor`` do not describe them.
    into, into_pitch
        Of a cp.async: lane 0 writes ``into`` bytes after the start of a 128 B line of shared memory, and each
        ``minor`` lanes ``into_pitch`` bytes after the lanes before. Lanes whose data goes to another line, or
        to other sectors, of shared memory are a request of their own.

    Raises nothing itself: addresses outside of memory are a WorkloadError when the job is simulated.

    >>> row = Pattern(0, 4, by=4096, warp=128, s0=4)  # a warp reads 128 B of row y, one word a lane
    >>> row.by, row.lanes == 0xFFFFFFFF
    (4096, True)
    """

    arg: int
    width: int
    base: int = 0
    bx: int = 0
    by: int = 0
    bz: int = 0
    warp: int = 0
    step: int = 0
    step2: int = 0
    level2: int = 0
    s0: int = 0
    s1: int = 0
    minor: int = 32
    lanes: int = 0xFFFFFFFF
    offsets: tuple[int, ...] = ()
    into: int = 0
    into_pitch: int = 0


@dataclass(frozen=True, slots=True)
class Affine:
    """A row or column in elements: base + bx*x + by*y + bz*z + step*(loop counter of the op + ahead)."""

    base: int = 0
    bx: int = 0
    by: int = 0
    bz: int = 0
    step: int = 0


@dataclass(frozen=True, slots=True)
class TensorTile:
    """A part of an argument's tensor that a mark speaks of: ``rows`` x ``cols`` elements from a place on.

    ``times`` such parts, each ``apart`` columns from the one before.
    """

    arg: int
    row: Affine
    rows: int
    col: Affine
    cols: int
    times: int = 1
    apart: int = 0


@dataclass(frozen=True, slots=True)
class Sem:
    """Which semaphore an op means; fields as in ``gs_sem`` (core_c/gs_api.h)."""

    row: Affine = Affine()
    col: Affine = Affine()
    rows: int = 1
    cols: int = 1
    stride: int = 1
    first: int = 0
    base: int = 0
    times: int = 1
    apart: int = 0
    ahead: int = 0
    wrap: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """Tiles of a persistent kernel, as ``gs_stage`` (core_c/gs_api.h); ops count from the variant's first."""

    grid: tuple[int, int, int]
    first: int
    end: int
    entry: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Op:
    """One op; fields as in ``gs_op`` (core_c/gs_api.h). ``pattern`` is one pattern or one a warp."""

    kind: int
    slot: int = 0
    stages: int = 0
    level: int = 0
    bypass_l1: bool = False
    smem: int = 0
    issue: int = 0
    conflicts: int = 0
    chain: int = 0
    smem_wait: int = 0
    pipes: tuple[int, ...] = (0,) * len(PIPES)
    patterns: tuple[Pattern, ...] = ()
    count_plus: int = 0
    count: int = 0
    target: int = 0
    mark: str = ""
    part: TensorTile | None = None
    sem: Sem | None = None
    stage: Stage | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """Code of a kernel: ``variants[v]`` is a tuple of ops; 1 or 8 variants."""

    name: str
    variants: tuple[tuple[Op, ...], ...]
    warps: int
    registers: int
    smem: int
    args: int


@dataclass(frozen=True, slots=True, eq=False)
class RecordedAccesses:
    """Recorded accesses as the core reads them where they lie; fields as in ``gs_job`` (core_c/gs_api.h).

    ``accesses``: uint64; ``templates``: gs_template; ``parts``: gs_part. They may be mapped from a file.
    """

    accesses: NDArray[Any]
    templates: NDArray[Any]
    parts: NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class CodeTables:
    """Code of one recorded kernel as the core's tables, of one device.

    ``sems`` are the semaphores that its POST and POLL name by their place.

    ``ops`` (gs_op), ``patterns`` (gs_pattern) and ``lanes`` (int32, n x 32) count from 0; ``entries`` is
    uint32 (rows, warps): the op at which each warp of a row begins.
    """

    ops: NDArray[Any]
    patterns: NDArray[Any]
    lanes: NDArray[Any]
    entries: NDArray[Any]
    sems: Sequence[Sem] = ()


@dataclass(frozen=True, slots=True, eq=False)
class RecordedProgram:
    """Code of a kernel that was recorded: warps and TBs may differ. It belongs to one launch.

    ``lowered(values)`` returns its :class:`CodeTables` for the device with these encoded parameters.
    ``tb_rows``: uint32, the row of each TB, or None where all have row 0. ``blocks``: uint32, for each warp
    (TB * warps + warp) where its accesses begin in the slice of ``memory`` from ``first_access`` on, or None.
    ``rewritten(change)`` returns the same code with each op list changed (None: code of a trace is as it is).
    """

    name: str
    warps: int
    registers: int
    smem: int
    args: int
    lowered: Callable[[Mapping[str, int]], CodeTables]
    memory: RecordedAccesses | None = None
    tb_rows: NDArray[Any] | None = None
    blocks: NDArray[Any] | None = None
    first_access: int = 0
    accesses: int = 0
    rewritten: Callable[[Callable[[tuple[Op, ...]], tuple[Op, ...]]], RecordedProgram] | None = None


@dataclass(slots=True)
class Code:
    """Builds the op list of one variant.

    >>> code = Code()
    >>> with_loop = code.loop_begin()
    >>> code.compute(fp32=512, smem=64, chain=4)
    >>> code.loop_end(with_loop, 16)
    >>> code.exit()
    >>> [OPS[op.kind][0] for op in code.ops]
    ['COMPUTE', 'LOOP', 'EXIT']
    """

    ops: list[Op] = field(default_factory=list)

    def _add(self, kind: str, **fields: Any) -> None:
        self.ops.append(Op(OP[kind], **fields))

    def compute(
        self,
        *,
        smem: int = 0,
        smem_ops: int = 0,
        chain: int = 4,
        conflicts: int = 0,
        smem_back: int | None = None,
        **pipes: int,
    ) -> None:
        """Add a run of instructions: ``pipe=count`` each.

        ``smem_ops`` of them access shared memory, ``smem`` wavefronts in all. What follows may need what
        they load: with ``smem_back`` the warp goes on when all results of shared memory are there but those
        of its last ``smem_back`` wavefronts; without, ``chain`` cycles after the last wavefront has passed.
        With :data:`pysim.isa.UNNEEDED` it waits for none, and nothing waits for what the run asks for.
        """
        counts = [0] * len(PIPES)
        for name, count in pipes.items():
            if name not in PIPE:
                raise WorkloadError(f"no pipe {name!r}: pipes are {', '.join(PIPE)}")
            counts[PIPE[name]] = count
        issue = sum(counts) + smem_ops
        if smem_back is not None and not 0 <= smem_back <= UNNEEDED:
            raise WorkloadError(f"smem_back = {smem_back}: must be 0 to {UNNEEDED}")
        if issue > 0:
            made = tuple(counts)
            wait = 0 if smem_back is None else smem_back + 1
            self._add(
                "COMPUTE",
                smem=smem,
                issue=issue,
                conflicts=conflicts,
                chain=chain,
                smem_wait=wait,
                pipes=made,
            )

    def load(
        self,
        slot: int,
        *patterns: Pattern,
        bypass_l1: bool = False,
        stages: int = 0,
        level: int = 0,
        ahead: int = 0,
        limit: int = 0,
        smem: int = 0,
    ) -> None:
        """Add a load: one pattern for all warps or one a warp; ``smem``: 1, it copies into shared memory.

        Its iteration is ``counter[level] + ahead``; from ``limit`` on (0: never) it is skipped.
        """
        where = {"slot": slot, "stages": stages, "level": level, "patterns": patterns}
        self._add("LOAD", issue=1, bypass_l1=bypass_l1, count_plus=ahead, count=limit, smem=smem, **where)

    def store(self, slot: int, *patterns: Pattern, level: int = 0) -> None:
        """Add a store."""
        self._add("STORE", slot=slot, level=level, issue=1, patterns=patterns)

    def reduce(self, slot: int, *patterns: Pattern, level: int = 0) -> None:
        """Add a reduction at L2 (a commutative update)."""
        self._add("REDUCE", slot=slot, level=level, issue=1, patterns=patterns)

    def wait(self, slot: int, *, stages: int = 0, level: int = 0) -> None:
        """Wait until a slot is empty."""
        self._add("WAIT", slot=slot, stages=stages, level=level)

    def taken(self) -> None:
        """Wait until the load/store unit has taken the warp's copies, whose registers are written anew."""
        self._add("TAKEN")

    def barrier(self) -> None:
        """Barrier of the TB (one instruction)."""
        self._add("BARRIER", issue=1)

    def delay(self, cycles: int) -> None:
        """Hold the warp."""
        self._add("DELAY", count=cycles)

    def loop_begin(self) -> int:
        """Return a mark for :meth:`loop_end`."""
        return len(self.ops)

    def loop_end(self, mark: int, iterations: int, level: int = 0) -> None:
        """Repeat the ops since ``mark``; a body of one iteration needs no op."""
        if iterations <= 0:
            raise WorkloadError(f"loop of {iterations} iterations: must be positive")
        self._add("LOOP", level=level, count=iterations, target=mark)

    def needs(self, part: TensorTile, *, level: int = 0, ahead: int = 0, limit: int = 0) -> None:
        """Mark that what follows reads a part of an argument, which other kernels may make.

        All warps of the TB come by here together. Its loop counter is used as :meth:`load` uses its own.
        """
        self._add("MARK", mark="needs", part=part, level=level, count_plus=ahead, count=limit)

    def loads(self) -> None:
        """Mark where the loads of a step begin, those that need nothing of other kernels first."""
        self._add("MARK", mark="loads")

    def made(self, part: TensorTile, *, level: int = 0) -> None:
        """Mark that the TB's stores to a part of an argument have been issued. All warps come by here."""
        self._add("MARK", mark="made", part=part, level=level)

    def turn(self, flag: int | Sem | None = None, *, level: int = 0) -> None:
        """Mark where a TB waits for the one before it in z, at the same x and y, to come by ``turned``.

        With ``flag`` it waits for semaphores of the kernel's own (``Kernel.flags``), counted from 0.
        """
        self._add("MARK", mark="turn", sem=Sem(first=flag) if isinstance(flag, int) else flag, level=level)

    def turned(self, flag: int | Sem | None = None, *, level: int = 0) -> None:
        """Mark where the TB behind it in z may go on: its stores up to here are published.

        With ``flag`` it adds 1 to this semaphore of the kernel's own.
        """
        self._add("MARK", mark="turned", sem=Sem(first=flag) if isinstance(flag, int) else flag, level=level)

    def main_done(self) -> None:
        """Mark where the main loop is over: a late trigger's place."""
        self._add("MARK", mark="main_done")

    def post(self, sem: Sem, *, level: int = 0, fence: bool = True) -> None:
        """Fence and add 1 to a semaphore, by the first warp of the TB."""
        self._add("POST", sem=sem, level=level, count=int(not fence))

    def poll(self, sem: Sem, *, level: int = 0, ahead: int = 0, limit: int = 0) -> None:
        """Wait with all warps of the TB until semaphores are complete."""
        self._add("POLL", sem=sem, level=level, count_plus=ahead, count=limit)

    def trigger(self) -> None:
        """Allow the kernels behind this one to start, as far as this TB is concerned."""
        self._add("TRIGGER")

    def depend(self) -> None:
        """Wait until the kernels before have ended."""
        self._add("DEPEND")

    def exit(self) -> None:
        """End the warp."""
        self._add("EXIT", issue=1)
