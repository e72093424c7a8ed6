"""Which kernels cuDNN 9.19's heuristics launch for a convolution on an H200, as far as small trees say it.

A tree names the family by sizes, type, layout and pass; a second one the kernel within a family (its tile,
registers and shared memory). 1 x 1 filters that are a GEMM take what ``choose_gemm`` says (tf32, channels
first: for an image). Grids follow from tiles; parts of k fill the SMs once.
Of 1,184 rows, each chosen without its third of the shapes, the family is right in 73.1 %, both in
55.2 %. The most frequent family of a type, layout and pass is right in 45.6 %
(``tests/hw/library/fit_conv_trees.py``, which grows the trees).
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.workloads.library.choices.chooser import chosen
from pysim.workloads.library.gemms.launches import predicted
from pysim.workloads.library.gemms.told import Told
from pysim.workloads.library.hopper import SMS

from .engines import ENGINES, engine_grid
from .names import tile_of
from .shape import convolution_of
from .told_gemm import BATCHED, tile_along
from .winograd import ADDS, OUTPUT, VALUES, winograd_grid

if TYPE_CHECKING:
    from .shape import Convolution

    Choice = tuple[Told, tuple[Told, ...]]

TREES = "h200_conv_trees.json"
SIDE = 32  # pixels and channels of a TB that changes a layout
LAYOUTS = {2: ((32, 2112), (36, 2112)), 4: ((32, 4224), (32, 4224))}  # registers, shared memory: of the sweep
SEGMENT_STEPS = (
    20  # k-steps of a TB at least where TBs of wgmma kernels share a tile: of 8 to 40 nearest to the grids
)
MOST_ADDED = 10  # parts of k that TBs add themselves; where there are more another kernel does
WGRAD_SUM, WGRAD_SUM_RESOURCES = "sm90_xmma_wgrad_indexed_", (126, 20488)  # of most rows with such a kernel
WGMMA_SMEM = 231424  # bytes of all such kernels
HALF, VECTOR = 2, 4  # bytes of fp16; elements of a vector of tf32
SUM_THREADS, SUM_RESOURCES = 128, (32, 0)  # of the kernel that adds gradients of filters over images
SCALED = 256, 65535  # threads, and TBs at most, of what clears the images' gradients
# registers and shared memory of the transforms, of the sweep
WINOGRAD = {"winogradWgradData4x4": 24704, "winogradWgradDelta4x4": 16896, OUTPUT: 9216}


def values_of(conv: Convolution) -> dict[str, int]:
    """Return what trees ask for."""
    depth = conv.channels * conv.taps
    return {
        "C": conv.channels,
        "K": conv.filters,
        "taps": conv.taps,
        "stride": conv.stride,
        "pixels": conv.pixels,
        "N": conv.images,
        "odd": conv.channels % 8,
        "depth": depth,
        "outputs": conv.pixels * conv.filters,
    }


@lru_cache(maxsize=1)
def _trees() -> tuple[dict[str, object], dict[str, object]]:
    """Return trees of families and of kernels: [question, limit, tree up to it, tree above it], or a name."""
    text = files("pysim.workloads").joinpath("measured", TREES).read_text(encoding="utf-8")
    read = json.loads(text)
    return read["families"], read["kernels"]


def _leaf(tree: object, values: dict[str, int]) -> str:
    while isinstance(tree, list):
        name, limit, yes, no = tree
        tree = yes if values[name] <= limit else no
    return str(tree)


def choose_convolution(conv: Convolution) -> Choice:
    """Return the main launch that is predicted, and those beside it.

    Raises WorkloadError for a type and layout that were not measured, and a family without template.
    """
    layout = "nhwc" if conv.last else "nchw"
    key = f"{conv.dtype} {layout} {conv.direction}"
    families, _ = _trees()
    if key not in families:
        measured = sorted({" ".join(name.split()[:2]) for name in families})
        raise WorkloadError(
            f"convolution: choices of {conv.dtype} {layout} were not measured: {', '.join(measured)}"
        )
    values = values_of(conv)
    family = _leaf(families[key], values)
    if family == "gemm" and (conv.taps > 1 or conv.stride > 1):
        family = _other(families[key], values)
    if family == "gemm":
        return _gemm(conv)
    return of_family(conv, family)


def of_family(conv: Convolution, family: str) -> Choice:
    """Return what is predicted of a family, whether or not the library would choose that family.

    Raises WorkloadError for a family that has no kernels of the type and direction, and where none fits.
    """
    tree = _trees()[1].get(f"{conv.dtype} {conv.direction} {family}")
    if tree is None:
        raise WorkloadError(f"convolution: {family} is chosen, which has no template without a kernel told")
    name, registers, smem = _leaf(tree, values_of(conv)).split("|")
    told = Told(name, (1, 1, 1), int(registers), int(smem))
    if family == "winograd":
        return _winograd(told, conv)
    if name in ENGINES:
        clears: tuple[Told, ...] = ()
        if conv.direction == "backward_data":
            tbs = min(SCALED[1], -(-conv.inputs * conv.channels // SCALED[0]))
            clears = (Told("scalePackedTensor_kernel", (tbs, 1, 1), 22, 0),)
        return replace(told, grid=engine_grid(told, conv)), clears
    return _tiled(told, conv)


def _other(tree: object, values: dict[str, int]) -> str:
    """Return the family of a like convolution of 3 x 3 filters, where a leaf says GEMM of what is none."""
    family = _leaf(tree, {**values, "taps": max(9, values["taps"])})
    if family == "gemm":
        raise WorkloadError("convolution: the rule has no kernel for it: tell one")
    return family


def _gemm(conv: Convolution) -> Choice:
    """Return one GEMM of all images; of tf32 with channels first one an image, which z of the grid counts.

    Gradients of filters are then added over the images by another kernel.
    """
    problem, _ = conv.gemm(conv.last)
    weights = conv.direction == "backward_weights"
    m, k = (1, conv.images) if weights else (conv.images, 1)
    each = replace(problem, m=problem.m // m, k=problem.k // k)
    if conv.last or problem.item == HALF or each.alignment() < VECTOR:
        launch = predicted(chosen(problem), problem)
        smem = launch.smem or WGMMA_SMEM
        return Told(launch.name, launch.grid, launch.registers, smem, launch.reduction == "kernel"), ()
    launch = predicted(chosen(each), each)
    told = Told(launch.name, (*launch.grid[:2], conv.images), launch.registers, launch.smem or WGMMA_SMEM)
    if not weights:
        return told, ()
    tbs = -(-conv.channels * conv.filters // SUM_THREADS)
    return told, (Told(BATCHED, (tbs, 1, 1), *SUM_RESOURCES),)


def _winograd(told: Told, conv: Convolution) -> Choice:
    n, m, _ = tile_of(told.name) if "tilesize" in told.name else (32, 128, 8)
    grid = -(-conv.filters // n), -(-conv.channels // m), VALUES
    others = tuple(Told(name, winograd_grid(name, conv), 64, WINOGRAD[name]) for name in ADDS)
    return replace(told, grid=grid), others


def _tiled(told: Told, conv: Convolution) -> Choice:
    """Return a kernel of one tile a TB, or of parts of k that fill the SMs once, with changes of layout.

    Where kernels for wgmma have fewer tiles than SMs, TBs share the k-steps of a tile.
    """
    rows, cols, k = tile_along(told, conv)
    grid = rows, cols, 1
    others: list[Told] = []
    if told.name.startswith("sm90"):
        tiles = rows * cols
        parts = max(1, min(SMS // tiles, k // SEGMENT_STEPS))
        grid = min(parts * tiles, SMS), 1, 1
        if parts > MOST_ADDED and conv.direction == "backward_weights":
            others.append(Told(WGRAD_SUM, grid, *WGRAD_SUM_RESOURCES))
    elif conv.direction == "backward_weights":
        parts = max(1, min(SMS // (rows * cols), k))
        told = replace(told, summed=parts > 1)
        grid = rows, cols, parts
    needed = not conv.last and ("nhwc" in told.name or told.name.startswith("ImplicitGemm"))
    return replace(told, grid=grid), (*others, *(_relayouts(conv) if needed else ()))


def _relayouts(conv: Convolution) -> tuple[Told, ...]:
    """Return the changes of layout of the operands, and of the result."""
    images = conv.images, conv.channels, conv.size[0] * conv.size[1]
    filters = conv.filters, conv.channels, conv.taps
    result = conv.images, conv.filters, conv.out[0] * conv.out[1]
    before, after = {
        "forward": ((images, filters), result),
        "backward_data": ((result, filters), images),
        "backward_weights": ((images, result), filters),
    }[conv.direction]

    def launch(name: str, shape: tuple[int, int, int], back: bool) -> Told:
        count, channels, pixels = shape
        return Told(name, (-(-pixels // SIDE), -(-channels // SIDE), count), *LAYOUTS[conv.item][back])

    # filters of one tap are the same in both layouts
    made = [launch("toNhwc", shape, False) for shape in before if shape != filters or conv.taps > 1]
    if after != filters or conv.taps > 1:
        made.append(launch("toNchw", after, True))
    return tuple(made)


def named_choice(
    images: int,
    channels: int,
    height: int,
    width: int,
    filters: int,
    rows: int,
    cols: int,
    stride: int = 1,
    padding: int = 0,
    direction: str = "forward",
    dtype: str = "fp16",
    layout: str = "nhwc",
) -> Choice:
    """Return the choice for filters of ``rows`` x ``cols``; ``stride`` and ``padding`` of both sides.

    Raises WorkloadError as :func:`choose_convolution` and :func:`convolution_of` do.
    """
    if layout not in ("nhwc", "nchw"):
        raise WorkloadError(f"convolution: layout {layout!r}: must be nhwc or nchw")
    conv = convolution_of(
        images, channels, (height, width), filters, (rows, cols), stride=(stride, stride),
        padding=(padding, padding), direction=direction, dtype=dtype, last=layout == "nhwc",
    )  # fmt: skip
    return choose_convolution(conv)
