"""Stand-ins for kernels of a loss over rows that are too long for a warp: log-softmax, and the loss itself.

``cunn_SoftMaxForward`` and its backward (ATen/native/cuda/SoftMax.cu, PyTorch 2.11) have a TB for each row,
whose threads pass over it several times: the largest element, the sum of exponentials, the result.
``nll_loss_forward_reduce_cuda_kernel_2d`` is one warp that takes the element of the target from
each row; here it takes the first, since no simulated kernel knows a target. None of them was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP

from . import pointwise_costs as costs
from .pointwise_parts import Work, line, loads, rows, shuffles, stores, whole
from .pointwise_softmax import softmax_backward_rows, softmax_forward

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_THREADS, VECTOR, REGISTERS = 1024, 16, 40
WARP_ROW = 1024
FORWARD = (Work(fp32=1, control=1), Work(fp32=3, sfu=1, control=1), Work(fp32=3, sfu=1, control=1))
BACKWARD = (Work(fp32=1, control=1), Work(fp32=4, sfu=1, control=1))
STANDS_IN = stand_in("", measured=False)


def log_softmax_rows(source: Tensor, target: Tensor) -> Kernel:
    """Return the log-softmax of each row: two passes that read it, a third that writes the result.

    Rows of at most ``WARP_ROW`` elements are a warp's, as those of a softmax (``softmax_warp_forward``).
    """
    if WARP <= source.cols <= WARP_ROW:
        return replace(softmax_forward(source, target, costs.SOFTMAX), name="log_softmax")
    return _row_passes("log_softmax", [source], target, FORWARD)


def log_softmax_backward_rows(gradient: Tensor, output: Tensor, target: Tensor) -> Kernel:
    """Return the gradient of a log-softmax: a pass that adds the gradients of a row, one for the result."""
    if WARP <= output.cols <= WARP_ROW:
        made = softmax_backward_rows(gradient, output, target, costs.SOFTMAX_BACKWARD)
        return replace(made, name="log_softmax_backward")
    return _row_passes("log_softmax_backward", [gradient, output], target, BACKWARD)


def _row_passes(name: str, sources: Sequence[Tensor], target: Tensor, passes: tuple[Work, ...]) -> Kernel:
    cols, item = target.cols, target.item
    width = VECTOR
    while width > item and cols * item % width:
        width //= 2
    program = _program(name, cols * item, width, item, passes, len(sources))
    accesses = [*(rows(source, "read") for source in sources), rows(target, "write")]
    library = STANDS_IN + ("cunn_SoftMaxForward" if len(sources) == 1 else "cunn_SoftMaxBackward")
    return Kernel(name, program, (target.rows, 1, 1), (*sources, target), tuple(accesses), library=library)


@lru_cache(maxsize=64)
def _program(name: str, pitch: int, width: int, item: int, passes: tuple[Work, ...], sources: int) -> Program:
    vectors = pitch // width
    threads = min(MOST_THREADS, -(-vectors // WARP) * WARP)
    whole_turns, rest = divmod(vectors, threads)
    code = Code()
    for number, work in enumerate(passes):
        last = number == len(passes) - 1
        taken = range(sources) if last else range(1)

        def turn(after: int, active: int | None, work: Work = work, last: bool = last) -> None:
            def of(arg: int) -> tuple[Pattern, ...]:
                step = threads * width
                return line(arg, width, threads, base=after * step, bx=pitch, step=step, active=active)

            loads(code, 0, [of(arg) for arg in taken], level=0)  # noqa: B023, called in this turn of the loop
            code.wait(0)
            work.times(width // item).emit(code)
            if last:
                stores(code, 1, [of(sources)], level=0)

        if whole_turns:
            mark = code.loop_begin()
            turn(0, None)
            code.loop_end(mark, whole_turns)
        if rest:
            turn(whole_turns, rest)
        if not last:  # the TB adds what its warps have
            shuffles(code, 1)
            code.barrier()
            shuffles(code, 1)
            code.barrier()
    code.exit()
    return Program(name, (tuple(code.ops),), threads // WARP, REGISTERS, 0, sources + 1)


def few_columns_sum(source: Tensor, target: Tensor) -> Kernel:
    """Return the sum of each of a few columns, [1, columns], by one warp: templates of sums take more.

    Raises WorkloadError for more columns than a warp has lanes.
    """
    if source.cols > WARP or (target.rows, target.cols) != (1, source.cols):
        raise WorkloadError(f"sum of {source.cols} columns by a warp: at most {WARP}")
    program = _few_program(source.rows, source.cols, source.item)
    accesses = whole(source), whole(target, "write")
    return Kernel(
        "sum_columns", program, (1, 1, 1), (source, target), accesses, library=STANDS_IN + "reduce_kernel"
    )


@lru_cache(maxsize=64)
def _few_program(many: int, cols: int, item: int) -> Program:
    code = Code()
    mark = code.loop_begin()
    code.load(0, *line(0, item, WARP, step=cols * item, active=cols), level=0)
    code.wait(0)
    code.compute(fp32=1, int=2, control=1, chain=4)
    code.loop_end(mark, many)
    code.store(1, *line(1, item, WARP, active=cols))
    code.exit()
    return Program("few_columns", (tuple(code.ops),), 1, REGISTERS, 0, 2)


def nll_rows(values: Tensor, targets: Tensor, loss: Tensor) -> Kernel:
    """Return the mean over rows of the element that ``targets`` names; [1, rows] of 8 B."""
    return _one_warp("nll_loss", values, targets, loss, "read")


def nll_backward_rows(gradient: Tensor, targets: Tensor, target: Tensor) -> Kernel:
    """Return the gradient of the mean, into a tensor of zeros: an element of each row."""
    return _one_warp("nll_loss_backward", target, targets, gradient, "write")


def _one_warp(name: str, wide: Tensor, targets: Tensor, loss: Tensor, mode: Mode) -> Kernel:
    program = _nll_program(name, wide.rows, wide.pitch, wide.item, loss.item)
    accesses = [whole(targets), _first_column(wide, mode)]
    accesses.append(whole(loss, "write" if mode == "read" else "read"))
    way = "forward" if mode == "read" else "backward"
    library = f"{STANDS_IN}nll_loss_{way}_reduce_cuda_kernel_2d"
    return Kernel(name, program, (1, 1, 1), (wide, targets, loss), tuple(accesses), library=library)


def _first_column(tensor: Tensor, mode: Mode) -> Access:
    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.tile(np.array([0, tensor.rows, 0, 1], np.int64), (len(tbs), 1))

    return Access(tensor, mode, regions)


@lru_cache(maxsize=64)
def _nll_program(name: str, many: int, pitch: int, item: int, loss_item: int) -> Program:
    code = Code()
    reads = name == "nll_loss"
    if not reads:
        code.load(0, *line(2, loss_item, WARP, active=1))

    def turn(after: int, active: int) -> None:
        lanes = (1 << active) - 1
        target = Pattern(1, 8, base=after * WARP * 8, s0=8, step=WARP * 8, lanes=lanes)
        value = Pattern(0, item, base=after * WARP * pitch, s0=pitch, step=WARP * pitch, lanes=lanes)
        code.load(0, target, level=0)
        code.wait(0)
        code.compute(int=6, control=2, chain=4)
        if reads:
            code.load(0, value, level=0)
            code.wait(0)
            code.compute(fp32=2, chain=4)
        else:
            code.store(1, value, level=0)

    whole_turns, rest = divmod(many, WARP)
    if whole_turns:
        mark = code.loop_begin()
        turn(0, WARP)
        code.loop_end(mark, whole_turns)
    if rest:
        turn(whole_turns, rest)
    if reads:
        shuffles(code, 1)
        code.store(1, *line(2, loss_item, WARP, active=1))
    code.exit()
    return Program(name, (tuple(code.ops),), 1, REGISTERS, 0, 3)
