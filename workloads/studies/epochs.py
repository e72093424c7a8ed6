"""Epochs of networks that are trained on sequences: iterations by length, changed machines, projections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pysim.errors import ConfigError, WorkloadError
from pysim.machine.config import Config
from pysim.sweep.point import Point
from pysim.units import Value
from pysim.workloads.registry import arguments_of, parse

from .seqpoint import Selection, relative_error, total
from .sequence_lengths import Lengths, from_file, iterations, iwslt15, librispeech, thinned

BATCH = 64  # of the publication's epochs
LONGEST_SENTENCE = 50  # steps, marks included: MLPerf's GNMT leaves longer sentences out
BASE = "base"  # the machine of the call


class Published(NamedTuple):
    """Mean errors of time and speedup as shares, and iterations of an epoch over SeqPoints."""

    time: float
    speedup: float
    reduction: float


@dataclass(frozen=True, slots=True)
class Trained:
    """A network of the study: workload keys that are its length, the set, how a framework batches it."""

    keys: tuple[str, ...]
    lengths: Callable[[], Lengths]
    longest: int
    policy: str
    assumed: str
    published: Published


NETWORKS = {
    "gnmt": Trained(
        ("source", "target"),
        iwslt15,
        LONGEST_SENTENCE,
        "shards",
        "target sentences as long as source sentences",
        Published(0.0053, 0.0150, 214),
    ),
    "deepspeech2": Trained(
        ("steps",),
        librispeech,
        0,
        "sorted",
        "all utterances of a batch padded to the longest",
        Published(0.0011, 0.0013, 345),
    ),
}


class Change(NamedTuple):
    """A change of the hardware: parameters and the factor of their values."""

    paths: tuple[str, ...]
    factor: float
    doc: str

    def settings(self, config: Config) -> dict[str, Value]:
        """Return the values of the changed machine; counts and sizes are rounded."""
        whole = ("gpu.sms", "gpu.l2.size")
        values = {path: config.number(path) * self.factor for path in self.paths}
        return {path: round(value) if path in whole else value for path, value in values.items()}


CHANGES = {
    "sms": Change(("gpu.sms",), 1.25, "SMs x 1.25"),
    "l2": Change(("gpu.l2.size",), 2, "L2 size x 2"),
    "dram": Change(("gpu.dram.bandwidth",), 1.5, "DRAM bandwidth x 1.5"),
    "clock": Change(("gpu.clock",), 1.2, "SM clock x 1.2"),
    "launch": Change(("gpu.cp.launch", "gpu.cp.stream_gap", "gpu.cp.graph_gap"), 0.5, "launch latency / 2"),
}


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch of training.

    Attributes
    ----------
    network, text
        Key of ``NETWORKS``, and the workload without its length.
    counts
        Iterations by padded length.
    batch
        Sequences of an iteration.
    distinct
        Lengths before they were thinned.
    about
        Where the lengths are from, and what is assumed.
    """

    network: str
    text: str
    counts: Mapping[int, int]
    batch: int
    distinct: int
    about: str

    def workload(self, length: int) -> str:
        """Return the workload of an iteration of a length."""
        own = [f"{key}={length}" for key in NETWORKS[self.network].keys]
        return f"{self.text}{',' if ':' in self.text else ':'}{','.join(own)}"

    def points(
        self,
        machines: Mapping[str, Mapping[str, Value]],
        gpu: str,
        settings: Mapping[str, Value],
        schemes: Sequence[str],
    ) -> list[Point]:
        """Return a point of a sweep for each machine and length, the longest first; keys: machine, length.

        ``machines``: parameters that differ from ``settings``, by name.
        """
        return [
            Point(
                self.workload(length),
                gpu,
                tuple(schemes),
                {**settings, **own},
                ("none",),
                False,
                (name, length),
            )
            for name, own in machines.items()
            for length in sorted(self.counts, reverse=True)
        ]


def epoch(
    text: str,
    *,
    histogram: Path | None = None,
    policy: str = "",
    longest: int = 0,
    lengths: int = 0,
    seed: int = 0,
) -> Epoch:
    """Return an epoch of a workload, name:key=value,... without the keys of its length.

    ``histogram``: CSV file of lengths in place of the network's own; ``policy``: how sequences are batched;
    ``longest``: the longest sequence in steps; '' and 0: as the network's framework does. ``lengths``: so
    many lengths at most, spread over the range, to the next of which iterations are padded; 0: all. Training
    and batches of 64 unless the text says otherwise. Raises WorkloadError.
    """
    name, given = parse(text)
    if name not in NETWORKS:
        raise WorkloadError(f"{name}: no network that is trained on sequences: {', '.join(NETWORKS)}")
    known, row = arguments_of(name), NETWORKS[name]
    if missing := {*row.keys, "batch"} - known.keys():
        raise WorkloadError(f"{name} has no key {', '.join(sorted(missing))}")
    for key in row.keys:
        if key in given:
            raise WorkloadError(f"{name}: {key} is the length of an iteration, which the epoch decides")
    more = [] if "pass" in given or "pass_" in given else ["pass=training"]
    more += [] if "batch" in given else [f"batch={BATCH}"]
    whole = text + (("," if ":" in text else ":") + ",".join(more) if more else "")
    batch = int(str(given.get("batch", BATCH)))
    found = from_file(histogram) if histogram else row.lengths()
    # a file is taken whole
    limit = longest or (0 if histogram else row.longest)
    found = found.up_to(limit) if limit else found
    policy = policy or row.policy
    all_of_them = iterations(found, batch, policy, seed)
    counts = thinned(all_of_them, lengths) if lengths else all_of_them
    about = f"{found.about}; batches of {batch}: {policy}; {row.assumed}"
    return Epoch(name, whole, counts, batch, len(all_of_them), about)


def changed(names: Sequence[str], config: Config) -> tuple[dict[str, dict[str, Value]], dict[str, str]]:
    """Return the settings of changed machines by name, and of those that there cannot be the reason."""
    made, refused = {}, {}
    for name in names:
        own = CHANGES[name].settings(config)
        try:
            config.replaced(own)
        except ConfigError as error:
            refused[name] = str(error)
        else:
            made[name] = own
    return made, refused


@dataclass(frozen=True, slots=True)
class Projection:
    """Time of an epoch on a machine under a scheme, and its speedup over the epoch of the log.

    ``actual_us``: of all distinct lengths; ``projected_us``: of SeqPoints. Errors: projected over actual,
    less 1.
    """

    machine: str
    scheme: str
    actual_us: float
    projected_us: float
    speedup: float
    projected_speedup: float

    @property
    def error(self) -> float:
        """Error of the time."""
        return relative_error(self.projected_us, self.actual_us)

    @property
    def speedup_error(self) -> float:
        """Error of the speedup."""
        return relative_error(self.projected_speedup, self.speedup)


def projections(
    counts: Mapping[int, int],
    times: Mapping[tuple[str, str], Mapping[int, float]],
    chosen: Selection,
    log: tuple[str, str],
) -> list[Projection]:
    """Project the epoch on every machine and scheme from the SeqPoints that its log gave.

    ``times``: run time in us of an iteration by length, by machine and scheme; ``log``: the machine and
    scheme that SeqPoints were chosen on.
    """
    base, base_projected = total(counts, times[log]), chosen.projected(times[log])
    made = []
    for (machine, scheme), each in times.items():
        actual, projected = total(counts, each), chosen.projected(each)
        row = Projection(machine, scheme, actual, projected, base / actual, base_projected / projected)
        made.append(row)
    return made
