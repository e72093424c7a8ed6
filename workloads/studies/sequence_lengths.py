"""Lengths of the sequences that networks are trained on, and the batches that a framework makes of them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pysim.errors import WorkloadError, brief

# IWSLT'15 English-Vietnamese: the sentences of its training set, and tokens of which each has one more
PAIRS, MARKS = 133_317, 2
# LibriSpeech train-clean-100 as published: utterances, hours, shortest and longest in seconds
UTTERANCES, HOURS, SHORTEST, LONGEST = 28_539, 100.6, 1.4, 24.5
MODE = 15.0  # assumed, in seconds
FRAME_MS, FRAMES_OF_STEP = 10, 2
SHARD, BUCKETS = 80, 5  # batches of a shard; buckets of the range of lengths
MOST_BYTES = 1 << 24
POLICIES = {
    "sorted": "the whole set sorted by length, cut into batches (first epoch of DeepSpeech2)",
    "shards": f"drawn shards of {SHARD} batches, each sorted by length and cut into batches (NVIDIA's GNMT)",
    "buckets": f"{BUCKETS} buckets of equal width, batches drawn within each (MLPerf's GNMT)",
    "random": "batches drawn from the whole set",
}


@dataclass(frozen=True, slots=True)
class Lengths:
    """Sequences of a training set by length in time steps. ``about``: their source, and what is assumed."""

    counts: Mapping[int, int]
    about: str

    def up_to(self, longest: int) -> Lengths:
        """Return the set without sequences longer than ``longest`` steps."""
        kept = {length: count for length, count in self.counts.items() if length <= longest}
        if not kept:
            raise WorkloadError(
                f"no sequence has at most {longest} steps: the shortest has {min(self.counts)}"
            )
        return Lengths(kept, f"{self.about}; longer than {longest} left out")


def iwslt15() -> Lengths:
    """Return the English sentences of the training set of IWSLT'15 English-Vietnamese.

    Steps are words between blanks and two marks, of the begin and the end. Lengths of the first 14,925 of
    133,317 sentences are known; their histogram is scaled to all.
    """
    text = files("pysim.workloads").joinpath("measured", "iwslt15_en_lengths.csv").read_text(encoding="utf-8")
    known = {int(row["tokens"]): int(row["count"]) for row in csv.DictReader(io.StringIO(text))}
    counts = {length + MARKS: count for length, count in scaled(known, PAIRS).items()}
    about = f"IWSLT'15 English words and {MARKS} marks, {sum(known.values()):,} sentences scaled to {PAIRS:,}"
    return Lengths(counts, about)


def librispeech() -> Lengths:
    """Return the utterances of LibriSpeech train-clean-100, of an assumed shape.

    Published: 28,539 utterances, 100.6 h, 1.4 to 24.5 s. Assumed: the density rises linearly from the
    shortest to a mode of 15 s and falls exponentially from there, at the rate that gives the published hours.
    Utterances are the quantiles of that density. A step is two frames of 10 ms.
    """
    rate = _rate()
    seconds = _quantiles((np.arange(UTTERANCES) + 0.5) / UTTERANCES, rate)
    frames = np.rint(seconds * 1000 / FRAME_MS).astype(np.int64)
    counts = Counter((-(-frames // FRAMES_OF_STEP)).tolist())
    about = (
        f"LibriSpeech train-clean-100, {UTTERANCES:,} utterances, {HOURS} h, {SHORTEST} to {LONGEST} s;"
        f" ASSUMED shape: linear rise to {MODE:g} s, then exponential fall of {rate:.2f} s"
    )
    return Lengths(dict(sorted(counts.items())), about)


def _areas(scale: float) -> tuple[float, float]:
    """Return the areas under the rise and the fall of a density that is 1 at its mode."""
    return (MODE - SHORTEST) / 2, scale * float(-np.expm1(-(LONGEST - MODE) / scale))


def _mean(scale: float) -> float:
    rise, fall = _areas(scale)
    room = LONGEST - MODE
    inside = scale - room * float(np.exp(-room / scale)) / float(-np.expm1(-room / scale))
    return (rise * (SHORTEST + (MODE - SHORTEST) * 2 / 3) + fall * (MODE + inside)) / (rise + fall)


def _rate() -> float:
    """Return the scale of the fall, in seconds, by bisection on the mean."""
    low, high = 0.01, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(middle) < HOURS * 3600 / UTTERANCES else (low, middle)
    return (low + high) / 2


def _quantiles(shares: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Return the durations below which these shares of all utterances are, in seconds."""
    rise, fall = _areas(scale)
    area = shares * (rise + fall)
    before = SHORTEST + np.sqrt(np.minimum(area, rise) * 2 * (MODE - SHORTEST))
    after = MODE - scale * np.log1p(-np.maximum(area - rise, 0) / scale)
    return np.where(area <= rise, before, np.minimum(after, LONGEST))


