"""``python -m pysim.workloads.mirrored [--memory] [KERNEL ...]``: counts beside the profiler's, in %."""

from __future__ import annotations

import argparse

from pysim.cli.entry import run_script

from . import TEMPLATES
from .code import COUNTERS, SECTORS
from .compare import MEMORY, compare


def main() -> None:
    """Print a row a configuration and the largest error of each counter."""
    parser = argparse.ArgumentParser(prog="python -m pysim.workloads.mirrored", description=__doc__)
    parser.add_argument(
        "kernels", nargs="*", metavar="KERNEL", help=f"of {', '.join(TEMPLATES)} (default: all)"
    )
    parser.add_argument(
        "--memory", action="store_true", help="simulate, for L2 and DRAM: ten minutes for all"
    )
    args = parser.parse_args()
    for kernel in args.kernels:
        if kernel not in TEMPLATES:
            parser.error(f"no measured kernel {kernel!r}")
    names = (*COUNTERS, *SECTORS, *(MEMORY if args.memory else ()))
    print(f"{'%':<52}" + "".join(f"{name[:9]:>10}" for name in names))
    worst = dict.fromkeys(names, 0.0)
    for row, found in compare(args.kernels, args.memory):
        cells = [f"{100 * found[name]:10.2f}" if name in found else f"{'-':>10}" for name in names]
        print(f"{row['kernel'] + ' ' + row['params']:<52}" + "".join(cells), flush=True)
        worst = {name: max(worst[name], abs(found.get(name, 0.0))) for name in names}
    print(f"{'worst':<52}" + "".join(f"{100 * worst[name]:10.2f}" for name in names))


if __name__ == "__main__":
    run_script(main)
