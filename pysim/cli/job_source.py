"""From a name on a command line to a job: a workload, a trace, or the job that a result file is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysim.errors import ConfigError, WorkloadError

if TYPE_CHECKING:
    from pysim.program.job import Job

    Make = Callable[[str], Job]

KEPT = Path("results/traces")
# scripts whose options are the keys of one workload
SCRIPTS = {"titanv_gru": "gru"}


def job_of_trace(source: Path, kernels: Sequence[tuple[int, int]] | None = None) -> Job:
    """Return the job of a folder, list or converted trace; ``kernels``: ranges of numbers from 1."""
    from pysim.clock import Clock
    from pysim.trace.conversion_cache import count_kernels, open_trace
    from pysim.trace.job import trace_job

    chosen = None
    if kernels is not None:
        last = count_kernels(source)
        if max(end for _, end in kernels) > last:
            raise ConfigError(f"no kernel {max(end for _, end in kernels)}: the trace has 1 to {last}")
        chosen = sorted({number for first, end in kernels for number in range(first, end + 1)})
    store = open_trace(source, KEPT, Clock(), kernels=chosen)
    # what was converted for the choice holds nothing else
    return trace_job(store, None if store.path != source and store.chosen else chosen)


def _job_of_kept_trace(path: Path, known: Mapping[str, Any]) -> Job:
    """Return the job that a script replayed, from its converted form."""
    from pysim.trace.converted_file import ConvertedTrace
    from pysim.trace.job import trace_job

    for file in sorted(KEPT.glob("*.pysim")):
        try:
            store = ConvertedTrace(file)
        except WorkloadError:
            continue  # of another version, or damaged
        if store.source == known["source"] and store.unknown == known["unknown"]:
            chosen = None if store.chosen else known["kernels"]
            return trace_job(store, chosen, memcpy=known["memcpy"])
    raise WorkloadError(
        f"{path} replays the trace {known['name']}, whose converted form is not in {KEPT}: name its folder"
    )


def job_of_result(
    path: Path, configuration: Mapping[str, Any], attributes: Mapping[str, Any], make: Make
) -> tuple[Job, bool]:
    """Build the job of a result file again, from the configuration in it, and make sure that it is the same.

    Also returns whether the run renamed it.

    A result file holds times and which kernels wait for which, not which TBs: these follow from the job. The
    hash of the edges, in the file's attribute ``graph``, tells whether today's workload makes the same ones.
    ``make``: from the name of a workload to a job.
    """
    from pysim.dependence.dependences import dependences
    from pysim.program.rename import renamed
    from pysim.results.graph_tables import graph_hash

    script, known = configuration.get("script"), configuration.get("workload")
    if "graph" not in attributes or not isinstance(known, Mapping):
        raise WorkloadError(f"{path}: says of no one job, or was written before files told its graph's hash")
    if isinstance(known.get("workload"), str):
        job = make(known["workload"])
    elif script in SCRIPTS:
        pairs = ((key, int(v) if isinstance(v, bool) else v) for key, v in known.items())
        job = make(f"{SCRIPTS[str(script)]}:" + ",".join(f"{key}={value}" for key, value in pairs))
    elif {"source", "kernels", "unknown", "memcpy", "name"} <= set(known):
        job = _job_of_kept_trace(path, known)
    else:
        raise WorkloadError(f"{path}: how {script} makes its job is not known")
    again = bool(configuration.get("rename"))
    job = renamed(job) if again else job
    if graph_hash(dependences(job)) != attributes["graph"]:
        raise WorkloadError(
            f"{path}: its job is made another way today (it was written by {configuration.get('version')}):"
            " run it again"
        )
    return job, again
