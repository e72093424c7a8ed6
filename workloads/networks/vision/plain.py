"""Networks without branches: VGG-19 and AlexNet as torchvision builds them, and LeNet-5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.workloads.framework import operations as op
from pysim.workloads.framework.vision import layers as la
from pysim.workloads.framework.vision.convolve import conv2d
from pysim.workloads.library.memory.images import Window

from .residual import linear

if TYPE_CHECKING:
    from pysim.workloads.framework.tape import Value
    from pysim.workloads.networks.shapes import Plain

    from .build import Pictures


def plain(shape: Plain, p: Pictures) -> Value:
    """Return the logits of convolutions with a ReLU each, maxima between them, and linear layers.

    In training half of what two linear layers read is dropped, as torchvision orders it: before the linear
    layer or after it.
    """
    tape, x, images = p.tape, p.x, p.images
    for filters, side, stride, pad in shape.features:
        window = Window(side, stride, pad)
        if filters:
            x, images = conv2d(tape, x, images, filters, window, p.dtype, bias=True)
            x = la.relu_(tape, x)
        else:
            x, images = la.max_pool2d(tape, x, images, window)
    x, images = la.adaptive_average(tape, x, images, shape.pooled)
    x = la.flatten(x, images, tape)
    *hidden, classes = shape.linear
    for out in hidden:
        x = op.dropout(tape, x) if shape.dropped_before else x
        x = la.relu_(tape, linear(p, x, out))
        x = x if shape.dropped_before else op.dropout(tape, x)
    return linear(p, x, classes)


def lenet(p: Pictures) -> Value:
    """Return the logits of LeNet-5 with tanh and mean pooling, of images of one channel."""
    tape, x, images = p.tape, p.x, p.images
    for filters, window in ((6, Window(5, 1, 2)), (16, Window(5, 1))):
        x, images = conv2d(tape, x, images, filters, window, p.dtype, bias=True)
        x, images = la.average_pool2d(tape, la.tanh(tape, x), images, Window(2, 2))
    x = la.flatten(x, images, tape)
    for out in (120, 84):
        x = la.tanh(tape, linear(p, x, out))
    return linear(p, x, 10)
