"""Attention of one new token a sequence over cached keys and values, as in generation.

The cache has room for all keys; keys and values of the new tokens are copied into it first. On Hopper
FlashAttention-2 then reads it, split over keys; before Hopper, and in fp32, products of each head stand in
for it, after a copy of keys and values for each head where heads share them. Queries that are columns of a
wider tensor are read as if they were dense.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.attentions.attention import attention
from pysim.workloads.library.attentions.attention_problem import ITEM, WIDTHS, Attention
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.memory.pointwise_flat import strided_each
from pysim.workloads.library.memory.pointwise_parts import Work, flat
from pysim.workloads.library.memory.strided import View, dense, strided
from pysim.workloads.library.moved import Launches, Moves, moved

from . import operations as op
from .autocast import narrow
from .operations import mm
from .tape import Tape, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

REGISTERS = 16
VECTORS = (2, 4, 8, 16)  # B of a lane
BY_PRODUCTS = stand_in("one of FlashAttention, for heads of this width or type", measured=False)


@dataclass(frozen=True, slots=True)
class Cached:
    """A query of ``batch`` x ``heads`` planes of ``d`` columns each over ``k`` keys of ``kv_heads`` heads."""

    batch: int
    heads: int
    kv_heads: int
    k: int
    d: int

    @property
    def planes(self) -> int:
        """Pairs of batch and head."""
        return self.batch * self.heads


def attend(tape: Tape, problem: Cached, q: Tensor, new: tuple[tuple[Tensor, int], ...], dtype: str) -> Tensor:
    """Return softmax(q K^T) V, [batch * heads, d]: ``new`` has keys and values of the new tokens.

    Of each: a tensor with a row a sequence, and the column at which its heads begin. ``q``: as many elements
    as its queries have, at the beginning of a tensor.
    """
    p = problem
    item, many = q.item, p.batch * p.kv_heads
    caches = [tape.memory.tensor(name, many * p.k, p.d, item) for name in ("keys", "values")]
    for (source, first), cache in zip(new, caches, strict=True):
        tape.launch([_append(source, first, cache, p)])
    queries = Tensor(q.name, p.planes, p.d, item, q.address)
    hopper = tape.device in HOPPER
    if hopper and item == ITEM and p.d in WIDTHS:
        tape.work(1, p.k, 2 * p.d, p.planes)
        return tape.call(("decode", p), (queries, *caches), partial(_flash, tape, p, queries, caches))[0]
    begin = len(tape.kernels)
    if p.heads != p.kv_heads:
        caches = [_repeated(tape, cache, p) for cache in caches]
    scores = Value(mm(tape, dtype, (p.k, 1, p.d), "TN", (caches[0], queries), p.planes))
    shares = narrow(tape, op.softmax(tape, op.scale(tape, scores))).tensor
    made = mm(tape, dtype, (p.d, 1, p.k), "NN", (caches[1], shares), p.planes)
    if hopper:
        tape.kernels[begin:] = [replace(kernel, library=BY_PRODUCTS) for kernel in tape.kernels[begin:]]
    return made


def _flash(tape: Tape, p: Cached, q: Tensor, caches: list[Tensor]) -> Launches:
    """Return FlashAttention-2 of given operands: its templates make their own."""
    begin = len(tape.memory.tensors)
    problem = Attention(p.batch, p.heads, p.kv_heads, 1, p.k, p.d)
    kernels, outputs = attention(problem, tape.memory, backend="flash")
    named = {tensor.name: tensor for tensor in tape.memory.tensors[begin:]}
    places = Moves([(named[name], t) for name, t in zip("QKV", (q, *caches), strict=True)])
    return [moved(kernel, places) for kernel in kernels], outputs


def _repeated(tape: Tape, cache: Tensor, p: Cached) -> Tensor:
    """Return keys or values once for each head that takes them (``repeat_kv`` of Hugging Face)."""
    share, many = p.heads // p.kv_heads, p.batch * p.kv_heads
    made = tape.memory.tensor("repeated", p.planes * p.k, p.d, cache.item)
    sizes = p.k * p.d, share, many
    source = View(flat(cache), (1, 0, p.k * p.d))
    each = strided_each(cache.item)
    tape.launch([strided("copy_repeated", sizes, [source], dense(made, sizes), Work(), each)])
    return made


def _append(source: Tensor, first: int, cache: Tensor, p: Cached) -> Kernel:
    """Return the copy of a row of each head into the last row of its part of the cache (``index_copy_``).

    A warp a head, of which as many lanes take part as a head has vectors. What the cache has is also said
    to be read, since it was there before.
    """
    row = p.d * source.item
    width = next((each for each in VECTORS if not row % each and row <= each * WARP), 0)
    if not width:
        raise WorkloadError(
            f"copy into a cache: heads of {p.d} x {source.item} B: no whole vectors of a warp"
        )
    program = _program(width, row, first * source.item, source.pitch, p.k, p.kv_heads)

    def of(tbs: Ints) -> tuple[Ints, Ints]:
        tbs = np.asarray(tbs, np.int64)
        return tbs % p.kv_heads, tbs // p.kv_heads

    def taken(tbs: Ints) -> Ints:
        head, sequence = of(tbs)
        col = first + head * p.d
        return np.stack([sequence, sequence + 1, col, col + p.d], 1)

    def put(tbs: Ints) -> Ints:
        row = (np.asarray(tbs, np.int64) + 1) * p.k - 1
        zero = np.zeros_like(row)
        return np.stack([row, row + 1, zero, zero + p.d], 1)

    def nothing(tbs: Ints) -> Ints:
        return np.zeros((len(tbs), 4), np.int64)

    accesses = Access(source, "read", taken), Access(cache, "read", nothing), Access(cache, "write", put)
    return Kernel(
        "append", program, (p.kv_heads, p.batch, 1), (source, cache), accesses,
        library=stand_in("index_copy_", measured=False),
    )  # fmt: skip


@lru_cache(maxsize=64)
def _program(width: int, row: int, base: int, pitch: int, keys: int, heads: int) -> Program:
    code, lanes = Code(), (1 << row // width) - 1
    code.compute(int=24, control=4, chain=4)
    code.load(0, Pattern(0, width, base=base, bx=row, by=pitch, s0=width, lanes=lanes))
    code.wait(0)
    last = (keys - 1) * row
    code.store(1, Pattern(1, width, base=last, bx=keys * row, by=heads * keys * row, s0=width, lanes=lanes))
    code.exit()
    return Program("append", (tuple(code.ops),), 1, REGISTERS, 0, 2)
