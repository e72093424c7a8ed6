"""Exit codes of scripts and of the command ``pysim``: the one table, which help and documentation print."""

from __future__ import annotations

import signal

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_TIME = 75  # EX_TEMPFAIL of sysexits.h: call again
EXIT_INTERRUPT = 128 + signal.SIGINT
EXIT_PIPE = 128 + 13  # SIGPIPE, which not every system names
EXIT_TERMINATED = 128 + signal.SIGTERM

EXIT_CODES: dict[int, str] = {
    0: "done; compare: equal; doctor: all that is needed works",
    EXIT_ERROR: "the input is right, but it could not be done: no scheme can run the job, a file exists or "
    "cannot be written; sweep, work: points failed or are missing; compare: different; check: a fault, or a "
    "wait that is unsafe; doctor: something needed does not work",
    EXIT_USAGE: "the input is wrong: an option, name, key or value, or a file or folder that is named; "
    "compare: any error",
    EXIT_TIME: "stopped at --max-time: --resume goes on, in a sweep the same command",
    EXIT_INTERRUPT: "interrupted (Ctrl-C)",
    EXIT_PIPE: "stdout was closed before all was printed",
    EXIT_TERMINATED: "terminated (SIGTERM)",
}
