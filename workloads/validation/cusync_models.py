"""Layers of cuSync's models end to end: GPT-3 and LLaMA on one of eight GPUs, ResNet-38 and VGG-19.

A layer is parts that run one after another; cuSync overlaps the kernels within a part. GEMMs and convolutions
have the tilings that the authors list for each of their modes (``validation.cusync``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Job, Kernel, Memory, Tensor
from pysim.workloads.kernels.cutlass import Multistage, cutlass_gemm
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.implicit_gemm import conv_chain
from pysim.workloads.kernels.pointwise import Field, elementwise
from pysim.workloads.kernels.stream_k import stream_k, workspace
from pysim.workloads.kernels.tiling import Tiling
from pysim.workloads.networks.mlp_pair import mlp_pair

from .cusync import listed_convolution, listed_pair
from .table import packaged, rows_of

if TYPE_CHECKING:
    from pysim import Config

ITEM = 2  # fp16
GPUS = 8  # that share a layer
STREAM_K = "stream-K"
THEIRS = ", cusync's tiles"  # a scheme with this suffix has the tiles of the mode tilesync
MODES = {"cusync:row": "rowsync", "cusync:tile": "tilesync", "cusync:strided": "tilesync"}
# scores of a token with itself, exponential, random number and multiplication, a column of a head; assumed
SOFTMAX = {"fp32": 12, "sfu": 1, "int": 16}
HEAD_ROWS = 16  # of a TB of the kernel between the GEMMs of attention


@dataclass(frozen=True, slots=True)
class Language:
    """``hidden`` columns; the MLP's first GEMM makes ``wide`` columns, and the second reads ``narrow``."""

    hidden: int
    wide: int
    narrow: int


LANGUAGE = {"gpt3": Language(12288, 6144, 6144), "llama": Language(8192, 5632, 2816)}
# channels, pixels a side, convolutions of a layer, layers
IMAGES: dict[str, tuple[tuple[int, int, int, int], ...]] = {
    "resnet38": ((64, 56, 2, 3), (128, 28, 2, 4), (256, 14, 2, 6), (512, 7, 2, 3)),
    "vgg19": ((64, 56, 2, 1), (128, 28, 2, 1), (256, 14, 4, 1), (512, 7, 4, 1)),
}
MODELS = (*LANGUAGE, *IMAGES)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a model that occurs ``times`` times; ``build(scheme)`` gives its job and the scheme in full.

    ``row``: its key in the measured tables: model, size, and channels or 0. ``clears``: launches that
    the authors' baseline on a V100 has besides; each clears the semaphores of a kernel that splits K.
    """

    name: str
    times: int
    build: Callable[[str], tuple[Job, str]]
    row: tuple[str, int, int]
    clears: int = 0


def _slots(config: Config, tiling: Tiling | Multistage) -> int:
    """Return how many TBs the GPU holds at once, by registers and shared memory."""
    if isinstance(tiling, Multistage):
        registers, smem = tiling.registers, tiling.smem
    else:
        registers, smem = tiling.registers(ITEM), tiling.smem(ITEM)
    room = int(config["gpu.sm.smem"])
    each = min(65536 // (registers * 32 * tiling.warps), room // (smem + 1024))
    return int(config["gpu.sms"]) * max(1, each)


def _multiply(
    config: Config, scheme: str, name: str, memory: Memory, tensors: tuple[Tensor, Tensor, Tensor],
    tiling: Tiling | Multistage,
) -> Kernel:  # fmt: skip
    if scheme == STREAM_K:
        whole = replace(tiling, split_k=1)
        slots = _slots(config, whole)
        return stream_k(name, *tensors, whole, workspace(memory, f"{name}_sums", whole, slots))
    if isinstance(tiling, Multistage):
        return cutlass_gemm(name, *tensors, tiling)
    return gemm(name, *tensors, tiling)


def card_of(device: str) -> str:
    """Return what the authors' tables call a device: their V100 is the one of 32 GB."""
    return {"v100_32gb": "v100"}.get(device, device)


def _listed(config: Config, model: str, m: int, scheme: str) -> tuple[list[Tiling | Multistage], str]:
    """Return tilings of two GEMMs and the scheme to run; schemes other than cuSync's have its baseline's."""
    device = card_of(config.device.name)
    gated = LANGUAGE[model].wide != LANGUAGE[model].narrow
    mode, policy = _mode(scheme), scheme.partition(":")[2]
    if policy == "tile" and gated:
        policy = "strided"
    tilings, own = listed_pair(device, model, m, mode, policy)
    return tilings, own if scheme in MODES else "stream" if scheme == STREAM_K else scheme.removesuffix(
        THEIRS
    )