def from_file(path: Path) -> Lengths:
    """Read a CSV file with the columns ``length`` (time steps) and ``count`` (sequences of it).

    Raises WorkloadError that names the file and the line.
    """
    shown, counts = brief(str(path), 200), {}
    try:
        with path.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise WorkloadError(f"{shown}: more than {MOST_BYTES >> 20} MiB")
        rows = list(csv.reader(io.StringIO(data.decode("utf-8"))))
    except OSError as error:
        raise WorkloadError(f"{shown}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise WorkloadError(f"{shown}: no table in CSV") from None
    if not rows or rows[0] != ["length", "count"]:
        raise WorkloadError(f"{shown}: line 1: must be length,count")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != 2 or not all(word.isascii() and word.isdigit() and 0 < len(word) < 10 for word in row):
            raise WorkloadError(f"{shown}: line {number}: must be two positive integers below 1e9")
        length, count = map(int, row)
        if not length or not count or length in counts:
            raise WorkloadError(f"{shown}: line {number}: {brief(','.join(row))}: zero, or a length again")
        counts[length] = count
    if not counts:
        raise WorkloadError(f"{shown}: no length")
    return Lengths(dict(sorted(counts.items())), f"{path.name}, {sum(counts.values()):,} sequences")


def scaled(counts: Mapping[int, int], size: int) -> dict[int, int]:
    """Return counts in the same proportions that add up to ``size``: largest remainders are rounded up."""
    whole = sum(counts.values())
    made = {length: count * size // whole for length, count in counts.items()}
    by_rest = sorted(counts, key=lambda length: (-(counts[length] * size % whole), length))
    for length in by_rest[: size - sum(made.values())]:
        made[length] += 1
    return {length: count for length, count in sorted(made.items()) if count}


def iterations(lengths: Lengths, batch: int, policy: str, seed: int = 0) -> dict[int, int]:
    """Return the iterations of an epoch by padded length: the longest sequence of each batch.

    ``policy``: a key of ``POLICIES``. A last batch that is not full is dropped, of each bucket, too. Raises
    WorkloadError for another policy, and where no batch is full.
    """
    if policy not in POLICIES:
        raise WorkloadError(f"policy = {brief(policy)}: must be {', '.join(POLICIES)}")
    if batch < 1:
        raise WorkloadError(f"batch = {batch}: must be positive")
    each = np.repeat(
        np.array(list(lengths.counts), np.int64), np.array(list(lengths.counts.values()), np.int64)
    )
    if policy == "sorted":
        groups = [np.sort(each)]
    else:
        # the raw stream of the generator is the same in all versions of NumPy
        drawn = each[np.argsort(np.random.PCG64(seed).random_raw(len(each)), kind="stable")]
        if policy == "shards":
            starts = range(0, len(drawn), SHARD * batch)
            groups = [np.sort(drawn[start : start + SHARD * batch]) for start in starts]
        elif policy == "buckets":
            width = -(-int(each.max()) // BUCKETS)
            groups = [drawn[(drawn - 1) // width == number] for number in range(BUCKETS)]
        else:
            groups = [drawn]
    padded: Counter[int] = Counter()
    for group in groups:
        full = len(group) // batch * batch
        padded.update(group[:full].reshape(-1, batch).max(axis=1).tolist())
    if not padded:
        raise WorkloadError(f"batch = {batch}: {len(each):,} sequences fill no batch")
    return dict(sorted(padded.items()))


def thinned(counts: Mapping[int, int], most: int) -> dict[int, int]:
    """Return iterations of at most ``most`` lengths spread over the range: each is padded to the next."""
    low, high = min(counts), max(counts)
    span = high - low + 1
    made: Counter[int] = Counter()
    for length, count in counts.items():
        number = (length - low) * most // span
        # the longest whole length of that part of the range
        made[low + -(-(number + 1) * span // most) - 1] += count
    return dict(sorted(made.items()))
