"""Scaled dot product attention as PyTorch launches it on Hopper: kernels in order, and what they write.

``flash`` is FlashAttention-2 (``torch.nn.attention.SDPBackend.FLASH_ATTENTION``), ``cudnn`` is cuDNN 9.19
(``CUDNN_ATTENTION``). Which kernel, tile and grid there are follows from the problem alone; the rule agrees
with all rows of the sweep that this module takes:

======================= ======================================================= ==========================
call                    kernels in order                                        grids that agree
======================= ======================================================= ==========================
flash forward           one of 128 x 128 (d 64) or 128 x 64 tiles (d 128); or   101 of 101 and, of one
                        split over keys and combined, where fewer than 0.8 x    query, 666 of 666
                        264 TBs would run (``attention_split.split_count``)
flash backward          copies of dO and O, row sums, loop over queries, dQ     101 of 101
cudnn forward           memset, persistent kernel of at most 132 TBs            101 of 101
cudnn backward          memset, row sums, persistent kernel, dQ                 101 of 101
======================= ======================================================= ==========================

Kernels of a call run one after another, as a stream and a graph that captured it have it: each also writes a
word that all of them share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Memory, Tensor
from pysim.workloads.library.arguments import check_flags, check_names, check_type
from pysim.workloads.library.captured import in_order
from pysim.workloads.library.hopper import SMS
from pysim.workloads.library.memset import memset

from .attention_flash import flash_forward
from .attention_flash_backward import flash_backward
from .attention_hopper import More, hopper_forward
from .attention_hopper_backward import hopper_backward
from .attention_problem import ITEM, Attention, Planes
from .attention_rows import row_dots, strided_copy, to_16_bits
from .attention_split import flash_split, grouped, split_count

if TYPE_CHECKING:
    pass

Backend = Literal["flash", "cudnn"]
TILE = 128
MOST_TILES, MOST_STEPS = 2**17, 2**22  # of cuDNN's kernels: 3 s to make


class Launches(NamedTuple):
    """Kernels in their order, and the tensors that they leave: O; or dQ and dK with dV."""

    kernels: tuple[Kernel, ...]
    outputs: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Places:
    """Where a call's operands and results are: Q, K and V, backward O and dO too; O, or dQ, dK and dV."""

    operands: tuple[Planes, ...]
    results: tuple[Planes, ...]

    def check(self, p: Attention, *, backward: bool) -> None:
        """Raise WorkloadError for another number of tensors, and for those that do not fit."""
        if (len(self.operands), len(self.results)) != ((5, 3) if backward else (3, 1)):
            raise WorkloadError(
                f"attention: {len(self.operands)} operands, {len(self.results)} results: must be Q, K, V"
                + (", O, dO and dQ, dK, dV" if backward else " and O")
            )
        for planes in (*self.operands, *self.results):
            planes.check(planes.tensor.name, p.planes)
            if (planes.d, planes.tensor.item) != (p.d, ITEM):
                raise WorkloadError(
                    f"attention: {planes.tensor.name}: heads of {planes.d} of {planes.tensor.item} B"
                )


def attention(
    problem: Attention,
    memory: Memory,
    *,
    backend: Backend = "flash",
    backward: bool = False,
    dropout: bool = False,
    bias: Tensor | None = None,
    places: Places | None = None,
) -> Launches:
    """Return what a call launches.

    ``dropout``: of the softmax's results; ``bias``: of the scores, [batch * q, k], which all heads share.
    ``places``: of operands and results; None: new tensors of ``memory``. Raises WorkloadError for an unknown
    backend and for problems that its kernels here do not take: cuDNN's of one query, backward with other than
    whole tiles of 128 and with a bias, FlashAttention-2's with dropout, a bias and places.
    """
    check_type("attention", Attention, problem=problem)
    check_type("attention", Memory, memory=memory)
    check_names("attention", get_args(Backend), backend=backend)
    check_flags("attention", backward=backward, dropout=dropout)
    if bias is not None:
        check_type("attention", Tensor, bias=bias)
    if places is not None:
        check_type("attention", Places, places=places)
    if backend == "flash":
        if dropout or places or bias is not None:
            raise WorkloadError(
                "attention: FlashAttention-2 with dropout, bias or given operands: no template"
            )
        kernels, outputs = (_flash_backward if backward else _flash_forward)(problem, memory)
    else:
        _check_work(problem)
        at = places or _new(problem, memory, backward=backward)
        at.check(problem, backward=backward)
        if backward and bias is not None:
            raise WorkloadError("attention: backward with a bias: no template")
        if backward:
            kernels, outputs = _cudnn_backward(problem, memory, at, dropout)
        else:
            kernels, outputs = _cudnn_forward(problem, memory, at, More(dropout, bias))
    return Launches(in_order(kernels, memory), outputs)


