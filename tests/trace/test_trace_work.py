"""How much work an instruction is follows from its name: no trace exceeds a pipe's peak on any device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pysim import simulate
from pysim.program.architecture import other_architecture
from pysim.trace.job import trace_job
from tests.core.harness import config, execute

from .made_traces import A, converted
from .text import EXIT, header, tb, text

ROOT = Path(__file__).resolve().parents[2]
COUNT = 400
V6_TAIL = " 0 0 NoVal"
# mnemonic, SM version of the trace, multiply-adds of a warp, rate of the type against fp16
TENSOR = [
    ("HMMA.884.F32.F32.STEP0", 70, 256, 1),
    ("HMMA.1688.F32", 75, 1024, 1),
    ("HMMA.16816.F32", 80, 2048, 1),
    ("HMMA.16816.F16", 80, 2048, 1),
    ("HMMA.16816.F32.BF16", 80, 2048, 1),
    ("HMMA.1688.F32.TF32", 80, 1024, 1 / 2),
    ("IMMA.8816.S8.S8", 75, 1024, 2),
    ("IMMA.16832.S8.S8", 80, 4096, 2),
    ("IMMA.16864.S4.S4", 80, 8192, 4),
]
# the least SM version of a type's tensor cores, and the last
NEEDS = {".BF16": (80, 99), ".TF32": (80, 99), ".S8": (72, 99), ".S4": (75, 89)}
PIPE = {"MUFU.EX2": ("sfu",), "DFMA": ("fp64",), "HFMA2": ("fp16",), "FFMA": ("fp32",)}
DEVICES = {"titan_v": 70, "a100": 80, "rtx3070": 86, "h200": 90}


def folder_of(path, lines, binary, warps=8, **fields):
    """A TB of ``warps`` equal warps."""
    path.mkdir(parents=True, exist_ok=True)
    v6 = binary >= 90
    fields |= {"accelsim_tracer_version": "6"} if v6 else {}
    head = header(block_dim=f"({32 * warps},1,1)", binary_version=str(binary), nregs="128", **fields)
    last = EXIT + V6_TAIL if v6 else EXIT
    (path / "kernel-1.traceg").write_bytes(text(head, tb((0, 0, 0), [[*lines, last]] * warps)))
    (path / "kernelslist.g").write_text("kernel-1.traceg\n")
    return path


def independent(name, binary, count=COUNT):
    tail = " 0 NoVal" if binary >= 90 else ""
    commit = " 1" if "GMMA" in name else ""
    return [
        f"{16 * i:04x} ffffffff 1 R{16 * (i % 6) + 8} {name} 2 R4 R255{commit} 0 0{tail}"
        for i in range(count)
    ]


def cycles(path, device, lines, binary):
    """Cycles a sub-core is busy with two warps' instructions."""
    job = trace_job(converted(folder_of(path, lines, binary)))
    made = simulate(device, job, "stream").frame("runs").iloc[0]
    none = simulate(device, trace_job(converted(folder_of(path / "none", lines[:1], binary))), "stream")
    return made, float(made.cycles) - float(none.frame("runs").iloc[0].cycles)


def takes(name, sm):
    return all(first <= sm <= last for part, (first, last) in NEEDS.items() if part in name)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", TENSOR, ids=[row[0] for row in TENSOR])
def test_tensor_instructions_run_at_the_peak_of_the_device_at_most(tmp_path, row, device):
    name, binary, fma, rate = row
    made, taken = cycles(tmp_path, device, independent(name, binary), binary)
    if not takes(name, DEVICES[device]):
        assert made.status == "refused"
        assert name.partition(".")[0] in made.reason
        return
    if name.startswith("IMMA") and device == "rtx3070":
        rate *= 2  # fp16 with fp32 sums runs at half rate there
    conf = config(device)
    # what the device's own instruction reaches
    one = 256 if DEVICES[device] < 80 else 2048
    peak = one / conf.number("gpu.sm.tensor_interval") * rate
    least = 2 * (COUNT - 1) * max(1, fma / peak)
    assert least * 0.99 <= taken <= least * 1.15 + 100


@pytest.mark.parametrize(
    ("name", "fma", "rate"),
    [
        ("HGMMA.64x128x16.F32", 32768, 512),
        ("HGMMA.64x64x16.F16", 16384, 512),
        ("HGMMA.64x128x8.F32.TF32", 16384, 256),
        ("QGMMA.64x128x32.F32.E4M3.E4M3", 65536, 1024),
        ("IGMMA.64x128x32.S8.S8", 65536, 1024),
    ],
)
def test_warp_group_multiplies_on_a_hopper(tmp_path, name, fma, rate):
    _, taken = cycles(tmp_path, "h200", independent(name, 90, 60), 90)
    least = 2 * 59 * fma / rate
    assert least * 0.99 <= taken <= least * 1.15 + 200


