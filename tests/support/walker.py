"""A small interpreter of warp programs: every op that a TB executes and every byte it touches.

It follows the meaning of ``gs_op`` and ``gs_pattern`` (core_c/gs_api.h) and shares no code with the core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pysim.isa import OPS
from pysim.params import PIPES
from pysim.program.job import Kernel
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import Op


class Step(NamedTuple):
    """One executed op: its kind's name, the op and, for memory ops, arg and byte addresses (n, width)."""

    kind: str
    op: Op
    arg: int
    addresses: np.ndarray


NOTHING = np.zeros(0, np.int64)


def position(kernel: Kernel, tb: int) -> tuple[int, int, int]:
    """Grid position of a TB number."""
    gx, gy, _ = kernel.grid
    return tb % gx, tb // gx % gy, tb // (gx * gy)


def lists_of(kernel: Kernel) -> list[tuple[Op, ...]]:
    """Op list of each row of a program whose TBs differ and whose warps do not."""
    found: list[tuple[Op, ...]] = []

    def look(ops: tuple[Op, ...]) -> tuple[Op, ...]:
        found.append(ops)
        return ops

    kernel.program.rewrite(look)
    assert len(found) == int(kernel.program.tb_rows.max()) + 1
    return found


def variant_of(kernel: Kernel, tb: int) -> tuple[Op, ...]:
    """Ops that a TB runs."""
    if isinstance(kernel.program, RecordedProgram):
        return lists_of(kernel)[int(kernel.program.tb_rows[tb])]
    if len(kernel.program.variants) == 1:
        return kernel.program.variants[0]
    at = position(kernel, tb)
    number = sum(1 << axis for axis in range(3) if at[axis] == kernel.grid[axis] - 1)
    return kernel.program.variants[number]


def walk(kernel: Kernel, tb: int, warp: int) -> Iterator[Step]:
    """Yield every op that one warp of a TB executes, loops unrolled."""
    ops = variant_of(kernel, tb)
    x, y, z = position(kernel, tb)
    counter = [0, 0, 0]
    pc = 0
    while True:
        op = ops[pc]
        kind = OPS[op.kind][0]
        pc += 1
        if kind in ("LOAD", "STORE", "REDUCE"):
            at = counter[op.level] + op.count_plus
            if op.count and at >= op.count:
                continue
            p = op.patterns[warp if len(op.patterns) > 1 else 0]
            assert len(op.patterns) in (1, kernel.program.warps)
            lane = np.flatnonzero([p.lanes >> i & 1 for i in range(32)])
            start = kernel.args[p.arg].address + p.base + p.bx * x + p.by * y + p.bz * z + p.warp * warp
            start += at * p.step + counter[p.level2] * p.step2
            pair = lane // p.minor * p.s1 + lane % p.minor * p.s0
            where = start + (p.offsets[lane] if p.offsets else pair)
            assert (where % p.width == 0).all(), "unaligned"
            yield Step(kind, op, p.arg, (where[:, None] + np.arange(p.width)).ravel())
        else:
            yield Step(kind, op, -1, NOTHING)
        if kind == "LOOP":
            counter[op.level] += 1
            if counter[op.level] < op.count:
                pc = op.target
            else:
                counter[op.level] = 0
        if kind == "EXIT":
            return


class Touched(NamedTuple):
    """What a TB does: (arg, addresses) in the order of access, with repeats; instructions a pipe."""

    loads: list[tuple[int, np.ndarray]]
    stores: list[tuple[int, np.ndarray]]
    updates: list[tuple[int, np.ndarray]]
    pipes: Counter[str]
    barriers: list[int]


def touched(kernel: Kernel, tb: int) -> Touched:
    """Walk all warps of a TB."""
    result = Touched([], [], [], Counter(), [])
    into = {"LOAD": result.loads, "STORE": result.stores, "REDUCE": result.updates}
    for warp in range(kernel.program.warps):
        barriers = 0
        for step in walk(kernel, tb, warp):
            if step.kind in into:
                into[step.kind].append((step.arg, step.addresses))
            for (pipe, _), count in zip(PIPES, step.op.pipes, strict=True):
                result.pipes[pipe] += count
            barriers += step.kind == "BARRIER"
        result.barriers.append(barriers)
    return result


def footprint(kernel: Kernel, tb: int, mode: str) -> np.ndarray:
    """Sorted unique byte addresses that the kernel says a TB touches."""
    parts = [NOTHING]
    for access in kernel.accesses:
        if access.mode != mode:
            continue
        row0, row1, col0, col1 = (int(v) for v in access.regions(np.array([tb], np.int64))[0])
        if row0 >= row1 or col0 >= col1:
            continue
        t = access.tensor
        assert 0 <= row0 < row1 <= t.rows, (kernel.name, tb, t)
        assert 0 <= col0 < col1 <= t.cols, (kernel.name, tb, t)
        row = t.address + np.arange(row0, row1, dtype=np.int64) * t.pitch
        parts.append((row[:, None] + np.arange(col0 * t.item, col1 * t.item)).ravel())
    return np.unique(np.concatenate(parts))


def check_footprints(kernel: Kernel) -> None:
    """Assert that every TB touches exactly its footprint, inside the tensors, and stores each byte once."""
    for tb in range(kernel.tbs):
        seen = touched(kernel, tb)
        assert len(set(seen.barriers)) == 1, "warps disagree on barriers"
        for mode, accesses in (("read", seen.loads), ("write", seen.stores), ("update", seen.updates)):
            flat = np.concatenate([NOTHING, *(addresses for _, addresses in accesses)])
            unique = np.unique(flat)
            assert np.array_equal(unique, footprint(kernel, tb, mode)), (kernel.name, tb, mode)
            if mode != "read":
                assert len(unique) == len(flat), (kernel.name, tb, mode, "written twice")
            for arg, addresses in accesses:
                t = kernel.args[arg]
                if len(addresses):
                    assert t.address <= addresses.min()
                    assert addresses.max() < t.address + t.nbytes
