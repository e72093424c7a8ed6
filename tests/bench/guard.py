"""Fails when the core needs more instructions than it did: ``make guard``.

Times differ from run to run by a tenth, instruction counts hardly at all, so a small loss shows. Counts
are of the core alone, on one thread, and are compared with ``instructions.json``. Exit status: 0 as
stored or better, 1 worse or not comparable, 2 not measured.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from callgrind import MeasureError, count

STORED = Path(__file__).with_name("instructions.json")
LIMIT = 3  # per cent: more than this above the stored count fails

# name and workload (see case.py), each below half a minute under valgrind
INPUTS = (
    ("fp16 GEMM", "gemm:m=2048,n=2048,k=256,dtype=fp16,tile=fp16_s884gemm_256x128"),
    ("fp32 GEMM", "gemm:m=1024,n=1024,k=256,tile=sgemm_128x128"),
    ("H200 GEMM", "library:2048x2048x1024"),
    ("DRAM stream", "read:tbs=640,chunk=65536"),
    ("tiny TBs", "tiny:tbs=10000"),
    ("trace", "trace:pair_1stream"),
)


class Sample(NamedTuple):
    """One input's instructions, what they were spent on, and what they depend on."""

    instructions: int
    result: str  # hash of what was simulated
    compiler: str  # name and major version
    machine: str
    counts: dict[str, int]  # of the run: ops, warp_instructions, requests
    own: Counter[tuple[str, str]]  # instructions by function and source file

    def stored(self) -> dict[str, Any]:
        """Return what a later run is compared with."""
        return {key: getattr(self, key) for key in ("instructions", "result", "compiler", "machine")}


class Verdict(NamedTuple):
    """What a comparison says: whether it fails, and why in one line."""

    failed: bool
    line: str


def compiler_of(versions: str) -> str:
    """Return compiler and major version of a core's build text; refuse a core that is not optimised."""
    found = re.search(r"mode (\w+), compiler (\D*)(\d+).*, flags", versions)
    if not found:
        raise MeasureError(f"no compiler in the core's build text: {versions}")
    if found[1] != "release":
        raise MeasureError(f"the core was built in mode {found[1]}: run python build.py")
    return f"{'clang' if 'clang' in found[2].lower() else 'gcc'} {found[3]}"


def measure(workload: str) -> Sample:
    """Count the instructions of one input."""
    run, own = count(workload)
    counts = {key: run[key] for key in ("ops", "warp_instructions", "requests")}
    compiler, machine = compiler_of(run["versions"]), run["machine"].split()[0]
    return Sample(own.total(), run["result"], compiler, machine, counts, own)


def compare(name: str, now: Sample, stored: dict[str, Any] | None, strict: bool = False) -> Verdict:
    """Compare one input with its stored count."""
    if stored is None:
        return Verdict(True, f"{name}: no stored count: store it with --update")
    if now.result != stored["result"]:
        return Verdict(
            True,
            f"{name}: result changed ({stored['result']} to {now.result}): counts are not comparable;"
            " if the change is meant, renew them with --update",
        )
    before = stored["instructions"]
    more = 100 * (now.instructions - before)  # whole numbers: the limit itself passes
    text = f"{name}: {now.instructions:,} instructions, {more / before:+.2f} % against {before:,}"
    here, there = f"{now.compiler} on {now.machine}", f"{stored['compiler']} on {stored['machine']}"
    if here != there and not strict:
        return Verdict(False, f"warning: {text}, but those were taken with {there}, these with {here}")
    if more > LIMIT * before:
        return Verdict(True, f"{text}: the limit is {LIMIT:+d} %")
    if more < -LIMIT * before:
        return Verdict(False, f"{text}: better, so renew the stored count with --update")
    return Verdict(False, text)


def judge(
    samples: dict[str, Sample], stored: dict[str, Any], strict: bool = False, whole: bool = True
) -> list[Verdict]:
    """Compare all inputs; ``whole`` also finds stored counts whose input is gone."""
    found = [compare(name, sample, stored.get(name), strict) for name, sample in samples.items()]
    if whole:
        gone = [name for name in stored if name not in samples]
        found += [Verdict(True, f"{name}: stored, but no input: drop it with --update") for name in gone]
    return found


