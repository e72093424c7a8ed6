"""LLaMA as PyTorch and Hugging Face's transformers run it in a captured graph, of one type or under autocast.

Norms, rotations of positions and repeated keys are element-wise kernels one by one, as recorded on an H100
for the forward pass; attention is as ``decoders.attention`` says. Fills stand in for kernels of a few
elements. A concatenation reads heads as if they were in the order in which it writes them. Under autocast the
mask and a cache are of the 16 bits of products.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from pysim.errors import WorkloadError
from pysim.program.job import Memory, Tensor
from pysim.workloads.library.arguments import (
    MOST_LAYERS,
    check_elements,
    check_names,
    check_sizes,
    check_type,
)
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.head_copies import Heads
from pysim.workloads.library.memory.pointwise_flat import strided_each
from pysim.workloads.library.memory.pointwise_gather import drawn
from pysim.workloads.library.memory.pointwise_parts import ITEM, flat, item_of
from pysim.workloads.library.memory.strided import View, dense, strided

from . import operations as op
from .autocast import cast, narrow
from .decode import Cached, attend
from .decoders.attention import by_products, causal, fits, masked
from .decoders.elementwise import mul, rms_norm, silu
from .decoders.positions import Rotation, repeated
from .losses import backward_from, cross_entropy
from .math_attention import CHOOSE, FP16_EACH
from .network import Counter, Network, shown_of
from .tape import Tape, Value

DTYPE = "bf16"
BEFORE, AFTER_MASK = 23, 10  # kernels of a few elements before the mask of pairs is made, and after it


@dataclass(frozen=True, slots=True)
class Llama:
    """``layers`` of ``d`` features, ``heads`` on ``kv_heads`` of keys and values, and ``ffn`` features.

    ``batch`` sequences of ``seq`` tokens. ``cached``: keys that attention has, the new token's among them,
    where ``seq`` is that token (0: no cache).
    """

    d: int
    heads: int
    kv_heads: int
    ffn: int
    layers: int
    batch: int
    seq: int
    vocabulary: int = 32000
    cached: int = 0

    def __post_init__(self) -> None:
        """Refuse sizes that are not positive, and heads that do not share evenly."""
        check_sizes("LLaMA", d=self.d, heads=self.heads, kv_heads=self.kv_heads, ffn=self.ffn)
        check_sizes("LLaMA", batch=self.batch, seq=self.seq, vocabulary=self.vocabulary)
        check_sizes("LLaMA", most=MOST_LAYERS, layers=self.layers)
        check_elements("LLaMA", batch_x_seq_x_features=(self.batch, self.seq, max(self.d, self.ffn)))
        check_elements("LLaMA", batch_x_seq_x_seq=(self.batch, self.seq, self.seq))
        check_elements("LLaMA", batch_x_seq_x_vocabulary=(self.batch, self.seq, self.vocabulary))
        check_elements("LLaMA", d_x_features=(self.d, max(self.d, self.ffn, self.vocabulary)))
        check_sizes("LLaMA", 0, cached=self.cached)
        if self.cached and self.seq != 1:
            raise WorkloadError(f"LLaMA: cached = {self.cached}: seq = {self.seq}: must be 1")
        if self.d % self.heads:
            raise WorkloadError(f"LLaMA: d = {self.d}: must be a multiple of heads = {self.heads}")
        if self.heads % self.kv_heads:
            raise WorkloadError(
                f"LLaMA: heads = {self.heads}: must be a multiple of kv_heads = {self.kv_heads}"
            )

    @property
    def each(self) -> int:
        """Features of a head."""
        return self.d // self.heads

    @property
    def tokens(self) -> int:
        """Rows of an activation."""
        return self.batch * self.seq


@dataclass(slots=True)
class _Run:
    llama: Llama
    tape: Tape
    cosines: Tensor  # of each token of a sequence, [seq, d of a head]; sines alike
    sines: Tensor
    dtype: str

    @property
    def item(self) -> int:
        """Bytes of an element of parameters."""
        return item_of(self.dtype)

    @property
    def of_products(self) -> str:
        """The type that products take."""
        return self.tape.amp or self.dtype

    @property
    def fused(self) -> bool:
        """Whether attention of all tokens is one kernel."""
        return fits(self.tape, self.llama.seq, self.llama.each, self.dtype)

    def linear(self, x: Value, out: int) -> Value:
        weight = self.tape.parameter("w", out, x.tensor.cols, self.item)
        return op.linear(self.tape, x, weight, None, self.dtype)

    def small(self, count: int) -> None:
        """Launch kernels of a few elements."""
        for _ in range(count):
            self.tape.run(memory_ops.fill(self.tape.memory, 1, 1, "fp32"))

    def norm(self, x: Value) -> Value:
        """Return the RMSNorm of each row."""
        weight = self.tape.parameter("w_norm", 1, x.tensor.cols, self.item)
        return rms_norm(self.tape, x, weight, self.dtype)

    def heads(self, many: int) -> Heads:
        """Return so many heads of the tokens."""
        return Heads(self.llama.batch, self.llama.seq, many, self.llama.each)

    def rotated(self, x: Value, heads: int) -> Value:
        """Return the heads of [tokens, heads * d], rotated by their positions, as they were side by side."""
        turn = Rotation(self.tape, self.heads(heads), self.cosines, self.sines, self.of_products)
        return turn.apply(x)

    def bias(self, mask: Tensor, batch: int) -> Tensor:
        """Return 0 or a low number for each pair of tokens of so many sequences, [batch * seq, seq]."""
        m, tape, dtype = self.llama, self.tape, self.of_products
        low, zero = (tape.run(memory_ops.fill(tape.memory, 1, 1, dtype)) for _ in range(2))
        made, sizes = tape.memory.tensor("bias", batch * m.seq, m.seq, item_of(dtype)), (m.seq, m.seq, batch)
        pairs = Tensor(mask.name, batch * m.seq, mask.cols, 1, mask.address)
        inputs = self.pairs(pairs, sizes), View(zero, (0, 0, 0)), View(low, (0, 0, 0))
        each = strided_each(made.item)
        tape.launch([strided("where", sizes, inputs, dense(made, sizes), CHOOSE, each)])
        return made

    def pairs(self, mask: Tensor, sizes: tuple[int, int, int]) -> View:
        """Return the view of a mask whose rows are as long as sequences, or a byte longer."""
        if mask.cols == sizes[0]:
            return View(flat(mask), (1, sizes[0], sizes[0] * sizes[1]))
        return View(mask, (1, mask.cols, mask.cols * sizes[1]))

    def attention(self, x: Value, mask: Tensor) -> Value:
        m, tape = self.llama, self.tape
        q, k, v = (self.linear(x, heads * m.each) for heads in (m.heads, m.kv_heads, m.kv_heads))
        turned = self.rotated(q, m.heads)
        if m.cached:
            turned, k = (narrow(tape, each) for each in (turned, self.rotated(k, m.kv_heads)))
            one = Cached(m.batch, m.heads, m.kv_heads, m.cached, m.each)
            y = attend(tape, one, turned.tensor, ((k.tensor, 0), (v.tensor, 0)), self.dtype)
            return self.linear(Value(Tensor("attended", m.batch, m.d, y.item, y.address)), m.d)
        kv, share, h = self.heads(m.kv_heads), m.heads // m.kv_heads, self.heads(m.heads)
        keys = repeated(tape, self.rotated(k, m.kv_heads), kv, share)
        values = repeated(tape, v, kv, share)
        if not self.fused:
            o = by_products(tape, turned, keys, values, Value(mask, wanted=False), h, self.dtype)
        elif tape.training:
            o = causal(tape, turned, keys, values, h)
        else:
            o = masked(tape, turned, keys, values, self.bias(mask, m.batch), h)
        return self.linear(o, m.d)

    def feed_forward(self, x: Value) -> Value:
        gate = silu(self.tape, self.linear(x, self.llama.ffn))
        return self.linear(mul(self.tape, gate, self.linear(x, self.llama.ffn)), self.llama.d)

    def layer(self, x: Value, mask: Tensor) -> Value:
        x = op.add(self.tape, x, self.attention(self.norm(x), mask))
        return op.add(self.tape, x, self.feed_forward(self.norm(x)))

    def mask(self) -> Tensor:
        """Return which pairs of tokens attend, a byte each: two rules, one after the other.

        For attention by products it is what is added to scores, [seq, seq].
        """
        m, tape = self.llama, self.tape
        pitch = m.seq + m.seq % 2  # the simulator takes pairs of bytes
        made = [tape.memory.tensor("mask", m.tokens, pitch, 1) for _ in range(3)]
        sizes = m.seq, m.seq, m.batch
        for before, after in pairwise(made):
            all_of, first = self.pairs(before, sizes), self.pairs(before, (m.seq, m.seq, 1))
            inputs = all_of, replace(first, strides=(1, pitch, 0))
            output = self.pairs(after, sizes)
            tape.launch([strided("and_pairs", sizes, inputs, output, CHOOSE, FP16_EACH)])
        return made[-1] if self.fused else self.bias(made[-1], 1)


def llama_network(llama: Llama, memory: Memory, shown: int = 0) -> Network:
    """Return the kernels of a forward pass, of ``shown`` layers at most (0: all)."""
    check_type("LLaMA", Memory, memory=memory)
    return llama_on(Tape(memory, training=False), llama, shown)


def llama_on(tape: Tape, llama: Llama, shown: int = 0, dtype: str = DTYPE) -> Network:
    """Launch a pass on a tape, of ``shown`` layers at most (0: all); return its kernels.

    Where the tape is in training, the mean cross entropy of all tokens, in fp32, and all gradients follow.
    ``dtype``: of parameters, fp32 where the tape has autocast. Raises WorkloadError for other types than
    those of ``ITEM``, and for gradients of a token with a cache.
    """
    check_type("LLaMA", Llama, llama=llama)
    check_sizes("LLaMA", 0, shown=shown)
    check_names("LLaMA", ("fp32",) if tape.amp else ITEM, dtype=dtype)
    if tape.training and llama.cached:
        raise WorkloadError(f"LLaMA: cached = {llama.cached}: must be 0 in training")
    m, memory = llama, tape.memory
    item = item_of(dtype)
    cosines, sines = (memory.tensor(name, m.seq, m.each, item) for name in ("cosines", "sines"))
    run, counter = _Run(m, tape, cosines, sines, dtype), Counter(tape)
    table = tape.parameter("words", m.vocabulary, m.d, item)
    x = op.embedding(tape, table, drawn(m.tokens, m.vocabulary), dtype)
    run.small(BEFORE)
    # one token sees all; what cuDNN's causal kernel sees is implied
    implied = m.cached or (tape.training and run.fused)
    mask = x.tensor if implied else run.mask()
    run.small(AFTER_MASK)
    counter.mark()
    many = shown_of(m.layers, shown)
    for number in range(many):
        x = run.layer(x, mask)
        counter.mark(1 if number + 1 < many else m.layers - many + 1)
    logits = run.linear(run.norm(x), m.vocabulary)
    if tape.training:
        if logits.tensor.item < item_of("fp32"):
            logits = cast(tape, logits, run.of_products, "fp32")
        backward_from(tape, cross_entropy(tape, logits))
    return counter.network()
