"""Steady kernels whose board power was measured on an H200, for the check of the energy table.

A kernel here is a short piece of the one that ran for seconds in ``tests/hw/suite/power.cu``: what counts
is what it does a second. The table's numbers, and gpu.power_slope, come from the kernels that are marked
``fit``; the others are the check.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from pysim import simulate
from pysim.program.job import Job, Kernel, Memory
from pysim.program.warp_program import Code
from pysim.results.energy import EVENTS, joules
from pysim.workloads.microbench import kernels as micro
from pysim.workloads.microbench.bench import buffer, pattern
from pysim.workloads.microbench.bench import kernel as make_kernel
from pysim.workloads.mirrored import job_of

if TYPE_CHECKING:
    from pysim import Config

MEASURED = files("pysim.workloads").joinpath("measured/h200_power.csv")
# of the products that ran: whole, as the last wave of a part of one would be a larger part of it
ROWS = 4096
SIZE = f"M={ROWS};N=4096;K=4096"


def _job(kernel: Kernel) -> Job:
    return Job(kernel.name, (kernel,))


def _ffma_random() -> Job:
    """Make 128 FFMA a round; the measured rate, 0.69 of the peak, gives the late operands: 55 a round."""
    code = Code()
    mark = code.loop_begin()
    code.compute(fp32=128, int=2, control=1, conflicts=55)
    code.loop_end(mark, 500)
    code.exit()
    return _job(make_kernel("ffma_random", code, 264, 1024))


def _shared_read() -> Job:
    """Make eight loads of four wavefronts, one addition and two of its address for each."""
    code = Code()
    mark = code.loop_begin()
    code.compute(smem=32, smem_ops=8, fp32=8, int=17, control=1, chain=23)
    code.loop_end(mark, 1000)
    code.exit()
    return _job(make_kernel("shared_read", code, 132, 1024))


def _l1_read() -> Job:
    """Make four loads of 16 B a lane from the 64 KiB of a TB, an addition for each, 64-bit addresses."""
    source = buffer(Memory(), "source", 132 * 65536)
    code = Code()
    mark = code.loop_begin()
    for i in range(4):
        code.load(0, pattern(grid=65536, base=i * 16384))
    code.wait(0)
    code.compute(fp32=4, int=13, control=1, chain=16)
    code.loop_end(mark, 500)
    code.exit()
    return _job(make_kernel("l1_read", code, 132, 1024, reads=(source,)))


def _dram_read() -> Job:
    """Make each TB walk on through memory, as ``_l1_read`` does but past L1."""
    tbs, rounds = 264, 64
    source = buffer(Memory(), "source", tbs * rounds * 65536)
    code = Code()
    mark = code.loop_begin()
    for i in range(4):
        code.load(0, pattern(grid=65536, base=i * 16384, step=tbs * 65536), bypass_l1=True)
    code.wait(0)
    code.compute(fp32=4, int=13, control=1, chain=16)
    code.loop_end(mark, rounds)
    code.exit()
    return _job(make_kernel("dram_read", code, tbs, 1024, reads=(source,)))


def _saxpy_l2() -> Job:
    one = job_of("saxpy4", f"n={1 << 21}")
    return Job("saxpy_l2", [one.kernels[0]] * 16)


class Steady(NamedTuple):
    """A kernel that was measured: its name there, the job, what its rate counts, if the table is of it.

    ``work`` is what the job does in the unit of the measured rate, from its counts of events.
    """

    name: str
    make: Callable[[], Job]
    work: Callable[[dict[str, float]], float]
    fit: bool = False


def _instructions(pipe: str) -> Callable[[dict[str, float]], float]:
    return lambda counts: counts[pipe]


def _sectors(*events: str) -> Callable[[dict[str, float]], float]:
    return lambda counts: 32 * sum(counts[event] for event in events)


def _product(_: dict[str, float]) -> float:
    return ROWS * 4096.0**2


STEADY: tuple[Steady, ...] = (
    Steady("ffma_random", _ffma_random, _instructions("fp32"), True),
    Steady(
        "mma_random",
        lambda: _job(micro.arithmetic("tensor", 132, 256, 16, 1000)),
        _instructions("tensor"),
        True,
    ),
    Steady("shared_read", _shared_read, lambda c: 128 * c["smem"], True),
    Steady("l1_read", _l1_read, lambda c: 128 * c["l1_line"], True),
    Steady("l2_read", lambda: _job(micro.l2_read(264, 8, 32)), _sectors("l2_read"), True),
    Steady("dram_read", _dram_read, _sectors("dram_read"), True),
    Steady("dram_write", lambda: _job(micro.write(528, 128)), _sectors("l2_write"), True),
    Steady(
        "mma_half_chip", lambda: _job(micro.arithmetic("tensor", 66, 256, 16, 1000)), _instructions("tensor")
    ),
    Steady("l2_write", lambda: _job(micro.write(264, 8, 64)), _sectors("l2_write")),
    Steady("saxpy_dram", lambda: job_of("saxpy4", f"n={1 << 26}"), lambda _: 12.0 * (1 << 26)),
    Steady("saxpy_l2", _saxpy_l2, lambda _: 12.0 * (1 << 21) * 16),
    Steady("hgemm_128x128_8w", lambda: job_of("hgemm_128x128x32_8warps", SIZE), _product, True),
    Steady("hgemm_128x128_4w", lambda: job_of("hgemm_128x128x32_4warps", SIZE), _product, True),
    Steady("hgemm_64x64", lambda: job_of("hgemm_64x64x32", SIZE), _product, True),
    Steady("sgemm_128x128", lambda: job_of("sgemm_128x128x8", SIZE), _product),
    Steady("sgemm_64x64", lambda: job_of("sgemm_64x64x16", SIZE), _product),
    Steady("sgemm_32x32", lambda: job_of("sgemm_32x32x32", SIZE), _product),
)


class Row(NamedTuple):
    """Power (W) and rate of a steady kernel: measured, simulated, and by the table at the measured rate."""

    name: str
    fit: bool
    watt: float
    simulated: float
    at_rate: float
    rate: float
    simulated_rate: float
    limited: bool


def measured() -> dict[str, dict[str, str]]:
    """Return the rows of the measurement by kernel."""
    text = MEASURED.read_text(encoding="utf-8")
    return {row["kernel"]: row for row in csv.DictReader(text.splitlines())}


def rows(config: Config, only: Callable[[str], bool] = lambda _: True) -> Iterator[Row]:
    """Simulate the steady kernels on a GPU with an energy table and compare; idle needs no simulation."""
    real = measured()
    each = {name: value for name, value, _, _ in config.device.energies}
    going_on, clock = config.replaced({"sim.sustained": 1}), config.number("gpu.clock")
    if only("idle"):
        watt = (float(real["idle"]["power_W"]) + float(real["idle_after"]["power_W"])) / 2
        yield Row("idle", True, watt, each["board"], each["board"], 0.0, 0.0, False)
    for steady in STEADY:
        if not only(steady.name):
            continue
        found = simulate(going_on, steady.make(), "stream", threads=1, tables="energy")
        tables = found.tables()
        seconds = float(tables["runs"]["time_us"][0]) / 1e6
        table = tables["energy"]
        counts = {row["event"].decode(): float(row["count"]) for row in table}
        work = steady.work(counts)
        row = real[steady.name]
        rate = float(row["rate_per_s"])
        voltage = (float(row["sm_clock_MHz"]) / clock) ** config.number("gpu.power_slope")
        moving = sum(joules(e, counts[e.name], each[e.name], voltage) for e in EVENTS if e.unit == "count")
        held = joules(EVENTS[1], counts["sm_busy"] / seconds, each["sm_busy"], voltage)
        yield Row(
            steady.name,
            steady.fit,
            float(row["power_W"]),
            float(tables["runs"]["energy_j"][0]) / seconds,
            each["board"] + held + moving / work * rate,
            rate,
            work / seconds,
            row["clock_limits_hex"] != "0",
        )
