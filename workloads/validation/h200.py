"""Suites measured on an H200 (workloads/measured): plain kernels, and chains of dependent kernels."""

from __future__ import annotations

from collections.abc import Sequence

from pysim import Config, Job
from pysim.workloads.mirrored import job_of
from pysim.workloads.mirrored.chains import chain_job

from .baselines import measured_base, roofline_by
from .cases import Baseline, Case, Outcome, Suite, outcome_of, tables_of, thinned, unique
from .table import Row

# ncu's gpu__time_duration runs from a time stamp before the launch to one after the last store is flushed.
# Of the kernels with one TB it exceeds sm__cycles_active by 1.3 to 1.7 us, whatever their length (HGEMMs,
# which also wait for another shared-memory carve-out, left out): the median over rows of the half `fit`.
NCU_OUTSIDE_US = 1.55
# Two events around a chain cost this much in every mode, as measured with nothing between them.
EVENTS_US = 1.3
# launches of a warm measurement: the first finds cold caches, the period of the last is steady
LAUNCHES = 3
LONG_US = 40.0  # of a longer kernel two launches are enough
QUICK_KERNEL_US, QUICK_CHAIN_US, QUICK_ONE_IN = 60.0, 300.0, 4
QUICK_MODES = 4  # of a quick chain's modes one in so many, beside stream order

MODES = {
    "1_stream": "stream",
    "1c_stream_with_sem_code_active": "stream:sync_code",
    "2_graph": "graph",
    "3_pdl": "pdl",
    "3l_pdl_late_trigger": "pdl:late",
    "3g_graph_pdl": "pdl:graph",
    "4r_pdl_sem_row": "cusync:row+pdl",
    "4t_pdl_sem_tile": "cusync:tile+pdl",
    "4tl_pdl_sem_tile_late_trigger": "cusync:tile+pdl+late",
    "4ts_pdl_sem_tile_spread": "cusync:tile+pdl+spread",
    "4g_graph_pdl_sem_tile": "cusync:tile+graph",
    "4sr_two_stream_sem_row": "cusync:row+streams",
    "4st_two_stream_sem_tile": "cusync:tile+streams",
    "5_persistent_gridsync": "fused:grid",
    "5s_persistent_sem_tile": "fused:tile",
}
STREAM = "1_stream"


def _kernel_cases(rows: Sequence[Row]) -> list[Case]:
    made = []
    for row in rows:
        kernel, params = row.text("kernel"), row.text("params")
        key = f"{kernel}:{params}"
        warm, cold = row.number("time_us_warm_back_to_back"), row.number("ncu_cold_time_us")
        long = "2" if warm > LONG_US else str(LAUNCHES)
        work, size = row.amount("flops"), row.number("min_bytes")
        for mode, measured, cycles in (
            ("warm", warm, float("nan")),
            ("cold", cold, row.optional("ncu_cold_sm_cycles")),
        ):
            made.append(
                Case(
                    case=f"{row.text('id')}:{key}:{mode}",
                    group=key,
                    mode=mode,
                    key=key,
                    kind=kernel,
                    scheme="stream",
                    task=(kernel, params, long),
                    part=mode,
                    measured_us=measured,
                    measured_cycles=cycles,
                    flops=work,
                    nbytes=size,
                    quick=warm < QUICK_KERNEL_US,
                )
            )
    return unique(made)


def _kernel(config: Config, kernel: str, params: str, launches: str) -> Outcome:
    """Simulate launches back to back: the first is cold, the period of the last is warm."""
    job = job_of(kernel, params)
    tables = tables_of(config, Job(job.name, list(job.kernels) * int(launches)), "stream")
    kernels = tables["kernels"]
    count = len(kernels) // int(launches)  # kernels of a launch
    ends = kernels["complete_us"][count - 1 :: count]
    # of a kernel's completion, what follows the last acknowledgement is part of the profiler's overhead
    after = config.number("gpu.cp.tb_flush") / config.number("gpu.clock")
    after += config.number("gpu.cp.tb_done_latency") / 1e3
    alone = float(ends[0] - kernels["first_dispatch_us"][0]) - after
    return outcome_of(tables, {"cold": alone + NCU_OUTSIDE_US, "warm": float(ends[-1] - ends[-2])})


