"""Dependences, sharing and replay of small recordings whose answers are known."""

from __future__ import annotations

import random

import pytest

from pysim.errors import ConfigError, InputError
from pysim.profile import from_profile
from pysim.profile.model.card import Card
from pysim.profile.model.dependence import in_time
from pysim.profile.model.replay import Plan, replayed
from pysim.profile.model.sharing import Sharing, works
from tests.profile.traces import H200, call, kernel, launched, written

CARD = Card.of("h200", H200)


def edges(profile):
    order = profile.edges.order
    return {(order[k].name, order[i].name) for i, before in enumerate(profile.edges.likely) for k in before}


def test_a_chain_as_a_graph_is_its_durations_and_measured_gaps(tmp_path):
    events = [event for i in range(10) for event in launched(30.0 * i, 5.0, corr=i + 1)]
    found = from_profile(written(tmp_path, events)).what_if()
    assert found.recorded == {"span_us": 275, "busy_us": 50, "kernels": 10, "copies": 0, "streams": 1}
    assert found["graph"].time_us == pytest.approx(CARD.launch + 50 + 9 * CARD.graph_gap)
    assert found["stream"].time_us == pytest.approx(CARD.launch + 50 + 9 * CARD.stream_gap)
    assert found["pdl"].time_us == pytest.approx(CARD.launch + 50 + 9 * CARD.depend)
    for row in found.schemes:
        assert row.low_us <= row.time_us <= row.high_us, row.scheme
    assert found["tb_static"].low_us < found["pool"].time_us < found["graph"].time_us


def test_where_the_time_goes_adds_up(tmp_path):
    # the second launch and 5 us of its way come 25 us after the first kernel's end; the third comes in time
    events = [*launched(0, 5, corr=1), *launched(33, 5, corr=2, host=25), *launched(40, 5, corr=3, host=20)]
    where = from_profile(written(tmp_path, events)).what_if().time
    assert where.span == where.busy + where.host + where.gaps == 45
    assert (where.busy, where.host, where.gaps) == (15, 25, 5)


def test_waves_and_tails(tmp_path):
    # 128 threads: 16 TBs an SM by warps, 2,112 slots
    events = [*launched(0, 10, corr=1, tbs=3168), *launched(20, 10, corr=2, tbs=1056)]
    where = from_profile(written(tmp_path, events)).what_if().time
    assert (where.single, where.several) == (1, 1)
    assert where.tails == pytest.approx(2.5)
    assert where.part == pytest.approx(5.0)


def test_recorded_waits_are_exact(tmp_path):
    sync = {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "ts": 4e9, "dur": 0, "args": {
        "cuda_sync_kind": "Stream Wait Event", "stream": 8, "wait_on_stream": 7, "correlation": 12,
        "wait_on_cuda_event_record_corr_id": 11}}  # fmt: skip
    events = [*launched(0, name="a", corr=1, host=-20), call("cudaEventRecord", -15, 11),
              *launched(6, name="b", corr=2, host=-14), call("cudaStreamWaitEvent", -10, 12), sync,
              *launched(7, name="c", stream=8, corr=3, host=-5)]  # fmt: skip
    found = from_profile(written(tmp_path, events))
    assert edges(found) == {("a", "b"), ("a", "c")}
    assert found.edges.kinds["recorded waits"] == 1
    assert found.edges.least[2] == {0}


def test_pairs_of_record_and_wait_are_inferred_and_marked(tmp_path):
    events = [*launched(0, name="a", corr=1, host=-20), call("cudaEventRecord", -15),
              call("cudaStreamWaitEvent", -10),
              *launched(7, name="b", stream=8, corr=2, host=-5),
              *launched(8, name="c", stream=9, corr=3, host=-4)]  # fmt: skip
    found = from_profile(written(tmp_path, events))
    assert edges(found) == {("a", "b")}  # one wait: one stream obeys it
    assert found.edges.kinds["inferred waits"] == 1
    assert found.edges.least == [set(), set(), set()]


def test_what_times_contradict_is_no_dependence(tmp_path):
    events = [*launched(0, 9, name="a", corr=1, host=-20), call("cudaEventRecord", -15),
              call("cudaStreamWaitEvent", -10),
              *launched(7, name="b", stream=8, corr=2, host=-5)]  # fmt: skip
    assert edges(from_profile(written(tmp_path, events))) == set()


def test_the_host_waits(tmp_path):
    events = [*launched(0, name="a", corr=1, host=-20), call("cudaDeviceSynchronize", -10),
              *launched(40, name="b", stream=8, corr=2, host=30)]  # fmt: skip
    found = from_profile(written(tmp_path, events))
    assert edges(found) == {("a", "b")}
    assert found.edges.kinds["synchronizations of the host"] == 1


def test_overlap_in_a_stream_is_programmatic_launch_and_stays(tmp_path):
    events = [*launched(0, 10, corr=1), *launched(7, 10, corr=2, how="cudaLaunchKernelExC")]
    found = from_profile(written(tmp_path, events))
    assert [k.programmatic for k in found.kernels] == [False, True]
    assert found.what_if()["graph"].time_us == pytest.approx(CARD.launch + 17)


