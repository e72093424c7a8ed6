"""Runs a job on the core below ``simulate``: slices, threads, dependences and tables as a test wants them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np

from pysim._ffi import check, lib
from pysim.analysis.tb_cost import load_facts, lone_kernels, program_costs
from pysim.counters import IDLES, STALLS
from pysim.dependence.dependences import dependences
from pysim.engine.lower import lower
from pysim.engine.simulation import Sim
from pysim.machine.config import Config
from pysim.machine.devices import device
from pysim.program.occupancy import carveout
from pysim.program.ops import lower_programs
from pysim.schemes.registry import parse_scheme

SCHEMES = ("host", "stream", "graph", "tb_static", "tb_learned", "tb_ideal")
# of other people's designs, and for comparison; tests/oracle/test_scheme_family.py runs them
FAMILY = ("pool", "acs_hw", "acs_sw", "acs_sw:threads1+window16", "blockmaestro")
FAMILY += (
    "blockmaestro:consumer+kernels4",
    "wireframe",
    "tb_bloom",
    "tb_bloom:exact",
    "tb_auto",
)
FAMILY += ("queues", "queues:stream+aware")

# a small Volta: fewer SMs and slices, nothing else
TINY = {"gpu.sms": 6, "gpu.l2.slices": 12, "gpu.l2.size": 12 * 24 * 16 * 128, "gpu.dram.bandwidth": 163.2}


def config(name="titan_v", **overrides):
    """Device plus overrides; keys are paths with ``__`` for the dots."""
    return Config.resolve(device(name), {k.replace("__", "."): v for k, v in overrides.items()})


def tiny(**overrides):
    return Config.resolve(device("titan_v"), TINY | {k.replace("__", "."): v for k, v in overrides.items()})


def oracle(**overrides):
    """The small device with every access checked."""
    return tiny(sim__oracle=1, **overrides)


@dataclass
class Outcome:
    """Everything that one run of the core reports."""

    job: Any
    values: dict[str, int]
    totals: Any
    kernels: np.ndarray
    sms: np.ndarray
    slices: np.ndarray
    samples: np.ndarray
    tbs: np.ndarray
    costs: list[Any] = field(default_factory=list)
    programs: Any = None

    @property
    def index(self):
        return self.programs.index

    @property
    def hash(self):
        return int(self.totals.hash)

    @property
    def end(self):
        return int(self.totals.end)

    @property
    def us(self):
        return self.end / 1024e3

    @property
    def cycles(self):
        return self.end / self.values["gpu.clock"]

    def kernel_cycles(self, number=0):
        """From the start of a kernel's first TB to the end of its last."""
        mine = self.tbs[self.tbs["kernel"] == number]
        return (int(mine["end"].max()) - int(mine["start"].min())) / self.values["gpu.clock"]

    def fingerprint(self):
        """What may not depend on threads, slices or the quantum, piece by piece."""
        names = ("end", "tbs_done", "hash", "sample_interval", "samples")
        names += ("table_peak_entries", "table_updates", "table_wait", "table_coarse_kernels")
        made = {name: int(getattr(self.totals, name)) for name in names}
        for name in ("kernels", "sms", "slices", "samples", "tbs"):
            made[name] = getattr(self, name).tobytes()
        return made


def lowered_of(job, scheme, conf, deps=None, order=None, known=None):
    """Return the core's tables of a job; ``order`` overrides fields of ``gs_order``."""
    choice = parse_scheme(scheme)
    conf = conf.replaced(choice.pins) if choice.pins else conf
    values = conf.encoded()
    deps = deps or dependences(job)
    plan = choice.launch_plan(job, deps, conf)
    job = plan.job if plan else job
    gpu = conf.device.sm, conf.device.mma_rate
    programs = lower_programs(job, values["gpu.sm.block_max"], values, gpu)
    each = [carveout(k, values, conf.carveouts) for k in job.kernels]
    times = [float(k.tbs) for k in job.kernels]
    made = lower(job, deps, choice, values, programs, each, times, plan, known)
    for name, value in (order or {}).items():
        setattr(made.order, name, value)
    return made, programs


def drive(sim, threads=(1,), quanta=(1 << 40,)):
    """Run to the end; threads and quanta of the slices come round and round. Return the TB records."""
    kept = []
    for team, most in zip(cycle(threads), cycle(quanta), strict=False):
        done = check(lib.gs_run(sim.sim, team, most), sim.sim) == lib.GS_DONE
        while len(rows := sim.take_tb_records(1 << 12)):
            kept.append(rows)
        if done:
            return np.concatenate(kept)
    raise AssertionError


def outcome(sim, job, values, tbs, programs=None, deps=None):
    totals = sim.totals()
    costs = []
    if programs:
        lone = lone_kernels(deps or dependences(job))
        costs = program_costs(sim.sim, programs, load_facts(job), 0, job, values, lone)
    return Outcome(
        job,
        values,
        totals,
        sim.fetch("gs_kernels_get", "gs_kernel_record", len(job.kernels)),
        sim.fetch("gs_sms_get", "gs_sm_record", values["gpu.sms"]),
        sim.fetch("gs_slices_get", "gs_l2", values["gpu.l2.slices"]),
        sim.fetch("gs_samples_get", "gs_sample", int(totals.samples)),
        tbs[np.lexsort((tbs["tb"], tbs["kernel"]))],
        costs,
        programs,
    )


def execute(
    job, scheme="stream", conf=None, *, threads=(1,), quanta=(1 << 40,), deps=None, order=None, known=None
):
    """Run a job under a scheme and return all that the core reports."""
    conf = conf or tiny()
    made, programs = lowered_of(job, scheme, conf, deps, order, known)
    with Sim(made) as sim:
        tbs = drive(sim, threads, quanta)
        known = deps if made.launched is job else None
        return outcome(sim, made.launched, made.values, tbs, programs, known)


def total_of(records, group):
    """Sum of a nested group of counters, one value a record."""
    rows = {"stalls": STALLS, "idles": IDLES}[group]
    return sum(records[group][row.name].astype(np.int64) for row in rows)