def _chain_cases(rows: Sequence[Row]) -> list[Case]:
    made = []
    streams = {_group(row): row.number("time_us_median") for row in rows if row.text("mode") == STREAM}
    for row in rows:
        group, mode = _group(row), row.text("mode")
        short = streams.get(group, row.number("time_us_median")) < QUICK_CHAIN_US
        few = mode == STREAM or thinned(f"{group}|{mode}", QUICK_MODES)
        made.append(
            Case(
                case=f"{group}|{mode}",
                group=group,
                mode=mode,
                key=group,
                kind=row.text("chain"),
                # an unknown mode is refused as a scheme of that name
                scheme=MODES.get(mode, mode),
                task=(*group.split("|"), MODES.get(mode, mode)),
                part="chain",
                measured_us=row.number("time_us_median") - EVENTS_US,
                quick=short and thinned(group, QUICK_ONE_IN) and few,
            )
        )
    return unique(made)


def _group(row: Row) -> str:
    return "|".join(row.text(name) for name in ("chain", "dtype", "tile", "params"))


def pause_us(kernels: int, scheme: str) -> float:
    """Return the measured idle time between two runs of a chain (us).

    Before up to 16 runs in a row a kernel of one thread spun while the host filled the queue, for 200 us
    and for 4 us a launch and 40 more of each run (`launches`, `per`, `k_gate` of the measured program).
    """
    choice = scheme.partition(":")
    if choice[0] == "fused":
        launches = 1
    elif "graph" in scheme:
        launches = 1 + kernels // 4
    else:
        launches = kernels * (2 if "streams" in choice[2] else 1)
    per = max(2, min(16, 300 // (launches + 4)))
    return 200 / per + 4 * launches + 40


def _chain(config: Config, chain: str, dtype: str, tile: str, params: str, scheme: str) -> Outcome:
    """Simulate a chain twice, a fence between; the second run's time, as the events around it see it.

    The events include the launch of the first kernel, which after an event takes what it takes after a kernel
    in a stream (micro.json: 1.45 us and 1.48 us for an empty kernel). All modes were measured one after
    another, some 50 runs of each, so the board's power limit applies, less what the pauses save.
    """
    job = chain_job(chain, dtype, tile, params)
    if config.device.energies:
        # of the two runs of a job and the fence between them
        pause = 2 * pause_us(len(job.kernels) // 2, scheme)
        config = config.replaced({"sim.sustained": 1, "sim.pause": pause})
    tables = tables_of(config, job, scheme)
    again = tables["kernels"][len(tables["kernels"]) // 2 + 1 :]
    behind = config.number("gpu.cp.stream_gap") / 1e3
    time = float(again["complete_us"].max() - again["first_dispatch_us"].min())
    return outcome_of(tables, {"chain": behind + time})


def _kernel_baselines(cases: Sequence[Case]) -> list[Baseline]:
    return [roofline_by(cases, "roofline", lambda case: case.mode)]


def _chain_baselines(cases: Sequence[Case]) -> list[Baseline]:
    return [measured_base(cases, STREAM)]


KERNELS = Suite(
    name="h200-kernels",
    doc="plain kernels on an H200, warm (period of launches back to back) and cold (alone, empty caches)",
    gpu="h200",
    file="h200_kernels.csv",
    columns=("id", "kernel", "params", "flops", "min_bytes", "time_us_warm_back_to_back", "ncu_cold_time_us"),
    cases=_kernel_cases,
    run=_kernel,
    baselines=_kernel_baselines,
    note=f"cold adds {NCU_OUTSIDE_US} us to the time from the first TB's start until L2 has acknowledged the"
    " last store, for what ncu's duration holds besides",
)
DEPS = Suite(
    name="h200-deps",
    doc="chains of dependent kernels on an H200 in fifteen ways of synchronising",
    gpu="h200",
    file="h200_deps.csv",
    columns=("chain", "dtype", "tile", "params", "mode", "time_us_median"),
    cases=_chain_cases,
    run=_chain,
    baselines=_chain_baselines,
    note=f"measured is the median less {EVENTS_US} us of event cost; simulated after a fence, with the"
    " launch of the first kernel",
    base=STREAM,
    compare="speedup",
)
