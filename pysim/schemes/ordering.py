"""From a scheme and a job to the core's ordering tables: who waits for whom, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.params import PARAMS

from . import hardware_cost
from .aql_queues import packets
from .blockmaestro import adjacent
from .bloom import signature_bytes
from .kernel_window import conflicts
from .order import in_memory, order_of, preds_of
from .wavefront_levels import sequence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job

    from .coarsening import Forms
    from .edge_discovery import Found
    from .registry import Scheme

QUEUE_MAPS = next(p for p in PARAMS["scheme.queues"] if p.name == "map").choices
PRIORITIES = next(p for p in PARAMS["scheme.blockmaestro"] if p.name == "priority").choices
ADDRESSES = next(p for p in PARAMS["scheme.blockmaestro"] if p.name == "addresses").choices
UNLIMITED = 1 << 32


@dataclass(slots=True)
class Ordering:
    """What the core needs to know; lists hold one entry a kernel.

    ``preds``: kernels that it waits for; ``nodes``: group nodes for its TBs, None without; ``order``: fields
    of ``gs_order``; ``launches``: fields of ``gs_launch``; ``entry_bytes``: of the table, ``list_bytes``: of
    its second buffer; ``priority``: the scheme's own; ``merged``: TBs of all kernels take as much of an SM;
    ``sequence``: all TBs, as ``gs_job`` wants them; ``hints``: the core's tables of them; ``forms``: coarser
    ones of the nodes.
    """

    preds: Sequence[Sequence[int]]
    order: dict[str, int]
    nodes: Dependences | None = None
    launches: dict[str, Any] = field(default_factory=dict)
    entry_bytes: float = 0.0
    list_bytes: float = 0.0
    priority: str = ""
    merged: bool = False
    sequence: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    hints: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    forms: Forms | None = None

    def fill(self, launches: NDArray[np.void]) -> dict[str, NDArray[Any]]:
        """Fill the launches' own fields and return the tables of nodes."""
        from pysim._ffi import dtype_of

        for name, column in self.launches.items():
            launches[name] = column
        made: dict[str, NDArray[Any]] = {n: np.zeros(0, np.uint32) for n in ("outs", "tb_out_ptr", "tb_outs")}
        own = ("nodes", "ranges", "forms", "links")
        made |= {name: np.zeros(0, dtype_of(f"gs_{name[:-1]}")) for name in own}
        more = {"sequence": self.sequence, **self.hints}
        if self.nodes is None:
            return made | more
        for name in ("node", "out"):
            launches[f"first_{name}"] = getattr(self.nodes, f"{name}_first")
            launches[f"{name}s"] = getattr(self.nodes, f"{name}_count")
        launches["first_tb_out"] = self.nodes.tb_out_first
        made |= {name: getattr(self.nodes, name) for name in made if name not in ("forms", "links")}
        if self.forms is not None:
            for name, column in self.forms.launch.items():
                launches[name] = column
            for name in ("nodes", "ranges"):
                made[name] = np.concatenate((made[name], getattr(self.forms, name)))
            for name in ("forms", "links"):
                made[name] = np.array(getattr(self.forms, name), made[name].dtype)
        return made | more


def ordering_of(scheme: Scheme, job: Job, found: Found, values: Mapping[str, int]) -> Ordering:
    """Return how a scheme that does not wait inside the program orders a job."""
    order = order_of(scheme, job, values)
    if scheme.edges == "ranges":
        return _acs(scheme, job, values, order)
    if scheme.edges == "adjacent":
        return _blockmaestro(job, found.deps, values, order)
    if scheme.edges == "levels":
        return _wireframe(job, found.deps, values, order)
    if scheme.edges == "packets":
        return _queues(job, found.deps, values, order)
    preds = preds_of(scheme, job, found.deps)
    if scheme.edges == "tb":
        launches = {name: getattr(found, name) for name in ("barrier", "look_up", "enter")} | found.launch
        order["footprints"] = found.footprints
        if found.hints is not None:
            own = launches | found.hints.launch
            each = signature_bytes(values)
            return Ordering(preds, order, launches=own, entry_bytes=each, hints=found.hints.tables)
        entry, listed = values["scheme.table.entry_bytes"], order["list_bytes"]
        return Ordering(preds, order, found.deps, launches, entry, listed)
    if not scheme.table:
        if scheme.edges == "kernel" and values["scheme.build"]:
            edges = sum(map(len, preds))
            order["launch"] += len(preds) * values["host.graph_node"] + edges * values["host.graph_edge"]
        return Ordering(preds, order)
    whole = {"whole": [len(p) for p in preds]}
    return Ordering(preds, order, launches=whole, entry_bytes=values["scheme.table.entry_bytes"])


