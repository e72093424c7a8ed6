"""DeepBench's lists as workloads: a GEMM, a convolution, a recurrent layer or an all-reduce by its row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.program.totals import Totals
from pysim.workloads.framework.collectives import Links, all_reduce
from pysim.workloads.framework.sequences.spectrogram import Filters, convolved
from pysim.workloads.framework.tape import Tape
from pysim.workloads.kernels.gemm import gemm as tiled_gemm
from pysim.workloads.kernels.gemm_case import column_major
from pysim.workloads.kernels.gemm_choice import Dtype, choose_tiling
from pysim.workloads.library.choices.by_cost import hints_of
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.gemms.launches import gemm
from pysim.workloads.library.memory.pointwise_parts import item_of
from pysim.workloads.networks.passes import check_dtype, check_pass, device_of, job_of
from pysim.workloads.networks.rnn import CELLS, rnn

from . import deepbench_lists as lists

if TYPE_CHECKING:
    from pysim.workloads.kernels.machine_hints import MachineHints

Kind = Literal["gemm", "conv", "rnn", "allreduce"]
LISTS = {
    "gemm": lists.GEMMS.split(),
    "conv": lists.CONVOLUTIONS.split(),
    "rnn": lists.LAYERS.split(),
    "allreduce": lists.ALL_REDUCES.split(),
}
FLOAT = 4
# us and GB/s by number of GPUs: the line through the first and the last size of DeepBench's P100 sheet (NCCL
# 2.0), which has 102, 167 and 235 us for 100,000 floats, and 43.8, 67.2 and 76.6 ms for 64,500,000
LINKS = {2: (34.0, 5.89), 4: (63.0, 3.84), 8: (116.0, 3.37)}


def deepbench(
    kind: Kind = "gemm",
    row: int = 1,
    pass_: str = "forward",
    dtype: Dtype = "fp32",
    hints: MachineHints | None = None,
) -> Job:
    """Make a row of DeepBench's training lists.

    ``kind``: gemm (160 rows), conv (94), rnn (53) or allreduce (21); ``row``: from 1 on. ``pass``: forward,
    or training of a convolution, with both gradients. A GEMM before Hopper adds to C, as DeepBench has it. A
    recurrent layer has no input GEMM, as its rows ask cuDNN for. An all-reduce is a delay as measured on
    P100s.
    """
    if kind not in LISTS:
        raise WorkloadError(f"deepbench: kind = {kind}: must be {', '.join(LISTS)}")
    known = LISTS[kind]
    if not 1 <= row <= len(known):
        raise WorkloadError(f"deepbench: row = {row}: {kind} has rows 1 to {len(known)}")
    check_pass("deepbench", pass_, ("forward", "training") if kind == "conv" else ("forward",))
    name, words = f"deepbench:{kind},row={row}", known[row - 1].split(",")
    device = device_of(hints, "deepbench")
    hints = hints or (None if device in HOPPER else hints_of(device))
    if kind == "rnn":
        cell, gates = words[0], CELLS[words[0]][0]
        hidden, batch, steps = (int(word) for word in words[1:])
        made = rnn(cell, hidden, batch, steps, 1, "skip", dtype, hints=hints)
        weights = gates * hidden * hidden
        return Job(name, made.kernels, steps=steps, totals=Totals(weights, 2 * weights * batch * steps))
    if kind == "gemm":
        m, n, k = (int(word) for word in words[:3])
        return _gemm(name, (m, n, k), words[3], dtype, device, hints)
    sizes = [int(word) for word in words]
    if kind == "allreduce":
        check_dtype("deepbench", dtype, ("fp32",), device)
        memory = Memory()
        latency, gbs = LINKS[sizes[1]]
        links = Links(latency, gbs, (hints or hints_of(device)).sm_mhz)
        kernel = all_reduce(memory.tensor("gradients", 1, sizes[0], FLOAT), links)
        return Job(name, [kernel], totals=Totals(0, 0))
    return _convolution(name, sizes, pass_, dtype, device)


def _gemm(
    name: str, sizes: tuple[int, int, int], trans: str, dtype: Dtype, device: str, hints: MachineHints | None
) -> Job:
    m, n, k = sizes
    memory, totals = Memory(), Totals(0, 2 * m * n * k)
    if device in HOPPER:
        kernels, _ = gemm(
            m, n, k, memory=memory, trans_a=trans[0], trans_b=trans[1], dtype=dtype, device=device
        )
        return Job(name, list(kernels), totals=totals)
    rows, cols, depth, left_t, right_t = column_major(m, n, k, trans[0] == "T", trans[1] == "T")
    tiling = choose_tiling(
        rows, cols, depth, dtype, a_t=left_t, b_t=right_t, beta=1, hints=hints or hints_of(device)
    )
    item = item_of(dtype)
    a = memory.tensor("a", *((depth, rows) if left_t else (rows, depth)), item)
    b = memory.tensor("b", *((cols, depth) if right_t else (depth, cols)), item)
    c = memory.tensor("c", rows, cols, item)
    kernel = tiled_gemm("gemm", a, b, c, tiling, a_t=left_t, b_t=right_t, beta=1)
    return Job(name, [kernel], totals=totals)


def _convolution(name: str, sizes: list[int], pass_: str, dtype: str, device: str) -> Job:
    images, channels, high, wide, filters, *window = sizes
    taps, padding, stride = (window[0], window[1]), (window[2], window[3]), (window[4], window[5])
    training, item = pass_ == "training", item_of(dtype)
    tape = Tape(Memory(), training=training, device=device)
    x = tape.value("images", images * channels, high * wide, item)
    y = convolved(tape, x, (high, wide), channels, Filters(filters, taps, stride, padding), dtype, bias=False)
    if training:
        tape.backward(y, tape.memory.tensor("gradient", y.tensor.rows, y.tensor.cols, item))
    return job_of(name, tape, 1)
