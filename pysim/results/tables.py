"""Result tables from the records of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.counters import CHANNEL, IDLES, SLICE, STALLS, WORK
from pysim.schemes.bloom import RATE_SCALE, signature_bytes

from .columns import counter_values
from .energy import EVENTS, joules
from .schema import DTYPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.machine.devices.card import Energies
    from pysim.program.job import Job
    from pysim.schemes.known_edges import ChosenForms, Hints, KnownEdges, LearningReport

    Table = NDArray[np.void]

TICKS_NS = 1024.0
TICKS_US = 1024e3
SECTOR = 32
PIPES = ("fp32", "int", "fp16", "fp64", "sfu", "tensor")
ARITHMETIC = ("fp32", "fp16", "fp64", "tensor")
REASONS = np.array([b"launch", b"dependence", b"slot", b"dispatch"], "S12")


def clip_utf8(text: str, room: int) -> bytes:
    """Return at most ``room`` bytes of UTF-8, cut between two characters and ended by ... if cut."""
    data = text.encode()
    return data if len(data) <= room else data[: room - 3].decode("utf-8", "ignore").encode() + b"..."


def table(name: str, rows: int, /, **columns: Any) -> Table:
    """Return a table of ``rows`` rows; columns not given are 0."""
    made = np.zeros(rows, DTYPES[name])
    for column, values in columns.items():
        kind = DTYPES[name][column]
        made[column] = clip_utf8(values, kind.itemsize) if isinstance(values, str) else values
    return made


def busiest_pipe(work: Table) -> NDArray[np.int64]:
    """Return the busy time of the busiest arithmetic pipe, one element a row, in 64ths of a cycle.

    The pipe is the same for all rows, so that samples of a run are comparable.
    """
    name = max(ARITHMETIC, key=lambda pipe: int(work[pipe].sum()))
    return np.asarray(work[name], np.int64)


def kernels_table(run: int, job: Job, records: Table) -> Table:
    """Return the rows of ``kernels`` of a run."""
    names = {text: number for number, text in enumerate(dict.fromkeys(k.name for k in job.kernels))}
    times = {
        f"{name}_us": records[name] / TICKS_US
        for name in ("enqueued", "admitted", "ready", "first_dispatch", "last_end")
    }
    return table(
        "kernels",
        len(records),
        run=run,
        kernel=np.arange(len(records)),
        stream=[k.stream for k in job.kernels],
        name=[names[k.name] for k in job.kernels],
        tbs=records["tbs"],
        warp_instructions=records["warp_instructions"],
        load_bytes=records["load_sectors"] * SECTOR,
        store_bytes=records["store_sectors"] * SECTOR,
        coarse=records["coarse"],
        sharing=records["unit"],
        complete_us=records["released"] / TICKS_US,
        **times,
    )


def names_table(run: int, job: Job) -> Table:
    """Return the rows of ``names`` of a run."""
    names = list(dict.fromkeys(k.name for k in job.kernels))
    texts = np.array([clip_utf8(n, 160) for n in names], "S160")
    return table("names", len(names), run=run, name=np.arange(len(names)), text=texts)


def tb_waits(
    admitted: NDArray[Any],
    ready: NDArray[Any],
    dispatch: NDArray[Any],
    start: NDArray[Any],
    barrier: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Return (n, 4): how long each TB waited for launch, dependence, slot and dispatch, in the unit given.

    ``barrier``: under kernel-level schemes, the end of the kernel that the TB's kernel waits for (below 0:
    none); the time up to that end counts as dependence, the gap after it as launch.
    """
    waits = np.zeros((len(ready), 4), ready.dtype)
    waits[:, 0] = np.minimum(admitted, ready)
    waits[:, 1] = np.maximum(ready - admitted, 0)
    if barrier is not None:
        waits[:, 1] = np.clip(barrier, 0, ready)
        waits[:, 0] = ready - waits[:, 1]
    waits[:, 2] = np.maximum(dispatch - ready, 0)
    waits[:, 3] = np.maximum(start - dispatch, 0)
    return waits


