"""Rotations by positions, and keys that several heads share, as Hugging Face's LLaMA launches them.

Forward kernels are those recorded on an H100. Backward a slice's gradient is zeros with a copy in them
(``slice_backward``); these kernels were not recorded. Under autocast heads of 16 bits times cosines of fp32
are fp32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from pysim.program.job import Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.framework.autocast import MIXED
from pysim.workloads.framework.tape import Gradients, Tape, Value, one
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.cat_copy import Columns, cat_columns
from pysim.workloads.library.memory.head_copies import Heads
from pysim.workloads.library.memory.pointwise_costs import ADD, MUL
from pysim.workloads.library.memory.pointwise_flat import strided_each
from pysim.workloads.library.memory.pointwise_parts import Work, flat
from pysim.workloads.library.memory.strided import View, dense, strided

SUM = stand_in("reduce_kernel of strided operands", measured=False)
NEGATE = Work(ints=1)


@dataclass(frozen=True, slots=True)
class Rotation:
    """Heads of [tokens, heads * d] that are rotated; ``cosines``, ``sines``: of each token, [seq, d].

    The result has their type, ``dtype`` is that of what is rotated.
    """

    tape: Tape
    heads: Heads
    cosines: Tensor
    sines: Tensor
    dtype: str

    def apply(self, x: Value) -> Value:
        """Return the heads rotated by their positions, as they were side by side."""
        back = partial(self._backward, x.tensor.item)
        return self.tape.record((self._forward(x.tensor),), (x,), back)[0]

    def new(self, name: str) -> Tensor:
        """Return a new tensor of heads side by side."""
        h = self.heads
        return self.tape.memory.tensor(name, h.batch * h.seq, h.heads * h.d, self.cosines.item)

    def rows(self, name: str, cols: int, item: int) -> Tensor:
        """Return a new tensor with a row for each head of each token."""
        h = self.heads
        return self.tape.memory.tensor(name, h.batch * h.seq * h.heads, cols, item)

    def _by(self, name: str, factors: Tensor, x: Tensor, made: Tensor) -> Tensor:
        """Launch a product with what all heads and sequences share."""
        h = self.heads
        sizes = h.d, h.heads, h.seq, h.batch
        self._multiply(name, sizes, (dense(x, sizes), View(flat(factors), (1, 0, h.d, 0))), made)
        return made

    def _multiply(self, name: str, sizes: tuple[int, ...], inputs: tuple[View, View], made: Tensor) -> None:
        """Launch a product, of two types the wider one."""
        kernel = strided(name, sizes, inputs, dense(made, sizes), MUL, strided_each(made.item))
        mixed = inputs[0].tensor.item != inputs[1].tensor.item
        self.tape.launch([replace(kernel, library=MIXED) if mixed else kernel])

    def _negated(self, x: Tensor, first: int) -> Tensor:
        """Return half of each head, from a column on, negated."""
        h, half = self.heads, self.rows("half", self.heads.d // 2, x.item)
        narrow = h.d // 2, h.heads, h.seq, h.batch
        source = View(_by_head(x, h), (1, h.d, h.heads * h.d, h.seq * h.heads * h.d), first)
        each = strided_each(x.item)
        self.tape.launch([strided("negate", narrow, [source], dense(half, narrow), NEGATE, each)])
        return half

    def _forward(self, x: Tensor) -> Tensor:
        h, tape, memory = self.heads, self.tape, self.tape.memory
        sizes = h.d, h.heads, h.seq, h.batch
        turned = self._by("mul_cosine", self.cosines, x, self.new("by_cosine"))
        half, swapped = self._negated(x, h.d // 2), self.rows("swapped", h.d, x.item)
        tape.launch([cat_columns([Columns(half), Columns(_by_head(x, h))], h.d // 2, swapped)])
        # stacked: heads of a sequence one below the other
        stacked = memory.tensor("by_sine", h.batch * h.seq * h.heads, h.d, turned.item)
        stacked_sizes = h.d, h.seq, h.heads, h.batch
        inputs = dense(swapped, stacked_sizes), View(flat(self.sines), (1, h.d, 0, 0))
        self._multiply("mul_sine", stacked_sizes, inputs, stacked)
        made, each = self.new("rotated"), strided_each(turned.item)
        # of one token heads are one below the other as well as side by side
        other = View(flat(stacked) if h.seq == 1 else stacked, (1, h.seq * h.d, h.d, h.heads * h.seq * h.d))
        tape.launch([strided("add", sizes, (dense(turned, sizes), other), dense(made, sizes), ADD, each)])
        return made

    def _backward(self, item: int, given: Gradients) -> Gradients:
        """Return the gradient of heads of ``item`` B."""
        h, tape, memory, gradient = self.heads, self.tape, self.tape.memory, one(given)
        each = strided_each(item)

        def narrowed(made: Tensor) -> Tensor:
            return made if made.item == item else tape.run(memory_ops.cast(memory, made, "fp32", self.dtype))

        def by(name: str, factors: Tensor, target: str) -> Tensor:
            return narrowed(self._by(name, factors, gradient, self.rows(target, h.d, gradient.item)))

        by_sine = by("mul_sine", self.sines, "grad_swapped")
        narrow = h.d // 2, h.batch * h.seq * h.heads

        def sliced(source: View, first: int) -> Tensor:
            made = tape.run(memory_ops.fill(memory, narrow[1], h.d, self.dtype))
            tape.launch([strided("copy_slice", narrow, [source], View(made, (1, h.d), first), Work(), each)])
            return made

        second = sliced(dense(self._negated(by_sine, 0), narrow), h.d // 2)
        first = sliced(View(by_sine, (1, h.d), h.d // 2), 0)
        turned = tape.run(memory_ops.add(memory, second, first))
        by_cosine = by("mul_cosine", self.cosines, "grad_by_cosine")
        made = tape.run(memory_ops.add(memory, turned, by_cosine))
        return (Tensor(made.name, gradient.rows, gradient.cols, made.item, made.address),)


def _by_head(x: Tensor, h: Heads) -> Tensor:
    """See heads side by side as rows."""
    return Tensor(x.name, h.batch * h.seq * h.heads, h.d, x.item, x.address)


def repeated(tape: Tape, x: Value, kv: Heads, share: int) -> Value:
    """Return keys or values once for each of the ``share`` heads that take them, one below the other.

    ``x``: [batch * seq, heads * d] of the heads of keys. Backward: the sum over heads that share.
    """
    memory, pitch, item = tape.memory, kv.heads * kv.d, x.tensor.item
    made = memory.tensor("repeated", kv.batch * kv.seq * kv.heads * share, kv.d, item)
    each = strided_each(item)
    sizes = kv.d, kv.seq, share, kv.heads, kv.batch
    source = View(x.tensor, (1, pitch, 0, kv.d, kv.seq * pitch))
    tape.launch([strided("copy_repeated", sizes, [source], dense(made, sizes), Work(), each)])

    def backward(given: Gradients) -> Gradients:
        back, plane = memory.tensor("grad_repeated", kv.batch * kv.seq, pitch, item), kv.seq * kv.d
        strides, wide = (1, share * plane, kv.d, kv.heads * share * plane), (kv.d, kv.heads, kv.seq, kv.batch)
        views = [View(flat(one(given)), strides, number * plane) for number in range(share)]
        name = "sum_repeated" if share > 1 else "copy_repeated"
        kernel = strided(name, wide, views, dense(back, wide), ADD.times(share - 1), each)
        tape.launch([replace(kernel, library=SUM)] if share > 1 else [kernel])
        return (back,)

    return tape.record((made,), (x,), backward)[0]
