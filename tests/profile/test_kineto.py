"""Kineto files, and each way in which they are known to be malformed: read, or refused with the byte."""

from __future__ import annotations

import gzip
import json

import pytest

from pysim.errors import ConfigError, InputError
from pysim.profile import from_profile
from pysim.profile.losses import Losses
from pysim.profile.reading.kineto import read_kineto
from pysim.profile.reading.repair import UnreadableError, repaired
from tests.profile.traces import BASE, H200, call, kernel, launched, text_of, written


def lost(profile):
    return {row.what: row.count for row in profile.losses.rows()}


def test_a_sound_file_loses_nothing(tmp_path):
    path = written(tmp_path, [*launched(0, corr=1), *launched(9, corr=2, name="wört")])
    found = from_profile(path)
    assert [(k.name, k.start, k.duration, k.tbs, k.threads, k.launched) for k in found.kernels] == [
        ("k", 0, 5, 132, 128, -8),
        ("wört", 9, 5, 132, 128, 1),
    ]
    assert found.card.name == "h200"
    assert lost(found) == {}


def test_packed_and_list_of_events(tmp_path):
    events = [*launched(0), *launched(9, corr=2)]
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(json.dumps(events).encode()))
    assert len(from_profile(path, gpu="h200").kernels) == 2


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "inf", "-inf", "nan", "N/A"])
def test_bare_words(tmp_path, word):
    text = text_of([kernel(occupancy="HERE"), kernel(start=9, corr=2)]).replace('"HERE"', word)
    path = tmp_path / "t.json"
    path.write_text(text, encoding="utf-8")
    assert [k.start for k in from_profile(path).kernels] == [0, 9]


@pytest.mark.parametrize("word", ["NaN", "inf", "N/A"])
def test_a_bare_word_as_time_leaves_the_event_out(tmp_path, word):
    text = text_of([kernel(dur=4444), kernel(start=9, corr=2)]).replace("4444", word)
    path = tmp_path / "t.json"
    path.write_text(text, encoding="utf-8")
    found = from_profile(path)
    assert len(found.kernels) == 1
    assert lost(found)["GPU events without a time, left out"] == 1


@pytest.mark.parametrize(
    ("written_as", "name"),
    [
        (r"C:\kernels\x", r"C:\kernels\x"),  # lone backslashes
        ("C:\\dir\\", "C:\\dir\\"),  # one before the quote that closes
        ('f<"a">', 'f<"a">'),  # quotes that are not escaped
        ('say "k", twice', 'say "k", twice'),
        ("a\x01b\nc", "a\x01b\nc"),  # control characters
        (r"a\"b", 'a"b'),
    ],
)
def test_names_that_are_no_proper_json(tmp_path, written_as, name):
    text = text_of([kernel("HERE"), kernel("next", start=9, corr=2)]).replace("HERE", written_as)
    path = tmp_path / "t.json"
    path.write_bytes(text.encode())
    assert [k.name for k in from_profile(path).kernels] == [name, "next"]


@pytest.mark.parametrize("cut", [1, 2, 40, 200])
def test_a_file_cut_off_is_read_as_far_as_it_goes(tmp_path, cut):
    text = text_of([kernel(start=9.0 * i, corr=i + 1) for i in range(5)])
    path = tmp_path / "t.json"
    path.write_text(text[:-cut], encoding="utf-8")
    found = from_profile(path)
    assert len(found.kernels) == (5 if cut <= 2 else 4)
    row = next((row for row in found.losses.rows() if "cut off" in row.what), None)
    assert (row is not None and f"byte {len(text) - cut}" in row.detail) or cut == 1


def test_gzip_cut_off(tmp_path):
    text = text_of([kernel(f"k{i * 7919 % 1000}", start=9.0 * i, corr=i + 1) for i in range(500)])
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(text.encode())[:-400])
    found = from_profile(path)
    assert 0 < len(found.kernels) < 500
    assert any("cut off" in what for what in lost(found))


