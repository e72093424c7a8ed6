"""Writes the report: result files in, one HTML file out.

``page.html.j2`` is the page, ``style.css`` its looks, and ``script/`` what it does; ``SCRIPTS`` gives their
order. Nothing in the page depends on the time or the machine: same results, same bytes.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pysim.stats.errors import StoreError, as_path
from pysim.stats.pictures.occupancy import PALETTE
from pysim.stats.schema import Table
from pysim.stats.store import Results
from pysim.stats.whole_file import check_target, write_bytes

from .blob import Blob
from .edges import MOST_ENTRIES, Edges, kernel_edges
from .roofline import roofline
from .run import MOST_TBS, rows_of, run_part
from .series import series_part
from .summary import PART_COLOURS, PARTS, files_of_page, run_labels, summary
from .sweep import Sweep

SCRIPTS = (
    "format",
    "blob",
    "colours",
    "model",
    "axis",
    "raster",
    "arrows",
    "detail",
    "search",
    "shared",
    "controls",
    "timeline",
    "plot",
    "series_data",
    "series_zoom",
    "series",
    "roofline_picture",
    "roofline",
    "graph_layout",
    "kernel_graph",
    "graph_panel",
    "alignment",
    "comparison",
    "sweep_values",
    "sweep",
    "main",
)
STYLES = ("style.css", "panels.css")
MOST_INLINE = 3_000_000  # bytes of a page that a notebook shows
MOST_RUNS = 16  # runs that are drawn; the summary has all


@dataclass(slots=True)
class Recording:
    """A result file of the page. ``edges``: of its job; ``no_edges``: why there are none."""

    results: Results
    label: str = ""
    edges: Edges | None = None
    no_edges: str = "the report was written without the job"


@dataclass(slots=True, repr=False)
class Page:
    """What the template gets: facts for the static part, ``data`` and ``blobs`` for the script."""

    title: str
    files: list[dict[str, Any]]
    summary: dict[str, Any]
    data: dict[str, Any]
    blobs: dict[str, Blob] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    meanings: dict[str, tuple[str, str]] = field(default_factory=dict)
    path: Path | None = None

    def __repr__(self) -> str:
        where = "" if self.path is None else f" in {self.path}: open it in a browser"
        return f"<Page: {self.title}{where}>"

    def _repr_html_(self) -> str:
        """Show the page in a notebook; a large one is only named."""
        if self.path is None or not self.path.is_file():
            return html.escape(self.title)
        if self.path.stat().st_size > MOST_INLINE:
            return f"{html.escape(self.title)}: open {html.escape(str(self.path))} in a browser"
        source = html.escape(self.path.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{source}" width="100%" height="700" style="border:0"></iframe>'


def write_report(
    recordings: Sequence[Recording],
    target: str | os.PathLike[str],
    most_tbs: int = MOST_TBS,
    force: bool = False,
    sweep: Sweep | None = None,
    meanings: Mapping[str, tuple[str, str]] | None = None,
) -> Page:
    """Write a report of result files to an HTML file, whole or not at all; return what it shows.

    ``most_tbs``: of a run; beyond it whole SMs are left out of its timeline, and the page says so.
    ``sweep``: all points of a sweep, of which ``recordings`` are one; ``meanings``: unit and meaning of
    parameters by path, which files do not hold. Raises
    StoreError where ``target`` is there already (``force`` replaces it) or cannot be written, and for results
    without a run.
    """
    path = as_path(target)
    if type(most_tbs) is not int or most_tbs < 1:
        raise StoreError(f"most_tbs must be a positive integer, not {most_tbs!r}")
    check_target(path, force)
    page = make_page(recordings, most_tbs, sweep)
    page.meanings, page.path = dict(meanings or {}), path
    data = render(page).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    write_bytes(path, data)
    return page


def make_page(recordings: Sequence[Recording], most_tbs: int = MOST_TBS, sweep: Sweep | None = None) -> Page:
    """Return the content of a report. Raises StoreError for results without a run."""
    runs: list[dict[str, Any]] = []
    blobs: dict[str, Blob] = {}
    notes: list[str] = []
    graphs: list[str | None] = []
    between: dict[Blob, str] = {}
    for number, recording in enumerate(recordings):
        if "runs" not in recording.results:
            raise StoreError(f"{recording.results.path} has no table runs: there is nothing to show")
        graph = _graph_note(recording)
        if recording.edges is not None and graph is None:
            blobs[f"edges{number}"] = recording.edges.blob()
        graphs.append(graph)
        for row in recording.results.array("runs"):
            if row["status"] != b"ok" or len(runs) == MOST_RUNS:
                continue
            part = run_part(recording.results, row, len(runs), most_tbs)
            series = series_part(recording.results, row, len(runs))
            about: dict[str, Any] = {"file": number, "graph": graph is None and _has_graph(recording, row)}
            about |= {"roofline": roofline(recording.results, row), "kernel_graph": None}
            blobs |= part.blobs | series.blobs
            edges = kernel_edges(recording.results, int(row["run"]))
            if edges is not None:  # those of runs with the same launches are in the page once
                name = between.setdefault(edges, f"kernel_edges{len(runs)}")
                about["kernel_graph"], blobs[name] = name, edges
            runs.append(part.about | series.about | about)
    files = files_of_page([(each.label, each.results) for each in recordings])
    shown = summary(files, [each.results for each in recordings])
    good = [row for row in shown["rows"] if row["status"] == "ok"][: len(runs)]
    for run, label in zip(runs, run_labels(good, files, shown["many"]), strict=True):
        run["label"] = label
    notes += _notes(runs, shown)
    if sweep is None and len(recordings) == 1:
        sweep = Sweep.of_results(recordings[0].results)
    data = {
        "sweep": None if sweep is None else sweep.data(),
        "runs": runs,
        "files": [{**file, "graph_note": graph} for file, graph in zip(files, graphs, strict=True)],
        "shares": PARTS,
        "palette": PALETTE,
        "stall_colours": PART_COLOURS,
        "blobs": {name: made.layout for name, made in blobs.items()},
    }
    title = shown["title"] if sweep is None else sweep.title()
    return Page(title, files, shown, data, blobs, notes)


def _graph_note(recording: Recording) -> str | None:
    """Return why the page has no edges of this file; None: it has them."""
    if recording.edges is None:
        return recording.no_edges
    if recording.edges.entries > MOST_ENTRIES:
        return f"the job has {recording.edges.entries:,} producers and consumers, too many for a page"
    return None


def _has_graph(recording: Recording, row: Table) -> bool:
    """Return whether a run launched the kernels of the job's graph: fused ones are others."""
    kernels = rows_of(recording.results, "kernels", int(row["run"]))
    return recording.edges is not None and bool(len(kernels)) and recording.edges.fits(kernels["tbs"])


