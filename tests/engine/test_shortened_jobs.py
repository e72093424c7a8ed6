"""Jobs that hold some of their equal layers: what stands for the others, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pysim import simulate
from pysim.engine.lengthened import whole_of
from pysim.errors import WorkloadError
from pysim.program.periods.shorten import inserted, shortened
from pysim.program.periods.shortened import Periods, Shortened
from pysim.program.totals import Totals
from pysim.workloads import make
from tests.support.thin import thin

SCHEMES = "stream,tb_static"
WHOLE = 10


def network(layers):
    text = "hidden=64,heads=2,sequence=64,batch=1,ffn=128,dtype=fp32"
    return replace(make(f"transformer:layers={layers},{text}"), steps=layers)


@pytest.fixture(scope="module")
def whole():
    return simulate("titan_v", network(WHOLE), SCHEMES)


@pytest.mark.parametrize("kept", thin([3, 4], 2))
def test_some_layers_stand_for_all(whole, kept):
    """Times are those of the whole network within 2 %; work and kernels are all there."""
    job = shortened(network(kept), network(kept - 1), WHOLE)
    made = simulate("titan_v", job, SCHEMES)
    runs, known = made.frame("runs"), whole.frame("runs")
    assert (runs["status"] == "ok").all()
    assert np.allclose(runs["time_us"], known["time_us"], rtol=0.02)
    assert runs["tbs"].tolist() == known["tbs"].tolist()
    assert np.allclose(runs["warp_instructions"], known["warp_instructions"], rtol=1e-3)
    assert np.allclose(runs["bound_us"], known["bound_us"], rtol=0.02)
    assert np.allclose(runs["estimate_us"], known["estimate_us"], rtol=0.02)
    assert (runs["replay_error"] > 0).all()
    kernels = made.frame("kernels")
    assert len(kernels) == len(whole.frame("kernels"))
    ends = kernels[kernels["run"] == 0]["last_end_us"].to_numpy()
    assert (np.diff(ends) > 0).all()  # one after another under stream, skipped layers too
    assert made.frame("edges")["kernel"].max() == len(network(WHOLE).kernels) - 1


def test_totals_grow_with_the_layers():
    held, fewer = (replace(network(n), totals=Totals(100 + 7 * n, 50 * n)) for n in (4, 3))
    job = shortened(held, fewer, WHOLE)
    assert job.totals == Totals(100 + 7 * WHOLE, 50 * WHOLE)
    assert job.steps == WHOLE
    assert [run.skipped for run in job.shortened.runs] == [WHOLE - 4]


def test_what_stands_for_nothing_is_refused():
    with pytest.raises(
        WorkloadError, match="2 of 9 periods of 5 kernels from kernel 0 on: must be at least 3"
    ):
        Periods(0, 5, 2, 9)
    with pytest.raises(WorkloadError, match="4 and 2 layers: must differ by one"):
        shortened(network(4), network(2), WHOLE)
    with pytest.raises(WorkloadError, match="must be one or more, and not overlap"):
        Shortened((Periods(0, 5, 3, 9), Periods(14, 5, 3, 9)))
    job = network(4)
    period = len(job.kernels) // 4
    wrong = replace(job, shortened=Shortened((Periods(0, period - 1, 4, 9),)))
    runs = simulate("titan_v", wrong, "stream").frame("runs")
    assert runs["status"].tolist() == ["refused"]
    assert "is not that of the layer before" in runs["reason"][0]
    right = shortened(job, network(3), 9)
    reasons = simulate("titan_v", right, "cusync").frame("runs")
    assert "wait before they are dispatched, or for whole kernels" in reasons["reason"][0]


def test_layers_are_left_out_where_tbs_wait_inside_for_whole_kernels():
    """Programmatic launches are the kernels of the job, so that their periods are those of the launches."""
    job = shortened(network(3), network(2), WHOLE)
    made = simulate("h200", job, "pdl", baseline=False)
    runs, known = (r.frame("runs") for r in (made, simulate("h200", network(WHOLE), "pdl", baseline=False)))
    assert (runs["status"] == "ok").all()
    assert np.allclose(runs["time_us"], known["time_us"], rtol=0.02)
    assert np.allclose(runs["energy_j"], known["energy_j"], rtol=0.02)
    assert np.allclose(runs["bound_us"], known["bound_us"], rtol=0.02)
    assert runs["tbs"].tolist() == known["tbs"].tolist()
    starts, ends = (made.frame("kernels")[name].to_numpy() for name in ("first_dispatch_us", "last_end_us"))
    assert (starts[1:] < ends[:-1]).mean() > 0.9  # before the kernel before has ended, those left out too


def training(simulated, layers=8):
    sizes = "batch=1,seq=64,pass=training,optimizer=lamb"
    return make(f"bert-base:layers={layers},simulated={simulated},{sizes}")


@pytest.mark.deep
def test_layers_of_a_training_step_stand_for_all():
    """Forward, backward and optimiser are extrapolated each; what is counted is that of the whole."""
    whole, job = training(0), training(3)
    assert [run.whole for run in job.shortened.runs[:2]] == [8, 8]
    assert job.totals == whole.totals
    held = simulate("h200", job, SCHEMES).frame("runs")
    known = simulate("h200", whole, SCHEMES).frame("runs")
    off = abs(held["time_us"] / known["time_us"] - 1)
    assert off[0] < 0.01
    assert off[1] < max(0.01, held["replay_error"][1])  # launches of LAMB overlap: a few tell little
    assert held["tbs"].tolist() == known["tbs"].tolist()


def test_a_training_step_holds_layers_of_both_passes():
    whole, job = training(0), training(3)
    short = job.shortened
    forward, backward, *lists = short.runs
    assert forward.end <= backward.first
    assert len(job.kernels) + short.left_out == len(whole.kernels)
    assert job.totals == whole.totals
    assert not any(run.same_code for run in lists)
    names = [kernel.name for kernel in whole_of(job, short).kernels]
    assert names == [kernel.name for kernel in whole.kernels]


def test_what_is_put_in_is_found():
    assert inserted("abcbcbcde", "abcbcde") == [(1, 2)]
    assert inserted("abbcddde", "abcddde") == [(1, 1)]
    assert inserted("axyxyxybpqpqpqc", "axyxybpqpqc") == [(1, 2), (8, 2)]
    assert inserted("abc", "abd") is None
