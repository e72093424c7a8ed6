"""Scheme ``tb_auto``: hints alone, no profile; the form of every edge is chosen at admission."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pysim.dependence.dependences import dependences
from pysim.dependence.intra_kernel_sync import inherit_producers
from pysim.schemes import hardware_cost
from pysim.schemes.dependence_table import TableScheme
from pysim.schemes.hardware_cost import Field, Structure, bits_for
from pysim.schemes.in_kernel_sync import intra_kernel_plan
from pysim.schemes.known_edges import ChosenForms, KnownEdges
from pysim.schemes.learned import without_barrier_edges
from pysim.schemes.options import COHERENCE, PRIORITIES, SchemeOption
from pysim.schemes.scheme import COHERENCE as POLICIES

from .hints import LEAST, WORD_BITS, launch_hints
from .pair_forms import choose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job
    from pysim.schemes.core_tables import CoreTables
    from pysim.schemes.hardware_cost import Sizes
    from pysim.schemes.launch_plan import LaunchPlan

    from .hints import LaunchHints
    from .pair_forms import Forms


def _admission_ticks(
    job: Job, count: NDArray[np.int64], forms: Forms, values: Mapping[str, int]
) -> NDArray[np.uint64]:
    """Return the ticks by which the admission of each launch waits for its edges; ``count``: its hints.

    Hints of a launch are compared, and its rules computed, while the command processor reads the launch
    before (``gpu.cp.admit``): only what takes longer delays it, and the first launch by the whole pipeline.
    """
    # each hint is compared with those of the launches that may be unfinished
    before = np.concatenate(([0], np.cumsum(count)))
    first = np.maximum(np.arange(len(count)) - values["scheme.window"] + 1, 0)
    spent = count * (before[:-1] - before[first]) * values["scheme.auto.compare"]
    spent += np.array(forms.computed, np.int64) * values["scheme.auto.rule"]
    # an untimed copy takes no time here either
    paid = np.array([kernel.copy is None or kernel.copy.timed for kernel in job.kernels], bool)
    spent = np.where(paid, np.maximum(spent - values["gpu.cp.admit"], 0), 0)
    stated = np.flatnonzero(paid & (count > 0))
    spent[stated[:1]] += values["scheme.auto.latency"]
    return spent.astype(np.uint64)


def _evaluation_ticks(
    job: Job, hints: LaunchHints, forms: Forms, values: Mapping[str, int]
) -> NDArray[np.uint64]:
    """Return the ticks in which the scheduler computes what the end of a TB of each launch counts down."""
    spent = np.zeros(len(job.kernels), np.uint64)
    for pair in forms.pairs:
        if pair.form == "tb" and job.kernels[pair.producer].copy is None:
            spent[pair.producer] += np.uint64(
                hints.evaluated(pair.kernel, pair.producer) * values["scheme.auto.evaluate"]
            )
    return spent


def _chosen(forms: Forms, hints: LaunchHints) -> ChosenForms:
    """Return the forms of all pairs as tables have them."""
    pairs = forms.pairs
    return ChosenForms(
        np.array([pair.kernel for pair in pairs], np.int64),
        np.array([pair.producer for pair in pairs], np.int64),
        np.array([pair.form.encode() for pair in pairs], np.bytes_),
        np.array([pair.reason.encode() for pair in pairs], np.bytes_),
        np.array([pair.share for pair in pairs], np.float64),
        np.array([pair.rules for pair in pairs], np.int64),
        hints.count,
        hints.packet_bytes,
        forms.peak_rules,
        forms.peak_tbs,
    )


def _of_table(values: Mapping[str, int]) -> dict[str, int]:
    """Return the parameters with the table's: counters of its own, of which each kernel may take all.

    It takes the exact form, unless the first kernels of the window take too many (``scheme.auto.ahead``). An
    entry has any number of ranges, as rules say what a counter releases.
    """
    return {
        **values,
        "scheme.table.entries": values["scheme.auto.counters"],
        "scheme.table.share": 65536,
        "scheme.table.consumers": 65536,
    }


class AutoTable(TableScheme):
    """The dependence table with edges from hints, in the form that pays."""

    lists_fetched: ClassVar[bool] = False
    coherence_ahead: ClassVar[tuple[str, ...]] = POLICIES

    def known_edges(self, job: Job, deps: Dependences, values: Mapping[str, int]) -> KnownEdges:
        """Return the edges in their forms, and the time of comparisons and rules before each admission."""
        hints = launch_hints(job, values)
        if hints.job is not job:
            deps = dependences(hints.job)
        barrier = hints.missing.astype(np.uint32)
        if barrier.any():
            deps = without_barrier_edges(deps, barrier)
        forms = choose(job, inherit_producers(job, deps), hints, values)
        spent = _admission_ticks(job, hints.count, forms, values)
        none = np.zeros(len(spent), np.uint64)
        launch: dict[str, NDArray[Any]] = {
            "evaluate": _evaluation_ticks(job, hints, forms, values),
            "words": hints.words.astype(np.uint32),
        }
        chosen = _chosen(forms, hints)
        return KnownEdges(forms.deps, barrier, spent, none, launch=launch, whole=forms.whole, chosen=chosen)

    def coherence(self, values: Mapping[str, int]) -> str:
        """Return as ``Scheme.coherence``; TBs that start ahead of their gate read past L1 by themselves."""
        word = POLICIES[values["scheme.coherence"]]
        return "argument" if word == "auto" else word

    def core_order(self, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
        """Return ``gs_order`` of a table whose edges the hardware computes."""
        made = super().core_order(job, _of_table(values))
        store = max(LEAST, values["scheme.auto.store"])
        return made | {"computed": 1, "patience": values["scheme.auto.ahead"], "store": store}

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the TB edges as group nodes, and the time to find them."""
        return super().core_tables(job, known, _of_table(values))

    def add_coarse_forms(
        self, tables: CoreTables, job: Job, known: KnownEdges, values: Mapping[str, int]
    ) -> CoreTables:
        """Add coarser forms of all kernels' edges, under ``scheme.table.group``."""
        return super().add_coarse_forms(tables, job, known, _of_table(values))

    def launch_plan(
        self, options: Sequence[str], job: Job, deps: Dependences, config: Config
    ) -> LaunchPlan | None:
        """Return launches whose TBs may start ahead; not where TBs of a kernel wait for each other."""
        turns = intra_kernel_plan(job, config.encoded())
        return turns if turns is not None else super().launch_plan(options, job, deps, config)

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return the window with its hints, the rules, the counters and the states of TBs.

        Which TBs a counter releases follows from its rule, so that no list and no range is kept.
        """
        held = max(LEAST, values["scheme.auto.store"])
        span = (
            Field("first", bits_for(held), "word of its hints, which are in launch order"),
            Field("words", bits_for(values["scheme.auto.hints"] + 1), "of its hints"),
            Field("rules", 2 * bits_for(values["scheme.auto.rules"]), "the first of its rules, and how many"),
            Field("counters", bits_for(values["scheme.auto.counters"]), "the first of its counters"),
        )
        hint = (
            Field("word", WORD_BITS, "mode, address, bytes and a loop; or rows and further loops"),
            Field("inverse", 16, "of the distance of a loop, by which an address is multiplied"),
        )
        rule = (Field("hints", 2 * bits_for(held), "of a kernel that waits, and of one that it waits for"),)
        counter = (
            Field("kind", 2, "of a group, a TB's own, a kernel's"),
            Field("kernel", bits_for(sizes.window), "place in the window of the kernel that waits"),
            Field("left", bits_for(sizes.max_producers + 1), "ends still waited for"),
        )
        state = (
            Field("ready", 1, "may be dispatched"),
            Field("ended", 1, "for rules of kernels to come"),
        )
        share = Field("taken", bits_for(-(-sizes.max_tbs // sizes.sms) + 1), "TBs of the oldest kernel")
        ahead = [hardware_cost.waiting_tbs(sizes)] if values["scheme.prologue"] else []
        even = [Structure("even shares", sizes.sms, (share,))] if values["scheme.prologue"] else []
        return [
            *hardware_cost.pool_structures(sizes),
            Structure("places of a kernel", sizes.window, span),
            Structure("hints of the window", held, hint),
            Structure("rules", values["scheme.auto.rules"], rule),
            Structure("counters", values["scheme.auto.counters"], counter),
            Structure("TBs with edges of their own", values["scheme.auto.tbs"], state),
            *ahead,
            *even,
        ]


TB_AUTO = AutoTable(
    "tb_auto",
    "Hints alone: each edge is of kernels or TBs, and TBs start ahead, as the scheduler decides.",
    "gpu.cp.stream_gap",
    pins=(("scheme.prologue", 1), ("scheme.placement", "ahead")),
    options=PRIORITIES
    | COHERENCE
    | {
        "held": SchemeOption("no TB starts ahead of its gate", (("scheme.prologue", 0),)),
        "crowded": SchemeOption(
            "TBs that start ahead take any free slot", (("scheme.placement", "first_free"),)
        ),
    },
)