def _check_work(p: Attention) -> None:
    """Refuse what takes minutes to make: tiles of persistent kernels are dealt out one by one."""
    tiles = p.planes * -(-p.q // TILE)
    if tiles > MOST_TILES or tiles * -(-p.k // TILE) > MOST_STEPS:
        raise WorkloadError(
            f"attention: q = {p.q}, k = {p.k} of {p.planes} planes: at most {MOST_TILES} tiles of {TILE}"
            f" queries and {MOST_STEPS} steps of {TILE} keys"
        )


def _new(p: Attention, memory: Memory, *, backward: bool) -> Places:
    """Return new tensors, planes one below the other."""

    def of(name: str, *, keys: bool = False) -> Planes:
        return p.stacked(p.rows(memory, name, keys=keys), keys=keys)

    operands = of("Q"), of("K", keys=True), of("V", keys=True)
    if not backward:
        return Places(operands, (of("O"),))
    return Places(
        (*operands, of("O"), of("dO")),
        (of("dQ"), of("dK", keys=True), of("dV", keys=True)),
    )


def _flash_forward(p: Attention, memory: Memory) -> Launches:
    p = grouped(p)
    parts = split_count(p, SMS)
    if parts > 1:
        kernels, o = flash_split(p, parts, memory)
        return Launches(kernels, (o,))
    kernel, o, _ = flash_forward(p, memory)
    return Launches((kernel,), (o,))


def _gradients(p: Attention, memory: Memory) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Return new Q, K, V and dO, and O."""
    q, k, v = p.rows(memory, "Q"), p.rows(memory, "K", keys=True), p.rows(memory, "V", keys=True)
    return (q, k, v, p.rows(memory, "dO")), p.rows(memory, "O")


def _flash_backward(p: Attention, memory: Memory) -> Launches:
    p.require_whole(128, "FlashAttention-2's backward")
    (q, k, v, do), o = _gradients(p, memory)
    copies = [strided_copy(tensor, memory) for tensor in (do, o)]
    do, o = (copied for _, copied in copies)
    dots, sums, dq_sums = row_dots(p, "flash", p.stacked(do), p.stacked(o), memory)
    loop, dkv = flash_backward(p, memory, (q, k, v, do), (p.scalars(memory, "LSE"), sums, dq_sums))
    dq = p.rows(memory, "dQ")
    conversion = to_16_bits(p, "flash", dq_sums, p.stacked(dq))
    return Launches((*(kernel for kernel, _ in copies), dots, loop, conversion), (dq, dkv))


def _cudnn_forward(p: Attention, memory: Memory, at: Places, more: More) -> Launches:
    q, k, v = at.operands
    kernel, _ = hopper_forward(p, memory, (q, k, v), at.results[0], more)
    reset = memset(memory.tensor("counter", 1, 64, 4))
    return Launches((reset, kernel), (at.results[0].tensor,))


def _cudnn_backward(p: Attention, memory: Memory, at: Places, dropout: bool) -> Launches:
    p.require_whole(128, "cuDNN's backward kernel")
    q, k, v, o, do = at.operands
    dq, dk, dv = at.results
    dots, sums, dq_sums = row_dots(p, "cudnn", do, o, memory)
    loop = hopper_backward(p, (q, k, v, do), (dk, dv), (sums, dq_sums), dropped=dropout)
    conversion = to_16_bits(p, "cudnn", dq_sums, dq)
    reset = memset(memory.tensor("counter", 1, 64, 4))
    return Launches((reset, dots, loop, conversion), tuple(each.tensor for each in at.results))
