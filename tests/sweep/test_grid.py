"""The grid of a sweep: which points it has, and what it refuses before anything runs."""

import pytest

from pysim.errors import ConfigError
from pysim.sweep import Sweep
from pysim.sweep.point import Point, arguments_of


def test_the_last_key_varies_fastest_and_gpus_slowest():
    sweep = Sweep(
        "gru:layers=1", {"hidden": ["128", 256], "gpu.l2.size": ["3MiB", "6MiB"]}, gpu="titan_v,h200"
    )
    assert sweep.keys == ("gpu", "hidden", "gpu.l2.size")
    assert [point.place for point in sweep.points()] == [
        (gpu, hidden, size)
        for gpu in ("titan_v", "h200")
        for hidden in (128, 256)
        for size in ("3MiB", "6MiB")
    ]
    first = sweep.points()[0]
    assert first.workload == "gru:layers=1,hidden=128"
    assert first.config().integer("gpu.l2.size") == 3 << 20


def test_values_have_the_type_of_the_default():
    assert Sweep("gru", {"hidden": "64"}).points()[0].place == (64,)
    assert Sweep("gru", {"dtype": ["fp16"]}).points()[0].place == ("fp16",)
    assert Sweep("gru", {"gpu.clock": ["1200", "1.3GHz"]}).grid["gpu.clock"] == (1200, "1.3GHz")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"workload": "gro"}, "gru"),
        ({"workload": "gru:hiden=1"}, "hidden"),
        ({"workload": 3}, "must be a text"),
        ({"grid": {"hiden": [1]}}, "did you mean hidden"),
        ({"grid": {"hidden": ["many"]}}, "hidden = many"),
        ({"grid": {"hidden": [1, 1]}}, "listed twice"),
        ({"grid": {"hidden": ["64", "+64"]}}, "+64 is listed twice"),
        ({"grid": {"gpu.l2.size": ["3MiB", "3072KiB"]}}, "3072KiB is listed twice"),
        ({"grid": {"input": ["per-step,batch=3"]}}, "no comma"),
        ({"grid": {"gpu": ["titan_v"]}}, "--gpu a,b"),
        ({"workload": "persistent_rnn", "grid": {"gpu": ["titan_v"]}, "gpu": "titan_v,h200"}, "as well"),
        ({"grid": {"hidden": []}}, "list of values"),
        ({"grid": {"hidden": [None]}}, "number or a text"),
        ({"grid": [1]}, "values by key"),
        ({"workload": "gru:hidden=64", "grid": {"hidden": [1]}}, "given as well"),
        ({"grid": {"gpu.l2.size": ["much"]}}, "gpu.l2.size"),
        ({"grid": {"gpu.l2.sise": ["3MiB"]}}, "gpu.l2.size"),
        ({"grid": {"gpu.sms": [4]}, "settings": {"gpu.sms": 8}}, "set as well"),
        ({"gpu": "titan_w"}, "titan_v"),
        ({"gpu": "titan_v,titan_v"}, "twice"),
        ({"schemes": "strem"}, "stream"),
        ({"schemes": ""}, "missing"),
        ({"settings": {"gpu.l2": 3}}, "gpu.l2"),
        ({"tables": ["rums"]}, "runs"),
        ({"grid": {"hidden": range(1, 2001), "batch": range(1, 2001)}}, "4,000,000 points"),
        ({"grid": {"hidden": range(10**18)}}, "points: at most 1,000,000"),
    ],
)
def test_what_is_wrong_is_named(arguments, words):
    with pytest.raises(ConfigError) as caught:
        Sweep(**{"workload": "gru", **arguments})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def key_of(**more):
    fields = {"workload": "gru:hidden=64", "gpu": "titan_v", "schemes": ("stream",), "settings": {}} | more
    point = Point(**fields)
    return point.key(point.group(point.config(), arguments_of(point)))


def test_a_key_names_the_content():
    assert key_of() == key_of(workload="gru:hidden=64,layers=3")  # the default
    assert key_of(workload="gru:hidden=64,batch=8") == key_of(workload="gru:batch=8,hidden=64")
    assert key_of() == key_of(settings={"gpu.sms": 80})  # what a Titan V has
    assert key_of() == key_of(place=(1, 2))
    others = [
        key_of(workload="gru:hidden=65"),
        key_of(gpu="v100"),
        key_of(schemes=("graph",)),
        key_of(schemes=("stream", "graph")),
        key_of(settings={"gpu.sms": 79}),
        key_of(tables=("runs",)),
        key_of(rename=True),
    ]
    assert len({key_of(), *others}) == 1 + len(others)


def test_a_key_follows_from_the_code(monkeypatch):
    before = key_of()
    monkeypatch.setattr("pysim.sweep.point.results_digest", lambda: "another core")
    assert key_of() != before


def test_a_file_describes_a_sweep(tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(
        'workload = "gru:layers=1"\nschemes = "stream,graph"\ngpu = ["titan_v"]\nout = "runs"\n'
        "[grid]\nhidden = [64, 128]\ngpu.l2.size = ['3MiB', '6MiB']\n[set]\n'gpu.sms' = 8\n"
    )
    sweep, out = Sweep.from_file(file)
    assert sweep.keys == ("hidden", "gpu.l2.size")
    assert len(sweep.points()) == 4
    assert sweep.settings == {"gpu.sms": 8}
    assert str(out) == "runs"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("grid = 3\nworkload = 'gru'", "[grid]"),
        ("[grid]\nhidden = [1]", "no workload"),
        ("workload = 'gru'\nshemes = 'stream'", "did you mean schemes"),
        ("workload = 'gru'\nout = 3", "folder"),
        ("workload = 'gru'\nrename = 'x'", "true or false"),
        ("workload = ", "not valid TOML"),
        ("x = " + "[" * 100_000, "TOML"),
        (".".join("a" * 100_000) + " = 1", "a key of more than 64 parts"),
        ("[" + ".".join("a" * 100_000) + "]", "a key of more than 64 parts"),
        ("x = {y = 1, " + ".".join("a" * 100_000) + " = 1}", "a key of more than 64 parts"),
        ("x = '" + "a" * (1 << 20) + "'", "at most 1 MiB"),
        ("workload = 'gru'\n[grid.hidden]\nx.y.z = 1", "hidden.x.y.z"),
        ("workload = 'gru'\n[grid]\nhidden = [[1]]", "number or a text"),
    ],
)
def test_a_bad_file_is_named(tmp_path, text, words):
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Sweep.from_file(file)
    assert str(file) in str(caught.value)
    assert words in str(caught.value)


def test_no_file(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        Sweep.from_file(tmp_path / "none.toml")
