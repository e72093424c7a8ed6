"""Waits inside programs under the oracle: what holds between kernels and stages, and a wait too few."""

from __future__ import annotations

import pytest

from pysim.errors import SimError, WorkloadError
from pysim.program.warp_program import Code
from pysim.schemes import in_kernel_sync
from pysim.workloads.registry import make

from .harness import execute, tiny
from .test_waits import JOBS, PDL, SCHEMES


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", JOBS)
def test_the_oracle_holds(name, scheme):
    made = execute(JOBS[name](), scheme, tiny(sim__oracle=1, **PDL))
    assert made.totals.tbs_done == sum(k.tbs for k in made.job.kernels)


FUSED = [(name, scheme) for name in ("chain", "edges") for scheme in ("fused", "fused:tile")]
SOME = [(n, s) for n in ("edges", "gru") for s in ("pdl", "cusync", "cusync:row+pdl", "stream:sync_code")]


@pytest.mark.parametrize(("name", "scheme"), FUSED)
def test_the_oracle_holds_between_stages(name, scheme):
    plain = execute(JOBS[name](), "stream", tiny())
    made = execute(JOBS[name](), scheme, tiny(sim__oracle=1))
    assert len(made.job.kernels) == 1
    # the same work, and what waiting takes
    for counter in ("fp32", "tensor", "l1_lines"):
        assert made.sms["work"][counter].sum() == plain.sms["work"][counter].sum()
    assert made.end < plain.end


def test_stages_wait_for_the_tbs_that_stages_have():
    """Kernels made with the warps of the largest have other TBs: a plan before this waited for theirs."""
    job = make("random_dag:kernels=3,streams=1,seed=448781869,elements=2048,largest=700,tensors=3")
    text = "copy1: its tiles do not line up with semaphores of 1 x 64"
    with pytest.raises(WorkloadError, match=text):
        execute(job, "fused:tile", tiny(sim__oracle=1))


@pytest.mark.parametrize(("name", "scheme"), [*SOME, *FUSED])
def test_quantum(name, scheme):
    base = execute(JOBS[name](), scheme, tiny(**PDL)).fingerprint()
    for quantum in (7, 31):
        got = execute(JOBS[name](), scheme, tiny(sim__quantum=quantum, **PDL)).fingerprint()
        assert [part for part in base if got[part] != base[part]] == []


@pytest.mark.threads
@pytest.mark.parametrize("scheme", ["pdl", "cusync", "cusync:row+pdl"])
def test_threads_and_slices(scheme):
    base = execute(JOBS["gru"](), scheme, tiny(**PDL)).fingerprint()
    got = execute(JOBS["gru"](), scheme, tiny(**PDL), threads=(3, 1, 2), quanta=(5, 17)).fingerprint()
    assert [part for part in base if got[part] != base[part]] == []


def test_a_poll_too_few_is_caught(monkeypatch):
    monkeypatch.setattr(in_kernel_sync, "poll_ops", lambda *_: [])
    with pytest.raises(
        SimError,
        match=r"RAW dependence broken: TB \d+ of kernel 1 reads sector 0x[0-9a-f]+ .* TB \d+ of kernel 0",
    ):
        execute(JOBS["chain"](), "cusync:tile+pdl", tiny(sim__oracle=1, **PDL))


@pytest.mark.parametrize("scheme", ["fused", "fused:tile"])
def test_a_poll_too_few_between_stages_is_caught(monkeypatch, scheme):
    monkeypatch.setattr(Code, "poll", lambda *_, **__: None)
    text = r"(RAW|WAR) dependence broken: TB \d+ of kernel 0 .* TB \d+ of kernel 0"
    with pytest.raises(SimError, match=text):
        execute(JOBS["chain"](), scheme, tiny(sim__oracle=1))


def test_a_wait_for_the_end_too_few_is_caught(monkeypatch):
    monkeypatch.setattr(Code, "grid_dependency_wait", lambda _: None)
    with pytest.raises(SimError, match=r"dependence broken: TB \d+ of kernel 1"):
        execute(JOBS["chain"](), "pdl", tiny(sim__oracle=1, **PDL))


def test_a_post_before_the_stores_is_caught(monkeypatch):
    """A post publishes what the TB has done with, and no more."""

    def early(ops, sem, level):
        code = Code()
        code.post(sem, level=level, fence=False)
        return code.ops

    whole = in_kernel_sync.replace_ops

    def first(ops, change, front=()):
        marks = [op for op in ops if op.mark == "output"]
        ops = tuple(op for op in ops if op.mark != "output") if marks else ops
        start = [] if not marks else list(change(marks[0]) or ())
        return whole(ops, change, [*front, *start])

    monkeypatch.setattr(in_kernel_sync, "publish_ops", early)
    monkeypatch.setattr(in_kernel_sync, "replace_ops", first)
    with pytest.raises(SimError, match="RAW dependence broken"):
        execute(JOBS["chain"](), "cusync:tile+pdl", tiny(sim__oracle=1, **PDL))
