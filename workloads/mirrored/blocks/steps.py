"""The main loop of fp32 GEMMs of chains and persistent kernels, which share one body for all steps."""

from __future__ import annotations

from . import Block


def with_steps(blocks: dict[str, Block]) -> dict[str, Block]:
    """Add a step of the main loop and the last one, which branches past the loads."""
    front, math = blocks["front"], blocks["math"]
    past: Block = ((0, 0, {"none": 1}),)
    return blocks | {"body": front + blocks["fetch"] + math, "last": front + past + math}
