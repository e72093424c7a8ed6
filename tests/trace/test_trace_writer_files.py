"""Kernels written as traces: files, what is refused, and nothing is left when writing stops."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from pysim.__main__ import main
from pysim.errors import ConfigError, OutputError, WorkloadError
from pysim.program.job import Job, Kernel
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import Code, Pattern
from pysim.trace import writer
from pysim.trace.writer import write_trace
from pysim.workloads.registry import make
from tests.core.workloads_small import JOBS
from tests.support.calls import hear_ctrl_c

from .reader import listed, read_kernel, text_of
from .test_trace_writer import ROOT, kernel_of, trace_of


def test_kernels_that_cannot_be_written(tmp_path):
    def refused(message, code, error=WorkloadError, **options):
        with pytest.raises(error, match=message):
            trace_of(tmp_path, kernel_of(code, args=1), **options)
        assert list(tmp_path.iterdir()) == []

    code = Code()
    code.compute(tensor=1)
    refused("no EXIT", code)
    code.exit()
    refused("SM 61 has no tensor", code, binary=61)
    refused("binary version 71: must be one of 60", code, ConfigError, binary=71)
    refused("no kernel 2: job hand has 1 to 1", code, ConfigError, kernels=[1, 2])
    refused("no kernels", code, ConfigError, kernels=[])
    recorded = RecordedProgram("old", 1, 32, 0, 0, lower=lambda values: None)
    with pytest.raises(WorkloadError, match="comes from a trace"):
        write_trace(Job("old", [Kernel("old", recorded, (1, 1, 1), (), ())]), tmp_path / "old")
    for pattern, message in (
        (Pattern(0, 3, s0=4), "3 B a lane"),
        (Pattern(0, 4, s0=4, base=-(1 << 40)), "negative"),
        (Pattern(1, 4, s0=4), "without its argument"),
    ):
        code = Code()
        code.load(0, pattern)
        code.exit()
        refused(message, code)
    code = Code()
    code.compute(int=1 << 23)
    code.exit()
    refused("more than 4194304 instructions", code)


def test_large_programs_are_not_kept(tmp_path, monkeypatch):
    """Lines that do not fit the room are made again for each TB; the bytes are the same."""
    job = JOBS["gemm_beta"]()
    write_trace(job, tmp_path / "kept")
    monkeypatch.setattr(writer, "KEEP", 20_000)
    write_trace(job, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "kept")


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_the_same_bytes_each_time(tmp_path):
    for name in ("first", "second"):
        write_trace(JOBS["gru"](), tmp_path / name, kernels=[1, 5, 7], compress=name == "first")
    write_trace(JOBS["gru"](), tmp_path / "third", kernels=[7, 5, 1], compress=True)
    assert contents(tmp_path / "first") == contents(tmp_path / "third")
    for number in (1, 5, 7):
        packed = tmp_path / "first" / f"kernel-{number}.traceg.xz"
        assert text_of(packed) == text_of(tmp_path / "second" / f"kernel-{number}.traceg")
    assert (tmp_path / "first" / "kernelslist.g").read_text().split() == [
        f"kernel-{number}.traceg.xz" for number in (1, 5, 7)
    ]


def test_a_folder_with_content_is_refused_or_its_trace_replaced(tmp_path):
    job = make("copy:nbytes=8192")
    folder = tmp_path / "a" / "b"
    write_trace(JOBS["empty"](), folder)
    (folder / "notes").write_text("mine")
    before = contents(folder)
    with pytest.raises(OutputError, match="is not empty: --force"):
        write_trace(job, folder)
    assert contents(folder) == before
    (folder / "kernel-9.traceg.part").write_text("left by a crash")
    done = write_trace(job, folder, force=True, compress=True)
    assert sorted(contents(folder)) == ["kernel-1.traceg.xz", "kernelslist.g", "notes"]
    assert {p.name for p in done.files} == {"kernel-1.traceg.xz", "kernelslist.g"}
    with pytest.raises(OutputError, match="is not a folder"):
        write_trace(job, folder / "notes")
    with pytest.raises(OutputError, match=r"cannot write .*Not a directory"):
        write_trace(job, folder / "notes" / "x")


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_nothing_is_left_when_writing_stops(tmp_path, monkeypatch, stop):
    real = writer._kernel_text

    def stopped(kernel, number, made):
        yield from real(kernel, number, made)
        if number == 2:
            raise stop

    monkeypatch.setattr(writer, "_kernel_text", stopped)
    expected = WorkloadError if isinstance(stop, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_trace(JOBS["empty"](), tmp_path / "new" / "er")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    folder = tmp_path / "old"
    write_trace(make("copy:nbytes=8192"), folder)
    before = contents(folder)
    monkeypatch.setattr(writer, "_kernel_text", stopped)
    with pytest.raises(expected):
        write_trace(JOBS["empty"](), folder, force=True)
    assert contents(folder) == before


def pysim(*args, **options):
    command = [sys.executable, "-m", "pysim", *map(str, args)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False, **options
    )


def test_the_command(tmp_path):
    folder = tmp_path / "out"
    done = pysim(
        "write-trace", "random_dag:kernels=9", folder, "--kernels", "2-4,9", "--binary", "80", "--compress"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 kernels" in done.stdout
    assert "events between streams" in done.stdout
    assert [p.name for p in listed(folder)] == [f"kernel-{n}.traceg.xz" for n in (2, 3, 4, 9)]
    assert read_kernel(listed(folder)[0])[0]["binary version"] == "80"


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (("copy",), 2, "the following arguments are required: FOLDER"),
        (("copy", "a", "b"), 2, "unexpected argument 'b'"),
        (("copi", "new"), 2, "no workload 'copi': did you mean copy?"),
        (("copy", "new", "--kernels", "0"), 2, "positive integer"),
        (("copy", "new", "--kernels", "4-2"), 2, "4-2 is an empty range"),
        (("copy", "new", "--kernels", "1-99999999999"), 2, "no kernel 99999999999: copy has 1 to 1"),
        (("copy", "new", "--markdown"), 2, "no --markdown here: it goes with parameters, tables"),
        (("copy", "new", "--binary", "50"), 2, "binary version 50: must be one of"),
        (("copy", "full"), 1, "full is not empty: --force"),
    ],
)
def test_the_command_refuses_in_one_line(tmp_path, monkeypatch, capsys, args, status, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pysim", "write-trace", *args])
    with pytest.raises(SystemExit) as left:
        main()
    out, error = capsys.readouterr()
    assert (left.value.code, out) == (status, "")
    assert message in error
    assert error.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["full"]


def test_a_full_disk_is_one_line(tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = pysim("write-trace", "copy:nbytes=1048576", tmp_path / "out", preexec_fn=limit)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: cannot write ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing(tmp_path):
    command = [sys.executable, "-m", "pysim", "write-trace", "ffma:iterations=65535", str(tmp_path / "out")]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c
    ) as child:
        until = time.monotonic() + 30
        while not list(tmp_path.glob("out/*")) and time.monotonic() < until:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=30)
    assert (child.returncode, error) == (130, "interrupted\n")
    assert list(tmp_path.iterdir()) == []