def _notes(runs: Sequence[Mapping[str, Any]], shown: Mapping[str, Any]) -> list[str]:
    notes = []
    for run in runs:
        if 0 < run["shown"] < run["tbs"]:
            notes.append(
                f"{run['label']}: the timeline shows {run['shown']:,} of {run['tbs']:,} TBs:"
                f" {len(run['sms'])} of {run['all_sms']} SMs with a TB; all other figures count all of them."
            )
    if any(run.get("inferred") for run in runs):
        notes.append(
            "A file of an older version does not say which schemes order whole kernels: how waits are divided"
            " between launch and other TBs is inferred from when TBs were ready."
        )
    good = sum(row["status"] == "ok" for row in shown["rows"])
    if good > len(runs):
        notes.append(f"Timelines show the first {len(runs)} of {good:,} runs.")
    return notes


def render(page: Page) -> str:
    """Return the page as HTML. Raises StoreError where jinja2 is not installed."""
    from importlib import resources

    import jinja2

    here = resources.files(__package__ or "stats.page")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (here / name).read_text(encoding="utf-8")),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    script = "\n".join((here / "script" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    return environment.get_template("page.html.j2").render(
        page=page,
        data=_for_script(page.data),
        style="\n".join((here / name).read_text(encoding="utf-8") for name in STYLES),
        script=script,
    )


def _for_script(data: Mapping[str, Any]) -> str:
    """Return JSON that may stand inside a script element: it holds no <."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