def test_order_in_time_needs_no_edge_that_follows_from_others(tmp_path):
    path = tmp_path / "k.csv"
    path.write_text("name,stream,start_us,dur_us\na,1,0,5\nb,2,1,3\nc,1,6,2\nd,2,9,2\n", encoding="utf-8")
    order = from_profile(path, gpu="h200").kernels
    assert sorted(in_time(order, range(4))) == [(0, 2), (1, 2), (2, 3)]


def test_replaying_the_record_takes_as_long_as_it_did(tmp_path):
    # two kernels of 1.5 waves in two streams: the second begins with the first one's last wave
    events = [
        *launched(0, 20, name="a", corr=1, tbs=3168),
        *launched(10, 25, name="b", stream=8, corr=2, tbs=3168),
    ]
    found = from_profile(written(tmp_path, events))
    number = [1.5, 1.5]
    rule, work = works(found.kernels, number)
    assert work[0] == pytest.approx(20)
    assert work[1] == pytest.approx(15 + 10 * 0.5)
    again = replayed(Plan(work, [set(), set()], [0.0, 0.0], [0.0, 10.0], rule))
    assert again == pytest.approx(35)


def test_replays_without_slow_down_need_no_events():
    draw = random.Random(1)
    for _ in range(20):
        count = 30
        work = [draw.choice([0.0, 1.0, draw.uniform(0, 9)]) for _ in range(count)]
        before = [set(draw.sample(range(i), min(i, draw.randrange(4)))) for i in range(count)]
        gaps, first = [0.5] * count, [draw.uniform(0, 20) for _ in range(count)]
        free = Sharing([0.0] * count, [None] * count)  # kernels that want no slot slow nothing down
        stepwise = replayed(Plan(work, before, gaps, first, free))
        assert replayed(Plan(work, before, gaps, first, None)) == pytest.approx(stepwise, rel=1e-9)


def test_speed_beside_others_is_measured_where_the_profile_has_both(tmp_path):
    events, corr = [], 0
    for i in range(4):
        corr += 1
        events += launched(100.0 * i, 10, name="a", corr=corr, tbs=1056)
    for i in range(4):
        for stream in (7, 8):
            corr += 1
            events += launched(500 + 100.0 * i, 12.5, name="a", corr=corr, stream=stream, tbs=1056)
    found = from_profile(written(tmp_path, events))
    rule, work = works(found.kernels, [0.5] * 12)
    assert rule.measured == pytest.approx([0.25] * 12)
    assert rule.speeds([0, 1, 2], [0.0] * 3) == pytest.approx([1 / 1.5] * 3)
    assert work == pytest.approx([10.0] * 12)


def test_small_memsets_cost_a_graph_more_than_they_show(tmp_path):
    memset = {**kernel("Memset (Device)", 9, 0.8, corr=2), "cat": "gpu_memset"}
    memset["args"] = {"device": 0, "stream": 7, "correlation": 2, "bytes": 16}
    events = [*launched(0, 5, corr=1), memset, *launched(15, 5, corr=3)]
    with_it = from_profile(written(tmp_path, events)).what_if()["graph"].time_us
    alone = from_profile(written(tmp_path, [events[0], events[1], *events[3:]])).what_if()["graph"].time_us
    assert with_it - alone == pytest.approx(1.70)


def test_refused_and_unknown_schemes(tmp_path):
    found = from_profile(written(tmp_path, [kernel()]), gpu="v100").what_if()
    assert list(found.refused) == ["pdl"]
    with pytest.raises(ConfigError, match="no scheme pdl: there are recorded, stream, graph"):
        found["pdl"]


def test_a_table(tmp_path):
    path = tmp_path / "k.csv"
    rows = [
        "workload,kernel,stream,start_ns,duration_ns,grid,block",
        '"x","f<1, 2>",7,1000,5000,8x2x1,128x1x1',
        "x,g,7,9000,2000,,",
    ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    found = from_profile(path, gpu="h200")
    assert [(k.name, k.start, k.duration, k.tbs, k.threads) for k in found.kernels] == [
        ("f<1, 2>", 0, 5, 16, 128),
        ("g", 8, 2, 0, 0),
    ]
    path.write_text("\n".join([*rows, "y,h,7,1,1,,"]), encoding="utf-8")
    with pytest.raises(InputError, match=r"2 recordings by workload: --where workload=\.\.\."):
        from_profile(path, gpu="h200")
    assert len(from_profile(path, gpu="h200", where={"workload": "y"}).kernels) == 1
    with pytest.raises(InputError, match="no column z"):
        from_profile(path, gpu="h200", where={"z": "1"})


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("a,7,x,1", "k.csv:2: start x: must be a number"),
        ("a,s,1,1", "stream s"),
        ("a,7,1,", "duration empty"),
    ],
)
def test_a_bad_row_names_its_line(tmp_path, row, why):
    path = tmp_path / "k.csv"
    path.write_text(f"name,stream,start_us,dur_us\n{row}\n", encoding="utf-8")
    with pytest.raises(InputError, match=why):
        from_profile(path, gpu="h200")


def test_streams_alone_have_no_edges_between_them(tmp_path):
    made = from_profile(written(tmp_path, [*launched(0, corr=1), *launched(20, corr=2, stream=8)]))
    assert made.edges.likely == made.edges.least == [set(), set()]
    assert made.edges.most == [set(), {0}]
