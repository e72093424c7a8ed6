"""Writes kernels as SASS traces in the Accel-Sim text format (tracer version 4, grouped).

A folder holds ``kernelslist.g`` and a ``kernel-N.traceg`` (or ``.traceg.xz``) for each kernel, N counting the
job's launches from 1. The format cannot express events between streams, tensors and their footprints; they
are left out (docs/traces.md has the full list).
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from pysim.errors import ConfigError, OutputError, WorkloadError
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import OP, Op, Program

from .instruction_lines import LOCAL_WINDOW, SHARED_WINDOW, CodeLayout, LanePattern, lane_pattern
from .sass import LANES
from .warp_walk import TextPiece, VariantText

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.job import Job, Kernel

LIST = "kernelslist.g"
PRESET = 1  # of xz: traces are repetitive; higher presets take ten times as long for little gain
KEEP = 1 << 26  # characters of lines that are kept for reuse
_OURS = re.compile(r"kernel-[0-9]+\.traceg(\.xz)?|kernelslist\.g")
_PART = ".part"
_MEMORY = (OP["LOAD"], OP["STORE"], OP["REDUCE"])

HEADER = """\
-kernel name = {name}
-kernel id = {id}
-grid dim = ({grid[0]},{grid[1]},{grid[2]})
-block dim = ({threads},1,1)
-shmem = {smem}
-nregs = {registers}
-binary version = {binary}
-cuda stream id = {stream}
-shmem base_addr = 0x{shared:016x}
-local mem base_addr = 0x{local:016x}
-nvbit version = none
-accelsim tracer version = 4
-enable lineinfo = 0

