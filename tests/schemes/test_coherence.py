"""L1 coherence: no scheme reads a stale line, and the policy is never why a finer scheme loses."""

from __future__ import annotations

import numpy as np
import pytest

from pysim import simulate
from pysim.engine.simulation import Sim
from pysim.errors import DependenceError
from pysim.program.copies import copy_kernel
from pysim.program.job import Access, Job, Kernel, Memory, Tensor
from pysim.program.warp_program import Affine, Code, Program
from pysim.program.written_memory import overwritten_by_job
from pysim.schemes.registry import parse_scheme
from pysim.workloads.kernels.region import Block, region_kernel
from pysim.workloads.registry import make
from tests.core.harness import drive, execute, lowered_of, oracle, tiny
from tests.core.workloads_small import ALL, product, random_dag
from tests.support.thin import thin

POOLS = ("pool", "tb_static", "tb_ideal")
POLICIES = ("kernel", "bypass", "tb", "argument")


def stencil(n=512, rows=8, cols=32, steps=6):
    """A five-point stencil between two buffers, one load a point: L1 serves four of five."""
    memory, pad = Memory(), 8
    source, target = (memory.tensor(name, n + 2, n + 2 * pad, 4) for name in ("source", "target"))
    made = []
    for _ in range(steps):

        def block(down, right, tensor=source):
            return Block(
                tensor, rows, cols, Affine(base=1 + down, by=rows), Affine(base=pad + right, bx=cols)
            )

        reads = [block(0, 0), block(-1, 0), block(1, 0), block(0, -1), block(0, 1)]
        work = {"fp32": 5, "int": 10}
        grid = (n // cols, n // rows)
        made.append(region_kernel("stencil", grid, rows, reads, [block(0, 0, target)], work))
        source, target = target, source
    return Job("stencil", made)


JOBS = {"stencil": lambda: stencil(128), "gru": ALL["gru"], "random_dag": ALL["random_dag"]}
FAIR = {
    "stencil": stencil,
    "jacobi": lambda: stencil(1024, 8, 64, 10),
    "transformer": lambda: make("transformer:layers=1,hidden=512,sequence=128,batch=1,ffn=2048"),
    "transformer_large": lambda: make("transformer:layers=1,hidden=1024,heads=16,sequence=1024,batch=2"),
    **{name: lambda name=name: make(name) for name in ("3mm", "lud", "hotspot", "fdtd2d", "nw", "alexnet")},
    "gru": lambda: make("gru"),
}


# ---- the oracle sees a stale line ----
@pytest.mark.parametrize("scheme", POOLS)
@pytest.mark.parametrize("name", JOBS)
def test_lines_that_are_never_invalidated_are_caught(name, scheme):
    with pytest.raises(DependenceError, match="stale L1 line"):
        execute(JOBS[name](), scheme, oracle(), order={"invalidate": 0})


@pytest.mark.parametrize("field", ["overwritten", "stale"])
@pytest.mark.parametrize("scheme", POOLS)
@pytest.mark.parametrize("name", JOBS)
def test_a_launch_without_its_bits_is_caught(name, scheme, field):
    job = JOBS[name]()
    made, _ = lowered_of(job, scheme, oracle())
    with Sim(made) as sim:
        drive(sim)
    made.launches[field] = 0
    with Sim(made) as sim, pytest.raises(DependenceError, match="stale L1 line"):
        drive(sim)


def test_invalidating_at_kernel_starts_is_too_early_for_tbs():
    """TBs of a kernel start while its producers run, so a line may be older than a later TB's producers."""
    job = random_dag(31, 40, 2)
    execute(job, "tb_ideal", oracle())
    with pytest.raises(DependenceError, match="stale L1 line"):
        execute(job, "tb_ideal", oracle(scheme__coherence="kernel"))


# ---- which policy ----
def policy(scheme, **overrides):
    return parse_scheme(scheme).scheme.coherence(tiny(**overrides).encoded())


def test_auto_depends_on_where_tbs_wait():
    for scheme in (*POOLS, "tb_learned", "tb_bloom", "tb_auto", "blockmaestro", "wireframe"):
        assert policy(scheme) == "argument"
    for scheme in ("host", "stream", "graph", "queues", "acs_hw", "acs_sw"):
        assert policy(scheme) == "kernel"
    for scheme in ("pdl", "cusync", "fused"):
        assert policy(scheme) == policy(scheme, scheme__coherence="argument") == "bypass"
    assert policy("tb_static", scheme__prologue=1) == "bypass"
    assert policy("tb_static", scheme__prologue=1, scheme__coherence="argument") == "bypass"
    assert policy("acs_hw", scheme__coherence="argument") == "argument"


# ---- what is overwritten ----
def touching(*accesses):
    """Return a kernel that touches whole tensors: (tensor, mode) pairs."""

    def whole(tensor):
        return lambda tbs: np.tile(np.array([[0, tensor.rows, 0, tensor.cols]]), (len(tbs), 1))

    code = Code()
    code.exit()
    program = Program("touch", (tuple(code.ops),), 1, 32, 0, 0)
    made = tuple(Access(tensor, mode, whole(tensor)) for tensor, mode in accesses)
    return Kernel("touch", program, (1, 1, 1), (), made)


def spans_and_readers(*kernels):
    found = overwritten_by_job(Job("job", list(kernels)))
    return found.spans.tolist(), found.read_by.tolist()


def test_memory_written_once_needs_no_care():
    a, b, c = (Tensor(name, 1, 64, 4, 1024 * i) for i, name in enumerate("abc", 1))
    chain = touching((a, "read"), (b, "write")), touching((b, "read"), (c, "write")), touching((c, "read"))
    assert spans_and_readers(*chain) == ([], [False] * 3)
    assert spans_and_readers(touching((a, "update")), touching((a, "read"))) == ([], [False] * 2)


def test_a_second_version_needs_care_and_the_first_does_not():
    a, b = Tensor("a", 1, 64, 4, 1024), Tensor("b", 1, 64, 4, 2048)
    there, back = touching((a, "read"), (b, "write")), touching((b, "read"), (a, "write"))
    # b is written twice, after it was read; a is read, then written
    whole = [[1024, 1280], [2048, 2304]]
    assert spans_and_readers(there, back, there, back) == (whole, [False, False, True, True])
    assert spans_and_readers(touching((a, "write")), touching((a, "update")), touching((a, "read"))) == (
        [[1024, 1280]],
        [False, False, True],
    )


def test_in_place_kernels_overwrite_what_they_read():
    a = Tensor("a", 1, 64, 4, 1024)
    both = touching((a, "read"), (a, "write"))
    assert spans_and_readers(both, both) == ([[1024, 1280]], [False, True])


def test_a_sector_that_two_tensors_share_is_of_both():
    left, right = Tensor("left", 1, 25, 4, 1024), Tensor("right", 1, 25, 4, 1124)
    found = spans_and_readers(touching((left, "read")), touching((right, "write")), touching((right, "read")))
    assert found == ([[1120, 1152]], [False, False, True])


def test_copies_write_too():
    a = Tensor("a", 1, 64, 4, 1024)
    copied = copy_kernel(np.array([[1024, 1152]]), True, 0)
    assert spans_and_readers(copied, touching((a, "read"))) == ([], [False] * 2)
    found = spans_and_readers(touching((a, "read")), copied, touching((a, "read")))
    assert found == ([[1024, 1152]], [False, False, True])


# ---- reuse that stays ----
def test_data_written_once_stay_in_l1():
    """A chain of GEMMs on fresh memory invalidates nothing, whatever the scheme."""
    job = product(130, 70, 64, chain=3)
    for scheme in POOLS:
        made = execute(job, scheme, oracle())
        never = execute(job, scheme, oracle(), order={"invalidate": 0})
        assert made.fingerprint() == never.fingerprint()


def test_a_kernel_of_ready_tbs_invalidates_an_sm_once():
    """Under pool all TBs of a kernel are ready at once: later TBs of an SM keep what the first one loaded."""
    job = stencil(256)
    once = execute(job, "pool", tiny())
    each = execute(job, "pool", tiny(), order={"invalidate": 2})
    assert once.sms["work"]["l1_hits"].sum() > 1.02 * each.sms["work"]["l1_hits"].sum()


# ---- fairness ----
@pytest.mark.parametrize("name", thin(FAIR, ("stencil", "transformer")))
def test_coherence_is_not_why_a_finer_scheme_loses(name):
    """tb_ideal is at most 3 % slower than coarser schemes, and than itself under any policy, right or not."""
    job = FAIR[name]()

    def times(schemes, **overrides):
        ran = simulate("titan_v", job, schemes, overrides=overrides, tables="none", baseline=False)
        return dict(zip(schemes, ran.frame("runs").time_us, strict=True))

    made = times(POOLS)
    others = [times(["tb_ideal"], **{"scheme.coherence": word})["tb_ideal"] for word in POLICIES]
    assert made["tb_ideal"] <= 1.03 * min(*made.values(), *others)
