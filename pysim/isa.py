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
    ("TAKEN", "wait until the load/store unit has taken the warp's copies into shared memory"),
    ("BARRIER", "barrier of all warps of the TB, or of some at a named one"),
    ("LOOP", "count and go back to target"),
    ("DELAY", "hold the warp for a number of cycles"),
    ("POST", "the TB's first warp fences and adds 1 to a semaphore at L2"),
    ("POLL", "all warps of the TB wait until semaphores are complete; its first warp polls them at L2"),
    ("TRIGGER", "this TB allows the kernels behind it to start"),
    ("DEPEND", "wait until the kernels that this one was launched behind have ended"),
    ("TILE", "take the TB's next tile of a stage, behind a TB barrier but for the first"),
    ("ARRIVE", "count at a barrier of the TB and go on; of copies: once their slot is empty"),
    ("AWAIT", "wait until enough copies or arrivals have been counted at a barrier of the TB"),
    ("TURN", "take the warp's next tile, or go on at target when none is left"),
    ("BULK_LOAD", "copy a box of a tensor into shared memory of the TB, or of TBs of its cluster"),
    ("BULK_STORE", "copy a box of shared memory to a tensor"),
    ("RING_WAIT", "wait for the phase of a ring barrier that the warp's cursor names"),
    ("RING_ARRIVE", "arrive at the ring barrier that the warp's cursor names, of one or more TBs"),
    ("ADVANCE", "move the warp's cursor on"),
    ("MULTIPLY_WAIT", "wait until at most count groups of the warp's asynchronous multiplies are under way"),
    ("CLUSTER", "barrier of all warps of the TB's cluster"),
    ("MARK", "where a scheme may wait, post or trigger; nothing by itself, and never in the core"),
)
# wavefronts that a run does not wait for: nothing of what it asks shared memory for is ever waited for
UNNEEDED = 0xFFFF
