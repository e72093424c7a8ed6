"""Check random jobs by their numbers: ``make oracle``, or a stretch of it (``FIRST=4000 JOBS=500``).

What failed is named by its number; the others are checked all the same. Exit status 1 where anything failed.
"""

from __future__ import annotations

import argparse
import sys
import time

from . import random_jobs, random_mutations

CHECKS = {
    "settings": (random_jobs.case, random_jobs.check),
    "mutants": (random_mutations.mutant, random_mutations.check),
}
EACH = 500  # jobs between two lines that say how far it is


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
            say(f"{what} {number}: {type(error).__name__}: {error}\n  {make(number)}")
        done = number - first + 1
        if done % EACH == 0 or done == jobs:
            took = time.monotonic() - begin
            say(f"{what}: {done} of {jobs} from {first} on, {len(failed)} failed, {took:.0f} s")
    return failed


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--what", choices=CHECKS, help="what to check (all)")
    parser.add_argument("--first", type=int, default=0, help="number of the first job")
    parser.add_argument("--jobs", type=int, default=10_000, help="how many")
    args = parser.parse_args()
    failed = [stretch(what, args.first, args.jobs) for what in ([args.what] if args.what else CHECKS)]
    sys.exit(any(failed))


if __name__ == "__main__":
    main()
