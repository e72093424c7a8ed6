"""An edge too few, in random jobs: what a scheme goes by lacks something, and the oracle must see it.

``make oracle`` checks many, test_random_jobs.py some; each is of one scheme, drawn at random. A dropped
edge breaks nothing where others imply it, or where the TBs happen to run in order all the same. So each
mutant runs twice: unchecked, which tells from the records of the TBs whether a true dependence is broken for
certain, and checked.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from random import Random
from unittest.mock import patch

import numpy as np

from pysim.dependence.dependences import dependences, without_edges
from pysim.dependence.groups import KINDS
from pysim.errors import DependenceError
from pysim.program.job import Kernel
from pysim.program.semaphores import SemaphoreTable
from pysim.program.warp_program import OP, Code
from pysim.schemes import kernel_window
from pysim.schemes.kernel_window import conflicting_kernels
from tests.core.harness import execute, lowered_of, oracle, tiny
from tests.core.workloads_small import WIDE, product, random_dag

from .random_jobs import ENDS, FUSED, POLICIES, PROLOGUES, composed, policy_of
from .random_shapes import attention, convolutions, gated, with_weights
from .test_ordering import LATE, pair

GIVEN = ("tb_static", "tb_ideal", "pool", "graph", "graph:built", "wireframe", "queues")
GIVEN += ("blockmaestro", "blockmaestro:consumer+kernels4", "tb_static:prologue", "tb_ideal:prologue")
LEARNED = ("tb_learned", "tb_learned:prologue")
CUTS = dict.fromkeys((*GIVEN, *LEARNED), ("node", "producer", *KINDS))
CUTS |= dict.fromkeys(("acs_hw", "acs_sw"), ("range", *KINDS))
CUTS |= dict.fromkeys(("tb_bloom", "tb_bloom:prologue"), ("hints", "reads", "writes"))
CUTS |= dict.fromkeys(("tb_auto", "tb_auto:held"), ("node", "producer", "whole"))
CUTS |= dict.fromkeys((*POLICIES, *FUSED), ("posts", "semaphore"))
CUTS |= dict.fromkeys(ENDS, ("depend",))
SETTINGS = {
    "scheme.priority": ("oldest", "newest", "critical", "round_robin", "consumer"),
    "scheme.placement": ("first_free", "balanced", "affinity"),
    "scheme.window": (3, 7, 1000),
    "scheme.table.entries": (64, 100000),
    "scheme.table.group": (0, 1),
    "scheme.table.fetch": (0, 1),
    "scheme.table.fetch_lists": (0, 1),
    "scheme.table.lists": (1, 512),
    "scheme.table.reduce": (0, 1),
    "scheme.coherence": ("auto", "bypass", "tb"),
    "scheme.bypass": (0, 16),
}
WHOLE = SemaphoreTable.array
# cycles that a store of a warp that has ended may still be under way, and more
UNDER_WAY = 10_000


@dataclass(frozen=True)
class Mutant:
    """A random job with one kernel that is late, and something missing from what its scheme goes by."""

    seed: int
    kernels: int
    streams: int
    scheme: str
    chosen: dict[str, object]
    cut: str
    draw: int  # of its own generator: which node, producer, kernel

    def job(self):
        scheme, random = policy_of(self.scheme), Random(self.seed)
        # random_dag's programs say nothing of tiles
        if scheme in ("cusync:strided", "cusync:conv"):
            return random.choice((gated, attention) if scheme == "cusync:strided" else (convolutions,))(
                random
            )
        if scheme in (*POLICIES, *FUSED):
            least = 12 if scheme in FUSED else 4
            sizes = (8 * random.randint(least, 20) for _ in range(3))
            return product(*sizes, WIDE, chain=random.randint(2, 4))
        # random_dag's kernels hardly load what nobody writes
        if scheme in PROLOGUES:
            made = with_weights(self.seed, self.kernels)
        else:
            made = random_dag(self.seed, self.kernels, self.streams)
        if scheme in LEARNED:  # what it learns serves the second time
            made = replace(made, kernels=[replace(k, stream=0) for k in made.kernels] * 2, events=[])
        return made


def mutant(number):
    random = Random(-1 - number)  # other jobs than those of random_jobs.case
    cut = random.choice(sorted({cut for cuts in CUTS.values() for cut in cuts}))
    scheme = random.choice([name for name, cuts in CUTS.items() if cut in cuts])
    chosen = {path: random.choice(values) for path, values in SETTINGS.items()}
    full = composed(scheme, random)
    if scheme == "cusync:conv":
        # its programs do not say where the main loop is over, so that a late trigger comes with the end of a
        # TB: whoever starts then finds all that it needs, whatever posts it waits for
        full = full.replace("+late", "")
    if "prologue" in scheme:
        chosen["scheme.coherence"] = "bypass"
    if scheme in (*POLICIES, *FUSED, *ENDS):
        chosen = {"scheme.hypothetical": 1}
    if scheme in FUSED:  # TBs with a tile fewer than others of the late kernel run ahead
        chosen["gpu.sm.tbs"] = random.choice((1, 2))
    return Mutant(
        random.randrange(1 << 30),
        random.randint(2, 10),
        1 if scheme in ENDS else random.randint(1, 4),
        full,
        chosen,
        cut=cut,
        draw=random.randrange(1 << 30),
    )


def late(kernel: Kernel, trigger: bool = False) -> Kernel:
    """The kernel with a wait before all else, far longer than all the rest of a small job.

    ``trigger``: behind its main loop, where a program says so, as the next kernel starts then.
    """
    code = Code()
    code.delay(LATE)

    def delayed(ops):
        ends = [n for n, op in enumerate(ops) if op.mark == "main_loop_end"] if trigger else []
        at = ends[0] + 1 if ends else 0
        moved = [
            replace(op, target=op.target + 1) if op.kind == OP["LOOP"] and op.target >= at else op
            for op in ops
        ]
        return (*moved[:at], *code.ops, *moved[at:])

    variants = tuple(delayed(ops) for ops in kernel.program.variants)
    return replace(kernel, program=replace(kernel.program, variants=variants))


def records(ran, job):
    """The records of the job's own TBs in order, and the kernel of each launch; -1: a gate between them."""
    own, names = [], [kernel.name for kernel in job.kernels]
    for launched in ran.job.kernels:
        known = len(own) - own.count(-1)
        own.append(known if known < len(names) and launched.name == names[known] else -1)
    assert max(own) == len(names) - 1
    return ran.tbs[np.array(own)[ran.tbs["kernel"]] >= 0], own


