"""How small may the dependence table be? Points of its sizes and speeds, and the search for the smallest one.

A point is a network under a scheme with some parameters set. What a point costs in bits follows from the
declared fields (``hardware``) and the network alone, so only times are simulated.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from pysim import Config, Job, simulate
from pysim.dependence.dependences import Dependences, dependences
from pysim.errors import InternalError, SimError
from pysim.schemes import hardware_cost
from pysim.schemes.hardware_cost import Sizes, Structure
from pysim.schemes.registry import parse_scheme
from pysim.workloads.registry import make
from pysim.workloads.validation import cache, kept
from pysim.workloads.validation.kept import Figures

ALL = 1 << 20  # kernels in the window: more than any network here has
COUNTS = ("table_entries", "table_coarse", "table_shared", "table_spills", "l2_bytes", "dram_bytes")
FIGURES = ("time_us", *COUNTS, "table_l2_bytes")
TABLE = "tb_static"
WINDOW, ENTRIES, CONSUMERS = "scheme.window", "scheme.table.entries", "scheme.table.consumers"
UPDATE, LATENCY = "scheme.table.update", "scheme.table.latency"


class Network(NamedTuple):
    """A network of the study: its workload, and one of its kind that takes a moment."""

    text: str
    quick: str


NETWORKS = {
    "gru": Network("gru:hidden=512,batch=16,timesteps=4", "gru:hidden=64,batch=4,timesteps=2,layers=2"),
    "gru-own": Network(
        "gru:hidden=256,batch=8,timesteps=8,buffers=8", "gru:hidden=64,batch=4,timesteps=3,buffers=3"
    ),
    "lstm": Network(
        "lstm:hidden=256,batch=8,timesteps=8,layers=3,input=per-step",
        "lstm:hidden=64,batch=4,timesteps=2,layers=2,input=per-step",
    ),
    "transformer": Network(
        "transformer:layers=2,hidden=512,heads=8,sequence=128,batch=2",
        "transformer:layers=1,hidden=64,heads=2,sequence=32,batch=1,ffn=128",
    ),
    "mlp": Network("mlp:layers=8,width=1024,batch=128", "mlp:layers=3,width=128,batch=32"),
    "alexnet": Network("alexnet:width=128,thin=4", "alexnet:width=128,thin=8"),
    "nw": Network("nw:n=512", "nw:n=128"),
}


class Dimension(NamedTuple):
    """What is swept: values as shown; ``cycles``: they are SM cycles of a parameter in ns."""

    name: str
    path: str
    values: tuple[int, ...]
    doc: str
    cycles: bool = False
    scheme: str = TABLE


_CYCLES = (1, 10, 30, 100, 1000)
DIMENSIONS = (
    Dimension("entries", ENTRIES, tuple(512 << i for i in range(8)), "entries of the table"),
    Dimension("consumers", CONSUMERS, tuple(1 << i for i in range(7)), "consumer ranges an entry"),
    Dimension("window", WINDOW, (2, 4, 8, 16, 32, 64, ALL), "kernels in the window"),
    Dimension("latency", LATENCY, _CYCLES, "cycles from an update to the TB being ready", True),
    Dimension(
        "fetch",
        ENTRIES,
        (64, 256, 512, 1024, 4096, 16384),
        "the same, the rest in memory",
        scheme=f"{TABLE}:fetch",
    ),
    Dimension("update", UPDATE, _CYCLES, "cycles the table takes for a counter, one after another", True),
)
OPTIONS = (
    "tb_static", "tb_static:balanced", "tb_static:affinity", "tb_static:prologue",
    "tb_static:balanced+prologue", "pool", "pool:balanced",
)  # fmt: skip
OTHERS = ("graph", "acs_hw", "blockmaestro", "tb_learned", "tb_bloom", "tb_ideal")


@dataclass(frozen=True, slots=True)
class Point:
    """A simulation: ``text`` names the workload, ``settings`` are parameters that differ from the call's."""

    text: str
    scheme: str
    settings: tuple[tuple[str, float], ...] = ()

    def with_(self, path: str, value: float) -> Point:
        """Return the point with one more parameter set."""
        made = dict(self.settings) | {path: value}
        return replace(self, settings=tuple(sorted(made.items())))

    def config(self, config: Config) -> Config:
        """Return the configuration of the simulation."""
        return config.replaced(dict(self.settings)) if self.settings else config


