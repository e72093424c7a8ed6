"""Runs the ``main`` of a script: an error that a user can cause is one line on stderr, not a traceback.

Exit codes (``exit_codes.py``): EXIT_USAGE if what the user typed, or a file that it names, is wrong;
EXIT_ERROR if it could not be done.

This module imports little, so that a script can enter :func:`run_script` before its slow imports.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, Protocol

from pysim.errors import ConfigError, InputError, InternalError, OutputError, SimError, TimeUp, WorkloadError

from .exit_codes import EXIT_ERROR, EXIT_INTERRUPT, EXIT_PIPE, EXIT_TERMINATED, EXIT_TIME, EXIT_USAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def reading_input() -> Iterator[None]:
    """Turn a WorkloadError about what the user named, such as a trace, into an InputError."""
    try:
        yield
    except OutputError:
        raise
    except WorkloadError as error:
        raise InputError(str(error)) from error


class Terminated(BaseException):
    """SIGTERM as an exception, so that open files are closed and temporary files removed."""


class Keeper(Protocol):
    """What keeps the work of a script that a signal ends (``pysim.engine.checkpoints.Checkpoints``)."""

    def request(self) -> None:
        """Keep it soon, and go on."""

    def stop(self, error: BaseException) -> None:
        """Keep it, then raise ``error``: at once, or soon where a run is under way."""


_keepers: list[Keeper] = []
_stops: list[BaseException] = []  # what the last signal raised


def keep_on_signals(keeper: Keeper) -> None:
    """Let Ctrl-C and SIGTERM keep the work of the script before they end it; SIGUSR1 keeps it alone."""
    _keepers[:] = [keeper]


def _stop(number: int, _frame: object) -> None:
    error = KeyboardInterrupt() if number == signal.SIGINT else Terminated()
    _stops[:] = [error]
    if not _keepers:
        raise error
    _keepers[0].stop(error)


def _keep(_number: int, _frame: object) -> None:
    for keeper in _keepers:
        keeper.request()


@contextmanager
def _signals() -> Iterator[None]:
    import threading

    # Only the main thread may set handlers.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    chosen: dict[signal.Signals, Callable[[int, object], None]] = {signal.SIGTERM: _stop}
    # a shell's background job ignores Ctrl-C
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        chosen[signal.SIGINT] = _stop
    if hasattr(signal, "SIGUSR1"):
        chosen[signal.SIGUSR1] = _keep
    before = {number: signal.signal(number, handler) for number, handler in chosen.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _keepers.clear()
        _stops.clear()


def raise_if_stopped(error: Exception) -> None:
    """Raise what a signal raised instead of the ``error`` that came of it.

    NumPy, while it compares structured arrays, turns what a signal handler raises into a TypeError.
    """
    if _stops:
        raise _stops[0] from error


def _called(main: Callable[[], int | None]) -> int:
    try:
        return main() or 0
    except Exception as error:
        raise_if_stopped(error)
        raise


def run_script(main: Callable[[], int | None]) -> NoReturn:
    """Run ``main`` and exit with its status: user errors print one line, bugs a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # a file name may hold bytes that the terminal's encoding cannot show
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_status(main))


def lose_output(error: OSError) -> None:
    """Say on stderr that stdout takes no more, and let the interpreter flush it into nothing at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print(f"error: cannot write the output: {error.strerror}", file=sys.stderr)


def _status(main: Callable[[], int | None]) -> int:
    try:
        with _signals():
            status = _called(main)
            # A broken pipe raises here at the latest, where it can still be handled.
            if sys.stdout is not None:  # None: it was closed before the start
                sys.stdout.flush()
            return status
    except BrokenPipeError:
        # The interpreter flushes stdout again at exit, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except OSError as error:
        # Result files raise StoreError, so this error is of standard output: a full disk, for example.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
            raise
        lose_output(error)
        return EXIT_ERROR
    except TimeUp:
        print("stopped at --max-time: --resume goes on from the checkpoint", file=sys.stderr)
        return EXIT_TIME
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPT
    except Terminated:
        print("terminated", file=sys.stderr)
        return EXIT_TERMINATED
    except InternalError:
        import traceback

        traceback.print_exc()
        return EXIT_ERROR
    except Exception as error:
        # stats must not import pysim, so its user errors are marked by an attribute.
        if isinstance(error, SimError) or getattr(error, "user_error", False):
            print(f"error: {error}", file=sys.stderr)
            return EXIT_USAGE if isinstance(error, ConfigError | InputError) else EXIT_ERROR
        raise
