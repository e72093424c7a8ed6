"""Recurrent networks, launched as a framework launches them: one stream, layer by layer, step by step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pysim.errors import WorkloadError
from pysim.program.job import ALIGN, Job, Kernel, Memory, Tensor
from pysim.program.memory_budget import claim_launches
from pysim.workloads.framework.autocast import FLOAT, converting
from pysim.workloads.kernels.copy import fill
from pysim.workloads.kernels.gemm import adds_to_c, gemm
from pysim.workloads.kernels.gemm_choice import AnyTiling, Dtype, choose_tiling
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.kernels.pointwise import GRU_CELL, LSTM_CELL, RELU_CELL, cell

from . import pytorch
from .pytorch import Kernels, from_library

Input = Literal["per-step", "skip", "hoisted"]
Precision = Literal["fp32", "fp16", "amp"]
CELLS = {"gru": (3, GRU_CELL), "lstm": (4, LSTM_CELL), "vanilla": (1, RELU_CELL)}
INPUTS = ("per-step", "skip", "hoisted")


def _steps_of(
    memory: Memory, name: str, timesteps: int, batch: int, cols: int, item: int
) -> tuple[Tensor, list[Tensor]]:
    """Allocate a [timesteps * batch, cols] tensor; return it and its slices, one [batch, cols] a step."""
    whole = memory.tensor(name, timesteps * batch, cols, item)
    size = batch * cols * item
    if size % ALIGN == 0:
        at = whole.address
        return whole, [Tensor(f"{name}[{t}]", batch, cols, item, at + t * size) for t in range(timesteps)]
    # kernels take base addresses of 256 B only, so odd shapes get a buffer a step
    return whole, [memory.tensor(f"{name}[{t}]", batch, cols, item) for t in range(timesteps)]


def _product(name: str, a: Tensor, w: Tensor, c: Tensor, tiling: AnyTiling) -> list[Kernel]:
    """Kernels of C = A W^T; where parts of a split K add to C, it is zeroed first."""
    zero = [fill(f"{name}_zero", c)] if adds_to_c(tiling) else []
    return [*zero, gemm(name, a, w, c, tiling, b_t=True)]


def _converted(pairs: Iterable[tuple[Tensor, Tensor]]) -> list[Kernel]:
    """Return the kernels that write each second tensor, of fp16, from the first, of fp32."""
    return [converting(source, target) for source, target in pairs]


def rnn(
    kind: str = "gru",
    hidden: int = 1536,
    batch: int = 32,
    timesteps: int = 20,
    layers: int = 3,
    input: Input = "per-step",
    dtype: Precision = "fp32",
    buffers: int = 1,
    split: bool = False,
    kernels: Kernels = "own",
    hints: MachineHints | None = None,
) -> Job:
    """Make a recurrent network: ``kind`` is gru, lstm or vanilla.

    Parameters
    ----------
    input : what a step does with its input x [batch, hidden]. ``per-step``: an input GEMM in every step
        (PyTorch without cuDNN); ``hoisted``: one GEMM a layer over all steps; ``skip``: none, x is
        added to each gate (cuDNN's SKIP_INPUT, as DeepBench runs it).
    buffers : gate buffers that steps take in turn. A caching allocator gives each step the block that the
        step before freed: 1 (the default) or 2; the WAR edges are real.
    split : allow split-K GEMMs (each then needs a fill first).
    dtype : of all; or amp: PyTorch's autocast of parameters, inputs and first states of fp32. Each parameter
        is converted once, and inputs of the first layer, with ``per-step`` in each step, else all at once.
    kernels : this project's (``own``), or those that PyTorch launches for a cell a step (``library``, see
        ``pytorch``): with input ``per-step``; its allocator and library decide on buffers and splits.

    Notes
    -----
    Weights are [gates * hidden, hidden], used transposed; to cuBLAS M is gates * hidden and N is batch.
    """
    if kind not in CELLS:
        raise WorkloadError(f"rnn: kind {kind}: must be one of {', '.join(CELLS)}")
    if input not in INPUTS:
        raise WorkloadError(f"rnn: input {input}: must be one of {', '.join(INPUTS)}")
    sizes = {"hidden": hidden, "batch": batch, "timesteps": timesteps, "layers": layers, "buffers": buffers}
    for label, value in sizes.items():
        if value < 1:
            raise WorkloadError(f"rnn: {label} = {value}: must be positive")
    launches = layers * timesteps * (3 if input == "per-step" else 2)
    claim_launches(launches, f"{kind}: {layers:,} layers of {timesteps:,} steps", 4 * launches)
    if from_library(kernels, hints, kind):
        if input != "per-step" or buffers != 1 or split:
            raise WorkloadError(f"{kind}: kernels = library: takes input = per-step, buffers = 1, split = 0")
        return pytorch.rnn(kind, hidden, batch, timesteps, layers, dtype)
    return _own(kind, hidden, batch, timesteps, layers, input, dtype, buffers, split, hints or MachineHints())


def _own(
    kind: str,
    hidden: int,
    batch: int,
    timesteps: int,
    layers: int,
    input: Input,
    dtype: Precision,
    buffers: int,
    split: bool,
    hints: MachineHints,
) -> Job:
    """Return the network with kernels of this project; arguments as of :func:`rnn`."""
    gates, work = CELLS[kind]
    half: Dtype = "fp16" if dtype == "amp" else dtype
    item = 4 if half == "fp32" else 2
    wide = gates * hidden
    if input == "hoisted" and batch * hidden * item % ALIGN:
        raise WorkloadError(f"rnn: hoisted input needs batch * hidden * {item} B in multiples of {ALIGN} B")
    step_tiling = choose_tiling(batch, wide, hidden, half, b_t=True, hints=hints, split=split)
    all_tiling = choose_tiling(batch * timesteps, wide, hidden, half, b_t=True, hints=hints, split=split)
    memory = Memory()
    _, x_steps = xs = _steps_of(memory, "x", timesteps, batch, hidden, item)
    x_all = xs[0]
    gate_h = [memory.tensor(f"gates_hh{i}", batch, wide, item) for i in range(buffers)]
    own = buffers if input == "per-step" else 0
    gate_i = [memory.tensor(f"gates_ih{i}", batch, wide, item) for i in range(own)]
    made: list[Kernel] = []
    given: list[Tensor] = []  # inputs of fp32, of each step
    if dtype == "amp":
        whole, given = _steps_of(memory, "x_fp32", timesteps, batch, hidden, FLOAT)
        if input != "per-step":
            together = batch * hidden * item % ALIGN == 0
            made += _converted([(whole, x_all)] if together else zip(given, x_steps, strict=True))
    gates_all: tuple[Tensor, list[Tensor]] | None = None
    if input == "hoisted":
        gates_all = _steps_of(memory, "gates_all", timesteps, batch, wide, item)
    for layer in range(layers):
        w_hh = memory.tensor(f"w_hh{layer}", wide, hidden, item)
        w_ih = memory.tensor(f"w_ih{layer}", wide, hidden, item) if input != "skip" else None
        h = memory.tensor(f"h0_{layer}", batch, hidden, item)
        state = memory.tensor(f"c{layer}", batch, hidden, item) if kind == "lstm" else None
        out_all, outs = _steps_of(memory, f"h{layer}", timesteps, batch, hidden, item)
        if dtype == "amp":
            parameters = [each for each in (w_ih, w_hh) if each is not None]
            states = [h, *([] if state is None else [state])] if layer == 0 else []
            made += _converted(
                (memory.tensor(f"{t.name}_fp32", t.rows, t.cols, FLOAT), t) for t in (*parameters, *states)
            )
        if gates_all is not None and w_ih is not None:
            made += _product("gemm_ih", x_all, w_ih, gates_all[0], all_tiling)
        for step in range(timesteps):
            products = x_steps[step]
            if gates_all is not None:
                products = gates_all[1][step]
            elif w_ih is not None:
                products = gate_i[step % buffers]
                if given and layer == 0:
                    made += _converted([(given[step], x_steps[step])])
                made += _product("gemm_ih", x_steps[step], w_ih, products, step_tiling)
            hh = gate_h[step % buffers]
            made += _product("gemm_hh", h, w_hh, hh, step_tiling)
            made.append(
                cell(f"{kind}_cell", hh, products, h, outs[step], gates=gates, per_element=work, state=state)
            )
            h = outs[step]
        x_all, x_steps = out_all, outs
    return Job(f"{kind}:hidden={hidden},batch={batch}", made, steps=timesteps)


def gru(
    hidden: int = 1536,
    batch: int = 32,
    timesteps: int = 20,
    layers: int = 3,
    input: Input = "per-step",
    dtype: Precision = "fp32",
    buffers: int = 1,
    split: bool = False,
    kernels: Kernels = "own",
    hints: MachineHints | None = None,
) -> Job:
    """Make a GRU network, see :func:`rnn`; DeepBench's own rows have layers=1 and input='skip'."""
    return rnn("gru", hidden, batch, timesteps, layers, input, dtype, buffers, split, kernels, hints)


def lstm(
    hidden: int = 1024,
    batch: int = 64,
    timesteps: int = 25,
    layers: int = 1,
    input: Input = "skip",
    dtype: Precision = "fp32",
    buffers: int = 1,
    split: bool = False,
    kernels: Kernels = "own",
    hints: MachineHints | None = None,
) -> Job:
    """Make an LSTM network, see :func:`rnn`; the defaults are a DeepBench row."""
    return rnn("lstm", hidden, batch, timesteps, layers, input, dtype, buffers, split, kernels, hints)


def vanilla(
    hidden: int = 1760,
    batch: int = 16,
    timesteps: int = 50,
    layers: int = 1,
    input: Input = "skip",
    dtype: Precision = "fp32",
    buffers: int = 1,
    split: bool = False,
    kernels: Kernels = "own",
    hints: MachineHints | None = None,
) -> Job:
    """Make a ReLU network, see :func:`rnn`; the defaults are a DeepBench row."""
    return rnn("vanilla", hidden, batch, timesteps, layers, input, dtype, buffers, split, kernels, hints)