def _acs(scheme: Scheme, job: Job, values: Mapping[str, int], order: dict[str, int]) -> Ordering:
    """Return the order of a kernel window with range checks, in the command processor or on the host."""
    preds, segments = conflicts(job)
    size = values["scheme.acs.window"]
    order |= {"window": min(size, len(preds)), "entries": size}
    launches: dict[str, Any] = {"whole": [len(p) for p in preds]}
    if scheme.name == "acs_hw":
        # a slot takes a cycle for each other one: to look for those it waits for, and to forget one
        cycle = values["gpu.clock"]
        order["admit"] += size * cycle
        order |= {"end": (size - 1) * cycle, "ahead": values["scheme.acs.list"]}
        each = hardware_cost.each_bytes(hardware_cost.acs_slot(size))
        return Ordering(preds, order, launches=launches, entry_bytes=each)
    submit = values["host.launch"] + values["gpu.cp.launch"]
    order |= {
        "launch": 0,
        "reserve": 0,  # a newer kernel may hold the thread that the oldest waits for
        "admit": values["scheme.acs.insert"],
        "check": values["scheme.acs.check"],
        "launchers": values["scheme.acs.threads"],
        "submit": submit,
        # host.roundtrip is both: the end seen by the host, and the next launch
        "seen": max(0, values["host.roundtrip"] - submit),
        "update": 0,
        "latency": 0,
    }
    # the program only fills a queue in the host's memory; its kernels are launched by the threads
    launches |= {"segments": segments, "enqueued": [0] * len(preds)}
    return Ordering(preds, order, launches=launches)


def _blockmaestro(job: Job, deps: Dependences, values: Mapping[str, int], order: dict[str, int]) -> Ordering:
    """Return the order of kernels that are launched ahead, with edges between neighbours."""
    exact = ADDRESSES[values["scheme.blockmaestro.addresses"]] == "exact"
    unknown = [not (exact or kernel.affine) for kernel in job.kernels]
    made = adjacent(deps, values["scheme.blockmaestro.parents"], unknown)
    consumer = PRIORITIES[values["scheme.blockmaestro.priority"]] == "consumer"
    entries, children = values["scheme.blockmaestro.entries"], values["scheme.blockmaestro.children"]
    counter = hardware_cost.each_bytes(hardware_cost.blockmaestro_counter())
    listed = hardware_cost.each_bytes(hardware_cost.blockmaestro_list(children))
    order |= {
        "window": min(len(made.preds), values["scheme.blockmaestro.kernels"]),
        "in_order": 1,
        "prelaunch": values["gpu.cp.stream_gap"],
        "strict": int(not consumer),
        "rotate": 0,  # its own priority says who goes first, whatever scheme.priority
        "bypass": order["bypass"] if consumer else 0,
        "entries": UNLIMITED,
        "each": 1,
        "lists": entries,
        "counters": entries,
        "children": children,
        "entry_bytes": in_memory(counter),
        "list_bytes": in_memory(listed),
    }
    return Ordering(
        made.preds,
        order,
        made.deps,
        {"whole": made.whole},
        entry_bytes=counter,
        list_bytes=listed,
        priority="newest" if consumer else "oldest",
    )


def _wireframe(job: Job, deps: Dependences, values: Mapping[str, int], order: dict[str, int]) -> Ordering:
    """Return the order of one kernel of all TBs, with their graph given at its launch."""
    size = values["scheme.wireframe.node_bytes"]
    order |= {
        "window": len(job.kernels),
        "admit": 0,
        "reserve": 0,  # it is one kernel: there is no older one
        "entries": UNLIMITED,
        "nodes": values["scheme.wireframe.nodes"],
        "pending": values["scheme.wireframe.pending"],
        "entry_bytes": in_memory(size),
    }
    return Ordering(
        deps.preds,
        order,
        deps,
        {"enqueued": [0] * len(job.kernels)},
        entry_bytes=size,
        list_bytes=size,
        merged=True,
        sequence=sequence(job, deps),
    )


def _queues(job: Job, deps: Dependences, values: Mapping[str, int], order: dict[str, int]) -> Ordering:
    """Return the order of packets in queues, some of which have a slot in hardware."""
    by_stream = QUEUE_MAPS[values["scheme.queues.map"]] == "stream"
    count = len({k.stream for k in job.kernels}) if by_stream else values["scheme.queues.count"]
    made = packets(job, deps.preds, count, by_stream)
    order |= {
        "queues": count,
        "slots": values["scheme.queues.hardware"],
        "ring": values["scheme.queues.ring"],
        "aware": values["scheme.queues.aware"],
        "packet": values["scheme.queues.packet"],
        "quantum": values["scheme.queues.quantum"],
        "submit": values["host.launch"],
        "beside": values["gpu.cp.beside"],
    }
    return Ordering(made.preds, order, launches={"queue": made.queue, "packets": made.barriers})
