"""Units and the resolved configuration."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim.errors import ConfigError
from pysim.machine.config import Config
from pysim.machine.devices import device
from pysim.params import PARAMS, encode
from pysim.units import ROWS, Value, parse, row_of, show

TITAN_V = device("titan_v")


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("gpu.l2.size", "96KiB", 98304),
        ("gpu.l2.size", "1.5MiB", 1572864),
        ("gpu.l2.size", "1e6", 1000000),
        ("gpu.l2.size", "1MB", 1000000),
        ("gpu.clock", "1.2GHz", 1200.0),
        ("gpu.clock", "0.1 GHz", 100.0),
        ("gpu.clock", " 1455 ", 1455.0),
        ("gpu.dram.bandwidth", "850GB/s", 850.0),
        ("gpu.dram.bandwidth", "3.35TB/s", 3350.0),
        ("gpu.cp.launch", "2.5us", 2500.0),
        ("gpu.cp.launch", "2.5\u00b5s", 2500.0),
        ("gpu.cp.launch", "0.001ms", 1000.0),
        ("gpu.l1.latency", "28 cycles", 28),
        ("gpu.sm.fp32_interval", "0.5", 0.5),
        ("gpu.sms", "1_0", 10),
        ("gpu.sms", 10.0, 10),
        ("sim.oracle", "on", 1),
        ("sim.oracle", False, 0),
        ("scheme.priority", "critical", "critical"),
    ],
)
def test_values_are_read_in_the_unit_of_their_row(path: str, text: Value, value: Value) -> None:
    got = parse(path, row_of(path), text)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("gpu.l1.latency", 0, "gpu.l1.latency = 0 cycle: must be in [8, 256]"),
        ("gpu.l1.latency", "8.5", "gpu.l1.latency = 8.5 cycle: must be an integer in [8, 256]"),
        ("gpu.sms", "1.5", "gpu.sms = 1.5: must be an integer in [1, 1024]"),
        ("gpu.sms", "4KiB", "gpu.sms = 4KiB: unknown unit KiB; takes no unit"),
        ("gpu.sms", True, "gpu.sms = True: must be an integer in [1, 1024]"),
        ("gpu.sms", None, "gpu.sms = None: must be an integer in [1, 1024]"),
        ("gpu.clock", float("nan"), "gpu.clock = nan: must be in [100, 10000]"),
        ("gpu.clock", "1e999", "gpu.clock = 1e999 MHz: must be in [100, 10000]"),
        ("gpu.clock", "1e9999999", "gpu.clock = 1e9999999 MHz: not a number; must be in [100, 10000]"),
        ("gpu.clock", "9" * 9999, f"gpu.clock = {'9' * 60}...: not a number; must be in [100, 10000]"),
        ("gpu.clock", "fast", "gpu.clock = fast: not a number; must be in [100, 10000]"),
        ("gpu.clock", "1.2GB", "gpu.clock = 1.2GB: unknown unit GB; use Hz, kHz, MHz, GHz"),
        ("gpu.l2.size", "0.5B", "gpu.l2.size = 0.5B: must be in [64KiB, 1GiB]"),
        ("gpu.l2.size", "65536.5", "gpu.l2.size = 65536.5 B: must be an integer in [64KiB, 1GiB]"),
        (
            "scheme.priority",
            "oldst",
            "scheme.priority = oldst: must be one of oldest, newest, critical, round_robin, consumer: did you"
            " mean oldest?",
        ),
        ("sim.oracle", 2, "sim.oracle = 2: must be 0 or 1"),
    ],
)
def test_errors_are_one_line_with_path_value_and_range(path: str, text: Value, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(path, row_of(path), text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("path", "number", "value"),
    [
        ("gpu.sms", np.int64(40), 40),
        ("gpu.sms", np.uint8(40), 40),
        ("gpu.sms", np.float32(40), 40),
        ("gpu.sms", Fraction(80, 2), 40),
        # a whole number of ways of the L2
        ("gpu.l2.size", np.int32(3 << 20), 3 << 20),
        ("gpu.clock", np.float32(1200.5), 1200.5),
        ("gpu.clock", np.float64(1200.25), 1200.25),
        ("gpu.clock", np.int16(1200), 1200.0),
        ("sim.oracle", np.True_, 1),
        ("sim.oracle", np.int8(0), 0),
        ("scheme.priority", np.str_("critical"), "critical"),
    ],
)
def test_numbers_of_numpy_are_numbers(path: str, number: Value, value: Value) -> None:
    """They become Python's own in settings, in overrides and in what a scheme pins."""
    for got in (
        parse(path, row_of(path), number),
        Config.resolve(TITAN_V, {path: number})[path],
        Config.resolve(TITAN_V).replaced({path: number})[path],
    ):
        assert got == value
        assert type(got) is type(value)


