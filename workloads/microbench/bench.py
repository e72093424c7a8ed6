"""Runs one kernel or chain on a simulated GPU and takes the same readings as the real measurement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim import simulate
from pysim.program.job import Access, Job, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim import Config
    from pysim.results.result import Result

LANES = 32
VECTOR = 16 * LANES  # bytes of a warp that moves 16 B a lane


def whole(tensor: Tensor, mode: str) -> Access:
    """Let every TB touch the whole tensor: addresses decide nothing where kernels run one after another."""

    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.tile(np.array([[0, tensor.rows, 0, tensor.cols]], np.int64), (len(tbs), 1))

    return Access(tensor, mode, regions)  # type: ignore[arg-type]


def kernel(
    name: str,
    code: Code,
    grid: int | tuple[int, int, int],
    threads: int,
    *,
    smem: int = 0,
    registers: int = 32,
    reads: Sequence[Tensor] = (),
    writes: Sequence[Tensor] = (),
    updates: Sequence[Tensor] = (),
    stream: int = 0,
) -> Kernel:
    """Make a kernel of one program; arguments are ``reads``, ``writes`` and ``updates``."""
    tensors = (*reads, *writes, *updates)
    warps = -(-threads // LANES)
    program = Program(name, (tuple(code.ops),), warps, registers, smem, len(tensors))
    touched = (
        *(whole(t, "read") for t in reads),
        *(whole(t, "write") for t in writes),
        *(whole(t, "update") for t in updates),
    )
    return Kernel(name, program, (grid, 1, 1) if isinstance(grid, int) else grid, tensors, touched, stream)


def buffer(memory: Memory, name: str, nbytes: int) -> Tensor:
    """Allocate bytes in rows of 1 KiB."""
    return memory.tensor(name, -(-nbytes // 1024), 256, 4)


@dataclass(slots=True)
class Bench:
    """A GPU and what was measured on it; ``constants`` of the measurement that have no counterpart here."""

    config: Config
    constants: dict[str, float] = field(default_factory=dict)

    @property
    def sms(self) -> int:
        """SMs of the GPU."""
        return self.config.integer("gpu.sms")

    @property
    def ghz(self) -> float:
        """SM clock."""
        return self.config.number("gpu.clock") / 1000

    def run(
        self, job: Job | Kernel, scheme: str = "stream", tables: str = "none", **overrides: Any
    ) -> Result:
        """Simulate with one thread."""
        made = job if isinstance(job, Job) else Job(job.name, (job,))
        # measured cycles are of the SM's own counter, so the clock is fixed here
        steady = {"gpu.clock_tensor": 1.0} | {k.replace("__", "."): v for k, v in overrides.items()}
        config = self.config.replaced(steady)
        result = simulate(config, made, scheme, threads=1, tables=tables)
        if result.interrupted:  # after the scheme, in stream order
            raise KeyboardInterrupt
        return result

    def us(self, job: Job | Kernel, scheme: str = "stream", **overrides: Any) -> float:
        """Return the time from the first enqueue to the last end."""
        return self.run(job, scheme, **overrides).time_us(scheme)

    def tbs(self, job: Job | Kernel, scheme: str = "stream") -> NDArray[np.void]:
        """Return the TB records in the order of kernels and TBs."""
        rows = self.run(job, scheme, "tbs").tables()["tbs"]
        return np.sort(rows[rows["run"] == 0], order=["kernel", "tb"])

    def cycles(self, job: Job | Kernel) -> float:
        """Return the cycles of a TB of a kernel, the median over its TBs (one on each SM)."""
        rows = self.tbs(job)
        return float(np.median(rows["end_ns"] - rows["start_ns"])) * self.ghz

    def body_us(self, job: Kernel) -> float:
        """Return the time from the first start of a kernel's TBs until all they stored is acknowledged."""
        tables = self.run(job, tables="kernels,tbs").tables()
        done = float(tables["kernels"]["complete_us"][0]) - self.config.number("gpu.cp.tb_done_latency") / 1e3
        return done - float(tables["tbs"]["start_ns"].min()) / 1000


def pattern(
    arg: int = 0,
    *,
    grid: int = 0,
    warp: int = VECTOR,
    base: int = 0,
    step: int = 0,
    width: int = 16,
    lanes: int = 0xFFFFFFFF,
) -> Pattern:
    """Lanes access ``width`` bytes side by side; ``grid`` bytes from TB to TB, ``warp`` from warp to warp."""
    return Pattern(arg, width, base=base, bx=grid, warp=warp, step=step, s0=width, lanes=lanes)
