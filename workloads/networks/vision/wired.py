"""RandWire: stages whose nodes are wired at random (Xie et al. 2019), as Watts and Strogatz wire a ring.

A node adds up its inputs, each times a weight (a factor of the addition), then a ReLU, a separable
convolution of 3 x 3 and a normalisation. Nodes without an earlier neighbour read what the stage gets, with a
stride of 2; what no node reads is averaged. Edges go from the lower to the higher number; they are drawn by
``seed``, so parameters and work depend on it a little.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from pysim.workloads.framework import operations as op
from pysim.workloads.framework.vision import layers as la
from pysim.workloads.framework.vision.convolve import conv2d
from pysim.workloads.library.memory.images import Images, Window

from .residual import ONE, linear

if TYPE_CHECKING:
    from pysim.workloads.framework.tape import Value
    from pysim.workloads.networks.shapes import Wired

    from .build import Pictures

HALVING = Window(3, 2, 1)
HEAD = 1280  # features before the classes
State = tuple["Value", Images]


def wired(shape: Wired, p: Pictures, nodes: int, seed: int) -> Value:
    """Return the logits of a network of ``nodes`` a stage."""
    run, random, f = _Run(p), Random(seed), shape.filters
    state = run.normalised(conv2d(p.tape, p.x, p.images, f // 2, HALVING, p.dtype))
    x = la.relu(p.tape, state[0])
    state = run.normalised(conv2d(p.tape, x, state[1], f, HALVING, p.dtype))
    for stage in range(3):
        state = run.stage(state, f << stage, edges(nodes, shape.near, shape.rewired, random))
    x = la.relu(p.tape, state[0])
    x, images = run.normalised(conv2d(p.tape, x, state[1], HEAD, ONE, p.dtype))
    x = la.relu_(p.tape, x)
    return linear(p, la.average(p.tape, x, images), shape.classes)


def edges(nodes: int, near: int, rewired: float, random: Random) -> list[list[int]]:
    """Return for each node the earlier ones that it reads: a Watts-Strogatz graph, each edge once."""
    pairs: set[tuple[int, int]] = set()
    for step in range(1, near // 2 + 1):
        for node in range(nodes):
            other = (node + step) % nodes
            if random.random() < rewired:
                free = [n for n in range(nodes) if n != node and (min(n, node), max(n, node)) not in pairs]
                other = random.choice(free) if free else other
            if other != node:
                pairs.add((min(node, other), max(node, other)))
    return [sorted(a for a, b in pairs if b == node) for node in range(nodes)]


@dataclass(slots=True)
class _Run:
    p: Pictures

    def normalised(self, state: State) -> State:
        """Return images normalised."""
        return la.batch_norm2d(self.p.tape, *state), state[1]

    def node(self, state: State, filters: int, stride: int) -> State:
        """Return a ReLU, a separable convolution of 3 x 3 and a normalisation."""
        tape, dtype, images = self.p.tape, self.p.dtype, state[1]
        x = la.relu(tape, state[0])
        y, images = conv2d(
            tape, x, images, images.channels, Window(3, stride, 1), dtype, groups=images.channels
        )
        return self.normalised(conv2d(tape, y, images, filters, ONE, dtype))

    def stage(self, state: State, filters: int, wires: list[list[int]]) -> State:
        """Return a stage of nodes that read as ``wires`` says."""
        made: list[State] = []
        for earlier in wires:
            if not earlier:
                made.append(self.node(state, filters, 2))
                continue
            made.append(self.node(self.total([made[at] for at in earlier]), filters, 1))
        read = {at for earlier in wires for at in earlier}
        ends = [each for number, each in enumerate(made) if number not in read]
        x, images = self.total(ends)
        return (op.scale(self.p.tape, x) if len(ends) > 1 else x), images

    def total(self, states: list[State]) -> State:
        """Return the sum of states."""
        x, images = states[0]
        for other, _ in states[1:]:
            x = op.add(self.p.tape, x, other)
        return x, images
