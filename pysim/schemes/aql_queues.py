"""Scheme ``queues``: kernels are AQL packets of hardware queues, with barrier packets between them.

A queue processes its packets in order. A kernel packet with the barrier bit waits until all packets before
it in its queue have completed; a barrier-AND packet waits for up to five signals of kernels in other queues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.dependence.kernel_order import reduce_preds
from pysim.params import PARAMS

from .core_tables import CoreTables
from .hooks import order_of
from .options import COHERENCE, SchemeOption
from .scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.program.job import Job

    from .known_edges import KnownEdges

QUEUE_MAPS = next(p for p in PARAMS["scheme.queues"] if p.name == "map").choices
MAX_SIGNALS = 5  # a barrier-AND packet names up to five (HSA platform system architecture, 2.9.4)


@dataclass(frozen=True, slots=True)
class QueuePackets:
    """Packets of a job, one entry a kernel.

    ``preds``: kernels that it waits for; ``queue``: its queue; ``barriers``: barrier packets before it.
    """

    preds: list[tuple[int, ...]]
    queue: list[int]
    barriers: list[int]


def _assign_queues(needs: Sequence[Sequence[int]], queues: int) -> list[int]:
    """Return a queue for each kernel: that of a predecessor still last in its queue, else the next one."""
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


def queue_packets(job: Job, preds: Sequence[Sequence[int]], queues: int, by_stream: bool) -> QueuePackets:
    """Return the packets of a job.

    ``preds``: kernels that each kernel depends on; ``queues``: how many there are; ``by_stream``: one queue a
    stream, ordered by events, else queues are assigned along the graph of ``preds``.
    """
    count = len(job.kernels)
    if by_stream:
        names = list(dict.fromkeys(k.stream for k in job.kernels))
        queue = [names.index(k.stream) % queues for k in job.kernels]
        needs: list[set[int]] = [set() for _ in range(count)]
        for before, after in job.events:
            needs[after].add(before)
    else:
        given = reduce_preds(preds)
        queue = _assign_queues(given, queues)
        needs = [set(p) for p in given]
    since_barrier: list[list[int]] = [[] for _ in range(queues)]  # kernels from the last barrier bit on
    made: list[tuple[int, ...]] = []
    barriers: list[int] = []
    for index in range(count):
        mine = since_barrier[queue[index]]
        own = {p for p in needs[index] if queue[p] == queue[index]}
        signals = needs[index] - own
        if by_stream or own:
            # the kernels in ``mine`` have waited for all before them in the queue
            made.append(tuple(sorted(signals | set(mine))))
            mine[:] = [index]
        else:
            made.append(tuple(sorted(signals)))
            mine.append(index)
        barriers.append(-(-len(signals) // MAX_SIGNALS))
    return QueuePackets(made, queue, barriers)


class AqlQueues(Scheme):
    """AQL packets in queues, of which ``scheme.queues.hardware`` are mapped to hardware at a time."""

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the queues and packets, by the job's streams or by the graph of its kernels."""
        by_stream = QUEUE_MAPS[values["scheme.queues.map"]] == "stream"
        count = len({k.stream for k in job.kernels}) if by_stream else values["scheme.queues.count"]
        made = queue_packets(job, known.deps.preds, count, by_stream)
        order = order_of(self, job, values) | {
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


QUEUES = AqlQueues(
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
