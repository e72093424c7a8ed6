"""Code of one warp after its SASS: runs of instructions by pipe, what they wait for, and their counts.

A run (:meth:`Warp.mix`) is the instructions between two memory ops, waits or barriers of the SASS.
``stall`` are the cycles for which a lone warp would wait inside it for results of fixed latency, beyond the
time that its pipes take, found by issuing the SASS in order: FFMA, IMAD and ALU results after 4 cycles,
shared memory 23, SHFL 24, MUFU 17, HMMA 24 (measured, H200); IMAD.WIDE 5, LDSM 29, LDC, S2R and S2UR 25 to
30, ULDC 10, uniform results 7 (assumed: nobody published them).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.isa import UNNEEDED
from pysim.program.job import MMA_16816, Access, Kernel, Tensor
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import OP, Code, Op, Pattern, Program, TensorTile
from pysim.program.warp_specialized import warp_specialized

from .blocks import Block
from .lanes import sectors

if TYPE_CHECKING:
    from collections.abc import Callable

    At = Callable[[str, int], tuple[Pattern, ...]]

    from numpy.typing import NDArray

# Where Hopper executes an instruction: the pipe of the simulator, and the counter of the profiler.
# The counters of 82 kernels agree with this table to the last instruction: a load of a special register runs
# on lsu for thread indices and through adu for TB indices, VIADD through fma, and branches, ULDC and
# UMOV through none.
PIPES: Mapping[str, tuple[str, str]] = {
    "ffma": ("fp32", "fma"),  # FFMA, FADD, FMUL: either half
    # IMAD, VIADD: the heavy half alone, two cycles. A sub-core issues one instruction a cycle, so FFMA and
    # IMAD together are limited by the sum alone unless a stretch is mostly IMAD; none here is.
    "imad": ("fp32", "fma"),
    "alu": ("int", "alu"),  # IADD3, LOP3, ISETP, LEA, SHF, SEL, MOV, FMNMX, F2FP
    "xu": ("sfu", "xu"),  # MUFU, I2F, FCHK
    "hmma": ("tensor", "tensor"),  # HMMA.16816
    "hfma2": ("fp16", "tensor"),  # HFMA2.MMA, which compilers move constants with
    "adu": ("control", "adu"),  # LDC, S2UR, S2R of a TB index
    "uni": ("control", "uniform"),
    "cbu": ("control", "cbu"),  # BSSY, BSYNC, a predicated EXIT
    "none": ("control", "none"),  # ULDC, UMOV, BRA, NOP, DEPBAR
    "s2r": ("", "lsu"),  # S2R of a thread index: a shared-memory wavefront each
    "lsu": ("", "lsu"),  # LDGDEPBAR
    "smem": ("", "lsu"),  # LDS, STS, LDSM, SHFL
    "void": ("", "lsu"),  # @!PT LDS RZ, which stands before cp.async and loads nothing
    "lds64": ("", "lsu"),  # LDS among FFMAs, see WRITES
    "lds128": ("", "lsu"),
}
# Registers that a load from shared memory writes. Two of them take an issue slot of arithmetic: beside FFMAs
# that fill all slots LDS.32 takes 1.5 slots, LDS.64 2.0, LDS.128 2.8 to 3.5 (measured, H200: h200_parts.csv).
WRITES = {"lds64": 2, "lds128": 4}
STORES = 4  # the slot of stores; loads take the others
# what L1 counts, a sector each
SECTORS = ("l1_load_sectors", "l1_store_sectors")
COUNTERS = ("inst", "fma", "alu", "lsu", "xu", "tensor", "uniform", "cbu", "adu", "wavefronts")
_OPS: Mapping[int, str] = {
    OP["LOAD"]: "lsu",
    OP["STORE"]: "lsu",
    OP["REDUCE"]: "lsu",
    OP["BARRIER"]: "adu",
    OP["EXIT"]: "cbu",
}


@dataclass(slots=True)
class Warp:
    """Builds the code of one warp; ``tally[i]`` is what the profiler would count for op i."""

    code: Code = field(default_factory=Code)
    output: TensorTile | None = None  # what has been stored when the warp ends
    tally: list[Counter[str]] = field(default_factory=list)

    def _count(self, counts: Mapping[str, int] | None = None) -> None:
        """Tally the ops that were added last; ``counts`` belongs to the last of them."""
        for op in self.code.ops[len(self.tally) :]:
            made: Counter[str] = Counter()
            if op.kind in _OPS:
                made.update({"inst": op.issue, _OPS[op.kind]: op.issue})
            if op.patterns:
                touched = [sectors(p) for p in op.patterns]
                # warps with patterns of their own share the code: each counts for its part
                mean = Fraction(sum(touched), len(touched))
                made[SECTORS[op.kind != OP["LOAD"]]] += mean  # type: ignore[assignment]
            self.tally.append(made)
        if counts:
            self.tally[-1].update(counts)

    def mix(self, stall: int = 0, waves: int = 0, back: int | None = None, **pipes: int) -> None:
        """Add a run of instructions, by :data:`PIPES`; ``waves``: shared-memory wavefronts of smem.

        ``back``: the next instruction waits for shared memory except for the last ``back`` wavefronts.
        """
        waves += pipes.get("s2r", 0)
        if "void" in pipes:
            if back is not None or waves != pipes["void"]:
                raise WorkloadError(f"LDS RZ beside what is waited for: {waves} wavefronts of {dict(pipes)}")
            back = UNNEEDED
        sim: Counter[str] = Counter()
        seen: Counter[str] = Counter(wavefronts=waves)
        for name, count in pipes.items():
            pipe, counter = PIPES[name]
            sim[pipe] += count
            seen[counter] += count
            seen["inst"] += count
        smem_ops = sim.pop("", 0)
        writes = sum(count * WRITES.get(name, 0) for name, count in pipes.items())
        self.code.compute(
            smem=waves,
            smem_ops=smem_ops,
            chain=stall,
            smem_back=back,
            conflicts=writes // 2,
            **{k: n for k, n in sim.items() if n},
        )
        self._count(seen)

    def load(
        self,
        slot: int,
        *patterns: Pattern,
        bypass: bool = False,
        stages: int = 0,
        level: int = 2,
        ahead: int = 0,
        smem: int = 0,
    ) -> None:
        """Add a load of a pattern, or of one a warp; see :meth:`pysim.Code.load`."""
        self.code.load(slot, *patterns, bypass_l1=bypass, stages=stages, level=level, ahead=ahead, smem=smem)
        self._count()

    def store(self, slot: int, *patterns: Pattern, level: int = 2) -> None:
        """Add a store."""
        self.code.store(slot, *patterns, level=level)
        self._count()

    def wait(self, *slots: int, stages: int = 0, level: int = 2) -> None:
        """Wait until the loads of slots have arrived."""
        for slot in slots:
            self.code.wait(slot, stages=stages, level=level)
        self._count()

    def run(self, block: Block, at: At | None = None, level: int = 2, bypass: bool = False) -> None:
        """Add a stretch of SASS (``blocks``).

        ``at(name, offset)`` makes the pattern of a memory op, or one a warp; ops without a name are "0",
        "1", ... in order. Loop counter ``level`` moves them; ``bypass``: loads bypass L1.
        """
        unnamed = 0
        for part in block:
            if not isinstance(part, str):
                stall, waves, pipes, *back = part
                self.mix(stall, waves, *back, **pipes)
                continue
            kind, *place = part.split()
            if kind.startswith("wait"):
                self.wait(int(kind[4:]))
            elif kind == "bar":
                self.barrier()
            elif kind == "taken":
                self.code.wait_operands_read()
                self._count()
            elif kind == "exit":
                self.exit()
            else:
                name, offset = (place[0], int(place[1])) if place else (str(unnamed), 0)
                unnamed += 1
                assert at is not None
                if kind == "st":
                    self.store(STORES, *at(name, offset), level=level)
                else:
                    self.load(int(kind[2:]), *at(name, offset), level=level, bypass=bypass)

    def run_with(
        self, block: Block, load: Callable[[int], None], group: Callable[[], None] | None = None
    ) -> None:
        """Add a stretch whose loads are added by ``load(number)``: its slot, or which LDGSTS it is."""
        copies = 0
        for part in block:
            if isinstance(part, str) and part.startswith("ld"):
                load(int(part[2]))
            elif part == "cp":
                load(copies)
                copies += 1
            elif part == "group":
                assert group is not None
                group()
            else:
                self.run((part,))

    def barrier(self) -> None:
        """Add BAR.SYNC."""
        self.code.barrier()
        self._count()

    def needs(self, part: TensorTile, *, level: int = 2, ahead: int = 0) -> None:
        """Mark that the code from here reads a part of an argument; see :meth:`pysim.Code.mark_input`."""
        self.code.mark_input(part, level=level, ahead=ahead)
        self._count()

    def main_done(self) -> None:
        """Mark the end of the main loop."""
        self.code.mark_main_loop_end()
        self._count()

    def exit(self) -> None:
        """Add EXIT, after the mark of what the warp has stored."""
        if self.output is not None:
            self.code.mark_output(self.output, level=2)
        self.code.exit()
        self._count()

    def begin(self) -> int:
        """Return a mark for :meth:`end`."""
        return self.code.loop_begin()

    def end(self, mark: int, iterations: int, level: int = 0) -> None:
        """Repeat what was added since ``mark``; one iteration needs no op."""
        if iterations > 1:
            self.code.loop_end(mark, iterations, level)
        self._count()

    @property
    def ops(self) -> tuple[Op, ...]:
        """The ops of the warp."""
        return tuple(self.code.ops)

    def counts(self) -> Counter[str]:
        """Return what the profiler would count for one warp, loops included."""
        total: Counter[str] = Counter()
        times = [1] * len(self.tally)
        for at, op in enumerate(self.code.ops):
            if op.kind == OP["LOOP"]:
                times[op.target : at] = [t * op.count for t in times[op.target : at]]
        for n, each in zip(times, self.tally, strict=True):
            for name, count in each.items():
                total[name] += n * count
        return total


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel and the counts of the instructions that it executes."""

    kernel: Kernel
    counts: Mapping[str, int]


