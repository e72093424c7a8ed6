"""Machines composed of objects: all parameters, checked where they are set, printed, kept in TOML."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

import pysim
from pysim import ConfigError, System, simulate
from pysim.machine.composition import Part
from pysim.machine.config import Config
from pysim.machine.devices import DEVICES
from pysim.machine.devices import device as registered
from pysim.params import INSIDE, PARAMS
from pysim.units import ROWS
from pysim.workloads import make


def parameters(part, path):
    """Yield every parameter that can be reached through attributes: dotted path from the root, value."""
    for name in dir(part):
        if name in OWN or callable(getattr(type(part), name, None)):
            continue
        value = getattr(part, name)
        if isinstance(value, Part):
            yield from parameters(value, f"{path}.{name}")
        else:
            yield f"{path}.{name}", value


OWN = ("name", "title", "compute_capability", "carveouts", "mma_rate")


@pytest.mark.parametrize("name", DEVICES)
def test_a_gpu_is_its_device_until_it_is_changed(name):
    gpu = pysim.device(name)
    values = Config.resolve(registered(name)).values
    assert Config.resolve(gpu).values == values
    found = dict(parameters(gpu, "gpu"))
    for group, home in INSIDE.items():
        last = group.rpartition(".")[2]
        for row in PARAMS[group]:
            assert found.pop(f"{home}.{last}.{row.name}") == values[f"{group}.{row.name}"]
    assert found == {path: value for path, value in values.items() if path.startswith("gpu.")}


def test_a_system_reaches_every_parameter_that_is_not_of_a_gpu():
    system = System("titan_v")
    found = {}
    for root in {group.partition(".")[0] for group in PARAMS} - {"gpu"}:
        found.update(parameters(getattr(system, root), root))
    assert found == {path: row.default for path, row in ROWS.items() if not path.startswith("gpu.")}
    assert set(dir(system)) >= {"gpus", "host", "scheme", "sim"}


def test_no_parameter_hides_behind_a_method():
    methods = {name for name in dir(pysim.Gpu) if not name.startswith("_")} | set(OWN)
    for group, rows in PARAMS.items():
        names = {row.name for row in rows} | {
            g.rpartition(".")[2] for g in PARAMS if g.rpartition(".")[0] == group
        }
        assert not names & methods, group
        assert not [name for name in names if not name.isidentifier() or name.startswith("_")]


def test_what_is_set_is_what_runs():
    gpu = pysim.device("titan_v")
    gpu.sms = 40
    gpu.l2.size = "2304KiB"
    gpu.sm.l1.latency = 29
    system = System(gpu)
    system.host.launch = "3us"
    system.scheme.table.entries = 64
    given = {
        "gpu.sms": 40,
        "gpu.l2.size": 2304 * 1024,
        "gpu.l1.latency": 29,
        "host.launch": "3us",
        "scheme.table.entries": 64,
    }
    expected = Config.resolve(registered("titan_v"), given)
    assert system.config().values == expected.values
    job = make("gru:hidden=64,batch=4,timesteps=2,layers=1")
    assert simulate(system, job, "stream").hash == simulate("titan_v", job, "stream", overrides=given).hash
    # dotted paths of a call go before what the script has set
    assert system.config({"gpu.sms": 20})["gpu.sms"] == 20
    assert gpu.sms == 40


def test_copies_are_independent():
    gpu = pysim.device("h200")
    other = gpu.copy()
    other.sms = 66
    other.name = "half"
    assert (gpu.sms, gpu.name) == (132, "h200")
    assert (other.sms, other.device().name) == (66, "half")
    assert pysim.device("h200").sms == 132


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda each: pickle.loads(pickle.dumps(each)),
    "method": lambda each: each.copy(),
}


@pytest.mark.parametrize("way", COPIES)
def test_gpus_and_systems_are_copied_and_pickled_by_value(way):
    gpu = pysim.device("titan_v")
    gpu.name, gpu.sms = "mine", 40
    gpu.l2.set("size", "2304KiB", "me")
    system = System(gpu)
    system.host.launch = "3us"
    again = COPIES[way](system)
    assert again.config() == system.config()
    assert repr(again) == repr(system)
    again.host.launch = "5us"
    again.gpus[0].sms = 20
    again.gpus[0].name = "other"
    again.gpus.append(gpu)
    assert (system.host.launch, gpu.sms, gpu.name, len(system.gpus)) == (3000.0, 40, "mine", 1)
    other = COPIES[way](gpu)
    assert repr(other) == repr(gpu)
    other.l2.size = "4608KiB"
    assert other.device() != gpu.device()
    assert gpu.l2.size == 2304 * 1024


@pytest.mark.parametrize("way", ["copy", "deepcopy", "pickle"])
def test_parts_are_not_copied(way):
    gpu = pysim.device("titan_v")
    for part, name in ((gpu.l2, "gpu.l2"), (gpu.sm.l1, "gpu.l1"), (System(gpu).host, "host")):
        with pytest.raises(ConfigError, match=f"{name} is a part of a machine: copy or pickle the whole"):
            COPIES[way](part)


def test_devices_and_configurations_are_keys():
    gpu = pysim.device("titan_v")
    known = {gpu.device(): "device", Config.resolve(gpu): "configuration"}
    assert known[pysim.device("titan_v").device()] == "device"
    assert known[Config.resolve(registered("titan_v"))] == "configuration"
    gpu.sms = 40
    assert gpu.device() not in known
    assert Config.resolve(gpu) not in known
    # the order of values is no part of a configuration
    config = Config.resolve(registered("titan_v"))
    assert hash(Config(config.device, dict(reversed(config.values.items())))) == hash(config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda gpu: setattr(gpu, "smss", 1), "gpu has no smss: did you mean sms?"),
        (lambda gpu: setattr(gpu.l2, "size", "1XB"), "gpu.l2.size = 1XB: unknown unit XB"),
        (lambda gpu: setattr(gpu.l2, "slices", -1), "gpu.l2.slices = -1: must be"),
        (lambda gpu: setattr(gpu.l2, "slices", 1.5), "gpu.l2.slices = 1.5: must be an integer"),
        (lambda gpu: setattr(gpu, "l2", 4), "gpu.l2 is a part: set one of size, "),
        (lambda gpu: gpu.sm.l1.sizes, "gpu.l1 has no sizes: did you mean size?"),
        (lambda gpu: gpu.set("l2.siez", 1), "gpu.l2 has no siez: did you mean size?"),
        (lambda gpu: gpu.set("sms.size", 1), "gpu.sms is a value: it has no size"),
        (lambda gpu: setattr(gpu, "carveouts", "96KiB"), "carveouts = 96KiB: must be a list"),
        (lambda gpu: setattr(gpu, "compute_capability", 7), "compute_capability = 7: must be (major, minor)"),
        (lambda gpu: gpu.set("sms", 40, None), "source = None: must be a text"),
        (lambda gpu: gpu.set("sms", 40, "a\u2028b"), "source = a b: must be one line"),
        (lambda gpu: setattr(System(gpu).host, "launch", object()), "host.launch = <object object at"),
        (lambda gpu: setattr(gpu, "carveouts", b"12"), "carveouts = b'12': must be a list of sizes"),
        (lambda gpu: setattr(gpu, "mma_rate", 0), "mma_rate = 0: must be"),
        (lambda gpu: setattr(gpu, "name", ""), "name = '': must be a text"),
        (lambda gpu: System([gpu, gpu]).config(), "a system of 2 GPUs: one GPU is simulated, for now"),
        (lambda gpu: System([]).config(), "a system of 0 GPUs"),
        (lambda gpu: System(5), "int is no GPU: take one of pysim.device(NAME)"),
        (lambda gpu: setattr(System(gpu), "host", 5), "host is a part"),
        (lambda gpu: setattr(System(gpu), "hots", 5), "a system has no hots: did you mean host?"),
        (lambda gpu: setattr(System(gpu), "gpus", 5), "int is no GPU: take one of pysim.device(NAME)"),
        (lambda gpu: setattr(System(gpu), "gpus", []), "a system of 0 GPUs: give one"),
        (lambda gpu: setattr(System(gpu), "gpu", 5), "a system has no gpu: did you mean gpus?"),
        (lambda gpu: System(gpu).gpu.sms, "a system has no gpu: did you mean gpus[0]?"),
        (lambda gpu: System(gpu).hots, "a system has no hots: did you mean host?"),
        (lambda gpu: System(gpu).gpus.append(5), "int is no GPU"),
        (lambda gpu: System(gpu).gpus.__setitem__(slice(1), 5), "int is no GPU"),
        (lambda gpu: System(gpu).gpus.clear(), "a system of 0 GPUs"),
        (lambda gpu: System([]), "a system of 0 GPUs: give one, such as pysim.device(NAME)"),
        (lambda gpu: delattr(System(gpu), "gpus"), "gpus of a system cannot be deleted"),
        (lambda gpu: delattr(System(gpu), "host"), "host of a system cannot be deleted"),
        (lambda gpu: delattr(gpu, "sms"), "gpu.sms cannot be deleted: set another value"),
        (lambda gpu: System(gpu).gpus.__setitem__(0, "h20"), "unknown GPU h20: did you mean h200?"),
        (lambda gpu: gpu.set(3, 3), "gpu.set: 3 is no name of a parameter: must be a text"),
        (lambda gpu: gpu.set("name", 3), "name = 3: must be a text"),
        (lambda gpu: gpu.set("name", "a", "me"), "name has no source: set it without"),
        (lambda gpu: gpu.set("nam", "a"), "gpu has no nam: did you mean name?"),
        (lambda gpu: simulate(7, make("empty")), "int is no machine"),
        (lambda gpu: pysim.device("titan"), "unknown GPU titan: did you mean titan_v?"),
        (lambda gpu: pysim.device(None), "None is no GPU: give a name, such as titan_v, or a FILE.toml"),
        (lambda gpu: pysim.device(["h200"]), "['h200'] is no GPU: give a name"),
        (lambda gpu: pysim.device(b"h200"), "b'h200' is no GPU: give a name"),
        (lambda gpu: simulate(None, make("empty")), "NoneType is no machine"),
        (lambda gpu: gpu.save(None), "None is no path: give the name of a file that ends in .toml"),
        (lambda gpu: gpu.save(5), "5 is no path"),
        (lambda gpu: gpu.save("a\0.toml"), "a\\x00.toml: cannot be written: a path holds no NUL"),
        (lambda gpu: gpu.save("a" * 300 + ".toml"), "a" * 200 + "...: cannot be written: File name too long"),
        (lambda gpu: System(gpu).config(5), "overrides = 5: must be a dict by path"),
    ],
)
def test_what_is_wrong_is_one_line(change, message):
    with pytest.raises(ConfigError) as caught:
        change(pysim.device("titan_v"))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("compute_capability", (7, 10), "(7, 10): must be (major, minor), major from 1 to 99 and minor"),
        ("compute_capability", (-7, 0), "(-7, 0): must be (major, minor), major from 1 to 99"),
        ("compute_capability", (True, False), "(True, False): must be (major, minor), such as (7, 0)"),
        ("compute_capability", (10**30, 0), f"(1{'0' * 30}, 0): must be (major, minor), major from 1"),
        ("compute_capability", "7.0", "7.0: must be (major, minor), such as (7, 0)"),
        ("title", "a \ud83d", "a \\ud83d: must be one line, without control characters and lone surrogates"),
        ("title", "", "'': must be a text"),
        ("name", "a\nb", "a b: must be one line"),
        ("name", "a" * 65, f"{'a' * 65}: must be at most 64 bytes of UTF-8"),
        ("name", "é" * 33, f"{'é' * 33}: must be at most 64 bytes of UTF-8"),
        ("name", 3, "3: must be a text"),
    ],
)
def test_fields_of_a_device_are_checked_where_they_are_set(field, value, message):
    with pytest.raises(ConfigError) as caught:
        setattr(pysim.device("titan_v"), field, value)
    assert str(caught.value).startswith(f"{field} = {message}")
    assert "\n" not in str(caught.value)


def test_gpus_of_a_system_are_set_in_any_form():
    gpu = pysim.device("titan_v")
    system = System("h200")
    for given in (gpu, "titan_v", ["titan_v"], (gpu,), registered("titan_v")):
        system.gpus = given
        assert system.config().device.name == "titan_v"
        assert isinstance(system.gpus[0], pysim.Gpu)
    system.gpus = gpu
    assert system.gpus[0] is gpu
    system.gpus[0] = "h200"
    assert system.config()["gpu.sms"] == 132
    system.gpus.append("titan_v")
    assert repr(system.gpus) == "[h200, titan_v]"
    with pytest.raises(ConfigError, match="a system of 2 GPUs"):
        system.config()
    del system.gpus[0]
    assert system.config()["gpu.sms"] == 80
    system.gpus[:] = ["h200"]
    assert [each.name for each in system.gpus] == ["h200"]
    assert not hasattr(system, "gpu")


def test_set_takes_what_assignment_takes():
    gpu = pysim.device("titan_v")
    gpu.set("name", "mine")
    gpu.set("mma_rate", 64)
    gpu.set("sms", 40, "mine")
    assert (gpu.name, gpu.mma_rate, gpu.sms) == ("mine", 64, 40)


def test_values_that_do_not_fit_together_are_refused_where_they_are_used():
    gpu = pysim.device("titan_v")
    gpu.l2.slices = 47
    with pytest.raises(ConfigError, match=r"gpu\.l2\.size = 4608KiB: must be a multiple"):
        gpu.device()
    with pytest.raises(ConfigError, match=r"gpu\.l2\.size"):
        simulate(gpu, make("empty"))


def test_unknown_names_are_attribute_errors_too():
    gpu = pysim.device("titan_v")
    assert not hasattr(gpu, "smss")
    assert not hasattr(gpu, "_repr_html_")
    assert not hasattr(System(gpu), "hots")


def test_a_gpu_prints_as_a_tree():
    gpu = pysim.device("titan_v")
    gpu.sm.l1.set("latency", 30, "measured by us")
    lines = repr(gpu).splitlines()
    assert lines[0] == "titan_v: NVIDIA Titan V (GV100, 12 GB HBM2), compute capability 7.0"
    (changed,) = [line for line in lines if "measured by us" in line]
    assert changed.split() == [
        "│",
        "├─",
        "latency",
        "30",
        "cycle",
        "measured",
        "by",
        "us",
        "(was",
        "28",
        "cycle)",
    ]
    # a value a line, each with where it comes from
    values = [line for line in lines if "  " in line.partition("─ ")[2]]
    assert len(values) == sum(path.startswith("gpu.") for path in ROWS)
    assert {"sms", "l1", "dram"} <= {line.split("─ ")[1].split()[0] for line in lines if "─ " in line}
    assert repr(gpu.l2).splitlines()[0] == "gpu.l2"
    assert "host" in repr(System(gpu))


@pytest.mark.parametrize("name", ["titan_v", "h200", "accelsim_qv100"])
def test_saved_and_loaded_it_is_the_same(name, tmp_path):
    gpu = pysim.device(name)
    gpu.name, gpu.title = "mine", 'a "GPU" of mine, \\ Titan \U0001f680 \u00b5 \xa0'
    gpu.set("l1.latency", gpu.l1.latency + 1, 'a "source"')
    gpu.compute_capability = (9, 9)
    gpu.carveouts = ["0B", "32KiB"]
    gpu.mma_rate = 77
    path = gpu.save(tmp_path / "mine.toml")
    again = pysim.device(str(path))
    assert again.device().values == gpu.device().values
    assert [getattr(again, own) for own in OWN] == [getattr(gpu, own) for own in OWN]
    assert again.device().energies == gpu.device().energies
    assert again.device().sources["gpu.l1.latency"] == 'a "source"'
    # of what is read from a file again, all is written again
    assert pysim.device(str(again.save(tmp_path / "again.toml"))).device().values == gpu.device().values


def test_a_device_made_by_hand_is_saved_whole_or_not_at_all(tmp_path):
    """Its fields have not been checked; the file is never one that cannot be read."""
    gpu = pysim.Gpu(replace(registered("titan_v"), name="a\x7fb\n"))
    with pytest.raises(ConfigError, match=r"name = a\\x7fb: must be one line"):
        gpu.save(tmp_path / "a.toml")
    assert not list(tmp_path.iterdir())


def test_a_value_that_is_set_back_is_not_marked_as_changed():
    system = System("titan_v")
    for part, name in ((system.host, "launch"), (system.gpus[0], "sms")):
        first, before = getattr(part, name), repr(part).count("(was ")
        setattr(part, name, 7)
        setattr(part, name, 9)
        assert repr(part).count("(was ") == before + 1
        setattr(part, name, first)
        assert repr(part).count("(was ") == before
    assert system.config().values == Config.resolve(registered("titan_v")).values


def test_what_is_refused_changes_nothing():
    gpu = pysim.device("titan_v")
    before = repr(gpu)
    for change in (("sms", 40, None), ("sms", "x"), ("title", ""), ("l2.size", "1MiB", "a\nb")):
        with pytest.raises(ConfigError):
            gpu.set(*change)
    assert repr(gpu) == before


def test_saving_loses_nothing(tmp_path):
    gpu = pysim.device("titan_v")
    path = gpu.save(tmp_path / "a.toml")
    kept = path.read_bytes()
    with pytest.raises(ConfigError, match="exists: force=True replaces it"):
        gpu.save(path)
    with pytest.raises(ConfigError, match=r"must end in \.toml"):
        gpu.save(tmp_path / "a.json")
    with pytest.raises(ConfigError, match="cannot be written"):
        gpu.save(tmp_path / "no" / "a.toml")
    gpu.l2.slices = 47
    with pytest.raises(ConfigError, match=r"gpu\.l2\.size"):
        gpu.save(path, force=True)
    assert path.read_bytes() == kept
    assert sorted(tmp_path.iterdir()) == [path]
