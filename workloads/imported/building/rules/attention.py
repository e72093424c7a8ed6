"""Fused attention where its operands are: cuDNN's, of one query FlashAttention-2's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.building.slices import slices
from pysim.workloads.imported.graph import Node, Ref
from pysim.workloads.library.attentions.attention import Places, attention
from pysim.workloads.library.attentions.attention_problem import Attention, Planes
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.pointwise_costs import ADD
from pysim.workloads.library.memory.pointwise_parts import Work, whole

from .attention_products import added_to_scores, by_products
from .pointwise import element_wise, reach

FLASH = stand_in("FlashAttention-2 for one query")
TILE = 128
PRODUCTS = stand_in("attention by products")  # before Hopper no fused kernel has a template
SHARED = stand_in("keys and values once for each head")
PADDED = stand_in("padded to whole tiles")
BIASED = stand_in("attention by products, for a fused kernel with a bias", measured=False)
WITHOUT = stand_in("waits for its bias, which it does not read")


def forward(builder: Builder, node: Node) -> None:
    """``_scaled_dot_product_cudnn_attention``."""
    if builder.device not in HOPPER:
        by_products(builder, node, PRODUCTS)
        return
    problem, dropped = _problem(node), node.number("dropout_p") > 0
    q, k, v, out = node.ref("query"), node.ref("key"), node.ref("value"), node.outputs[0]
    added = added_to_scores(node)
    if problem.q == 1:
        if not added:
            _one_query(builder, problem, (q, k, v), out)
            return
        by_products(builder, node, BIASED)
        return
    if dropped:
        _state(builder)
    builder.flops += _flops(problem)
    shared = ""
    if problem.heads != problem.kv_heads:
        k, v = (_repeated(builder, ref, problem.heads) for ref in (k, v))
        problem, shared = replace(problem, kv_heads=problem.heads), SHARED
    if problem.q % TILE or problem.k % TILE:
        whole_tiles = _whole_tiles(problem)
        launched = attention(whole_tiles, builder.scratch, backend="cudnn", dropout=dropped)
        _linked(builder, launched.kernels, (q, k, v, *added), (out,), WITHOUT if added else "")
        return
    problem, planes = _layout(builder, problem, (q, k, v, out))
    places = Places(planes[:3], planes[3:])
    bias, library = _bias(builder, added, problem)
    launched = attention(problem, builder.scratch, backend="cudnn", dropout=dropped, bias=bias, places=places)
    left_out = [whole(reach(builder, ref)) for ref in added if bias is None]
    kernels = [replace(kernel, accesses=(*kernel.accesses, *left_out)) for kernel in launched.kernels]
    builder.launch(kernels, library=", ".join(text for text in (library, shared) if text))


def backward(builder: Builder, node: Node) -> None:
    """``_scaled_dot_product_cudnn_attention_backward``: gradients of Q, K and V."""
    if builder.device not in HOPPER:
        by_products(builder, node, PRODUCTS)
        return
    problem, dropped = _problem(node), node.number("dropout_p") > 0
    if added_to_scores(node):
        by_products(builder, node, BIASED)
        return
    names = "query", "key", "value", "out", "grad_out"
    builder.flops += 2 * _flops(problem)
    refs = [*(node.ref(name) for name in names), *node.outputs[:3]]
    gradients = node.outputs[1:3]
    if problem.heads != problem.kv_heads:
        refs[1:3] = [_repeated(builder, ref, problem.heads) for ref in refs[1:3]]
        refs[6:8] = [builder.temporary(ref) for ref in refs[1:3]]
        problem = replace(problem, kv_heads=problem.heads)
    if problem.q % TILE or problem.k % TILE:
        whole_tiles = _whole_tiles(problem)
        launched = attention(whole_tiles, builder.scratch, backend="cudnn", backward=True, dropout=dropped)
        _linked(builder, launched.kernels, refs[:5], refs[5:])
    else:
        problem, planes = _layout(builder, problem, refs)
        places = Places(planes[:5], planes[5:])
        launched = attention(
            problem, builder.scratch, backend="cudnn", backward=True, dropout=dropped, places=places
        )
        builder.launch(launched.kernels, library=SHARED if refs[7] is not gradients[1] else "")
    for made, ref in zip(refs[6:8], gradients, strict=True):
        if made is not ref:
            kernel = slices("sum_of_heads", [reach(builder, made)], [reach(builder, ref)], ADD.times(8))
            builder.launch([kernel], library=SHARED)


def efficient(builder: Builder, node: Node) -> None:
    """``_scaled_dot_product_efficient_attention`` and its gradient: products stand in.

    PyTorch takes them for fp32 and for heads that cuDNN refuses: one fused kernel, eager and in a graph, of
    which one shape was measured (GPT-2 in fp32 on an H100).
    """
    letter = "B" if "backward" in node.op else "F"
    by_products(builder, node, stand_in(f"attention by products, for fmha_cutlass{letter}", measured=False))


def _repeated(builder: Builder, ref: Ref, heads: int) -> Ref:
    """Return keys or values once for each head that takes them, heads one below the other."""
    (batch, kv_heads, length, d), (apart, step, pitch, right) = ref.shape, ref.strides
    share = heads // kv_heads
    shape = batch, kv_heads, share, length, d
    source = replace(ref, shape=shape, strides=(apart, step, 0, pitch, right))
    made = builder.temporary(replace(ref, shape=(batch, heads, length, d)))
    whole_heads = heads * length * d, share * length * d, length * d, d, 1
    element_wise(builder, "copy", [source], [replace(made, shape=shape, strides=whole_heads)], Work())
    return made


def _whole_tiles(p: Attention) -> Attention:
    """Return a problem of whole tiles, as many as the kernel has for the given one."""
    if p.heads != p.kv_heads:
        raise WorkloadError(f"attention of {p.heads} heads on {p.kv_heads}, not of whole tiles: no template")
    q, k = (-(-size // TILE) * TILE for size in (p.q, p.k))
    return replace(p, q=max(q, k) if p.causal else q, k=max(q, k) if p.causal else k)


def _linked(
    builder: Builder,
    kernels: Sequence[Kernel],
    reads: Sequence[Ref],
    writes: Sequence[Ref],
    library: str = "",
) -> None:
    """Add kernels on padded tensors of their own, each of which may touch all of what the call was given."""
    given = [whole(reach(builder, ref)) for ref in reads]
    made = [whole(reach(builder, ref), "write") for ref in writes]
    last = len(kernels) - 1
    for at, kernel in enumerate(kernels):
        accesses = (*kernel.accesses, *given, *(made if at == last else ()))
        builder.launch(
            [replace(kernel, accesses=accesses)], library=", ".join(t for t in (PADDED, library) if t)
        )


def _flops(p: Attention) -> int:
    """Return the operations of both products; masked scores count, scores that are computed again do not."""
    return 4 * p.planes * p.q * p.k * p.d


def _problem(node: Node) -> Attention:
    q, k, v = node.ref("query"), node.ref("key"), node.ref("value")
    (batch, heads, rows, d), (_, kv_heads, keys, _) = q.shape, k.shape
    if q.dtype not in ("fp16", "bf16") or v.shape[-1] != d:
        raise WorkloadError(f"attention in {q.dtype} of widths {d} and {v.shape[-1]}: no template")
    return Attention(batch, heads, kv_heads, rows, keys, d, node.flag("is_causal") and rows > 1)


def _layout(builder: Builder, p: Attention, refs: Sequence[Ref]) -> tuple[Attention, tuple[Planes, ...]]:
    """Return where the rows of each head are.

    Where sequences are side by side, too, [tokens, sequences, heads, d], all heads are those of one sequence.
    """
    try:
        return p, tuple(_planes(builder, ref) for ref in refs)
    except WorkloadError:
        if p.batch == 1 or p.heads != p.kv_heads:
            raise
    joined = [_joined(ref) for ref in refs]
    made = replace(p, batch=1, heads=p.planes, kv_heads=p.planes)
    return made, tuple(_planes(builder, ref) for ref in joined)


def _joined(ref: Ref) -> Ref:
    """Return sequences and heads as one dimension."""
    (batch, heads, length, d), (apart, step, pitch, right) = ref.shape, ref.strides
    if heads > 1 and apart != heads * step:
        raise WorkloadError(
            f"attention: heads of {ref.shape}, strides {ref.strides}: sequences lie another way"
        )
    return replace(
        ref, shape=(1, batch * heads, length, d), strides=(0, step if heads > 1 else apart, pitch, right)
    )


def _planes(builder: Builder, ref: Ref) -> Planes:
    """Return where the rows of each head are: heads side by side, or one below the other."""
    (batch, heads, length, d), strides = ref.shape, ref.strides
    apart, step, pitch, right = strides
    if length == 1:
        pitch = apart if batch > 1 else heads * d
    if right != 1:
        raise WorkloadError(f"attention: heads of strides {strides}: elements must be neighbours")
    stacked = (
        pitch == d and (heads == 1 or step == length * d) and (batch == 1 or apart == heads * length * d)
    )
    if stacked:
        return Planes(builder.places.part(ref, batch * heads * length, d), length, 1, d)
    if (heads > 1 and step != d) or (batch > 1 and apart != length * pitch):
        raise WorkloadError(
            f"attention: heads of {ref.shape}, strides {strides}: neither side by side nor stacked"
        )
    tensor, col = builder.places.rows(ref, pitch, batch * length)
    return Planes(tensor, length, heads, d, col)


def _bias(builder: Builder, added: tuple[Ref, ...], p: Attention) -> tuple[Tensor | None, str]:
    """Return what is added to the scores, [batch * q, k], if all heads share it."""
    if not added:
        return None, ""
    (ref,) = added
    apart, step, pitch, right = ref.strides
    shared = (
        right == 1
        and pitch == p.k
        and p.q * p.batch == ref.shape[0] * ref.shape[2]
        and (step == 0 or p.heads == 1)
        and (p.batch == 1 or apart == p.q * p.k)
    )
    if shared:
        return builder.places.part(ref, p.batch * p.q, p.k), ""
    return None, WITHOUT


def _state(builder: Builder) -> None:
    """Add the kernel of a thread that reads the state of the random numbers."""
    (kernel,) = memory_ops.fill(builder.scratch, 1, 1, "fp32").kernels
    builder.launch([replace(kernel, name="philox_state")])


def _one_query(builder: Builder, p: Attention, refs: tuple[Ref, Ref, Ref], out: Ref) -> None:
    """Add FlashAttention-2 for one query: cuDNN's kernel for it was not measured."""
    launched = attention(p, builder.scratch, backend="flash")
    named = {"Q": refs[0], "K": refs[1], "V": refs[2]}
    apart: dict[int, Tensor] = {}  # where Q is among other columns its rows are read one behind another
    for tensor in builder.scratch.tensors:
        if tensor.name not in named:
            continue
        ref = named.pop(tensor.name)
        if not ref.contiguous:
            if tensor.name != "Q":
                raise WorkloadError(
                    f"attention of one query: {tensor.name} of strides {ref.strides}: must be stacked"
                )
            apart[tensor.address] = reach(builder, ref)
        builder.bind(tensor, builder.places.part(ref, 1, ref.elements))
    builder.bind(launched.outputs[0], builder.places.part(out, 1, out.elements))
    for kernel in launched.kernels:
        more = tuple(whole(apart[a.tensor.address]) for a in kernel.accesses if a.tensor.address in apart)
        builder.launch([replace(kernel, accesses=(*kernel.accesses, *more))], library=FLASH)
    builder.flops += _flops(p)
