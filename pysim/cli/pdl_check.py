"""``pysim check --pdl`` and ``--cusync``: where kernels may wait in their programs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from pysim.errors import ConfigError, InputError

from .exit_codes import EXIT_ERROR
from .options import machine_threads

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pysim.hazards.pdl import PdlCheck
    from pysim.hazards.plan import Row
    from pysim.hazards.simulated import Simulated
    from pysim.program.job import Job


def _rows(args: argparse.Namespace, job: Job) -> list[Row] | None:
    """Return the placement that the user asks for; None: none."""
    from pysim.hazards.places import START, TRIGGERS, WAITS, parse_place
    from pysim.hazards.plan import Row, check_rows, read_plan

    if args.plan is not None and (args.at is not None or args.trigger is not None):
        raise ConfigError("--plan: it says where kernels wait and trigger: without --at and --trigger")
    if args.plan is not None:
        rows = read_plan(args.plan)
        check_rows(job, rows)
        return rows
    if args.at is None and args.trigger is None:
        return None
    wait = START if args.at is None else parse_place(args.at, WAITS, "--at")
    trigger = START if args.trigger is None else parse_place(args.trigger, TRIGGERS, "--trigger")
    return [Row(wait=wait, trigger=trigger)]


def pdl_check(args: argparse.Namespace, job: Job) -> int:
    """Print what the user asks for; return the exit status."""
    from pysim.hazards.pdl import PdlCheck
    from pysim.hazards.simulated import Simulated
    from pysim.machine.system import resolve
    from pysim.program.definition_check import check_job

    if len(job.kernels) < 2:
        count = "one kernel" if job.kernels else "no kernel"
        raise InputError(f"job {job.name}: {count}: there is no pair")
    check_job(job)
    rows = _rows(args, job)
    check = PdlCheck(job)
    simulated = None
    if args.pairs or args.prove:
        simulated = Simulated(job, resolve(args.gpu, dict(args.set or ())), args.threads or machine_threads())
    if rows is None:
        return _advise(args, check, simulated)
    return _judge(args, check, rows, simulated)


def _advise(args: argparse.Namespace, check: PdlCheck, simulated: Simulated | None) -> int:
    """Print all pairs with their latest safe waits and gains."""
    from pysim.hazards.advice import TOGETHER, PdlAdvice
    from pysim.hazards.report import advice_lines, pair_dict, violation_text

    finder = PdlAdvice(check)
    advice = finder.advice(simulated if args.pairs else None, args.pairs, _say)
    job, bad = check.job, 0
    proved: dict[str, str] = {}
    if args.prove and simulated is not None:
        for name, row in TOGETHER.items():
            found = simulated.violation(check.placed([row]))
            bad += found is not None
            proved[name] = "the oracle finds nothing" if found is None else f"WRONG: {found.text}"
        for pair in finder.later(advice.pairs, args.pairs or 1):
            placed, hazard = finder.too_late(pair)
            said = violation_text(simulated.proof(placed, hazard.before), job)
            proved[f"{pair.before} -> {pair.after} without its wait"] = said
    if args.json:
        made: dict[str, Any] = {
            "job": job.name,
            "gpu": args.gpu,
            "plain_us": advice.plain_us,
            "together_us": {name: round(us, 3) for name, us in advice.together.items()},
            "pairs": [pair_dict(pair, job) for pair in advice.pairs],
        }
        print(json.dumps(made | ({"proved": proved} if proved else {}), indent=1))
    else:
        keys = [(finder.key(pair), pair.reason if not pair.latest else "") for pair in advice.pairs]
        print(f"{job.name} on {args.gpu}: {len(job.kernels)} kernels{_held(job)}, {len(advice.pairs)} pairs")
        print("\n".join(advice_lines(advice, job, keys)))
        if proved:
            print("\n" + "\n".join(f"{name}: {said}" for name, said in proved.items()))
    return EXIT_ERROR if bad else 0


def _held(job: Job) -> str:
    """Return a note on a job that holds only some of its layers."""
    return "" if job.shortened is None else " (of the layers that are simulated; so are times)"


def _say(text: str) -> None:
    """Tell a user who watches what is timed."""
    if sys.stderr.isatty():
        print(f"timing: {text}", file=sys.stderr)


def _judge(
    args: argparse.Namespace, check: PdlCheck, rows: Sequence[Row], simulated: Simulated | None
) -> int:
    """Print the verdict on a placement: each neighbouring pair, and other pairs with a hazard."""
    from pysim.hazards.judged import judge
    from pysim.hazards.report import judged_dict, judged_lines

    judged = judge(check, rows, simulated, args.pairs, args.prove)
    if args.json:
        print(
            json.dumps({"job": check.job.name, "gpu": args.gpu, **judged_dict(judged, check.job)}, indent=1)
        )
    else:
        print(f"{check.job.name} on {args.gpu}: {len(check.job.kernels)} kernels{_held(check.job)}")
        print("\n".join(judged_lines(judged, check.job)))
    return EXIT_ERROR if judged.hazards or judged.unforeseen else 0


def tile_check(args: argparse.Namespace, job: Job) -> int:
    """Print what semaphores of tiles leave out; return the exit status."""
    from pysim.hazards.tiles import check_tiles, tile_dict, tile_lines
    from pysim.machine.system import resolve

    options = "" if args.cusync == "default" else args.cusync
    threads = args.threads or machine_threads()
    verdict = check_tiles(job, options, resolve(args.gpu, dict(args.set or ())), args.prove, threads)
    if args.json:
        print(json.dumps({"job": job.name, "gpu": args.gpu, **tile_dict(verdict, job)}, indent=1))
    else:
        print(f"{job.name} under {verdict.scheme} on {args.gpu}: {len(job.kernels)} kernels")
        print("\n".join(tile_lines(verdict, job)))
    return EXIT_ERROR if verdict.unsafe or verdict.oracle.startswith("in simulation") else 0