def broken(deps, tbs, cycle, first, posts):
    """Whether a TB had ended, and its stores had arrived, before one was done that it depends on.

    ``posts``: TBs may be done before they end; but those of the late kernel not before they begin.
    """
    end = done = tbs["end"].astype(np.int64)
    if posts:
        done, mine = np.zeros_like(end), slice(deps.offsets[first], deps.offsets[first + 1])
        done[mine] = tbs["start"][mine] + LATE * cycle
    return any(
        end[int(deps.offsets[g.kernel]) + g.consumers].min() + UNDER_WAY * cycle <= done[g.producers].max()
        for g in deps.groups
    )


def broken_inside(deps, tbs, cycle, first):
    """The same of kernels that are stages of one: TB b has done its tiles b, b + TBs, ... before it ends.

    Of the late stage it does each of them behind a wait, and so ends none before as many waits as it takes.
    """
    start, end, count = tbs["start"].astype(np.int64), tbs["end"].astype(np.int64), len(tbs)
    lo, hi = deps.offsets[first], deps.offsets[first + 1]
    for group in deps.groups:
        makers = group.producers[(group.producers >= lo) & (group.producers < hi)] - lo
        if len(makers):
            done = start[makers % count] + (makers // count + 1) * LATE * cycle
            if end[group.consumers % count].min() + UNDER_WAY * cycle <= done.max():
                return True
    return False


def cut_from(deps, cut, random, first):
    """The dependences less a kind, a node that waits for kernel ``first``, or a producer of such a node."""
    if cut in KINDS:
        return without_edges(deps, kind=cut)
    lo, hi = deps.offsets[first], deps.offsets[first + 1]
    # those that schemes know of may be others than the true ones
    with_it = [n for n, g in enumerate(deps.groups) if ((g.producers >= lo) & (g.producers < hi)).any()]
    node = random.choice(with_it or range(len(deps.nodes)))
    if cut == "node":
        return without_edges(deps, node=node)
    mine = [int(p) for p in deps.groups[node].producers if lo <= p < hi] or deps.groups[
        node
    ].producers.tolist()
    return without_edges(deps, node=node, producer=deps.kernel_and_tb(random.choice(mine)))


def mutated(case, job, deps, first):
    """Return what is passed to ``execute`` for the mutant, and what is patched meanwhile."""
    random = Random(case.draw)
    if case.cut in ("posts", "semaphore"):
        few, which, whole = random.choice((1, 2, 1000)), random.random(), SemaphoreTable.array
        # of stages of one kernel a single tile is hardly ever all that a TB waits for: and those behind it
        many = 1000 if case.scheme in FUSED else 1

        def array(table):
            needs = whole(table)
            some = np.flatnonzero(needs)
            at = int(which * len(some))
            fewer = some if case.cut == "posts" else some[at : at + many]
            needs[fewer] -= np.minimum(needs[fewer], np.uint32(few))
            return needs

        return {"deps": deps}, patch.object(SemaphoreTable, "array", array)
    if case.cut == "depend":
        return {"deps": deps}, patch.object(Code, "grid_dependency_wait", lambda _: None)
    if case.cut == "range":
        preds, segments = conflicting_kernels(job)
        less = [tuple(p for p in before if p != first) for before in preds]
        return {"deps": deps}, patch.object(
            kernel_window, "conflicting_kernels", lambda job: (less, segments)
        )
    if case.scheme.startswith("acs"):  # which finds edges by itself: those of a kind
        kind = {"raw": (1, 0), "war": (0, 1), "waw": (1, 1)}[case.cut]

        def must_order(before, own):
            return ((before | own) != 0) & ~((before == kind[0]) & (own == kind[1]))

        return {"deps": deps}, patch.object(kernel_window, "must_order", must_order)
    # of edges that others do not imply, those that the scheme goes by: some of the true ones would do no harm
    reduced = case.scheme.startswith("tb_static") and case.chosen["scheme.table.reduce"]
    if case.scheme in GIVEN and not reduced:
        return {"deps": cut_from(deps, case.cut, random, first)}, nullcontext()
    found = lowered_of(job, case.scheme, tiny().replaced(case.chosen), deps)[0].known
    if case.scheme.startswith("tb_bloom"):
        sets, tables = found.hints.launch, found.hints.tables
        rows = tables["hint_sets"].copy()
        begin = int(sets["first_set"][first])
        mine = rows[begin : begin + int(sets["sets"][first])]
        mine["hints"][(case.cut == "hints") | (mine["written"] == (case.cut == "writes"))] = 0
        found = replace(found, hints=replace(found.hints, tables=tables | {"hint_sets": rows}))
    elif case.cut == "whole":
        less = [tuple(p for p in before if p != first) for before in found.whole]
        found = replace(found, whole=less)
    elif len(found.deps.nodes):
        found = replace(found, deps=cut_from(found.deps, case.cut, random, first))
    return {"deps": deps, "known": found}, nullcontext()


def check(case):
    """A broken dependence is caught, what is called broken was not in order; return what came of it."""
    job = case.job()
    deps = dependences(job)
    if not len(deps.nodes):
        return "free"
    first = int(Random(case.draw).choice(deps.edges["producer"].tolist()))
    slow = late(job.kernels[first], "late" in case.scheme.split("+") or case.scheme == "pdl:late")
    job = replace(job, kernels=[slow if k is job.kernels[first] else k for k in job.kernels])
    given, patched = mutated(case, job, deps, first)
    with patched:
        ran = execute(job, case.scheme, tiny().replaced(case.chosen), **given)
        if case.scheme in FUSED:
            tbs, own, cycle = ran.tbs, [0], ran.values["gpu.clock"]
            assert len(ran.job.kernels) == 1
            certain = broken_inside(deps, tbs, cycle, first)
        else:
            (tbs, own), cycle = records(ran, job), ran.values["gpu.clock"]
            certain = broken(deps, tbs, cycle, first, policy_of(case.scheme) in POLICIES)
        try:
            execute(job, case.scheme, oracle().replaced(case.chosen), **given)
        except DependenceError as error:
            # of TBs of one kernel it tells that nothing orders them, whichever was first: not if all is there
            if case.scheme in FUSED:
                with patch.object(SemaphoreTable, "array", WHOLE):
                    execute(job, case.scheme, oracle().replaced(case.chosen), deps=deps)
            if "stale" not in str(error) and case.scheme not in FUSED:
                later, earlier = (tbs[int(deps.offsets[own[k]]) + tb] for k, tb in pair(error))
                assert earlier["kernel"] < later["kernel"]
                assert later["start"] < int(earlier["end"]) + UNDER_WAY * cycle
            return "certain" if certain else "caught"
    assert not certain, "a broken dependence was not seen"
    return "in order"
