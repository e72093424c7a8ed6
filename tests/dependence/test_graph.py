"""The graph of TBs, its patterns and renaming, against brute force over sets of granules."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim import simulate
from pysim.dependence import graph as graph_module
from pysim.dependence.dependences import dependences
from pysim.dependence.graph import build_graph
from pysim.dependence.groups import RAW, WAR, WAW, without_edges
from pysim.dependence.patterns import PATTERNS, independent_tbs, pair_patterns, previous_in_stream
from pysim.errors import WorkloadError
from pysim.program.job import Access, Job, Kernel, Tensor
from pysim.program.regions import GRANULES
from pysim.program.rename import renamed
from pysim.workloads.registry import make
from tests.program.test_footprints import as_recorded, traces

from .test_dependences import PROGRAM, closure, jobs, kernel, tiles

Tb = tuple[int, int]
Edges = dict[tuple[Tb, Tb], int]
BYTES = sorted(GRANULES.values())


def touched(job: Job, granule: int) -> dict[int, list[tuple[int, int, bool]]]:
    """Return who touches each granule as (kernel, TB, whether it writes), byte by byte."""
    made: dict[int, set[tuple[int, int, bool]]] = {}
    for number, launch in enumerate(job.kernels):
        if launch.footprint is not None:
            for tb, start, end, mode in zip(*(c.tolist() for c in launch.footprint._rows()), strict=True):
                for byte in range(start, end):
                    made.setdefault(byte // granule, set()).add((number, tb, mode != 0))
        for access in launch.accesses:
            t = access.tensor
            for tb, rect in enumerate(access.regions(np.arange(launch.tbs)).tolist()):
                row0, row1, col0, col1 = rect
                for row, col in itertools.product(
                    range(max(row0, 0), min(row1, t.rows)), range(max(col0, 0), min(col1, t.cols))
                ):
                    for byte in range(t.item):
                        at = t.address + row * t.pitch + col * t.item + byte
                        made.setdefault(at // granule, set()).add((number, tb, access.mode != "read"))
    return {where: sorted(rows) for where, rows in made.items()}


def oracle(job: Job, granule: int) -> tuple[Edges, Edges]:
    """Return (all conflicts, those that no write of a kernel between hides), with their kinds."""
    every: Edges = {}
    direct: Edges = {}
    for rows in touched(job, granule).values():
        writers = {kernel for kernel, _, written in rows if written}
        for (ka, ta, wa), (kb, tb, wb) in itertools.product(rows, rows):
            if ka < kb and (wa or wb):
                kind = (WAW if wa else WAR) if wb else RAW
                pair = ((ka, ta), (kb, tb))
                every[pair] = every.get(pair, 0) | kind
                if not any(ka < writer < kb for writer in writers):
                    direct[pair] = direct.get(pair, 0) | kind
    return every, direct


def edges_of(graph: graph_module.Graph) -> Edges:
    """Read the compressed rows back."""
    ptr, producers, kinds = graph.csr()
    assert len(ptr) == graph.tbs + 1
    assert ptr[-1] == len(producers) == len(kinds) == graph.edges

    def place(number: int) -> Tb:
        at = int(np.searchsorted(graph.offsets, number, side="right")) - 1
        return at, number - int(graph.offsets[at])

    made: Edges = {}
    for tb in range(graph.tbs):
        mine = producers[ptr[tb] : ptr[tb + 1]].tolist()
        assert mine == sorted(set(mine))
        for at in range(ptr[tb], ptr[tb + 1]):
            made[place(int(producers[at])), place(tb)] = int(kinds[at])
    return made


def named(sets: dict[int, frozenset[int]], tbs: int, producers: int, grid: tuple[int, int, int]) -> str:
    """Name the pattern as docs/dependences.md defines it; ``sets``: the producers of each waiting TB."""
    users = Counter(p for mine in sets.values() for p in mine)
    most, consumers = max(map(len, sets.values())), max(users.values())
    apart = all(a == b or not a & b for a, b in itertools.combinations(sets.values(), 2))
    steps = {b - a for mine in sets.values() for a, b in itertools.pairwise(sorted(mine))}

    def box(mine: frozenset[int]) -> bool:
        x, y, _ = grid
        places = [(p % x, p // x % y, p // (x * y)) for p in mine]
        return len(mine) == np.prod([len(range(min(c), max(c) + 1)) for c in zip(*places, strict=True)])

    if most == 1:
        return "one-to-one" if consumers == 1 else "one-to-n"
    if len(sets) == tbs > 1 and all(len(mine) == producers for mine in sets.values()):
        return "all-to-all"
    if apart and len(steps) == 1 and max(steps) > 1:
        return "strided"
    if consumers == 1:
        return "n-to-one"
    if apart:
        return "row" if steps == {1} else "grouped"
    return "overlapped" if steps <= {1} or all(map(box, sets.values())) else "irregular"


def check_pairs(job: Job, graph: graph_module.Graph, edges: Edges) -> None:
    rows = pair_patterns(graph, [k.grid for k in job.kernels])
    pairs: dict[tuple[int, int], dict[int, dict[int, int]]] = {}
    for ((ka, ta), (kb, tb)), kind in edges.items():
        pairs.setdefault((kb, ka), {}).setdefault(tb, {})[ta] = kind
    assert [(int(r["kernel"]), int(r["producer_kernel"])) for r in rows] == sorted(pairs)
    for row in rows:
        later, earlier = int(row["kernel"]), int(row["producer_kernel"])
        mine = pairs[later, earlier]
        every = [kind for needs in mine.values() for kind in needs.values()]
        users = Counter(p for needs in mine.values() for p in needs)
        want = {
            "tbs": job.kernels[later].tbs, "producer_tbs": job.kernels[earlier].tbs, "waiting": len(mine),
            "needed": len(users), "edges": len(every), "most": max(map(len, mine.values())),
            "most_consumers": max(users.values()), "raw": sum(bool(k & RAW) for k in every),
            "war": sum(bool(k & WAR) for k in every), "waw": sum(bool(k & WAW) for k in every),
            "nodes": len({frozenset(needs.items()) for needs in mine.values()}),
        }  # fmt: skip
        assert {name: int(row[name]) for name in want} == want
        assert row["ranges"] >= row["nodes"]
        sets = {tb: frozenset(needs) for tb, needs in mine.items()}
        grid = job.kernels[earlier].grid
        name = named(sets, job.kernels[later].tbs, job.kernels[earlier].tbs, grid)
        assert row["pattern"].decode() == name


def check_free(job: Job, graph: graph_module.Graph, edges: Edges) -> None:
    after = closure(set(edges), job)
    before = previous_in_stream([k.stream for k in job.kernels])
    want = [
        sum(all(source != before[k] for source, _ in after[k, tb]) for tb in range(launch.tbs))
        for k, launch in enumerate(job.kernels)
    ]
    assert independent_tbs(graph, before).tolist() == want


@settings(max_examples=60, deadline=None)
@given(jobs(), st.sampled_from(BYTES))
def test_graph_of_tensors_equals_brute_force(job: Job, granule: int) -> None:
    graph = build_graph(dependences(job, granule))
    found = edges_of(graph)
    every, direct = oracle(job, granule)
    # implied edges may be left where a buffer is written again in part, but never of a kind that is not there
    assert all(found[pair] | kind == found[pair] for pair, kind in direct.items())
    assert all(every[pair] | kind == every[pair] for pair, kind in found.items())
    assert closure(set(found), job) == closure(set(every), job)
    check_pairs(job, graph, found)
    check_free(job, graph, found)


@settings(max_examples=100, deadline=None)
@given(traces(), st.sampled_from(BYTES))
def test_graph_of_recorded_addresses_is_exact(job: Job, granule: int) -> None:
    graph = build_graph(dependences(job, granule))
    found = edges_of(graph)
    assert found == oracle(job, granule)[1]
    check_pairs(job, graph, found)
    check_free(job, graph, found)


@settings(max_examples=40, deadline=None)
@given(jobs(), st.lists(st.booleans(), min_size=5, max_size=5), st.sampled_from(BYTES))
def test_both_kinds_mix_at_every_granule(job: Job, which: list[bool], granule: int) -> None:
    kernels = [as_recorded(k) if chosen else k for k, chosen in zip(job.kernels, which, strict=False)]
    mixed = Job("mixed", kernels)
    every, direct = oracle(mixed, granule)
    found = edges_of(build_graph(dependences(mixed, granule)))
    assert set(direct) <= set(found) <= set(every)


@settings(max_examples=100, deadline=None)
@given(traces(), st.sampled_from(BYTES))
def test_races_are_conflicts_without_a_way(job: Job, granule: int) -> None:
    way: dict[int, set[int]] = {}
    last: dict[int, int] = {}
    for k, launch in enumerate(job.kernels):
        before = [a for a, b in job.events if b == k] + [last[s] for s in (launch.stream,) if s in last]
        way[k] = set(before).union(*(way[b] for b in before))
        last[launch.stream] = k
    every, direct = oracle(job, granule)
    races = set(dependences(job, granule).races)
    assert races == {(a[0], b[0]) for a, b in direct if a[0] not in way[b[0]]}
    # one conflict without a way is enough for a race to be told
    assert bool(races) == any(a[0] not in way[b[0]] for a, b in every)


def test_dropping_a_kind_leaves_the_others() -> None:
    deps = dependences(make("gru:hidden=64,batch=8,timesteps=3,layers=1"))
    every = edges_of(build_graph(deps))
    for name, bit in (("raw", RAW), ("war", WAR), ("waw", WAW)):
        left = edges_of(build_graph(without_edges(deps, kind=name)))
        assert left == {pair: kind & ~bit for pair, kind in every.items() if kind & ~bit}


def test_a_job_without_edges() -> None:
    job = make("empty:kernels=3,tbs=2")
    graph = build_graph(dependences(job))
    assert (graph.edges, len(pair_patterns(graph, [k.grid for k in job.kernels]))) == (0, 0)
    assert graph.csr()[0].tolist() == [0] * 7
    assert independent_tbs(graph, previous_in_stream([0, 0, 0])).tolist() == [2, 2, 2]


def test_too_many_edges_to_list_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = build_graph(dependences(make("gru:hidden=64,batch=8,timesteps=2,layers=1")))
    monkeypatch.setattr(graph_module, "MAX_EDGES", 3)
    with pytest.raises(WorkloadError, match="too many to list: at most 3"):
        graph.csr()


# ---- patterns of known pairs: what the consumers read of 8 x 8 tiles of 8 x 8 elements ----
X = Tensor("x", 64, 64, 4, 0)
GRID = tiles(64, 64, 8, 8)
WHOLE = (0, 64, 0, 64)
KNOWN = {
    "one-to-one": GRID,
    "one-to-n": [tile for tile in GRID for _ in range(2)],
    "all-to-all": [WHOLE] * 5,
    "strided": [(0, 64, col, col + 8) for col in range(0, 64, 8) for _ in range(3)],
    "n-to-one": [(0, 64, 0, 32), (0, 64, 32, 64)],
    "row": [(row, row + 8, 0, 64) for row, _, _, _ in GRID],
    "grouped": [(row // 16 * 16, row // 16 * 16 + 16, col // 16 * 16, col // 16 * 16 + 16)
                for row, _, col, _ in GRID],
    "overlapped": [(max(row - 8, 0), min(row + 16, 64), max(col - 8, 0), min(col + 16, 64))
                   for row, _, col, _ in GRID],
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_known_patterns(name: str) -> None:
    reads = KNOWN[name]
    job = Job(name, [kernel(64, (X, "write", GRID)), kernel(len(reads), (X, "read", reads))])
    rows = pair_patterns(build_graph(dependences(job)), [(8, 8, 1), (len(reads), 1, 1)])
    assert [row["pattern"].decode() for row in rows] == [name]
    assert name in PATTERNS


def test_an_irregular_pair() -> None:
    twice = Access(X, "read", lambda tbs: np.stack([tbs * 8, tbs * 8 + 8, 0 * tbs, 0 * tbs + 8], axis=1))
    other = Access(
        X, "read", lambda tbs: np.stack([0 * tbs, 0 * tbs + 8, 0 * tbs + 56, 0 * tbs + 64], axis=1)
    )
    reader = Kernel("r", PROGRAM, (8, 1, 1), (), (twice, other))
    job = Job("irregular", [kernel(64, (X, "write", GRID)), reader])
    rows = pair_patterns(build_graph(dependences(job)), [(8, 8, 1), (8, 1, 1)])
    assert [row["pattern"] for row in rows] == [b"irregular"]


def test_the_preceding_kernel_is_that_of_the_stream() -> None:
    assert previous_in_stream([0, 1, 0, 1, 2]) == [-1, -1, 0, 1, -1]


def test_free_counts_ways_over_other_streams() -> None:
    a, b, c = (Tensor(name, 1, 8, 4, 1024 * i) for i, name in enumerate("abc"))
    one = [(0, 1, 0, 8)]
    job = Job("way", [
        kernel(1, (a, "write", one)),
        kernel(1, (a, "read", one), (b, "write", one), stream=1),
        kernel(2, (b, "read", one * 2), (c, "write", [(0, 1, 0, 8), (1, 1, 0, 8)])),
    ], [(0, 1), (1, 2)])  # fmt: skip
    # kernel 2 follows kernel 0 in its stream and needs it over kernel 1 only
    assert independent_tbs(build_graph(dependences(job)), previous_in_stream([0, 1, 0])).tolist() == [1, 1, 0]


# ---- renaming ----
def values_read(job: Job) -> dict[tuple[int, int, int, int], set[int]]:
    """Return, for each (kernel, access, row, column) that is read, which kernels wrote it last."""
    memory: dict[int, set[int]] = {}
    made: dict[tuple[int, int, int, int], set[int]] = {}
    for number, launch in enumerate(job.kernels):
        fresh: dict[int, set[int]] = {}
        for which, access in enumerate(launch.accesses):
            t = access.tensor
            for rect in access.regions(np.arange(launch.tbs)).tolist():
                for row in range(max(rect[0], 0), min(rect[1], t.rows)):
                    for col in range(max(rect[2], 0), min(rect[3], t.cols)):
                        at = t.address + row * t.pitch + col * t.item
                        if access.mode != "write":
                            made[number, which, row, col] = memory.get(at, set())
                        if access.mode == "write":
                            fresh[at] = {number}
                        elif access.mode == "update":
                            fresh[at] = memory.get(at, set()) | {number}
        memory |= fresh
    return made


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_renaming_keeps_what_is_read(job: Job) -> None:
    other = renamed(job)
    before, after = values_read(job), values_read(other)
    assert before == after
    for old, new in zip(job.kernels, other.kernels, strict=True):
        for a, b in zip(old.accesses, new.accesses, strict=True):
            assert (a.tensor.address - b.tensor.address) % 256 == 0


NETWORKS = (
    "gru:hidden=64,batch=8",
    "gru:hidden=64,batch=8,input=hoisted",
    "gru:hidden=256,batch=8,split=1",
    "vanilla:hidden=64,timesteps=4",
)


@pytest.mark.parametrize("name", NETWORKS)
def test_renamed_networks_wait_for_values_only(name: str) -> None:
    job = make(name)
    plain, other = (dependences(j).edges for j in (job, renamed(job)))
    assert plain["war"].sum() > 0
    assert other["war"].sum() == other["waw"].sum() - _updates(job) == 0
    assert other["raw"].sum() == plain["raw"].sum()


@pytest.mark.parametrize("name", ["gru:hidden=64,batch=8,timesteps=3,layers=2", "lstm:hidden=64,timesteps=3"])
def test_renamed_jobs_run_under_the_oracle(name: str) -> None:
    result = simulate("titan_v", renamed(make(name)), "tb_static,tb_ideal", overrides={"sim.oracle": 1})
    runs = result.tables()["runs"]
    assert set(runs["status"].tolist()) == {b"ok"}
    assert (runs["time_us"] >= runs["bound_us"]).all()


def _updates(job: Job) -> int:
    """Edges from fills to the split products that add to what they zeroed: these stay."""
    deps = dependences(job)
    return sum(
        int(row["waw"])
        for row in deps.edges
        if any(a.mode == "update" for a in job.kernels[row["consumer"]].accesses)
        and all(a.mode == "write" for a in job.kernels[row["producer"]].accesses)
    )


def test_recorded_kernels_cannot_be_renamed() -> None:
    tensor = Tensor("x", 8, 8, 4, 0)
    job = Job("r", [as_recorded(kernel(2, (tensor, "write", [(0, 4, 0, 8), (4, 8, 0, 8)])))])
    with pytest.raises(WorkloadError, match="kernel k was recorded"):
        renamed(job)


def test_a_renamed_kernel_of_another_size_lies_where_it_does() -> None:
    tensor = Tensor("x", 8, 8, 4, 0)
    whole = (tensor, "write", [(0, 8, 0, 8)])

    def made(warps: int) -> Kernel:
        made = kernel(1, whole)
        return Kernel("k", PROGRAM, (1, 1, 1), (tensor,), made.accesses, with_warps=lambda _: made_again)

    made_again = made(8)
    job = renamed(Job("s", [made(4), made(4)]))
    first, second = job.kernels
    assert first.args[0].address == 0
    assert second.args[0].address == second.accesses[0].tensor.address == 256
    assert second.with_warps is not None
    assert second.with_warps(8).args[0].address == 256


def test_a_sector_that_is_written_in_part_keeps_its_buffer() -> None:
    """Three rows of four lie in the same two sectors as all four; the last row's value must stay."""
    small = Tensor("t", 4, 3, 4, 256)
    every, most = [(0, 4, 0, 3)], [(0, 3, 0, 3)]
    writers = [kernel(1, (small, "write", every)), kernel(1, (small, "write", most))]
    job = Job("part", [*writers, kernel(1, (small, "read", every))])
    assert values_read(renamed(job)) == values_read(job)
    whole = Job("whole", [writers[0], kernel(2, (small, "write", [(0, 4, 0, 2), (0, 4, 1, 3)]))])
    assert renamed(whole).kernels[1].accesses[0].tensor.address != small.address
