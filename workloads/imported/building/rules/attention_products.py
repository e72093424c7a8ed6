"""Attention without a template: batched products with a softmax between them.

Products take matrices one below the other. Heads that are side by side are read as if they were: bytes are
right, addresses are not, so that each TB may touch all of Q, K and V.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.graph import Node, Ref
from pysim.workloads.library.gemms.launches import gemm
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory import row_passes
from pysim.workloads.library.memory.pointwise_parts import whole

from .pointwise import reach

PADDED = "padded to whole vectors"
ROWS = 8
MOST_WARP = 2048  # columns of a softmax that a warp computes


@dataclass(slots=True)
class _Run:
    """Kernels of one call: ``planes`` of ``rows`` queries and ``keys``, ``d`` wide."""

    builder: Builder
    dtype: str
    planes: int
    rows: int
    keys: int
    d: int
    waits: list[Access] = field(default_factory=list)  # for what is added to the scores
    kernels: list[Kernel] = field(default_factory=list)
    spans: dict[int, Tensor] = field(default_factory=dict)

    def given(self, ref: Ref, length: int) -> Tensor:
        """Return an operand or a result, [planes * length, d]; where it has fewer rows, a tensor for it."""
        rows = self.planes * length
        if ref.elements == rows * self.d:
            made = self.builder.places.part(ref, rows, self.d)
        else:
            made = self.builder.scratch.tensor("padded", rows, self.d, ref.item)
        self.spans[made.address] = reach(self.builder, ref)
        return made

    def product(
        self, sizes: tuple[int, int, int], trans: str, a: Tensor, b: Tensor, to: Tensor | None = None
    ) -> Tensor:
        """Add a product in BLAS terms; return C, which is ``to`` if that is given."""
        m, n, k = sizes
        kernels, c = gemm(
            m, n, k, memory=self.builder.scratch, trans_a=trans[0], trans_b=trans[1], dtype=self.dtype,
            batch=self.planes, operands=[a, b], device=self.builder.device,
        )  # fmt: skip
        self.kernels += [self.moved(kernel, c, to) for kernel in kernels] if to else kernels
        return to or c

    def moved(self, kernel: Kernel, c: Tensor, to: Tensor) -> Kernel:
        self.builder.bind(c, to)
        own = self.spans[to.address]
        more = [whole(own, a.mode) for a in kernel.accesses if a.tensor.address == c.address]
        return replace(kernel, accesses=(*kernel.accesses, *more[:1]))

    def softmax(self, scores: Tensor) -> Tensor:
        if self.keys <= MOST_WARP:
            launched = memory_ops.softmax(self.builder.scratch, scores)
            kernels, made = list(launched.kernels), launched.outputs[0]
        else:
            made = self.builder.scratch.tensor("shares", scores.rows, scores.cols, scores.item)
            kernels = [row_passes.log_softmax_rows(scores, made)]
        self.kernels += [replace(each, accesses=(*each.accesses, *self.waits)) for each in kernels]
        return made

    def softmax_backward(self, gradient: Tensor, shares: Tensor) -> Tensor:
        if self.keys <= MOST_WARP:
            launched = memory_ops.softmax_backward(self.builder.scratch, gradient, shares)
            self.kernels += launched.kernels
            return launched.outputs[0]
        made = self.builder.scratch.tensor("grad_scores", shares.rows, shares.cols, shares.item)
        self.kernels.append(row_passes.log_softmax_backward_rows(gradient, shares, made))
        return made

    def finish(self, library: str) -> None:
        """Launch the kernels, whose TBs may touch all of what the call was given."""
        for kernel in self.kernels:
            given = {a.tensor.address: a.mode for a in kernel.accesses if a.tensor.address in self.spans}
            more = tuple(whole(self.spans[address], mode) for address, mode in given.items())
            self.builder.launch([replace(kernel, accesses=(*kernel.accesses, *more))], library=library)


def added_to_scores(node: Node) -> tuple[Ref, ...]:
    """Return what is added to the scores, if anything is."""
    ref = node.optional("attn_bias")
    return (ref,) if ref is not None and ref.elements else ()


def by_products(builder: Builder, node: Node, library: str) -> None:
    """Add the products and the softmax of a call, or of its gradient, in which scores are computed again.

    The softmax waits for what is added to the scores, which it does not read. Rows are padded to ``ROWS``, of
    which batched products of each type have templates.
    """
    q, k, v = node.ref("query"), node.ref("key"), node.ref("value")
    (batch, heads, rows, d), (_, kv_heads, keys, _) = q.shape, k.shape
    if heads % kv_heads or v.shape[-1] != d:
        raise WorkloadError(f"attention of {heads} heads on {kv_heads}, widths {d} and {v.shape[-1]}")
    rows *= heads // kv_heads  # heads that share keys are one product
    builder.flops += (8 if "backward" in node.op else 4) * batch * kv_heads * rows * keys * d
    if rows % ROWS or keys % ROWS:
        rows, keys, library = -(-rows // ROWS) * ROWS, -(-keys // ROWS) * ROWS, f"{library}, {PADDED}"
    dtype = "tf32" if q.dtype == "fp32" and "gemm" in builder.graph.tf32 else q.dtype
    waits = [whole(reach(builder, ref)) for ref in added_to_scores(node)]
    run = _Run(builder, dtype, batch * kv_heads, rows, keys, d, waits)
    qs, ks, vs = run.given(q, rows), run.given(k, keys), run.given(v, keys)
    scores = run.product((keys, rows, d), "TN", ks, qs)
    shares = run.softmax(scores)
    if "backward" not in node.op:
        run.product((d, rows, keys), "NN", vs, shares, run.given(node.outputs[0], rows))
    else:
        name = "grad_out" if "grad_out" in node.args else "grad_out_"
        given = run.given(node.ref(name), rows)
        of_q, of_k, of_v = (
            run.given(ref, n) for ref, n in zip(node.outputs, (rows, keys, keys), strict=False)
        )
        run.product((d, keys, rows), "NT", given, shares, of_v)
        of_scores = run.softmax_backward(run.product((keys, rows, d), "TN", vs, given), shares)
        run.product((d, rows, keys), "NN", ks, of_scores, of_q)
        run.product((d, keys, rows), "NT", qs, of_scores, of_k)
    run.finish(library)
