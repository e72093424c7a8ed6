"""The scripts of configs/ and the command pysim, run as a user runs them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import pytest

from pysim import __version__, stats
from pysim.cli.commands import COMMANDS
from tests.support.calls import CONFIGS, Done, call, caller, pysim, refused
from tests.support.thin import thin

GRU = CONFIGS / "titanv_gru.py"
run = caller("titanv_gru")
SMALL = ("--hidden", "256", "--batch", "8", "--timesteps", "2", "--layers", "1")
SCHEMES = ("host", "stream", "graph", "tb_static", "tb_ideal")


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """One small run that several tests look at."""
    folder = tmp_path_factory.mktemp("gru")
    return folder, run(folder, *SMALL, "--threads", 1, "--explain", "5:3", "--picture", "yes")


def test_prints_one_row_a_scheme(small: tuple[Path, Done]) -> None:
    folder, done = small
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    head = "\n".join(lines[:6])
    for word in ("80 SMs at 1455 MHz", "window 64", "host.submit = prefilled", "stream 0.94", "6 kernels"):
        assert word in head
    rows = [line.split() for line in lines if line.startswith(SCHEMES) and "x" in line.split()[5:6][0]]
    assert [row[0] for row in rows] == list(SCHEMES)
    assert {len(row) for row in rows} == {len(rows[0])}
    stacks = [line.split() for line in lines[lines.index("", 8) :] if line.startswith(SCHEMES)]
    stacks = [row for row in stacks if len(row) == 9]
    assert [row[0] for row in stacks] == list(SCHEMES)
    for row in stacks:
        assert sum(map(float, row[1:])) == pytest.approx(100, abs=0.5)
    found = files(folder)
    assert len(found) == 3
    assert all(name.startswith("results/titanv_gru-") for name in found)
    for name in found:
        assert name in done.stdout
    assert "tb_ideal: done in" in done.stderr


def test_explains_what_a_tb_waited_for(small: tuple[Path, Done]) -> None:
    text = small[1].stdout
    assert text.count("kernel 5 (gru_cell), TB 3 of 8") == len(SCHEMES)
    for word in ("launch", "dependence", "slot", "dispatch"):
        assert text.count(f"\n  {word} ") == len(SCHEMES)
    assert "on TB" in text
    assert "its data needs kernel 4 (gemm_hh), all TBs" in text


def test_results_open_in_pandas(small: tuple[Path, Done]) -> None:
    pandas = pytest.importorskip("pandas")
    path = next(small[0].rglob("*.h5"))
    results = stats.load(path)
    results.verify()
    runs = results["runs"]
    assert list(runs["scheme"]) == list(SCHEMES)
    assert (runs["status"] == "ok").all()
    assert (runs["time_us"] >= runs["bound_us"]).all()
    assert runs["alu_utilization"].between(0, 1).all()
    assert runs["sm_idle"].between(0, 1).all()
    assert len(results["tbs"]) == runs["tbs"].sum()
    assert json.loads(path.with_suffix(".json").read_text()) == results.configuration
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    pytest.importorskip("tables")
    assert list(pandas.read_hdf(path, "runs")["time_us"]) == list(runs["time_us"])


def test_json_is_all_that_stdout_holds(tmp_path: Path) -> None:
    done = run(tmp_path, *SMALL, "--schemes", "graph", "--json", "--quiet", "--tables", "kernels")
    assert (done.returncode, done.stderr) == (0, "")
    made = json.loads(done.stdout)
    assert [row["scheme"] for row in made["runs"]] == ["graph"]
    assert made["runs"][0]["speedup"] > 1
    assert made["runs"][0]["energy_j"] is None
    assert set(made) == {"runs", "host", "names", "kernels"}


def test_stream_runs_where_it_is_not_listed(tmp_path: Path) -> None:
    done = run(tmp_path, *SMALL, "--schemes", "graph", "--tables", "none", "--out", "a.h5")
    assert done.returncode == 0
    assert "stream was run too, for speedup" in done.stderr
    assert not [line for line in done.stdout.splitlines() if line.startswith("stream")]


def test_threads_do_not_change_results(tmp_path: Path) -> None:
    hashes = set()
    for threads in (1, 2):
        path = tmp_path / f"{threads}.h5"
        assert run(tmp_path, *SMALL, "--threads", threads, "--out", path, "--quiet").returncode == 0
        with h5py.File(path) as file:
            hashes.add(file.attrs["hash"])
    assert len(hashes) == 1


def test_existing_results_stay_unless_forced(tmp_path: Path) -> None:
    common = ("--schemes", "stream", "--tables", "none", "--out", "a.h5", "--quiet")
    assert run(tmp_path, *SMALL, *common).returncode == 0
    # the same again is no conflict
    assert run(tmp_path, *SMALL, *common).returncode == 0
    before = (tmp_path / "a.h5").read_bytes()
    done = run(tmp_path, *SMALL, *common, "--set", "gpu.sms=40")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: a.h5 exists with different results")
    assert "--force" in done.stderr
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "a.h5").read_bytes() == before
    assert run(tmp_path, *SMALL, *common, "--set", "gpu.sms=40", "--force").returncode == 0
    assert (tmp_path / "a.h5").read_bytes() != before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--hiden", "3"), "unknown option --hiden: did you mean --hidden?"),
        (("--hidden", "0"), "--hidden: must be a positive integer, not '0'"),
        (("--input", "perstep"), "--input: unknown value 'perstep': did you mean per-step?"),
        (("--dtype", "fp61"), "--dtype: unknown value 'fp61': did you mean fp16?"),
        (("--gpu", "titan_x"), "error: --gpu: unknown GPU titan_x: did you mean titan_v?"),
        (("--schemes", "streem"), "error: --schemes: no scheme 'streem': did you mean 'stream'?"),
        (("--schemes", "tb_static:newst"), "did you mean 'newest'?"),
        (("--schemes", "tb_static+newest"), "'tb_static+newest': did you mean 'tb_static:newest'?"),
        (("--schemes", "stream,tb_static+newest+tb"), "did you mean 'tb_static:newest+tb'?"),
        (("--tables", "foo"), "--tables: no table 'foo': there are all, none, runs, "),
        (("--set", "l2=3MiB"), "unknown parameter l2: did you mean gpu.l2.size?"),
        (("--set", "l2.size=3MiB"), "unknown parameter l2.size: did you mean gpu.l2.size?"),
        (("--set", "l2=212cycles"), "unknown parameter l2: did you mean gpu.l2.latency?"),
        (("--set", "sms=40"), "unknown parameter sms: did you mean gpu.sms?"),
        (("--tables", "tb"), "error: --tables: no table 'tb': did you mean tbs?"),
        (("--set", "gpu.l2.sise=1MiB"), "unknown parameter gpu.l2.sise: did you mean gpu.l2.size?"),
        (("--set", "gpu.l2.size=3"), "gpu.l2.size = 3"),
        (("--explain", "999:0"), "--explain: no kernel 999: there are 0 to 179"),
        ((*SMALL, "--explain", "5:8"), "--explain: kernel 5 (gru_cell) has no TB 8: there are 0 to 7"),
        ((*SMALL, "--explain", "gru_cell:0"), "kernel gru_cell is launched 2 times: give a number: 2, 5"),
        (("--explain", "x:0"), "--explain: no kernel x: there are gemm_hh, gemm_ih, gru_cell"),
        (("--explain", "gru_sell:0"), "--explain: no kernel gru_sell: did you mean gru_cell?"),
        (
            (*SMALL, "--set", "gpu.sm.registers=1024"),
            "gemm 8 x 768 x 256 on titan_v: no fp32 tile can run: ",
        ),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    refused(run(tmp_path, *args), message)
    assert not files(tmp_path)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--out", "file/a.h5"), "cannot write file/a.h5: Not a directory"),
        (("--out", "/proc/a.h5"), "cannot write /proc/a.h5: "),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    (tmp_path / "file").touch()
    refused(run(tmp_path, *SMALL, *args, "--quiet"), f"error: {message}", 1)
    assert files(tmp_path) == ["file"]


@pytest.mark.parametrize(
    "words",
    [
        (CONFIGS / "compare_schemes.py", "gro"),
        (CONFIGS / "gap_table.py", "gro"),
        (CONFIGS / "figure_bank_camping.py", "--workload", "gro"),
        ("-m", "pysim", "dependences", "gro"),
        ("-m", "pysim", "write-trace", "gro", "folder"),
    ],
    ids=lambda words: Path(words[-2]).stem,
)
def test_an_unknown_workload_has_one_exit_code(tmp_path: Path, words: tuple[str | Path, ...]) -> None:
    refused(call(tmp_path, *words), "error: no workload 'gro': did you mean gru?")
    assert not list(tmp_path.iterdir())


def test_output_that_takes_nothing_is_one_line(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, str(GRU), *SMALL, "--quiet", "--schemes", "stream"],
            cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "error: cannot write the output: No space left on device\n")


def test_pysim_lists_what_there_is() -> None:
    for topic, words in {
        "devices": ("titan_v", "v100"),
        "kernels": (
            "gemm(name, a, b, c, tiling, *, a_t=False",
            "cell(",
            "stream_k(",
            "mirrored.vecadd(n=1048576)",
        ),
        "workloads": ("gru", "lstm"),
        "schemes": ("stream", "+newest"),
        "parameters": ("gpu.l2.size", "scheme.window"),
    }.items():
        done = pysim(topic)
        assert (done.returncode, done.stderr) == (0, "")
        assert all(word in done.stdout for word in words)
    assert "in pysim.workloads.kernels.gemm" in pysim("kernels", "gemm").stdout
    assert "white paper" in pysim("devices", "titan_v").stdout
    assert "hidden=1536,batch=32" in pysim("workloads", "gru").stdout
    assert pysim("parameters", "gpu.l2", "--gpu", "v100").stdout.splitlines()[0].split()[1] == "6MiB"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("device",), "no command device: did you mean devices?"),
        (("workloads", "gru:hiden=3"), "workload gru has no key 'hiden': did you mean hidden?"),
        (("schemes", "strem"), "no scheme strem: did you mean stream?"),
        (("parameters", "gpu.l3"), "no parameter gpu.l3: did you mean gpu.l2?"),
        (("devices", "x.toml"), "x.toml: cannot be read"),
        (("schemes", "--gpu", "v100"), "no --gpu here: it goes with run, sweep, plan, what-if, workloads, "),
        (("devices", "--nope"), "unknown option --nope\n"),
        (("tables", "foo"), "no table foo: there are runs, "),
    ],
)
def test_pysim_refuses_in_one_line(args: tuple[str, ...], message: str) -> None:
    refused(pysim(*args), message)


def test_pysim_prints_help_and_version() -> None:
    whole = pysim()
    assert (whole.returncode, whole.stderr) == (0, "")
    assert whole.stdout == pysim("help").stdout == pysim("--help").stdout
    assert all(f"\n  {name} " in whole.stdout for name in COMMANDS)
    one = pysim("help", "calibrate")
    assert (one.returncode, one.stderr) == (0, "")
    assert one.stdout.startswith("usage: pysim calibrate FOLDER [OPTION ...]\n")
    assert one.stdout == pysim("calibrate", "--help").stdout == pysim("calibrate", "x", "-h").stdout
    assert "--base NAME" in one.stdout
    assert "--binary" not in one.stdout
    version = pysim("--version")
    assert (version.returncode, version.stdout, version.stderr) == (0, f"pysim {__version__}\n", "")
    refused(pysim("help", "device"), "no command device: did you mean devices?")
    refused(pysim("help", "devices", "x"), "unexpected argument 'x'")


def test_progress_is_a_bar_on_a_terminal(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    done = subprocess.run(
        [sys.executable, str(GRU), *SMALL, "--schemes", "stream", "--tables", "none"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=follower, timeout=60, check=False,
    )  # fmt: skip
    os.close(follower)
    shown = os.read(leader, 65536).decode()
    os.close(leader)
    assert done.returncode == 0
    assert "\rstream" in shown
    assert "100% of 112 TBs" in shown


SCRIPTS = [str(path) for path in sorted(CONFIGS.glob("[!_]*.py"))]
# what is looked for when Ctrl-C comes: each script runs plain with one, by turns
MODULES = ("pysim.cli.options", "pysim.cli.script")
COMMAND = ("pysim", "pysim.cli.command")


@pytest.mark.parametrize(
    ("script", "late"),
    thin(
        [*itertools.product(SCRIPTS, MODULES), COMMAND],
        {COMMAND, *zip(SCRIPTS, itertools.cycle(MODULES), strict=False)},
    ),
    ids=lambda word: Path(word).stem,
)
def test_an_interrupt_while_importing_is_one_line(tmp_path: Path, script: str, late: str) -> None:
    """As if Ctrl-C came while that module is looked for."""
    code = f"""
import runpy, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {late!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
sys.argv = [{script!r}, "--help"]
{"runpy.run_module" if script == "pysim" else "runpy.run_path"}({script!r}, run_name="__main__")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