@pytest.mark.parametrize("device", DEVICES)
def test_fp64_instructions_of_tensor_cores(tmp_path, device):
    made, taken = cycles(tmp_path, device, independent("DMMA.884", 80), 80)
    if DEVICES[device] < 80:
        assert made.status == "refused"
        return
    rate = {"a100": 16, "h200": 32, "rtx3070": 0.5}[device]
    assert taken == pytest.approx(2 * (COUNT - 1) * 256 / rate, rel=0.16)


@pytest.mark.parametrize("device", [*DEVICES, "titan_x_pascal"])
@pytest.mark.parametrize(
    "name", ["F2F.F64.F32", "I2F.F64", "F2I.S64.F64.TRUNC", "MUFU.EX2", "DFMA", "HFMA2", "FFMA"]
)
def test_other_pipes_stay_below_their_peak(tmp_path, device, name):
    conf = config(device)
    slow = {"DFMA": ("fp64",), "HFMA2": ("fp16",), "FFMA": ("fp32",), "MUFU.EX2": ("sfu",)}.get(
        name, ("sfu", "fp64")
    )
    interval = max(conf.number(f"gpu.sm.{pipe}_interval") for pipe in slow)
    _, taken = cycles(tmp_path, device, independent(name, 60), 60)
    assert taken >= 2 * (COUNT - 1) * max(1, interval) * 0.99


@pytest.mark.parametrize(
    ("device", "line", "binary", "named"),
    [
        ("titan_x_pascal", "1 R8 HMMA.16816.F32 2 R4 R255 0 0", 80, "HMMA"),
        ("titan_x_pascal", "1 R8 HMMA.884.F32.F32.STEP0 2 R4 R255 0 0", 70, "HMMA"),
        ("titan_v", "1 R8 IMMA.8816.S8.S8 2 R4 R255 0 0", 75, "IMMA"),
        ("h200", "1 R8 IMMA.16864.S4.S4 2 R4 R255 0 0", 80, "IMMA"),
        ("a100", "1 R8 HGMMA.64x128x16.F32 2 UR4 R24 1 0 0 0 NoVal", 90, "HGMMA"),
        ("a100", f"0 UBLKCP.S.G 2 UR4 UR8 0 0x400 0 128 0 3 1 0x{A:x} 0 0 NoVal", 90, "UBLKCP"),
        ("titan_v", "1 P0 SYNCS.PHASECHK.TRANS64 1 R2 8 1 0x400 0 0 0 NoVal", 90, "SYNCS"),
    ],
)
def test_what_a_device_lacks_is_refused_by_name(tmp_path, device, line, binary, named):
    executed = trace_job(converted(folder_of(tmp_path / "on", [f"0000 ffffffff {line}"], binary, 1)))
    row = simulate(device, executed, "stream").frame("runs").iloc[0]
    assert row.status == "refused"
    assert named in row.reason
    off = trace_job(converted(folder_of(tmp_path / "off", [f"0000 00000000 {line}"], binary, 1)))
    assert simulate(device, off, "stream").frame("runs").iloc[0].status == "ok"


@pytest.mark.parametrize(
    ("binary", "sm", "differs"),
    [(70, 70, False), (70, 75, False), (75, 70, True), (80, 86, False), (80, 70, True), (70, 90, True)],
)
def test_which_architectures_differ(tmp_path, binary, sm, differs):
    job = trace_job(converted(folder_of(tmp_path, independent("FFMA", 60, 4), binary, 1)))
    assert bool(other_architecture(job, sm)) == differs


def test_a_trace_of_another_architecture_is_reported_or_refused(tmp_path):
    folder = folder_of(tmp_path / "trace", independent("FFMA", 80, 4), 80, 1)
    line = "recorded for sm_80, simulated on sm_70"

    def replay(*more):
        script = [sys.executable, str(ROOT / "configs" / "replay_trace.py"), str(folder), "--quiet", *more]
        return subprocess.run(script, capture_output=True, text=True, cwd=tmp_path, check=False)

    done = replay("--gpu", "titan_v")
    assert done.returncode == 0
    assert [row for row in done.stderr.splitlines() if line in row] == done.stderr.splitlines()
    strict = replay("--gpu", "titan_v", "--strict-arch")
    assert strict.returncode != 0
    assert line in strict.stderr
    assert len(strict.stderr.splitlines()) == 1
    same = replay("--gpu", "a100", "--strict-arch")
    assert (same.returncode, same.stderr) == (0, "")
    rows = simulate("titan_v", trace_job(converted(folder)), "stream,graph").frame("runs")
    assert list(rows.status) == ["ok", "ok"]
    assert all(reason.startswith(line) for reason in rows.reason)


def test_work_does_not_depend_on_the_length_of_blocks(tmp_path):
    job = trace_job(converted(folder_of(tmp_path, independent("HMMA.884.F32.F32.STEP1", 70), 70)))
    ends = [execute(job, "stream", config("a100", gpu__sm__block_max=n)).end for n in (64, 1024)]
    assert ends[0] == pytest.approx(ends[1], rel=0.02)
