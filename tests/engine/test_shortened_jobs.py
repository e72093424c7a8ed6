"""Jobs that hold some of their equal layers: what stands for the others, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pysim import simulate
from pysim.engine.lengthened import shortened
from pysim.errors import WorkloadError
from pysim.program.shortened import Shortened
from pysim.program.totals import Totals
from pysim.workloads import make

SCHEMES = "stream,tb_static"
WHOLE = 10


def network(layers):
    text = "hidden=64,heads=2,sequence=64,batch=1,ffn=128,dtype=fp32"
    return replace(make(f"transformer:layers={layers},{text}"), steps=layers)


@pytest.fixture(scope="module")
def whole():
    return simulate("titan_v", network(WHOLE), SCHEMES)


@pytest.mark.parametrize("kept", [3, 4])
def test_some_layers_stand_for_all(whole, kept):
    """Times are those of the whole network within 2 %; work and kernels are all there."""
    job = shortened(network(kept), network(kept - 1), WHOLE)
    made = simulate("titan_v", job, SCHEMES)
    runs, known = made.frame("runs"), whole.frame("runs")
    assert (runs["status"] == "ok").all()
    assert np.allclose(runs["time_us"], known["time_us"], rtol=0.02)
    assert runs["tbs"].tolist() == known["tbs"].tolist()
    assert np.allclose(runs["warp_instructions"], known["warp_instructions"], rtol=1e-3)
    assert np.isnan(runs["bound_us"]).all()
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
    assert job.shortened.skipped == WHOLE - 4


def test_what_stands_for_nothing_is_refused():
    with pytest.raises(
        WorkloadError, match="2 of 9 periods of 5 kernels from kernel 0 on: must be at least 3"
    ):
        Shortened(0, 5, 2, 9)
    with pytest.raises(WorkloadError, match="4 and 2 layers: must differ by one"):
        shortened(network(4), network(2), WHOLE)
    job = network(4)
    period = len(job.kernels) // 4
    wrong = replace(job, shortened=Shortened(0, period - 1, 4, 9))
    runs = simulate("titan_v", wrong, "stream").frame("runs")
    assert runs["status"].tolist() == ["refused"]
    assert "is not that of the period before" in runs["reason"][0]
    right = shortened(job, network(3), 9)
    reasons = simulate("titan_v", right, "cusync").frame("runs")
    assert "wait before they are dispatched" in reasons["reason"][0]
