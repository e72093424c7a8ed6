"""Networks of cells that were searched for: NASNet-A and AmoebaNet-A.

A cell has five sums of two operations each, on the results of the two cells before (0: the one before last,
1: the last) or on sums before (2, ...); some of these are concatenated. Skeleton, stems and filters are
NASNet's (Zoph et al. 2018, appendix A): a convolution of 32 filters, two reduction cells of a quarter and of
half the filters, then three stages of cells with a reduction before the second and the third. Separable
filters are applied twice, each time a ReLU, depthwise, 1 x 1, and a normalisation. The shifted half of a
factorised reduction is taken without its copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.workloads.framework import operations as op
from pysim.workloads.framework.vision import layers as la
from pysim.workloads.framework.vision.convolve import conv2d
from pysim.workloads.library.memory.images import Images, Window

from .residual import ONE, linear

if TYPE_CHECKING:
    from pysim.workloads.framework.tape import Value
    from pysim.workloads.networks.shapes import Cells, Genes

    from .build import Pictures

STEM, STEM_FILTERS = Window(3, 2), 32
State = tuple["Value", Images]


def cells(shape: Cells, p: Pictures, layers: int) -> Value:
    """Return the logits of a network of ``layers`` normal cells a stage."""
    run, f = _Run(p), shape.filters
    stem = run.normalised(conv2d(p.tape, p.x, p.images, STEM_FILTERS, STEM, p.dtype))
    first = run.cell(shape.reduction, (stem, stem), f // 4, 2, stem=True)
    before, last = first, run.cell(shape.reduction, (stem, first), f // 2, 2)
    for stage in range(3):
        if stage:
            before, last = last, run.cell(shape.reduction, (before, last), f << stage, 2)
        for _ in range(layers):
            before, last = last, run.cell(shape.normal, (before, last), f << stage, 1)
    x, images = last
    return linear(p, la.average(p.tape, la.relu(p.tape, x), images), shape.classes)


@dataclass(slots=True)
class _Run:
    p: Pictures

    def normalised(self, state: State) -> State:
        """Return images normalised."""
        return la.batch_norm2d(self.p.tape, *state), state[1]

    def point(self, state: State, filters: int) -> State:
        """Return a ReLU, a convolution of 1 x 1 and a normalisation."""
        x = la.relu(self.p.tape, state[0])
        return self.normalised(conv2d(self.p.tape, x, state[1], filters, ONE, self.p.dtype))

    def halved(self, state: State, filters: int) -> State:
        """Return half as many rows and columns: two halves of the filters, each of every second pixel."""
        tape, (x, images) = self.p.tape, state
        x, parts = la.relu(tape, x), []
        for many in (filters // 2, filters - filters // 2):
            some, out = la.average_pool2d(tape, x, images, Window(1, 2))
            part, out = conv2d(tape, some, out, many, ONE, self.p.dtype)
            parts.append(part)
        return self.normalised(la.cat(tape, parts, out))

    def separable(self, state: State, filters: int, side: int, stride: int) -> State:
        """Return separable filters, applied twice; the first time with the stride."""
        for turn in range(2):
            x, images = la.relu(self.p.tape, state[0]), state[1]
            window = Window(side, 1 if turn else stride, side // 2)
            y, images = conv2d(
                self.p.tape, x, images, images.channels, window, self.p.dtype, groups=images.channels
            )
            state = self.normalised(conv2d(self.p.tape, y, images, filters, ONE, self.p.dtype))
        return state

    def apply(self, kind: str, state: State, filters: int, stride: int) -> State:
        """Return an operation on a state; a skip that is strided halves it."""
        if kind == "skip":
            return state if stride == 1 else self.halved(state, filters)
        if kind.startswith("sep"):
            return self.separable(state, filters, int(kind[3:]), stride)
        pool = la.max_pool2d if kind == "max" else la.average_pool2d
        return pool(self.p.tape, *state, Window(3, stride, 1))

    def cell(
        self, genes: Genes, inputs: tuple[State, State], filters: int, stride: int, *, stem: bool = False
    ) -> State:
        """Return a cell; in the first of a stem only separable filters read the images as they are."""
        left, right = inputs
        direct = stem and all(kind.startswith("sep") for kind, at in genes.pairs if at == 0)
        if not direct:
            half = left[1].height > right[1].height
            left = self.halved(left, filters) if half else self.point(left, filters)
        states = [left, self.point(right, filters)]
        for number in range(0, len(genes.pairs), 2):
            ends = [
                self.apply(kind, states[at], filters, stride if at < 2 else 1)
                for kind, at in genes.pairs[number : number + 2]
            ]
            states.append((op.add(self.p.tape, ends[0][0], ends[1][0]), ends[0][1]))
        return la.cat(self.p.tape, [states[at][0] for at in genes.kept], states[genes.kept[-1]][1])