@lru_cache(maxsize=64)
def built(text: str, config: Config) -> tuple[Job, Dependences]:
    """Return a job for a configured GPU and its dependences, made once."""
    job = make(text, config)
    return job, dependences(job)


def simulated(config: Config, point: Point) -> Figures:
    """Simulate a point; what the simulator refuses is an outcome without figures."""
    try:
        job, deps = built(point.text, config)
        made = simulate(
            point.config(config), job, point.scheme, threads=1, tables="learned,bloom",
            baseline=False, deps=deps,
        ).listed()  # fmt: skip
    except InternalError as error:
        return Figures(reason=f"failed: {error}", trace=traceback.format_exc())
    except SimError as error:
        return Figures(reason=" ".join(str(error).split()))
    row = made["runs"][0]
    if row["status"] != b"ok":
        return Figures(reason=row["reason"].decode())
    values = {name: float(row[name]) for name in FIGURES}
    if len(made["learned"]):
        values |= {name: float(made["learned"][0][name]) for name in ("signatures", "recorded_bytes")}
    return Figures(values=values)


def all_of(
    points: Iterable[Point],
    config: Config,
    processes: int,
    fresh: bool,
    progress: Callable[[int, int], None],
) -> dict[Point, Figures]:
    """Return what each point gave: what is kept from earlier runs, and the others simulated."""
    keys = {p: cache.key_of("table_size", (p.text, p.scheme), p.config(config)) for p in points}
    return kept.all_of(partial(simulated, config), keys, processes, fresh, progress)


def sizes_of(text: str, config: Config, values: Mapping[str, int]) -> Sizes:
    """Return what the widths of fields follow from; ``values``: encoded parameters of the point."""
    job, deps = built(text, config)
    counts = np.diff(deps.groups.producer_ptr)
    return Sizes.of(job, int(counts.max(initial=1)), values)


def structures(point: Point, config: Config, figures: Figures) -> list[Structure]:
    """Return what a point's scheme keeps, each structure at its configured size."""
    choice = parse_scheme(point.scheme)
    values = point.config(config).replaced(choice.pins).encoded()
    counts = {key: int(figures.values.get(key, 0)) for key in ("signatures", "recorded_bytes")}
    counts["references"] = len(built(point.text, config)[1].tb_outs)
    return choice.structures(sizes_of(point.text, config, values), values, counts)


def price(point: Point, config: Config, figures: Figures | None = None) -> int:
    """Return the bits on the chip that a point's scheme takes."""
    return hardware_cost.on_chip_bits(structures(point, config, figures or Figures()))


def swept(text: str, dimension: Dimension, config: Config) -> dict[int, Point]:
    """Return the points of a sweep around the call's configuration, by value as shown."""
    scale = 1e3 / config.number("gpu.clock") if dimension.cycles else 1
    return {
        value: Point(text, dimension.scheme).with_(dimension.path, value * scale)
        for value in dimension.values
    }


def thinned(dimensions: Sequence[Dimension]) -> list[Dimension]:
    """Return the dimensions with their first, middle and last values."""
    return [d._replace(values=(d.values[0], d.values[len(d.values) // 2], d.values[-1])) for d in dimensions]


def gains(found: Mapping[Point, Figures], text: str) -> Callable[[Point], float]:
    """Return a function: which share of the time from `stream` to `tb_ideal` a point wins; nan without."""
    base, best = (
        found[Point(text, scheme)].values.get("time_us", np.nan) for scheme in ("stream", "tb_ideal")
    )
    room = base - best

    def gain(point: Point) -> float:
        time = found[point].values.get("time_us", np.nan) if point in found else np.nan
        return float((base - time) / room) if room > 0 else float("nan")

    return gain
