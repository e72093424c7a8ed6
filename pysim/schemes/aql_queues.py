"""Kernels as packets in hardware queues, with barrier packets between them, as AMD's queues take them (AQL).

A queue takes its packets in order. A kernel packet with the barrier bit waits until all before it in its
queue have ended; a barrier packet waits for up to five signals of other queues' kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.dependence.groups import reduced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pysim.program.job import Job

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
        given = reduced(preds)
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
