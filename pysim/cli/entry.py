"""The frame that scripts run in: one clean line for what a user can cause.

It is light, so that a script is inside it before it imports anything else.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from pysim.errors import InternalError, SimError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPT = 128 + signal.SIGINT
EXIT_PIPE = 128 + 13  # SIGPIPE, which not every system names
EXIT_TERMINATED = 128 + signal.SIGTERM


class _Terminated(BaseException):
    """SIGTERM as an exception, so that files are closed and temporary ones removed on the way out."""


@contextmanager
def _sigterm() -> Iterator[None]:
    import threading

    # Only the main thread may set handlers.
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: object) -> NoReturn:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_script(main: Callable[[], int | None]) -> NoReturn:
    """Run a script's main and exit: one clean line for what a user can cause, a traceback for bugs."""
    for stream in (sys.stdout, sys.stderr):
        # a file name need not be text in the terminal's encoding
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_status(main))


def _status(main: Callable[[], int | None]) -> int:
    try:
        with _sigterm():
            status = main() or 0
            # A pipe that broke shows at the latest here, while it can still be handled.
            sys.stdout.flush()
            return status
    except BrokenPipeError:
        # The interpreter flushes stdout once more at exit; give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except OSError as error:
        # Files of results carry errors of their own, so this is standard output: a full disk, say.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"error: cannot write the output: {error.strerror}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPT
    except _Terminated:
        print("terminated", file=sys.stderr)
        return EXIT_TERMINATED
    except InternalError:
        import traceback

        traceback.print_exc()
        return EXIT_ERROR
    except Exception as error:
        # The results package must not import this one; its user errors carry a mark instead.
        if isinstance(error, SimError) or getattr(error, "user_error", False):
            print(f"error: {error}", file=sys.stderr)
            return EXIT_ERROR
        raise
