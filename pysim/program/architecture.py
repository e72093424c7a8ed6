"""Whether a job was recorded for the architecture that it is simulated on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .recorded_program import RecordedProgram

if TYPE_CHECKING:
    from .job import Job


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
