"""AlexNet as 22 kernels (Tango's count), one image: convolutions, norms, pools, fully connected layers.

The published list of launches is not known; this one is assumed: the first convolution in four parts, each
later one in two groups, and a ReLU of its own after the first two fully connected layers. As in Tango a TB
makes one channel of a layer. Fully connected layers are narrowed to 512 outputs, which leaves out 90 % of
their weights.
"""

from __future__ import annotations

from pysim.errors import WorkloadError
from pysim.program.job import Job, Kernel, Memory, Tensor
from pysim.program.warp_program import Affine
from pysim.workloads.kernels.region import Block, region_kernel

# channels out, pixels a side, the filter's area, groups, pixels a side after the pool (0: none), norm
_LAYERS = (
    (96, 56, 121, 1, 28, True),
    (256, 28, 25, 2, 14, True),
    (384, 14, 9, 2, 0, False),
    (384, 14, 9, 2, 0, False),
    (256, 14, 9, 2, 8, False),
)
_IMAGE = 224


def _conv(
    memory: Memory, name: str, source: Tensor, first: int, depth: int, out: Tensor, part: tuple[int, int],
    area: int,
) -> Kernel:  # fmt: skip
    """Make channels part[0] to part[1] of ``out`` from ``depth`` channels of ``source``, one a step."""
    count = part[1] - part[0]
    weights = memory.tensor(f"{name}_weights", count, depth * 128, 4)
    reads = [
        Block(source, 1, source.cols, Affine(first, step=1)),
        Block(weights, 1, 128, Affine(bx=1), Affine(step=128)),
    ]
    flops = -(-out.cols * area // 32 // 8)  # warp instructions of each of 8 warps
    work = {"fp32": flops, "int": flops // 4, "smem_ops": flops // 8}
    made = Block(out, 1, out.cols, Affine(part[0], bx=1))
    return region_kernel(name, (count, 1), 8, reads, [made], work, steps=depth, registers=40)


def _channels(name: str, source: Tensor, out: Tensor, near: int, work: dict[str, int]) -> Kernel:
    """Make a channel of ``out`` from ``near`` channels of ``source``; both have a halo of channels."""
    halo = 2
    reads = [Block(source, near, source.cols, Affine(halo - near // 2, bx=1))]
    made = [Block(out, 1, out.cols, Affine(halo, bx=1))]
    return region_kernel(name, (out.rows - 2 * halo, 1), 8, reads, made, work)


def _product(memory: Memory, name: str, x: Tensor, out: Tensor) -> Kernel:
    """Make 8 outputs a TB, 128 inputs of each a step."""
    weights = memory.tensor(f"{name}_weights", out.cols, x.rows * x.cols, 4)
    flat = Tensor(x.name, 1, x.rows * x.cols, 4, x.address)
    step = Affine(step=128)
    reads = [Block(weights, 8, 128, Affine(bx=8), step), Block(flat, 1, 128, col=step)]
    work = {"fp32": 4, "int": 4}
    return region_kernel(
        name,
        (out.cols // 8, 1),
        8,
        reads,
        [Block(out, 1, 8, col=Affine(bx=8))],
        work,
        steps=flat.cols // 128,
    )


def alexnet(width: int = 512, thin: int = 1) -> Job:
    """AlexNet (Tango), 22 kernels, one image. Assumed: list of launches, layers of ``width`` outputs.

    ``thin``: layers have so many times fewer channels, for tests.
    """
    if width < 128 or width % 128:
        raise WorkloadError(f"alexnet: width = {width}: must be a multiple of 128")
    if thin not in (1, 2, 4, 8):
        raise WorkloadError(f"alexnet: thin = {thin}: must be 1, 2, 4 or 8")
    memory = Memory()
    made: list[Kernel] = []
    x, first = memory.tensor("image", 3, _IMAGE * _IMAGE, 4), 0
    for number, (full, side, area, groups, pooled, norm) in enumerate(_LAYERS, 1):
        channels = full // thin
        depth = (x.rows - 2 * first) // groups
        out = memory.tensor(f"conv{number}", channels + 4, side * side, 4)
        parts = 4 if number == 1 else groups
        share = channels // parts
        for part in range(parts):
            at = first + depth * (part if groups > 1 else 0)
            span = 2 + share * part, 2 + share * (part + 1)
            made.append(_conv(memory, f"conv{number}", x, at, depth, out, span, area))
        x, first = out, 2
        if norm:
            out = memory.tensor(f"norm{number}", channels + 4, side * side, 4)
            made.append(_channels("norm", x, out, 5, {"fp32": side * side // 32, "sfu": side * side // 128}))
            x = out
        if pooled:
            out = memory.tensor(f"pool{number}", channels + 4, pooled * pooled, 4)
            made.append(_channels("pool", x, out, 1, {"fp32": side * side // 128, "int": side * side // 64}))
            x = out
    # the halo of channels is no input of the fully connected layers
    x = Tensor("features", x.rows - 4, x.cols, 4, x.address + 2 * x.pitch)
    for number, outputs in enumerate((width, width, width), 6):
        out = memory.tensor(f"fc{number}", 1, outputs, 4)
        made.append(_product(memory, f"fc{number}", x, out))
        x = out
        if number < 8:
            mine = [Block(x, 1, 128, col=Affine(bx=128))]
            made.append(region_kernel("relu", (outputs // 128, 1), 4, mine, mine, {"fp32": 1, "int": 2}))
    return Job("alexnet", made)
