"""Warp programs: the ops of a kernel's warps, the builder of op lists, and the tables that the core reads.

A program has one variant, or eight: TBs use variant 1 * (last in x) + 2 * (last in y) + 4 * (last in z). Each
variant has its own op list. Compute blocks longer than ``gpu.sm.block_max`` instructions are split when the
job is lowered (``ops.py``), as the limit is a parameter of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pysim.errors import WorkloadError
from pysim.isa import OPS, UNNEEDED
from pysim.params import PIPES

if TYPE_CHECKING:
    from .tiles import Box

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

    Raises WorkloadError when the job is simulated, for a field out of range and for addresses outside of what
    the kernel's accesses declare.

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

    def __post_init__(self) -> None:
        """Take any sequence of offsets."""
        given: object = self.offsets
        if isinstance(given, tuple):
            return
        try:
            offsets = tuple(map(int, given))  # type: ignore[call-overload]
        except (TypeError, ValueError):
            raise WorkloadError(f"pattern: offsets = {_word(given)}: must be 32 integers") from None
        object.__setattr__(self, "offsets", offsets)


@dataclass(frozen=True, slots=True)
class Affine:
    """A row or column, affine in TB and loop counter: base + bx*x + by*y + bz*z + step*(counter + ahead).

    In elements. x, y, z: the TB in the grid; counter: that of the op's loop level; ahead: the op's.
    """

    base: int = 0
    bx: int = 0
    by: int = 0
    bz: int = 0
    step: int = 0


@dataclass(frozen=True, slots=True)
class TensorTile:
    """A rectangle of a tensor that a mark names: ``rows`` x ``cols`` elements of argument ``arg``.

    It begins at (``row``, ``col``). With ``count`` > 1 it is that many rectangles, each ``spacing`` columns
    after the one before.
    """

    arg: int
    row: Affine
    rows: int
    col: Affine
    cols: int
    count: int = 1
    spacing: int = 0


@dataclass(frozen=True, slots=True)
class Sem:
    """The semaphores that an op polls or posts; fields of ``gs_sem`` (core_c/gs_program.h)."""

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
    """The tiles of one fused kernel in a persistent kernel; fields of ``gs_stage`` (core_c/gs_program.h).

    ``first``, ``end`` and ``entry`` are indices into the op list of the variant.
    """

    grid: tuple[int, int, int]
    first: int
    end: int
    entry: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Op:
    """One op; fields as in ``gs_op`` (core_c/gs_program.h). ``pattern`` is one pattern or one a warp."""

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
    tile: TensorTile | None = None
    sem: Sem | None = None
    stage: Stage | None = None
    box: Box | None = None
    per_warp: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """Code of a kernel: ``variants[v]`` is a tuple of ops; 1 or 8 variants."""

    name: str
    variants: tuple[tuple[Op, ...], ...]
    warps: int
    registers: int
    smem: int
    args: int

    def __post_init__(self) -> None:
        """Take lists of ops, as ``Code.ops`` is one, and refuse what is none."""
        given: object = self.variants
        if not isinstance(given, tuple | list):
            raise WorkloadError(f"program {self.name}: variants = {_word(given)}: must be a tuple")
        for number, ops in enumerate(given):
            if not isinstance(ops, tuple | list) or any(not isinstance(op, Op) for op in ops):
                hint = ": give its ops" if isinstance(ops, Code) else ""
                raise WorkloadError(
                    f"program {self.name}: variant {number} is {_word(ops)}: must be a tuple of ops{hint}"
                )
        if not isinstance(given, tuple) or any(not isinstance(ops, tuple) for ops in given):
            object.__setattr__(self, "variants", tuple(tuple(ops) for ops in given))


def _word(value: object) -> str:
    return type(value).__name__


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
        """Add a block of instructions: ``pipe=count`` for each pipe, such as ``fp32=512``.

        ``smem_ops`` more access shared memory and take ``smem`` wavefronts in all. ``conflicts``:
        cycles that register bank conflicts add. ``chain``: cycles from the issue of the last instruction
        until the next op may issue. Results of shared memory: with ``smem_back`` the warp continues once all
        but its last ``smem_back`` wavefronts have returned; without, ``chain`` cycles after the last
        wavefront. With :data:`pysim.isa.UNNEEDED` neither the warp nor a later op waits for these results.

        Raises WorkloadError for an unknown pipe and a ``smem_back`` out of range.
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
        """Add a global load: one pattern for all warps, or one a warp. ``smem=1``: a cp.async.

        :meth:`wait` on the same ``slot`` waits for it. With ``stages`` > 0 the slots ``slot`` to
        ``slot + stages - 1`` are used in turn, by iteration. The iteration is ``counter[level] + ahead``;
        from ``limit`` on (0: never) the load is skipped.
        """
        where = {"slot": slot, "stages": stages, "level": level, "patterns": patterns}
        self._add("LOAD", issue=1, bypass_l1=bypass_l1, count_plus=ahead, count=limit, smem=smem, **where)

    def store(self, slot: int, *patterns: Pattern, level: int = 0) -> None:
        """Add a global store; :meth:`wait` on its slot waits for the acknowledgement."""
        self._add("STORE", slot=slot, level=level, issue=1, patterns=patterns)

    def reduce(self, slot: int, *patterns: Pattern, level: int = 0) -> None:
        """Add a reduction at L2 (a commutative update)."""
        self._add("REDUCE", slot=slot, level=level, issue=1, patterns=patterns)

    def wait(self, slot: int, *, stages: int = 0, level: int = 0) -> None:
        """Wait until all accesses of a slot have completed (with ``stages``: the slot of this iteration)."""
        self._add("WAIT", slot=slot, stages=stages, level=level)

    def wait_operands_read(self) -> None:
        """Wait until the LSU has read the address registers of the warp's async copies.

        SASS has this wait where the next instructions overwrite these registers.
        """
        self._add("TAKEN")

    def barrier(self) -> None:
        """Add a barrier of the TB (``__syncthreads``; one instruction)."""
        self._add("BARRIER", issue=1)

    def delay(self, cycles: int) -> None:
        """Hold the warp for that many SM cycles."""
        self._add("DELAY", count=cycles)

    def loop_begin(self) -> int:
        """Begin a loop body; return the position that :meth:`loop_end` takes."""
        return len(self.ops)

    def loop_end(self, mark: int, iterations: int, level: int = 0) -> None:
        """Repeat the ops since ``mark`` (of :meth:`loop_begin`); ``level``: the loop's counter, 0 to 2.

        Raises WorkloadError if ``iterations`` is not positive.
        """
        if iterations <= 0:
            raise WorkloadError(f"loop of {iterations} iterations: must be positive")
        self._add("LOOP", level=level, count=iterations, target=mark)

    def mark_input(self, tile: TensorTile, *, level: int = 0, ahead: int = 0, limit: int = 0) -> None:
        """Mark that the loads after it read ``tile``, which an earlier kernel may write.

        All warps of the TB must pass it. ``level``, ``ahead`` and ``limit`` are those of :meth:`load`.
        """
        self._add("MARK", mark="input", tile=tile, level=level, count_plus=ahead, count=limit)

    def mark_loads(self) -> None:
        """Mark where the loads of a step begin; those of tensors that no kernel writes come first."""
        self._add("MARK", mark="loads")

    def mark_output(self, tile: TensorTile, *, level: int = 0) -> None:
        """Mark that the TB has issued all its stores to ``tile``. All warps of the TB must pass it."""
        self._add("MARK", mark="output", tile=tile, level=level)

    def mark_tb_wait(self, flag: int | Sem | None = None, *, level: int = 0) -> None:
        """Mark where a TB waits for the TB before it in z, at the same x and y (serial split-K).

        It waits until that TB has passed :meth:`mark_tb_signal`. With ``flag`` it waits instead for a
        semaphore of the kernel: an index into ``Kernel.tb_semaphores``, or a :class:`Sem`.
        """
        self._add("MARK", mark="tb_wait", sem=Sem(first=flag) if isinstance(flag, int) else flag, level=level)

    def mark_tb_signal(self, flag: int | Sem | None = None, *, level: int = 0) -> None:
        """Mark where the TB after it in z may proceed: the stores before the mark are visible to it.

        With ``flag`` it adds 1 to this semaphore of the kernel instead.
        """
        self._add(
            "MARK", mark="tb_signal", sem=Sem(first=flag) if isinstance(flag, int) else flag, level=level
        )

    def mark_main_loop_end(self) -> None:
        """Mark the end of the main loop, where ``scheme.sync.trigger = late`` allows dependents to launch."""
        self._add("MARK", mark="main_loop_end")

    def post(self, sem: Sem, *, level: int = 0, fence: bool = True) -> None:
        """Add 1 to a semaphore by the first warp of the TB, after a fence unless ``fence`` is False."""
        self._add("POST", sem=sem, level=level, count=int(not fence))

    def poll(self, sem: Sem, *, level: int = 0, ahead: int = 0, limit: int = 0) -> None:
        """Hold all warps of the TB until the semaphores have got their posts.

        ``level``, ``ahead`` and ``limit`` are those of :meth:`load`.
        """
        self._add("POLL", sem=sem, level=level, count_plus=ahead, count=limit)

    def launch_dependents(self) -> None:
        """Allow dependent kernels to launch, once all TBs have (``griddepcontrol.launch_dependents``)."""
        self._add("TRIGGER")

    def grid_dependency_wait(self) -> None:
        """Wait until the prerequisite kernels have completed (``griddepcontrol.wait``)."""
        self._add("DEPEND")

    def exit(self) -> None:
        """End the warp."""
        self._add("EXIT", issue=1)
