"""Convolutions before Hopper: implicit GEMMs with the tiles of Volta's GEMMs stand in for cuDNN's kernels.

Which kernels cuDNN takes there was not recorded. Thread blocks need the rows of pixels that their windows
cover, of one image (``kernels.image_gemm``); those of a gradient of filters need all of both operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from pysim.errors import WorkloadError
from pysim.workloads.kernels.copy import fill
from pysim.workloads.kernels.image_gemm import Filtered, filter_gradient, image_gemm
from pysim.workloads.library.choices.by_cost import hints_of

if TYPE_CHECKING:
    from pysim.program.job import Kernel, Tensor
    from pysim.workloads.library.memory.images import Images, Window

Types = Literal["fp32", "fp16"]


def by_tiles(
    device: str,
    direction: str,
    images: Images,
    out: Images,
    window: Window,
    dtype: str,
    operands: tuple[Tensor, ...],
) -> list[Kernel]:
    """Return the kernels of a convolution, or of one of its gradients, on a GPU of Volta or Ampere.

    ``operands``: what is read (images and filters; gradient and filters; images and gradient), then what is
    made. Raises WorkloadError for a type without tiles on the device.
    """
    if dtype not in get_args(Types):
        raise WorkloadError(f"convolution on {device}: {dtype}: there are {', '.join(get_args(Types))}")
    hints = hints_of(device)
    first, second, made = operands
    f = Filtered(
        images.count, images.channels, (images.height, images.width), out.channels, (out.height, out.width),
        window.side, window.stride, window.pad, direction == "backward_data",
    )  # fmt: skip
    if direction != "backward_weights":
        return [image_gemm(f"conv_{direction}", f, first, second, made, dtype, hints)]  # type: ignore[arg-type]
    kernel = filter_gradient("conv_backward_weights", first, second, made, f, dtype, hints)  # type: ignore[arg-type]
    adds = any(access.mode == "update" for access in kernel.accesses)
    return [fill("conv_zero", made), kernel] if adds else [kernel]
