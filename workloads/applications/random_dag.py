"""Random jobs with many true dependences and no race: for tests of the ordering schemes."""

from __future__ import annotations

from random import Random

from pysim.errors import WorkloadError
from pysim.program.job import Job, Kernel, Memory
from pysim.program.memory_budget import claim_launches
from pysim.workloads.kernels.copy import copy
from pysim.workloads.kernels.pointwise import Field, elementwise, flat

Span = tuple[int, int, int]  # tensor number, first and past-the-last sector
SECTOR = 8  # elements
PAIR, TENSOR = 44, 512  # bytes while a job is made: of two kernels (their order), of a tensor


def _conflict(a: tuple[list[Span], list[Span]], b: tuple[list[Span], list[Span]]) -> bool:
    """Whether two kernels, as (reads, writes), must keep their order."""

    def meet(one: list[Span], other: list[Span]) -> bool:
        return any(p[0] == q[0] and p[1] < q[2] and q[1] < p[2] for p in one for q in other)

    return meet(a[1], b[0]) or meet(a[0], b[1]) or meet(a[1], b[1])


def random_dag(
    kernels: int = 32,
    streams: int = 3,
    tensors: int = 4,
    elements: int = 16384,
    seed: int = 1,
    largest: int = 4096,
) -> Job:
    """Make ``kernels`` small copies and sums on random ranges of a few shared tensors (fp32).

    Kernels sit on random streams; wherever two of different streams conflict (RAW, WAR or WAW) and are not
    ordered already, the later one's stream waits for an event of the earlier one.
    """
    if min(kernels, streams, tensors, elements, largest) < 1 or largest * 2 > elements or tensors < 2:
        raise WorkloadError("random_dag: two tensors at least, largest at most elements / 2, all positive")
    claim_launches(kernels, "random_dag", 4 * kernels, kernels, kernels**2 * PAIR + tensors * TENSOR)
    random = Random(seed)
    memory = Memory()
    data = [flat(memory.tensor(f"t{i}", 1, elements, 4)) for i in range(tensors)]
    made: list[Kernel] = []
    spans: list[tuple[list[Span], list[Span]]] = []
    before: list[set[int]] = []
    last: dict[int, int] = {}
    events: list[tuple[int, int]] = []
    for index in range(kernels):
        stream = random.randrange(streams)
        count = random.randint(1, largest)
        target = random.randrange(tensors)
        others = [t for t in range(tensors) if t != target]
        sources = random.sample(others, min(len(others), random.randint(1, 2)))
        # multiples of 4 give vector accesses, others the 4-byte path
        align = random.choice((1, 4, 32))
        starts = {t: random.randrange((elements - count) // align + 1) * align for t in (target, *sources)}
        threads = random.choice((32, 64, 128))
        if len(sources) == 1:
            kernel = copy(
                f"copy{index}", data[sources[0]], data[target], start=starts[sources[0]],
                target_start=starts[target], count=count, threads=threads, unroll=random.choice((1, 2)),
                stream=stream,
            )  # fmt: skip
        else:
            reads = [Field(data[t], starts[t]) for t in sources]
            in_place = random.random() < 0.5
            out = Field(data[target], starts[target])
            kernel = elementwise(
                f"sum{index}", [*reads, out] if in_place else reads, [out], cols=count,
                per_element={"fp32": random.randint(1, 40), "int": 2}, threads=threads, stream=stream,
            )  # fmt: skip
        # two ranges that share a sector conflict, as the memory sees them
        parts = {t: (t, at // SECTOR, -(-(at + count) // SECTOR)) for t, at in starts.items()}
        mine = [parts[t] for t in (*sources, target)], [parts[target]]
        ancestors: set[int] = set()
        if stream in last:
            ancestors |= before[last[stream]] | {last[stream]}
        for earlier in range(index - 1, -1, -1):
            if earlier not in ancestors and _conflict(spans[earlier], mine):
                events.append((earlier, index))
                ancestors |= before[earlier] | {earlier}
        made.append(kernel)
        spans.append(mine)
        before.append(ancestors)
        last[stream] = index
    return Job(f"random_dag:seed={seed}", made, sorted(events))
