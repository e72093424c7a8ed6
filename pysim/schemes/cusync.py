"""Schemes ``pdl`` and ``cusync``: kernels of a stream overlap, and their TBs wait in their programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from .barriers import StreamOrder
from .in_kernel_sync import semaphore_plan
from .options import SchemeOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job

    from .launch_plan import LaunchPlan


class Pdl(StreamOrder):
    """Programmatic dependent launch: TBs start early and wait (griddepcontrol) for whole kernels."""

    waits_inside: ClassVar[bool] = True
    waits_for_kernels: ClassVar[bool] = True

    def launch_plan(
        self, options: Sequence[str], job: Job, deps: Dependences, config: Config
    ) -> LaunchPlan | None:
        """Return programmatic launches; ConfigError before compute capability 9.0."""
        launch = config.word("scheme.sync.launch")
        return semaphore_plan(self.full_name(options), launch, job, deps, config, wait_whole_kernels=True)


class CuSync(StreamOrder):
    """TBs of overlapping kernels wait for tiles by semaphore (Jangda et al., CGO 2024)."""

    waits_inside: ClassVar[bool] = True

    def launch_plan(
        self, options: Sequence[str], job: Job, deps: Dependences, config: Config
    ) -> LaunchPlan | None:
        """Return launches that overlap by ``scheme.sync.launch``."""
        launch = config.word("scheme.sync.launch")
        return semaphore_plan(self.full_name(options), launch, job, deps, config)


_GRAPH = {"graph": SchemeOption("programmatic edges of a graph", (("scheme.sync.launch", "graph"),))}
_LATE = {"late": SchemeOption("trigger after the main loop", (("scheme.sync.trigger", "late"),))}
_LAUNCH = {
    "pdl": SchemeOption("programmatic dependent launch", (("scheme.sync.launch", "pdl"),)),
    **_GRAPH,
    "streams": SchemeOption("two streams with gate kernels", (("scheme.sync.launch", "streams"),)),
}
_POLICY = {
    word: SchemeOption(f"a semaphore a {what}", (("scheme.sync.policy", word),))
    for word, what in (
        ("tile", "tile"),
        ("row", "row of tiles"),
        ("strided", "set of tiles that are read together"),
        ("conv", "tile, which a convolution waits for once a chunk of channels"),
    )
}
_SPREAD = {"spread": SchemeOption("an even share of TBs an SM, by padding", (("scheme.sync.spread", 1),))}
_VARIANTS = {
    "gate_first": SchemeOption("gates wait for the first TB before", (("scheme.sync.gate", "first"),)),
    "no_gate": SchemeOption("no gates (cuSync's W: AvoidWaitKernel)", (("scheme.sync.gate", "none"),)),
    "tile_order": SchemeOption("TBs look their tile up (cuSync without its T)", (("scheme.sync.order", 1),)),
    "wait_early": SchemeOption(
        "wait before any load (cuSync without its R)", (("scheme.sync.wait", "early"),)
    ),
    "poll_each": SchemeOption("poll each semaphore, known or not", (("scheme.sync.poll", "each"),)),
    "fence_system": SchemeOption("fence the system before a post", (("scheme.sync.fence", "system"),)),
}

PDL = Pdl(
    "pdl",
    "Programmatic dependent launch: a kernel starts when the TBs before have triggered, and waits.",
    "gpu.cp.stream_gap",
    pins=(("scheme.sync.launch", "pdl"),),
    options=_LATE | _GRAPH,
)
CUSYNC = CuSync(
    "cusync",
    "Kernels overlap, and their TBs wait for the tiles that they read by semaphores.",
    "gpu.cp.stream_gap",
    options=_POLICY | _LAUNCH | _LATE | _SPREAD | _VARIANTS,
)
