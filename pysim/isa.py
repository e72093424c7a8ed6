"""Op kinds of a warp program, one row each (stdlib only: the build reads this file too)."""

from __future__ import annotations

# the value of an op in C and in programs is its position
OPS: tuple[tuple[str, str], ...] = (
    ("EXIT", "the warp ends when its loads and stores are done"),
    ("COMPUTE", "a run of instructions without a wait"),
    ("LOAD", "global load; its lines count on a slot"),
    ("STORE", "global store; its lines count on a slot until L2 acknowledges"),
    ("REDUCE", "global reduction at L2 (commutative update); counts as STORE does"),
    ("WAIT", "wait until the slot is empty"),
    ("BARRIER", "barrier of all warps of the TB"),
    ("LOOP", "count and go back to target"),
    ("DELAY", "hold the warp for a number of cycles"),
)
