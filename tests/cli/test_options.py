"""Command-line options: types, suggestions, exit codes."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysim import stats
from pysim.cli.entry import run_script
from pysim.cli.options import OPTIONS, Options, counts, machine_threads, make_parser, positive_int
from pysim.cli.script import Script
from pysim.errors import ConfigError, InputError, InternalError, OutputError, WorkloadError
from pysim.machine.mechanisms import MECHANISMS
from pysim.sweep import worker
from pysim.workloads import make
from tests.sweep.common import planned


def read(*args: str) -> Options:
    return Options.from_args(make_parser("A test.").parse_args(args))


def refused(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    parser = make_parser("A test.")
    parser.add_argument("--hidden", type=positive_int, default=1)
    with pytest.raises(SystemExit) as caught:
        parser.parse_args(args)
    assert caught.value.code == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text.strip()


def test_defaults() -> None:
    options = read()
    assert (options.gpu, options.schemes, options.threads) == ("titan_v", ("stream",), machine_threads())
    assert options.overrides() == {}
    assert not (options.force)
    assert not (options.rename)
    assert not (options.quiet)
    assert not (options.json)
    assert (options.out, options.tables, options.seed, options.explain) == (None, None, None, None)
    assert options.sample_us is None


def test_all_options_are_typed() -> None:
    options = read(
        *("--gpu", "v100", "--schemes", "stream,cusync:row+pdl", "--threads", "2", "--out", "a/b.h5"),
        *("--set", "gpu.l2.size=3MiB", "--set", "gpu.l2.slices=32", "--set=scheme.window=8"),
        *(
            "--sample-us",
            "2.5",
            "--tables",
            "runs,tbs",
            "--seed",
            "7",
            "--force",
            "--quiet",
            "--json",
            "--explain",
            "a:b:12",
        ),
    )
    assert options.schemes == ("stream", "cusync:row+pdl")
    assert (options.threads, options.out, options.seed) == (2, Path("a/b.h5"), 7)
    assert options.tables == ("runs", "tbs")
    assert options.explain == ("a:b", 12)
    assert options.force
    assert options.quiet
    assert options.json
    config = options.config({"scheme.window": 4, "scheme.bypass": 1})
    assert config["gpu.l2.size"] == 3 << 20
    assert (config["scheme.window"], config["scheme.bypass"], config["sim.seed"]) == (8, 1, 7)
    assert (options.sample_us, config["sim.sample"]) == (2.5, 2.5)
    assert config.device.name == "v100"


def test_scripts_choose_defaults() -> None:
    parser = make_parser("A test.", {"gpu": "v100", "schemes": ("stream", "tb_static")})
    options = Options.from_args(parser.parse_args([]))
    assert (options.gpu, options.schemes) == ("v100", ("stream", "tb_static"))
    with pytest.raises(InternalError, match="no shared option sheme: did you mean schemes"):
        make_parser("A test.", {"sheme": "x"})


def test_options_that_a_script_leaves_out_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    parser = make_parser("A test.", {"schemes": ("pool",)}, ("schemes", "sample-us", "set"), "one is enough")
    options = Options.from_args(parser.parse_args(["--gpu", "v100"]))
    assert (options.schemes, options.sample_us, options.settings) == (("pool",), None, {})
    for args in (["--schemes", "graph"], ["--schemes=graph"]):
        with pytest.raises(SystemExit) as left:
            parser.parse_args(args)
        assert left.value.code == 2
        assert capsys.readouterr().err == "error: no --schemes here: one is enough\n"
    assert "--schemes" not in parser.format_help()
    with pytest.raises(InternalError, match="no shared option shemes: did you mean schemes"):
        make_parser("A test.", None, ("shemes",))


def test_an_interrupted_run_ends_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one scheme had reached must not be taken for the result of all: the file says which are whole."""
    monkeypatch.chdir(tmp_path)
    parser = make_parser("A test.", {"schemes": ("stream", "graph")})
    script = Script.start("test", parser, parser.parse_args(["--threads", "1"]), ())
    job = make("lud:n=64")
    assert script.simulate(job, tables="none").frame("runs")["scheme"].tolist() == ["stream", "graph"]
    calls = iter((False, True))
    with pytest.raises(KeyboardInterrupt):
        script.simulate(job, tables="none", stop=lambda: next(calls, True))
    first, second, *rest = stats.load(script.path).array("runs")["status"].tolist()
    assert (first, second, len(rest), rest[-1]) == (b"ok", b"ok", 2, b"interrupted")


@pytest.mark.parametrize(("text", "numbers"), [("1", (1,)), ("3, 12,3", (3, 12, 3))])
def test_counts(text: str, numbers: tuple[int, ...]) -> None:
    assert counts(text) == numbers
    for wrong in ("", f"{text},", f"{text},0", f"{text},x"):
        with pytest.raises(argparse.ArgumentTypeError, match="positive integer"):
            counts(wrong)


def test_repeated_settings_do_not_leak_between_calls() -> None:
    parser = make_parser("A test.")
    assert Options.from_args(parser.parse_args(["--set", "gpu.sms=4"])).settings == {"gpu.sms": 4}
    assert Options.from_args(parser.parse_args([])).settings == {}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--hiden", "3"), "error: unknown option --hiden: did you mean --hidden?"),
        (("--hiden=3",), "error: unknown option --hiden: did you mean --hidden?"),
        (("--thread", "3"), "error: unknown option --thread: did you mean --threads?"),
        (("stray",), "error: unexpected argument 'stray'"),
        (("--threads", "0"), "error: --threads: must be a positive integer, not '0'"),
        (("--threads", "two"), "error: --threads: must be a positive integer, not 'two'"),
        (("--threads", "1.5"), "error: --threads: must be a positive integer, not '1.5'"),
        (("--hidden", "0"), "error: --hidden: must be a positive integer, not '0'"),
        (("--out", "a.csv"), "error: -o/--out: must end in .h5, not 'a.csv'"),
        (("--schemes", "a,,b"), "error: --schemes: must be names separated by commas, not 'a,,b'"),
        (("--schemes", "a,a"), "error: --schemes: a is listed twice"),
        (("--tables", "all,tbs"), "error: --tables: all and none stand alone"),
        (("--set", "gpu.sms"), "error: --set: must be path=value, not 'gpu.sms'"),
        (("--set", "gpu.smz=1"), "error: --set: unknown parameter gpu.smz: did you mean gpu.sms?"),
        (("--set", "gpu.sms=0"), "error: --set: gpu.sms = 0: must be an integer in [1, 1024]"),
        (
            ("--seed", "3000000000"),
            "error: --seed: sim.seed = 3000000000: must be an integer in [0, 2147483647]",
        ),
        (("--sample-us", "-1"), "error: --sample-us: sim.sample = -1 us: must be in [0, 1000000]"),
        (
            ("--sample-us", "often"),
            "error: --sample-us: sim.sample = often: not a number; must be in [0, 1000000]",
        ),
        (("--explain", "gemm"), "error: --explain: must be KERNEL:TB, not 'gemm'"),
    ],
)
def test_errors_are_one_line(capsys: pytest.CaptureFixture[str], args: tuple[str, ...], message: str) -> None:
    assert refused(capsys, *args) == message


@given(st.sampled_from([row.name for row in OPTIONS if len(row.name) > 3]), st.data())
def test_a_swapped_letter_suggests_the_option(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(name) - 1))
    wrong = name[:at] + "~" + name[at + 1 :]
    lines: list[str] = []
    parser = make_parser("A test.")
    parser._print_message = lambda message, file=None: lines.append(message)  # type: ignore[method-assign]
    with pytest.raises(SystemExit):
        parser.parse_args([f"--{wrong}"])
    assert lines == [f"error: unknown option --{wrong}: did you mean --{name}?\n"]


