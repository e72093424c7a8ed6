"""Kernels of training, one at a time: recurrent networks and convolutions at DeepBench's sizes, in fp32.

What a framework launches a step without fusing: the recurrent product, the sum of both products, the
activation; or the fused cell in the place of the last two. Backward: the cell's derivative, the product that
carries gradients back, and that of the weights' gradients over all steps. A convolution is the product that
it amounts to, on an input that was laid out for it, as the library's explicit form does: more bytes than the
implicit form reads, the same arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from pysim import Config, simulate
from pysim.errors import SimError
from pysim.program.job import Job, Kernel, Memory, Tensor
from pysim.workloads.kernels.copy import fill
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.gemm_choice import choose_tiling
from pysim.workloads.kernels.gemm_sampling import plan
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.kernels.pointwise import Field, cell, elementwise, pointwise
from pysim.workloads.networks.rnn import CELLS
from pysim.workloads.validation.kept import Figures

# of the kernels below: the cache of outcomes knows the sources of pysim and workloads, not this one
SOURCE = sha256(Path(__file__).read_bytes()).hexdigest()
ITEM = 4
LAUNCHES = 3  # of each kernel, one behind the other
LONG_FLOPS = 1.2e10  # of a product; a longer one is cut: fewer waves, then a shorter sum
SHORTEST = 1024  # K of a part of a cut product
# instructions an element, assumed (see kernels/pointwise.py): a sigmoid is EX2 and RCP with two of fp32
SIGMOID = {"fp32": 2, "sfu": 2, "int": 2}
RELU = {"fp32": 1, "int": 2}
# derivatives from saved activations: s (1 - s) is two operations, 1 - t^2 one, then products and sums
BACKWARD = {
    "vanilla": {"fp32": 2, "int": 6, "control": 1},
    "gru": {"fp32": 14, "int": 14, "control": 1},
    "lstm": {"fp32": 20, "int": 16, "control": 1},
}


class Recurrent(NamedTuple):
    """A row of DeepBench's training set: kind of cell, hidden units, batch, steps."""

    kind: str
    hidden: int
    batch: int
    steps: int

    @property
    def label(self) -> str:
        """Return hidden, batch, steps and kind, as the original figure writes it."""
        return f"{self.hidden}_{self.batch}_{self.steps}_{self.kind}"


