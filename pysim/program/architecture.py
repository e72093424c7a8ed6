"""Whether a job was recorded or made for the architecture that it is simulated on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.errors import brief

from .job import HMMA_884, MMA_16816
from .recorded_program import RecordedProgram

if TYPE_CHECKING:
    from .job import Job

VOLTA, AMPERE = 70, 80


def other_architecture(job: Job, sm: int) -> str:
    """Return one line if the job was recorded for another architecture than SM version ``sm``, else "".

    As for binaries, code of the same major version runs on the same and on later minor versions.
    """
    programs = [kernel.program for kernel in job.kernels]
    found = {program.binary for program in programs if isinstance(program, RecordedProgram)} - {0}
    others = sorted(binary for binary in found if binary // 10 != sm // 10 or binary > sm)
    if not others:
        return ""
    names = ", ".join(f"sm_{binary}" for binary in others)
    return f"recorded for {names}, simulated on sm_{sm}: instructions take their work at this GPU's rates"


def other_tensor_instruction(job: Job, sm: int) -> str:
    """Return one line if kernels are written for another tensor instruction than SM version ``sm`` has.

    The tensor pipe of a GPU takes each as its own, which has another amount of work; "" if none is.
    """
    own = MMA_16816 if sm >= AMPERE else HMMA_884
    others = [kernel for kernel in job.kernels if kernel.tensor not in ("", own)] if sm >= VOLTA else []
    if not others:
        return ""
    first = others[0]
    more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
    return (
        f"kernel {brief(first.name)}{more}: written for {first.tensor}, sm_{sm} has {own}:"
        " make the job for this GPU, as workloads.make(text, gpu) does"
    )


def other_machine(job: Job, sm: int) -> str:
    """Return what both say of a job on SM version ``sm``, in one line; "" if it is made for that."""
    return "; ".join(filter(None, (other_architecture(job, sm), other_tensor_instruction(job, sm))))
