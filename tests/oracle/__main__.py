"""Check random jobs by their numbers: ``make oracle``, or a stretch of it (``FIRST=4000 JOBS=500``).

Each job runs under every scheme that takes it, twice: with the oracle, then in slices and on threads. Those
with an edge too few (``mutants``), and those whose TBs write neighbouring bytes of a sector (``unaligned``),
run under one scheme each, drawn at random. ``placements`` are waits and triggers of programmatic dependent
launch, which the static check judges first. What failed is named by its
number and scheme; the others are checked all the same. Exit status 1 where anything failed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import starmap

from . import random_jobs, random_mutations, random_placements, unaligned_jobs

CHECKS = {
    "settings": (random_jobs.case, random_jobs.check),
    "mutants": (random_mutations.mutant, random_mutations.check),
    "placements": (random_placements.case, random_placements.check),
    "unaligned": (unaligned_jobs.case, unaligned_jobs.check),
    "unaligned-mutants": (unaligned_jobs.mutant, unaligned_jobs.check_mutant),
}
EACH = 100  # jobs between two lines that say how far it is, and of one process at a time


def stretch(what, first, jobs, say=print):
    """Check so many numbers from ``first`` on; return those that failed."""
    make, hold = CHECKS[what]
    failed = []
    begin = time.monotonic()
    for number in range(first, first + jobs):
        try:
            hold(make(number))
        except Exception as error:  # whatever a wrong core or a wrong table may do
            failed.append(number)
            for each in getattr(error, "exceptions", (error,)):
                where = " ".join((what, str(number), *getattr(each, "__notes__", ())))
                say(f"{where}: {type(each).__name__}: {each}")
            say(f"  {make(number)}")
        done = number - first + 1
        if done % EACH == 0 or done == jobs:
            took = time.monotonic() - begin
            say(f"{what}: {done} of {jobs} from {first} on, {len(failed)} failed, {took:.0f} s")
    return failed


def told(what, first, jobs):
    """Check a stretch in a process of its own; return the numbers that failed, and what is to be said."""
    said = []
    return stretch(what, first, jobs, said.append), said


def spread(stretches, processes):
    """Check stretches (arguments of :func:`stretch`) in so many processes; return whether any job failed."""
    with ProcessPoolExecutor(processes) as pool:
        bad = False
        for failed, said in pool.map(told, *zip(*stretches, strict=True)):
            print("\n".join(said), flush=True)
            bad |= bool(failed)
        return bad


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.__main__", description=__doc__)
    parser.add_argument("--what", choices=CHECKS, help="what to check (all)")
    parser.add_argument("--first", type=int, default=0, help="number of the first job")
    parser.add_argument("--jobs", type=int, default=10_000, help="how many")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="side by side")
    args = parser.parse_args()
    begin, end = args.first, args.first + args.jobs
    stretches = [
        (what, number, min(EACH, end - number))
        for what in ([args.what] if args.what else CHECKS)
        for number in range(begin, end, EACH)
    ]
    try:
        bad = spread(stretches, args.processes) if args.processes > 1 else any([*starmap(stretch, stretches)])
    except BrokenProcessPool:
        sys.exit("a process ended: the core has crashed in one of the stretches that are not told of above")
    sys.exit(bad)


if __name__ == "__main__":
    main()
