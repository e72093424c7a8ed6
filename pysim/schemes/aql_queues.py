"""Kernels as packets in hardware queues, with barrier packets between them, as AMD's queues take them (AQL).

A queue takes its packets in order. A kernel packet with the barrier bit waits until all before it in its
queue have ended; a barrier packet waits for up to five signals of other queues' kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.dependence.groups import reduce_preds
from pysim.params import PARAMS

from .core_tables import CoreTables
from .options import COHERENCE, SchemeOption
from .scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.program.job import Job

    from .known_edges import KnownEdges

MAPS = next(p for p in PARAMS["scheme.queues"] if p.name == "map").choices
SIGNALS = 5  # a barrier-AND packet names up to five (HSA platform system architecture, 2.9.4)


@dataclass(frozen=True, slots=True)
class Packets:
    """``preds``: kernels whose ends a kernel's packets wait for; ``queue``; ``barriers`` in front of it."""

    preds: list[tuple[int, ...]]
    queue: list[int]
    barriers: list[int]


def _placed(needs: Sequence[Sequence[int]], queues: int) -> list[int]:
    """Return a queue for each kernel: behind one that it needs and nobody follows yet, else the next."""
    made: list[int] = []
    last = [-1] * queues
    turn = 0
    for index, sources in enumerate(needs):
        follows = [made[p] for p in sources if last[made[p]] == p]
        if follows:
            queue = follows[-1]
        else:
            queue, turn = turn, (turn + 1) % queues
        last[queue] = index
        made.append(queue)
    return made


def packets(job: Job, preds: Sequence[Sequence[int]], queues: int, by_stream: bool) -> Packets:
    """Return the packets of a job: ``by_stream`` its streams and events, else the graph of its kernels."""
    count = len(job.kernels)
    if by_stream:
        names = list(dict.fromkeys(k.stream for k in job.kernels))
        queue = [names.index(k.stream) % queues for k in job.kernels]
        needs: list[set[int]] = [set() for _ in range(count)]
        for before, after in job.events:
            needs[after].add(before)
    else:
        given = reduce_preds(preds)
        queue = _placed(given, queues)
        needs = [set(p) for p in given]
    behind: list[list[int]] = [[] for _ in range(queues)]  # since the last barrier bit, that one included
    made: list[tuple[int, ...]] = []
    barriers: list[int] = []
    for index in range(count):
        mine = behind[queue[index]]
        own = {p for p in needs[index] if queue[p] == queue[index]}
        signals = needs[index] - own
        if by_stream or own:
            # what lies before them in the queue they have waited for
            made.append(tuple(sorted(signals | set(mine))))
            mine[:] = [index]
        else:
            made.append(tuple(sorted(signals)))
            mine.append(index)
        barriers.append(-(-len(signals) // SIGNALS))
    return Packets(made, queue, barriers)


class Queues(Scheme):
    """Packets in queues, some of which have a slot in hardware."""

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the packets' order: of the job's streams, or of the graph of its kernels."""
        by_stream = MAPS[values["scheme.queues.map"]] == "stream"
        count = len({k.stream for k in job.kernels}) if by_stream else values["scheme.queues.count"]
        made = packets(job, known.deps.preds, count, by_stream)
        order = self.core_order(job, values) | {
            "queues": count,
            "slots": values["scheme.queues.hardware"],
            "ring": values["scheme.queues.ring"],
            "aware": values["scheme.queues.aware"],
            "packet": values["scheme.queues.packet"],
            "quantum": values["scheme.queues.quantum"],
            "submit": values["host.launch"],
            "beside": values["gpu.cp.beside"],
        }
        return CoreTables(made.preds, order, launches={"queue": made.queue, "packets": made.barriers})


QUEUES = Queues(
    "queues",
    "Kernels are packets of hardware queues, with barrier packets between them.",
    "gpu.cp.stream_gap",
    options=COHERENCE
    | {
        "stream": SchemeOption("a queue a stream", (("scheme.queues.map", "stream"),)),
        "oversubscribed": SchemeOption("four times as many queues", (("scheme.queues.count", 40),)),
        "aware": SchemeOption("queues that can go on first", (("scheme.queues.aware", 1),)),
        "kaveri": SchemeOption("4.4 us a packet", (("scheme.queues.packet", "4400ns"),)),
    },
)
