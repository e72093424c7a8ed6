"""ResNets as torchvision builds them: basic blocks of two convolutions, or bottlenecks of three."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.workloads.framework import operations as op
from pysim.workloads.framework.vision import layers as la
from pysim.workloads.framework.vision.convolve import conv2d
from pysim.workloads.library.memory.images import Images, Window
from pysim.workloads.library.memory.pointwise_parts import item_of

from .build import Pictures

if TYPE_CHECKING:
    from pysim.workloads.framework.tape import Value
    from pysim.workloads.networks.shapes import Residual

STEM, POOL = Window(7, 2, 3), Window(3, 2, 1)
WIDE, EXPANSION = 64, 4  # channels of the first stage; of a bottleneck's result over those within
ONE, THREE = Window(1, 1), Window(3, 1, 1)


def residual(shape: Residual, p: Pictures) -> Value:
    """Return the logits of a ResNet."""
    run = _Run(p)
    x, images = run.conv(p.x, p.images, WIDE, STEM)
    x, images = la.max_pool2d(p.tape, la.relu_(p.tape, x), images, POOL)
    for stage, many in enumerate(shape.blocks):
        for number in range(many):
            stride = 2 if stage and not number else 1
            x, images = run.block(x, images, WIDE << stage, stride, shape.bottleneck)
    return linear(p, la.average(p.tape, x, images), shape.classes)


def linear(p: Pictures, x: Value, out: int) -> Value:
    """Return a linear layer of rows, with a bias."""
    item = item_of(p.dtype)
    weight = p.tape.parameter("weight", out, x.tensor.cols, item)
    return op.linear(p.tape, x, weight, p.tape.parameter("bias", 1, out, item), p.dtype)


@dataclass(slots=True)
class _Run:
    p: Pictures

    def conv(self, x: Value, images: Images, filters: int, window: Window) -> tuple[Value, Images]:
        """Return a convolution, normalised."""
        y, out = conv2d(self.p.tape, x, images, filters, window, self.p.dtype)
        return la.batch_norm2d(self.p.tape, y, out), out

    def block(
        self, x: Value, images: Images, filters: int, stride: int, bottleneck: bool
    ) -> tuple[Value, Images]:
        """Return a block; the stride is that of its first filters of 3 x 3."""
        tape, strided = self.p.tape, Window(3, stride, 1)
        plan = [(filters, strided), (filters, THREE)]
        if bottleneck:
            plan = [(filters, ONE), (filters, strided), (EXPANSION * filters, ONE)]
        y, out = x, images
        for number, (channels, window) in enumerate(plan):
            y = la.relu_(tape, y) if number else y
            y, out = self.conv(y, out, channels, window)
        if stride > 1 or out.channels != images.channels:
            x, _ = self.conv(x, images, out.channels, Window(1, stride))
        return la.relu_(tape, la.add_(tape, y, x)), out