def test_unreadable_text_is_refused_with_the_byte(tmp_path):
    text = text_of([kernel(), kernel("bad", start=9), kernel(start=20)])
    text = text.replace('"name": "bad"', '"name" = "bad"')
    path = tmp_path / "t.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"t\.json: byte \d+: ") as error:
        from_profile(path)
    at = int(str(error.value).partition("byte ")[2].partition(":")[0])
    assert abs(at - text.index('"name" = ')) < 120


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "an empty file"),
        ("hello", "neither a Kineto file nor a table"),
        ("{}", "no traceEvents"),
        ('{"traceEvents": [3]}', "an event must be an object"),
        ('{"traceEvents": []}', "no GPU event"),
        ('{"traceEvents" []}', "byte 15"),
    ],
)
def test_what_is_no_profile(tmp_path, text, why):
    path = tmp_path / "t.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=why):
        from_profile(path)


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        from_profile(tmp_path / "none.json")


def test_times_of_zero_missing_or_backwards(tmp_path):
    zero, missing, back, none = (kernel(f"k{i}", start=9.0 * i, corr=i + 1) for i in range(4))
    zero["ts"] = 0
    del missing["dur"]
    back["dur"] = -3
    none["dur"] = 0
    path = written(tmp_path, [zero, missing, back, none, kernel("good", start=50, corr=9)])
    found = from_profile(path)
    assert [k.name for k in found.kernels] == ["k3", "good"]
    assert lost(found) == {
        "GPU events without a time, left out": 2,
        "GPU events that end before they start, left out": 1,
        "GPU events of no duration, kept": 1,
    }
    assert found.what_if()["graph"].time_us > 0


def test_no_launch_and_correlation_zero(tmp_path):
    path = written(tmp_path, [*launched(0, corr=5), kernel("lost", 9, corr=77), kernel("zero", 20, corr=0)])
    found = from_profile(path)
    assert [k.launched is None for k in found.kernels] == [False, True, True]
    assert lost(found) == {
        "GPU events of correlation id 0: no launch known": 1,
        "GPU events without a launch in the file": 1,
    }


def test_graph_launches_are_told_apart(tmp_path):
    events = [call("cudaGraphLaunch", -5, corr=3), call("cudaGraphLaunch", 30, corr=4)]
    events += [kernel(start=6.0 * i, corr=3) for i in range(4)]
    events += [kernel(start=40 + 6.0 * i, corr=4) for i in range(4)]
    found = from_profile(written(tmp_path, events))
    assert [k.replay for k in found.kernels] == [3] * 4 + [4] * 4
    assert "graph launches: 2, of 8 of 8 kernels" in found.notes


@pytest.mark.parametrize("given", [None, "ns"])
def test_times_in_ns(tmp_path, given):
    events = [event for i in range(4) for event in launched(20.0 * i, corr=i + 1)]
    for event in events:
        event["ts"], event["dur"] = round(event["ts"] * 1000), round(event["dur"] * 1000)
    found = from_profile(written(tmp_path, events), unit=given)
    assert [(k.start, k.duration) for k in found.kernels] == [(20.0 * i, 5.0) for i in range(4)]
    assert lost(found)["times are in ns, not us"] == 1


def test_an_event_of_another_day_is_left_out(tmp_path):
    far = kernel(start=0.0)
    far["ts"] = 5.0
    found = from_profile(written(tmp_path, [far, *(kernel(start=9.0 * i, corr=i) for i in range(1, 4))]))
    assert len(found.kernels) == 3
    assert lost(found)["GPU events an hour long, or from all others, left out"] == 1


def test_no_gpu_event(tmp_path):
    path = written(tmp_path, [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1.0, "dur": 2.0}])
    with pytest.raises(InputError, match="no GPU event"):
        from_profile(path)


def test_cpu_events_around_few_kernels_take_no_memory(tmp_path):
    cpu = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::add" * 20,
        "ts": BASE,
        "dur": 2.0,
        "args": {"x": [1] * 40},
    }
    path = written(tmp_path, [cpu] * 20_000 + [kernel()] + [cpu] * 20_000)
    losses = Losses()
    made = read_kineto(path, losses)
    assert len(made.ran) == 1
    assert losses.rows()[-1].count == 40_000
    assert path.stat().st_size > 12 << 20


