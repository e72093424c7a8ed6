"""The lock of a point."""

from __future__ import annotations

import fcntl
import time

PAUSES = (0.001, 0.01, 0.05, 0.2)  # seconds between attempts


def acquired(handle: int) -> bool:
    """Lock an open file; return False on a file system without locks.

    Raises BlockingIOError if another process keeps it. ``pysim status`` takes it for a moment, to see whether
    anybody has it: a worker that gave up at once would skip that point.
    """
    for pause in PAUSES:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(pause)
        except OSError:
            return False
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return True
