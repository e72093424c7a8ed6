"""Devices: sourced, in range, and true to the published numbers that they claim."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pysim import simulate
from pysim.errors import ConfigError
from pysim.machine.config import Config
from pysim.machine.devices import DEVICES, GENERATIONS, GPU_PATHS, card, device
from pysim.machine.devices.card import DEFAULT, INHERITED
from pysim.units import ROWS
from pysim.workloads.registry import make

ROOT = Path(__file__).resolve().parents[2]
CARDS = ("titan_v", "v100")
MODELS = ("accelsim_titan_v", "accelsim_qv100")


@pytest.mark.parametrize("name", DEVICES)
def test_every_value_says_where_it_comes_from(name: str) -> None:
    made = device(name)
    assert set(made.values) == set(made.sources) == set(GPU_PATHS)
    for path, source in made.sources.items():
        if source.startswith(DEFAULT):
            assert made.values[path] == ROWS[path].default
        elif source.startswith(INHERITED):
            other, _, text = source.removeprefix(f"{INHERITED} ").partition(": ")
            ((_, value, stated),) = GENERATIONS[other.lower()].only(path).rows
            assert (made.values[path], text) == (value, stated)
        else:
            assert len(source) > 5


def test_what_a_card_takes_from_another_generation_is_marked() -> None:
    assert device("titan_v").sources["gpu.sm.fp64_latency"].startswith("Jia et al.")
    assert device("a100").sources["gpu.sm.fp64_latency"].startswith("inherited from Volta: Jia et al.")
    # what Volta inherits itself keeps the name of who measured it
    for name in ("titan_v", "titan_x_pascal", "accelsim_qv100"):
        assert device(name).sources["gpu.sync.fence"].startswith("inherited from Hopper: measured")
    assert device("titan_v").sources["gpu.noc.gpc_link"] == "default: mechanism off"
    assert device("titan_v").sources["gpu.l2.partitions"] == "default: mechanism off"
    assert device("titan_v").sources["gpu.cp.place"] == "default: value of the parameter table"


@pytest.mark.parametrize("name", GENERATIONS)
def test_a_generation_states_each_number_once_with_its_source(name: str) -> None:
    rows = GENERATIONS[name].rows
    assert len({path for path, _, _ in rows}) == len(rows)
    assert all(len(source) > 5 and not source.startswith((INHERITED, DEFAULT)) for _, _, source in rows)


def test_a_generation_gives_only_what_it_states() -> None:
    volta = GENERATIONS["volta"]
    assert [row[0] for row in volta.only("gpu.sms", "gpu.gpcs").rows] == ["gpu.sms", "gpu.gpcs"]
    # Volta inherits it, and a third generation should name who measured it
    with pytest.raises(ConfigError, match=r"Volta does not state gpu\.sync\.fence"):
        volta.only("gpu.sms", "gpu.sync.fence")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("gpu.smz", 4, "typed wrong"), "unknown parameter gpu.smz: did you mean gpu.sms"),
        (("gpu.sms", 0, "out of range"), r"gpu.sms = 0: must be an integer in \[1, 1024\]"),
    ],
)
def test_a_card_with_a_wrong_row_is_refused(row: tuple[str, int, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        card("mine", "mine", GENERATIONS["volta"], (row,))


@pytest.mark.parametrize("name", DEVICES)
def test_card_resolves_and_l2_has_whole_sets(name: str) -> None:
    config = Config.resolve(device(name))
    assert config.integer("gpu.l2.size") % (config.integer("gpu.l2.slices") * 16 * 128) == 0
    assert list(config.carveouts) == sorted(set(config.carveouts))
    assert max(config.carveouts) == config.integer("gpu.sm.smem") < config.integer("gpu.l1.size")


def test_tensor_rate_is_that_of_the_data_sheet() -> None:
    # 125 TFLOPS at 1530 MHz; an HMMA.884 step is 256 multiply-adds of a warp.
    config = Config.resolve(device("v100"))
    steps = 80 * 4 * config.number("gpu.clock") * 1e6 / config.number("gpu.sm.tensor_interval")
    assert steps * 256 * 2 == pytest.approx(125e12, rel=0.01)
    assert 256 / config.number("gpu.sm.tensor_interval") == device("v100").mma_rate


@pytest.mark.parametrize(("name", "fma"), [("a100", 2048), ("rtx3070", 2048), ("h200", 2048), ("v100", 256)])
def test_tensor_instruction_is_the_one_that_the_interval_counts(name: str, fma: int) -> None:
    made = device(name)
    rate = Config.resolve(made).number("gpu.sm.tensor_interval") * made.mma_rate
    assert rate == pytest.approx(fma, rel=0.005)


@pytest.mark.parametrize(
    ("name", "bits", "gbit"),
    [("h100", 5120, 5.238), ("a100", 5120, 3.186), ("rtx3070", 256, 14), ("titan_x_pascal", 384, 10)],
)
def test_dram_bandwidth_is_width_times_rate(name: str, bits: int, gbit: float) -> None:
    assert Config.resolve(device(name)).number("gpu.dram.bandwidth") == pytest.approx(
        bits * gbit / 8, rel=0.001
    )


PEAKS = {"v100": 15.7, "titan_v": 14.9, "titan_x_pascal": 11.0, "a100": 19.5, "rtx3070": 20.3, "h100": 66.9}


@pytest.mark.parametrize("name", PEAKS)
def test_fp32_rate_is_that_of_the_data_sheet(name: str) -> None:
    config = Config.resolve(device(name))
    lanes = config.integer("gpu.sms") * 4 * 32 / config.number("gpu.sm.fp32_interval")
    assert lanes * 2 * config.number("gpu.clock") * 1e6 == pytest.approx(PEAKS[name] * 1e12, rel=0.01)


def test_null_kernel_chain_has_about_the_published_period() -> None:
    config = Config.resolve(device("v100"))
    ends = config.number("gpu.cp.tb_start_latency") + config.number("gpu.cp.tb_done_latency")
    assert 1081 <= config.number("gpu.cp.stream_gap") + ends + 10 <= 1161
    # Grid to grid, a graph edge is 1.5 times as fast on a V100 (A100 white paper): a little more here.
    assert (
        1.4 < (config.number("gpu.cp.stream_gap") + ends) / (config.number("gpu.cp.graph_gap") + ends) < 1.8
    )


def test_cards_differ_where_their_data_sheets_do() -> None:
    first, second = (device(name).values for name in CARDS)
    differing = {path for path in GPU_PATHS if first[path] != second[path]}
    assert differing == {"gpu.clock", "gpu.l2.size", "gpu.l2.slices", "gpu.dram.bandwidth"}


def test_the_32_gb_card_is_a_v100_at_its_default_clock() -> None:
    first, second = (device(name).values for name in ("v100", "v100_32gb"))
    assert {path for path in GPU_PATHS if first[path] != second[path]} == {"gpu.clock", "gpu.l1.in_flight"}
    assert Config.resolve(device("v100_32gb")).number("gpu.clock") == 1290


def full_crossbar(inputs: int, shares: list[int]) -> float:
    """Packets a cycle when all inputs have a head: the loads of the outputs, rho / (1 - rho) heads each."""
    low, high = 0.0, 1.0 / max(shares)
    for _ in range(60):
        unit = (low + high) / 2
        heads = sum(unit * share / (1 - unit * share) for share in shares)
        low, high = (unit, high) if heads < inputs else (low, unit)
    return low * sum(shares)


@pytest.mark.parametrize(("name", "shares"), [*zip(MODELS, ([2] * 16 + [1] * 32, [1] * 64), strict=True)])
def test_crossbar_of_the_peer_follows_from_its_ports(name: str, shares: list[int]) -> None:
    config = Config.resolve(device(name))
    ports = config.integer("gpu.sms") // config.integer("gpu.noc.port_sms")
    assert len(shares) == config.integer("gpu.l2.slices")
    assert sum(shares) == (config.integer("gpu.l2.hash_slices") or len(shares))
    packets = full_crossbar(ports, shares) / ports
    assert config.number("gpu.noc.read_sector") == pytest.approx(1 / packets, rel=0.01)
    assert config.number("gpu.noc.write_bytes") == pytest.approx(32 * packets, abs=0.5)
    # a slice's head is served at 1 - rho, rho being the load of a port of the replies
    busiest = max(shares) / sum(shares)
    rate = 1 / (1 + 1 / (busiest * ports))
    assert config.number("gpu.l2.slice_bytes") == pytest.approx(32 * rate, abs=0.5)


@pytest.mark.parametrize(
    ("wrong", "hint"), [("titanv", "titan_v"), ("TITAN_V", "titan_v"), ("v10", "v100"), ("V100", "v100")]
)
def test_unknown_device_names_the_nearest(wrong: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown GPU {wrong}: did you mean {hint}"):
        device(wrong)
    with pytest.raises(ConfigError, match=f"unknown GPU {wrong}: did you mean {hint}") as caught:
        device(f"{wrong}\n")
    assert "\n" not in str(caught.value)


def write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_own_device_builds_on_a_base(tmp_path: Path) -> None:
    text = """
    base = "v100"
    compute_capability = "7.5"
    carveouts = ["64KiB", "0B"]
    "gpu.clock" = "1.2GHz"
    [gpu]
    sms = { value = 40, source = "half a chip" }
    l2.size = "3MiB"
    l2.slices = 32
    """
    mine = device(write(tmp_path, text))
    assert mine.name == "mine"
    assert mine.compute_capability == (7, 5)
    assert mine.carveouts == (0, 65536)
    assert mine.values["gpu.sms"] == 40
    assert mine.sources["gpu.sms"] == "half a chip"
    assert mine.sources["gpu.l2.size"] == "mine.toml"
    assert mine.values["gpu.l2.size"] == 3 << 20
    assert mine.values["gpu.clock"] == 1200
    assert mine.values["gpu.dram.bandwidth"] == DEVICES["v100"].values["gpu.dram.bandwidth"]
    assert DEVICES["v100"].values["gpu.sms"] == 80
    # the base's own numbers are another card's here; what it inherits keeps the name of who stated it
    assert mine.sources["gpu.dram.bandwidth"].startswith("inherited from v100: NVIDIA V100 SXM2 data sheet")
    assert mine.sources["gpu.sync.fence"].startswith("inherited from Hopper: ")
    assert Config.resolve(mine).carveouts == (0, 65536, 98304)


def test_own_device_builds_on_a_generation_or_on_nothing(tmp_path: Path) -> None:
    mine = device(write(tmp_path, 'generation = "ampere"\ngpu.sms = 20'))
    assert (mine.compute_capability, mine.mma_rate, mine.values["gpu.sms"]) == ((8, 0), 256, 20)
    assert mine.sources["gpu.sm.smem_latency"].startswith("inherited from Ampere: Abdelkhalik et al.")
    assert mine.sources["gpu.sm.fp64_latency"].startswith("inherited from Volta: ")
    mine = device(write(tmp_path, "gpu.sms = 20"))
    assert {text.partition(":")[0] for text in mine.sources.values()} == {"default", "mine.toml"}


def test_default_gaps_say_what_they_were_measured_by(tmp_path: Path) -> None:
    """The defaults are an H200's readings less what other defaults take."""
    mine = device(write(tmp_path, "gpu.sms = 20"))
    values = {
        path: float(value)
        for path, value in mine.values.items()
        if path.startswith("gpu.cp.") and not isinstance(value, str)
    }
    assert mine.sources["gpu.cp.stream_gap"].startswith("default: assumed")
    readings = json.loads((ROOT / "workloads" / "measured" / "h200_micro.json").read_text(encoding="utf-8"))
    pair, end, stream, graph = (
        readings[f"{name}.grid1_block32"]["median"]
        for name in (
            "pdl_pair_ns_primary_first_start_to_secondary_first_start",
            "pdl_pair_ns_primary_last_end_to_wait_return",
            "pdl_kernel_period_us.empty",
            "graph_pdl_kernel_period_us.empty",
        )
    )
    assert f": {pair}, less" in mine.sources["gpu.cp.early_gap"]
    assert f": {end}, less" in mine.sources["gpu.cp.depend"]
    assert f"{graph:.3f} for {stream:.3f}" in mine.sources["gpu.cp.early_graph_gap"]
    ways = values["gpu.cp.tb_start_latency"] + values["gpu.cp.tb_done_latency"]
    assert values["gpu.cp.early_gap"] == pytest.approx(pair - ways, abs=2)
    gain = values["gpu.cp.early_gap"] - values["gpu.cp.early_graph_gap"]
    assert gain == pytest.approx(1e3 * (stream - graph), abs=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('generation = "voltage"', "unknown generation voltage: did you mean volta"),
        ('generation = "volta"\nbase = "v100"', "base and generation: a device starts from one of them"),
        ('base = "titanv"', "unknown base titanv: did you mean titan_v"),
        ("[gpu]\nsmz = 4", "unknown parameter gpu.smz: did you mean gpu.sms"),
        ("[gpu]\nsms = 0", r"gpu.sms = 0: must be an integer in \[1, 1024\]"),
        ("[gpu]\nsms = true", "gpu.sms = True"),
        ("[gpu]\nsms = [1]", "gpu.sms"),
        ("gpu = 3", "unknown parameter gpu"),
        ("gpus = 3", "unknown key gpus: did you mean gpu"),
        ("[host]\nlaunch = 3", "unknown key host"),
        ('compute_capability = "seven"', "must look like 7.0"),
        ("carveouts = 4", "carveouts = 4"),
        ("gpu = ", "not valid TOML"),
        ('name = ""', "name = '': must be a text"),
        ("name = 3", "name = 3: must be a text"),
        ("title = []", r"title = \[\]: must be a text"),
        (f"name = '{'a' * 65}'", "must be at most 64 bytes"),
        ('name = "a\\nb"', "name = a b: must be one line"),
        ('gpu.sms = {value = 4, source = "x", foo = 1}', "gpu.sms: unknown key foo: it takes value"),
        ('gpu.sms = {source = "x"}', "gpu.sms: no value: it takes value and source"),
        ('gpu.sms = {value = 4, source = "a\\nb"}', "gpu.sms: source = a b: must be one line"),
        ("gpu.sms = {value = 4, source = 5}", "gpu.sms: source = 5: must be a text"),
        ("gpu.dram = {value = 4}", "unknown parameter gpu.dram.value"),
        ("base = [1]", r"unknown base \[1\]"),
        (f'compute_capability = "{"7" * 5000}"', r"compute_capability = 7{80}\.\.\.: must look like 7.0"),
        ("compute_capability = 0.5", r"must be \(major, minor\), major from 1"),
        (f"{'a' * 5000} = 1", r"unknown key a{80}\.\.\."),
        (f"gpu.{'a' * 5000} = 1", r"unknown parameter gpu.a{76}\.\.\."),
    ],
)
def test_own_device_errors_name_the_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        device(write(tmp_path, text))
    assert "mine.toml: " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_missing_file_is_a_clean_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        device(str(tmp_path / "absent.toml"))


def test_a_file_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    """A pipe is not waited for, an endless device is not read, and nesting does not end the process."""
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    for name in ("pipe", "folder", "zero"):
        with pytest.raises(ConfigError, match=f"{name}.toml: cannot be read: no regular file"):
            device(str(tmp_path / f"{name}.toml"))
    for text, message in (
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        (".".join(["gpu"] * 5000) + " = 1", "a key of more than 64 parts"),
        ("# " + "a" * (1 << 20), "a device file has at most 1 MiB"),
        ("gpu.sms = " + "1" * 5000, "not valid TOML: "),
        ("gpu.sms = 1" + "0" * 400, "gpu.sms = 10"),
    ):
        with pytest.raises(ConfigError, match=message) as caught:
            device(write(tmp_path, text))
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500
    for bad in ("a\0.toml", "a" * 5000 + ".toml"):
        with pytest.raises(ConfigError, match="cannot be read: ") as caught:
            device(bad)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", DEVICES)
def test_every_card_runs_a_job(name: str) -> None:
    result = simulate(name, make("gemm:m=256,n=256,k=64"), "stream", threads=1, tables="none")
    assert result.time_us("stream") > 2