#traces format = PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width [adrrescompress?] [mem_addresses] immediate
"""  # noqa: E501


class WrittenTrace(NamedTuple):
    """What :func:`write_trace` wrote: files, warp instructions and characters before compression."""

    files: tuple[Path, ...]
    instructions: int
    characters: int


class _Kept:
    """The lines of one variant for warps with the same lane patterns, kept while there is room."""

    def __init__(self, code: VariantText, room: list[int]) -> None:
        self.code, self.room = code, room
        self.pieces: list[TextPiece] | None = None
        self.count: int | None = None

    def instructions(self) -> int:
        """Return how many instructions a warp has."""
        if self.count is None:
            for _ in self:
                pass
        assert self.count is not None
        return self.count

    def __iter__(self) -> Iterator[TextPiece]:
        if self.pieces is not None:
            yield from self.pieces
            return
        kept: list[TextPiece] | None = []
        count, size = 0, 0
        for piece in self.code.pieces():
            count += piece.text.count("\n")
            size += piece.size
            if kept is not None and size <= self.room[0]:
                kept.append(piece)
            else:
                kept = None
            yield piece
        if kept is not None and self.count is None:
            self.pieces = kept
            self.room[0] -= size
        self.count = count


class _Variant:
    """One op list of a program: the lines of each warp, and the affine terms of their addresses."""

    def __init__(self, layout: CodeLayout, ops: tuple[Op, ...], pc: int, room: list[int]) -> None:
        warps = layout.program.warps
        by_shape: dict[tuple[LanePattern | None, ...], _Kept] = {}
        self.warps: list[_Kept] = []
        # bytes from the argument's address: base, and for each step of the TB in x, y and z
        self.terms = np.zeros((warps, len(ops), 4), np.int64)
        self.args = np.zeros((warps, len(ops)), np.int64)
        known: dict[object, LanePattern] = {}
        for warp in range(warps):
            shapes: list[LanePattern | None] = []
            for index, op in enumerate(ops):
                if op.kind not in _MEMORY:
                    shapes.append(None)
                    continue
                p = op.patterns[warp if len(op.patterns) > 1 else 0]
                self.terms[warp, index] = p.base + p.warp * warp, p.bx, p.by, p.bz
                self.args[warp, index] = p.arg
                if p not in known:
                    known[p] = lane_pattern(p)
                shapes.append(known[p])
            key = tuple(shapes)
            if key not in by_shape:
                by_shape[key] = _Kept(VariantText(layout, ops, key, pc), room)
            self.warps.append(by_shape[key])
        self.end = self.warps[0].code.end

    def bases(self, addresses: NDArray[np.int64], at: tuple[int, int, int]) -> NDArray[np.int64]:
        """Return (warps, ops) addresses of the TB at a place of the grid; ``addresses``: of the arguments."""
        moved = self.terms @ np.array([1, *at], np.int64)
        return moved + addresses[self.args] if len(addresses) else moved


class _Writer:
    """The variants of one program; equal ones share their code, the others follow each other by PC."""

    def __init__(self, program: Program, binary: int, room: list[int]) -> None:
        if len(program.variants) not in (1, 8):
            raise WorkloadError(f"program {program.name}: {len(program.variants)} variants: must be 1 or 8")
        for op in (op for ops in program.variants for op in ops if op.kind in _MEMORY):
            if len(op.patterns) not in (1, program.warps):
                raise WorkloadError(
                    f"program {program.name}: memory op of {len(op.patterns)} patterns: 1 or {program.warps}"
                )
            if not all(0 <= p.arg < program.args for p in op.patterns):
                raise WorkloadError(f"program {program.name}: a pattern without its argument")
        self.program = program
        self.layout = CodeLayout(program, binary)
        self.made: dict[tuple[Op, ...], _Variant] = {}
        self.room = room
        self.pc = 0

    def variant(self, number: int) -> _Variant:
        ops = self.program.variants[number if len(self.program.variants) > 1 else 0]
        if ops not in self.made:
            self.made[ops] = _Variant(self.layout, ops, self.pc, self.room)
            self.pc = self.made[ops].end
        return self.made[ops]

    def blocks(self, kernel: Kernel) -> Iterator[tuple[str, int]]:
        """Yield the text of all TBs in order of their numbers, and how many instructions begin in it."""
        gx, gy, gz = kernel.grid
        addresses = np.array([tensor.address for tensor in kernel.args], np.int64)
        for tb in range(kernel.tbs):
            x, y, z = tb % gx, tb // gx % gy, tb // (gx * gy)
            variant = self.variant((x == gx - 1) | (y == gy - 1) << 1 | (z == gz - 1) << 2)
            bases = variant.bases(addresses, (x, y, z))
            yield f"\n#BEGIN_TB\n\nthread block = {x},{y},{z}\n", 0
            for number, warp in enumerate(variant.warps):
                count = warp.instructions()
                yield f"\nwarp = {number}\ninsts = {count}\n", count
                for piece in warp:
                    yield piece.filled(bases[number]), 0
            yield "\n#END_TB\n", 0


def _kernel_text(kernel: Kernel, number: int, writer: _Writer) -> Iterator[tuple[str, int]]:
    program = writer.program
    if len(kernel.args) != program.args:
        raise WorkloadError(
            f"kernel {kernel.name}: {len(kernel.args)} arguments, its program takes {program.args}"
        )
    header = HEADER.format(
        name="".join(c if c.isprintable() else "_" for c in kernel.name),
        id=number,
        grid=kernel.grid,
        threads=program.warps * LANES,
        smem=program.smem,
        registers=program.registers,
        binary=writer.layout.binary,
        stream=kernel.stream,
        shared=SHARED_WINDOW,
        local=LOCAL_WINDOW,
    )
    yield header, 0
    yield from writer.blocks(kernel)


@dataclass(slots=True)
class _Folder:
    """Files that are renamed to their final names when all are complete."""

    path: Path
    parts: list[Path] = field(default_factory=list)

    @contextmanager
    def open(self, name: str, *, compress: bool = False) -> Iterator[IO[bytes]]:
        part = self.path / (name + _PART)
        self.parts.append(part)
        with part.open("wb") as raw:
            if compress:
                with lzma.open(raw, "wb", preset=PRESET) as packed:
                    yield packed
            else:
                yield raw

    def finish(self) -> None:
        """Rename the files. The list comes last, so that no list names an incomplete trace."""
        (self.path / LIST).unlink(missing_ok=True)
        names = {part.name.removesuffix(_PART) for part in self.parts}
        for old in self.path.iterdir():
            stale = old not in self.parts and old.name not in names
            if stale and _OURS.fullmatch(old.name.removesuffix(_PART)):
                old.unlink()
        for part in self.parts:
            part.replace(part.with_name(part.name.removesuffix(_PART)))

    def drop(self) -> None:
        for part in self.parts:
            part.unlink(missing_ok=True)


@contextmanager
def _folder(path: Path, *, force: bool) -> Iterator[_Folder]:
    """Open a folder for writing: it is new or empty, or its trace is replaced. All files appear or none."""
    made: list[Path] = []
    try:
        if path.exists() and not path.is_dir():
            raise OutputError(f"{path} is not a folder")
        if path.is_dir() and any(path.iterdir()) and not force:
            raise OutputError(f"{path} is not empty: --force (force=True) replaces the trace in it")
        missing = [p for p in (path, *path.parents) if not p.exists()]
        for p in reversed(missing):
            p.mkdir()
            made.append(p)
        folder = _Folder(path)
        try:
            yield folder
            folder.finish()
        except BaseException:
            folder.drop()
            raise
    except BaseException as error:
        for p in reversed(made):
            # files that another process has put there stay
            if not any(p.iterdir()):
                p.rmdir()
        if isinstance(error, OSError):
            raise OutputError(f"cannot write {error.filename or path}: {error.strerror or error}") from None
        raise


def write_trace(
    job: Job,
    folder: Path | str,
    *,
    binary: int = 70,
    compress: bool = False,
    kernels: Collection[int] | None = None,
    force: bool = False,
) -> WrittenTrace:
    """Write the kernels of a job as a trace that Accel-Sim and others read.

    Parameters
    ----------
    folder : made if it does not exist; one that is not empty is refused.
    binary : SM version whose instructions are used: 60, 61, 70, 75, 80, 86 or 89.
    compress : write ``.traceg.xz``.
    kernels : launches to write, counted from 1; None: all.
    force : replace the trace in a folder that is not empty; other files in it stay.

    Raises
    ------
    ConfigError
        A bad binary version or launch number.
    WorkloadError
        A kernel cannot be written.
    OutputError
        The folder is not empty, or the files cannot be written.
    """
    chosen = range(1, len(job.kernels) + 1) if kernels is None else sorted(set(kernels))
    for number in chosen:
        if not 1 <= number <= len(job.kernels):
            raise ConfigError(f"no kernel {number}: job {job.name} has 1 to {len(job.kernels)}")
    if all(job.kernels[number - 1].copy is not None for number in chosen):
        raise ConfigError(f"job {job.name}: no kernels to write")
    writers: dict[Program, _Writer] = {}
    by_id: dict[int, _Writer] = {}
    room = [KEEP]
    names: list[str] = []
    lines: list[str] = []
    instructions = characters = 0
    with _folder(Path(folder), force=force) as target:
        for number in chosen:
            kernel = job.kernels[number - 1]
            if kernel.copy is not None:
                spans = kernel.copy.spans.tolist()
                lines += [f"{kernel.name},0x{start:016x},{end - start}" for start, end in spans]
                continue
            program = kernel.program
            if isinstance(program, RecordedProgram):
                raise WorkloadError(f"kernel {kernel.name} comes from a trace: it is not written again")
            # hashing a program is slow, and most kernels share the object
            writer = by_id.get(id(program)) or writers.get(program)
            if writer is None:
                if room[0] < KEEP // 4:
                    writers.clear()
                    by_id.clear()
                    room = [KEEP]
                writer = writers[program] = _Writer(program, binary, room)
            by_id[id(program)] = writer
            names.append(f"kernel-{number}.traceg{'.xz' if compress else ''}")
            lines.append(names[-1])
            with target.open(names[-1], compress=compress) as file:
                for text, count in _kernel_text(kernel, number, writer):
                    file.write(text.encode())
                    instructions += count
                    characters += len(text)
        with target.open(LIST) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
    return WrittenTrace(tuple(Path(folder) / name for name in (*names, LIST)), instructions, characters)