class Layer(NamedTuple):
    """A row of DeepBench's convolutions: width, height, channels, batch, filters, filter, padding, stride."""

    w: int
    h: int
    c: int
    n: int
    k: int
    side: int
    pad: int
    stride: int

    @property
    def label(self) -> str:
        """Return width, height, channels, batch and filters, as the original figure writes it."""
        return f"{self.w}_{self.h}_{self.c}_{self.n}_{self.k}"

    @property
    def pixels(self) -> int:
        """Pixels that a filter makes, of all images."""
        w, h = ((size + 2 * self.pad - self.side) // self.stride + 1 for size in (self.w, self.h))
        return self.n * w * h


# code/kernels/rnn_problems.h and conv_problems.h of DeepBench: some rows of the training sets
RECURRENT = (
    Recurrent("vanilla", 1760, 16, 50),
    Recurrent("vanilla", 1760, 64, 50),
    Recurrent("vanilla", 2560, 32, 50),
    Recurrent("vanilla", 2560, 128, 50),
    Recurrent("lstm", 512, 16, 25),
    Recurrent("lstm", 1024, 64, 25),
    Recurrent("lstm", 2048, 32, 25),
    Recurrent("lstm", 1536, 8, 50),
    Recurrent("gru", 512, 32, 1),
    Recurrent("gru", 1024, 32, 1500),
    Recurrent("gru", 1536, 32, 375),
    Recurrent("gru", 2816, 32, 187),
)
LAYERS = (
    Layer(112, 112, 64, 8, 128, 3, 1, 1),
    Layer(56, 56, 128, 8, 256, 3, 1, 1),
    Layer(28, 28, 256, 8, 512, 3, 1, 1),
    Layer(14, 14, 512, 8, 512, 3, 1, 1),
    Layer(7, 7, 512, 8, 512, 3, 1, 1),
    Layer(28, 28, 192, 16, 64, 1, 0, 1),
    Layer(14, 14, 512, 16, 192, 1, 0, 1),
    Layer(7, 7, 832, 16, 256, 1, 0, 1),
)
QUICK = (Recurrent("gru", 512, 32, 1), Layer(7, 7, 832, 16, 256, 1, 0, 1))


@dataclass(frozen=True, slots=True)
class Task:
    """A kernel of a row."""

    row: Recurrent | Layer
    kernel: str


def _product(
    m: int, n: int, k: int, hints: MachineHints, a_t: bool = False, b_t: bool = False
) -> tuple[list[Kernel], str]:
    """Make C[m, n] = op(A) op(B) of depth k, or a shorter one by the same kernel; return what it is too."""
    tiling = choose_tiling(m, n, k, "fp32", a_t=a_t, b_t=b_t, hints=hints)
    about = tiling.name
    if 2.0 * m * n * k > LONG_FLOPS:
        sample = plan(m, n, k, 4, tiling, hints)
        rows = sample.rows if sample else m
        room = int(LONG_FLOPS / (2.0 * rows * n)) // 256 * 256
        depth = min(k, max(room, SHORTEST * tiling.split_k))
        if (rows, depth) != (m, k):
            about += f", cut to {rows} x {n} x {depth}"
        m, k = rows, depth
    memory = Memory()
    a = memory.tensor("a", *((k, m) if a_t else (m, k)), ITEM)
    b = memory.tensor("b", *((n, k) if b_t else (k, n)), ITEM)
    c = memory.tensor("c", m, n, ITEM)
    zero = [fill("zero", c)] if tiling.split_k > 1 else []
    return [*zero, gemm("gemm", a, b, c, tiling, a_t=a_t, b_t=b_t)], about


def _pointwise(rows: int, cols: int, inputs: int, work: Mapping[str, int]) -> tuple[list[Kernel], str]:
    memory = Memory()
    sources = [memory.tensor(f"in{i}", rows, cols, ITEM) for i in range(inputs)]
    return [pointwise("pointwise", sources, [memory.tensor("out", rows, cols, ITEM)], per_element=work)], ""


def _cell(row: Recurrent) -> tuple[list[Kernel], str]:
    gates, work = CELLS[row.kind]
    memory = Memory()

    def held(name: str, times: int = 1) -> Tensor:
        return memory.tensor(name, row.batch, times * row.hidden, ITEM)

    state = held("state") if row.kind == "lstm" else None
    tensors = held("hidden", gates), held("inputs", gates), held("before"), held("after")
    return [cell("cell", *tensors, gates=gates, per_element=work, state=state)], ""


def _cell_backward(row: Recurrent) -> tuple[list[Kernel], str]:
    """Read the saved gates, the state before and the gradient; write those of the gates."""
    gates, h = CELLS[row.kind][0], row.hidden
    memory = Memory()
    saved, grads = (memory.tensor(name, row.batch, gates * h, ITEM) for name in ("gates", "grads"))
    others = [memory.tensor(name, row.batch, h, ITEM) for name in ("before", "grad")]
    reads = [Field(saved, g * h) for g in range(gates)] + [Field(tensor) for tensor in others]
    writes = [Field(grads, g * h) for g in range(gates)]
    work = BACKWARD[row.kind]
    return [elementwise("cell_back", reads, writes, cols=h, per_element=work, widest=ITEM, registers=40)], ""


_Make = Callable[..., tuple[list[Kernel], str]]


def _wide(row: Recurrent) -> int:
    return CELLS[row.kind][0] * row.hidden


RECURRENT_KERNELS: dict[str, _Make] = {
    "product": lambda r, hints: _product(r.batch, _wide(r), r.hidden, hints, b_t=True),
    "sum": lambda r, _: _pointwise(r.batch, _wide(r), 2, {"fp32": 1, "int": 2}),
    "activation": lambda r, _: _pointwise(r.batch, _wide(r), 1, RELU if r.kind == "vanilla" else SIGMOID),
    "fused cell": lambda r, _: _cell(r),
    "cell, back": lambda r, _: _cell_backward(r),
    "product, back": lambda r, hints: _product(r.batch, r.hidden, _wide(r), hints),
    "weights, back": lambda r, hints: _product(_wide(r), r.hidden, r.steps * r.batch, hints, a_t=True),
}
LAYER_KERNELS: dict[str, _Make] = {
    "product": lambda r, hints: _product(r.pixels, r.k, r.c * r.side**2, hints, b_t=True),
    "activation": lambda r, _: _pointwise(r.pixels, r.k, 1, RELU),
    "activation, back": lambda r, _: _pointwise(r.pixels, r.k, 2, RELU),
    "product, back": lambda r, hints: _product(r.n * r.w * r.h, r.c, r.k * r.side**2, hints),
    "weights, back": lambda r, hints: _product(r.k, r.c * r.side**2, r.pixels, hints, a_t=True),
}


def tasks_of(rows: tuple[Recurrent | Layer, ...]) -> list[Task]:
    """Return all kernels of some rows."""
    return [
        Task(row, name)
        for row in rows
        for name in (RECURRENT_KERNELS if isinstance(row, Recurrent) else LAYER_KERNELS)
    ]


def simulated(config: Config, task: Task) -> Figures:
    """Launch a kernel some times; return the share of a launch in which pipes and issue slots are used.

    ``alu``: busy share of the busiest arithmetic pipe, ``issue``: of issue slots, both while a launch runs,
    from its first TB's dispatch until all of it has ended; ``time_us``: of the last launch.
    """
    hints = MachineHints(sms=config.integer("gpu.sms"), clock_mhz=config.number("gpu.clock"))
    makes = RECURRENT_KERNELS if isinstance(task.row, Recurrent) else LAYER_KERNELS
    try:
        kernels, about = makes[task.kernel](task.row, hints)
        job = Job(task.kernel, kernels * LAUNCHES)
        made = simulate(config, job, "stream", threads=1, tables="kernels").listed()
    except SimError as error:
        return Figures(reason=" ".join(str(error).split()))
    run, rows = made["runs"][0], made["kernels"]
    lasted = rows["complete_us"] - rows["first_dispatch_us"]
    share = float(run["time_us"] / lasted.sum())
    slots = float(run["cycles"]) * config.integer("gpu.sms") * 4
    values = {
        "alu": float(run["alu_utilization"]) * share,
        "issue": float(run["warp_instructions"]) / slots * share,
        "time_us": float(lasted[-1]),
        "tbs": float(rows["tbs"][-1]),
    }
    return Figures(values=values, detail=about)
