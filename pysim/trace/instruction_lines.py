"""The instructions that a program issues, as lines of a trace: what does not depend on a warp's path.

Registers carry the dependences. A load has registers of its own until the program has waited for it; the
instructions after the wait read them, up to four each. The last instructions of a compute block depend on
each other for as long as the block's chain asks, and the next instruction reads the result of the last. All
other instructions are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import NamedTuple

from pysim.errors import WorkloadError
from pysim.isa import UNNEEDED
from pysim.params import PIPES
from pysim.program.ops import interleave_classes
from pysim.program.warp_program import Op, Pattern, Program

from .sass import (
    LANES,
    NOTHING,
    SHARED_LOAD,
    SHARED_STORE,
    PipeInstruction,
    pipe_instructions,
    shared_operand,
)

ALL = "ffffffff"  # the mask of all lanes
MOST_SOURCES = 4  # Accel-Sim's reader takes no more
MOST_STRIDE = 2**31 - 1  # of Accel-Sim's reader
LIST_FROM = 14  # characters a lane: about what an address in full takes
ADDRESS = 0  # registers that nothing writes: address pair, operands (two in each bank), shared address
OPERANDS = (2, 3, 4, 5)
SHARED_ADDRESS = 6
FIRST = 8
LAST = 254
BLOCK = 4  # registers for a load, if there are enough: a reader may take any operand to be as wide as 16 B
SHARED_WINDOW = 0x7F0000000000
LOCAL_WINDOW = 0x7F1000000000


class LanePattern(NamedTuple):
    """The part of a pattern that is the same in every TB: the text of its lanes, and its steps in loops."""

    mask: str
    text: str  # width, mode and addresses with holes
    offsets: tuple[int, ...]  # of each hole from the pattern's address
    width: int
    step: int
    step2: int
    level2: int


def lane_pattern(pattern: Pattern) -> LanePattern:
    """Return the lanes of a pattern in the shortest address mode of the format."""
    lanes = [lane for lane in range(LANES) if pattern.lanes >> lane & 1]
    pair = [lane // pattern.minor * pattern.s1 + lane % pattern.minor * pattern.s0 for lane in range(LANES)]
    at = [(pattern.offsets or pair)[lane] for lane in lanes]
    deltas = [b - a for a, b in pairwise(at)]
    offsets = tuple(at[:1])
    even = len(set(deltas)) == 1 and abs(deltas[0]) <= MOST_STRIDE
    if not lanes:
        text = "0"
    elif even and lanes[-1] - lanes[0] == len(deltas):
        text = f"1 0x%x {deltas[0]}"
    else:
        text = " ".join(["2 0x%x", *map(str, deltas)])
        if len(text) > LIST_FROM * len(lanes):
            text, offsets = " ".join(["0", *["0x%x"] * len(lanes)]), tuple(at)
    width = pattern.width
    moved = pattern.step, pattern.step2, pattern.level2
    return LanePattern(f"{pattern.lanes & 0xFFFFFFFF:08x}", f"{width} {text}", offsets, width, *moved)


class TraceLine(NamedTuple):
    """An instruction without the registers that it waits for.

    It always reads its first ``fixed_sources`` sources; the others may be replaced.
    """

    head: str  # PC and mask
    dst: int  # -1: none
    name: str
    sources: tuple[int, ...]
    fixed_sources: int
    tail: str  # width, addresses, immediate

    def text(self, waits: Sequence[int]) -> str:
        """Return the line; it reads the registers ``waits`` in place of its other sources."""
        sources = (*self.sources[: self.fixed_sources], *waits) if waits else self.sources
        dst = f"1 R{self.dst}" if self.dst >= 0 else "0"
        read = "".join(f" R{r}" for r in sources)
        return f"{self.head} {dst} {self.name} {len(sources)}{read} {self.tail}\n"

    @property
    def free_sources(self) -> int:
        """Registers that it can wait for."""
        return MOST_SOURCES - self.fixed_sources


def _tail(left: dict[PipeInstruction, int], cycles: int) -> list[PipeInstruction]:
    """Take the dependent chain at the end of a block, about ``cycles`` long, out of ``left``.

    The first instruction takes its latency, each further one a cycle less, as its issue slot is counted
    already.
    """
    picked: list[PipeInstruction] = []
    order = sorted((s for s in left if s.result_registers), key=lambda s: (-s.latency, -left[s]))

    def pick(stand: PipeInstruction, least: float) -> bool:
        nonlocal cycles
        lasts = stand.latency - bool(picked)
        if not left[stand] or cycles < lasts * least:
            return False
        picked.append(stand)
        left[stand] -= 1
        cycles -= lasts
        return True

    for stand in order:
        while pick(stand, 1.0):
            pass
    # what remains is rounded
    any(pick(stand, 0.6) for stand in reversed(order))
    return picked


@dataclass(slots=True)
class CodeLayout:
    """The instructions and result registers of a program, shared by its variants."""

    program: Program
    binary: int
    pipe_instruction: tuple[PipeInstruction | None, ...] = field(init=False)
    first_result: dict[str, int] = field(init=False)
    first_load: int = field(init=False)  # the first register of loads

    def __post_init__(self) -> None:
        """Assign a rotation of registers to each pipe that the program uses."""
        self.pipe_instruction = pipe_instructions(self.binary)
        ops = [op for variant in self.program.variants for op in variant]
        self.first_result = {}
        at = FIRST
        for index, (pipe, _) in enumerate(PIPES):
            if any(op.pipes[index] for op in ops):
                stand = self.pipe_instruction[index]
                if stand is None:
                    raise WorkloadError(
                        f"program {self.program.name}: SM {self.binary} has no {pipe} instructions"
                    )
                self.first_result[pipe] = at
                at += stand.result_registers * stand.rotation
        self.first_result["smem"] = at
        self.first_load = at + (SHARED_LOAD.rotation if any(op.smem for op in ops) else 0)


@dataclass(slots=True)
class BlockLines:
    """Writes the instructions of compute ops."""

    layout: CodeLayout
    before: dict[str, int] = field(default_factory=dict)  # results of each pipe in the variant so far

    def lines(self, op: Op, pc: int) -> tuple[list[TraceLine], int]:
        """Return the instructions, and the register of the result that the next op waits for (-1: none)."""
        rest = op.issue - sum(op.pipes)
        if rest < 0:
            raise WorkloadError(
                f"program {self.layout.program.name}: {sum(op.pipes)} pipe instructions"
                f" in {op.issue} issue slots"
            )
        shared = min(rest, op.smem)
        # only loads have results to wait for; other accesses are written as stores
        loads = op.chain >= SHARED_LOAD.latency and op.smem_wait != UNNEEDED + 1
        access = SHARED_LOAD if loads else SHARED_STORE
        counts = {
            s: n for s, n in zip(self.layout.pipe_instruction, op.pipes, strict=True) if s is not None and n
        }
        counts |= {access: shared, NOTHING: rest - shared}
        left = dict(counts)
        tail = _tail(left, op.chain)
        kinds = list(left)
        mixed = interleave_classes(list(left.values())) if any(left.values()) else ()
        order = [kinds[i] for i in mixed]
        order += tail
        seen = dict.fromkeys(counts, 0)
        made: list[TraceLine] = []
        result = -1
        for index, stand in enumerate(order):
            link = result if index > len(order) - len(tail) else -1
            head = f"{pc + 16 * index:04x} {ALL}"
            line = self._line(op, stand, seen[stand], (counts[stand], left[stand]), head, link)
            seen[stand] += 1
            made.append(line)
            result = line.dst
        for stand, count in counts.items():
            self.before[stand.pipe] = self.before.get(stand.pipe, 0) + count
        return made, result if tail else -1

    def _line(
        self, op: Op, stand: PipeInstruction, number: int, counts: tuple[int, int], head: str, link: int
    ) -> TraceLine:
        """Return instruction ``number`` of a pipe; ``counts``: all of them, and those outside the chain."""
        count, free = counts
        turn = self.before.get(stand.pipe, 0) + number
        dst = (
            self.layout.first_result[stand.pipe] + turn % stand.rotation * stand.result_registers
            if stand.result_registers
            else -1
        )
        name = stand.opcodes[turn % len(stand.opcodes)]
        if stand.pipe == "smem":
            waves = op.smem * (number + 1) // count - op.smem * number // count
            where = shared_operand(min(waves, LANES), SHARED_WINDOW)
            sources = (link if link >= 0 else SHARED_ADDRESS, *OPERANDS[: stand.sources - 1])
            return TraceLine(head, dst, name, sources, 1, f"{where} 0")
        if link >= 0:
            return TraceLine(head, dst, name, (link,), 1, "0 0")
        sources = (*OPERANDS[: stand.sources - 1], dst) if stand.sources > 1 else OPERANDS[: stand.sources]
        lost = min(op.conflicts, free)
        if stand.pipe == "fp32" and number < free and lost * (number + 1) // free > lost * number // free:
            # three sources in one of the two register banks cost a cycle; none repeats the register of the
            # instruction before in its slot, as the reuse cache would save the cycle
            odd = dst & 1
            sources = (OPERANDS[2 - odd], OPERANDS[3 * odd], dst)
        return TraceLine(head, dst, name, sources, 0, "0 0")


class LoadRegisters:
    """Registers of loads in flight; each op gets the same registers again where possible."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.used = bytearray(LAST + 1)
        self.own: dict[int, list[int]] = {}

    def take(self, op: int, least: int) -> tuple[int, int]:
        """Return the first of a run of free registers and its length; ``least`` are needed.

        If none are free, they are those of a load in flight, for which the new load then waits.
        """
        own = self.own.setdefault(op, [])
        for size in (BLOCK, least):
            start = -(-self.first // size) * size
            for r in chain(own, range(start, LAST + 2 - size, size)):
                if r % size == 0 and not any(self.used[r : r + size]):
                    if r not in own:
                        own.append(r)
                    self.used[r : r + size] = b"\1" * size
                    return r, size
        return (own[0] if own else start), least

    def free(self, r: int, size: int) -> None:
        """Free registers."""
        self.used[r : r + size] = bytes(size)