def tbs_table(run: int, job: Job, records: Table, kernels: Table, barriers: bool) -> Table:
    """Return the rows of ``tbs``; ``reason`` is a TB's longest wait; ``barriers``: whole kernels wait."""
    records = records[np.lexsort((records["tb"], records["kernel"]))]
    who = records["kernel"].astype(np.int64)
    streams = np.array([k.stream for k in job.kernels], np.int64)
    last = records["last_kernel"].astype(np.uint32).view(np.int32)
    ends = kernels["released"].astype(np.int64)
    waits = tb_waits(
        kernels["admitted"].astype(np.int64)[who],
        records["ready"].astype(np.int64),
        records["dispatch"].astype(np.int64),
        records["start"].astype(np.int64),
        np.where(last < 0, -1, ends[last]) if barriers else None,
    )
    return table(
        "tbs",
        len(records),
        run=run,
        kernel=who,
        stream=streams[who],
        reason=REASONS[waits.argmax(axis=1)] if len(records) else b"",
        last_kernel=last,
        last_tb=records["last_tb"].astype(np.uint32).view(np.int32),
        **{name: records[name] for name in ("tb", "sm", "slot")},
        **{f"{name}_ns": records[name] / TICKS_NS for name in ("ready", "dispatch", "start", "end")},
    )


def sm_table(run: int, records: Table) -> Table:
    """Return the rows of ``sm`` of a run."""
    return table(
        "sm",
        len(records),
        run=run,
        sm=np.arange(len(records)),
        busy_us=records["busy"] / TICKS_US,
        tbs=records["tbs"],
        **counter_values(STALLS, records["stalls"]),
        **counter_values(IDLES, records["idles"]),
        **counter_values(WORK, records["work"]),
    )


def l2_table(run: int, records: Table) -> Table:
    """Return the rows of ``l2`` of a run."""
    counters = counter_values((*SLICE, *CHANNEL), records)
    return table("l2", len(records), run=run, slice=np.arange(len(records)), **counters)


def _shares(records: Table) -> NDArray[np.float64]:
    """Return (rows, stalls + idles), shares that add to 1.

    Time with a resident TB is split as its warp-cycles are, time without one by its reason.
    """
    warps = np.stack([records["stalls"][row.name].astype(float) for row in STALLS], axis=1)
    idle = np.stack([records["idles"][row.name].astype(float) for row in IDLES], axis=1)
    spent = warps.sum(axis=1, keepdims=True)
    parts = np.divide(warps, spent, out=np.zeros_like(warps), where=spent > 0)
    parts[spent[:, 0] <= 0, 0] = 1.0
    shares = np.concatenate([parts * records["busy"].astype(float)[:, None], idle], axis=1)
    total = shares.sum(axis=1, keepdims=True)
    shares = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
    shares[total[:, 0] <= 0, -1] = 1.0
    return np.asarray(shares)


def stalls_table(run: int, kernels: Table, sms: Table) -> Table:
    """Return the rows of ``stalls`` of a run: the run itself, its kernels, its SMs."""
    total = np.zeros(1, sms.dtype)
    total["busy"] = sms["busy"].sum()
    for group, rows in (("stalls", STALLS), ("idles", IDLES)):
        for row in rows:
            total[group][row.name] = sms[group][row.name].sum()
    made = []
    for level, records in (("run", total), ("kernel", kernels), ("sm", sms)):
        shares = _shares(records)
        columns = {row.name: shares[:, i] for i, row in enumerate((*STALLS, *IDLES))}
        # a wait for other TBs in the program is a dependence, like that of a TB not yet dispatched
        columns["dependence"] = columns["dependence"] + columns.pop("sync")
        made.append(
            table("stalls", len(records), run=run, level=level, id=np.arange(len(records)), **columns)
        )
    return np.concatenate(made)


