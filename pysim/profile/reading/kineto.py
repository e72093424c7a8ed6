"""A Kineto file (PyTorch profiler, Chrome trace JSON) as a recording."""

from __future__ import annotations

import math
import sys
from pathlib import Path

from pysim.errors import InputError, brief
from pysim.profile.events import COPY, KERNEL, MEMSET, Call, Ran, Recording, Wait
from pysim.profile.losses import Losses

from .stream import EventStream, proper
from .text import CUT

_RAN = {
    "kernel": KERNEL,
    "gpu_memcpy": COPY,
    "memcpy": COPY,
    "gpu_memset": MEMSET,
    "memset": MEMSET,
    "concurrent_kernel": KERNEL,
}
_CALLS = ("cuda_runtime", "cuda_driver", "runtime", "driver", "hip_runtime")
# what a call of the host does, by a part of its name; the first that fits
_KINDS = (
    ("GraphLaunch", "graph"),
    ("Launch", "launch"),
    ("EventRecord", "record"),
    ("StreamWaitEvent", "wait"),
    ("Synchronize", "sync"),
    ("Memcpy", "launch"),
    ("Memset", "launch"),
)
_GRID = ("grid", "Grid")
UNKNOWN_TIME = "GPU events without a time"


def _number(value: object) -> float | None:
    """Return a finite number; numbers written as text count."""
    if type(value) is float or type(value) is int:
        made = float(value)
    elif isinstance(value, str):
        try:
            made = float(value)
        except ValueError:
            return None
    else:
        return None
    return made if math.isfinite(made) else None


def _whole(value: object, other: int = 0) -> int:
    """Return a whole number that is not negative; ``0x1f`` counts."""
    if type(value) is int:
        return value if value >= 0 else other
    if isinstance(value, str):
        try:
            return int(value, 0)
        except ValueError:
            return other
    number = _number(value)
    return int(number) if number is not None and number >= 0 else other


def _product(value: object) -> int:
    """Return the product of three dimensions, written as a list or as ``[8, 1, 1]``; 0: unknown."""
    if isinstance(value, str):
        value = value.strip("[]() ").replace("x", ",").split(",")
    if not isinstance(value, list) or not value:
        return 0
    sizes = [_whole(size, 0) for size in value]
    return math.prod(sizes) if all(sizes) else 0