def read_stored(path: Path) -> dict[str, Any]:
    """Read stored counts, none if there is no file."""
    if not path.exists():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        for name, row in stored.items():
            if not (row["instructions"] > 0 and {"result", "compiler", "machine"} <= row.keys()):
                raise ValueError(f"{name} is not complete")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MeasureError(f"{path}: not a table of counts: {error}") from None
    return dict(stored)


def a_piece(instructions: int, pieces: int) -> str:
    """Write instructions a piece of work, which some inputs have none of."""
    return f"{instructions / pieces:.1f}" if pieces else "-"


def summary(samples: dict[str, Sample]) -> str:
    """Return one line an input: the total, and instructions for each kind of work."""
    lines = [f"{'input':14s}{'instructions':>16s}{'an op':>10s}{'a warp instr.':>15s}{'an L2 request':>15s}"]
    for name, sample in samples.items():
        op, warp, request = (a_piece(sample.instructions, pieces) for pieces in sample.counts.values())
        lines.append(f"{name:14s}{sample.instructions:16,d}{op:>10s}{warp:>15s}{request:>15s}")
    return "\n".join(lines)


def profile(name: str, workload: str, sample: Sample) -> str:
    """Return a Markdown table of own instructions by function, and by the header they were inlined from.

    Functions below one per cent are one row.
    """
    functions: Counter[str] = Counter()
    for (function, _), cost in sample.own.items():
        functions[function] += cost
    least = sample.instructions // 100
    rows: list[tuple[str, int]] = [("**all**", sample.instructions)]
    for function, cost in functions.most_common():
        if cost < least:
            break
        rows.append((f"`{function}`", cost))
        files = [(file, part) for (owner, file), part in sample.own.items() if owner == function]
        inlined = [(file, part) for file, part in files if file.endswith(".h") and part >= least]
        rows += [(f"· of these, from `{file}`", part) for file, part in sorted(inlined, key=lambda f: -f[1])]
    rows.append(("smaller ones", sum(cost for cost in functions.values() if cost < least)))
    lines = [
        f"{name} (`{workload}`):",
        "",
        "| function | share | an op | a warp instruction | an L2 request |",
        "|---|--:|--:|--:|--:|",
    ]
    for label, cost in rows:
        each = " | ".join(a_piece(cost, pieces) for pieces in sample.counts.values())
        lines.append(f"| {label} | {cost / sample.instructions:.1%} | {each} |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None, path: Path = STORED) -> int:
    """Count, then compare or renew; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--update", action="store_true", help="store the counts instead of comparing them")
    parser.add_argument(
        "--profile", action="store_true", help="print only where the instructions go, as Markdown"
    )
    parser.add_argument("--strict", action="store_true", help="compare counts of another compiler too")
    parser.add_argument("--only", default="", help="inputs whose name has this text")
    options = parser.parse_args(argv)
    chosen = {name: workload for name, workload in INPUTS if options.only in name}
    if not chosen:
        parser.error(f"--only {options.only}: inputs are {', '.join(name for name, _ in INPUTS)}")
    whole = len(chosen) == len(INPUTS)
    try:
        stored = read_stored(path)
        samples = {name: measure(workload) for name, workload in chosen.items()}
    except MeasureError as error:
        print(f"guard: {error}", file=sys.stderr)
        return 2
    if options.profile:
        print("\n".join(profile(name, chosen[name], sample) for name, sample in samples.items()).rstrip())
    else:
        print(summary(samples))
    if options.update:
        new = ({} if whole else stored) | {name: sample.stored() for name, sample in samples.items()}
        path.write_text(json.dumps(new, indent=2) + "\n", encoding="utf-8")
        return 0
    if options.profile:
        return 0
    verdicts = judge(samples, stored, options.strict, whole)
    for failed, line in verdicts:
        print(f"FAIL {line}" if failed else line, file=sys.stderr if failed else sys.stdout)
    return int(any(verdict.failed for verdict in verdicts))


if __name__ == "__main__":
    raise SystemExit(main())
