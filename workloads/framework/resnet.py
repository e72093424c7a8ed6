"""ResNets as PyTorch runs them in evaluation, fp32 with channels first: kernels of convolutions are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pysim.errors import WorkloadError
from pysim.program.job import Memory
from pysim.workloads.library.memory.images import ITEM, Images, Window

from . import images as im
from . import operations as op
from .network import Counter, Network, shown_of
from .tape import Tape, Value

STEM, POOL = Window(7, 2, 3), Window(3, 2, 1)
WIDE = 64  # channels of the first stage


@dataclass(frozen=True, slots=True)
class ResNet:
    """``batch`` images of ``side`` x ``side``; ``blocks`` of each stage, of two convolutions of 3 x 3.

    ``bottleneck``: blocks have three convolutions. ``classes``: of the linear layer behind (0: neither mean
    nor layer).
    """

    batch: int
    blocks: tuple[int, ...]
    bottleneck: bool = False
    classes: int = 1000
    side: int = 224

    def __post_init__(self) -> None:
        """Refuse sizes that are not positive."""
        if min(self.batch, self.side, *self.blocks) < 1 or self.classes < 0:
            raise WorkloadError(f"ResNet: {self.batch} images of {self.side}, blocks {self.blocks}")


@dataclass(slots=True)
class _Run:
    tape: Tape
    kernels: list[im.Kernels]

    def conv(self, x: Value, images: Images, filters: int, window: Window) -> tuple[Value, Images]:
        """Return a convolution, normalised; takes the next of the kernels."""
        if not self.kernels:
            raise WorkloadError("ResNet: more convolutions than kernels")
        y, out = im.conv2d(self.tape, x, images, filters, window, self.kernels.pop(0))
        return im.batch_norm2d(self.tape, y, out), out

    def block(
        self, x: Value, images: Images, filters: int, stride: int, bottleneck: bool
    ) -> tuple[Value, Images]:
        one, three = Window(1, 1), Window(3, 1, 1)
        plan = [(filters, Window(3, stride, 1)), (filters, three)]
        if bottleneck:
            plan = [(filters, one), (filters, Window(3, stride, 1)), (4 * filters, one)]
        y, out = x, images
        for number, (channels, window) in enumerate(plan):
            y = im.relu(self.tape, y) if number else y
            y, out = self.conv(y, out, channels, window)
        if stride > 1 or out.channels != images.channels:
            x, _ = self.conv(x, images, out.channels, Window(1, stride))
        return im.relu(self.tape, op.add(self.tape, y, x)), out


def resnet_network(resnet: ResNet, memory: Memory, kernels: Sequence[im.Kernels], shown: int = 0) -> Network:
    """Return the kernels of a forward pass; ``kernels``: of each convolution in the order of launches.

    ``shown``: blocks of a stage at most, of which the last stands for the others (0: all). Raises
    WorkloadError where there are more or fewer kernels than convolutions.
    """
    tape, images = Tape(memory, training=False), Images(resnet.batch, 3, resnet.side, resnet.side)
    run, counter = _Run(tape, list(kernels)), Counter(tape)
    x = tape.value("images", resnet.batch * 3, images.pixels, ITEM)
    y, images = run.conv(x, images, WIDE, STEM)
    y, images = im.max_pool2d(tape, im.relu(tape, y), images, POOL)
    for stage, many in enumerate(resnet.blocks):
        here = shown_of(many, shown)
        for number in range(here):
            counter.mark()
            stride = 2 if stage and not number else 1
            y, images = run.block(y, images, WIDE << stage, stride, resnet.bottleneck)
        counter.mark(many - here + 1)
        del run.kernels[: (many - here) * (3 if resnet.bottleneck else 2)]
    if run.kernels:
        raise WorkloadError(f"ResNet: {len(run.kernels)} kernels without a convolution")
    if resnet.classes:
        means = im.average(tape, y, images)
        weight = tape.parameter("w", resnet.classes, images.channels, ITEM)
        op.linear(tape, means, weight, tape.parameter("b", 1, resnet.classes, ITEM), "fp32")
    return counter.network()
