"""Address patterns with a list of lane offsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from pysim.program.warp_program import Pattern


def mask(lanes: int) -> int:
    """Active lanes of a warp that has work for the first ``lanes``."""
    return (1 << lanes) - 1


def lane_pattern(base: Pattern, offsets: Sequence[int | None]) -> Pattern:
    """Return a pattern with an offset in bytes from ``base`` for each of 32 lanes; None: the lane is off."""
    lanes = sum(1 << lane for lane, at in enumerate(offsets) if at is not None)
    on = [(lane, at) for lane, at in enumerate(offsets) if at is not None]
    if not on:
        return replace(base, lanes=0)
    first, start = on[0]
    step = base.width
    if all(at == start + (lane - first) * step for lane, at in on):
        return replace(base, base=base.base + start - first * step, s0=step, minor=32, lanes=lanes)
    # from the first lane on, so that warps with the same lane offsets differ in their base alone
    spots = tuple(0 if at is None else at - start for at in offsets)
    return replace(base, base=base.base + start, lanes=lanes, offsets=spots)


@lru_cache(maxsize=1 << 16)
def sectors(pattern: Pattern) -> int:
    """Return the sectors that L1 counts for an access, where TBs and loops move it by whole sectors.

    For cp.async a line whose sectors straddle sectors of shared memory counts one more (measured on an H200,
    ``l1tex__t_sectors_pipe_lsu_mem_global_op_ld``: 20 and 18 for 16 of the fp16 GEMMs).
    """
    lanes = [lane for lane in range(32) if pattern.lanes >> lane & 1]
    if pattern.offsets:
        starts = [pattern.base + pattern.offsets[lane] for lane in lanes]
    else:
        minor, s0, s1 = pattern.minor, pattern.s0, pattern.s1
        starts = [pattern.base + lane // minor * s1 + lane % minor * s0 for lane in lanes]
    touched = {sector for at in starts for sector in range(at // 32, (at + pattern.width - 1) // 32 + 1)}
    across = {
        at // 128
        for at, lane in zip(starts, lanes, strict=True)
        if pattern.into_pitch and (pattern.into + lane // pattern.minor * pattern.into_pitch) % 32
    }
    return len(touched) + len(across)


def always(*patterns: Pattern) -> Callable[[str, int], tuple[Pattern, ...]]:
    """Return a function that gives the same pattern, or one a warp, to every memory op."""
    return lambda _name, _offset: patterns
