"""LLaMA as PyTorch and Hugging Face's transformers run it in a captured graph, forward, in bf16.

Norms, rotations of positions and repeated keys are element-wise kernels one by one, as recorded on an H100;
attention is cuDNN's, with a mask that is added to the scores. Fills stand in for kernels of a
few elements. A concatenation reads heads as if they were in the order in which it writes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from pysim.errors import WorkloadError
from pysim.program.job import Memory, Tensor
from pysim.workloads.library.arguments import MOST_LAYERS, check_elements, check_sizes, check_type
from pysim.workloads.library.attentions.attention import Places, attention
from pysim.workloads.library.attentions.attention_problem import Attention, Planes
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.cat_copy import Columns, cat_columns
from pysim.workloads.library.memory.pointwise_costs import ADD, MUL
from pysim.workloads.library.memory.pointwise_gather import drawn
from pysim.workloads.library.memory.pointwise_parts import Work, flat
from pysim.workloads.library.memory.strided import View, dense, strided

from . import operations as op
from .decode import attend
from .math_attention import CHOOSE, FP16_EACH, FP32_EACH
from .network import Counter, Network, shown_of
from .tape import Tape, Value

DTYPE, ITEM, FLOAT = "bf16", 2, 4
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

    def linear(self, x: Value, out: int) -> Value:
        weight = self.tape.parameter("w", out, x.tensor.cols, ITEM)
        return op.linear(self.tape, x, weight, None, DTYPE)

    def small(self, count: int) -> None:
        """Launch kernels of a few elements."""
        for _ in range(count):
            self.tape.run(memory_ops.fill(self.tape.memory, 1, 1, "fp32"))

    def norm(self, x: Value) -> Value:
        """Return the RMSNorm of each row."""
        tape, memory, (rows, d) = self.tape, self.tape.memory, (x.tensor.rows, x.tensor.cols)
        wide = tape.run(memory_ops.cast(memory, x.tensor, DTYPE, "fp32"))
        squares = tape.run(memory_ops.square(memory, wide))
        means = tape.run(memory_ops.sum_rows(memory, squares, cold=True, sms=tape.sms))
        scale = tape.run(memory_ops.rsqrt(memory, tape.run(memory_ops.add_scalar(memory, means))))
        scaled = memory.tensor("scaled", rows, d, FLOAT)
        inputs = dense(wide, (d, rows)), View(flat(scale), (0, 1))
        tape.launch([strided("mul_rows", (d, rows), inputs, dense(scaled, (d, rows)), MUL, FP32_EACH)])
        narrow = tape.run(memory_ops.cast(memory, scaled, "fp32", DTYPE))
        made, weight = memory.tensor("normed", rows, d, ITEM), tape.parameter("w_norm", 1, d, ITEM).tensor
        inputs = View(flat(weight), (1, 0)), dense(narrow, (d, rows))
        tape.launch([strided("mul_columns", (d, rows), inputs, dense(made, (d, rows)), MUL, FP16_EACH)])
        return Value(made)

    def rotated(self, x: Tensor, heads: int) -> Tensor:
        """Return the heads of [tokens, heads * d], rotated by their positions, as they were side by side."""
        m, tape, memory, d = self.llama, self.tape, self.tape.memory, self.llama.each
        sizes = d, heads, m.seq, m.batch
        by_place = (1, 0, d, 0)  # strides of cosines and sines, which all heads and sequences share

        def new(name: str) -> Tensor:
            return memory.tensor(name, m.tokens, heads * d, ITEM)

        turned, half = new("by_cosine"), memory.tensor("half", m.tokens * heads, d // 2, ITEM)
        inputs = dense(x, sizes), View(flat(self.cosines), by_place)
        tape.launch([strided("mul_cosine", sizes, inputs, dense(turned, sizes), MUL, FP16_EACH)])
        narrow = d // 2, heads, m.seq, m.batch
        rows = Tensor(x.name, m.tokens * heads, d, ITEM, x.address)
        second = View(rows, (1, d, heads * d, m.seq * heads * d), d // 2)
        tape.launch([strided("negate", narrow, [second], dense(half, narrow), Work(ints=1), FP16_EACH)])
        swapped = memory.tensor("swapped", m.tokens * heads, d, ITEM)
        tape.launch([cat_columns([Columns(half), Columns(rows)], d // 2, swapped)])
        # stacked: heads of a sequence one below the other
        stacked, stacked_sizes = (
            memory.tensor("by_sine", m.tokens * heads, d, ITEM),
            (d, m.seq, heads, m.batch),
        )
        inputs = dense(swapped, stacked_sizes), View(flat(self.sines), (1, d, 0, 0))
        tape.launch(
            [strided("mul_sine", stacked_sizes, inputs, dense(stacked, stacked_sizes), MUL, FP16_EACH)]
        )
        made = new("rotated")
        # of one token heads are one below the other as well as side by side
        other = View(flat(stacked) if m.seq == 1 else stacked, (1, m.seq * d, d, heads * m.seq * d))
        tape.launch(
            [strided("add", sizes, (dense(turned, sizes), other), dense(made, sizes), ADD, FP16_EACH)]
        )
        return made

    def repeated(self, x: Tensor) -> Tensor:
        """Return keys or values once for each head that takes them, heads one below the other."""
        m, d, share = self.llama, self.llama.each, self.llama.heads // self.llama.kv_heads
        made = self.tape.memory.tensor("repeated", m.tokens * m.heads, d, ITEM)
        sizes, pitch = (d, m.seq, share, m.kv_heads, m.batch), m.kv_heads * d
        source = View(x, (1, pitch, 0, d, m.seq * pitch))
        self.tape.launch([strided("copy_repeated", sizes, [source], dense(made, sizes), Work(), FP16_EACH)])
        return made

    def attention(self, x: Value, mask: Tensor) -> Value:
        m, tape, memory = self.llama, self.tape, self.tape.memory
        q, k, v = (self.linear(x, heads * m.each) for heads in (m.heads, m.kv_heads, m.kv_heads))
        turned = self.rotated(q.tensor, m.heads)
        if m.cached:
            new = (self.rotated(k.tensor, m.kv_heads), 0), (v.tensor, 0)
            one = Attention(m.batch, m.heads, m.kv_heads, 1, m.cached, m.each)
            y = attend(tape, one, turned, new, DTYPE)
            return self.linear(Value(Tensor("attended", m.batch, m.d, ITEM, y.address)), m.d)
        keys = self.repeated(self.rotated(k.tensor, m.kv_heads))
        values = self.repeated(v.tensor)
        low, zero = (tape.run(memory_ops.fill(memory, 1, 1, DTYPE)) for _ in range(2))
        bias, sizes = memory.tensor("bias", m.tokens, m.seq, ITEM), (m.seq, m.seq, m.batch)
        inputs = dense(mask, sizes), View(zero, (0, 0, 0)), View(low, (0, 0, 0))
        tape.launch([strided("where", sizes, inputs, dense(bias, sizes), CHOOSE, FP16_EACH)])
        problem = Attention(m.batch, m.heads, m.heads, m.seq, m.seq, m.each)
        o = memory.tensor("attended", m.tokens, m.d, ITEM)
        side_by_side = Planes(turned, m.seq, m.heads, m.each), Planes(o, m.seq, m.heads, m.each)
        operands = side_by_side[0], problem.stacked(keys, keys=True), problem.stacked(values, keys=True)
        places = Places(operands, (side_by_side[1],))
        tape.call(
            ("attention", problem),
            (turned, keys, values, bias, o),
            lambda: attention(problem, memory, backend="cudnn", bias=bias, places=places),
        )
        tape.work(m.seq, m.seq, 2 * m.each, m.batch * m.heads)
        return self.linear(Value(o), m.d)

    def feed_forward(self, x: Value) -> Value:
        memory, tape = self.tape.memory, self.tape
        gate = tape.run(memory_ops.silu(memory, self.linear(x, self.llama.ffn).tensor))
        up = self.linear(x, self.llama.ffn).tensor
        return self.linear(Value(tape.run(memory_ops.mul(memory, gate, up))), self.llama.d)

    def layer(self, x: Value, mask: Tensor) -> Value:
        x = op.add(self.tape, x, self.attention(self.norm(x), mask))
        return op.add(self.tape, x, self.feed_forward(self.norm(x)))

    def mask(self) -> Tensor:
        """Return which pairs of tokens attend, a byte each: two rules, one after the other."""
        m, tape = self.llama, self.tape
        made = [tape.memory.tensor("mask", m.tokens, m.seq, 1) for _ in range(3)]
        sizes = m.seq, m.seq, m.batch
        for before, after in pairwise(made):
            inputs = dense(before, sizes), View(flat(before), (1, m.seq, 0))
            tape.launch([strided("and_pairs", sizes, inputs, dense(after, sizes), CHOOSE, FP16_EACH)])
        return made[-1]


def llama_network(llama: Llama, memory: Memory, shown: int = 0) -> Network:
    """Return the kernels of a forward pass, of ``shown`` layers at most (0: all)."""
    check_type("LLaMA", Memory, memory=memory)
    return llama_on(Tape(memory, training=False), llama, shown)


def llama_on(tape: Tape, llama: Llama, shown: int = 0) -> Network:
    """Launch a forward pass on a tape, of ``shown`` layers at most (0: all); return its kernels.

    Raises WorkloadError where gradients are wanted, and on a GPU that fused attention was not measured on.
    """
    check_type("LLaMA", Llama, llama=llama)
    check_sizes("LLaMA", 0, shown=shown)
    if tape.training:
        raise WorkloadError("LLaMA: training: norms and rotations have no gradients")
    if tape.device not in HOPPER:
        raise WorkloadError(f"LLaMA: fused attention on {tape.device}: measured were {', '.join(HOPPER)}")
    m, memory = llama, tape.memory
    cosines, sines = (memory.tensor(name, m.seq, m.each, ITEM) for name in ("cosines", "sines"))
    run, counter = _Run(m, tape, cosines, sines), Counter(tape)
    table = tape.parameter("words", m.vocabulary, m.d, ITEM).tensor
    x = Value(tape.run(memory_ops.embedding(memory, table, drawn(m.tokens, m.vocabulary))))
    run.small(BEFORE)
    mask = x.tensor if m.cached else run.mask()  # one token sees all
    run.small(AFTER_MASK)
    counter.mark()
    many = shown_of(m.layers, shown)
    for number in range(many):
        x = run.layer(x, mask)
        counter.mark(1 if number + 1 < many else m.layers - many + 1)
    run.linear(run.norm(x), m.vocabulary)
    return counter.network()
