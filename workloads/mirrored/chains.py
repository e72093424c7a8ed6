"""The chains of dependent kernels of ``h200_deps.csv`` (H200), each as one stream of kernels.

``chain_of("mlp", "fp16", "64x64x32_128thr", "widths=1024-4096-1024;layers=2;tokens=64")`` is one run of one
of them; parameters are spelled as in ``workloads/measured/h200_deps.csv``. The relu between layers, a maximum
an output, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from pysim.errors import WorkloadError
from pysim.program.job import ALIGN, Job, Kernel, Memory, Tensor

from .blocks.chain.gemms import HGEMM8, HGEMM8_OUT, HGEMM64, SGEMM32, SGEMM64, SGEMM128, SGEMM128_OUT
from .blocks.persistent import attention, gemms, gru
from .chain_kernels import fence, gru_tile, softmax_rows
from .code import Launch, as_stage
from .hgemm import H64, H128W8, Hgemm, hgemm
from .sgemm import S32, S64, S128, Sgemm, sgemm

STATIC = 16  # bytes of shared memory for the tiles that a wait has found complete
TILES: Mapping[tuple[str, str], Hgemm | Sgemm] = {
    ("fp16", "128x128x32_256thr"): replace(H128W8, blocks=HGEMM8, out=HGEMM8_OUT, static=STATIC),
    ("fp16", "64x64x32_128thr"): replace(H64, blocks=HGEMM64, static=STATIC),
    ("fp32", "128x128x8_256thr"): replace(S128, blocks=SGEMM128, out=SGEMM128_OUT, static=STATIC),
    ("fp32", "64x64x16_256thr"): replace(S64, registers=63, blocks=SGEMM64, static=STATIC),
    ("fp32", "32x32x32_256thr"): replace(S32, registers=39, blocks=SGEMM32, static=STATIC),
}
_H128, _H64 = TILES["fp16", "128x128x32_256thr"], TILES["fp16", "64x64x32_128thr"]
_S128, _S64 = TILES["fp32", "128x128x8_256thr"], TILES["fp32", "64x64x16_256thr"]
_S32 = TILES["fp32", "32x32x32_256thr"]
# GEMMs as stages of the persistent kernels, by the kernel they are a stage of
STAGED: Mapping[tuple[str, str], Hgemm | Sgemm] = {
    ("mlp", _H128.name): replace(_H128, registers=128, blocks=gemms.HGEMM8, out=gemms.HGEMM8_OUT),
    ("mlp", _H64.name): replace(_H64, blocks=gemms.HGEMM64, out=gemms.HGEMM64_OUT),
    ("mlp", _S128.name): replace(_S128, blocks=gemms.SGEMM128, out=gemms.SGEMM128_OUT),
    ("mlp", _S64.name): replace(_S64, registers=64, blocks=gemms.SGEMM64, out=gemms.SGEMM64_OUT),
    ("gru", _H64.name): replace(_H64, blocks=gru.HGEMM64),
    ("gru", _S32.name): replace(_S32, registers=40, blocks=gru.SGEMM32),
    ("qk", _H64.name): replace(_H64, blocks=attention.QK),
    ("pv", _H64.name): replace(_H64, blocks=attention.PV),
}
MOST = 1 << 20  # of any size: what is measured is far below


class Chain(NamedTuple):
    """Kernels of one run in order, what they read first and what they write last."""

    kernels: list[Kernel]
    first: Tensor
    last: Tensor


@dataclass(frozen=True, slots=True)
class _Product:
    """GEMMs of one tiling."""

    tile: Hgemm | Sgemm

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return 2 if isinstance(self.tile, Hgemm) else 4

    def __call__(self, stage: str, name: str, a: Tensor, b: Tensor, c: Tensor, batch: int = 1) -> Kernel:
        """Return the kernel of C = A B; ``stage``: what it is a stage of, see :data:`STAGED`."""

        def made(tile: Hgemm | Sgemm) -> Launch:
            if isinstance(tile, Hgemm):
                return hgemm(name, a, b, c, tile, batch=batch)
            return sgemm(name, a, b, c, tile, batch=batch)

        other = STAGED.get((stage, self.tile.name))
        return (
            made(self.tile).kernel if other is None else as_stage(made(self.tile), lambda: made(other)).kernel
        )


def _count(where: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not 0 < int(text) <= MOST:
        raise WorkloadError(f"{where} = {text[:20]!r}: must be a whole number from 1 to {MOST}")
    return int(text)


def _read(chain: str, params: str, names: tuple[str, ...]) -> dict[str, str]:
    """Split ``name=value;name=value``; exactly these names must be there."""
    found = dict(part.partition("=")[::2] for part in params.split(";"))
    if tuple(found) != names:
        raise WorkloadError(f"chain {chain}: params {params[:60]!r}: must be {'=..;'.join(names)}=..")
    return found


def _mlp(chain: str, product: _Product, params: str) -> Chain:
    """Make [tokens, w0] -> [tokens, w1] -> ..., a GEMM a layer; the table lists four widths at most."""
    given = _read(chain, params, ("widths", "layers", "tokens"))
    layers, tokens = (_count(f"chain {chain}: {name}", given[name]) for name in ("layers", "tokens"))
    widths = [_count(f"chain {chain}: widths", text) for text in given["widths"].split("-")]
    if len(widths) < min(4, layers + 1) or len(widths) > layers + 1 or layers > 64:
        raise WorkloadError(f"chain {chain}: {len(widths)} widths do not make {layers} layers")
    widths += widths[-1:] * (layers + 1 - len(widths))
    memory = Memory()
    values = [memory.tensor(f"act{i}", tokens, width, product.item) for i, width in enumerate(widths)]
    kernels = []
    for i in range(layers):
        weights = memory.tensor(f"W{i}", widths[i], widths[i + 1], product.item)
        kernels.append(product("mlp", f"gemm{i + 1}", values[i], weights, values[i + 1]))
    return Chain(kernels, values[0], values[-1])


def _gru(chain: str, product: _Product, params: str) -> Chain:
    """Make steps of [batch, hidden] x [hidden, 3 hidden] and a cell; the input GEMMs are given."""
    given = _read(chain, params, ("hidden", "batch", "steps"))
    hidden, batch, steps = (_count(f"chain {chain}: {name}", text) for name, text in given.items())
    item, memory = product.item, Memory()
    if batch * hidden * item % ALIGN or steps > 4096:
        raise WorkloadError(
            f"chain {chain}: batch x hidden must be a multiple of {ALIGN} B, steps at most 4096"
        )

    def slices(name: str, count: int, cols: int) -> list[Tensor]:
        """Adjacent tensors of one step each."""
        return [memory.tensor(f"{name}{i}", batch, cols, item) for i in range(count)]

    states, inputs = slices("h", steps + 1, hidden), slices("X", steps, 3 * hidden)
    weights = memory.tensor("W", hidden, 3 * hidden, item)
    products = memory.tensor("G", batch, 3 * hidden, item)
    kernels = []
    for step in range(steps):
        kernels.append(product("gru", "gemm", states[step], weights, products))
        tile = (product.tile.bm, product.tile.bn)
        cell = gru_tile("cell", products, inputs[step], states[step], states[step + 1], tile)
        kernels.append(cell.kernel)
    return Chain(kernels, states[0], states[-1])


def _attention(chain: str, product: _Product, params: str) -> Chain:
    """Make Q K, softmax, P V of many heads; K is stored [d, seq]."""
    given = _read(chain, params, ("heads", "seq", "d"))
    heads, seq, depth = (_count(f"chain {chain}: {name}", text) for name, text in given.items())
    memory, item = Memory(), product.item
    shapes = {"Q": (seq, depth), "K": (depth, seq), "V": (seq, depth)}
    shapes |= {"S": (seq, seq), "P": (seq, seq), "O": (seq, depth)}
    q, k, v, s, p, o = (memory.tensor(n, heads * rows, cols, item) for n, (rows, cols) in shapes.items())
    kernels = [
        product("qk", "qk", q, k, s, heads),
        softmax_rows("softmax", s, p).kernel,
        product("pv", "pv", p, v, o, heads),
    ]
    return Chain(kernels, q, o)


CHAINS: Mapping[str, Callable[[str, _Product, str], Chain]] = {
    "mlp": _mlp,
    "mlp_shard": _mlp,
    "square2": _mlp,
    "square8": _mlp,
    "gru": _gru,
    "attention": _attention,
}


def chain_of(chain: str, dtype: str, tile: str, params: str) -> Chain:
    """Return one run of a measured chain."""
    if chain not in CHAINS:
        raise WorkloadError(f"no chain {chain!r}: known are {', '.join(CHAINS)}")
    if (dtype, tile) not in TILES:
        known = ", ".join(" ".join(pair) for pair in TILES)
        raise WorkloadError(f"chain {chain}: no tile {dtype} {tile}: known are {known}")
    return CHAINS[chain](chain, _Product(TILES[dtype, tile]), params)


def chain_job(chain: str, dtype: str, tile: str, params: str) -> Job:
    """Return two runs of a chain and a fence between them: the second finds L2 as measured runs found it."""
    made = chain_of(chain, dtype, tile, params)
    between = replace(fence("fence", made.last, made.first).kernel, programmatic=False)
    count = len(made.kernels)
    # nothing is launched early after an event, as in the measurement
    events = [(count - 1, count), (count, count + 1)]
    return Job(f"{chain}:{params}", [*made.kernels, between, *made.kernels], events)