@pytest.mark.parametrize(
    ("path", "number", "message"),
    [
        ("gpu.sms", np.float32(1.5), "gpu.sms = 1.5: must be an integer in [1, 1024]"),
        ("gpu.sms", np.float32("nan"), "gpu.sms = nan: must be an integer in [1, 1024]"),
        ("gpu.sms", np.array([40]), "gpu.sms = array([40]) (ndarray): must be an integer in [1, 1024]"),
        ("gpu.sms", [40], "gpu.sms = [40] (list): must be an integer in [1, 1024]"),
        ("sim.oracle", np.int64(2), "sim.oracle = 2: must be 0 or 1"),
        ("scheme.priority", 3, "scheme.priority = 3: must be one of"),
        # Python refuses to convert the one to a float, and to print the other
        ("gpu.clock", 10**400, f"gpu.clock = 1{'0' * 59}...: must be in [100, 10000]"),
        ("gpu.sms", -(10**5000), "gpu.sms = <integer of 16610 bits>: must be an integer in [1, 1024]"),
        ("sim.oracle", 10**5000, "sim.oracle = <integer of 16610 bits>: must be 0 or 1"),
    ],
    ids=[f"number{i}" for i in range(9)],
)
def test_numbers_that_are_refused_are_named(path: str, number: Value, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.resolve(TITAN_V, {path: number})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@given(st.data())
def test_show_and_parse_round_trip(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(ROWS)))
    row = ROWS[path]
    value: Value
    if row.unit == "choice":
        value = data.draw(st.sampled_from(row.choices))
    elif row.unit in ("count", "B", "cycle", "bool"):
        value = data.draw(st.integers(int(row.lo), int(row.hi)))
    else:
        value = data.draw(st.floats(row.lo, row.hi))
    assert parse(path, row, show(row, value)) == value
    assert parse(path, row, value) == value


@given(st.text(max_size=20))
def test_any_text_gives_a_value_or_one_clean_line(text: str) -> None:
    for path in ("gpu.sms", "gpu.clock", "gpu.l2.size", "scheme.priority", "sim.oracle"):
        message = ""
        try:
            parse(path, row_of(path), text)
        except ConfigError as error:
            message = str(error)
        assert not message or message.startswith(f"{path} = ")
        assert len(message.splitlines()) <= 1


# the first call loads what suggests names: slow where other processes run
@settings(deadline=None)
@given(st.sampled_from(sorted(ROWS)), st.data())
def test_one_wrong_letter_still_suggests_a_valid_path(path: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(path) - 1))
    wrong = path[:at] + "~" + path[at + 1 :]
    with pytest.raises(ConfigError) as caught:
        row_of(wrong)
    hint = str(caught.value).partition("did you mean ")[2].rstrip("?")
    assert hint in ROWS


def test_unknown_path_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"unknown parameter gpu\.l2\.sise: did you mean gpu\.l2\.size"):
        Config.resolve(TITAN_V, {"gpu.l2.sise": 1})
    with pytest.raises(ConfigError, match=r"did you mean gpu\.l2\.size"):
        Config.resolve(TITAN_V)["l2.size"]


