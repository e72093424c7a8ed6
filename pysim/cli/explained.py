"""Which TB the option ``--explain`` names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pysim.errors import ConfigError
from pysim.units import suggest

if TYPE_CHECKING:
    from pysim.program.job import Job


def explained_tb(asked: tuple[str, int] | None, job: Job) -> tuple[int, int] | None:
    """Return kernel and TB number of ``--explain``; a kernel launched once may be given by name.

    Raises ConfigError for a kernel or a TB that there is not.
    """
    if asked is None:
        return None
    word, tb = asked
    if word.isdecimal() and word.isascii():
        kernel = int(word)
    else:
        found = [i for i, k in enumerate(job.kernels) if k.name == word]
        if not found:
            names = sorted({k.name for k in job.kernels})
            hint = suggest(word, names) or f": there are {_first_of(names)}"
            raise ConfigError(f"--explain: no kernel {word}{hint}")
        if len(found) > 1:
            often = f"is launched {len(found)} times: give a number: {_first_of(found)}"
            raise ConfigError(f"--explain: kernel {word} {often}")
        kernel = found[0]
    if kernel >= len(job.kernels):
        raise ConfigError(f"--explain: no kernel {kernel}: there are 0 to {len(job.kernels) - 1}")
    if tb >= job.kernels[kernel].tbs:
        last, name = job.kernels[kernel].tbs - 1, job.kernels[kernel].name
        raise ConfigError(f"--explain: kernel {kernel} ({name}) has no TB {tb}: there are 0 to {last}")
    return kernel, tb


def _first_of(items: Sequence[object]) -> str:
    """List the first six items."""
    return ", ".join(map(str, items[:6])) + (", ..." if len(items) > 6 else "")
