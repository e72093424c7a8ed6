"""Hazards and gains as text and as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .advice import LOADS_FIRST
from .simulated import LATE_US

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.job import Job

    from .advice import Advice, Pair
    from .judged import Judged
    from .pdl import Hazard
    from .simulated import Violation

_VERBS = {"RAW": ("reads", "writes"), "WAR": ("writes", "reads"), "WAW": ("writes", "writes")}
_SHOWN = 3  # TBs that are named
LINES = 8  # hazards that are printed


def _tbs(numbers: NDArray[Any]) -> str:
    some = ", ".join(str(tb) for tb in numbers[:_SHOWN].tolist())
    more = f" and {len(numbers) - _SHOWN:,} more" if len(numbers) > _SHOWN else ""
    return f"TB {some}" if len(numbers) == 1 else f"TBs {some}{more}"


def hazard_text(hazard: Hazard, job: Job) -> str:
    """Return one line: which TBs touch which bytes that which TBs of which kernel touch."""
    does, did = _VERBS[hazard.kind]
    first, end = (hazard.bytes[0] - hazard.address).tolist()
    total = int((hazard.bytes[:, 1] - hazard.bytes[:, 0]).sum())
    more = "" if len(hazard.bytes) == 1 else f" and on, {total:,} in all,"
    one, other = (f"kernel {n} ({job.kernels[n].name})" for n in (hazard.after, hazard.before))
    when = "behind its wait" if hazard.waited else "before its wait"
    plural = ("", "s")[len(hazard.others) == 1]
    did = did if plural else did.removesuffix("s")
    does = does if len(hazard.tbs) == 1 else does.removesuffix("s")
    return (
        f"{hazard.kind}: {when} {one}, {_tbs(hazard.tbs)}, {does} bytes {first:,} to {end:,}{more} of"
        f" {hazard.tensor}, which {_tbs(hazard.others)} of {other} {did}"
    )


def hazard_dict(hazard: Hazard, job: Job) -> dict[str, Any]:
    """Return a hazard as plain values."""
    return {
        "kind": hazard.kind,
        "before": hazard.before,
        "before_name": job.kernels[hazard.before].name,
        "after": hazard.after,
        "after_name": job.kernels[hazard.after].name,
        "behind_the_wait": hazard.waited,
        "tensor": hazard.tensor,
        "bytes": (hazard.bytes - hazard.address).tolist(),
        "tbs": hazard.tbs.tolist(),
        "others": hazard.others.tolist(),
    }


def violation_text(violation: Violation | None, job: Job) -> str:
    """Return what the oracle said of a placement that may be unsafe."""
    if violation is None:
        return f"not hit in this run, nor with the earlier kernel {LATE_US:.0f} us late"
    if violation.late is None:
        return f"the oracle: {violation.text}"
    name = job.kernels[violation.late].name
    return f"the oracle, with kernel {violation.late} ({name}) {LATE_US:.0f} us late: {violation.text}"


def pair_dict(pair: Pair, job: Job) -> dict[str, Any]:
    """Return a pair as plain values."""
    made: dict[str, Any] = {
        "before": pair.before,
        "before_name": job.kernels[pair.before].name,
        "after": pair.after,
        "after_name": job.kernels[pair.after].name,
        "verdict": verdict(pair),
    }
    if pair.latest:
        made |= {"latest_wait": pair.latest, "latest_wait_in_chain": pair.in_chain}
        for name, first in (("later_is_unsafe", pair.first), ("later_is_unsafe_in_chain", pair.chain_first)):
            made[name] = None if first is None else hazard_dict(first, job)
    if pair.gains:
        made["gains_us"] = [
            {"wait": wait, "trigger": trigger, "us": round(us, 3)}
            for (wait, trigger), us in pair.gains.items()
        ]
        made["as_kernel"] = pair.like
    return made


def verdict(pair: Pair) -> str:
    """Return the verdict on a pair whose wait is at a safe place."""
    if not pair.latest:
        return f"no overlap: {pair.reason}"
    if not pair.gains:
        return "safe, not timed"
    if pair.reason:
        return f"safe but useless: {pair.reason}"
    how = f", {LOADS_FIRST}" if pair.best[0].endswith(LOADS_FIRST) else ""
    return f"safe and worth {pair.gain_us:.2f} us{how}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of columns as wide as their longest cell."""
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)).rstrip() for row in rows]


def _some(hazards: Sequence[Hazard], job: Job) -> list[str]:
    made = [f"  {hazard_text(hazard, job)}" for hazard in hazards[:LINES]]
    return made + ([f"  and {len(hazards) - LINES} more (--json)"] if len(hazards) > LINES else [])


