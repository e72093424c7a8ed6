"""Recurrent layers of one kernel, whose weights stay in registers (Diamos et al., ICML 2016).

A TB an SM keeps the rows of the recurrent weights of its hidden units in registers, and in shared memory what
these do not hold. A step loads the whole state of the previous step, bypassing L1, multiplies, computes the
TB's units, stores them, and waits: by a barrier of all TBs (``grid``), or by a flag a TB (``tile``), where
parts of the state are loaded as soon as the eight TBs that made them have posted. Inputs of a step are loaded
before the wait. The input GEMM runs before, for all steps at once (``hoisted``), or the input is added to
each gate (``skip``, as DeepBench runs cuDNN).

The authors' code beyond that was not available; here a warp has whole rows, its lanes take columns
in turn, sums of a lane are added by shuffles that halve the values, and all is unrolled. Counts follow from
that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from pysim.errors import WorkloadError
from pysim.machine.config import Config
from pysim.machine.devices import device
from pysim.program.job import ALIGN, Access, Job, Kernel, Memory, Tensor
from pysim.program.memory_budget import claim_launches
from pysim.program.warp_program import OP, Affine, Code, Program, Sem
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.gemm_choice import choose_tiling
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.kernels.tiles import WARP, Tile, tile_ops

from .rnn import CELLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Table = NDArray[np.int64]

Kind = Literal["vanilla", "gru"]
Sync = Literal["grid", "tile"]
KINDS, SYNCS, INPUTS = ("vanilla", "gru"), ("grid", "tile"), ("skip", "hoisted")
WARPS = 8  # 255 registers of 256 threads are all that an SM has
ITEM = 4
MOST_REGISTERS = 255
OTHERS = 24  # registers for addresses, counters and current values: assumed
SUMS = 32  # registers for sums: rows are computed in blocks of so many multiplications of a column
MOST_BATCH = 32
PATIENCE = 8  # TBs whose flags a warp polls at once
LINE = 32  # semaphores a line: those of a step have lines of their own
LATENCY, SHUFFLE = 30, 25  # cycles: shared memory and an FFMA; a shuffle and an addition (Volta)
MAX_STEPS = 65000


@dataclass(frozen=True, slots=True)
class Layout:
    """How a layer is laid out on a GPU: ``units`` hidden units a TB, of whose weights a lane holds ``held``.

    ``spilled`` weights a lane are in shared memory; ``block`` rows are multiplied at once.
    """

    units: int
    tbs: int
    rows: int
    held: int
    spilled: int
    block: int
    registers: int
    smem: int


def layout_of(kind: str, hidden: int, batch: int, config: Config, sms: int = 0) -> Layout:
    """Spread a layer over (at most ``sms`` of) the SMs of a GPU; a WorkloadError where it does not fit."""
    values, gates = config.encoded(), CELLS[kind][0]
    units = -(-hidden // (min(sms, values["gpu.sms"]) if sms else values["gpu.sms"]))
    rows = -(-gates * units // WARPS)  # of a warp
    weights = rows * -(-hidden // WARP)  # of a lane
    block = min(rows, max(1, SUMS // batch))
    others = OTHERS + block * batch
    threads = WARP * WARPS
    room = min(MOST_REGISTERS, values["gpu.sm.registers"] // threads) - others
    held = min(weights, room // 8 * 8)
    state = (batch * hidden + gates * units * batch) * ITEM
    smem = (weights - held) * threads * ITEM + state
    most = values["gpu.sm.smem"] - values["gpu.sm.smem_reserved"]
    if smem > most:
        raise WorkloadError(
            f"persistent_rnn: hidden = {hidden}: an SM of {config.device.name} would hold {gates * units} x"
            f" {hidden} weights in {held * threads * ITEM >> 10} KiB of registers and"
            f" {(smem - state) >> 10} KiB of shared memory, beside a state of {-(-state >> 10)} KiB:"
            f" {most >> 10} KiB are there"
        )
    registers = min(MOST_REGISTERS, -(-(held + others) // 8) * 8)
    tbs = -(-hidden // units)
    return Layout(units, tbs, rows, held, weights - held, block, registers, smem)


@dataclass(frozen=True, slots=True)
class _Case:
    kind: str
    hidden: int
    batch: int
    steps: int
    wide: int  # columns of the inputs: the hidden size, or that of each gate
    sync: str
    layout: Layout


def _across(count: int) -> int:
    """Return columns that lanes can share, of which ``count`` exist."""
    return -(-count // WARP) * WARP if count > WARP else 1 << (count - 1).bit_length()


class _Writer:
    """Writes the code of the TBs that have so many units: arguments are weights, inputs and states."""

    def __init__(self, case: _Case, units: int) -> None:
        self.case, self.units, self.code = case, units, Code()

    def _weights(self) -> None:
        """Load the rows of each gate, once."""
        case, code = self.case, self.code
        pitch = case.hidden * ITEM
        for gate in range(CELLS[case.kind][0]):
            cols = -(-case.hidden // 128) * 128
            tile = Tile(0, pitch, ITEM, case.layout.units, cols, bx=case.layout.units * pitch)
            for patterns in tile_ops(tile, WARPS, 16, (self.units, case.hidden), gate * case.hidden * pitch):
                code.load(0, *patterns, level=2)
        code.compute(int=64, control=4)
        code.wait(0)
        # the weights that registers do not hold
        moved = case.layout.spilled
        code.compute(smem=moved, smem_ops=-(-moved // 4), chain=4)

    def _inputs(self, level: int, step: int) -> None:
        """Load what a step adds to its gates."""
        case = self.case
        pitch = case.wide * ITEM
        tile = Tile(
            1, pitch, ITEM, case.batch, _across(case.layout.units), bx=case.layout.units * ITEM,
            step=case.batch * pitch,
        )  # fmt: skip
        for gate in range(case.wide // case.hidden):
            base = gate * case.hidden * ITEM + step * tile.step
            for patterns in tile_ops(tile, WARPS, ITEM, (case.batch, self.units), base):
                self.code.load(1, *patterns, level=level)

    def _state(self, level: int, step: int) -> None:
        """Wait for the state of the step before and load it."""
        case, code, pitch = self.case, self.code, self.case.hidden * ITEM
        many = case.layout.units * PATIENCE if case.sync == "tile" else case.hidden
        for part, first in enumerate(range(0, case.hidden, many)):
            mine = min(many, case.hidden - first)
            if step and case.sync == "grid":
                code.mark_tb_wait(Sem(row=Affine(step=1), stride=LINE), level=level)
            elif step:
                flags = min(PATIENCE, case.layout.tbs - part * PATIENCE)
                stride = -(-case.layout.tbs // LINE) * LINE
                code.mark_tb_wait(
                    Sem(row=Affine(step=1), stride=stride, first=part * PATIENCE, times=flags, apart=1),
                    level=level,
                )
            tile = Tile(2, pitch, ITEM, case.batch, -(-mine // 128) * 128, step=case.batch * pitch)
            for patterns in tile_ops(tile, WARPS, 16, (case.batch, mine), first * ITEM + step * tile.step):
                code.load(0, *patterns, bypass_l1=True, level=level)
        moved = -(-case.batch * pitch // (128 * WARPS))
        code.wait(0)
        code.compute(smem=moved, smem_ops=-(-moved // 4), int=8, chain=4)
        code.barrier()

    def _multiply(self) -> None:
        """Multiply the rows of a warp with the state of each sequence, and add the sums of its lanes."""
        case, layout = self.case, self.case.layout
        blocks = -(-layout.rows // layout.block)
        read = blocks * -(-case.hidden * case.batch * ITEM // 128)
        code = self.code
        code.compute(
            fp32=layout.rows * -(-case.hidden // WARP) * case.batch,
            smem=read + layout.spilled, smem_ops=-(-read // 4) + -(-layout.spilled // 4),
            int=4 * blocks, control=blocks, chain=LATENCY,
        )  # fmt: skip
        values = layout.rows * case.batch
        halved = [max(1, -(-values // 2**level)) for level in range(1, 6)]
        for count in halved:
            code.compute(smem=count, smem_ops=count, fp32=count, int=count, chain=SHUFFLE)
        code.barrier()

    def step(self, level: int, step: int) -> None:
        """Add a step: the first one, or with ``step`` 1 one of a loop."""
        case, code, layout = self.case, self.code, self.case.layout
        gates, work = CELLS[case.kind]
        self._inputs(level, step)
        self._state(level, step)
        self._multiply()
        each = -(-layout.units * case.batch // (WARP * WARPS))
        code.compute(smem=gates * each, smem_ops=gates * each, chain=LATENCY)
        code.wait(1)
        code.compute(**{pipe: count * each for pipe, count in work.items()})
        pitch = case.hidden * ITEM
        tile = Tile(
            2, pitch, ITEM, case.batch, _across(layout.units), bx=layout.units * ITEM, step=case.batch * pitch
        )
        for patterns in tile_ops(tile, WARPS, ITEM, (case.batch, self.units), (step + 1) * tile.step):
            code.store(2, *patterns, level=level)
        row = Affine(base=step, step=1)
        if case.sync == "grid":
            code.mark_tb_signal(Sem(row=row, stride=LINE), level=level)
        else:
            code.mark_tb_signal(
                Sem(row=row, col=Affine(bx=1), stride=-(-layout.tbs // LINE) * LINE), level=level
            )

    def all(self) -> Code:
        """Return the whole program."""
        self._weights()
        self.step(2, 0)
        if self.case.steps > 1:
            mark = self.code.loop_begin()
            self.step(0, 1)
            self.code.loop_end(mark, self.case.steps - 1)
        self.code.exit()
        return self.code


@lru_cache(maxsize=64)
def _program(case: _Case) -> Program:
    layout = case.layout
    last = case.hidden - (layout.tbs - 1) * layout.units
    ops = [tuple(_Writer(case, units).all().ops) for units in (layout.units, last)]
    variants = tuple(ops[number & 1] for number in range(8))
    assert all(op.kind != OP["REDUCE"] for op in ops[0])
    return Program(f"persistent_{case.kind}", variants, WARPS, layout.registers, layout.smem, 3)


def _columns(first: int, rows: tuple[int, int], layout: Layout, hidden: int) -> Callable[[Table], Table]:
    """Footprint of the columns of a TB's units, ``first`` columns on, in some rows."""

    def regions(tbs: Table) -> Table:
        at = np.asarray(tbs, np.int64) * layout.units
        full = np.full(len(at), 0, np.int64)
        end = np.minimum(at + layout.units, hidden)
        return np.stack([full + rows[0], full + rows[1], at + first, end + first], axis=1)

    return regions


