"""Memory-bound kernels of one element a thread: vector add, saxpy on float4, strided copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Memory, Mode, Tensor
from pysim.program.warp_program import Pattern

from .code import Launch, Warp, launch
from .lanes import mask

if TYPE_CHECKING:
    from numpy.typing import NDArray

THREADS = 256
WARPS = THREADS // 32
ALL = 0xFFFFFFFF


def flat_access(tensor: Tensor, mode: Mode, each: int, stride: int = 1) -> Access:
    """Footprint of TB i: ``each`` elements, ``stride`` apart, of a tensor of one row."""

    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        first = np.asarray(tbs, np.int64) * each * stride
        zero = np.zeros_like(first)
        last = np.minimum(first + (each - 1) * stride + 1, tensor.cols)
        return np.stack([zero, zero + 1, first, last], axis=1)

    return Access(tensor, mode, regions)


def tail(
    n: int, each: int, build: Callable[[int], Warp]
) -> tuple[list[list[Warp]], NDArray[np.int64] | None]:
    """Rows of a grid whose last TB may be cut: ``build(lanes)`` makes a warp with so many elements."""
    full, rest = divmod(n, each)
    body = [build(32)]
    if not rest:
        return [body], None
    last = [build(min(32, max(0, rest - 32 * w))) for w in range(WARPS)]
    return [body, last], np.array([0] * full + [1], np.int64)


def positive(kernel: str, **sizes: int) -> None:
    """Refuse sizes below 1."""
    for name, size in sizes.items():
        if size <= 0:
            raise WorkloadError(f"{kernel}: {name} = {size}: must be positive")


def _flat(
    name: str, n: int, tensors: Sequence[Access], build: Callable[[int], Warp], registers: int
) -> Launch:
    code, which = tail(n, THREADS, build)
    args = tuple(dict.fromkeys(access.tensor for access in tensors))
    grid = (-(-n // THREADS), 1, 1)
    return launch(name, grid, code, which, args, tensors, warps=WARPS, registers=registers)


def vecadd(n: int = 1 << 20) -> Launch:
    """c[i] = a[i] + b[i], fp32."""
    positive("vecadd", n=n)
    memory = Memory()
    a, b, c = (memory.tensor(name, 1, n, 4) for name in "abc")

    def at(arg: int, lanes: int) -> Pattern:
        return Pattern(arg, 4, bx=4 * THREADS, warp=128, s0=4, lanes=mask(lanes))

    def build(lanes: int) -> Warp:
        w = Warp()
        if not lanes:
            w.mix(38, adu=3, s2r=1, imad=1, none=1, alu=1)
            w.exit()
            return w
        w.mix(71, adu=6, s2r=1, imad=2, none=2, alu=1, cbu=1)
        w.load(0, at(0, lanes))
        w.mix(4, imad=1)
        w.load(0, at(1, lanes))
        w.mix(imad=1)
        w.wait(0)
        w.mix(3, ffma=1)
        w.store(1, at(2, lanes))
        w.exit()
        return w

    every = [
        flat_access(a, "read", THREADS),
        flat_access(b, "read", THREADS),
        flat_access(c, "write", THREADS),
    ]
    return _flat("vecadd", n, every, build, 12)


def saxpy4(n: int = 1 << 20) -> Launch:
    """y[i] = alpha x[i] + y[i] by float4; n is rounded down to a multiple of 4."""
    positive("saxpy4", n=n // 4)
    memory = Memory()
    x, y = (memory.tensor(name, 1, n, 4) for name in "xy")

    def at(arg: int, lanes: int) -> Pattern:
        return Pattern(arg, 16, bx=16 * THREADS, warp=512, s0=16, lanes=mask(lanes))

    def build(lanes: int) -> Warp:
        w = Warp()
        if not lanes:
            w.mix(38, adu=3, s2r=1, imad=1, none=1, alu=1)
            w.exit()
            return w
        w.mix(71, adu=5, s2r=1, imad=2, none=3, alu=1, cbu=1)
        w.load(0, at(0, lanes))
        w.mix(4, imad=1)
        w.load(0, at(1, lanes))
        w.wait(0)
        w.mix(3, ffma=4)
        w.store(1, at(1, lanes))
        w.exit()
        return w

    each = 4 * THREADS
    every = [flat_access(x, "read", each), flat_access(y, "read", each), flat_access(y, "write", each)]
    return _flat("saxpy4", n // 4, every, build, 18)


def strided_copy(n: int = 1 << 18, stride: int = 8) -> Launch:
    """out[i] = in[i * stride], fp32."""
    positive("strided_copy", n=n, stride=stride)
    memory = Memory()
    source = memory.tensor("in", 1, (n - 1) * stride + 1, 4)
    target = memory.tensor("out", 1, n, 4)

    def build(lanes: int) -> Warp:
        w = Warp()
        if not lanes:
            w.mix(38, adu=3, s2r=1, imad=1, none=1, alu=1)
            w.exit()
            return w
        step = 4 * stride
        w.mix(70, adu=4, s2r=1, imad=2, none=4, alu=3, cbu=1)
        w.load(0, Pattern(0, 4, bx=step * THREADS, warp=32 * step, s0=step, lanes=mask(lanes)))
        w.mix(20, imad=1)
        w.wait(0)
        w.store(1, Pattern(1, 4, bx=4 * THREADS, warp=128, s0=4, lanes=mask(lanes)))
        w.exit()
        return w

    every = [flat_access(source, "read", THREADS, stride), flat_access(target, "write", THREADS)]
    return _flat("strided_copy", n, every, build, 10)
