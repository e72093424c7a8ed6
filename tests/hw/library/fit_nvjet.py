"""Fit ``workloads/library/choices/nvjet.py`` to measured choices: ``fit_nvjet.py [FOLD] [ROUNDS]``.

A choice is as likely as exp(-SHARPNESS ln price) over the sum of all candidates; the constants maximise the
likelihood of the rows that are not in FOLD (-1: of all). Candidates far from the best are left out, anew each
round, in which every constant is moved up and down by shrinking steps where that helps. Prints the constants
as JSON and, to stderr, the mean loss: 0.833 of all rows with the package's constants, from which it starts.
A round takes half a minute and gains little: the package's were found with L-BFGS (scipy) on this likelihood.
"""

import json
import math
import sys

from pysim.workloads.library.choices import accuracy, nvjet

SHARPNESS = 90.0
KEPT = 25  # candidates of a row, the cheapest
STEPS = (0.05, 0.01, 0.002)  # relative; of preferences in units of 5 %


def _same(it, choice):
    kernel = it.kernel
    tile = (kernel.m, kernel.n) == choice.tile[:2] and kernel.swapped == (choice.name[-1] == "N")
    return tile and it.cluster == choice.cluster and it.split == choice.split_k


def _contest(row, constants):
    """Return the measured candidate of a row and its cheapest rivals; None where it is no candidate."""
    all_of_row = nvjet.candidates(row.problem)
    mine = [it for it in all_of_row if _same(it, row.choice)]
    if not mine:
        return None
    rivals = sorted((it for it in all_of_row if it is not mine[0]), key=lambda it: nvjet.cost(it, constants))
    return [mine[0], *rivals[:KEPT]]


def _loss(constants, contests):
    total = 0.0
    for contest in contests:
        own, *others = [SHARPNESS * math.log(nvjet.cost(it, constants)) for it in contest]
        total += math.log1p(sum(math.exp(min(50.0, own - other)) for other in others))
    return total / len(contests)


def _improved(constants, contests):
    """Return constants moved one at a time where the loss falls, and the loss."""
    best = _loss(constants, contests)
    for step in STEPS:
        for name in constants:
            for sign in (1, -1):
                moved = dict(constants)
                moved[name] += sign * step * (constants[name] if name in nvjet.CONSTANTS else 5)
                loss = _loss(moved, contests)
                if loss < best:
                    constants, best = moved, loss
    return constants, best


def main():
    """Fit and print."""
    fold, rounds = (int(sys.argv[i]) if len(sys.argv) > i else start for i, start in ((1, -1), (2, 3)))
    rows = [row for row in accuracy.sweep() if row.choice.family == "nvjet" and row.fold != fold]
    constants = nvjet.constants()
    for _ in range(rounds):
        contests = [contest for row in rows if (contest := _contest(row, constants))]
        constants, loss = _improved(constants, contests)
        print(f"{len(contests)} of {len(rows)} rows, loss {loss:.4f}", file=sys.stderr, flush=True)
    print(json.dumps({name: float(f"{value:.4g}") for name, value in constants.items()}, indent=1))


if __name__ == "__main__":
    main()
