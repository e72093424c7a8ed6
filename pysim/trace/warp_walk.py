"""What a warp of a program writes into a trace, as text with holes for the addresses.

One op list (a variant of the program) is walked with its loops. Which instructions a warp issues does not
depend on the place of its TB in the grid; only the addresses do. The text is therefore made once and filled
in for each TB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pysim.errors import WorkloadError
from pysim.isa import OPS
from pysim.program.warp_program import OP, Op

from .instruction_lines import (
    ADDRESS,
    ALL,
    MOST_SOURCES,
    OPERANDS,
    BlockLines,
    CodeLayout,
    LanePattern,
    LoadRegisters,
    TraceLine,
)
from .sass import NANOSLEEP_FROM, global_opcode

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_CODE = 1 << 22  # instructions of a variant
PIECE = 1 << 18  # characters, about
_MEMORY = (OP["LOAD"], OP["STORE"], OP["REDUCE"])


class TextPiece(NamedTuple):
    """Lines of a trace; hole i takes ``const[i]`` plus the base address of op ``op[i]`` in this TB."""

    text: str
    op: NDArray[np.int64]
    const: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return len(self.text) + self.op.nbytes + self.const.nbytes

    def filled(self, bases: NDArray[np.int64]) -> str:
        """Return the text with addresses; ``bases``: int64, the base address of each op of the variant.

        Raises WorkloadError for a negative address.
        """
        if not len(self.op):
            return self.text
        at = self.const + bases[self.op]
        if int(at.min()) < 0:
            raise WorkloadError("an address is negative")
        return self.text % tuple(at.tolist())


@dataclass(slots=True)
class _PieceBuffer:
    """Collects lines and holes until there are enough for a piece."""

    text: list[str] = field(default_factory=list)
    op: list[int] = field(default_factory=list)
    const: list[int] = field(default_factory=list)
    size: int = 0

    def write(self, text: str) -> None:
        self.text.append(text)
        self.size += len(text)

    def piece(self) -> TextPiece:
        made = TextPiece("".join(self.text), np.array(self.op, np.int64), np.array(self.const, np.int64))
        self.text, self.op, self.const, self.size = [], [], [], 0
        return made


class VariantText:
    """One variant of a program for warps with the given lane patterns, one an op (None: no memory op)."""

    def __init__(
        self, layout: CodeLayout, ops: Sequence[Op], shapes: tuple[LanePattern | None, ...], pc: int
    ) -> None:
        self.name = layout.program.name
        self.ops, self.shapes, self.binary = ops, shapes, layout.binary
        self.first_load = layout.first_load
        if not any(op.kind == OP["EXIT"] for op in ops):
            raise WorkloadError(f"program {self.name}: a variant has no EXIT")
        stored = {s for op in ops if op.kind in _MEMORY[1:] for s in _slots(op)}
        self.blocks: dict[int, tuple[list[TraceLine], int]] = {}
        self.pcs: list[int] = []
        block = BlockLines(layout)
        for index, op in enumerate(ops):
            self.pcs.append(pc)
            size = op.issue
            if op.kind in (OP["LOOP"], OP["WAIT"], OP["TAKEN"]):
                size = int(op.kind == OP["WAIT"] and not stored.isdisjoint(_slots(op)))
            elif op.kind != OP["COMPUTE"]:
                size = 1
            if pc // 16 + size > MOST_CODE:
                raise WorkloadError(
                    f"program {self.name}: more than {MOST_CODE} instructions of code: cannot be written"
                )
            if op.kind == OP["COMPUTE"]:
                self.blocks[index] = block.lines(op, pc)
            pc += 16 * size
        self.end = pc

    def head(self, op: int) -> str:
        """Return PC and mask of an op of one instruction."""
        return f"{self.pcs[op]:04x} {ALL}"

    def pieces(self) -> Iterator[TextPiece]:
        """Yield the text of one warp."""
        return _Walk(self).run()


def _slots(op: Op) -> range:
    return range(op.slot, op.slot + max(op.stages, 1))


class _Walk:
    """The state of one warp that executes a variant."""

    def __init__(self, code: VariantText) -> None:
        self.code = code
        self.registers = LoadRegisters(code.first_load)
        self.pen = _PieceBuffer()
        self.counter = [0, 0, 0]
        self.loads: dict[int, list[tuple[int, int]]] = {}  # slot: (register, size) of loads in flight
        self.stores: set[int] = set()  # slots with stores in flight
        self.waits: list[tuple[int, int]] = []  # what the next instructions must read
        self.cache: dict[tuple[int, int, tuple[tuple[int, int], ...]], tuple[str, int]] = {}

    def emit(self, key: tuple[int, int], lines: Sequence[TraceLine]) -> None:
        """Write instructions; the first ones read the registers of ``waits``. Equal ``key``: equal lines."""
        waits = tuple(self.waits)
        known = self.cache.get((*key, waits))
        if known is None:
            made, at = [], 0
            for line in lines:
                some = [r for r, _ in waits[at : at + line.free_sources]]
                at += len(some)
                made.append(line.text(some))
            known = self.cache[(*key, waits)] = "".join(made), at
        text, read = known
        self.pen.write(text)
        for r, size in waits[:read]:
            self.registers.free(r, size)
        del self.waits[:read]

    def slot(self, op: Op) -> int:
        """Return the slot that an op uses in this iteration."""
        return op.slot + (self.counter[op.level] + op.count_plus) % op.stages if op.stages else op.slot

    def memory(self, index: int, op: Op, kind: str) -> None:
        """Write a global access, unless its iteration is skipped."""
        at = self.counter[op.level] + op.count_plus
        if op.count and at >= op.count:
            return
        shape = self.code.shapes[index]
        assert shape is not None
        name = global_opcode(kind, shape.width, strong=op.bypass_l1 and kind == "LOAD")
        if name is None:
            raise WorkloadError(
                f"program {self.code.name}: accesses of {shape.width} B a lane: must be 1, 2, 4, 8 or 16"
            )
        register = -1
        if kind == "LOAD":
            # the result may overwrite a register that the load reads
            for i, (r, size) in enumerate(self.waits[: MOST_SOURCES - 1]):
                self.registers.free(r, size)
                self.waits[i] = r, 0
            register, size = self.registers.take(index, max(1, shape.width // 4))
            self.loads.setdefault(self.slot(op), []).append((register, size))
        else:
            self.stores.add(self.slot(op))
        sources = (ADDRESS,) if kind == "LOAD" else (ADDRESS, OPERANDS[0])
        head = f"{self.code.pcs[index]:04x} {shape.mask}"
        self.emit((index, register), [TraceLine(head, register, name, sources, 1, f"{shape.text} 0")])
        moved = at * shape.step + self.counter[shape.level2] * shape.step2
        self.pen.op += [index] * len(shape.offsets)
        self.pen.const += [moved + offset for offset in shape.offsets]

    def wait(self, index: int, op: Op) -> None:
        """Let the next instructions read the loads in flight; stores have no result, so write a MEMBAR."""
        slot = self.slot(op)
        self.waits += self.loads.pop(slot, [])
        if slot in self.stores:
            self.stores.clear()
            self.emit((index, -1), [TraceLine(self.code.head(index), -1, "MEMBAR.SC.GPU", (), 0, "0 0")])

    def single(self, index: int, name: str, immediate: int = 0) -> None:
        """Write an instruction without operands."""
        self.emit((index, -1), [TraceLine(self.code.head(index), -1, name, (), 0, f"0 {immediate}")])

    def run(self) -> Iterator[TextPiece]:
        """Yield pieces of about PIECE characters."""
        at = 0
        while True:
            op, index = self.code.ops[at], at
            kind = OPS[op.kind][0]
            at += 1
            if kind == "COMPUTE":
                lines, result = self.code.blocks[index]
                self.emit((index, -1), lines)
                if result >= 0:
                    self.waits.insert(0, (result, 0))
            elif kind in ("LOAD", "STORE", "REDUCE"):
                self.memory(index, op, kind)
            elif kind == "WAIT":
                self.wait(index, op)
            elif kind == "BARRIER":
                self.single(index, "BAR.SYNC")
            elif kind in ("MARK", "TAKEN"):
                continue
            elif kind == "DELAY":
                name = "NANOSLEEP" if self.code.binary >= NANOSLEEP_FROM else "NOP"
                self.single(index, name, op.count)
            elif kind == "LOOP":
                self.counter[op.level] += 1
                if self.counter[op.level] < op.count:
                    at = op.target
                else:
                    self.counter[op.level] = 0
            elif kind == "EXIT":
                self.single(index, "EXIT")
                yield self.pen.piece()
                return
            else:
                raise WorkloadError(f"program {self.code.name}: {kind} has no form in this trace format")
            if self.pen.size >= PIECE:
                yield self.pen.piece()
