"""A network of equal layers: the kernels of some, and how often each counts."""

from __future__ import annotations

from dataclasses import dataclass, field

from pysim.program.job import Kernel
from pysim.workloads.library.arguments import check_sizes

from .tape import Tape


@dataclass(slots=True)
class Piece:
    """Kernels in the order of their launches; ``counts``: how often each stands for itself and others.

    Layers that are alike take as long once caches hold what the one before left, so the last that is launched
    stands for those that are not. ``chained``: kernels were launched to one stream, so each waits for the one
    before; else for what it reads and overwrites.
    """

    kernels: list[Kernel] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    chained: bool = True


@dataclass(slots=True)
class Network:
    """Pieces that run one after another; the first kernels of a piece wait for all of the one before."""

    pieces: list[Piece] = field(default_factory=list)

    @property
    def launches(self) -> int:
        """Kernels of the whole network."""
        return sum(sum(piece.counts) for piece in self.pieces)

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels of all pieces."""
        return [kernel for piece in self.pieces for kernel in piece.kernels]


def shown_of(layers: int, shown: int) -> int:
    """Return how many of so many layers are launched; ``shown``: at most, 0: all."""
    check_sizes("network", 0, shown=shown)
    return min(layers, shown) if shown else layers


@dataclass(slots=True)
class Counter:
    """Counts how often the kernels of a tape stand for others."""

    tape: Tape
    counts: list[int] = field(default_factory=list)

    def mark(self, times: int = 1) -> None:
        """Let the kernels since the last mark count so often."""
        self.counts += [times] * (len(self.tape.kernels) - len(self.counts))

    def network(self) -> Network:
        """Return what was launched; kernels since the last mark count once."""
        self.mark()
        return Network([Piece(self.tape.kernels, self.counts)])