@pytest.mark.parametrize(
    ("card", "name", "sms"),
    [
        (H200, "h200", 132),
        ({**H200, "name": "NVIDIA H100 80GB HBM3"}, "h100", 132),
        ({**H200, "name": "NVIDIA B200", "numSms": 148, "computeMajor": 10}, "h200", 148),
        ({**H200, "name": "NVIDIA A100-SXM4-40GB", "numSms": 108, "computeMajor": 8}, "a100", 108),
    ],
)
def test_the_card_of_the_profile(tmp_path, card, name, sms):
    found = from_profile(written(tmp_path, [kernel()], card))
    assert (found.card.name, found.card.sms) == (name, sms)
    assert any("B200" in note for note in found.notes) == ("B200" in card["name"])


@pytest.mark.parametrize(
    "card", [None, {"id": 0, "name": "AMD Radeon Graphics", "numSms": 104}, {"name": ""}]
)
def test_a_card_that_is_not_known_asks_for_gpu(tmp_path, card):
    path = written(tmp_path, [kernel()], card)
    with pytest.raises(ConfigError, match="--gpu NAME"):
        from_profile(path)
    assert from_profile(path, gpu="v100").card.name == "v100"


def test_several_gpus(tmp_path):
    path = written(tmp_path, [kernel(), kernel(start=9, corr=2), kernel("other", 3, corr=3, device=1)])
    assert lost(from_profile(path)) == {"events of other GPUs than 0, left out": 1}
    assert [k.name for k in from_profile(path, device=1).kernels] == ["other"]
    with pytest.raises(InputError, match="no GPU 2: there are 0, 1"):
        from_profile(path, device=2)


@pytest.mark.parametrize("text", ['{"a" 1}', '{"a": }', "[1]", '{"a": "b'])
def test_repair_refuses_what_is_not_clear(text):
    with pytest.raises(UnreadableError):
        repaired(text)


def test_what_follows_the_profile_is_counted(tmp_path):
    text = text_of(launched(0))
    path = tmp_path / "t.json"
    for more, count in (("\n", 0), (text, 1), ("garbage", 1)):
        path.write_text(text + more, encoding="utf-8")
        found = from_profile(path)
        assert len(found.kernels) == 1
        assert lost(found).get("data after the end of the profile, left out", 0) == count


def test_a_file_cut_off_before_its_first_kernel_says_so(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(text_of(launched(0))[:-300], encoding="utf-8")
    with pytest.raises(InputError, match="no GPU event: the file is cut off, at byte"):
        from_profile(path)


def test_bytes_of_no_format_are_refused_in_our_words(tmp_path):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(b"\x80a\rb,c\n\x00"))
    with pytest.raises(InputError, match="neither a Kineto file nor a table of kernels"):
        from_profile(path)


def test_notes_say_what_the_tables_do_not(tmp_path):
    bare = from_profile(written(tmp_path, [kernel(grid=[], corr=0), kernel(start=9, corr=0)])).notes
    assert [note.partition(":")[0] for note in bare] == ["no launches", "kernels of no known grid"]
    sync = call("cudaDeviceSynchronize", -3)
    events = [*launched(0, host=-8), sync, *launched(20, host=12, corr=2)]
    assert (
        "waits of the host for the GPU between launches: 1;"
        in from_profile(written(tmp_path, events)).notes[0]
    )
    assert not from_profile(written(tmp_path, events[:3])).notes


def test_a_kernel_of_an_hour_is_left_out(tmp_path):
    found = from_profile(written(tmp_path, [*launched(0), *launched(9, 1e18, corr=2), *launched(19, corr=3)]))
    assert len(found.kernels) == 2
    assert lost(found)["GPU events an hour long, or from all others, left out"] == 1


def test_a_gpu_of_a_table_is_not_chosen_by_number(tmp_path):
    path = tmp_path / "k.csv"
    path.write_text("name,stream,start,dur\na,7,0,5\n", encoding="utf-8")
    with pytest.raises(InputError, match="--device chooses"):
        from_profile(path, gpu="h200", device=1)
