"""The SASS instructions that written traces use for each pipe, and their memory operands."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from pysim.errors import ConfigError
from pysim.params import PARAMS, PIPES

LANES = 32
BANK = 4  # bytes
ROW = 128  # bytes of all banks


class PipeInstruction(NamedTuple):
    """The SASS instruction that represents a pipe, on SM versions ``first_sm`` to ``last_sm``.

    ``opcodes`` are used in turn. ``result_registers``: registers that the result takes (0: no result).
    ``sources``: registers that it reads. Results use ``rotation`` register groups in turn, enough for all
    that are in flight.
    """

    pipe: str
    opcodes: tuple[str, ...]
    result_registers: int
    sources: int
    first_sm: int = 60
    last_sm: int = 89
    rotation: int = 8

    @property
    def latency(self) -> int:
        """Cycles until an instruction that needs the result may issue."""
        return _LATENCY.get(f"{self.pipe}_latency", 0)


# those of Volta; a trace does not say which GPU will run it
_LATENCY = {row.name: int(row.default) for row in PARAMS["gpu.sm"] if row.name.endswith("_latency")}
_HMMA = tuple(f"HMMA.884.F32.F32.STEP{step}" for step in range(4))
_STANDS: tuple[PipeInstruction, ...] = (
    PipeInstruction("fp32", ("FFMA",), 1, 3),
    PipeInstruction("int", ("IADD3",), 1, 3),
    PipeInstruction("fp16", ("HFMA2",), 1, 3),
    PipeInstruction("fp64", ("DFMA",), 2, 3),
    PipeInstruction("sfu", ("MUFU.EX2",), 1, 1),
    PipeInstruction("tensor", _HMMA, 4, 3, 70, 72),
    PipeInstruction("tensor", ("HMMA.1688.F32",), 4, 3, 75, 75),
    PipeInstruction("tensor", ("HMMA.16816.F32",), 4, 3, 80, 89),
    PipeInstruction("control", ("BRA",), 0, 0),
)
SHARED_LOAD = PipeInstruction("smem", ("LDS",), 1, 1, rotation=32)
SHARED_STORE = PipeInstruction("smem", ("STS",), 0, 2)
NOTHING = PipeInstruction("none", ("NOP",), 0, 0)

# what the Accel-Sim reader has an opcode table for
BINARIES = (60, 61, 70, 75, 80, 86, 89)
NANOSLEEP_FROM = 70


def pipe_instructions(binary: int) -> tuple[PipeInstruction | None, ...]:
    """Return the instruction of each pipe, in the order of PIPES; None: the SM version has no such pipe.

    Raises ConfigError for a version that is not in BINARIES.
    """
    if binary not in BINARIES:
        raise ConfigError(f"binary version {binary}: must be one of {', '.join(map(str, BINARIES))}")
    known = {s.pipe: s for s in _STANDS if s.first_sm <= binary <= s.last_sm}
    return tuple(known.get(pipe) for pipe, _ in PIPES)


def shared_operand(wavefronts: int, base: int) -> str:
    """Return the operand (width, mode, addresses) of a 4-byte access by all lanes with that many wavefronts.

    Shared memory has 32 banks of 4 B. An access takes as many wavefronts as the largest number of distinct
    words in one bank. For powers of two that is a stride of ``wavefronts`` words; otherwise that many lanes
    use bank 0, and each other lane a bank of its own.
    """
    if wavefronts & (wavefronts - 1) == 0:
        return f"{BANK} 1 0x{base:x} {BANK * wavefronts}"
    at = [lane * (ROW if lane < wavefronts else BANK) for lane in range(LANES)]
    deltas = " ".join(str(b - a) for a, b in pairwise(at))
    return f"{BANK} 2 0x{base:x} {deltas}"


def global_opcode(kind: str, width: int, *, strong: bool) -> str | None:
    """Return the opcode of a global access of ``width`` bytes a lane, or None.

    ``kind``: LOAD, STORE or REDUCE; ``strong``: the access bypasses L1.
    """
    part = {1: ".U8", 2: ".U16", 4: "", 8: ".64", 16: ".128"}.get(width)
    if part is None:
        return None
    if kind == "REDUCE":
        return "RED.E.ADD.F32.FTZ.RN" if width == 4 else f"RED.E.ADD{part}"
    return f"{'LDG' if kind == 'LOAD' else 'STG'}.E{part}{'.STRONG.GPU' if strong else ''}"