def _semaphores(sync: str, steps: int, layout: Layout) -> int:
    """Return the semaphores of so many steps: whole lines, one for all TBs of the grid or one for each."""
    return steps * (LINE if sync == "grid" else -(-layout.tbs // LINE) * LINE)


def _layer(name: str, case: _Case, w: Tensor, x: Tensor, h: Tensor) -> Kernel:
    """Make the kernel of a layer: w [gates * H, H], x [steps * batch, wide], h [(steps + 1) * batch, H]."""
    layout, hidden, batch, steps = case.layout, case.hidden, case.batch, case.steps

    def rows_of(gate: int) -> Callable[[Table], Table]:
        def regions(tbs: Table) -> Table:
            at = np.asarray(tbs, np.int64) * layout.units + gate * hidden
            end = np.minimum(at + layout.units, (gate + 1) * hidden)
            none = np.zeros(len(at), np.int64)
            return np.stack([at, end, none, none + hidden], axis=1)

        return regions

    def before(tbs: Table) -> Table:
        return np.tile(np.array([0, steps * batch, 0, hidden], np.int64), (len(tbs), 1))

    accesses = [Access(w, "read", rows_of(gate)) for gate in range(CELLS[case.kind][0])]
    accesses += [
        Access(x, "read", _columns(gate * hidden, (0, steps * batch), layout, hidden))
        for gate in range(case.wide // hidden)
    ]
    accesses.append(Access(h, "read", before))
    accesses.append(Access(h, "write", _columns(0, (batch, (steps + 1) * batch), layout, hidden)))
    # a step's semaphores have lines of their own
    flags = np.zeros((steps, _semaphores(case.sync, 1, layout)), np.int64)
    if case.sync == "grid":
        flags[:, 0] = layout.tbs
    else:
        flags[:] = 1
    return Kernel(
        name,
        _program(case),
        (layout.tbs, 1, 1),
        (w, x, h),
        tuple(accesses),
        tb_semaphores=flags.reshape(-1),
        cooperative=True,
    )


def persistent_rnn(
    kind: Kind = "vanilla",
    hidden: int = 1152,
    batch: int = 4,
    timesteps: int = 32,
    layers: int = 1,
    input: Literal["skip", "hoisted"] = "skip",
    sync: Sync = "grid",
    gpu: str = "titan_x_pascal",
    sms: int = 0,
    hints: MachineHints | None = None,
) -> Job:
    """Make recurrent layers in fp32 whose weights stay on the GPU ``gpu``, one kernel a layer.

    ``gpu`` says how many SMs, registers and how much shared memory there are; on a GPU with less of them the
    kernel would not be resident, and the run ends with an error. ``sms``: take so many SMs at most (0: all).
    """
    for label, value, known in (("kind", kind, KINDS), ("input", input, INPUTS), ("sync", sync, SYNCS)):
        if value not in known:
            raise WorkloadError(f"persistent_rnn: {label} = {value}: must be one of {', '.join(known)}")
    for label, size, most in (
        ("hidden", hidden, 1 << 16), ("batch", batch, MOST_BATCH), ("timesteps", timesteps, MAX_STEPS),
        ("layers", layers, 1 << 10), ("sms", sms or 1, 1 << 16),
    ):  # fmt: skip
        if not 1 <= size <= most:
            raise WorkloadError(f"persistent_rnn: {label} = {size}: must be from 1 to {most}")
    if hidden % 4 or (layers > 1 and batch * hidden * ITEM % ALIGN):
        raise WorkloadError(
            f"persistent_rnn: hidden = {hidden}, batch = {batch}: hidden must be a multiple of 4, and with"
            f" several layers hidden * batch one of {ALIGN // ITEM}"
        )
    shape = layout_of(kind, hidden, batch, Config.resolve(device(gpu)), sms)
    posts = _semaphores(sync, timesteps, shape) * layers * 8
    what = f"persistent_rnn: {layers:,} layers of {timesteps:,} steps"
    claim_launches(2 * layers, what, 16 * layers, more=posts)
    memory, gates, kernels = Memory(), CELLS[kind][0], list[Kernel]()
    wide = gates * hidden if input == "hoisted" else hidden
    case = _Case(kind, hidden, batch, timesteps, wide, sync, shape)
    x = memory.tensor("x", timesteps * batch, hidden, ITEM)
    for layer in range(layers):
        w = memory.tensor(f"w_hh{layer}", gates * hidden, hidden, ITEM)
        h = memory.tensor(f"h{layer}", (timesteps + 1) * batch, hidden, ITEM)
        if input == "hoisted":
            w_ih = memory.tensor(f"w_ih{layer}", wide, hidden, ITEM)
            made = memory.tensor(f"gates{layer}", timesteps * batch, wide, ITEM)
            tiling = choose_tiling(x.rows, wide, hidden, "fp32", b_t=True, split=False, hints=hints)
            kernels.append(gemm("gemm_ih", x, w_ih, made, tiling, b_t=True))
            x = made
        kernels.append(_layer(f"persistent_{kind}", case, w, x, h))
        x = Tensor(f"out{layer}", timesteps * batch, hidden, ITEM, h.address + batch * h.pitch)
    return Job(f"persistent_rnn:kind={kind},hidden={hidden},batch={batch}", kernels, steps=timesteps)