def test_help_lists_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        make_parser("A test.").parse_args(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert all(f"--{row.name}" in text for row in OPTIONS)


def status(main: Callable[[], int | None]) -> object:
    with pytest.raises(SystemExit) as caught:
        run_script(main)
    return caught.value.code


def test_user_errors_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    class StoreError(Exception):
        user_error = True

    codes = {ConfigError: 2, InputError: 2, WorkloadError: 1, OutputError: 1, StoreError: 1}
    for kind, code in codes.items():
        error = kind("no such thing")

        def fail(error: Exception = error) -> None:
            raise error

        assert status(fail) == code
        assert capsys.readouterr().err == "error: no such thing\n"


def test_bugs_keep_their_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        raise InternalError("impossible")

    assert status(broken) == 1
    assert "Traceback" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        run_script(lambda: 1 // 0)


def test_status_of_main_is_kept() -> None:
    assert status(lambda: None) == 0
    assert status(lambda: 3) == 3


def test_interrupt_and_terminate(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    cleaned: list[str] = []

    def wait(number: int) -> None:
        try:
            os.kill(os.getpid(), number)
            signal.sigtimedwait([], 5)
        finally:
            cleaned.append("yes")

    # a background job of a shell ignores SIGINT
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert status(lambda: wait(signal.SIGINT)) == 130
        assert status(lambda: wait(signal.SIGTERM)) == 143
    finally:
        signal.signal(signal.SIGINT, heard)
    assert capsys.readouterr().err == "interrupted\nterminated\n"
    assert cleaned == ["yes", "yes"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_stops_even_where_a_library_makes_another_error_of_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As NumPy does while it compares structured arrays."""

    def swallow(*_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.sigtimedwait([], 5)
        except BaseException:
            raise TypeError("Cannot compare structured arrays") from None

    assert status(swallow) == 143
    assert status(lambda: 1) == 1  # the next script knows nothing of it
    folder = planned(tmp_path)
    monkeypatch.setattr(worker, "simulate_point", swallow)
    assert status(lambda: len(worker.work(folder, worker.Shard(), threads=1))) == 143
    assert not folder.failures()
    assert capsys.readouterr().err == "terminated\nterminated\n"


def test_broken_pipe_is_quiet() -> None:
    code = (
        "import sys\n"
        "from pysim.cli.entry import run_script\n"
        "def main():\n"
        "    while True: print('x' * 1000)\n"
        "run_script(main)\n"
    )
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.read(10)
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(timeout=30) == 141


# ---- mechanisms ----
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_is_off_on_every_device(name: str) -> None:
    for gpu in ("titan_v", "h200"):
        config = read("--gpu", gpu, "--without", name).config()
        for path, value in MECHANISMS[name].off:
            assert config[path] == value


def test_a_setting_goes_before_a_mechanism() -> None:
    options = read("--without", "dram_rows,launch", "--set", "gpu.cp.launch=7")
    assert options.overrides()["gpu.cp.launch"] == 7
    assert options.overrides()["gpu.dram.row_open"] == 1


def test_unknown_mechanism_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no mechanism dram_row: did you mean dram_rows?" in refused(capsys, "--without", "dram_row")


# ---- pictures ----
@pytest.mark.parametrize(
    ("words", "terminal", "draws"),
    [
        ((), True, True),
        ((), False, False),
        (("--json",), True, False),
        (("--picture", "yes", "--json"), False, True),
        (("--picture", "no"), True, False),
    ],
)
def test_a_picture_is_drawn_on_a_terminal_or_on_demand(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], terminal: bool, draws: bool
) -> None:
    options = read(*words)
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: terminal))
        assert options.draws is draws


def test_an_unknown_picture_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown value 'yess': did you mean yes?" in refused(capsys, "--picture", "yess")
