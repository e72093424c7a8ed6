"""The recipes of CONTRIBUTING.md, followed from outside: one row, or one device, and all else follows.

Rows are added to a copy of the tree, as a contributor would add them, and the copy is asked what it knows.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pysim import simulate, stats
from pysim.machine.devices import GENERATIONS, Generation, card
from pysim.workloads.registry import make
from tests.support.calls import PATIENCE, ROOT

Python = Callable[..., subprocess.CompletedProcess[str]]


def add_row(file: Path, before: str, row: str) -> None:
    """Put a row of a table in front of one that is there."""
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{file.name} has not one {before!r}"
    file.write_text(text.replace(before, f"{row}\n{before}"), encoding="utf-8")


def copy_of_the_tree(folder: Path) -> Path:
    """Copy what rows are added to; what stays as it is is linked."""
    ignored = shutil.ignore_patterns("__pycache__", "_core*")
    for name in ("pysim", "core_c"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "build.py", folder)
    for name in ("stats", "workloads", "configs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def python_in(folder: Path) -> Python:
    """Return what runs Python in a folder with the packages that lie there."""

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, *args], cwd=folder, env=environment, capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip

    return run


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy with a parameter and a counter more, and the headers rendered from its tables."""
    pytest.importorskip("jinja2")
    folder = copy_of_the_tree(tmp_path_factory.mktemp("tree"))
    add_row(
        folder / "pysim" / "params.py",
        '        Param("slices", 48,',
        '        Param("toy", 0, "cycle", 0, 9, "Cycles of a toy."),',
    )
    add_row(
        folder / "pysim" / "counters.py",
        '    Counter("l1_lines",',
        '    Counter("toys", "count", "Toys that warps have used."),',
    )
    done = python_in(folder)("build.py", "--headers")
    assert done.returncode == 0, done.stderr
    return folder


def test_a_parameter_is_one_row(tree: Path) -> None:
    python = python_in(tree)
    header = (tree / "core_c" / "gen" / "gs_params.h").read_text(encoding="utf-8")
    assert "/* Cycles of a toy. [cycle] */\n    int64_t toy;" in header
    # the reference page, as docs/builders/figures.py asks for it
    reference = python("-m", "pysim", "parameters", "gpu.l2", "--gpu", "titan_v", "--markdown").stdout
    assert "| `gpu.l2.toy` | 0 cycle | [0, 9] | Cycles of a toy. |" in reference.splitlines()
    for name in ("titan_v", "h200"):
        listed = python("-m", "pysim", "devices", name).stdout.splitlines()
        assert ["gpu.l2.toy", "0", "cycle", "default:", "mechanism", "off"] in map(str.split, listed)
    # the option and its range: refused before the core is asked for
    tried = python("configs/titanv_gru.py", "--set", "gpu.l2.toy=10")
    assert (tried.returncode, tried.stderr) == (2, "error: --set: gpu.l2.toy = 10 cycle: must be in [0, 9]\n")
    tried = python("configs/titanv_gru.py", "--set", "gpu.l2.toi=1")
    assert tried.stderr == "error: --set: unknown parameter gpu.l2.toi: did you mean gpu.l2.toy?\n"


def test_every_device_takes_a_parameter_that_it_does_not_state(tree: Path) -> None:
    code = """
from pysim.machine.config import Config
from pysim.machine.devices import DEVICES
for made in DEVICES.values():
    config = Config.resolve(made, {"gpu.l2.toy": "3 cycles"})
    print(made.name, made.values["gpu.l2.toy"], config["gpu.l2.toy"], config.encoded()["gpu.l2.toy"])
"""
    done = python_in(tree)("-c", code)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) > 5
    assert all(line[1:] == ["0", "3", "3"] for line in lines)


