"""Recurrent layers of one kernel: footprints, work, what waits for whom, what fits, and what they win."""

from __future__ import annotations

import pytest

from pysim import Config, simulate
from pysim.errors import WorkloadError
from pysim.machine.devices import device
from pysim.program.warp_program import OP
from pysim.workloads.networks.persistent_rnn import layout_of, persistent_rnn
from pysim.workloads.registry import make
from tests.core.harness import FAMILY, SCHEMES, execute, tiny
from tests.support.walker import check_footprints, touched

SMALL = {"gpu": "titan_v", "sms": 6}


@pytest.mark.parametrize("sync", ["grid", "tile"])
@pytest.mark.parametrize("input", ["skip", "hoisted"])
@pytest.mark.parametrize(("kind", "hidden", "batch", "sms"), [
    ("vanilla", 96, 3, 5), ("gru", 64, 2, 6), ("gru", 100, 4, 1), ("vanilla", 260, 1, 40),
])  # fmt: skip
def test_footprints(kind, hidden, batch, sms, input, sync):
    job = persistent_rnn(kind, hidden, batch, 3, input=input, sync=sync, gpu="titan_v", sms=sms)
    kernel = job.kernels[-1]
    assert kernel.tbs == -(-hidden // -(-hidden // sms))
    check_footprints(kernel)


def test_every_weight_is_multiplied_in_each_step_and_read_once():
    job = persistent_rnn("vanilla", 256, 4, 5, gpu="titan_v", sms=4)
    kernel = job.kernels[0]
    seen = [touched(kernel, tb) for tb in range(kernel.tbs)]
    weights = sum(len(where) for one in seen for arg, where in one.loads if arg == 0)
    assert weights == 256 * 256 * 4
    # 64 rows a TB, 8 a warp; sums of 32 lanes of 8 x 4 values are added in 16 + 8 + 4 + 2 + 1 instructions,
    # and each of 64 x 4 outputs costs its thread three
    products = 256 * 256 * 4 * 5 // 32
    assert sum(one.pipes["fp32"] for one in seen) == products + 4 * 8 * 5 * (31 + 3)
    posts = [op for op in kernel.program.variants[0] if op.mark == "tb_signal"]
    waits = [op for op in kernel.program.variants[0] if op.mark == "tb_wait"]
    loops = [op for op in kernel.program.variants[0] if op.kind == OP["LOOP"]]
    assert (len(posts), len(waits), [op.count for op in loops]) == (2, 1, [4])


@pytest.mark.parametrize("scheme", [*SCHEMES, *FAMILY, "pdl"])
@pytest.mark.parametrize("sync", ["grid", "tile"])
def test_layers_under_every_scheme(scheme, sync):
    text = f"persistent_rnn:kind=gru,hidden=128,batch=2,timesteps=4,layers=3,sync={sync},gpu=titan_v,sms=6"
    job = make(text + ",input=hoisted")
    ran = execute(job, scheme, tiny(sim__oracle=1, scheme__hypothetical=1))
    assert int(ran.totals.tbs_done) >= sum(k.tbs for k in job.kernels)
    again = execute(job, scheme, tiny(scheme__hypothetical=1), threads=(2, 1), quanta=(5,))
    assert ran.fingerprint() == again.fingerprint()


def test_steps_wait_for_each_other():
    """A step takes at least a fence, a post and a poll: so many steps, so many times."""
    took = {t: execute(persistent_rnn("vanilla", 128, 2, t, **SMALL)).us for t in (1, 11, 21)}
    each = (took[11] - took[1]) / 10
    assert (took[21] - took[11]) / 10 == pytest.approx(each, rel=0.1)
    assert each > 0.7


def test_one_step_and_one_tb_wait_for_nobody():
    one = persistent_rnn("vanilla", 64, 2, 1, **SMALL).kernels[0]
    assert not any(op.mark == "tb_wait" for op in one.program.variants[0])
    alone = persistent_rnn("vanilla", 32, 2, 6, gpu="titan_v", sms=1)
    assert alone.kernels[0].tbs == 1
    execute(alone, "stream", tiny(sim__oracle=1, gpu__sms=1))


def test_where_not_all_tbs_are_resident_the_run_says_so():
    job = persistent_rnn("vanilla", 1280, 4, 3, gpu="titan_v")
    runs = simulate(tiny(), job, "stream").tables()["runs"]
    assert runs["reason"].tolist() == [
        b"kernel persistent_vanilla: cooperative, with 80 TBs: the GPU holds 12"
    ]


def test_it_beats_kernels_that_read_their_weights_in_each_step():
    """Weights are read once; the same cell as stages of a persistent kernel reads them in each step."""
    size = "hidden=384,batch=4,timesteps=12"
    schemes = "stream,graph,tb_static,fused:grid"
    plain = simulate(tiny(), make(f"vanilla:{size},layers=1,input=skip"), schemes, threads=1).frame("runs")
    mine = simulate(tiny(), make(f"persistent_rnn:{size},gpu=titan_v,sms=6"), "stream", threads=1)
    row = mine.frame("runs").iloc[0]
    assert set(plain["status"]) == {"ok"}
    assert row["time_us"] < 0.5 * plain["time_us"].min()
    assert row["bound_us"] <= row["time_us"]
    assert row["l2_bytes"] < 0.3 * plain["l2_bytes"].min()


def test_what_fits():
    titan = Config.resolve(device("titan_x_pascal"))
    found = layout_of("vanilla", 1152, 4, titan)
    assert (found.units, found.tbs, found.registers) == (42, 28, 248)
    assert 8 * 32 * (found.held + found.spilled) * 4 >= found.units * 1152 * 4
    # 255 registers of 256 threads and 96 KiB hold a layer of 1344, and no larger one
    assert layout_of("vanilla", 1344, 4, titan).tbs == 28
    for kind, hidden in (("vanilla", 1408), ("gru", 832)):
        with pytest.raises(WorkloadError, match=rf"hidden = {hidden}: an SM of titan_x_pascal .* are there"):
            layout_of(kind, hidden, 4, titan)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hidden=0", "hidden = 0: must be from 1"),
        ("hidden=1153", "must be a multiple of 4"),
        ("hidden=36,batch=1,layers=2", "with several layers hidden"),
        ("batch=33", "batch = 33: must be from 1 to 32"),
        ("kind=lstm", "kind = lstm: must be one of vanilla, gru"),
        ("sync=none", "sync = none: must be one of grid, tile"),
        ("hidden=2048", "an SM of titan_x_pascal would hold 74 x 2048 weights"),
        ("timesteps=0", "timesteps = 0: must be from 1"),
        ("sms=-1", "sms"),
    ],
)
def test_wrong_options(text, message):
    with pytest.raises(WorkloadError, match=message):
        make(f"persistent_rnn:{text}")
