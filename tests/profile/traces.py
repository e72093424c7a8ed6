"""Small Kineto files made by hand."""

from __future__ import annotations

import json
from pathlib import Path

H200 = {
    "id": 0, "name": "NVIDIA H200", "numSms": 132, "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 233472, "computeMajor": 9, "warpSize": 32,
}  # fmt: skip
BASE = 4_000_000_000.0  # us: profiles count from the boot of the machine


def kernel(name="k", start=0.0, dur=5.0, stream=7, corr=1, tbs=132, **more):
    """Return the event of a kernel, ``start`` us after the base."""
    args = {"device": 0, "stream": stream, "correlation": corr, "grid": [tbs, 1, 1], "block": [128, 1, 1],
            "registers per thread": 32, "shared memory": 0, **more}  # fmt: skip
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": BASE + start, "dur": dur,
            "args": args}  # fmt: skip


def call(name, start, corr=0, dur=4.0, thread=1):
    """Return the event of a call of the host."""
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 9, "tid": thread, "ts": BASE + start,
            "dur": dur, "args": {"correlation": corr}}  # fmt: skip


def launched(start, dur=5.0, stream=7, corr=1, name="k", host=None, how="cudaLaunchKernel", **more):
    """Return a kernel and its launch, ``host`` us after the base."""
    return [
        call(how, start - 8 if host is None else host, corr),
        kernel(name, start, dur, stream, corr, **more),
    ]


def text_of(events, card=H200):
    """Return the text of a file."""
    head = {"schemaVersion": 1, "deviceProperties": [card] if card else []}
    return json.dumps(head)[:-1] + ', "traceEvents": [\n' + ",\n".join(map(json.dumps, events)) + "\n]}"


def written(folder: Path, events, card=H200, name="trace.json") -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_text(text_of(events, card), encoding="utf-8")
    return path