def test_a_counter_is_one_row(tree: Path, tmp_path: Path) -> None:
    cffi = pytest.importorskip("cffi")
    python = python_in(tree)
    header = (tree / "core_c" / "gen" / "gs_counters.h").read_text(encoding="utf-8")
    assert "/* Toys that warps have used. [count] */\n    uint64_t toys;" in header
    ffi = cffi.FFI()
    ffi.cdef(runpy.run_path(str(tree / "build.py"))["cdef"]())
    fields = [name.removesuffix("_") for name, _ in ffi.typeof("gs_work").fields]
    assert fields.index("toys") == fields.index("l1_lines") - 1
    reference = python("-m", "pysim", "tables", "sm").stdout.splitlines()
    assert ["toys", "i8", "count", "Toys", "that", "warps", "have", "used."] in map(str.split, reference)
    # records as the core makes them, with the counter at 7, to a result file
    code = f"""
import numpy as np, stats
from pysim.counters import IDLES, STALLS
from pysim.results import schema, tables
groups = {{"stalls": [r.name for r in STALLS], "idles": [r.name for r in IDLES], "work": {fields!r}}}
kinds = [(group, [(name, "u8") for name in names]) for group, names in groups.items()]
records = np.zeros(2, [("busy", "u8"), ("tbs", "u8"), *kinds])
records["work"]["toys"] = 7
made = {{"sm": tables.sm_table(0, records), "sm_series": np.zeros(1, schema.DTYPES["sm_series"])}}
stats.write({str(tmp_path / "toy.h5")!r}, made, {{}}, {{}}, declared=schema.TABLES)
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    results = stats.load(tmp_path / "toy.h5")
    assert list(results["sm"]["toys"]) == [7, 7]
    for name in ("sm", "sm_series"):
        (column,) = [column for column in results.columns(name) if column.name == "toys"]
        assert column == ("toys", "<i8", "count", "Toys that warps have used.")


def test_a_result_column_is_one_row(tmp_path: Path) -> None:
    folder = copy_of_the_tree(tmp_path)
    for path in (ROOT / "pysim").glob("_core.*"):  # the core knows nothing of columns
        (folder / "pysim" / path.name).symlink_to(path)
    add_row(
        folder / "pysim" / "results" / "schema.py",
        '    Column("speedup", "<f8",',
        '    Column("toy_us", "<f8", "us", "Time of a toy."),',
    )
    size = ("--hidden", "64", "--batch", "8", "--timesteps", "1", "--layers", "1", "--schemes", "stream")
    done = python_in(folder)("configs/titanv_gru.py", *size, "--out", "toy.h5", "--quiet", "--json")
    assert done.returncode == 0, done.stderr
    assert '"toy_us":' in done.stdout.replace(" ", "")
    results = stats.load(folder / "toy.h5")
    names = [column.name for column in results.columns("runs")]
    assert names.index("toy_us") == names.index("speedup") - 1
    assert results.columns("runs")[names.index("toy_us")] == ("toy_us", "<f8", "us", "Time of a toy.")
    assert list(results["runs"]["toy_us"]) == [0.0]  # nothing has filled it


def test_a_device_is_a_generation_and_what_differs() -> None:
    rows = (
        ("gpu.sms", 8, "a tenth of a Titan V"),
        ("gpu.l2.size", "1536KiB", "a third of a Titan V"),
        ("gpu.l2.slices", 16, "a third of a Titan V"),
    )
    mine = card("small", "a small Volta", GENERATIONS["volta"], rows)
    assert mine.sources["gpu.sms"] == "a tenth of a Titan V"
    assert mine.sources["gpu.sm.barrier"] == GENERATIONS["volta"].given()["gpu.sm.barrier"][1]
    result = simulate(mine, make("gemm:m=256,n=256,k=64"), "stream", threads=1)
    assert result.time_us("stream") > 2
    assert set(result.tables()["tbs"]["sm"].tolist()) <= set(range(8))
    assert result.config["gpu.l2.size"] == 1536 << 10


def test_a_generation_inherits_from_another_one_by_name() -> None:
    rows = (("gpu.sm.smem", 65536, "CUDA C Programming Guide, 7.5"), ("gpu.sm.warps", 32, "the same, 7.5"))
    turing = Generation(
        "Turing", compute_capability=(7, 5), carveouts=(32, 64), mma_rate=128,
        rows=rows, inherits=(GENERATIONS["volta"],),
    )  # fmt: skip
    mine = card("tu", "a Turing", turing, (("gpu.sms", 4, "made up"),))
    assert (mine.compute_capability, mine.carveouts) == ((7, 5), (32 << 10, 64 << 10))
    volta = GENERATIONS["volta"].given()["gpu.sm.fp32_latency"]
    assert (mine.values["gpu.sm.fp32_latency"], mine.sources["gpu.sm.fp32_latency"]) == (
        volta[0],
        f"inherited from Volta: {volta[1]}",
    )
    assert mine.sources["gpu.sm.warps"] == "the same, 7.5"
    assert mine.sources["gpu.noc.gpc_link"] == "default: mechanism off"
    assert simulate(mine, make("gemm:m=64,n=64,k=64"), "stream", threads=1).time_us("stream") > 2


def test_a_users_device_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(
        'generation = "volta"\n"gpu.l2.size" = "1536KiB"\n'
        '[gpu]\nsms = { value = 8, source = "a tenth" }\nl2.slices = 16\n',
        encoding="utf-8",
    )
    result = simulate(str(file), make("gemm:m=256,n=256,k=64"), "stream", threads=1, tables="none")
    assert result.time_us("stream") > 2
    listed = python_in(ROOT)("-m", "pysim", "devices", str(file)).stdout.splitlines()
    sources = {line.split()[0]: line for line in listed[1:] if line.startswith("gpu.")}
    assert sources["gpu.sms"].endswith(" a tenth")
    assert sources["gpu.l2.slices"].endswith(" small.toml")
    assert " inherited from Volta: Jia et al." in sources["gpu.sm.fp32_latency"]
    assert " inherited from Hopper: measured" in sources["gpu.sync.fence"]
    assert sources["gpu.noc.gpc_link"].endswith(" default: mechanism off")
