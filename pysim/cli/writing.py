"""Commands that write files: the SASS trace of a workload, the device file of a measured GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pysim.errors import ConfigError, OutputError
from pysim.machine.devices import device

if TYPE_CHECKING:
    import argparse


def write_trace(args: argparse.Namespace) -> None:
    """Write a workload as a SASS trace to a folder."""
    from pysim.trace import writer
    from pysim.workloads.registry import make

    job = make(args.workload, args.gpu)
    count = len(job.kernels)
    chosen = None
    for first, last in args.kernels or ():
        if last > count:
            raise ConfigError(f"--kernels: no kernel {last}: {job.name} has 1 to {count}")
        chosen = {*(chosen or ()), *range(first, last + 1)}
    done = writer.write_trace(
        job, Path(args.folder), binary=args.binary, compress=args.compress, kernels=chosen, force=args.force
    )
    size = f"{done.instructions:,} warp instructions, {done.characters:,} B of text"
    print(f"{args.folder}: {len(done.files) - 1} kernels, {size}")
    if job.events:
        print(f"left out: {len(job.events)} events between streams, which the trace format cannot express")


def calibrate(args: argparse.Namespace) -> None:
    """Make a device file from measurements."""
    from pysim.machine import calibrate as measurements

    base, path = args.base, args.out
    text, kept = measurements.calibrate(Path(args.folder), base)
    if path is None:
        print(text, end="")
        return
    if path.suffix != ".toml":
        raise ConfigError(f"{path}: the name of a device file ends in .toml")
    try:
        with path.open("w" if args.force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise OutputError(f"{path} is there already: --force replaces it") from None
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
    made = device(str(path))
    print(f"{path}: {made.title}; {len(made.values) - len(kept)} numbers measured, {len(kept)} of {base}")
