"""Makes the job that a command line names: a trace, or the job of a result file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pysim.errors import ConfigError, WorkloadError

if TYPE_CHECKING:
    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.machine.devices import Device
    from pysim.program.job import Job

    Make = Callable[[str, Config | None], Job]

TRACE_CACHE = Path("results/traces")
# the workload of scripts whose options are its keys
WORKLOAD_OF_SCRIPT = {"titanv_gru": "gru"}


class RecordedJob(NamedTuple):
    """The job of a result file. ``renamed``: whether every value has its own memory; ``deps``: its edges."""

    job: Job
    renamed: bool
    deps: Dependences


def chosen_kernels(ranges: Sequence[tuple[int, int]] | None, last: int) -> list[int] | None:
    """Return the kernel numbers of ``--kernels`` in ascending order; None, for all, without the option.

    ``ranges``: (first, last) pairs, from 1 on; ``last``: number of kernels of the trace. Raises ConfigError
    where a range ends beyond the trace.
    """
    if ranges is None:
        return None
    most = max(end for _, end in ranges)
    if most > last:
        raise ConfigError(f"--kernels: no kernel {most}: the trace has 1 to {last}")
    return sorted({number for first, end in ranges for number in range(first, end + 1)})


def job_of_trace(source: Path, kernels: Sequence[tuple[int, int]] | None = None) -> Job:
    """Return the job of a folder, list or converted trace; ``kernels``: ranges of numbers from 1."""
    from pysim.clock import Clock
    from pysim.trace.conversion_cache import count_kernels, open_trace
    from pysim.trace.job import trace_job

    chosen = None if kernels is None else chosen_kernels(kernels, count_kernels(source))
    store = open_trace(source, TRACE_CACHE, Clock(), kernels=chosen)
    # a trace that was converted for these kernels holds no others
    return trace_job(store, None if store.path != source and store.chosen else chosen)


def _job_of_cached_trace(path: Path, known: Mapping[str, Any]) -> Job:
    """Return the job that a script replayed, from the converted trace in TRACE_CACHE."""
    from pysim.trace.converted_file import ConvertedTrace
    from pysim.trace.job import trace_job

    for file in sorted(TRACE_CACHE.glob("*.pysim")):
        try:
            store = ConvertedTrace(file)
        except WorkloadError:
            continue  # of another version, or damaged
        if store.source == known["source"] and store.unknown == known["unknown"]:
            chosen = None if store.chosen else known["kernels"]
            return trace_job(store, chosen, memcpy=known["memcpy"])
    raise WorkloadError(
        f"{path} replays the trace {known['name']}, which is not in {TRACE_CACHE}: name its folder"
    )


def _machine(path: Path, configuration: Mapping[str, Any]) -> Config | None:
    """Return the machine that the kernels of a result file were chosen for; None: not said, or none."""
    from pysim.machine.config import Config
    from pysim.units import ROWS

    known, workload = configuration.get("parameters"), configuration["workload"]
    if not isinstance(known, Mapping) or not isinstance(known.get("device"), str):
        return None
    if "made_for" in workload:  # a result of Python may be of a job for another machine, or for none
        if not isinstance(workload["made_for"], Mapping):
            return None
        known = {**known, **workload["made_for"]}
    try:
        return Config.resolve(_device(known), {key: known[key] for key in ROWS if key in known})
    except ConfigError as error:
        raise WorkloadError(f"{path}: its GPU cannot be made again: {error}") from None


def _device(known: Mapping[str, Any]) -> Device:
    """Return the device of a file's parameters; one that nobody registered is made of what they say."""
    from pysim.machine.devices import DEVICES, GPU_PATHS, Device, device
    from pysim.machine.devices.fields import checked_carveouts, checked_rate, checked_text, read_capability
    from pysim.units import parse, row_of

    name = known["device"]
    about = [known.get(f"device.{key}") for key in ("compute_capability", "carveouts", "mma_rate")]
    if name in DEVICES or None in about or not set(GPU_PATHS) <= set(known):
        return device(name)
    values = {path: parse(path, row_of(path), known[path]) for path in GPU_PATHS}
    sizes = [f"{size}B" for size in str(about[1]).split(",")]
    return Device(
        checked_text("name", name),
        name,
        read_capability(about[0]),
        checked_carveouts(sizes),
        checked_rate(about[2]),
        values,
        dict.fromkeys(values, "result file"),
    )


def job_of_result(
    path: Path, configuration: Mapping[str, Any], attributes: Mapping[str, Any], make: Make
) -> RecordedJob:
    """Build the job of a result file again from the configuration in it.

    A result file holds no edges between TBs, because they follow from the job. Its attribute ``graph`` is a
    hash of them. ``make``: builds the job of a workload's name for a machine. Raises WorkloadError if the
    job cannot be built, or has other edges than when the file was written.
    """
    from pysim.dependence.dependences import dependences
    from pysim.program.rename import renamed
    from pysim.results.graph_tables import graph_hash

    script, known = configuration.get("script"), configuration.get("workload")
    if "graph" not in attributes or not isinstance(known, Mapping):
        raise WorkloadError(f"{path}: not the result of a single job, or without the hash of its graph")
    if isinstance(known.get("workload"), str):
        job = make(known["workload"], _machine(path, configuration))
    elif script in WORKLOAD_OF_SCRIPT:
        pairs = ((key, int(v) if isinstance(v, bool) else v) for key, v in known.items())
        text = ",".join(f"{key}={value}" for key, value in pairs)
        job = make(f"{WORKLOAD_OF_SCRIPT[str(script)]}:{text}", _machine(path, configuration))
    elif {"source", "kernels", "unknown", "memcpy", "name"} <= set(known):
        job = _job_of_cached_trace(path, known)
    else:
        who = "a job that no workload makes" if script == "simulate" else f"the job of script {script}"
        raise WorkloadError(f"{path}: {who} cannot be built from its result file")
    again = bool(configuration.get("rename"))
    job = renamed(job) if again else job
    deps = dependences(job)
    if graph_hash(deps) != attributes["graph"]:
        raise WorkloadError(
            f"{path}: its job has other edges now than when version {configuration.get('version')} wrote it:"
            " run it again"
        )
    return RecordedJob(job, again, deps)
