"""What all experiment scripts share: check the options, name the result file, simulate, report, write.

What is slow to import is imported in functions: a script imports this module before it prints its help.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysim.errors import ConfigError, WorkloadError
from pysim.program.library_kernels import library_kernels
from pysim.program.memory_budget import set_limit

from .checkpointing import interruption, start_checkpoints
from .checks import check_tables
from .explained import explained_tb
from .interrupts import keep
from .options import Options

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np
    from numpy.typing import NDArray

    from pysim.clock import Clock
    from pysim.engine.checkpoints import Checkpoints
    from pysim.machine.config import Config
    from pysim.program.job import Job
    from pysim.results.result import Result

    from .parser import Parser


@dataclass(slots=True)
class _Finished:
    """What a call has simulated: rows of ``runs``, the script that names the result file, checkpoints.

    ``warned``: warnings that stderr has, which many runs would repeat.
    """

    script: Script | None = None
    runs: list[NDArray[np.void]] = field(default_factory=list)
    warned: set[str] = field(default_factory=set)
    checkpoints: Checkpoints | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """The options of one call, checked, with the resolved configuration."""

    name: str
    options: Options
    config: Config
    workload: Mapping[str, Any]
    # shared by the scripts that ``dataclasses.replace`` makes of one, for other machines
    finished: _Finished = field(default_factory=_Finished, compare=False)

    @classmethod
    def start(cls, name: str, parser: Parser, args: argparse.Namespace, keys: tuple[str, ...]) -> Script:
        """Check the shared options; a wrong one exits with status 2, like one that does not parse.

        ``keys``: the options of this script that describe its workload.
        """
        from pysim.machine.devices import device
        from pysim.schemes.registry import parse_schemes

        options = Options.from_args(args)
        checks: tuple[tuple[str, Callable[[], object]], ...] = (
            ("--gpu: ", lambda: device(options.gpu)),
            ("--schemes: ", lambda: parse_schemes(options.schemes)),
            ("--tables: ", lambda: check_tables(options.tables)),
            # names the parameters that conflict, which several options may have set
            ("", options.config),
        )
        for option, check in checks:
            try:
                check()
            except ConfigError as error:
                parser.error(f"{option}{error}")
        config = options.config()
        set_limit(options.max_memory)
        made = cls(name, options, config, {key: getattr(args, key) for key in keys})
        made.finished.script = made
        if not parser.leaves_out("resume"):
            made.finished.checkpoints = start_checkpoints(options, config, made.path, made.configuration)
        return made

    @property
    def configuration(self) -> dict[str, Any]:
        """Everything that decides the result; it is stored in and beside the result file."""
        from pysim.results import result_file
        from pysim.schemes.registry import parse_schemes

        schemes = [choice.name for choice in parse_schemes(self.options.schemes)]
        tables = self.options.tables or ("all",)
        return result_file.configuration(
            self.name, self.workload, schemes, tables, self.config, self.options.rename
        )

    @property
    def path(self) -> Path:
        """Path of the result file: ``--out``, or a name with a hash of the configuration."""
        text = json.dumps(self.configuration, sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:10]
        return self.options.out or Path("results") / f"{self.name}-{key}.h5"

    @property
    def tables_to_simulate(self) -> tuple[str, ...]:
        """Tables that the simulation records: those to write, and those that ``--explain`` needs."""
        chosen = self.options.tables or ("all",)
        if self.options.explain is None or "all" in chosen:
            return chosen
        return (*(name for name in chosen if name != "none"), "tbs", "kernels", "decisions")

    def tables_to_write(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tables that ``--tables`` selects, and those that every result file has."""
        chosen = self.options.tables or ("all",)
        always = ("runs", "names", "host")
        return {name: t for name, t in tables.items() if "all" in chosen or name in (*chosen, *always)}

    def machine_lines(self) -> list[str]:
        """Return the lines that describe the machine, which all runs of the call share."""
        at = self.config.number

        def us(path: str) -> str:
            return f"{at(path) / 1e3:g}"

        order = [
            f"window {self.config['scheme.window']} kernels",
            f"host.submit = {self.config['host.submit']}",
        ]
        if self.config["host.submit"] == "eager":
            order.append(f"{us('host.launch')} us a launch")
        return [
            f"GPU       {self.config.device.title}: {self.config['gpu.sms']} SMs at {at('gpu.clock'):g} MHz,"
            f" L2 {at('gpu.l2.size') / 2**20:g} MiB, DRAM {at('gpu.dram.bandwidth'):g} GB/s",
            f"order     {', '.join(order)}",
            f"launch    first {us('gpu.cp.launch')} us; between kernels: stream {us('gpu.cp.stream_gap')},"
            f" graph edge {us('gpu.cp.graph_gap')}, host round trip {us('host.roundtrip')},"
            f" admission {us('gpu.cp.admit')} us",
        ]

    def store(
        self,
        stats: ModuleType,
        tables: Mapping[str, Any],
        picture: bytes | None = None,
        about: Mapping[str, str] | None = None,
        beside: bool = True,
    ) -> None:
        """Write tables to the result file, with the units and meanings of their columns.

        ``picture``: PNG; ``about``: further attributes of the file; ``beside``: whether the configuration is
        also written beside it.
        """
        from pysim.results import result_file

        attributes = {"script": self.name, **(about or {})}
        result_file.store(
            self.path, tables, attributes, self.configuration, self.options.force, picture, beside
        )
        if self.finished.checkpoints is not None and stats.INTERRUPTED not in (about or {}):
            self.finished.checkpoints.remove()

    def files(self, stats: ModuleType, picture: bytes | None) -> str:
        """Return the names of the files of the result: HDF5, configuration and picture."""
        more = (self.path.with_suffix(".png"),) if picture else ()
        return ", ".join(map(str, (self.path, stats.sidecar(self.path), *more)))

    def save(
        self,
        stats: ModuleType,
        tables: Mapping[str, Any],
        show: Callable[[str], None],
        draw: Callable[[], bytes] | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write tables and the picture of ``draw()``, print the file names, and JSON with ``--json``."""
        picture = None
        try:
            picture = draw() if draw and self.options.draws else None
            if draw is None and self.options.picture == "yes":
                show("no picture: this script has none")
        except stats.StoreError as error:  # matplotlib is optional
            show(f"no picture: {error}")
        self.store(stats, tables, picture, about)
        show(f"wrote {self.files(stats, picture)}")
        if self.options.json:
            print(stats.to_json(tables))

    def job(self, job: Job) -> Job:
        """Return the job, renamed if ``--rename`` is given."""
        from pysim.program.rename import renamed

        return renamed(job) if self.options.rename else job

    def simulate(
        self,
        job: Job,
        schemes: str | Sequence[str] | None = None,
        config: Config | None = None,
        **more: Any,
    ) -> Result:
        """Simulate a job under the options; ``schemes`` and ``config`` replace theirs.

        ``more``: further arguments of ``pysim.simulate``. After Ctrl-C writes the rows ``runs`` of all that
        this call has simulated to the result file, and raises KeyboardInterrupt.
        """
        try:
            result = self._simulate(job, schemes, config, **more)
        except KeyboardInterrupt:
            self._keep_finished()
            raise
        self.finished.runs.append(result.listed()["runs"])
        if result.interrupted:
            self._keep_finished()
            raise interruption(self.finished.checkpoints)
        return result

    def _simulate(
        self,
        job: Job,
        schemes: str | Sequence[str] | None = None,
        config: Config | None = None,
        **more: Any,
    ) -> Result:
        from pysim.engine.run import simulate
        from pysim.program.architecture import other_machine

        schemes = self.options.schemes if schemes is None else schemes
        config = config or self.config
        if (note := other_machine(job, config.device.sm)) not in {"", *self.finished.warned}:
            print(f"{job.name}: {note}", file=sys.stderr)  # also with --quiet
            self.finished.warned.add(note)
        more = {"threads": self.options.threads, "checkpoints": self.finished.checkpoints, **more}
        return simulate(config, job, schemes, **more)

    def finished_runs(self) -> NDArray[np.void]:
        """Return the table ``runs`` of all that this call has simulated, numbered from 0."""
        import numpy as np

        runs = np.concatenate(self.finished.runs)
        runs["run"] = np.arange(len(runs))
        return runs

    def _keep_finished(self) -> None:
        """Write the rows of all runs of this call; nothing if none has finished."""
        from pysim import stats

        runs = self.finished_runs() if self.finished.runs else None
        if runs is None or not (runs["status"] == b"ok").any():
            return
        keep(self.finished.script or self, stats, {"runs": runs})

    def run(self, job: Job, stats: ModuleType, log: Any, clock: Clock | None = None) -> Run:
        """Simulate the job under the schemes of the call, after checking that the result can be written.

        ``stats``: the package that writes results, which ``pysim`` does not import; ``log``: its ``Log``.
        Raises WorkloadError if no scheme could run. After Ctrl-C the result has the schemes that have
        finished; KeyboardInterrupt is raised if there is none.
        """
        from pysim.results.gap import gap_notes

        job = self.job(job)
        what = explained_tb(self.options.explain, job)
        stats.check_writable(self.path, self.options.force, self.configuration)
        result = self._simulate(job, tables=self.tables_to_simulate, progress=log, clock=clock)
        below = gap_notes(result.listed()["runs"])  # stands under the table of runs
        for note in result.notes:
            if note not in below and note not in self.finished.warned:
                log.say(note)
        log.clear()
        listed = result.listed()
        good = listed["runs"][listed["runs"]["status"] == b"ok"]
        if not len(good):
            if result.interrupted:
                raise interruption(self.finished.checkpoints)
            raise WorkloadError(f"no scheme could run: {listed['runs']['reason'][0].decode()}")
        return Run(self, stats, log, job, result, what, listed, good)


@dataclass(frozen=True, slots=True)
class Run:
    """Outcome of :meth:`Script.run`. ``listed``: tables; ``completed``: rows of ``runs`` with status ok."""

    script: Script
    stats: ModuleType
    log: Any
    job: Job
    result: Result
    explained_tb: tuple[int, int] | None
    listed: dict[str, NDArray[np.void]]
    completed: NDArray[np.void]

    def show(self, text: str) -> None:
        """Print a line: on stdout, or on stderr with ``--json``."""
        if self.script.options.json:
            self.log.say(text)
        else:
            print(text)

    def report(self, lines: list[str]) -> None:
        """Print the machine, the script's own lines, runs, stall stacks and what ``--explain`` asks for."""
        from pysim.results.gap import gap_notes

        header = [*self.script.machine_lines(), self.stats.format_coherence(self.completed), *lines]
        if known := library_kernels(self.job):
            header.append(f"kernels   {known}")
        header.append(self.stats.format_limits(self.completed))
        device = self.script.config.device
        if not device.energies:
            header.append(f"energy    left out: there is no energy table for {device.name}")
        header.append("")
        self.show(self.stats.format_runs(self.listed["runs"], header, self.job.steps))
        for note in gap_notes(self.listed["runs"]):
            self.show(f"{note}\n")
        if found := self.stats.format_edge_discovery(self.listed):
            self.show(found)
        self.show(self.stats.format_stalls(self.listed) or "no stall stack: the table stalls is left out")
        if self.explained_tb is not None:
            for scheme in self.completed["scheme"]:
                self.show(self.result.explain(scheme.decode(), *self.explained_tb))

    def write(
        self,
        title: str,
        last: Callable[[dict[str, Any]], list[str]] = lambda tables: [],
        draw: Callable[[dict[str, Any], str], bytes] | None = None,
    ) -> None:
        """Write the result and its picture, and print the names of the files.

        ``last(tables)`` may complete the tables; it returns further lines to print.

        ``draw(tables, title)`` makes the picture (default: occupancy over time, a panel a scheme). Raises
        KeyboardInterrupt, once all is written, if the simulation was interrupted.
        """
        from importlib import import_module

        from pysim.results import result_file

        script = self.script
        tables, picture = script.tables_to_write(self.listed), None
        try:
            if script.options.draws:
                draw = draw or import_module(f"{self.stats.__name__}.pictures.plot").draw_occupancy
                picture = draw(tables, f"{title} on {script.config.device.title}")
        except self.stats.StoreError as error:  # matplotlib is optional
            self.show(f"no picture: {error}")
        lines = last(tables)
        about = result_file.attributes(self.result.deps, self.result.interrupted)
        script.store(self.stats, tables, picture, about)
        for line in (*lines, f"wrote {script.files(self.stats, picture)}"):
            self.show(line)
        if script.options.json:
            print(self.stats.to_json(tables))
        if self.result.interrupted:
            raise interruption(script.finished.checkpoints)
