"""Traces on which another simulator was measured, written again, and its results.

Two kernels as Volta SASS. ``vecadd`` adds vectors, a float a thread. ``sgemm`` has the shape of a GEMM: 256
threads load 16 floats of K an iteration for a tile of 64x64, through shared memory; ``kk`` is how often an
iteration reads shared memory and multiplies. Its addresses are those of packed tiles, not of a real matrix.
"""

from __future__ import annotations

import csv
import lzma
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

THREADS = 256
WARPS = THREADS // 32
PRESET = 0  # of xz: the text repeats itself, so more effort gains nothing
DEVICES = {"TITANV": "accelsim_titan_v", "QV100": "accelsim_qv100"}

# An instruction a line: destination (. is none), opcode, sources; after | bytes a lane, address, stride.
_VECADD = """
R1 IMAD.MOV.U32 R255 R255
R6 S2R
R3 S2R
R6 IMAD R6 R3
. ISETP.GE.AND R6
R7 IMAD.MOV.U32 R255 R255
R2 IMAD.WIDE R6 R7
R2 LDG.E.SYS R2 | 4 {a:#x} 4
R4 IMAD.WIDE R6 R7
R4 LDG.E.SYS R4 | 4 {b:#x} 4
R8 IMAD.WIDE R6 R7
R9 FADD R2 R4
. STG.E.SYS R8 R9 | 4 {c:#x} 4
. EXIT
"""
_BEFORE = (
    "\n".join(f"R{register} IMAD.MOV.U32 R255 R255" for register in range(1, 9))
    + """
R10 S2R
R11 S2R
R12 IMAD.WIDE R10 R1
R14 IMAD.WIDE R11 R2
"""
)
_LOAD = """
R16 LDG.E.128.SYS R12 | 16 {a:#x} 16
R20 LDG.E.128.SYS R14 | 16 {b:#x} 16
. BAR.SYNC
. STS.128 R8 R16 | 16 {s:#x} 16
. STS.128 R9 R20 | 16 {t:#x} 16
. BAR.SYNC
"""
_MULTIPLY = "R24 LDS.U.128 R8 | 16 {u:#x} 0\nR28 LDS.U.128 R9 | 16 {v:#x} 16\n" + "\n".join(
    f"R{40 + 4 * i + j} FFMA R{24 + i} R{28 + j} R{40 + 4 * i + j}" for i in range(4) for j in range(4)
)
_TURN = """
R12 IADD3 R12 R1 R255
R14 IADD3 R14 R2 R255
. ISETP.NE.AND R5
. BRA
"""
_AFTER = "\n".join(f". STG.E.128.SYS R12 R{40 + 4 * i} | 16 {{c{i}:#x}} 16" for i in range(4)) + "\n. EXIT"
_A, _B, _C = 0x7000_0000_0000, 0x7000_4000_0000, 0x7000_8000_0000
_VECTORS = {"a": 0x7000_0000_0000, "b": 0x7000_1000_0000, "c": 0x7000_2000_0000}
_SHARED, _HALF, _LOCAL = 0x7F00_0000_0000, 4096, 0x7F10_0000_0000
_HEADER = """-kernel name = {name}
-kernel id = {number}
-grid dim = ({x},{y},1)
-block dim = ({threads},1,1)
-shmem = {smem}
-nregs = {registers}
-binary version = 70
-cuda stream id = {stream}
-shmem base_addr = {shared:#018x}
-local mem base_addr = {local:#018x}
-nvbit version = 1.5.5
-accelsim tracer version = 4
-enable lineinfo = 0

#traces format = PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width [mode addresses] immediate
"""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel: a grid of ``x`` by ``y`` TBs. ``k`` is the turns of sgemm's loop (0: vecadd)."""

    x: int
    y: int = 1
    k: int = 0
    kk: int = 1
    stream: int = 0

    @property
    def tbs(self) -> int:
        """TBs of the grid."""
        return self.x * self.y

    @property
    def instructions(self) -> int:
        """Warp instructions of the whole grid."""
        return self.tbs * WARPS * (17 + self.k * (10 + 18 * self.kk) if self.k else 14)

    @property
    def sectors(self) -> int:
        """Sectors of 32 B that its warps request from global memory, one warp at a time."""
        return self.tbs * WARPS * ((2 * self.k + 4) * 16 if self.k else 3 * 4)


# two kernels that could run side by side: half of the SMs each
_PAIR = Launch(4, 10, k=16)
INPUTS: dict[str, tuple[Launch, ...]] = {
    "vecadd": (Launch(256),),
    "sgemm": (Launch(16, 10, k=64),),
    "sgemm_kk8": (Launch(16, 10, k=64, kk=8),),
    "pair_1stream": (_PAIR, _PAIR),
    "pair_2streams": (_PAIR, Launch(4, 10, k=16, stream=1)),
}


def _lines(text: str, pc: int) -> list[str]:
    """Return instructions as a trace has them, from ``pc`` on; addresses may be left as fields."""
    made = []
    for row in text.split("\n"):
        if not row:
            continue
        what, _, where = row.partition(" | ")
        written, opcode, *read = what.split()
        named = "0" if written == "." else f"1 {written}"
        memory = "0"
        if where:
            width, address, stride = where.split()
            memory = f"{width} 1 {address} {stride}"
        made.append(f"{pc:04x} ffffffff {named} {opcode} {' '.join([str(len(read)), *read])} {memory} 0\n")
        pc += 16
    return made


