"""Results in memory: tables of all runs of one call."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .columns import DTYPES
from .errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from .config import Config
    from .dependences import Dependences
    from .job import Job

    Table = NDArray[np.void]

NAMES = ("runs", "kernels", "tbs", "sm", "l2", "samples", "stalls", "edges", "names", "host")


@dataclass(slots=True)
class Result:
    """Tables of one or more runs of a job (``tables()``), and what a TB waited for (``explain``)."""

    job: Job
    config: Config
    deps: Dependences
    parts: dict[str, list[Table]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unlisted: tuple[int, ...] = ()

    def add(self, name: str, rows: Table) -> None:
        """Append rows to a table."""
        self.parts.setdefault(name, []).append(rows)

    def tables(self) -> dict[str, Table]:
        """Return all tables as structured arrays, by name."""
        made: dict[str, Table] = {}
        for name in NAMES:
            parts = self.parts.get(name, [])
            if parts:
                made[name] = np.concatenate(parts)
            elif name in DTYPES:
                made[name] = np.zeros(0, DTYPES[name])
        return made

    def frame(self, name: str) -> pd.DataFrame:
        """Return a table as a pandas frame with texts as ``str``."""
        import pandas as pd

        rows = self.tables()
        if name not in rows:
            raise ConfigError(f"no table {name!r}: there are {', '.join(rows)}")
        frame = pd.DataFrame({column: rows[name][column] for column in rows[name].dtype.names or ()})
        for column in frame.columns:
            if rows[name].dtype[column].kind == "S":
                frame[column] = frame[column].str.decode("utf-8")
        return frame

    @property
    def hash(self) -> str:
        """Hash of all tables but ``host``: equal for equal runs, whatever the machine."""
        digest = hashlib.sha256()
        for name, rows in self.tables().items():
            if name != "host":
                digest.update(name.encode() + str(rows.dtype.descr).encode() + rows.tobytes())
        return digest.hexdigest()

    def run_of(self, scheme: str) -> int:
        """Return the row of ``runs`` of a scheme."""
        names = [name.decode() for name in self.tables()["runs"]["scheme"].tolist()]
        if scheme not in names:
            raise ConfigError(f"no run of scheme {scheme!r}: there are {', '.join(names)}")
        return names.index(scheme)

    def time_us(self, scheme: str) -> float:
        """Return the time of a scheme, NaN if it was refused."""
        return float(self.tables()["runs"]["time_us"][self.run_of(scheme)])

    def explain(self, scheme: str, kernel: int, tb: int) -> str:
        """Say when a TB ran and what it waited for."""
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
        if len(found):
            row: Any = found[0]
            lines.append(
                f"  ready {row['ready_ns']:.1f} ns, dispatched {row['dispatch_ns']:.1f} ns, started"
                f" {row['start_ns']:.1f} ns, ended {row['end_ns']:.1f} ns on SM {row['sm']}"
            )
            lines.append(f"  longest wait: {row['reason'].decode()}")
            if row["last_kernel"] >= 0:
                name = self.job.kernels[row["last_kernel"]].name
                last = "" if row["last_tb"] < 0 else f", TB {row['last_tb']}"
                lines.append(f"  made ready by the end of kernel {row['last_kernel']} ({name}){last}")
        else:
            lines.append("  no record of this TB was kept")
        needs: dict[int, list[int]] = {}
        for before, number in self.deps.producers(kernel, tb):
            needs.setdefault(before, []).append(number)
        for before, numbers in needs.items():
            some = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
            whole = len(numbers) == self.job.kernels[before].tbs
            text = "all TBs" if whole else f"{len(numbers)} TBs: {some}"
            lines.append(f"  needs kernel {before} ({self.job.kernels[before].name}): {text}")
        if not needs:
            lines.append("  needs no other kernel")
        return "\n".join(lines)