def test_overrides_win_over_the_device_and_the_device_over_defaults() -> None:
    v100 = Config.resolve(device("v100"))
    assert v100["gpu.clock"] == 1530
    changed = Config.resolve(device("v100"), {"gpu.clock": "1GHz", "scheme.window": "8"})
    assert (changed["gpu.clock"], changed["scheme.window"], changed["gpu.l2.slices"]) == (1000, 8, 64)
    assert v100.replaced({"gpu.clock": 1000, "scheme.window": 8}) == changed
    assert v100["gpu.clock"] == 1530


def test_encoded_has_every_path_as_an_integer() -> None:
    config = Config.resolve(TITAN_V)
    encoded = config.encoded()
    assert set(encoded) == {f"{group}.{row.name}" for group, rows in PARAMS.items() for row in rows}
    assert all(type(value) is int for value in encoded.values())
    assert encoded["gpu.clock"] == round(1000 * 1024 / 1455)
    assert encoded["gpu.cp.stream_gap"] == 940 * 1024
    assert encoded["gpu.sm.tensor_interval"] == 128
    assert encoded["gpu.dram.bandwidth"] == 652800
    assert encoded["scheme.priority"] == encode(ROWS["scheme.priority"], "oldest") == 0


def test_as_dict_is_json_and_config_pickles() -> None:
    config = Config.resolve(TITAN_V)
    flat = config.as_dict()
    assert json.loads(json.dumps(flat)) == flat
    assert flat["device"] == "titan_v"
    assert flat["gpu.sms"] == 80
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"gpu.sm.warps": 62}, "gpu.sm.warps = 62: must be a multiple of 4"),
        ({"gpu.l2.size": "1MiB"}, "gpu.l2.size = 1MiB: must be a multiple of 98304 B"),
        ({"gpu.dram.banks": 12}, "gpu.dram.banks = 12: must be a power of two"),
        ({"gpu.dram.row_bytes": 1000}, "gpu.dram.row_bytes = 1000B: must be a power of two"),
        ({"gpu.noc.latency": 90}, "gpu.l2.latency = 193 cycle: must be at least 210 cycle"),
        ({"gpu.dram.latency": 193}, "gpu.dram.latency = 193 cycle: must be at least"),
        ({"gpu.l1.latency": 200}, "gpu.l2.latency = 193 cycle: must be above gpu.l1.latency"),
        ({"gpu.l1.size": "64KiB"}, "gpu.sm.smem = 96KiB: must be at most 57344 B"),
        (
            {"gpu.l1.size": "32KiB", "gpu.l1.reserved": "64KiB"},
            "gpu.l1.reserved = 64KiB: must be at most 24576 B",
        ),
        ({"gpu.dram.refresh_time": 4000}, "gpu.dram.refresh_period = 3900ns: must be above"),
        ({"gpu.dram.bank_refresh_time": 4000}, "gpu.dram.refresh_period = 3900ns: must be above"),
        (
            {"gpu.dram.bank_refresh_time": 100, "gpu.dram.refresh_time": 300},
            "gpu.dram.refresh_time = 300ns: must be below 243.75 ns",
        ),
        ({"gpu.sm.register_unit": 4096, "gpu.sm.registers": 1024}, "gpu.sm.register_unit = 4096: must be at"),
    ],
)
def test_values_must_fit_together(overrides: dict[str, Value], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.resolve(TITAN_V, overrides)
    assert message in str(caught.value)


def test_carveouts_follow_the_largest_shared_memory() -> None:
    assert Config.resolve(TITAN_V, {"gpu.sm.smem": "48KiB"}).carveouts == (0, 8192, 16384, 32768, 49152)
    assert Config.resolve(TITAN_V, {"gpu.sm.smem": 0}).carveouts == (0,)