def launch(
    name: str,
    grid: tuple[int, int, int],
    code: Sequence[Sequence[Warp]],
    tb_rows: NDArray[np.int64] | None,
    args: Sequence[Tensor],
    accesses: Sequence[Access],
    *,
    warps: int,
    registers: int,
    smem: int = 0,
    stream: int = 0,
    parameters: int = 1,
) -> Launch:
    """Make a kernel of ``code[row][warp]``, or ``code[row][0]`` where all warps of a row run the same.

    ``tb_rows`` is the row of each TB (None: all are of row 0). ``registers`` a thread, ``smem``
    bytes a TB. ``parameters``: pieces of 64 B from c[0x0][0x200] on that its SASS reads.
    """
    total = grid[0] * grid[1] * grid[2]
    many = np.bincount(tb_rows, minlength=len(code)) if tb_rows is not None else np.array([total])
    counts: Counter[str] = Counter()
    for row, tbs in zip(code, many.tolist(), strict=True):
        for warp in row:
            for counter, count in warp.counts().items():
                counts[counter] += count * tbs * (warps // len(row))
    program: Program | RecordedProgram
    if len(code) == 1 and len(code[0]) == 1:
        program = Program(name, (code[0][0].ops,), warps, registers, smem, len(args))
    else:
        every = [tuple(w.ops for w in row) * (warps // len(row)) for row in code]
        which = None if tb_rows is None else tb_rows.astype(np.uint32)
        program = warp_specialized(name, every, which, registers=registers, smem=smem, args=len(args))
    kernel = Kernel(
        name,
        program,
        grid,
        tuple(args),
        tuple(accesses),
        stream,
        parameter_lines=parameters,
        tensor=MMA_16816 if counts["tensor"] else "",
    )
    return Launch(kernel, {c: int(counts[c]) for c in (*COUNTERS, *SECTORS)})


def as_stage(made: Launch, of: Callable[[], Launch]) -> Launch:
    """Return a launch whose kernel knows its form as a stage of a persistent kernel, ``of()``."""
    return replace(made, kernel=replace(made.kernel, as_stage=lambda: of().kernel))


def resizable(made: Launch, of: Callable[[int], Launch]) -> Launch:
    """Return a launch whose kernel knows its form with another number of warps a TB, ``of(warps)``."""
    return replace(made, kernel=replace(made.kernel, with_warps=lambda warps: of(warps).kernel))