def advice_lines(advice: Advice, job: Job, keys: Sequence[object]) -> list[str]:
    """Return the table of pairs, what makes later waits unsafe, and the times of all pairs together.

    ``keys``: one a pair; pairs with equal keys are one row.
    """
    rows = [("pair", "latest safe wait", "all triggers at start", "best trigger", "verdict", "pairs")]
    first: dict[object, Pair] = {}
    count: dict[object, int] = {}
    for key, pair in zip(keys, advice.pairs, strict=True):
        first.setdefault(key, pair)
        count[key] = count.get(key, 0) + 1
    for key, pair in first.items():
        names = [f"{n} {job.kernels[n].name}" for n in (pair.before, pair.after)]
        trigger = pair.best[1] if pair.gains and not pair.reason else "-"
        rows.append((" -> ".join(names), pair.latest, pair.in_chain, trigger, verdict(pair), str(count[key])))
    made = aligned(rows)
    later = [pair.first for pair in first.values() if pair.first is not None]
    if later:
        made += ["", "a later wait is unsafe:", *_some(later, job)]
    chain = [
        pair.chain_first
        for pair in first.values()
        if pair.chain_first is not None and pair.in_chain != pair.latest
    ]
    if chain:
        made += ["", "and where each kernel triggers at its start:"]
        made += _some(chain, job)
    if advice.plain_us is not None:
        plain = advice.plain_us
        times = [("without", f"{plain:.2f} us", "")]
        times += [
            (name, f"{us:.2f} us", f"{plain - us:+.2f} us ({(plain - us) / plain:.1%})")
            for name, us in advice.together.items()
        ]
        made += ["", "all safe pairs together:", *(f"  {line}" for line in aligned(times))]
    return made


def judged_dict(judged: Judged, job: Job) -> dict[str, Any]:
    """Return the verdict on a placement as plain values."""
    pairs = [
        {
            "before": pair.before,
            "before_name": job.kernels[pair.before].name,
            "after": pair.after,
            "after_name": job.kernels[pair.after].name,
            "wait": pair.wait,
            "trigger": pair.trigger,
            "verdict": "unsafe" if pair.hazards else "safe",
            "hazards": [hazard_dict(hazard, job) for hazard in pair.hazards],
            **({"oracle": violation_text(pair.proof, job)} if pair.asked else {}),
        }
        for pair in judged.pairs
    ]
    made: dict[str, Any] = {"safe": not judged.hazards, "pairs": pairs}
    made |= {"cut": True} if judged.cut else {}
    if judged.plain_us is not None:
        made |= {"plain_us": judged.plain_us, "us": judged.us}
    if judged.clean or judged.unforeseen:
        made["oracle"] = judged.unforeseen
    return made


def judged_lines(judged: Judged, job: Job) -> list[str]:
    """Return the table of pairs, the hazards and what the oracle says of them; equal pairs are one row."""
    rows: dict[tuple[str, ...], int] = {}
    for pair in judged.pairs:
        names = f"{job.kernels[pair.before].name} -> {job.kernels[pair.after].name}"
        kinds = ", ".join(dict.fromkeys(hazard.kind for hazard in pair.hazards))
        cells = (names, pair.wait, pair.trigger, f"unsafe: {kinds}" if pair.hazards else "safe")
        rows[cells] = rows.get(cells, 0) + 1
    head = ("pair", "wait", "trigger", "verdict", "pairs")
    made = aligned([head, *((*cells, str(count)) for cells, count in rows.items())])
    if judged.hazards:
        many = len(judged.hazards)
        left = ", and those of later kernels" if judged.cut else ""
        made += ["", f"{many} hazard{'s' * (many > 1)}{left}:", *_some(judged.hazards, job)]
    proofs = [pair for pair in judged.pairs if pair.asked]
    if proofs:
        made += ["", *(f"{one.before} -> {one.after}: {violation_text(one.proof, job)}" for one in proofs)]
    if judged.clean or judged.unforeseen:
        said = "the oracle finds nothing"
        made += [
            "",
            f"WRONG, the oracle finds what is not foreseen: {judged.unforeseen}"
            if judged.unforeseen
            else said,
        ]
    if judged.plain_us is not None:
        wrong = ", and its result may be wrong" if judged.hazards else ""
        made += ["", f"without {judged.plain_us:.2f} us, with this placement {judged.us:.2f} us{wrong}"]
    return made
