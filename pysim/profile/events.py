"""Records of a profile: what ran on the GPU, what the host called, what it waited for. Times in us."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KERNEL, COPY, MEMSET = "kernel", "copy", "memset"


@dataclass(slots=True, eq=False)
class Ran:
    """A kernel, copy or memset that ran on the GPU.

    ``start``, ``duration``: us, from the first one; ``tbs``, ``threads`` (a TB), ``registers`` (a thread) and
    ``smem`` (B a TB): 0 where the profile does not say; ``size``: bytes of a copy or memset, -1: unknown;
    ``launched``: when the host called, None: no call recorded; ``replay``: correlation id of the graph launch
    that it belongs to, 0: none; ``operator``: id of the framework's operator, 0: unknown.
    """

    kind: str
    name: str
    stream: int
    start: float
    duration: float
    tbs: int = 0
    threads: int = 0
    registers: int = 0
    smem: int = 0
    size: int = -1
    correlation: int = 0
    device: int = 0
    operator: int = 0
    launched: float | None = None
    replay: int = 0
    programmatic: bool = False

    @property
    def end(self) -> float:
        """When it ended, us."""
        return self.start + self.duration


@dataclass(slots=True, eq=False)
class Call:
    """A call of the host: ``kind`` is ``launch``, ``graph``, ``record``, ``wait`` or ``sync``."""

    kind: str
    name: str
    start: float
    duration: float
    correlation: int
    thread: int


@dataclass(slots=True, eq=False)
class Wait:
    """A wait of a stream that the profile records exactly.

    ``stream`` waits from the call ``correlation`` on for what ``producer`` was given before the call
    ``record``.
    """

    stream: int
    producer: int
    correlation: int
    record: int


@dataclass(slots=True)
class Recording:
    """All that a reader found. ``card``: ``deviceProperties`` of the device whose kernels are kept."""

    source: str
    ran: list[Ran] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    card: Mapping[str, object] = field(default_factory=dict)
    operators: dict[int, int] = field(default_factory=dict)  # External id -> record function id