def _vecadd(launch: Launch) -> Iterator[list[str]]:
    """Yield the warps of each TB as text."""
    lines = _lines(_VECADD, 0)
    head, body = f"insts = {len(lines)}\n", "".join(lines)
    for x in range(launch.x):
        starts = [(x * WARPS + warp) * 128 for warp in range(WARPS)]
        yield [head + body.format(**{name: at + start for name, at in _VECTORS.items()}) for start in starts]


def _sgemm(launch: Launch) -> Iterator[list[str]]:
    """Yield the warps of each TB as text; what all turns share is put together once."""
    before = _lines(_BEFORE, 0)
    rounds = "\n".join(
        _MULTIPLY.format(u=_SHARED + at, v=_SHARED + _HALF + at) for at in range(0, 512 * launch.kk, 512)
    )
    turn = _lines(f"{_LOAD}{rounds}{_TURN}", 16 * len(before))
    after = _lines(_AFTER, 16 * (len(before) + len(turn)))
    head = f"insts = {len(before) + launch.k * len(turn) + len(after)}\n"
    first, rest = "".join(turn[:2]), "".join(turn[2:])
    for y in range(launch.y):
        for x in range(launch.x):
            warps = []
            for warp in range(WARPS):
                own = 512 * warp
                after_load = rest.format(s=_SHARED + own, t=_SHARED + _HALF + own)
                turns = [
                    first.format(
                        a=_A + 4096 * (y * launch.k + k) + own, b=_B + 4096 * (x * launch.k + k) + own
                    )
                    for k in range(launch.k)
                ]
                row = (64 * y + 8 * warp) * launch.x
                stores = {f"c{i}": _C + 256 * (row + 2 * i * launch.x + x) for i in range(4)}
                end = "".join(after).format(**stores)
                warps.append(head + "".join(before) + "".join(part + after_load for part in turns) + end)
            yield warps


def _kernel(launch: Launch, number: int) -> Iterator[str]:
    """Yield the text of a kernel's trace: its header, then a TB at a time."""
    smem, registers = (2 * _HALF, 64) if launch.k else (0, 16)
    yield _HEADER.format(
        name="sgemm" if launch.k else "vecadd",
        number=number,
        x=launch.x,
        y=launch.y,
        threads=THREADS,
        smem=smem,
        registers=registers,
        stream=launch.stream,
        shared=_SHARED,
        local=_LOCAL,
    )
    for tb, warps in enumerate(_sgemm(launch) if launch.k else _vecadd(launch)):
        text = "".join(f"\nwarp = {number}\n{warp}" for number, warp in enumerate(warps))
        yield f"\n#BEGIN_TB\n\nthread block = {tb % launch.x},{tb // launch.x},0\n{text}\n#END_TB\n"


def write(launches: Sequence[Launch], folder: Path) -> Path:
    """Write a trace folder, compressed, and return it; its list comes last, when all kernels are whole."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"kernel-{number}.traceg.xz" for number in range(1, len(launches) + 1)]
    for number, (name, launch) in enumerate(zip(names, launches, strict=True), 1):
        with lzma.open(folder / name, "wb", preset=PRESET) as file:
            for part in _kernel(launch, number):
                file.write(part.encode())
    (folder / "kernelslist.g").write_text("".join(f"{name}\n" for name in names), encoding="ascii")
    return folder


@dataclass(frozen=True, slots=True)
class Row:
    """What the peer said of an input: cycles of the SM clock, its fastest run, and what it counted."""

    case: str
    config: str
    cycles: int
    launch: int  # cycles of launch latency in them
    seconds: float  # NaN where it was disturbed
    l2_sectors: int | None
    dram_sectors: int | None

    @property
    def name(self) -> str:
        """Input and configuration."""
        return f"{self.case} {self.config}"

    @property
    def device(self) -> str:
        """Our device with the peer's parameters."""
        return DEVICES[self.config]

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Kernels of the input."""
        return INPUTS[self.case]

    @property
    def instructions(self) -> int:
        """Warp instructions of the input."""
        return sum(launch.instructions for launch in self.launches)

    @property
    def rate(self) -> float:
        """Warp instructions a second of the peer, or NaN."""
        return self.instructions / self.seconds


def rows() -> list[Row]:
    """Return the measured rows."""
    text = files("pysim.workloads").joinpath("measured/accelsim.csv").read_text(encoding="utf-8")
    return [
        Row(
            row["input"],
            row["config"],
            int(row["cycles"]),
            int(row["launch"]),
            float(row["seconds"] or "nan"),
            int(row["l2_sectors"]) if row["l2_sectors"] else None,
            int(row["dram_sectors"]) if row["dram_sectors"] else None,
        )
        for row in csv.DictReader(text.splitlines())
    ]


# the ports of the crossbar, which both cards' SMs share out: 40 clusters of two SMs, 80 of one
_PORTS = {"TITANV": 40, "QV100": 80}
_SMS = 80


def _known(row: Row, constants: int) -> list[float]:
    """Return the inputs of the baseline model: sectors a port, instructions an SM, and then kernels."""
    ports = sum(launch.sectors / min(_PORTS[row.config], launch.tbs) for launch in row.launches)
    work = sum(launch.instructions / min(_SMS, launch.tbs) for launch in row.launches)
    return [ports, work, len(row.launches)][:constants]


def baseline_model(
    measured: Sequence[Row], constants: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit cycles = launch + a * sectors a port + b * instructions an SM (+ c * kernels) to all rows.

    Least squares of the relative errors. Returns the constants, and each row's relative error.
    """
    cycles = np.array([row.cycles for row in measured], float)
    launch = np.array([row.launch for row in measured], float)
    known = np.array([_known(row, constants) for row in measured]) / cycles[:, None]
    found = np.linalg.lstsq(known, 1 - launch / cycles, rcond=None)[0]
    return found, known @ found + launch / cycles - 1