def _mlp(config: Config, model: str, m: int, scheme: str) -> tuple[Job, str]:
    """Make two GEMMs, a GELU between them (GPT-3), or a gated unit (LLaMA) that is left out, as there."""
    at = LANGUAGE[model]
    tilings, run = _listed(config, model, m, scheme)
    if scheme != STREAM_K:
        return mlp_pair(
            (m, at.wide, at.hidden, at.hidden, at.narrow), tilings[0], tilings[1], gated=True
        ), run
    memory = Memory()
    x, made = memory.tensor("x", m, at.hidden, ITEM), memory.tensor("xw1", m, at.wide, ITEM)
    w1, w2 = memory.tensor("w1", at.hidden, at.wide, ITEM), memory.tensor("w2", at.narrow, at.hidden, ITEM)
    out = memory.tensor("xw12", m, at.hidden, ITEM)
    both = (("gemm1", (x, w1, made)), ("gemm2", (made, w2, out)))
    kernels = [
        _multiply(config, scheme, name, memory, tensors, tiling)
        for (name, tensors), tiling in zip(both, tilings, strict=True)
    ]
    return Job(f"mlp:m={m}", kernels), run


def _attention(config: Config, model: str, m: int, scheme: str) -> tuple[Job, str]:
    """Make Q, K and V in one GEMM, a kernel that reads columns of all three, and a second GEMM."""
    hidden, part = LANGUAGE[model].hidden, LANGUAGE[model].hidden // GPUS
    tilings, run = _listed(config, model, m, scheme)
    if scheme == "cusync:tile":
        run = run.replace("cusync:strided", "cusync:tile")
    first = replace(tilings[0], gelu=False) if isinstance(tilings[0], Multistage) else tilings[0]
    memory = Memory()
    x, w1 = memory.tensor("x", m, hidden, ITEM), memory.tensor("w_qkv", hidden, 3 * part, ITEM)
    qkv, mixed = memory.tensor("qkv", m, 3 * part, ITEM), memory.tensor("mixed", m, part, ITEM)
    w2, out = memory.tensor("w_out", part, hidden, ITEM), memory.tensor("out", m, hidden, ITEM)
    kernels = [
        _multiply(config, scheme, "qkv", memory, (x, w1, qkv), first),
        elementwise(
            "softmax_dropout", [Field(qkv, i * part) for i in range(3)], [Field(mixed)], cols=part,
            per_element=SOFTMAX, threads=32, rows_per_tb=min(HEAD_ROWS, m),
        ),
        _multiply(config, scheme, "out", memory, (mixed, w2, out), tilings[1]),
    ]  # fmt: skip
    return Job(f"attention:m={m}", kernels), run


def _convolutions(shape: tuple[int, int, int], batch: int, config: Config, scheme: str) -> tuple[Job, str]:
    channels, side, layers = shape
    tiling, own, form = listed_convolution(batch, channels, layers, _mode(scheme))
    if scheme in MODES:
        return conv_chain(batch, channels, side, layers, tiling, form), own
    # tables need no code that waits
    plain = replace(form, looks=False, weights_first=False)
    return conv_chain(batch, channels, side, layers, tiling, plain), scheme.removesuffix(THEIRS)


def _mode(scheme: str) -> str:
    """Return the mode of the authors' script whose tiles a scheme has."""
    return "tilesync" if scheme.endswith(THEIRS) else MODES.get(scheme, "baseline")


def schemes_of(model: str, name: str) -> tuple[str, ...]:
    """Return the schemes that a part of a model can run under, its baseline first."""
    theirs = tuple(name + THEIRS for name in ("stream", "tb_static"))
    if model in IMAGES:
        return "stream", "host", "cusync:row", "cusync:tile", "pool", "tb_static", *theirs
    strided = ("cusync:strided",) if name == "attention" else ()
    return "stream", STREAM_K, "cusync:row", "cusync:tile", *strided, "pool", "tb_static", *theirs


def published(device: str, row: tuple[str, int, int]) -> tuple[float, float] | None:
    """Return what the authors measured of a part (us): the baseline, and the better of their two modes."""
    model, size, channels = row
    file, keys = ("cusync_conv.csv", {"net": model, "batch": str(size), "channels": str(channels)})
    if not channels:
        file, keys = "cusync_mlp.csv", {"model": model, "m": str(size)}
    keys["device"] = card_of(device)
    rows = rows_of(file, packaged(file), (*keys, "mode", "total_us", "above_peak"))
    found: dict[str, float] = {}
    for each in rows:
        if all(each.text(key) == value for key, value in keys.items()) and each.text("above_peak") == "0":
            found.setdefault(each.text("mode"), each.number("total_us"))
    modes = [found[mode] for mode in ("rowsync", "tilesync") if mode in found]
    return (found["baseline"], min(modes)) if "baseline" in found and modes else None


def pieces_of(config: Config, model: str, size: int) -> list[Piece]:
    """Return the parts of a model's layers: ``size`` is tokens, or pictures at a time."""
    if model in LANGUAGE:
        return [
            Piece("attention", 1, partial(_attention, config, model, size), ("", size, 0)),
            Piece("mlp", 1, partial(_mlp, config, model, size), (model, size, 0)),
        ]
    if model not in IMAGES:
        raise WorkloadError(f"model = {model[:20]}: must be one of {', '.join(MODELS)}")
    # the tables have the first two stages of both networks under one name
    return [
        Piece(
            f"{channels} channels", times,
            partial(_convolutions, (channels, side, layers), size, config),
            ("resnet38" if layers == 2 else model, size, channels),
            layers if listed_convolution(size, channels, layers, "baseline")[0].split_k > 1 else 0,
        )
        for channels, side, layers, times in IMAGES[model]
    ]  # fmt: skip
