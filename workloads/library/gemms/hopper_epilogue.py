"""How a Hopper GEMM hands over its results: bias, activation, conversion, shared memory, bulk stores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pysim.program.pipelined_code import PipelinedCode
    from pysim.program.tiles import Box

Epilogue = Literal["none", "bias", "bias_relu", "bias_gelu"]
CHUNK, CHUNK_ROWS = 128, 64  # bytes of a row of results in shared memory, and rows
GROUP = 128  # threads of a consumer warp group


@dataclass(frozen=True)
class Cost:
    """What the code of a family of kernels costs besides its waits, cycles.

    ``begin``: from a TB's start to the barrier before its first load; ``begin_cluster``: more in a cluster;
    ``step``: a consumer warp's instructions of a k-step; ``chunk``: to convert a chunk of results and hand it
    over, beside the traffic; ``next_tile``: until the producer knows its next tile, where a counter in memory
    deals them; ``before``: of a k-step, between its tiles' arrival and its first multiply, after the
    multiplies of the step before. ``bias``: until the bias of a tile is there; ``bias_each``, ``relu_each``,
    ``gelu_each``: more of a result of a thread.

    A GELU takes as long with one warp as with two on a sub-core, so it waits for its own results (20 to 24
    cycles), and no pipe is full.
    """

    begin: int
    begin_cluster: int
    step: int
    chunk: int
    next_tile: int = 0
    before: int = 0
    bias: int = 0
    bias_each: float = 0.0
    relu_each: float = 0.0
    gelu_each: float = 0.0

    def of_tile(self, epilogue: Epilogue) -> int:
        """Return cycles of a tile before its results are stored."""
        return 0 if epilogue == "none" else self.bias

    def of_result(self, epilogue: Epilogue) -> float:
        """Return cycles of each result of a thread."""
        if epilogue == "none":
            return 0.0
        more = {"bias": 0.0, "bias_relu": self.relu_each, "bias_gelu": self.gelu_each}
        return self.bias_each + more[epilogue]


# bias and activations: medians of half `fit` of 277 shapes, tests/hw/library/h200_library_epilogue.csv.
# next_tile: each more tile of one k-step takes so long, h200_library_batched.csv (k of 64, 64 x 64 tiles)
NVJET = Cost(
    begin=850,
    begin_cluster=300,
    step=126,
    chunk=240,
    next_tile=900,
    bias=450,
    bias_each=2.0,
    relu_each=3.5,
    gelu_each=22.0,
)


@dataclass(frozen=True, slots=True)
class Results:
    """The part of a tile that a consumer group stores: ``m`` and ``n`` from and to, elements of ``out`` B."""

    m: tuple[int, int]
    n: tuple[int, int]
    out: int
    epilogue: Epilogue

    def chunks(self) -> list[tuple[int, int, int, int]]:
        """Return (first m, m, first n, n) of what is stored at a time, one after another."""
        wide = CHUNK // self.out
        return [
            (i, min(wide, self.m[1] - i), j, min(CHUNK_ROWS, self.n[1] - j))
            for j in range(*self.n, CHUNK_ROWS)
            for i in range(*self.m, wide)
        ]


def store_results(
    code: PipelinedCode, results: Results, c: Box, cost: Cost, group: int, *, leads: bool
) -> None:
    """Add the ops that convert a tile, write it to shared memory and store it to ``c``, chunk by chunk."""
    if before := cost.of_tile(results.epilogue):
        code.delay(before)
    for m, wide, n, rows in results.chunks():
        if leads:
            code.wait_operands_read()  # the chunk before has left shared memory
        code.named_barrier(1 + group, 4)
        values = max(1, wide * rows // GROUP)  # of a thread
        code.delay(cost.chunk + round(values * cost.of_result(results.epilogue)))
        waves = max(1, wide * rows * results.out // 512)  # of a warp
        code.compute(int=max(1, values // 2 + values // 4), smem=waves, smem_ops=1, chain=0)
        code.named_barrier(1 + group, 4)
        if leads:
            row, col = (n, *c.row[1:]), (m * results.out, *c.col[1:])
            code.bulk_store(replace(c, rows=rows, size=wide * results.out, row=row, col=col))
