"""Addresses as PyTorch's caching allocator gives them out: what a network no longer needs is used again.

Templates give each tensor memory of its own. ``reused`` moves the tensors of a network to where the
allocator would have put them, so that writes after reads (WAR) are those of a real run. Sizes, pools and the
choice of a block are those of c10/cuda/CUDACachingAllocator.cpp (PyTorch 2.11, defaults): a
tensor is freed when the last kernel that touches it has been launched, not when that kernel ends.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Memory, Tensor
from pysim.workloads.library.moved import moved

MIB = 1 << 20
ROUND = 512  # B to which sizes are rounded up
SMALL = MIB  # B up to which a tensor comes from the pool of small blocks
SMALL_SEGMENT = 2 * MIB
LARGE = 10 * MIB  # B from which on a tensor has a segment of its own, in multiples of LARGE_ROUND
LARGE_SEGMENT = 20 * MIB
LARGE_ROUND = 2 * MIB


@dataclass(slots=True)
class Block:
    """Bytes of a segment, ``taken`` by a tensor or free."""

    address: int
    size: int
    taken: bool = False


@dataclass(slots=True)
class Pool:
    """The blocks of one pool in the order of their addresses; ``least``: B of a rest that is cut off."""

    least: int
    blocks: list[Block] = field(default_factory=list)
    segments: set[int] = field(default_factory=set)  # their addresses: blocks of two never merge

    def find(self, size: int) -> int | None:
        """Return the place of the smallest free block that is large enough, the first of several."""
        fitting = [(b.size, i) for i, b in enumerate(self.blocks) if not b.taken and b.size >= size]
        return min(fitting)[1] if fitting else None

    def grow(self, segment: Block) -> int:
        """Add a segment; return the place of its block."""
        self.segments.add(segment.address)
        place = self._place(segment)
        self.blocks.insert(place, segment)
        return place

    def take(self, place: int, size: int) -> Block:
        """Take ``size`` bytes of a free block, and cut off what is left if it is worth it."""
        block = self.blocks[place]
        if block.size - size >= self.least:
            self.blocks.insert(place + 1, Block(block.address + size, block.size - size))
            block.size = size
        block.taken = True
        return block

    def free(self, block: Block) -> None:
        """Free a block, and merge it with free neighbours of its segment."""
        block.taken = False
        place = self._place(block)
        for first in (place, place - 1):
            if 0 <= first < len(self.blocks) - 1:
                a, b = self.blocks[first : first + 2]
                if not a.taken and not b.taken and b.address not in self.segments:
                    a.size += b.size
                    del self.blocks[first + 1]

    def _place(self, block: Block) -> int:
        return bisect.bisect_left(self.blocks, block.address, key=lambda each: each.address)


@dataclass(slots=True)
class CachingAllocator:
    """Two pools of blocks; segments are new memory of ``memory``."""

    memory: Memory
    small: Pool = field(default_factory=lambda: Pool(ROUND))
    large: Pool = field(default_factory=lambda: Pool(SMALL + 1))

    def take(self, nbytes: int) -> Block:
        """Return a block of at least ``nbytes``."""
        size = -(-nbytes // ROUND) * ROUND
        pool = self._pool(size)
        place = pool.find(size)
        if place is None:
            if size <= SMALL:
                segment = SMALL_SEGMENT
            elif size < LARGE:
                segment = LARGE_SEGMENT
            else:
                segment = -(-size // LARGE_ROUND) * LARGE_ROUND
            place = pool.grow(Block(self.memory.tensor("segment", 1, segment, 1).address, segment))
        return pool.take(place, size)

    def free(self, block: Block, nbytes: int) -> None:
        """Give back a block that :meth:`take` returned for ``nbytes``."""
        self._pool(nbytes).free(block)

    def _pool(self, size: int) -> Pool:
        return self.small if size <= SMALL else self.large


@dataclass(slots=True)
class _Life:
    """From which kernel on a tensor is needed, and until which.

    ``given``: an input or parameter; ``result``: the last kernel that touches it does not read it.
    """

    first: int
    last: int
    given: bool
    result: bool = True


@dataclass(slots=True)
class _Roots:
    """The allocations of a memory: a tensor is one of them or a part of one."""

    tensors: list[Tensor]
    starts: list[int]

    @classmethod
    def of(cls, memory: Memory) -> _Roots:
        tensors = sorted(memory.tensors, key=lambda tensor: tensor.address)
        return cls(tensors, [tensor.address for tensor in tensors])

    def number(self, tensor: Tensor) -> int:
        """Return which allocation holds a tensor."""
        found = bisect.bisect(self.starts, tensor.address) - 1
        root = self.tensors[found] if found >= 0 else None
        if root is None or tensor.address + tensor.nbytes > root.address + root.nbytes:
            raise WorkloadError(f"tensor {tensor.name}: the memory of the network does not hold it")
        return found


def reused(kernels: Sequence[Kernel], memory: Memory, held: Sequence[Tensor] = ()) -> list[Kernel]:
    """Return the kernels with their tensors where PyTorch's allocator would have put them.

    A tensor is of the stream of the first kernel that uses it, and so is its block from then on.

    What a kernel reads before any kernel wrote it is an input or a parameter and stays where it is, as do
    results that no kernel reads, and what is ``held`` until the end since several streams use it. A part of a
    tensor moves with the tensor. Raises WorkloadError for a kernel with recorded addresses, and for a tensor
    that ``memory`` does not hold.
    """
    roots = _Roots.of(memory)
    kept = {roots.number(tensor) for tensor in held}
    lives = {root: life for root, life in _lives(kernels, roots).items() if root not in kept}
    moves = _moves(lives, roots, [kernel.stream for kernel in kernels], memory)

    return [moved(kernel, _Places(roots, moves)) for kernel in kernels]


def _lives(kernels: Sequence[Kernel], roots: _Roots) -> dict[int, _Life]:
    lives: dict[int, _Life] = {}
    for number, kernel in enumerate(kernels):
        if not kernel.affine:
            raise WorkloadError(f"kernel {kernel.name}: its addresses are recorded and cannot move")
        read = {roots.number(access.tensor) for access in kernel.accesses if access.mode == "read"}
        changed = {roots.number(access.tensor) for access in kernel.accesses if access.mode != "read"}
        for root in sorted({*read, *changed, *map(roots.number, kernel.args)}):
            life = lives.setdefault(root, _Life(number, number, given=root not in changed or root in read))
            life.last = number
            life.result = root not in read
    return lives


def _moves(lives: dict[int, _Life], roots: _Roots, streams: Sequence[int], memory: Memory) -> dict[int, int]:
    """Return by how many bytes each allocation moves that is neither given nor a result.

    ``streams``: of each kernel.
    """
    begin: list[list[int]] = [[] for _ in streams]
    end: list[list[int]] = [[] for _ in streams]
    for root, life in lives.items():
        if not life.given and not life.result:
            begin[life.first].append(root)
            end[life.last].append(root)
    allocators = {stream: CachingAllocator(memory) for stream in sorted(set(streams))}
    taken, moves = dict[int, Block](), dict[int, int]()
    for new, old, stream in zip(begin, end, streams, strict=True):
        for root in new:
            taken[root] = allocators[stream].take(roots.tensors[root].nbytes)
            moves[root] = taken[root].address - roots.tensors[root].address
        for root in old:
            own = streams[lives[root].first]
            allocators[own].free(taken.pop(root), roots.tensors[root].nbytes)
    return moves


@dataclass(slots=True)
class _Places:
    """Where tensors are; a tensor that moves is one new tensor wherever a kernel names it."""

    roots: _Roots
    moves: dict[int, int]
    made: dict[Tensor, Tensor] = field(default_factory=dict)

    def __call__(self, tensor: Tensor) -> Tensor:
        move = self.moves.get(self.roots.number(tensor), 0)
        if not move:
            return tensor
        return self.made.setdefault(tensor, replace(tensor, address=tensor.address + move))
