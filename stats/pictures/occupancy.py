"""Which kernel held each SM over time: arrays that `plot` draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pysim.stats.store import decode

# distinguishable for colour-blind readers, too (after Okabe and Ito, and Tol); none is near white or grey
PALETTE = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9",
    "#882255", "#999933", "#332288", "#8855EE", "#6B4423",
)  # fmt: skip
BINS = 1200
ZOOM_BINS = 480
ZOOM_LAUNCHES = 9  # kernel launches that the zoom of a panel shows
_HELD = ("dispatch_ns", "end_ns")  # from when until when a TB holds its place on an SM
_DARKER = 0.74  # every second launch of a kernel
_PALEST = 0.35
OTHER = "#808080"
Image = NDArray[np.float64]


class Panel(NamedTuple):
    """The rows of one run, by column: its TBs and its time series."""

    run: int
    title: str
    tbs: dict[str, NDArray[Any]]
    samples: dict[str, NDArray[Any]]


class Window(NamedTuple):
    """A stretch of time (us) that a picture shows, cut into bins."""

    start: float
    end: float
    bins: int = BINS


class Held(NamedTuple):
    """Filled cells of the picture: SM * bins + bin, the kernel shown there, and its mean number of TBs."""

    cell: NDArray[np.int64]
    kernel: NDArray[np.int64]
    tbs: NDArray[np.float64]


def zoom_window(panel: Panel, span: float) -> Window | None:
    """Return the middle of a run, long enough for ZOOM_LAUNCHES; None where the whole is hardly longer."""
    if not panel.tbs:
        return None
    launches, last = len(np.unique(panel.tbs["kernel"])), float(panel.tbs["end_ns"].max()) / 1e3
    long = last * ZOOM_LAUNCHES / launches
    return Window((last - long) / 2, (last + long) / 2, ZOOM_BINS) if 3 * long < span else None


def table_columns(tables: Mapping[str, Any], name: str) -> dict[str, NDArray[Any]]:
    """Columns of a table as arrays, strings decoded; empty if the table is missing or has no rows."""
    if name not in tables or not len(tables[name]):
        return {}
    table = tables[name]
    fields = table.dtype.names or () if isinstance(table, np.ndarray) else list(table.columns)
    return {str(field): decode(np.asarray(table[field])) for field in fields}


def of_run(columns: dict[str, NDArray[Any]], run: int) -> dict[str, NDArray[Any]]:
    """Return the rows of one run; empty if it has none."""
    if not columns:
        return {}
    mask = columns["run"] == run
    return {name: values[mask] for name, values in columns.items()} if mask.any() else {}


def kernel_names(results: Mapping[str, Any]) -> dict[int, NDArray[Any]]:
    """For each run the name of each of its kernels, by number."""
    kernels, names = table_columns(results, "kernels"), table_columns(results, "names")
    out: dict[int, NDArray[Any]] = {}
    texts = {}
    if names:
        texts = {
            (int(r), int(n)): str(t)
            for r, n, t in zip(names["run"], names["name"], names["text"], strict=True)
        }
    for run in np.unique(kernels["run"]) if kernels else ():
        part = of_run(kernels, int(run))
        mine = np.full(int(part["kernel"].max()) + 1, "kernel", dtype=object)
        for kernel, name in zip(part["kernel"], part["name"], strict=True):
            mine[int(kernel)] = (
                name if isinstance(name, str) else texts.get((int(run), int(name)), f"kernel {name}")
            )
        out[int(run)] = mine
    return out


def _names_of(panel: Panel, names: dict[int, NDArray[Any]]) -> NDArray[Any]:
    """Names by kernel number, long enough for all kernels that the TBs speak of."""
    size = int(panel.tbs["kernel"].max()) + 1
    mine = names.get(panel.run, np.empty(0, object))[:size]
    return np.concatenate([mine, np.full(size - len(mine), "kernel", dtype=object)])


def rank_kinds(panels: list[Panel], names: dict[int, NDArray[Any]]) -> list[str]:
    """Kernel names, those with most TB time first."""
    total: dict[str, float] = {}
    for panel in panels:
        if panel.tbs:
            mine = _names_of(panel, names)
            held = np.bincount(panel.tbs["kernel"], panel.tbs["end_ns"] - panel.tbs["dispatch_ns"], len(mine))
            for name, time in zip(mine, held, strict=True):
                if time > 0:
                    total[name] = total.get(name, 0.0) + float(time)
    return sorted(total, key=lambda name: (-total[name], name))


def full_residency(
    panels: list[Panel], held: dict[int, Held], names: dict[int, NDArray[Any]]
) -> dict[str, float]:
    """Most TBs of each kernel name on one SM in any bin, over all panels."""
    most: dict[str, float] = {}
    for panel in panels:
        if panel.tbs:
            mine, part = _names_of(panel, names), held[panel.run]
            top = np.zeros(len(mine))
            np.maximum.at(top, part.kernel, part.tbs)
            for kernel in np.unique(part.kernel):
                most[mine[kernel]] = max(most.get(mine[kernel], 0.0), float(top[kernel]))
    return most


def heaviest(panel: Panel, window: Window) -> Held:
    """For each SM and time bin the kernel whose TBs hold most time in it."""
    bins_here = window.bins
    tbs = panel.tbs
    kernels_here = int(tbs["kernel"].max()) + 1
    width = (window.end - window.start) * 1e3 / bins_here
    inside = (tbs["end_ns"] > window.start * 1e3) & (tbs["dispatch_ns"] <= window.end * 1e3)
    tbs = {name: values[inside] for name, values in tbs.items()}
    start, end = (np.maximum(tbs[name] / width - window.start * 1e3 / width, 0.0) for name in _HELD)
    first = np.clip(start.astype(np.int64), 0, bins_here - 1)
    last = np.clip(np.ceil(end).astype(np.int64) - 1, first, bins_here - 1)
    # one row for each bin that a TB touches
    spans = last - first + 1
    which = np.repeat(np.arange(len(spans)), spans)
    bins = first[which] + np.arange(len(which)) - np.repeat(np.cumsum(spans) - spans, spans)
    held = np.minimum(end[which], bins + 1) - np.maximum(start[which], bins)
    cell = tbs["sm"][which].astype(np.int64) * bins_here + bins
    key, inverse = np.unique(cell * kernels_here + tbs["kernel"][which], return_inverse=True)
    weight = np.bincount(inverse, held, len(key))
    # the heaviest kernel of each cell comes last
    order = np.lexsort((weight, key // kernels_here))
    key, weight = key[order], weight[order]
    cells = key // kernels_here
    final = np.append(cells[1:] != cells[:-1], True)
    return Held(cells[final], key[final] % kernels_here, weight[final])


def occupancy_image(
    panel: Panel,
    held: Held,
    names: dict[int, NDArray[Any]],
    shown: list[str],
    sms: int,
    full: dict[str, float],
    window: Window,
) -> Image:
    """Colours by SM and time bin: that of the kernel that holds the bin, paler with fewer TBs."""
    mine = _names_of(panel, names)
    place = {kind: index for index, kind in enumerate(shown)}
    colours = np.empty((len(mine), 3))
    most = np.array([full.get(name) or 1.0 for name in mine])
    launches: dict[str, int] = {}
    for kernel in np.unique(panel.tbs["kernel"]):
        name = mine[kernel]
        index = place.get(name, len(PALETTE))
        launches[name] = launches.get(name, 0) + 1
        colours[kernel] = _rgb(PALETTE[index] if index < len(PALETTE) else OTHER)
        if launches[name] % 2 == 0:
            colours[kernel] *= _DARKER
    strength = _PALEST + (1 - _PALEST) * np.clip(held.tbs / most[held.kernel], 0, 1)
    strength[held.tbs < 1e-3] = 0.0
    image = np.ones((sms * window.bins, 3))
    image[held.cell] = 1 - strength[:, None] * (1 - colours[held.kernel])
    return image.reshape(sms, window.bins, 3)


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue
