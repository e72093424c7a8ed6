"""CNN layers in fp32, batch 1: convolutions, pools and sums as kernels, and their memory.

A value is a matrix: a row a channel, and in it the image row by row, with a halo of three rows of pixels at
both ends that is never written. (At the left and right border a filter reads its neighbour's pixels.) A value
that is no longer read frees its memory for the next of its shape, as under a caching allocator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pysim.errors import WorkloadError
from pysim.program.job import Job, Kernel, Memory, Tensor
from pysim.program.warp_program import Affine
from pysim.workloads.kernels.region import Block, region_kernel

HALO = 3  # rows of pixels: for filters of up to 7 x 7
WARPS = 4
TILE = 16  # channels of a TB, and of a step
PIXELS = 128  # of a TB
LANES = 32
UNIT = 8  # channels come in such numbers: a sector


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What a layer makes: ``channels`` pictures of ``high`` x ``wide`` pixels."""

    channels: int
    high: int
    wide: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Values of one shape may follow each other in memory."""
        return self.channels, self.high, self.wide


# the tensors of what a layer reads, then that of what it makes
_Make = Callable[[list[Tensor], Tensor], Kernel]


@dataclass(slots=True)
class Net:
    """Records layers in the order of their launches; :meth:`job` gives them memory."""

    memory: Memory = field(default_factory=Memory)
    layers: list[tuple[_Make, tuple[Value, ...], Value]] = field(default_factory=list)

    def add(self, make: _Make, inputs: Sequence[Value], out: Value) -> Value:
        """Record one kernel."""
        self.layers.append((make, tuple(inputs), out))
        return out

    def job(self, name: str) -> Job:
        """Give values memory, and return all kernels, in one stream."""
        last = {value: at for at, (_, inputs, _) in enumerate(self.layers) for value in inputs}
        free: dict[tuple[int, int, int], list[Tensor]] = {}
        held: dict[Value, Tensor] = {}

        def place(value: Value) -> Tensor:
            if value not in held:
                ready = free.get(value.shape)
                cols = (value.high + 2 * HALO) * value.wide
                held[value] = ready.pop() if ready else self.memory.tensor("value", value.channels, cols, 4)
            return held[value]

        kernels = []
        for at, (make, inputs, out) in enumerate(self.layers):
            tensors = [place(value) for value in inputs]
            kernels.append(make(tensors, place(out)))
            for value in dict.fromkeys(inputs):
                if last[value] == at:
                    free.setdefault(value.shape, []).append(held[value])
        return Job(name, kernels)

    # layers

    def conv(self, x: Value, channels: int, side: int = 1, stride: int = 1, name: str = "conv") -> Value:
        """Convolve by ``side`` x ``side``, with norm and ReLU: 16 channels x about 128 pixels a TB."""
        weights = self.memory.tensor(f"{name}_weights", channels, x.channels * side * side, 4)
        return self._product(x, channels, side, stride, name, lambda tensors: weights)

    def mixed(self, x: Value, weights: Value, channels: int) -> Value:
        """Convolve by 1 x 1 with weights that a kernel made: those of :meth:`mix`."""
        return self._product(x, channels, 1, 1, "conv_mixed", lambda tensors: tensors[1], (weights,))

    def _product(
        self, x: Value, channels: int, side: int, stride: int, name: str,
        weights_of: Callable[[list[Tensor]], Tensor], more: tuple[Value, ...] = (),
    ) -> Value:  # fmt: skip
        deep, tall = math.gcd(x.channels, TILE), math.gcd(channels, TILE)
        out = _shrunk(x, channels, stride)
        band = _band(out)
        grid = out.high // band, channels // tall
        each = deep * side * side

        def make(tensors: list[Tensor], made: Tensor) -> Kernel:
            w = weights_of(tensors)
            # weights that were mixed have a halo, too
            first = w.cols - x.channels * side * side if more else 0
            reads = [
                _seen(tensors[0], x, deep, band, side, stride, Affine(step=deep)),
                Block(w, tall, each, row=Affine(by=tall), col=Affine(base=first // 2, step=each)),
            ]
            multiplied = -(-tall * band * out.wide * each // (LANES * WARPS))
            work = {"fp32": multiplied, "int": 8 + multiplied // 8, "smem_ops": max(1, multiplied // 8)}
            writes = [_own(made, out, tall, band)]
            return region_kernel(
                name, grid, WARPS, reads, writes, work, steps=x.channels // deep, registers=64, smem=8192
            )

        return self.add(make, (x, *more), out)

    def depthwise(self, x: Value, side: int, stride: int = 1) -> Value:
        """Convolve each channel for itself: 8 channels a TB."""
        weights = self.memory.tensor("depthwise_weights", x.channels, LANES * (1 + side * side // LANES), 4)
        return self._by_channel("depthwise", x, side, stride, weights)

    def pool(self, x: Value, side: int = 3, stride: int = 1) -> Value:
        """Largest or average of ``side`` x ``side`` pixels."""
        return self._by_channel("pool", x, side, stride, None)

    def _by_channel(self, name: str, x: Value, side: int, stride: int, weights: Tensor | None) -> Value:
        out = _shrunk(x, x.channels, stride)
        band = _band(out)
        grid = out.high // band, x.channels // UNIT

        def make(tensors: list[Tensor], made: Tensor) -> Kernel:
            reads = [_seen(tensors[0], x, UNIT, band, side, stride, Affine(by=UNIT))]
            if weights is not None:
                reads.append(Block(weights, UNIT, weights.cols, row=Affine(by=UNIT)))
            each = -(-UNIT * band * out.wide * side * side // (LANES * WARPS))
            work = {"fp32": each, "int": each // 2 + 4}
            return region_kernel(name, grid, WARPS, reads, [_own(made, out, UNIT, band)], work, registers=40)

        return self.add(make, (x,), out)

    def total(self, values: Sequence[Value]) -> Value:
        """Add values of one shape."""
        x = values[0]
        out, band = Value(*x.shape), _band(x)

        def make(tensors: list[Tensor], made: Tensor) -> Kernel:
            reads = [_own(t, x, UNIT, band) for t in dict.fromkeys(tensors)]
            each = -(-UNIT * band * x.wide // (LANES * WARPS))
            work = {"fp32": each * len(tensors), "int": 4 * each}
            return region_kernel("add", (x.high // band, x.channels // UNIT), WARPS, reads,
                                 [_own(made, out, UNIT, band)], work)  # fmt: skip

        return self.add(make, values, out)

    def scale(self, x: Value, by: Value) -> Value:
        """Multiply each channel by a number of its own."""
        out, band = Value(*x.shape), _band(x)

        def make(tensors: list[Tensor], made: Tensor) -> Kernel:
            reads = [_own(tensors[0], x, UNIT, band), _numbers(tensors[1], by, UNIT)]
            each = -(-UNIT * band * x.wide // (LANES * WARPS))
            return region_kernel("scale", (x.high // band, x.channels // UNIT), WARPS, reads,
                                 [_own(made, out, UNIT, band)], {"fp32": each, "int": 4 * each})  # fmt: skip

        return self.add(make, (x, by), out)

    def cat(self, values: Sequence[Value]) -> Value:
        """Concatenate the channels of values: a kernel that copies, two rows of pixels a TB."""
        x = values[0]
        out = Value(sum(value.channels for value in values), x.high, x.wide)
        band = min(2, x.high)

        def make(tensors: list[Tensor], made: Tensor) -> Kernel:
            reads, writes, first = [], [], 0
            for tensor, value in zip(tensors, values, strict=True):
                reads.append(_own(tensor, value, value.channels, band, by=0))
                writes.append(_own(made, out, value.channels, band, by=0, base=first))
                first += value.channels
            return region_kernel("cat", (x.high // band, 1), WARPS, reads, writes, {"int": 2 * first // UNIT})

        return self.add(make, values, out)

    def enlarge(self, x: Value) -> Value:
        """Twice as high and wide, bilinear."""
        out = Value(x.channels, 2 * x.high, 2 * x.wide)
        band = max(2, _band(out))
        seen = Value(x.channels, x.high, x.wide)

        def make(tensors: list[Tensor], made: Tensor) -> Kernel:
            reads = [_seen(tensors[0], seen, UNIT, band // 2, 3, 1, Affine(by=UNIT))]
            each = -(-UNIT * band * out.wide // (LANES * WARPS))
            work = {"fp32": 4 * each, "int": 6 * each}
            return region_kernel("enlarge", (out.high // band, x.channels // UNIT), WARPS, reads,
                                 [_own(made, out, UNIT, band)], work)  # fmt: skip

        return self.add(make, (x,), out)

    def mean(self, x: Value) -> Value:
        """Mean of each channel over its pixels: 8 channels a TB, a value of 8 numbers a channel."""
        out = Value(x.channels, 1, UNIT)

        def make(tensors: list[Tensor], made: Tensor) -> Kernel:
            each = -(-UNIT * x.high * x.wide // (LANES * WARPS))
            work = {"fp32": each, "int": each, "smem_ops": 10}
            return region_kernel("mean", (1, x.channels // UNIT), WARPS, [_own(tensors[0], x, UNIT, x.high)],
                                 [_own(made, out, UNIT, 1)], work, smem=512)  # fmt: skip

        return self.add(make, (x,), out)

    def dense(self, x: Value, channels: int, name: str = "dense") -> Value:
        """Connect all of what :meth:`mean` made to all outputs, 8 of them a TB."""
        weights = self.memory.tensor(f"{name}_weights", channels, x.channels, 4)
        out = Value(channels, 1, UNIT)

        def make(tensors: list[Tensor], made: Tensor) -> Kernel:
            reads = [
                _own(tensors[0], x, x.channels, 1, by=0),
                Block(weights, UNIT, x.channels, row=Affine(by=UNIT)),
            ]
            each = -(-UNIT * x.channels // (LANES * WARPS))
            work = {"fp32": 2 * each, "int": 2 * each, "smem_ops": 10}
            return region_kernel(
                name, (1, channels // UNIT), WARPS, reads, [_own(made, out, UNIT, 1)], work, smem=512
            )

        return self.add(make, (x,), out)

    def mix(self, gates: Value, inputs: int, channels: int, experts: int) -> Value:
        """Add the weights of experts, each times its gate: weights of a 1 x 1 convolution, 8 outputs a TB."""
        kept = [self.memory.tensor(f"expert{i}", channels, inputs, 4) for i in range(experts)]
        out = Value(channels, 1, inputs)

        def make(tensors: list[Tensor], made: Tensor) -> Kernel:
            reads = [Block(w, UNIT, inputs, row=Affine(by=UNIT)) for w in kept]
            reads.append(_own(tensors[0], gates, gates.channels, 1, by=0))
            each = -(-UNIT * inputs // (LANES * WARPS))
            work = {"fp32": experts * each, "int": 4 * each}
            return region_kernel("mix", (1, channels // UNIT), WARPS, reads, [_own(made, out, UNIT, 1)], work)

        return self.add(make, (gates,), out)


def _shrunk(x: Value, channels: int, stride: int) -> Value:
    """Return the value that a layer of this stride makes."""
    if channels % UNIT or x.channels % UNIT:
        raise WorkloadError(f"layers: {x.channels} to {channels} channels: must be multiples of {UNIT}")
    if x.high % stride or x.wide % stride or x.wide // stride % 4:
        raise WorkloadError(f"layers: {x.high} x {x.wide} pixels by a stride of {stride}: too few")
    return Value(channels, x.high // stride, x.wide // stride)


def _band(value: Value) -> int:
    """Rows of pixels of a TB: as many as make about 128 pixels, and divide the picture."""
    return math.gcd(value.high, max(1, PIXELS // value.wide))


def _seen(tensor: Tensor, x: Value, rows: int, band: int, side: int, stride: int, row: Affine) -> Block:
    """Rows of pixels that a band of the result is made from, with the filter's halo."""
    around = side // 2
    high = band * stride + 2 * around if stride > 1 else band + 2 * around
    first = Affine(base=(HALO - around) * x.wide, bx=band * stride * x.wide)
    return Block(tensor, rows, high * x.wide, row=row, col=first)


def _own(
    tensor: Tensor, value: Value, rows: int, band: int, *, by: int | None = None, base: int = 0
) -> Block:
    """Return a band of ``rows`` channels, the TB's own."""
    col = Affine(base=HALO * value.wide, bx=band * value.wide)
    return Block(
        tensor, rows, band * value.wide, row=Affine(base=base, by=rows if by is None else by), col=col
    )


def _numbers(tensor: Tensor, value: Value, rows: int) -> Block:
    """Return what :meth:`Net.mean` or :meth:`Net.dense` made of ``rows`` channels: all bands need them."""
    return Block(tensor, rows, value.wide, row=Affine(by=rows), col=Affine(base=HALO * value.wide))
