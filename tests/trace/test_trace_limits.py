"""Traces and converted files at the ends of what numbers hold: one line or a right result, no crash."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from pysim import simulate
from pysim.errors import WorkloadError
from pysim.trace.converted_file import _HEAD, ConvertedTrace
from pysim.trace.job import trace_job
from tests.core.harness import execute, tiny
from tests.support.calls import CONFIGS, caller

from .made_traces import converted, odd, product, write
from .text import EXIT, header, tb, text

run = caller("replay_trace")
ADD = "0000 00000001 1 R4 IADD3 0 0 0"


def load(address):
    return f"0000 00000001 1 R4 LDG.E 1 R2 4 0 0x{address:x} 0"


def one_kernel(folder, data):
    folder.mkdir(exist_ok=True)
    (folder / "kernelslist.g").write_text("kernel-1.traceg\n")
    (folder / "kernel-1.traceg").write_bytes(data)
    return folder


@pytest.mark.parametrize("last", [0x7FFFFFFFFFFFFFFC, 1 << 63, (1 << 64) - 8])
def test_addresses_at_both_ends_of_64_bits(tmp_path, last):
    """The last TB of the second class lies one to the left of its first: the rule's step is by -1."""
    tbs = [
        ((0, 0), [ADD, load(0), EXIT]),
        ((1, 0), [load(0), EXIT]),
        ((0, 1), [ADD, load(0), EXIT]),
        ((1, 1), [load(0), EXIT]),
        ((0, 2), [load(last), EXIT]),
        ((1, 2), [load(0), EXIT]),
    ]
    data = text(header(grid_dim="(2,3,1)"), *(tb((x, y, 0), [lines]) for (x, y), lines in tbs))
    store = converted(one_kernel(tmp_path / "trace", data))
    runs = simulate(tiny(), trace_job(store), "stream", tables="none").frame("runs")
    assert runs["warp_instructions"].tolist() == [sum(len(lines) for _, lines in tbs)]
    assert store.memory_bytes == 2 << 21
    starts = store.kernel_array(0, "touched")["start"]
    assert sorted(starts)[-1] == (1 << 21) + (last & 0x1FFFFF) // 32 * 32


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the most memory in use from /proc")
def test_a_grid_that_never_comes_takes_no_memory(tmp_path):
    data = text(header(grid_dim="(400000000,1,1)"), tb((0, 0, 0), [[EXIT]]))
    folder = one_kernel(tmp_path / "trace", data)
    code = (
        "import re, sys\nfrom pathlib import Path\nfrom pysim.trace.convert import convert\n"
        "from pysim.errors import WorkloadError\n"
        "try:\n    convert(sys.argv[1], sys.argv[2])\n"
        "except WorkloadError as error:\n    print(error)\n"
        # not ru_maxrss, which a new process has from the one that started it
        "print(re.search('VmHWM:\\\\s*([0-9]+) kB', Path('/proc/self/status').read_text())[1])"
    )
    command = [sys.executable, "-c", code, str(folder), str(tmp_path / "made.pysim")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    why, kilobytes = done.stdout.splitlines()
    assert "the file ends after 1 of 400000000 TBs" in why
    assert int(kilobytes) < 1 << 20


# ---- converted files ----


def rewritten(path, change):
    """Change the directory of a converted trace; all checksums are right."""
    raw = path.read_bytes()
    magic, version, zero, at, size, _ = _HEAD.unpack(raw[: _HEAD.size])
    directory = json.loads(raw[at : at + size])
    change(directory)
    made = json.dumps(directory).encode()
    head = _HEAD.pack(magic, version, zero, at, len(made), zlib.crc32(made))
    path.write_bytes(head + raw[_HEAD.size : at] + made)


INFINITE = float("inf")


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("memory_bytes",), INFINITE),
        (("files", 0, 1), INFINITE),
        (("kernels", 0, "grid", 0), INFINITE),
        (("kernels", 0, "smem"), -1),
        (("kernels", 0, "smem"), 1 << 40),
        (("kernels", 0, "registers"), -(1 << 63)),
        (("kernels", 0, "block", 2), 1 << 32),
        (("kernels", 0, "arrays", "rows", 0), INFINITE),
        (("arrays", "parts", 1), INFINITE),
    ],
    ids=str,
)
def test_impossible_numbers_of_a_directory(tmp_path, where, value):
    path = converted(write(tmp_path, product())).path

    def change(directory):
        for key in where[:-1]:
            directory = directory[key]
        directory[where[-1]] = value

    rewritten(path, change)
    with pytest.raises(WorkloadError, match=r"made\.pysim: .*: convert the trace again"):
        execute(trace_job(ConvertedTrace(path)), "tb_static")


@pytest.mark.parametrize("end", [1 << 46, 1 << 62, 1 << 63])
def test_what_is_touched_lies_in_memory(tmp_path, end):
    """A run of 64 TB would be looked through page by page."""
    store = converted(write(tmp_path, odd(5), odd(5)))

    class Changed:
        def __getattr__(self, name):
            return getattr(store, name)

        def kernel_array(self, number, name):
            array = store.kernel_array(number, name).copy()
            if name == "touched":
                array["end"][3] = end
            return array

    with pytest.raises(WorkloadError, match="kernel 1: touched: damaged"):
        execute(trace_job(Changed()), "tb_static")


# ---- folders ----


def test_a_folder_whose_name_is_no_utf8(tmp_path):
    trace = write(tmp_path / "trace", product())
    odd_name = tmp_path / os.fsdecode(b"na\xff\xfeme")
    try:
        trace.rename(odd_name)
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    command = [sys.executable, str(CONFIGS / "replay_trace.py"), str(odd_name), "--quiet"]
    # under the C locale Python prints anything; elsewhere it does not
    env = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert b"1 of 1 kernels" in done.stdout


def test_the_same_trace_in_two_folders(tmp_path):
    trace = write(tmp_path / "one", product())
    shutil.copytree(trace, tmp_path / "two")
    for name in ("one", "two"):
        done = run(tmp_path, tmp_path / name, "--quiet")
        assert done.returncode == 0, done.stderr
    stores = [ConvertedTrace(path) for path in sorted((tmp_path / "results" / "traces").iterdir())]
    assert [store.name for store in stores] == ["one", "two"]
    assert len({store.source for store in stores}) == 1