class _Reader:
    def __init__(self, path: Path, losses: Losses, operators: bool) -> None:
        self.losses, self.operators = losses, operators
        self.made = Recording(str(path))
        self.stream = EventStream(path, losses)
        self.outside: dict[str, int] = {}

    def ran(self, kind: str, event: dict[str, object]) -> None:
        """Take what ran on the GPU."""
        found = event.get("args")
        args = found if isinstance(found, dict) else {}
        start, duration = _number(event.get("ts")), _number(event.get("dur"))
        name = proper(str(event.get("name", "")))
        if start is None or duration is None or start <= 0:
            self.losses.add(UNKNOWN_TIME + ", left out", f"the first is {brief(name, 60)}")
            return
        if duration < 0:
            self.losses.add("GPU events that end before they start, left out", brief(name, 60))
            return
        if duration == 0:
            self.losses.add("GPU events of no duration, kept", brief(name, 60))
        self.made.ran.append(
            Ran(
                kind,
                sys.intern(name),
                _whole(args.get("stream", event.get("tid"))),
                start,
                duration,
                tbs=_product(args.get("grid")),
                threads=_product(args.get("block")),
                registers=_whole(args.get("registers per thread")),
                smem=_whole(args.get("shared memory")),
                size=_whole(args.get("bytes"), -1) if "bytes" in args else -1,
                correlation=_whole(args.get("correlation")),
                device=_whole(args.get("device")),
                operator=_whole(args.get("External id", args.get("external id"))),
            )
        )

    def call(self, event: dict[str, object]) -> None:
        """Take a call of the host, if it launches, records, waits or synchronizes."""
        name = str(event.get("name", ""))
        kind = next((kind for part, kind in _KINDS if part in name), None)
        if kind is None:
            self.outside["host calls that neither launch nor wait"] = (
                self.outside.get("host calls that neither launch nor wait", 0) + 1
            )
            return
        found = event.get("args")
        args = found if isinstance(found, dict) else {}
        start = _number(event.get("ts"))
        if start is None or start <= 0:
            self.losses.add("host calls without a time, left out", name)
            return
        length = max(0.0, _number(event.get("dur")) or 0.0)
        ids = _whole(args.get("correlation")), _whole(event.get("tid"))
        self.made.calls.append(Call(kind, sys.intern(name), start, length, *ids))

    def wait(self, event: dict[str, object]) -> None:
        """Take a recorded synchronization: a stream that waits for an event; others are calls as well."""
        found = event.get("args")
        args = found if isinstance(found, dict) else {}
        if args.get("cuda_sync_kind", event.get("name")) != "Stream Wait Event":
            return
        record = _whole(args.get("wait_on_cuda_event_record_corr_id"))
        if "wait_on_stream" not in args or not record:
            self.losses.add("waits for events that were recorded before the profile, left out")
            return
        self.made.waits.append(
            Wait(
                _whole(args.get("stream")), _whole(args["wait_on_stream"]),
                _whole(args.get("correlation")), record,
            )
        )  # fmt: skip

    def read(self) -> Recording:
        """Read all events."""
        outside, made = self.outside, self.made
        for event in self.stream:
            cat = event.get("cat")
            kind = _RAN.get(cat.lower()) if isinstance(cat, str) else None
            if kind is not None:
                if event.get("ph", "X") == "X":
                    self.ran(kind, event)
                else:
                    self.losses.add(f"GPU events of phase {brief(event.get('ph'), 8)}, left out")
                continue
            cat = cat.lower() if isinstance(cat, str) else ""
            if cat in _CALLS and event.get("ph", "X") == "X":
                self.call(event)
            elif cat == "cuda_sync":
                self.wait(event)
            elif self.operators and cat == "cpu_op":
                args = event.get("args")
                if isinstance(args, dict) and "Record function id" in args:
                    made.operators[_whole(args.get("External id"))] = _whole(args["Record function id"])
            elif event.get("ph") not in ("M", "s", "f", "i", "t"):
                what = f"events of {brief(cat or 'no category', 40)}"
                outside[what] = outside.get(what, 0) + 1
        for what, count in outside.items():
            self.losses.add(f"{what}, not used", count=count)
        return made


def read_kineto(
    path: Path, losses: Losses, *, operators: bool = False, device: int | None = None
) -> Recording:
    """Read a Kineto file: what ran on one GPU, launches, waits, ``deviceProperties``.

    ``operators``: keep which operator of the framework each kernel belongs to. ``device``: of several GPUs;
    default: the one with most kernels. Times stay as they are in the file. Raises InputError for a file that
    is no profile, cannot be read, or has no GPU event.
    """
    reader = _Reader(path, losses, operators)
    made = reader.read()
    if not made.ran:
        cut = next((row.detail for row in losses.rows() if row.what == CUT), None)
        why = "it was recorded without ProfilerActivity.CUDA, or no GPU was used"
        raise InputError(f"{path}: no GPU event: {why if cut is None else f'{CUT}, {cut}'}")
    counts: dict[int, int] = {}
    for ran in made.ran:
        counts[ran.device] = counts.get(ran.device, 0) + 1
    chosen = max(counts, key=lambda d: counts[d]) if device is None else device
    if chosen not in counts:
        raise InputError(f"{path}: no GPU {chosen}: there are {', '.join(map(str, sorted(counts)))}")
    if len(counts) > 1:
        others = sum(counts.values()) - counts[chosen]
        losses.add(f"events of other GPUs than {chosen}, left out", count=others)
        made.ran = [ran for ran in made.ran if ran.device == chosen]
    properties = reader.stream.head.get("deviceProperties")
    cards = [row for row in properties if isinstance(row, dict)] if isinstance(properties, list) else []
    same = [row for row in cards if _whole(row.get("id")) == chosen]
    made.card = (same or cards[:1] or [{}])[0]
    return made
