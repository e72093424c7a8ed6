"""The result of one call of ``simulate``: tables of all its runs."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.dependence.dependences import dependences
from pysim.errors import ConfigError, MissingLibraryError
from pysim.schemes.auto.pair_forms import REASONS
from pysim.schemes.registry import parse_scheme

from .columns import Column
from .schema import DTYPES, RECORDED, TABLES
from .tables import tb_waits

if TYPE_CHECKING:
    import os

    import pandas as pd
    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job

    Table = NDArray[np.void]

WAITS = ("launch", "dependence", "slot", "dispatch")


@dataclass(slots=True, repr=False)
class Result:
    """Tables of one or more runs of a job, one run a scheme; prints itself as the table of its runs.

    ``tables()`` are structured arrays by name, ``frame(name)`` is one of them as a pandas frame, ``time_us``
    the time of a scheme and ``explain`` what a TB waited for. ``notes`` are lines for the user: what was left
    out, races, how replay went. ``docs/parameters.md`` and ``pysim.stats.schema`` list columns and units.
    ``to_file`` writes all of it, as scripts do. It is pickled where its job can be (``pysim.Job``), without
    ``deps``, which are computed anew where they are asked for; ``tables()`` can always be pickled.
    """

    job: Job
    config: Config
    deps: Dependences
    parts: dict[str, list[Table]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unlisted: tuple[int, ...] = ()
    interrupted: bool = False

    def __repr__(self) -> str:
        """Return the listed runs as a table, the notes, and the names of the other tables."""
        rows = self.listed()["runs"]
        head = f"{self.job.name} on {self.config.device.name}"
        cells = [("scheme", "time", "speedup", "")]
        for row in rows.tolist():
            each = dict(zip(rows.dtype.names or (), row, strict=True))
            ran = each["status"] == b"ok"
            cells.append(
                (
                    each["scheme"].decode(),
                    f"{each['time_us']:,.2f} us" if ran else each["status"].decode(),
                    f"{each['speedup']:.3f}x" if math.isfinite(each["speedup"]) else "",
                    "" if ran else each["reason"].decode(),
                )
            )
        wide = [max(len(line[i]) for line in cells) for i in range(3)]
        lines = [
            f"{name:<{wide[0]}}  {time:>{wide[1]}}  {gain:>{wide[2]}}  {why}".rstrip()
            for name, time, gain, why in cells
        ]
        held = ", ".join(f"{name} ({len(rows)})" for name, rows in self.tables().items() if len(rows))
        return "\n".join((head, *lines, *self.notes, f"tables (rows): {held}"))

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the dependences, which follow from the job and may be larger than the tables."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "deps"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the fields of a pickled result."""
        for name, value in state.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Compute the dependences of a result that was unpickled; called for what is not set."""
        if name != "deps" or not hasattr(self, "job"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.deps = dependences(self.job)
        return self.deps

    def add(self, name: str, rows: Table) -> None:
        """Append rows to a table."""
        self.parts.setdefault(name, []).append(rows)

    def tables(self) -> dict[str, Table]:
        """Return all tables as structured arrays, by name."""
        made: dict[str, Table] = {}
        for name, kind in DTYPES.items():
            parts = self.parts.get(name, [])
            if parts:
                made[name] = np.concatenate(parts)
            elif name not in RECORDED:
                made[name] = np.zeros(0, kind)
        return made

    def listed(self) -> dict[str, Table]:
        """Return the tables without the runs that were not listed (``stream``, made only for ``speedup``)."""
        made = self.tables()
        if not self.unlisted:
            return made
        return {name: rows[~np.isin(rows["run"], self.unlisted)] for name, rows in made.items()}

    def frame(self, name: str) -> pd.DataFrame:
        """Return a table as a pandas DataFrame, texts as ``str``; its ``attrs`` hold ``units`` and ``docs``.

        Raises ConfigError for a table that there is not, MissingLibraryError where pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingLibraryError("frame()", "pandas", "plot") from error

        rows = self.tables()
        if name not in rows:
            raise ConfigError(f"no table {name!r}: there are {', '.join(rows)}")
        frame = pd.DataFrame({column: rows[name][column] for column in rows[name].dtype.names or ()})
        for column in frame.columns:
            if rows[name].dtype[column].kind == "S":
                frame[column] = frame[column].str.decode("utf-8")
        frame.attrs["units"] = {column.name: column.unit for column in TABLES[name]}
        frame.attrs["docs"] = {column.name: column.doc for column in TABLES[name]}
        return frame

    @property
    def configuration(self) -> dict[str, Any]:
        """What decides the result: the workload, the schemes and all parameters; a file holds it, too."""
        from .result_file import configuration_of

        return configuration_of(self.tables(), self.job, self.config)

    def columns(self, name: str) -> tuple[Column, ...]:
        """Return the columns of a table: name, numpy type, unit and meaning; ConfigError if there is none."""
        if name not in self.tables():
            raise ConfigError(f"no table {name!r}: there are {', '.join(self.tables())}")
        return TABLES[name]

    def to_file(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the result to FILE.h5, as scripts do, and its configuration to FILE.json beside it.

        ``pysim.stats.load(path)`` has the tables of ``tables()``, units and meanings, and ``configuration``:
        the parameters of the machine, the schemes, and the call of ``pysim.workloads.make``, from which
        ``pysim dependences FILE.h5`` makes the job again. Equal results give equal bytes but for the table
        ``host``. The file is written whole or not at all.

        Raises OutputError where the file cannot be written, or there is one with other results (without
        ``force``).
        """
        from .result_file import attributes, write

        write(path, self.tables(), attributes(self.deps, self.interrupted), self.configuration, force)

    def report(
        self, target: str | os.PathLike[str], *, most_tbs: int | None = None, force: bool = False
    ) -> Any:
        """Write the report, one HTML file that needs no network, of the runs that were asked for.

        It shows a summary, timelines, all edges between TBs, a comparison and a roofline
        (``docs/report.md``). ``most_tbs``: of a timeline (default: 300,000); of a larger run some SMs are
        left out. Returns a ``pysim.stats.page.Page``, which a notebook shows. Raises OutputError where the
        file is there already (``force`` replaces it) or cannot be written.
        """
        from .result_file import report

        return report(target, self.listed(), self.job, self.config, self.deps, most_tbs, force)

    def picture(self, kind: str = "occupancy") -> Any:
        """Return the picture that scripts draw of the listed runs, a ``pysim.stats.Picture``.

        A notebook shows it, and ``save(path)`` writes it as PNG. ``kind``: ``occupancy`` over time, or
        ``schemes`` beside each other. Raises ConfigError for another kind and where no run can be drawn,
        MissingLibraryError without matplotlib.
        """
        from .result_file import picture

        return picture(self.listed(), kind, f"{self.job.name} on {self.config.device.title}")

    @property
    def hash(self) -> str:
        """SHA-256 of all tables but ``host``: equal for equal runs on any machine."""
        digest = hashlib.sha256()
        for name, rows in self.tables().items():
            if name != "host":
                digest.update(name.encode() + str(rows.dtype.descr).encode() + rows.tobytes())
        return digest.hexdigest()

    def run_of(self, scheme: str) -> int:
        """Return the row of ``runs`` of a scheme; ConfigError if it was not run."""
        names = [name.decode() for name in self.tables()["runs"]["scheme"].tolist()]
        if scheme not in names:
            raise ConfigError(f"no run of scheme {scheme!r}: there are {', '.join(names)}")
        return names.index(scheme)

    def time_us(self, scheme: str) -> float:
        """Return the simulated time of a scheme in microseconds, NaN if it was refused."""
        return float(self.tables()["runs"]["time_us"][self.run_of(scheme)])

    def explain(self, scheme: str, kernel: int, tb: int) -> str:
        """Return a text of when a TB ran and what it waited for.

        Raises ConfigError for a scheme that was not run, or for a kernel or TB that there is not.
        """
        if not 0 <= kernel < len(self.job.kernels):
            raise ConfigError(f"no kernel {kernel}: there are 0 to {len(self.job.kernels) - 1}")
        launch = self.job.kernels[kernel]
        if not 0 <= tb < launch.tbs:
            raise ConfigError(
                f"kernel {kernel} ({launch.name}) has no TB {tb}: there are 0 to {launch.tbs - 1}"
            )
        rows = self.tables()["tbs"]
        found = rows[(rows["run"] == self.run_of(scheme)) & (rows["kernel"] == kernel) & (rows["tb"] == tb)]
        lines = [f"{scheme}: kernel {kernel} ({launch.name}), TB {tb} of {launch.tbs}"]
        if launch.copy is not None:
            lines.append(f"  a copy from the host of {launch.copy.nbytes:,} B: it runs on no SM")
        elif len(found):
            barriers = parse_scheme(scheme).scheme.kernels_wait
            lines += self._waits(found, self.run_of(scheme), barriers)
        else:
            lines.append("  no record of this TB was kept")
        needs: dict[int, list[int]] = {}
        for before, number in self.deps.producers(kernel, tb):
            needs.setdefault(before, []).append(number)
        for before, numbers in needs.items():
            whole = len(numbers) == self.job.kernels[before].tbs
            text = "all TBs" if whole else f"TB {_ranges(numbers)}"
            lines.append(f"  its data needs kernel {before} ({self.job.kernels[before].name}), {text}")
        if not needs:
            lines.append("  its data needs no other kernel")
        return "\n".join([*lines, *self._chosen(self.run_of(scheme), kernel)])

    def _chosen(self, run: int, kernel: int) -> list[str]:
        """Return lines of which edges a scheme that chooses gave a kernel, and why."""
        rows = self.tables().get("decisions", np.zeros(0, DTYPES["decisions"]))
        lines = []
        for row in rows[(rows["run"] == run) & (rows["kernel"] == kernel)].tolist():
            _, _, before, form, reason, share, rules = row
            edge = {b"tb": "edges between TBs", b"kernel": "a kernel edge", b"none": "no edge"}[form]
            more = f" (share {share:.3g}, {rules} rule{'s' if rules != 1 else ''})"
            word = reason.decode()
            name = self.job.kernels[before].name
            lines.append(f"  {edge} to kernel {before} ({name}): {word}: {REASONS[word].text}{more}")
        return lines

    def _waits(self, found: Table, run: int, barriers: bool) -> list[str]:
        """Return lines of how long a TB (a row of ``tbs``) waited for what."""
        row: Any = found[0]
        kernels = self.tables()["kernels"]
        kernels = kernels[kernels["run"] == run]
        last, whom = int(row["last_kernel"]), ""
        if last >= 0:
            number = "" if row["last_tb"] < 0 else f"TB {row['last_tb']} of "
            whom = f"  on {number}kernel {last} ({self.job.kernels[last].name})"
        # not every selection of tables holds the kernels; then admission counts as ready
        admitted, ended = row["ready_ns"], -1.0
        if len(kernels):
            admitted = kernels["admitted_us"][row["kernel"]] * 1e3
            ended = kernels["complete_us"][last] * 1e3 if last >= 0 else -1.0
        waits = tb_waits(
            np.array([admitted]),
            found["ready_ns"],
            found["dispatch_ns"],
            found["start_ns"],
            np.array([ended]) if barriers else None,
        )[0]
        times = [
            (name, wait, whom if name == "dependence" else "")
            for name, wait in zip(WAITS, waits, strict=True)
        ]
        begun, ready = row["start_ns"], row["ready_ns"]
        if ready > begun:  # it was dispatched ahead of its gate, and waited inside
            begin = row["dispatch_ns"]
            times = [
                ("launch", admitted, ""),
                ("slot", begin - admitted, "  ahead of its gate"),
                ("dispatch", begun - begin, ""),
                ("inside", ready - begun, whom),
            ]
            begun = ready
        times.append(("ran", row["end_ns"] - begun, f"  on SM {row['sm']}, to {row['end_ns'] / 1e3:,.3f} us"))
        return [f"  {name:<10} {time / 1e3:12,.3f} us{text}" for name, time, text in times]


def _ranges(numbers: list[int]) -> str:
    """Return 1, 2, 3, 7 as the text 1-3, 7; beyond six ranges only the count."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs[:6])
    return text + (f", ... ({len(numbers)} TBs)" if len(runs) > 6 else "")
