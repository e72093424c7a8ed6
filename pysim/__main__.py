"""The command ``pysim`` (``cli/command.py``)."""

from __future__ import annotations

from .cli.entry import run_script


def _run() -> int | None:
    from .cli.command import run

    return run()


def main() -> None:
    """Run the command and exit."""
    run_script(_run)


if __name__ == "__main__":
    main()
