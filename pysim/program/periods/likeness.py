"""What makes two kernels of jobs alike: their code and grid, and how far back each operand was last used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.program.recorded_program import RecordedProgram

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.job import Job
    from pysim.program.warp_program import Program

FAR = 128  # kernels from which on reuse distances count as equal: backward, those of saved values grow
FIRST_USE = -1  # instead of a reuse distance; of one from FAR on, too

Part = tuple[int, ...]


class Programs:
    """Numbers programs: those of equal code have one number."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}
        self.seen: dict[int, tuple[int, Program | RecordedProgram]] = {}

    def number(self, program: Program | RecordedProgram) -> int:
        """Return the number of a program, which it keeps alive: so its ``id`` stays its own."""
        if id(program) not in self.seen:
            number = self.numbers.setdefault(self._code(program), len(self.numbers))
            self.seen[id(program)] = number, program
        return self.seen[id(program)][0]

    def _code(self, program: Program | RecordedProgram) -> object:
        """Return what decides how a program runs; of a trace the program itself."""
        if not isinstance(program, RecordedProgram) or program.op_lists is None:
            return program
        rows = 1 if program.tb_rows is None else int(program.tb_rows.max()) + 1
        code = tuple(tuple(program.op_lists(row)) for row in range(rows))
        of_tbs = b"" if program.tb_rows is None else program.tb_rows.tobytes()
        return program.name, program.registers, program.smem, program.args, of_tbs, code


def kernel_parts(job: Job, programs: Programs | None = None, far: int | None = FAR) -> list[tuple[Part, ...]]:
    """Return what makes kernels alike, a tuple of tuples each: what runs, then each operand.

    The last number of an operand is its reuse distance in kernels, or ``FIRST_USE``, as from ``far`` on
    (None: however far). ``programs``: numbers of programs, for jobs that are compared with each other.
    """
    last: dict[tuple[int, int], int] = {}
    programs = programs or Programs()
    limit = len(job.kernels) if far is None else far
    made = []
    for index, kernel in enumerate(job.kernels):
        parts: list[Part] = [(programs.number(kernel.program), *kernel.grid, kernel.stream)]
        if kernel.hints is not None:
            parts.append((index, 0))  # what its hints state may differ, so it is like no other
        for tensor in kernel.args:
            before = last.get((tensor.address, tensor.nbytes))
            apart = FIRST_USE if before is None or index - before >= limit else index - before
            parts.append((tensor.rows, tensor.cols, tensor.item, apart))
        for tensor in kernel.args:
            last[tensor.address, tensor.nbytes] = index
        made.append(tuple(parts))
    return made


def kernel_shapes(job: Job) -> NDArray[np.int64]:
    """Return a number for each kernel, equal for equal programs, grids and reuse distances.

    A first use has no reuse distance: all first uses count as equal.
    """
    known: dict[tuple[Part, ...], int] = {}
    return np.array([known.setdefault(parts, len(known)) for parts in kernel_parts(job)], np.int64)
