"""Dependences against brute force over sector sets."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim.dependence.accesses import edges, walk
from pysim.dependence.dependences import Dependences, dependences, reduce_preds, without_edges
from pysim.errors import DependenceError
from pysim.program.job import Access, Job, Kernel, Mode, Tensor
from pysim.program.regions import strided_ranges
from pysim.program.warp_program import Program
from pysim.workloads.registry import make

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

PROGRAM = Program("p", ((),), 1, 32, 0, 0)


def table(rows: list[tuple[int, int, int, int]]) -> Callable[[NDArray[np.int64]], NDArray[np.int64]]:
    data = np.array(rows, np.int64)
    return lambda tbs: data[tbs]


def kernel(
    tbs: int, *accesses: tuple[Tensor, Mode, list[tuple[int, int, int, int]]], stream: int = 0
) -> Kernel:
    return Kernel(
        "k", PROGRAM, (tbs, 1, 1), (), tuple(Access(t, m, table(r)) for t, m, r in accesses), stream
    )


def sectors(access: Access, tb: int) -> set[int]:
    tensor = access.tensor
    row0, row1, col0, col1 = access.regions(np.array([tb]))[0].tolist()
    found: set[int] = set()
    for row in range(max(row0, 0), min(row1, tensor.rows)):
        lo = tensor.address + row * tensor.pitch + col0 * tensor.item
        hi = tensor.address + row * tensor.pitch + min(col1, tensor.cols) * tensor.item
        if hi > lo:
            found.update(range(lo // 32, -(-hi // 32)))
    return found


Tb = tuple[int, int]


def brute(job: Job) -> set[tuple[Tb, Tb]]:
    """All conflicting pairs of TBs of different kernels."""
    touched = [
        (index, tb, access.mode, sectors(access, tb))
        for index, k in enumerate(job.kernels)
        for access in k.accesses
        for tb in range(k.tbs)
    ]
    return {
        ((ka, ta), (kb, tb))
        for (ka, ta, ma, sa), (kb, tb, mb, sb) in itertools.product(touched, touched)
        if ka < kb and (ma != "read" or mb != "read") and sa & sb
    }


def closure(edges: set[tuple[Tb, Tb]], job: Job) -> dict[Tb, set[Tb]]:
    into: dict[Tb, set[Tb]] = {}
    for before, after in edges:
        into.setdefault(after, set()).add(before)
    made: dict[Tb, set[Tb]] = {}
    for index, k in enumerate(job.kernels):
        for tb in range(k.tbs):
            direct = into.get((index, tb), set())
            made[index, tb] = direct.union(*(made[b] for b in direct))
    return made


def edges_of(job: Job, deps: Dependences) -> set[tuple[Tb, Tb]]:
    return {
        (b, (k, tb))
        for k, launch in enumerate(job.kernels)
        for tb in range(launch.tbs)
        for b in deps.producers(k, tb)
    }


def check_tables(job: Job, deps: Dependences) -> None:
    """The producer side counts down exactly what the nodes expect."""
    got: dict[int, set[int]] = {n: set() for n in range(len(deps.nodes))}
    for k, launch in enumerate(job.kernels):
        first = int(deps.out_first[k])
        for node in deps.outs[first : first + int(deps.out_count[k])].tolist():
            got[node].update(range(int(deps.offsets[k]), int(deps.offsets[k + 1])))
        if deps.tb_out_first[k] != 0xFFFFFFFF:
            at = int(deps.tb_out_first[k])
            ptr = deps.tb_out_ptr[at : at + launch.tbs + 1]
            for tb in range(launch.tbs):
                for node in deps.tb_outs[ptr[tb] : ptr[tb + 1]].tolist():
                    number = int(deps.offsets[k]) + tb
                    assert number not in got[node]
                    got[node].add(number)
    for number, group in enumerate(deps.groups):
        assert got[number] == set(group.producers.tolist())
        row = deps.nodes[number]
        assert row["expect"] == len(group.producers)
        assert row["kernel"] == group.kernel
        part = deps.ranges[int(row["first_range"]) : int(row["first_range"]) + int(row["ranges"])]
        tbs = [int(r["start"]) + i * int(r["stride"]) for r in part for i in range(int(r["count"]))]
        assert tbs == group.consumers.tolist()


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    tensors = []
    for number in range(draw(st.integers(1, 3))):
        rows, cols = draw(st.integers(1, 6)), draw(st.sampled_from([3, 8, 16, 20, 24]))
        address = 256 * draw(st.integers(0, 2)) + draw(st.sampled_from([0, 0, 32]))
        tensors.append(Tensor(f"t{number}", rows, cols, 4, address))
    kernels = []
    for _ in range(draw(st.integers(2, 5))):
        tbs = draw(st.integers(1, 4))
        accesses = []
        for _ in range(draw(st.integers(1, 2))):
            tensor = draw(st.sampled_from(tensors))
            mode: Mode = draw(st.sampled_from(["read", "write", "update"]))
            rows_ = []
            for _ in range(tbs):
                row0, col0 = draw(st.integers(0, tensor.rows)), draw(st.integers(0, tensor.cols - 1))
                row1, col1 = draw(st.integers(row0, tensor.rows)), draw(st.integers(col0 + 1, tensor.cols))
                whole = draw(st.booleans())
                rows_.append((0, tensor.rows, 0, tensor.cols) if whole else (row0, row1, col0, col1))
            accesses.append((tensor, mode, rows_))
        kernels.append(kernel(tbs, *accesses))
    return Job("random", kernels)


@settings(max_examples=300, deadline=None)
@given(jobs())
def test_equals_brute_force(job: Job) -> None:
    deps = dependences(job)
    truth, found = brute(job), edges_of(job, deps)
    assert found <= truth
    assert closure(found, job) == closure(truth, job)
    assert {(int(e["producer"]), int(e["consumer"])) for e in deps.edges} == {(b[0], a[0]) for b, a in found}
    check_tables(job, deps)


def tiles(rows: int, cols: int, high: int, wide: int) -> list[tuple[int, int, int, int]]:
    return [(r, r + high, c, c + wide) for r in range(0, rows, high) for c in range(0, cols, wide)]


def test_aliases_of_another_pitch() -> None:
    job = Job("alias", [kernel(2, (Tensor("a", 4, 16, 4, 0), "write", [(0, 2, 0, 16), (2, 4, 0, 16)])),
                        kernel(2, (Tensor("b", 2, 32, 4, 0), "read", tiles(2, 32, 1, 32)))])  # fmt: skip
    assert edges_of(job, dependences(job)) == {((0, 0), (1, 0)), ((0, 1), (1, 1))}


def test_updates_of_a_kernel_commute_and_a_reader_waits_for_all() -> None:
    tensor = Tensor("c", 8, 8, 4, 0)
    whole = (0, 8, 0, 8)
    job = Job("u", [kernel(3, (tensor, "update", [whole] * 3)), kernel(2, (tensor, "update", [whole] * 2)),
                    kernel(1, (tensor, "read", [whole]))])  # fmt: skip
    deps = dependences(job)
    assert len(deps.producers(1, 0)) == 3
    assert {k for k, _ in deps.producers(2, 0)} == {1}
    assert deps.edges["waw"].tolist() == [6, 0]
    assert deps.edges["raw"].tolist() == [0, 2]


def test_all_to_all_is_one_node_and_one_range() -> None:
    tensor = Tensor("x", 64, 64, 4, 0)
    job = Job("all", [kernel(64, (tensor, "write", tiles(64, 64, 8, 8))),
                      kernel(50, (tensor, "read", [(0, 64, 0, 64)] * 50))])  # fmt: skip
    deps = dependences(job)
    assert len(deps.nodes) == 1
    assert deps.nodes[0]["expect"] == 64
    assert deps.ranges.tolist() == [(0, 50, 1)]
    assert deps.outs.tolist() == [0]
    assert len(deps.tb_outs) == 0


def test_gemm_then_cell() -> None:
    gates, state = Tensor("gates", 64, 192, 4, 0), Tensor("h", 64, 64, 4, 1 << 20)
    weights = Tensor("w", 64, 192, 4, 1 << 21)
    gemm = kernel(6, (state, "read", [(r, r + 32, 0, 64) for r in (0, 32) for _ in range(3)]),
                  (weights, "read", [(0, 64, c, c + 64) for _ in (0, 32) for c in (0, 64, 128)]),
                  (gates, "write", tiles(64, 192, 32, 64)))  # fmt: skip
    cell = kernel(2, (gates, "read", [(0, 32, 0, 192), (32, 64, 0, 192)]),
                  (state, "write", [(0, 32, 0, 64), (32, 64, 0, 64)]))  # fmt: skip
    deps = dependences(Job("gru", [gemm, cell, gemm, cell]))
    assert deps.producers(1, 0) == [(0, 0), (0, 1), (0, 2)]
    assert deps.producers(2, 4) == [(0, 4), (1, 1)]  # gates once more: WAW and WAR
    assert deps.preds == ((), (0,), (0, 1), (1, 2))
    assert reduce_preds(deps.preds)[3] == (2,)
    assert len(deps.nodes) < 16


def test_dropping_edges() -> None:
    tensor = Tensor("x", 8, 8, 4, 0)
    rows = [(r, r + 4, 0, 8) for r in (0, 4)]
    job = Job("drop", [kernel(2, (tensor, "write", rows)), kernel(2, (tensor, "read", rows)),
                       kernel(2, (tensor, "write", rows))])  # fmt: skip
    deps = dependences(job)
    assert without_edges(deps, kind="war").edges["war"].sum() == 0
    assert without_edges(deps, kind="raw").producers(1, 0) == []
    assert len(without_edges(deps, node=0).nodes) == len(deps.nodes) - 1
    assert without_edges(deps, node=0, producer=(0, 0)).producers(1, 0) == []
    check_tables(job, without_edges(deps, node=1))


def test_races_and_backward_events() -> None:
    tensor = Tensor("x", 8, 8, 4, 0)
    pair = [
        kernel(1, (tensor, "write", [(0, 8, 0, 8)])),
        kernel(1, (tensor, "read", [(0, 8, 0, 8)]), stream=1),
    ]
    assert dependences(Job("race", pair)).races == ((0, 1),)
    assert dependences(Job("event", pair, [(0, 1)])).races == ()
    for event in ((1, 0), (1, 1), (0, 2)):
        with pytest.raises(DependenceError):
            dependences(Job("bad", pair, [event]))


def test_strided_ranges() -> None:
    for tbs in ([], [3], [0, 1, 2], [0, 4, 8, 9, 10], [0, 1, 8, 9, 16, 17], [1, 5, 7]):
        made = strided_ranges(np.array(tbs, np.int64))
        assert [s + i * step for s, n, step in made for i in range(n)] == tbs
    assert strided_ranges(np.arange(0, 40, 8)) == [(0, 5, 8)]


def test_large_tilings_are_fast() -> None:
    a, b = Tensor("a", 4096, 4096, 2, 0), Tensor("b", 4096, 4096, 2, 1 << 26)
    grid = tiles(4096, 4096, 64, 64)
    panels = [(r, r + 64, 0, 4096) for r, _, _, _ in grid]
    columns = [(0, 4096, c, c + 64) for _, _, c, _ in grid]
    begin = time.perf_counter()
    job = Job("big", [kernel(4096, (a, "write", grid)), kernel(4096, (a, "read", panels), (b, "write", grid)),
                      kernel(4096, (b, "read", columns), (a, "write", grid))])  # fmt: skip
    deps = dependences(job)
    assert time.perf_counter() - begin < 5
    assert len(deps.producers(2, 0)) == 128


@pytest.mark.parametrize(
    "text", ["random_dag:kernels=40,elements=4096,largest=2000", "lud:n=128", "gru:hidden=64,batch=8"]
)
def test_producers_are_expanded_in_pieces(text, monkeypatch):
    """Piece by piece, one set at the least: the same nodes."""
    want = dependences(make(text)).groups
    monkeypatch.setattr(edges, "_CHUNK", 5)
    made = dependences(make(text)).groups
    for name in ("kernel", "producer_ptr", "producers", "kinds", "consumer_ptr", "consumers"):
        assert getattr(made, name).tobytes() == getattr(want, name).tobytes()


def test_sets_of_whole_kernels_are_kept_apart(monkeypatch):
    """A kernel overwrites what all TBs of another read, and what one before wrote: the same edges."""
    x = Tensor("x", 128, 64, 4, 1 << 20)
    rows, whole = [(n, n + 1, 0, 64) for n in range(128)], [(0, 128, 0, 64)] * 100
    kernels = [
        kernel(128, (x, "write", rows)),
        kernel(100, (x, "read", whole)),
        kernel(128, (x, "write", rows)),
    ]
    job = Job("reused", kernels)
    together = dependences(job)
    monkeypatch.setattr(edges, "_LISTED", 0)
    apart = dependences(job)
    assert edges_of(job, apart) == edges_of(job, together)
    assert len(apart.groups.producers) < len(together.groups.producers) / 10


def test_edges_of_repeated_layers_are_computed_once(monkeypatch):
    """Kernels that pass two buffers back and forth, each pair at addresses of its own."""
    rows = [(n, n + 1, 0, 64) for n in range(16)]

    def layers(count: int) -> Job:
        kernels = []
        for layer in range(count):
            a, b = (Tensor("t", 16, 64, 4, (2 * layer + n + 1) << 16) for n in range(2))
            kernels += [kernel(16, (a, "write", rows)), kernel(16, (a, "read", rows), (b, "write", rows))]
            kernels += [kernel(16, (b, "read", rows), (a, "write", rows))]
        return Job("layers", kernels)

    calls = []
    real = walk.edges_of

    def counted(*args):
        calls.append(args)
        return real(*args)

    monkeypatch.setattr(walk, "edges_of", counted)
    once = len(dependences(layers(1)).groups)
    few = len(calls)
    deps = dependences(layers(9))
    assert len(calls) == 2 * few
    assert len(deps.groups) == 9 * once
    assert edges_of(layers(9), deps) <= brute(layers(9))


def test_writes_that_cover_part_of_a_record_leave_the_rest():
    """Small kernels overwrite one row each of what a large one wrote, then all of it is read."""
    x = Tensor("x", 64, 64, 4, 1 << 20)
    rows = [(n, n + 1, 0, 64) for n in range(64)]
    parts = [Tensor("part", 1, 64, 4, x.address + n * x.pitch) for n in (0, 63, 7, 8, 30)]
    kernels = [kernel(64, (x, "write", rows)), *(kernel(1, (p, "write", [(0, 1, 0, 64)])) for p in parts)]
    job = Job("parts", [*kernels, kernel(64, (x, "read", rows))])
    deps = dependences(job)
    last = {0: 1, 63: 2, 7: 3, 8: 4, 30: 5}
    for tb in range(64):
        assert deps.producers(6, tb) == [(last[tb], 0) if tb in last else (0, tb)]
    assert [deps.producers(k, 0) for k in range(1, 6)] == [[(0, n)] for n in last]
