"""Writes docs/hardware-cost.md: bits of the dependence table and what they buy."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from pysim import stats
from pysim.stats.studies.hardware import markdown, sections

from .readme import write_found
from .writing import DOCS, replace, shown


def write() -> None:
    """Write the tables and the picture of docs/hardware-cost.md."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "table.h5"
        shown("table_size", path, "--picture", "yes")
        shutil.copyfile(path.with_suffix(".png"), DOCS / "hardware_cost.png")
        results = stats.load(path)
        tables = {table: results.array(table) for table in results}
    made, rows = sections(tables), tables["table_size"]
    known = dict.fromkeys((row["network"].decode(), row["workload"].decode()) for row in rows)
    texts = [f"- {network}: `{workload}`" for network, workload in known]
    blocks = {section.name: markdown(section) for section in made}
    replace(DOCS / "hardware-cost.md", blocks | {"texts": "\n".join(texts)})
    write_found()