def _limited_rate(booked: NDArray[Any], capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the work of a pipe in each sample: at most its ``capacity``, the excess in later samples.

    The core counts the work of a compute block when it begins; the block may span several samples.
    """
    whole = np.cumsum(capacity)
    behind = np.minimum.accumulate(np.concatenate(([0.0], np.cumsum(booked.astype(np.float64)) - whole)))[1:]
    return np.diff(whole + behind, prepend=0.0)


def energy_table(run: int, counts: Mapping[str, float], energies: Energies, voltage: float = 1.0) -> Table:
    """Return the rows of ``energy`` of a run, one an event of the device's table; none without a table.

    ``voltage``: factor of events that scale with the SM voltage, see ``energy.joules``.
    """
    units = {event.name: event for event in EVENTS}
    joule = [joules(units[name], counts[name], each, voltage) for name, each, _, _ in energies]
    return table(
        "energy",
        len(energies),
        run=run,
        event=[name.encode() for name, *_ in energies],
        count=[counts[name] for name, *_ in energies],
        joule=joule,
        uncertainty_j=[each * share for each, (_, _, share, _) in zip(joule, energies, strict=True)],
    )


def learned_table(run: int, report: LearningReport | None, values: Mapping[str, int]) -> Table:
    """Return the row of ``learned`` of a run; none of a scheme that does not learn."""
    if report is None:
        return table("learned", 0)
    counts = ("launches", "served", "unlearnable", "changed", "mispredicted", "signatures", "ranges")
    names = (*counts, "recorded_bytes", "fetched_bytes")
    return table(
        "learned",
        1,
        run=run,
        barriers=report.launches - report.served,
        lookup_us=report.looked_up * values["scheme.learned.lookup"] / TICKS_US,
        **{name: getattr(report, name) for name in names},
    )


def bloom_table(
    run: int, job: Job, hints: Hints | None, count: Any, peak: int, values: Mapping[str, int]
) -> Table:
    """Return the row of ``bloom`` of a run, none without signatures; ``count``: gs_bloom_count."""
    if hints is None:
        return table("bloom", 0)
    launches = sum(k.copy is None for k in job.kernels)
    tests = max(1, count.tests)
    return table(
        "bloom",
        1,
        run=run,
        launches=launches,
        hinted=launches - int(hints.barrier.sum()),
        barriers=int(hints.barrier.sum()),
        granules=int(hints.granules.sum()),
        lookup_us=int(hints.lookup_ticks.sum()) / TICKS_US,
        false_rate=count.false_hits / tests,
        analytic_rate=count.expected / RATE_SCALE / tests,
        signatures=peak,
        memory_bytes=values["scheme.bloom.signatures"] * signature_bytes(values),
        **{name: getattr(count, name) for name in ("tests", "false_hits", "edges", "false_edges")},
    )


def chosen_table(run: int, job: Job, known: KnownEdges) -> Table:
    """Return the row of ``chosen`` of a run; none of a scheme that chooses no forms."""
    made = known.chosen
    if made is None:
        return table("chosen", 0)
    launches = sum(k.copy is None for k in job.kernels)
    return table(
        "chosen",
        1,
        run=run,
        launches=launches,
        hinted=launches - int(known.barrier.sum()),
        barriers=int(known.barrier.sum()),
        hints=int(made.hints.sum()),
        hint_bytes=int(made.hint_bytes.sum()),
        hint_us=int(known.lookup_ticks.sum()) / TICKS_US,
        peak_rules=made.peak_rules,
        peak_tbs=made.peak_tbs,
        **{f"{form}_pairs": int((made.form == form.encode()).sum()) for form in ("none", "kernel", "tb")},
    )


def decisions_table(run: int, made: ChosenForms | None, launch: Sequence[int]) -> Table:
    """Return the rows of ``decisions`` of a run; ``launch``: the launch that each kernel of the core is."""
    if made is None:
        return table("decisions", 0)
    number = np.array(launch, np.int64)
    return table(
        "decisions",
        len(made.kernel),
        run=run,
        kernel=number[made.kernel],
        producer_kernel=number[made.producer],
        form=made.form,
        reason=made.reason,
        share=made.share,
        rules=made.rules,
    )


def samples_table(run: int, records: Table, interval: int, end: int, values: Mapping[str, int]) -> Table:
    """Return the rows of ``samples`` of a run."""
    number = np.arange(len(records))
    stop = np.minimum((number + 1) * interval, max(end, 1))
    cycles = np.maximum(stop - number * interval, 1) / values["gpu.clock"]
    work, sms = records["work"].copy(), values["gpu.sms"]
    for name in (*PIPES, "smem"):
        servers = 1 if name == "smem" else 4
        work[name] = np.rint(_limited_rate(work[name], 64 * cycles * sms * servers))
    return table(
        "samples",
        len(records),
        run=run,
        sample=number,
        start_us=number * interval / TICKS_US,
        end_us=stop / TICKS_US,
        resident_warps=records["warp_cycles"] / cycles,
        alu_utilization=busiest_pipe(work) / (64 * cycles * sms * 4),
        smem=work["smem"] / (64 * cycles * sms),
        l2_requests=work["l2_requests"],
        **{name: work[name] / (64 * cycles * sms * 4) for name in PIPES},
    )
